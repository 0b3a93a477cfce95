//! Each request of a harvest fails, once or for good, in every way that requests fail.

use super::expect_sound;
use crate::cases::{in_parallel, stage};
use crate::support::faults::Fault;
use crate::support::harness::Harness;
use crate::support::quirks::Quirks;
use crate::support::server::Server;

const PAGED: [&str; 2] = ["--page-size", "10"];
const RECORDS: usize = 40;

/// How many requests a harvest takes when none fails.
fn requests() -> usize {
    let (server, harness) = stage(Quirks::default(), RECORDS);
    harness.harvest_quickly(&server, &PAGED).expect_code(0);
    server.asked()
}

fn harvest(server: &Server, harness: &Harness, more: &[&str]) -> crate::support::harness::Outcome {
    harness.harvest_quickly(server, &[&PAGED[..], more].concat())
}

/// What was kept is sound, and a good run completes it.
#[track_caller]
fn expect_mended(server: &Server, harness: &Harness) {
    expect_sound(server, harness);
    server.clear_faults();
    server.release();
    harvest(server, harness, &[]).expect_code(0);
    harness.expect_mirror(&server.catalogue());
    assert_eq!(harness.store().problems(), 0, "nothing was bad for good");
}

#[test]
fn any_request_may_fail_once_where_it_is_tried_again() {
    let (faults, requests) = (Fault::of_passing_kinds(), requests());
    in_parallel(faults.len() * requests, |case| {
        let (fault, n) = (&faults[case / requests], case % requests + 1);
        let (server, harness) = stage(Quirks::default(), RECORDS);
        server.fault_at(n, fault.clone());
        let outcome = harvest(&server, &harness, &["--retries", "2", "--json"]);
        outcome.expect_code(0).expect_json("new", "40").expect_json("skipped", "0");
        harness.expect_mirror(&server.catalogue());
    });
}

#[test]
fn any_request_may_fail_once_where_it_is_not_tried_again() {
    let (faults, requests) = (Fault::of_passing_kinds(), requests());
    in_parallel(faults.len() * requests, |case| {
        let (fault, n) = (&faults[case / requests], case % requests + 1);
        let (server, harness) = stage(Quirks::default(), RECORDS);
        server.fault_at(n, fault.clone());
        let outcome = harvest(&server, &harness, &["--retries", "0"]);
        // A page that failed is halved, which is another request: the run may be complete all the same.
        let outcome =
            outcome.expect(&format!("0, 69 or 76 with {fault:?} at {n}"), |outcome| matches!(outcome.code(), Some(0 | 69 | 76)));
        if outcome.code() == Some(0) {
            harness.expect_mirror(&server.catalogue());
        }
        expect_mended(&server, &harness);
    });
}

#[test]
fn any_request_may_be_the_last_that_is_answered() {
    let faults = [Fault::status(500), Fault::CloseBeforeHeaders, Fault::exception(200, "NoApplicableCode", "", "Out of order")];
    let requests = requests();
    in_parallel(faults.len() * requests, |case| {
        let (fault, n) = (&faults[case / requests], case % requests + 1);
        let (server, harness) = stage(Quirks::default(), RECORDS);
        server.fault_when(move |entry| entry.number >= n, fault.clone());
        let outcome = harvest(&server, &harness, &["--retries", "0"]);
        // What comes after the last page only finds out whose clock it is.
        let outcome =
            outcome.expect(&format!("an end with {fault:?} from {n} on"), |outcome| matches!(outcome.code(), Some(0 | 69 | 76)));
        if outcome.code() == Some(0) {
            harness.expect_mirror(&server.catalogue());
        }
        expect_mended(&server, &harness);
    });
}

#[test]
fn any_request_may_hang() {
    let requests = requests();
    in_parallel(requests, |case| {
        let (server, harness) = stage(Quirks::default(), RECORDS);
        server.fault_at(case + 1, Fault::Stall);
        harvest(&server, &harness, &["--timeout", "1", "--retries", "1"]).expect_code(0);
        harness.expect_mirror(&server.catalogue());
        assert_eq!(harness.store().problems(), 0);
    });
}

#[test]
fn a_quiet_tick_that_fails_leaves_everything_as_it_was() {
    let faults = Fault::of_passing_kinds();
    in_parallel(faults.len() * 2, |case| {
        let (fault, n) = (&faults[case / 2], case % 2 + 1);
        let (server, harness) = stage(Quirks::default(), RECORDS);
        harvest(&server, &harness, &[]).expect_code(0);
        let (before, watermark) = (harness.store().records(), harness.store().watermark());
        server.forget_journal();
        server.fault_when(move |entry| entry.number >= n, fault.clone());
        harvest(&server, &harness, &["--retries", "0"]);
        assert_eq!(harness.store().records(), before);
        assert_eq!(harness.store().watermark(), watermark);
        expect_mended(&server, &harness);
    });
}
