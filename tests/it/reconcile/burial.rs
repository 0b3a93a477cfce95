//! Many deletions, and a stop that comes while they are on their way to the tombstones. In process, so that it comes there.

use std::path::PathBuf;
use std::time::Duration;

use csw_harvester::clock::Clock;
use csw_harvester::error::Error;
use csw_harvester::harvest::harvest;
use csw_harvester::progress::Untold;
use csw_harvester::reconcile::MassDeletion;
use csw_harvester::report::Outcome;
use csw_harvester::signal::{Stop, Stopped};
use csw_harvester::store::{Mode, Store};

use crate::cases::catalogue;
use crate::invariants::the_store_is_the_catalogue;
use crate::moving::Bench;
use crate::support::quirks::Quirks;
use crate::support::stamps::{DAY, Micros, SECOND};
use crate::support::store;

const RECORDS: usize = 2_600;
const GONE: usize = 2_500;

/// Time stands. Once there is a tombstone, it asks to stop.
struct Interrupting {
    now: Micros,
    store: PathBuf,
    stop: Stop,
}

impl Clock for Interrupting {
    fn now(&self) -> time::OffsetDateTime {
        if store::Store::open(&self.store).number("SELECT count(*) FROM tombstones") > 0 {
            self.stop.ask();
        }
        time::OffsetDateTime::from_unix_timestamp(self.now / SECOND).expect("a time")
    }

    fn pause(&mut self, _: Duration, _: &Stop) -> Result<(), Stopped> {
        Ok(())
    }
}

#[test]
fn a_stop_is_heeded_between_deletions_and_the_next_run_goes_on_with_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state.db");
    let open = Store::open(&path, Mode::ReadWrite).expect("a store");
    let mut bench = Bench::over(open, catalogue(Quirks::default(), RECORDS), 500);
    bench.job.mass_deletion = MassDeletion::Allowed;
    bench.complete();
    for number in 1..=GONE {
        bench.moving.catalogue.delete(&format!("r-{number:06}"));
    }
    bench.moving.catalogue.advance(DAY);

    let stop = Stop::new();
    let mut time = Interrupting { now: bench.moving.catalogue.now(), store: path.clone(), stop: stop.clone() };
    let ending = harvest(&mut bench.store, &mut bench.moving, &bench.job, &mut time, &stop, &mut Untold).expect("a store");
    assert!(matches!(ending.error, Some(Error::Stopped(_))), "{ending:?}");
    assert_eq!(ending.outcome, Outcome::Partial);
    let buried = store::Store::open(&path).number("SELECT count(*) FROM tombstones");
    assert!(buried > 0 && buried < GONE as i64, "{buried}");
    assert_eq!(ending.counters.deleted, buried.unsigned_abs());

    let (next, _) = bench.complete();
    assert_eq!(ending.counters.deleted + next.counters.deleted, GONE as u64);
    the_store_is_the_catalogue(&bench.store, &bench.moving.catalogue).expect("all that is gone, and no more");
}
