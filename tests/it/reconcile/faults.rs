//! Whatever befalls an inventory, nothing is deleted that the catalogue holds, and the next run makes good.

use std::time::{Duration, Instant};

use super::{DAY, RECORDS, SIZE, delete, harvested, is_by_id, is_listed, stage, tick};
use crate::cases::in_parallel;
use crate::support::faults::Fault;
use crate::support::harness::Harness;
use crate::support::journal::Entry;
use crate::support::quirks::Quirks;
use crate::support::server::Server;
use crate::support::stamps::day;

const LONG: Duration = Duration::from_secs(60);

fn faults() -> Vec<Fault> {
    let building = Fault::exception(200, "NoApplicableCode", "", "index is being built");
    Fault::of_passing_kinds().into_iter().chain([building]).collect()
}

/// Three are gone, one came with an old stamp.
fn changed() -> (Server, Harness) {
    let (server, harness) = harvested(Quirks::default());
    delete(&server, [4, 25, 58]);
    server.catalogue().insert_at("old", day(2014, 1, 1));
    (server, harness)
}

const GONE: [&str; 3] = ["r-000004", "r-000025", "r-000058"];

/// Only what is gone may be gone, and in the end it is.
#[track_caller]
fn expect_mended(server: &Server, harness: &Harness, fault: &str) {
    let strangers: Vec<String> = harness.store().tombstones().into_iter().filter(|name| !GONE.contains(&name.as_str())).collect();
    assert!(strangers.is_empty(), "{fault}: {strangers:?} were taken for deleted");
    let gone = harness.store().records();
    assert!((1..=RECORDS).map(|n| format!("r-{n:06}")).all(|name| gone.contains_key(&name) || GONE.contains(&name.as_str())));
    server.clear_faults();
    server.release();
    tick(server, harness, &["--reconcile", "always"]).expect_code(0);
    harness.expect_mirror(&server.catalogue());
    assert_eq!(harness.store().tombstones(), GONE);
}

#[test]
fn each_request_of_an_inventory_may_fail_for_good() {
    let (server, harness) = changed();
    tick(&server, &harness, &[]).expect_code(0).expect_json("deleted", "3").expect_json("new", "1");
    let requests = server.asked();
    let faults = faults();
    in_parallel(faults.len() * requests, |case| {
        let (fault, first) = (&faults[case / requests], case % requests + 1);
        let (server, harness) = changed();
        server.fault_when(move |entry: &Entry| entry.number >= first, fault.clone());
        let outcome = tick(&server, &harness, &["--retries", "0"]);
        assert!(matches!(outcome.code(), Some(0 | 69 | 76)), "{fault:?} from {first} on: {:?}", outcome.code());
        if first == 1 {
            assert_ne!(outcome.code(), Some(0), "{fault:?}");
        }
        expect_mended(&server, &harness, &format!("{fault:?} from request {first} on"));
    });
}

#[test]
fn each_request_of_an_inventory_may_fail_once() {
    let (server, harness) = changed();
    tick(&server, &harness, &[]).expect_code(0);
    let requests = server.asked();
    let faults = faults();
    in_parallel(faults.len() * requests, |case| {
        let (fault, n) = (&faults[case / requests], case % requests + 1);
        let (server, harness) = changed();
        server.fault_at(n, fault.clone());
        tick(&server, &harness, &["--retries", "2"]);
        expect_mended(&server, &harness, &format!("{fault:?} at request {n}"));
    });
}

#[test]
fn half_a_catalogue_deletes_nothing() {
    let ways = [&[][..], &["--reconcile", "always"], &["--full"]];
    for (more, half) in ways.into_iter().flat_map(|more| [(more, 31..=60), (more, 1..=30)]) {
        let (server, harness) = harvested(Quirks::default());
        let whole = server.catalogue().clone();
        delete(&server, half);
        tick(&server, &harness, more).expect_code(65).expect_json("deleted", "0");
        let left = harness.store().number("SELECT (SELECT count(*) FROM inventories) + (SELECT count(*) FROM met)");
        assert_eq!(left, 0, "what was refused is not gone on with");
        *server.catalogue() = whole;
        tick(&server, &harness, more).expect_code(0).expect_json("deleted", "0").expect_json("new", "0");
        harness.expect_mirror(&server.catalogue());
        assert!(harness.store().tombstones().is_empty());
    }
}

#[test]
fn a_list_that_ends_early_deletes_nothing_that_is_given_by_identifier() {
    let (server, harness) = harvested(Quirks::default());
    delete(&server, [4]);
    // The last pages of the list are empty, and their counter says so too.
    let body = "<csw:GetRecordsResponse xmlns:csw='http://www.opengis.net/cat/csw/2.0.2'><csw:SearchResults \
                numberOfRecordsMatched='50' numberOfRecordsReturned='0' nextRecord='0'/></csw:GetRecordsResponse>";
    let late = |entry: &Entry| is_listed(entry) && entry.page().is_some_and(|page| page.start_position > 45);
    server.fault_when(late, Fault::Reply(crate::support::canned::Reply::xml(body)));
    let outcome = tick(&server, &harness, &[]);
    assert!(matches!(outcome.code(), Some(0 | 76)), "{:?}", outcome.code());
    assert!(harness.store().tombstones().iter().all(|name| name == "r-000004"));
    assert!(harness.store().records().len() >= RECORDS - 1);
}

#[test]
fn an_inventory_that_is_killed_goes_on_in_the_next_run() {
    for n in 1..=8 {
        let (server, harness) = changed();
        let mut listed = 0;
        let nth = move |entry: &Entry| {
            listed += usize::from(is_listed(entry) || is_by_id(entry));
            (is_listed(entry) || is_by_id(entry)) && listed == n
        };
        server.fault_times(1, nth, Fault::Stall);
        let url = server.url();
        let mut running = harness.spawn(&[&["harvest", &url][..], &SIZE].concat());
        assert!(server.wait_for_stall(LONG), "there is no request {n} of the inventory");
        // While something is waited for, all pages that came before are committed.
        let due = server.requests().iter().filter(|entry| is_listed(entry)).count() as i64 - 1;
        let kept = || harness.store().number("SELECT count(*) FROM met WHERE phase = 1");
        let start = Instant::now();
        while kept() < due && start.elapsed() < LONG {
            std::thread::sleep(Duration::from_millis(2));
        }
        assert_eq!(kept(), due, "pages kept at {n}");
        running.kill();
        running.wait();
        server.release();
        server.clear_faults();
        assert!(harness.store().tombstones().is_empty(), "killed at {n}");
        server.forget_journal();
        // The window comes first, then the rest of the list.
        tick(&server, &harness, &[]).expect_code(0).expect_json("deleted", "3").expect_json("reconciled", "true");
        harness.expect_mirror(&server.catalogue());
        assert_eq!(harness.store().tombstones(), GONE);
        let pages = server.requests().iter().filter(|entry| is_listed(entry)).count();
        // Seven pages hold all of it.
        assert!(pages as i64 + due <= 7 + 1, "killed at {n}, and {pages} pages were listed again:\n{}", server.journal().told());
    }
}

#[test]
fn an_inventory_that_was_killed_long_ago_is_begun_anew_and_by_order_any() {
    let always = &["--reconcile", "always"][..];
    for (ways, days) in [(&[][..], 2), (always, 2), (always, 0)] {
        let (server, harness) = changed();
        server.fault_when(|entry: &Entry| entry.number >= 5, Fault::status(500));
        tick(&server, &harness, &[ways, &["--retries", "0"]].concat()).expect_code(69);
        server.clear_faults();
        let connection = rusqlite::Connection::open(harness.path("harvest_state.db")).expect("a store");
        let aged = format!("UPDATE inventories SET began_at = strftime('%Y-%m-%dT%H:%M:%SZ', began_at, '-{days} days')");
        assert_eq!(connection.execute(&aged, []).expect("a column"), 1, "it was cut off");
        // In the part that was read, so that the count tells nothing.
        delete(&server, [1]);
        server.catalogue().insert_at("older", day(2014, 1, 2));
        let outcome = tick(&server, &harness, ways).expect_code(0).expect_json("deleted", "4").expect_json("reconciled", "true");
        outcome.expect_stderr("taking an inventory");
        harness.expect_mirror(&server.catalogue());
    }
}

#[test]
fn what_comes_between_an_inventory_that_was_killed_and_the_next_run_is_not_taken_for_deleted() {
    for n in 2..=6 {
        let (server, harness) = changed();
        let mut listed = 0;
        let nth = move |entry: &Entry| {
            listed += usize::from(is_listed(entry));
            is_listed(entry) && listed == n
        };
        server.fault_times(1, nth, Fault::Stall);
        let url = server.url();
        let mut running = harness.spawn(&[&["harvest", &url][..], &SIZE].concat());
        assert!(server.wait_for_stall(LONG));
        running.kill();
        running.wait();
        server.release();
        server.clear_faults();
        {
            let mut catalogue = server.catalogue();
            catalogue.insert_at("behind", day(2015, 1, 1));
            for number in 30..50 {
                catalogue.edit(&format!("r-{number:06}"));
            }
            catalogue.insert("new");
            catalogue.advance(DAY);
        }
        tick(&server, &harness, &[]).expect_code(0);
        assert!(harness.store().tombstones().iter().all(|name| GONE.contains(&name.as_str())));
        tick(&server, &harness, &["--reconcile", "always"]).expect_code(0);
        harness.expect_mirror(&server.catalogue());
        assert_eq!(harness.store().tombstones(), GONE);
    }
}

#[test]
fn told_to_stop_within_an_inventory_it_keeps_its_place_and_holds_the_watermark() {
    let (server, harness) = stage(Quirks::default(), RECORDS);
    tick(&server, &harness, &[]).expect_code(0);
    server.catalogue().advance(DAY);
    delete(&server, [4]);
    server.catalogue().edit("r-000030");
    server.catalogue().advance(DAY);
    let before = harness.store().watermark();
    let mut listed = 0;
    let third = move |entry: &Entry| {
        listed += usize::from(is_listed(entry));
        is_listed(entry) && listed == 3
    };
    server.fault_times(1, third, Fault::Stall);
    let url = server.url();
    let running = harness.spawn(&[&["harvest", &url, "--json"][..], &SIZE].concat());
    assert!(server.wait_for_stall(LONG));
    running.signal("TERM");
    running.wait().expect_code(75).expect_json("updated", "1").expect_json("reconciled", "false");
    server.release();
    server.clear_faults();
    assert_eq!(harness.store().watermark(), before);
    tick(&server, &harness, &[]).expect_code(0).expect_json("deleted", "1").expect_stderr("going on with the inventory");
    assert_ne!(harness.store().watermark(), before);
    harness.expect_mirror(&server.catalogue());
}
