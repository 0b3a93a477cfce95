//! An inventory of many records takes no more memory than one of few, once the cache of the store is full.

use std::time::Duration;

use super::{DAY, delete, stage};
use crate::support::faults::Fault;
use crate::support::journal::Entry;
use crate::support::quirks::Quirks;

const MIB: u64 = 1024;

/// Peak resident memory in KiB of a run that has taken its inventory and asks once more how many records there are.
fn peak(records: usize) -> u64 {
    let (server, harness) = stage(Quirks::default(), records);
    let size = ["--page-size", "500"];
    harness.harvest_quickly(&server, &size).expect_code(0);
    server.catalogue().advance(DAY);
    delete(&server, [7, 400]);
    let mut counted = 0;
    let last_count = move |entry: &Entry| {
        let hits = entry.get_records().is_some_and(|request| request.hits);
        counted += usize::from(hits);
        hits && counted == 2
    };
    server.fault_times(1, last_count, Fault::Stall);
    let url = server.url();
    let running = harness.spawn(&[&["harvest", &url, "--json"][..], &size].concat());
    assert!(server.wait_for_stall(Duration::from_secs(120)), "no inventory of {records} records came to its end");
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.id())).expect("a process");
    server.release();
    running.wait().expect_code(0).expect_json("deleted", "2");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("a peak");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number")
}

#[test]
fn five_times_the_records_take_no_more_memory() {
    // Both are beyond what fills the store's cache, so that the rest is what grows with the catalogue; a hash of each record would be
    // twice the margin.
    let (few, many) = (peak(30_000), peak(150_000));
    assert!(many <= few + 4 * MIB, "{few} KiB for 30,000 records, {many} KiB for 150,000");
}
