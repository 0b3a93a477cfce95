//! SIGKILL at every page and at every request, SIGTERM and SIGINT while the catalogue hangs.

use std::path::Path;
use std::time::{Duration, Instant};

use super::expect_sound;
use crate::cases::{FIRST, catalogue, play, stage};
use crate::support::faults::Fault;
use crate::support::harness::{Harness, difference};
use crate::support::journal::Entry;
use crate::support::quirks::{Clock, EditedStamp, Names, Quirks, UnknownSort};
use crate::support::server::Server;
use crate::support::stamps::{DAY, HOUR, StampShape};

const LONG: Duration = Duration::from_secs(60);
/// Of ten pages.
const RECORDS: usize = 95;
const SIZE: u32 = 10;
const PAGED: [&str; 2] = ["--page-size", "10"];

fn is_page(entry: &Entry) -> bool {
    entry.page().is_some_and(|page| page.max_records == SIZE)
}

/// Lets the `n`-th page from now on stall.
fn stall_at_page(server: &Server, n: usize) {
    let mut count = 0;
    let nth = move |entry: &Entry| {
        count += usize::from(is_page(entry));
        is_page(entry) && count == n
    };
    server.fault_times(1, nth, Fault::Stall);
}

/// Starts a run, kills it at the `n`-th page; false when it ended before.
fn kill_at_page(server: &Server, harness: &Harness, n: usize) -> bool {
    kill_when(server, harness, n, || true)
}

/// The same, once what is to be waited for has come to pass, within a time that is long enough.
fn kill_when(server: &Server, harness: &Harness, n: usize, ready: impl Fn() -> bool) -> bool {
    stall_at_page(server, n);
    let url = server.url();
    let mut running = harness.spawn(&[&["harvest", &url][..], &PAGED].concat());
    let start = Instant::now();
    while !running.has_ended() && start.elapsed() < LONG {
        if server.wait_for_stall(Duration::from_millis(5)) {
            while !ready() && start.elapsed() < LONG {
                std::thread::sleep(Duration::from_millis(2));
            }
            running.kill();
            running.wait();
            server.release();
            server.clear_faults();
            return true;
        }
    }
    running.wait().expect_code(0);
    server.clear_faults();
    false
}

#[test]
fn a_first_harvest_killed_at_any_page_is_resumed() {
    let mut killed = 0;
    for n in 1..=RECORDS {
        let (server, harness) = stage(Quirks::default(), RECORDS);
        // Of the pages that came before, nothing waits to be committed while this one is waited for. A page is shared with the next
        // by a few records.
        let due = ((n - 1) * 9).min(RECORDS);
        let patient = n % 2 == 0;
        let all_is_committed = || !patient || due == 0 || harness.store().records().len() >= due;
        if !kill_when(&server, &harness, n, all_is_committed) {
            break;
        }
        killed = n;
        let held = expect_sound(&server, &harness);
        assert!(!patient || held >= due, "{held} records are held at page {n}");
        server.forget_journal();
        let outcome = harness.harvest_quickly(&server, &[&PAGED[..], &["--json"]].concat()).expect_code(0);
        outcome.expect_json("new", &(RECORDS - held).to_string());
        harness.expect_mirror(&server.catalogue());
        assert_eq!(harness.store().integrity(), "ok");
        let pages: Vec<i64> = server
            .requests()
            .iter()
            .filter(|entry| is_page(entry))
            .filter_map(Entry::page)
            .map(|page| page.start_position)
            .collect();
        // A page overlaps the one before by a few; once more around the place where it was killed.
        let most = (RECORDS - held).div_ceil(9) + 2;
        assert!(pages.len() <= most, "{held} held, {pages:?} were read\n{}", server.journal().told());
        assert!(held == 0 || pages[0] + 5 > held as i64, "{held} held, {pages:?} were read\n{}", server.journal().told());
    }
    assert!(killed >= 10, "only {killed} pages were there to be killed at");
}

#[test]
fn while_a_catalogue_that_is_busy_is_waited_for_no_page_waits_to_be_committed() {
    let faults = [Fault::retry_after(503, "50"), Fault::retry_after(429, "50"), Fault::UnfinishedXml, Fault::Garbage];
    for fault in faults {
        let (server, harness) = stage(Quirks::default(), RECORDS);
        let mut count = 0;
        let from_the_seventh = move |entry: &Entry| {
            count += usize::from(is_page(entry));
            count >= 7
        };
        server.fault_when(from_the_seventh, fault.clone());
        let url = server.url();
        let mut running = harness.spawn(&[&["harvest", &url][..], &PAGED].concat());
        let (start, due) = (Instant::now(), 6 * 9 + 1);
        let held = || if server.requests().iter().any(is_page) { harness.store().records().len() } else { 0 };
        while held() < due && !running.has_ended() && start.elapsed() < LONG {
            std::thread::sleep(Duration::from_millis(5));
        }
        let ended = running.has_ended();
        running.kill();
        running.wait();
        assert_eq!((held(), ended), (due, false), "{fault:?}");
        expect_sound(&server, &harness);
    }
}

#[test]
fn a_catalogue_that_changed_before_the_run_is_resumed_loses_nothing() {
    for (kind, quirks) in kinds() {
        for n in [2, 5, 9] {
            let (server, harness) = stage(quirks.clone(), RECORDS);
            assert!(kill_at_page(&server, &harness, n));
            {
                let mut catalogue = server.catalogue();
                catalogue.advance(HOUR);
                for number in 1..=20 {
                    catalogue.edit(&format!("r-{:06}", number * 3));
                    catalogue.insert(&format!("late-{number}"));
                }
                catalogue.delete("r-000001");
                catalogue.advance(HOUR);
            }
            harness.harvest_quickly(&server, &PAGED).expect_code(0);
            expect_sound(&server, &harness);
            server.catalogue().advance(DAY);
            harness.harvest_quickly(&server, &PAGED).expect_code(0);
            expect_sound(&server, &harness);
            let held = harness.store().records();
            let mut truth = server.catalogue().visible();
            // Whether it was read before it was deleted is open.
            truth.extend(held.get("r-000001").map(|row| ("r-000001".to_owned(), (row.modified.clone(), 1))));
            let difference = difference(&truth, &held);
            assert!(difference.is_empty(), "{kind} at page {n}:\n{difference}\n{}", server.journal().told());
        }
    }
}

fn kinds() -> Vec<(&'static str, Quirks)> {
    let unsorted = Names::none();
    let hidden = Clock::Hidden(StampShape::Seconds);
    vec![
        ("keys", Quirks::default()),
        ("server", Quirks { clock: hidden, edited_stamp: EditedStamp::Kept, ..Quirks::default() }),
        ("unsorted", Quirks { sort_names: unsorted, unknown_sort: UnknownSort::Exception, ..Quirks::default() }),
        ("unfiltered", Quirks { filter_ignored: true, ..Quirks::default() }),
    ]
}

#[test]
fn a_later_run_killed_at_any_page_loses_nothing() {
    for (kind, quirks) in kinds() {
        let mut killed = 0;
        for n in 1..=RECORDS {
            let (server, harness) = stage(quirks.clone(), 60);
            harness.harvest_quickly(&server, &PAGED).expect_code(0);
            for number in 1..=35 {
                server.catalogue().advance(HOUR);
                server.catalogue().edit(&format!("r-{:06}", number + 5));
            }
            server.catalogue().insert("late");
            server.catalogue().advance(HOUR);
            if !kill_at_page(&server, &harness, n) {
                break;
            }
            killed = n;
            expect_sound(&server, &harness);
            harness.harvest_quickly(&server, &PAGED).expect_code(0);
            harness.expect_mirror(&server.catalogue());
            expect_sound(&server, &harness);
            // Nothing more is to be had, and nothing is written twice.
            let before = harness.store().records();
            server.catalogue().advance(DAY);
            harness.harvest_quickly(&server, &PAGED).expect_code(0);
            assert_eq!(harness.store().records(), before, "{kind}");
        }
        assert!(killed >= 4, "{kind}: only {killed} pages");
    }
}

#[test]
fn a_run_killed_again_and_again_comes_to_its_end() {
    let (server, harness) = stage(Quirks::default(), RECORDS);
    let mut held = 0;
    for turn in 1..=RECORDS {
        // A stall that was released once stalls no more, so the kill comes at a request instead.
        server.forget_journal();
        let url = server.url();
        let mut running = harness.spawn(&[&["harvest", &url][..], &PAGED, &["--delay", "5"]].concat());
        // Enough to see a page committed: the line is asked for the next one while a page is being committed. After the last page there
        // are a few questions more, about the clock and the number of records, which have to be answered in one run.
        let requests = match turn {
            1 => 9,
            2..=9 => 4,
            _ => 12,
        };
        server.wait_for_requests(requests, Duration::from_secs(2));
        if running.has_ended() {
            running.wait().expect_code(0);
            harness.expect_mirror(&server.catalogue());
            assert!(turn > 3, "it was killed {turn} times only");
            return;
        }
        running.kill();
        running.wait();
        let now = expect_sound(&server, &harness);
        assert!(now >= held, "{now} records after {held}");
        held = now;
    }
    panic!("it never came to its end");
}

#[test]
fn a_run_killed_at_any_request_loses_nothing() {
    let (server, harness) = stage(Quirks::default(), 40);
    harness.harvest_quickly(&server, &PAGED).expect_code(0);
    let requests = server.asked();
    for n in 1..=requests {
        let (server, harness) = play(catalogue(Quirks::default(), 40));
        let url = server.url();
        let mut running = harness.spawn(&[&["harvest", &url][..], &PAGED].concat());
        assert!(server.wait_for_requests(n, LONG));
        running.kill();
        running.wait();
        expect_sound(&server, &harness);
        harness.harvest_quickly(&server, &PAGED).expect_code(0);
        harness.expect_mirror(&server.catalogue());
        expect_sound(&server, &harness);
    }
}

#[test]
fn told_to_stop_while_the_catalogue_hangs_it_leaves_with_75() {
    for (signal, n) in [("TERM", 1), ("INT", 1), ("TERM", 4), ("INT", 4)] {
        let (server, harness) = stage(Quirks::default(), RECORDS);
        stall_at_page(&server, n);
        let url = server.url();
        let running = harness.spawn(&[&["harvest", &url, "--json"][..], &PAGED].concat());
        assert!(server.wait_for_stall(LONG), "{}", server.journal().told());
        let start = Instant::now();
        running.signal(signal);
        let outcome = running.wait().expect_code(75).expect_stderr("run it again");
        assert!(start.elapsed() < Duration::from_secs(5), "{:?} after {signal}", start.elapsed());
        outcome.expect_json("outcome", "\"partial\"").expect_json("exit_code", "75");
        let held = expect_sound(&server, &harness);
        assert_eq!(harness.store().watermark(), FIRST);
        assert!(held + 2 >= (n - 1) * 9, "{held} records are kept at page {n}");
        server.release();
        server.clear_faults();
        let outcome = harness.harvest_quickly(&server, &[&PAGED[..], &["--json"]].concat()).expect_code(0);
        outcome.expect_json("new", &(RECORDS - held).to_string());
        harness.expect_mirror(&server.catalogue());
    }
}

#[test]
fn told_to_stop_at_any_question_after_the_last_page_the_next_run_moves_the_watermark() {
    let (server, harness) = stage(Quirks::default(), 30);
    harness.harvest_quickly(&server, &PAGED).expect_code(0);
    let requests = server.asked();
    let mut late = 0;
    for n in 1..=requests {
        let (server, harness) = stage(Quirks::default(), 30);
        server.fault_at(n, Fault::Stall);
        let url = server.url();
        let running = harness.spawn(&[&["harvest", &url][..], &PAGED].concat());
        assert!(server.wait_for_stall(LONG), "{}", server.journal().told());
        running.signal("TERM");
        running.wait().expect_code(75);
        late += usize::from(harness.store().records().len() == 30);
        server.release();
        server.clear_faults();
        harness.harvest_quickly(&server, &PAGED).expect_code(0);
        harness.expect_mirror(&server.catalogue());
        assert_ne!(harness.store().watermark(), FIRST, "stopped at request {n}");
    }
    assert!(late > 1, "it was stopped {late} times after the last page");
}

#[test]
fn told_to_stop_while_it_waits_it_leaves_with_75() {
    let (server, harness) = stage(Quirks::default(), 20);
    server.fault_when(|entry| entry.page().is_some(), Fault::retry_after(503, "600"));
    let url = server.url();
    let running = harness.spawn(&["harvest", &url, "--retry-max-wait", "600"]);
    assert!(server.wait_for_requests(2, LONG));
    let start = Instant::now();
    running.signal("TERM");
    running.wait().expect_code(75);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

/// A run is told to stop while another process holds the write lock; the next one is complete.
fn leave_a_locked_store(server: &Server, harness: &Harness) {
    let _ = std::fs::remove_file(harness.path("lock"));
    let other = rusqlite::Connection::open(harness.path("harvest_state.db")).expect("a store");
    other.execute_batch("BEGIN IMMEDIATE").expect("the write lock");
    let url = server.url();
    let mut running = harness.spawn(&["harvest", &url, "--json", "--lock", "lock"]);
    let start = Instant::now();
    // With the lock taken it goes on to the store, and waits there for far longer than this.
    while !harness.path("lock").exists() && start.elapsed() < LONG {
        std::thread::sleep(Duration::from_millis(2));
    }
    std::thread::sleep(Duration::from_millis(200));
    assert!(!running.has_ended());
    running.signal("TERM");
    running.wait().expect_code(75).expect_stderr("run it again").expect_json("exit_code", "75");
    other.execute_batch("ROLLBACK").expect("no lock any more");
    harness.harvest_quickly(server, &PAGED).expect_code(0);
    harness.expect_mirror(&server.catalogue());
}

#[test]
fn told_to_stop_while_another_writes_to_the_store_it_leaves_with_75() {
    let (server, harness) = stage(Quirks::default(), 20);
    harness.harvest_quickly(&server, &PAGED).expect_code(0);
    leave_a_locked_store(&server, &harness);
    // An older store, which is brought up to date while it is opened.
    let back = "DROP TABLE inventories; DROP TABLE met; PRAGMA user_version = 1";
    let older = rusqlite::Connection::open(harness.path("harvest_state.db")).expect("a store");
    let columns = ["at", "gap", "new", "updated", "deleted", "tried_at", "tried_gap"];
    let columns = columns.map(|column| format!("ALTER TABLE harvest_state DROP COLUMN inventory_{column};")).concat();
    let batch = format!("{columns} ALTER TABLE runs DROP COLUMN reconciled; {back}");
    older.execute_batch(&batch).expect("the store of the first version");
    drop(older);
    leave_a_locked_store(&server, &harness);

    // With pages in the store, its summary tells of them, though its end cannot be written.
    let (server, harness) = stage(Quirks::default(), RECORDS);
    stall_at_page(&server, 5);
    let url = server.url();
    let running = harness.spawn(&[&["harvest", &url, "--json"][..], &PAGED].concat());
    assert!(server.wait_for_stall(LONG), "{}", server.journal().told());
    let other = rusqlite::Connection::open(harness.path("harvest_state.db")).expect("a store");
    other.execute_batch("BEGIN IMMEDIATE").expect("the write lock, after at most a page");
    running.signal("TERM");
    let outcome = running.wait().expect_code(75).expect_json("outcome", "\"partial\"");
    other.execute_batch("ROLLBACK").expect("no lock any more");
    outcome.expect_json("new", &harness.store().records().len().to_string());
    server.release();
    server.clear_faults();
    harness.harvest_quickly(&server, &PAGED).expect_code(0);
    harness.expect_mirror(&server.catalogue());
}

#[test]
fn a_limit_on_the_size_of_files_is_74_and_not_death_by_signal() {
    let (server, mut harness) = stage(Quirks::default(), RECORDS);
    let limited = ["-c", "ulimit -f 64; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_csw-harvester"), "harvest"];
    harness = harness.with_binary(Path::new("sh"));
    let url = server.url();
    let outcome = harness.run(&[&limited[..], &[&url, "--json"], &PAGED].concat());
    outcome.expect_code(74).expect_stderr("I/O error").expect_json("exit_code", "74");
    // Where it may grow again, the run goes on.
    harness = harness.with_binary(Path::new(env!("CARGO_BIN_EXE_csw-harvester")));
    harness.harvest_quickly(&server, &PAGED).expect_code(0);
    harness.expect_mirror(&server.catalogue());
}
