//! Runs beside and after one another: the lock, the summary of every end, quiet ticks, what is remembered.

use std::time::{Duration, Instant};

use crate::cases::{FIRST, catalogue, play, stage};
use crate::support::canned::exc;
use crate::support::faults::Fault;
use crate::support::harness::{Harness, Outcome};
use crate::support::model::{Catalogue, Poison};
use crate::support::quirks::{Names, Quirks};
use crate::support::requests::Operation;
use crate::support::server::Server;
use crate::support::stamps::{DAY, HOUR, day};

const LONG: Duration = Duration::from_secs(60);
const KEYS: [&str; 18] = [
    "source",
    "outcome",
    "exit_code",
    "error",
    "new",
    "updated",
    "unchanged",
    "deleted",
    "skipped",
    "matched",
    "requests",
    "retries",
    "bytes",
    "duration_s",
    "watermark_before",
    "watermark",
    "clock",
    "reconciled",
];

/// One JSON object on one line with all keys, of this outcome and code.
#[track_caller]
fn expect_summary(outcome: Outcome, word: &str, code: i32) -> Outcome {
    let outcome = outcome.expect_code(code).expect("one line on stdout", |outcome| outcome.stdout.lines().count() == 1);
    for key in KEYS {
        outcome.json(key);
    }
    let clock = outcome.json("clock");
    let outcome = outcome.expect("a clock", |_| ["\"record\"", "\"server\"", "\"none\""].contains(&clock.as_str()));
    outcome.expect_json("outcome", &format!("\"{word}\"")).expect_json("exit_code", &code.to_string())
}

#[test]
fn a_complete_run_has_a_summary() {
    let (server, harness) = stage(Quirks::default(), 5);
    let outcome = expect_summary(harness.harvest_quickly(&server, &["--json"]), "complete", 0);
    let outcome = outcome.expect_json("error", "null").expect_json("new", "5").expect_json("matched", "5");
    let outcome =
        outcome.expect_json("requests", &server.asked().to_string()).expect_json("retries", "0").expect_json("clock", "\"record\"");
    let outcome =
        outcome.expect_json("watermark_before", &format!("\"{FIRST}\"")).expect_json("watermark", "\"2025-01-01T04:00:00Z\"");
    outcome.expect_json("source", &format!("\"{}\"", server.url()));
}

#[test]
fn a_failed_run_has_a_summary() {
    let (server, harness) = stage(Quirks::default(), 5);
    server.fault_when(|_| true, Fault::Reply(crate::support::canned::Reply::xml(exc("NoApplicableCode", "", "Out of \"order\""))));
    let outcome = expect_summary(harness.harvest_quickly(&server, &["--json"]), "failed", 76);
    outcome.expect("the error", |outcome| outcome.json("error").contains("Out of \\\"order"));
}

#[test]
fn access_denied_is_77_at_once() {
    for status in [401, 403, 407] {
        let (server, harness) = stage(Quirks::default(), 5);
        server.fault_when(|_| true, Fault::status(status));
        expect_summary(harness.harvest_quickly(&server, &["--json"]), "failed", 77);
        assert!(server.asked() <= 2, "{}", server.journal().told());
    }
}

#[test]
fn nobody_there_is_69() {
    let (server, harness) = stage(Quirks::default(), 5);
    let url = server.url();
    drop(server);
    let outcome = harness.harvest(&url, &["--json", "--retries", "1", "--retry-max-wait", "0"]);
    expect_summary(outcome, "failed", 69).expect_stderr(&url);
    expect_summary(harness.harvest("http://no-such-host.invalid/csw", &["--json", "--retries", "0"]), "failed", 69);
}

#[test]
fn a_partial_run_has_a_summary() {
    let mut catalogue = catalogue(Quirks::default(), 30);
    for number in 12..=20 {
        catalogue.change(&format!("r-{number:06}"), |record| record.poison = Some(Poison::Http(503)));
    }
    let (server, harness) = play(catalogue);
    let outcome = harness.harvest_quickly(&server, &["--json", "--page-size", "10", "--retries", "0"]);
    let outcome = expect_summary(outcome, "partial", 69).expect_json("new", "11");
    outcome.expect_json("watermark", &format!("\"{FIRST}\""));
    let rows = harness.store().rows("SELECT outcome, exit_code, new, watermark FROM runs");
    assert_eq!(rows, [["partial", "69", "11", FIRST]]);
}

#[test]
fn a_store_that_cannot_be_used_has_a_summary() {
    let (server, harness) = stage(Quirks::default(), 5);
    harness.write("notes.txt", "Buy milk.\n");
    expect_summary(harness.harvest(&server.url(), &["--json", "--db", "notes.txt"]), "failed", 78);
    expect_summary(harness.harvest(&server.url(), &["--json", "--db", "missing/state.db"]), "failed", 73);
}

#[test]
fn the_last_line_of_a_complete_run_is_as_published() {
    let (server, harness) = stage(Quirks::default(), 5);
    let last = |outcome: &Outcome| outcome.stderr.lines().last().unwrap_or_default().to_owned();
    let first = harness.harvest_quickly(&server, &[]).expect_code(0);
    let line = "Harvest complete: 5 records (5 new, 0 updated, 0 deleted, 0 unchanged), watermark now 2025-01-01T04:00:00Z";
    assert!(last(&first).ends_with(line), "{}", first.stderr);
    let quiet = harness.harvest_quickly(&server, &[]).expect_code(0);
    let line = "Harvest complete: 0 records (0 new, 0 updated, 0 deleted, 0 unchanged), watermark now 2025-01-01T04:00:00Z";
    assert!(last(&quiet).ends_with(line), "{}", quiet.stderr);
    server.catalogue().edit("r-000001");
    server.catalogue().insert("late");
    server.catalogue().advance(HOUR);
    let changed = harness.harvest_quickly(&server, &[]).expect_code(0);
    let line = "Harvest complete: 2 records (1 new, 1 updated, 0 deleted, 0 unchanged), watermark now 2025-06-01T00:00:00Z";
    assert!(last(&changed).ends_with(line), "{}", changed.stderr);
}

#[test]
fn the_published_query_gives_three_lines_after_a_first_tick() {
    let (server, harness) = stage(Quirks::default(), 5);
    harness.harvest_quickly(&server, &[]).expect_code(0);
    assert_eq!(
        harness.store().rows("SELECT source, watermark FROM harvest_state"),
        [[server.url(), "2025-01-01T04:00:00Z".to_owned()]]
    );
    assert_eq!(harness.store().rows("SELECT count(*) AS records FROM records"), [["5"]]);
}

/// A server whose first page of ten stalls, and a run that hangs there.
fn hanging(more: &[&str]) -> (Server, Harness, crate::support::harness::Running) {
    let (server, harness) = stage(Quirks::default(), 30);
    server.fault_times(1, |entry| entry.page().is_some_and(|page| page.max_records == 10), Fault::Stall);
    let url = server.url();
    let running = harness.spawn(&[&["harvest", &url, "--page-size", "10"], more].concat());
    assert!(server.wait_for_stall(LONG), "{}", server.journal().told());
    (server, harness, running)
}

#[test]
fn a_second_run_leaves_with_75_and_names_the_first() {
    let (server, harness, running) = hanging(&[]);
    let asked = server.asked();
    let second = harness.harvest_quickly(&server, &["--json"]);
    let second = expect_summary(second, "skipped", 75).expect_stderr(&format!("pid {}", running.id()));
    second.expect("few lines", |outcome| outcome.stderr.lines().count() == 1);
    let start = Instant::now();
    harness.harvest_quickly(&server, &["--wait", "1"]).expect_code(75);
    assert!(start.elapsed() >= Duration::from_secs(1));
    assert_eq!(server.asked(), asked, "the second run asked nothing");
    // Another source is no concern of this lock, nor is another store.
    harness.harvest_quickly(&server, &["--source", "other", "--db", "other.db"]).expect_code(0);
    server.release();
    running.wait().expect_code(0);
    harness.expect_mirror(&server.catalogue());
}

#[test]
fn a_second_source_may_run_at_the_same_time_in_the_same_store() {
    let (server, harness, running) = hanging(&[]);
    harness.harvest_quickly(&server, &["--source", "other"]).expect_code(0);
    server.release();
    running.wait().expect_code(0);
    assert_eq!(harness.store().records_of(&server.url()).len(), 30);
    assert_eq!(harness.store().records_of("other").len(), 30);
    assert_eq!(harness.store().integrity(), "ok");
}

#[test]
fn wait_waits_for_the_lock() {
    let (server, harness, running) = hanging(&[]);
    let url = server.url();
    let second = harness.spawn(&["harvest", &url, "--wait", "60", "--json"]);
    server.release();
    running.wait().expect_code(0);
    second.wait().expect_code(0).expect_json("new", "0");
}

#[test]
fn a_run_that_was_killed_leaves_no_lock_behind() {
    let (server, harness, mut running) = hanging(&[]);
    running.kill();
    running.wait();
    server.release();
    harness.harvest_quickly(&server, &["--page-size", "10"]).expect_code(0);
    harness.expect_mirror(&server.catalogue());
}

#[test]
fn a_quiet_tick_sends_at_most_two_requests_and_asks_for_no_capabilities() {
    let (server, harness) = stage(Quirks::default(), 30);
    harness.harvest_quickly(&server, &["--page-size", "10"]).expect_code(0);
    let before = harness.store().records();
    server.forget_journal();
    for _ in 0..3 {
        server.catalogue().advance(HOUR);
        harness.harvest_quickly(&server, &["--page-size", "10"]).expect_code(0);
    }
    assert!(server.asked() <= 6, "{}", server.journal().told());
    assert!(server.requests().iter().all(|entry| entry.operation != Ok(Operation::GetCapabilities)));
    assert_eq!(harness.store().records(), before);
}

#[test]
fn a_quiet_tick_is_cheap_at_the_servers_of_the_field() {
    for (name, quirks) in crate::support::profiles::all() {
        let filters = !quirks.properties.accepted.is_empty();
        let mut catalogue = Catalogue::new(day(2025, 3, 1), quirks);
        for number in 0..40 {
            catalogue.advance(DAY);
            catalogue.insert(&format!("r{number:02}"));
        }
        catalogue.advance(40 * DAY);
        let (server, harness) = play(catalogue);
        let first = harness.harvest_quickly(&server, &["--page-size", "15"]);
        first.expect(&format!("{name} to be complete"), |outcome| outcome.code() == Some(0));
        harness.expect_mirror(&server.catalogue());
        // One more may be needed where the first could not tell everything.
        server.catalogue().advance(DAY);
        harness.harvest_quickly(&server, &["--page-size", "15"]).expect_code(0);
        let before = harness.store().records();
        server.catalogue().advance(DAY);
        server.forget_journal();
        harness.harvest_quickly(&server, &["--page-size", "15"]).expect_code(0);
        assert_eq!(harness.store().records(), before, "{name}");
        let most = if filters { 2 } else { 6 };
        assert!(server.asked() <= most, "{name}:\n{}", server.journal().told());
    }
}

#[test]
fn a_remembered_dialect_that_is_refused_is_negotiated_anew() {
    let (server, harness) = stage(Quirks::default(), 30);
    harness.harvest_quickly(&server, &[]).expect_code(0);
    {
        let mut catalogue = server.catalogue();
        catalogue.quirks_mut().properties = Names::exactly(&["Modified"]);
        catalogue.quirks_mut().sort_names = Names::exactly(&["Modified"]);
        catalogue.advance(HOUR);
        catalogue.edit("r-000004");
        catalogue.insert("late");
        catalogue.advance(HOUR);
    }
    harness.harvest_quickly(&server, &["--json"]).expect_code(0).expect_json("new", "1").expect_json("updated", "1");
    harness.expect_mirror(&server.catalogue());
    server.forget_journal();
    harness.harvest_quickly(&server, &["--json"]).expect_code(0).expect_json("unchanged", "0");
    assert!(server.asked() <= 2, "{}", server.journal().told());
}

#[test]
fn a_remembered_filter_that_is_ignored_from_now_on_loses_nothing() {
    let (server, harness) = stage(Quirks::default(), 30);
    harness.harvest_quickly(&server, &[]).expect_code(0);
    server.catalogue().quirks_mut().filter_ignored = true;
    for turn in 1..=2 {
        server.catalogue().advance(HOUR);
        server.catalogue().edit(&format!("r-{turn:06}"));
        server.catalogue().insert(&format!("late-{turn}"));
        server.catalogue().advance(HOUR);
        harness.harvest_quickly(&server, &["--json"]).expect_code(0).expect_json("new", "1").expect_json("updated", "1");
        harness.expect_mirror(&server.catalogue());
    }
}
