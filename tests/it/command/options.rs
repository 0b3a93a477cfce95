//! What each option of `harvest` does.

use std::time::{Duration, Instant};

use super::inputs::files;
use crate::cases::{FIRST, catalogue, play, stage};
use crate::support::faults::Fault;
use crate::support::model::{Catalogue, Operator};
use crate::support::quirks::{GMD, Quirks};
use crate::support::server::Server;
use crate::support::stamps::{DAY, HOUR, MINUTE, SECOND, day};

#[test]
fn a_dry_run_makes_nothing() {
    let (server, harness) = stage(Quirks::default(), 5);
    let outcome = harness.harvest_quickly(&server, &["--dry-run", "--json"]).expect_code(0);
    outcome.expect_json("new", "5").expect_json("outcome", "\"complete\"");
    assert!(files(harness.folder()).is_empty(), "{:?}", files(harness.folder()).keys());
}

#[test]
fn a_dry_run_leaves_every_byte_of_a_store() {
    let (server, harness) = stage(Quirks::default(), 30);
    harness.harvest_quickly(&server, &["--page-size", "10"]).expect_code(0);
    server.catalogue().advance(HOUR);
    server.catalogue().edit("r-000003");
    server.catalogue().insert("late");
    let before = files(harness.folder());
    for _ in 0..2 {
        let outcome = harness.harvest_quickly(&server, &["--dry-run", "--json"]).expect_code(0);
        outcome.expect_json("new", "1").expect_json("updated", "1");
        let full = harness.harvest_quickly(&server, &["--dry-run", "--json", "--full", "--page-size", "10"]).expect_code(0);
        full.expect_json("new", "1").expect_json("updated", "1").expect_json("unchanged", "29");
        assert_eq!(files(harness.folder()), before);
    }
    harness.harvest_quickly(&server, &["--json"]).expect_code(0).expect_json("new", "1").expect_json("updated", "1");
    harness.expect_mirror(&server.catalogue());
}

#[test]
fn since_starts_there_and_never_moves_the_watermark_back() {
    let (server, harness) = stage(Quirks::default(), 30);
    harness.harvest_quickly(&server, &[]).expect_code(0);
    let before = harness.store().watermark();
    server.forget_journal();
    let outcome = harness.harvest_quickly(&server, &["--since", "2025-01-01T20:00:00Z", "--json"]).expect_code(0);
    outcome.expect_json("unchanged", "9").expect_json("new", "0");
    let bounds: Vec<_> = server.get_records().into_iter().filter_map(|request| request.lower).collect();
    assert_eq!(bounds.first(), Some(&(Operator::After, "2025-01-01T20:00:00Z".to_owned())));
    assert_eq!(harness.store().watermark(), before);
}

#[test]
fn since_beyond_the_watermark_passes_over_nothing_for_good() {
    let (server, harness) = stage(Quirks::default(), 3);
    harness.harvest_quickly(&server, &[]).expect_code(0);
    let before = harness.store().watermark();
    server.catalogue().insert_at("skipped", day(2025, 2, 1));
    server.catalogue().insert_at("wanted", day(2025, 3, 1));
    let since = ["--since", "2025-02-15", "--reconcile", "never", "--json"];
    harness.harvest_quickly(&server, &since).expect_code(0).expect_json("new", "1");
    assert!(harness.store().records().contains_key("wanted"));
    assert_eq!(harness.store().watermark(), before);
    harness.harvest_quickly(&server, &[]).expect_code(0);
    harness.expect_mirror(&server.catalogue());
    assert_eq!(harness.store().watermark(), "2025-03-01T00:00:00Z");
}

#[test]
fn since_in_the_very_first_run_leaves_the_first_harvest_to_come() {
    let (server, harness) = stage(Quirks::default(), 30);
    harness.harvest_quickly(&server, &["--since", "2025-01-02"]).expect_code(0);
    assert_eq!(harness.store().watermark(), FIRST);
    harness.harvest_quickly(&server, &[]).expect_code(0);
    harness.expect_mirror(&server.catalogue());
}

#[test]
fn full_reads_everything_and_touches_nothing_that_is_unchanged() {
    let (server, harness) = stage(Quirks::default(), 30);
    harness.harvest_quickly(&server, &[]).expect_code(0);
    let before = harness.store().records();
    // Back-dated: no watermark sees it.
    server.catalogue().insert_at("behind", day(2024, 1, 1));
    harness.harvest_quickly(&server, &["--reconcile", "never", "--json"]).expect_code(0).expect_json("new", "0");
    let outcome = harness.harvest_quickly(&server, &["--full", "--json"]).expect_code(0);
    outcome.expect_json("new", "1").expect_json("unchanged", "30").expect_json("updated", "0");
    let mut after = harness.store().records();
    assert!(after.remove("behind").is_some());
    assert_eq!(after, before);
}

#[test]
fn max_runtime_stops_in_good_order() {
    let (server, harness) = stage(Quirks::default(), 50);
    server.fault_times(
        1,
        |entry| entry.page().is_some_and(|page| page.max_records == 10 && page.start_position > 20),
        Fault::Stall,
    );
    let start = Instant::now();
    let outcome = harness.harvest_quickly(&server, &["--page-size", "10", "--max-runtime", "1", "--json"]).expect_code(75);
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
    outcome.expect_json("outcome", "\"partial\"").expect_json("exit_code", "75").expect_stderr("run it again");
    let held = harness.store().records().len();
    assert!((20..50).contains(&held), "{held} records are kept");
    assert_eq!(harness.store().watermark(), FIRST);
    server.release();
    server.forget_journal();
    harness.harvest_quickly(&server, &["--page-size", "10"]).expect_code(0).expect_stderr("resuming");
    harness.expect_mirror(&server.catalogue());
    assert!(server.get_records().iter().all(|page| page.hits || page.start_position > 10), "{}", server.journal().told());
}

#[test]
fn delay_lies_between_any_two_requests() {
    let (server, harness) = stage(Quirks::default(), 5);
    let start = Instant::now();
    harness.harvest_quickly(&server, &["--delay", "150"]).expect_code(0);
    let least = Duration::from_millis(150) * (server.asked() as u32 - 1);
    assert!(start.elapsed() >= least, "{} requests in {:?}", server.asked(), start.elapsed());
}

#[test]
fn a_page_beyond_max_body_is_asked_for_again_smaller() {
    let mut catalogue = catalogue(Quirks::default(), 20);
    for number in 1..=20 {
        catalogue.change(&format!("r-{number:06}"), |record| record.size = 200 * 1024);
    }
    let (server, harness) = play(catalogue);
    harness.harvest_quickly(&server, &["--page-size", "20", "--max-body", "1"]).expect_code(0);
    harness.expect_mirror(&server.catalogue());
    assert_eq!(harness.store().problems(), 0);
    let sizes: Vec<u32> = server.get_records().iter().filter(|request| !request.hits).map(|request| request.max_records).collect();
    assert!(sizes.iter().filter(|size| **size == 20).count() <= 2, "what failed once is not tried over and over: {sizes:?}");
}

#[test]
fn a_record_beyond_max_body_is_a_problem() {
    let mut catalogue = catalogue(Quirks::default(), 12);
    catalogue.change("r-000006", |record| record.size = 3 * 1024 * 1024);
    expect_one_too_large(catalogue);
}

#[test]
fn a_record_beyond_max_body_among_the_first_is_a_problem() {
    for number in [1, 2] {
        let mut catalogue = catalogue(Quirks::default(), 12);
        catalogue.change(&format!("r-{number:06}"), |record| record.size = 3 * 1024 * 1024);
        expect_one_too_large(catalogue);
    }
}

#[track_caller]
fn expect_one_too_large(catalogue: Catalogue) {
    let (server, harness) = play(catalogue);
    harness
        .harvest_quickly(&server, &["--page-size", "10", "--max-body", "1", "--json"])
        .expect_code(0)
        .expect_json("skipped", "1");
    assert_eq!(harness.store().records().len(), 11);
    let why = harness.store().rows("SELECT why FROM problems").concat();
    assert!(matches!(&why[..], [why] if why.contains("larger than 1048576 bytes")), "{why:?}");
}

#[test]
fn retry_max_wait_caps_what_the_catalogue_asks_for() {
    let (server, harness) = stage(Quirks::default(), 5);
    server.fault_times(2, |entry| entry.page().is_some(), Fault::retry_after(503, "3600"));
    let start = Instant::now();
    harness.harvest(&server.url(), &["--retry-max-wait", "1", "--json"]).expect_code(0).expect_json("retries", "2");
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

#[test]
fn retries_are_as_many_as_asked_for() {
    for (retries, attempts) in [("0", 1), ("3", 4)] {
        let (server, harness) = stage(Quirks::default(), 5);
        server.fault_when(|entry| entry.get_records().is_some(), Fault::status(503));
        harness.harvest_quickly(&server, &["--retries", retries]).expect_code(69);
        let first = server.get_records().first().cloned();
        let same = server.get_records().iter().filter(|request| Some(*request) == first.as_ref()).count();
        assert_eq!(same, attempts, "--retries {retries}");
    }
}

#[test]
fn a_lock_of_ones_own_is_shared_by_whom_it_is_named_for() {
    let (server, harness) = stage(Quirks::default(), 30);
    server.fault_times(1, |entry| entry.page().is_some_and(|page| page.max_records == 10), Fault::Stall);
    let url = server.url();
    let running = harness.spawn(&["harvest", &url, "--page-size", "10", "--lock", "my.lock"]);
    assert!(server.wait_for_stall(Duration::from_secs(60)));
    harness.harvest_quickly(&server, &["--source", "other", "--db", "other.db", "--lock", "my.lock"]).expect_code(75);
    let start = Instant::now();
    harness.harvest_quickly(&server, &["--lock", "my.lock", "--wait", "60", "--max-runtime", "1"]).expect_code(75);
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    server.release();
    running.wait().expect_code(0);
}

#[test]
fn a_lock_that_cannot_be_made_is_73_and_no_file_is_harmed() {
    let (server, harness) = stage(Quirks::default(), 5);
    harness.write("notes.txt", "Buy milk.\n");
    std::fs::create_dir(harness.path("folder")).expect("a folder");
    for lock in ["notes.txt", "folder", "missing/my.lock"] {
        harness.harvest_quickly(&server, &["--lock", lock]).expect_code(73).expect_stderr(lock);
    }
    assert_eq!(files(harness.folder()).into_iter().collect::<Vec<_>>(), [("notes.txt".to_owned(), b"Buy milk.\n".to_vec())]);
    assert_eq!(server.asked(), 0);
}

#[test]
fn settle_says_how_old_a_stamp_must_be() {
    for (settle, watermark) in [("60", "2025-05-31T23:58:00Z"), ("10", "2025-05-31T23:59:30Z"), ("0", "2025-05-31T23:59:55Z")] {
        let mut catalogue = Catalogue::new(day(2025, 6, 1), Quirks::default());
        catalogue.insert_at("a", day(2025, 6, 1) - 2 * MINUTE);
        catalogue.insert_at("b", day(2025, 6, 1) - 30 * SECOND);
        catalogue.insert_at("c", day(2025, 6, 1) - 5 * SECOND);
        let (server, harness) = play(catalogue);
        harness.harvest_quickly(&server, &["--settle", settle]).expect_code(0);
        assert_eq!(harness.store().watermark(), watermark, "--settle {settle}");
        harness.expect_mirror(&server.catalogue());
    }
}

#[test]
fn another_schema_reads_everything_again() {
    let (server, harness) = stage(Quirks::default(), 12);
    harness.harvest_quickly(&server, &[]).expect_code(0);
    harness.harvest_quickly(&server, &["--schema", "iso", "--json"]).expect_code(0).expect_json("updated", "12");
    assert!(harness.store().records().values().all(|record| record.xml.contains("MD_Metadata")));
    let asked = server.get_records();
    assert!(asked.iter().rev().any(|request| request.schema == GMD && request.lower.is_none() && !request.hits));
    harness.harvest_quickly(&server, &["--schema", "iso", "--json"]).expect_code(0).expect_json("unchanged", "0");
}

#[test]
fn another_url_under_the_same_source_reads_everything_again() {
    let (first, harness) = stage(Quirks::default(), 12);
    harness.harvest_quickly(&first, &["--source", "s"]).expect_code(0);
    let mut moved = catalogue(Quirks::default(), 12);
    moved.insert_at("behind", day(2024, 1, 1));
    let second = Server::start(moved);
    harness
        .harvest_quickly(&second, &["--source", "s", "--json"])
        .expect_code(0)
        .expect_json("new", "1")
        .expect_json("unchanged", "12");
    harness.expect_mirror(&second.catalogue());
    assert_eq!(harness.store().number("SELECT count(*) FROM harvest_state"), 1);
}

#[test]
fn a_change_of_schema_that_is_cut_off_is_still_due() {
    let (server, harness) = stage(Quirks::default(), 40);
    harness.harvest_quickly(&server, &["--page-size", "10"]).expect_code(0);
    let mut turn = 0;
    let dies = move |entry: &crate::support::journal::Entry| {
        turn += usize::from(entry.page().is_some_and(|page| page.max_records == 10));
        turn > 2
    };
    server.fault_when(dies, Fault::status(500));
    harness.harvest_quickly(&server, &["--schema", "iso", "--page-size", "10", "--retries", "0"]).expect_code(69);
    server.clear_faults();
    harness.harvest_quickly(&server, &["--schema", "iso", "--page-size", "10"]).expect_code(0);
    let records = harness.store().records();
    assert_eq!(records.len(), 40);
    assert!(records.values().all(|record| record.xml.contains("MD_Metadata")));
}

#[test]
fn a_property_that_is_pinned_is_not_looked_for() {
    let (server, harness) = stage(Quirks::default(), 12);
    harness.harvest_quickly(&server, &["--property", "apiso:Modified"]).expect_code(0);
    let asked: Vec<_> = server.get_records().into_iter().filter_map(|request| request.property).collect();
    assert!(!asked.is_empty() && asked.iter().all(|name| name == "apiso:Modified"), "{asked:?}");
    server.catalogue().advance(DAY);
    server.catalogue().edit("r-000001");
    harness.harvest_quickly(&server, &["--property", "apiso:Modified", "--json"]).expect_code(0).expect_json("updated", "1");
}

#[test]
fn a_pinned_property_that_does_not_work_is_76() {
    let (server, harness) = stage(Quirks::default(), 12);
    harness.harvest_quickly(&server, &["--property", "dc:nonsense"]).expect_code(76).expect_stderr("dc:nonsense");
}
