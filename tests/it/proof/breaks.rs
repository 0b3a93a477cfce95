//! Each invariant broken on purpose: the check that the other tests rest on must notice.

use std::time::Duration;

use csw_harvester::catalogue::{Answer, Catalogue, Failure, Patience, Traffic};
use csw_harvester::csw::Query;
use csw_harvester::csw::capabilities::Capabilities;
use csw_harvester::csw::response::{Record, Records, SearchResults};
use csw_harvester::dialect::Dialect;
use csw_harvester::store::{Mode, Store};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::cases::{FIRST, catalogue, stage};
use crate::invariants::{
    every_problem_is_kept, nothing_below_the_watermark_is_missing, rows, the_harvester_gave_up, the_rows_stayed,
    the_store_is_the_catalogue, the_watermark_stayed,
};
use crate::moving::{self, Bench, Killed, SETTLE};
use crate::simulation::History;
use crate::support::faults::Fault;
use crate::support::harness::Harness;
use crate::support::model::ModelRecord;
use crate::support::quirks::Quirks;
use crate::support::server::Server;
use crate::support::stamps::{DAY, HOUR, Micros, day};
use crate::support::store;

const LONG: Duration = Duration::from_secs(60);
const RECORDS: usize = 95;

/// A store in a file, for the tests that write into it behind the harvester's back.
struct Filed {
    folder: TempDir,
    bench: Bench,
}

impl Filed {
    fn new(catalogue: crate::support::model::Catalogue) -> Self {
        let folder = TempDir::with_prefix("csw-harvester-").expect("a temporary folder");
        let store = Store::open(&folder.path().join("store.db"), Mode::ReadWrite).expect("a store");
        Filed { bench: Bench::over(store, catalogue, 10), folder }
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("store.db")
    }

    #[track_caller]
    fn write(&self, sql: &str) {
        let changed = write(&self.path(), sql);
        assert!(changed > 0, "{sql} changes nothing");
    }

    fn seen_from_outside(&self) -> store::Store {
        store::Store::open(&self.path())
    }
}

fn write(path: &std::path::Path, sql: &str) -> usize {
    Connection::open(path).and_then(|connection| connection.execute(sql, [])).expect("a write")
}

#[test]
fn a_history_in_which_no_stamp_settles_is_noticed() {
    let noticed = (1..=200).filter(|seed| History::new(*seed).unsettled().play().is_err()).count();
    assert!(noticed >= 5, "I1 was broken in 200 histories and noticed in {noticed}");
}

#[test]
fn records_that_are_swallowed_under_way_are_noticed() {
    let truth = catalogue(Quirks::default(), RECORDS);
    let mut bench = Bench::new(truth.clone(), 10);
    let mut swallowed = false;
    bench.moving.before = Some(Box::new(move |shown, request| {
        // The second page of the harvest itself comes some requests after the negotiation's.
        if request > 12 && !swallowed {
            swallowed = true;
            for number in 81..=90 {
                shown.delete(&format!("r-{number:06}"));
            }
        }
    }));
    bench.complete();
    the_store_is_the_catalogue(&bench.store, &bench.moving.catalogue).unwrap();
    let lost = nothing_below_the_watermark_is_missing(&bench.store, &truth, SETTLE).expect_err("I1 is broken");
    assert!(lost.contains("r-000081 is below the watermark"), "{lost}");
    let lost = the_store_is_the_catalogue(&bench.store, &truth).expect_err("ten records are not held");
    assert!(lost.contains("r-000081 is held as None"), "{lost}");
}

#[test]
fn a_watermark_written_under_way_is_noticed() {
    for breaking in [false, true] {
        let mut filed = Filed::new(catalogue(Quirks::default(), RECORDS));
        let path = filed.path();
        filed.bench.moving.before = Some(Box::new(move |_, request| {
            if breaking && request == 12 {
                write(&path, "UPDATE harvest_state SET watermark = '2025-05-30T00:00:00Z'");
            }
        }));
        assert!(filed.bench.run(Some(13)).is_none(), "the run is cut off");
        assert!(!rows(&filed.bench.store).is_empty(), "pages were committed before");
        let stayed = the_watermark_stayed(FIRST, &filed.bench.store);
        let held = nothing_below_the_watermark_is_missing(&filed.bench.store, &filed.bench.moving.catalogue, SETTLE);
        assert_eq!((stayed.is_err(), held.is_err()), (breaking, breaking), "{stayed:?} {held:?}");
    }
}

#[test]
fn a_row_that_is_written_again_is_noticed() {
    for (sql, in_process) in [
        ("UPDATE records SET harvested_at = '2020-01-01T00:00:00Z' WHERE identifier = 'r-000007'", false),
        ("UPDATE records SET changed_seq = changed_seq + 1000 WHERE identifier = 'r-000007'", true),
        ("DELETE FROM records WHERE identifier = 'r-000007'", true),
    ] {
        let mut filed = Filed::new(catalogue(Quirks::default(), RECORDS));
        filed.bench.complete();
        let (before, seen_before) = (rows(&filed.bench.store), filed.seen_from_outside().records());
        filed.bench.moving.catalogue.advance(DAY);
        filed.bench.complete();
        the_rows_stayed(&before, &rows(&filed.bench.store)).unwrap();
        the_rows_stayed(&seen_before, &filed.seen_from_outside().records()).unwrap();
        filed.write(sql);
        let noticed = the_rows_stayed(&seen_before, &filed.seen_from_outside().records()).expect_err("I3 is broken");
        assert!(noticed.contains("r-000007"), "{noticed}");
        let noticed = the_rows_stayed(&before, &rows(&filed.bench.store));
        assert_eq!(noticed.is_err(), in_process, "the time of the harvest is seen from outside only: {noticed:?}");
    }
}

/// I4: while a run waits for its catalogue, a second one of the same source asks for nothing.
fn the_second_run_stays_out(server: &Server, harness: &Harness, locks: [&str; 2]) -> Result<(), String> {
    server.fault_times(1, |entry| entry.page().is_some_and(|page| page.max_records == 10), Fault::Stall);
    let url = server.url();
    let first = harness.spawn(&["harvest", &url, "--page-size", "10", "--lock", locks[0]]);
    assert!(server.wait_for_stall(LONG), "the first run has begun");
    let asked = server.asked();
    let second = harness.harvest_quickly(server, &["--page-size", "10", "--lock", locks[1]]);
    let asked = server.asked() - asked;
    server.release();
    first.wait();
    match (second.code(), asked) {
        (Some(75), 0) => Ok(()),
        (code, asked) => Err(format!("I4: beside the first run a second one asked {asked} times and ended with {code:?}")),
    }
}

#[test]
fn two_runs_that_do_not_share_a_lock_are_noticed() {
    let (server, harness) = stage(Quirks::default(), RECORDS);
    the_second_run_stays_out(&server, &harness, ["one.lock", "one.lock"]).unwrap();
    let (server, harness) = stage(Quirks::default(), RECORDS);
    let noticed = the_second_run_stays_out(&server, &harness, ["one.lock", "another.lock"]).expect_err("I4 is broken");
    assert!(noticed.contains("ended with Some(0)"), "{noticed}");
    // Even so nothing is lost, but that is the next run's doing.
    harness.harvest_quickly(&server, &[]).expect_code(0);
    harness.expect_mirror(&server.catalogue());
}

/// How a list without end goes on.
#[derive(Clone, Copy, Debug)]
enum Endless {
    SamePage,
    NewRecords,
}

/// A catalogue whose list has no end, until the test cuts it off.
struct Unending {
    endless: Endless,
    /// What it says it matches beyond the page, if anything.
    more: Option<u64>,
    requests: u64,
    requests_max: u64,
}

impl Catalogue for Unending {
    fn get_capabilities(&mut self, _: &str) -> Result<Option<Capabilities>, Failure> {
        Ok(None)
    }

    fn get_records(&mut self, _: &Dialect, query: &Query, _: Patience) -> Result<Answer, Failure> {
        self.requests += 1;
        if self.requests > self.requests_max {
            std::panic::resume_unwind(Box::new(Killed));
        }
        let mut records = Records::default();
        for position in query.start_position..query.start_position + u64::from(query.max_records) {
            let number = match self.endless {
                Endless::SamePage => position - query.start_position,
                Endless::NewRecords => position,
            };
            records.push(Record {
                identifier: Some(&format!("r-{number}")),
                title: None,
                modified: Some("2025-01-01T00:00:00Z"),
                xml: "[version 1]",
                flaw: None,
            });
        }
        let end = query.start_position + u64::from(query.max_records);
        let results = SearchResults {
            matched: self.more.map(|more| end - 1 + more),
            next_record: Some(end as i64),
            records,
            ..SearchResults::default()
        };
        Ok(Answer { results, server_now: day(2026, 1, 1) })
    }

    fn get_records_by_id(&mut self, _: &Dialect, _: &[&str], _: Patience) -> Result<Records, Failure> {
        Ok(Records::default())
    }

    fn traffic(&self) -> Traffic {
        Traffic::default()
    }

    fn gzip(&self) -> bool {
        true
    }
}

/// Harvests a list without end, cut off after that many requests.
fn harvest_unending(endless: Endless, more: Option<u64>, requests_max: u64) -> Result<(), String> {
    let mut unending = Unending { endless, more, requests: 0, requests_max };
    let mut store = Store::in_memory().expect("a store");
    let ending = moving::run(&mut store, &mut unending, &moving::job(10), day(2026, 1, 1) as Micros);
    the_harvester_gave_up(ending.map(|ending| ending.expect("a store")).as_ref())
        .map_err(|why| format!("{endless:?}, {more:?} more: {why}"))
}

#[test]
fn a_list_without_end_is_given_up() {
    let same = [None, Some(0), Some(1), Some(1_000_000)].map(|more| harvest_unending(Endless::SamePage, more, 10_000));
    // Without a count that says so, a list of ever new records is a large catalogue.
    let new = [Some(1), Some(1_000)].map(|more| harvest_unending(Endless::NewRecords, more, 5_000));
    let wrong: Vec<_> = same.into_iter().chain(new).filter_map(Result::err).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_run_that_does_not_give_up_is_noticed() {
    let noticed = harvest_unending(Endless::SamePage, Some(1_000_000), 8).expect_err("I5 is not shown by eight requests");
    assert!(noticed.contains("for ever"), "{noticed}");
}

#[test]
fn a_problem_that_is_dropped_is_noticed() {
    let mut shown = catalogue(Quirks::default(), 25);
    for number in [3, 4] {
        let stamp = format!("2025-02-0{number}T00:00:00Z");
        // Another version each, for it is by its content that an element without a name is told from the next.
        let nameless = ModelRecord { identifier: None, version: number, ..ModelRecord::showing("nameless", &[&stamp]) };
        shown.insert_record(nameless);
    }
    let mut filed = Filed::new(shown);
    let (ending, _) = filed.bench.complete();
    assert_eq!(ending.counters.skipped, 2, "{ending:?}");
    every_problem_is_kept(filed.seen_from_outside().problems(), &filed.bench.moving.catalogue).unwrap();
    filed.write("DELETE FROM problems WHERE place = (SELECT min(place) FROM problems)");
    let noticed = every_problem_is_kept(filed.seen_from_outside().problems(), &filed.bench.moving.catalogue);
    assert_eq!(noticed.expect_err("I6 is broken"), "I6: 2 records have no identifier, 1 problems are kept");
}

/// Copies the store as it lies on the disk before the n-th request, lets `damage` loose on it, and finishes the run from there.
fn finished_from_a_copy(n: u64, damage: impl Fn(&std::path::Path)) -> Option<Result<(), String>> {
    let mut filed = Filed::new(catalogue(Quirks::default(), RECORDS));
    let copy = TempDir::with_prefix("csw-harvester-").expect("a temporary folder");
    let (from, to) = (filed.folder.path().to_owned(), copy.path().to_owned());
    let start = filed.bench.moving.requests;
    filed.bench.moving.before = Some(Box::new(move |_, request| {
        if request == start + n {
            for name in ["store.db", "store.db-wal"].iter().filter(|name| from.join(name).exists()) {
                std::fs::copy(from.join(name), to.join(name)).expect("a copy");
            }
        }
    }));
    filed.bench.complete();
    let path = copy.path().join("store.db");
    if !path.exists() {
        return None;
    }
    damage(&path);
    filed.bench.moving.before = None;
    filed.bench.store = Store::open(&path, Mode::ReadWrite).expect("what a death leaves is a store");
    filed.bench.moving.catalogue.advance(HOUR);
    filed.bench.complete();
    assert_eq!(store::Store::open(&path).integrity(), "ok");
    Some(the_store_is_the_catalogue(&filed.bench.store, &filed.bench.moving.catalogue))
}

#[test]
fn what_a_death_leaves_is_finished_by_the_next_run_and_a_hole_in_it_is_noticed() {
    let mut copies = 0;
    for n in 1.. {
        let Some(finished) = finished_from_a_copy(n, |_| ()) else { break };
        finished.unwrap();
        copies = n;
    }
    assert!(copies > 10, "only {copies} requests");
    let hole = |path: &std::path::Path| assert!(write(path, "DELETE FROM records WHERE identifier = 'r-000002'") == 1);
    let noticed = finished_from_a_copy(copies - 3, hole).expect("a copy").expect_err("I7 is broken");
    assert!(noticed.contains("r-000002 is held as None"), "{noticed}");
}
