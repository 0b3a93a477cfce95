//! The disk is full at every size of the store, from too small for a row to large enough. In process: a full disk is made by SQLite's
//! own bound on pages, and the catalogue is the model without a wire.

use std::collections::BTreeMap;
use std::time::Duration;

use csw_harvester::catalogue::{Answer, Catalogue, Failure, FailureKind, Patience, Traffic};
use csw_harvester::cli::{Reading, Strictness};
use csw_harvester::clock::Clock;
use csw_harvester::csw::capabilities::Capabilities;
use csw_harvester::csw::response::{Record, Records, SearchResults};
use csw_harvester::csw::{Lower, Query, ResultType};
use csw_harvester::dialect::Dialect;
use csw_harvester::error::Error;
use csw_harvester::exit::ExitStatus;
use csw_harvester::harvest::{Ending, Job, harvest};
use csw_harvester::negotiate::Pinned;
use csw_harvester::progress::Untold;
use csw_harvester::reconcile::{MassDeletion, Reconcile};
use csw_harvester::report::Outcome;
use csw_harvester::signal::{Stop, Stopped};
use csw_harvester::store::{Mode, Store, StoreError};

use crate::cases::{FIRST, catalogue};
use crate::support::harness::difference;
use crate::support::model::{self, ElementSet, ModelAnswer, ModelRequest, Operator};
use crate::support::quirks::{CSW, Quirks};
use crate::support::stamps::{HOUR, Micros, SECOND};
use crate::support::store;

const RECORDS: usize = 100;
/// So that a page of ten records fills a few pages of the store.
const FILLING_BYTES: usize = 6 * 1024;

/// The model without a wire; what it shows is rendered as the marker of its version and a filling.
struct Shown {
    catalogue: model::Catalogue,
    requests: u64,
    /// Of so many answers all but one are here before they are waited for.
    haste: u64,
}

impl Catalogue for Shown {
    fn get_capabilities(&mut self, _: &str) -> Result<Option<Capabilities>, Failure> {
        Ok(None)
    }

    fn answered(&mut self, dialect: &Dialect, query: &Query, _: Duration) -> Option<Answer> {
        let here = !self.requests.is_multiple_of(self.haste);
        here.then(|| self.get_records(dialect, query, Patience::Full).expect("an answer"))
    }

    fn get_records(&mut self, dialect: &Dialect, query: &Query, _: Patience) -> Result<Answer, Failure> {
        self.requests += 1;
        let bounded = query.window.lower.is_some() || query.window.upper.is_some();
        let request = ModelRequest {
            property: dialect.property.clone().filter(|_| bounded),
            lower: query.window.lower.as_ref().map(|lower| match lower {
                Lower::After(literal) => (Operator::After, literal.clone()),
                Lower::From(literal) => (Operator::From, literal.clone()),
            }),
            upper: query.window.upper.clone(),
            sort: dialect.sort.clone(),
            hits: query.result_type == ResultType::Hits,
            schema: CSW.to_owned(),
            element_set: ElementSet::Full,
            ..ModelRequest::page(query.start_position as i64, query.max_records)
        };
        let server_now = self.catalogue.now();
        match self.catalogue.answer(&request) {
            ModelAnswer::Results { matched, next, records, .. } => {
                let matched = matched.and_then(|text| text.parse().ok());
                let mut results = SearchResults { matched, next_record: next, ..SearchResults::default() };
                let mut shown = Records::default();
                for record in &records {
                    let xml = format!("<r>{} {}</r>", record.marker(), "x".repeat(FILLING_BYTES));
                    shown.push(Record {
                        identifier: record.identifier.as_deref(),
                        title: Some(&record.title),
                        modified: record.shown.first().map(String::as_str),
                        xml: &xml,
                        flaw: record.identifier.as_deref().is_some_and(is_faulty).then_some("faulty"),
                    });
                }
                results.records = shown;
                Ok(Answer { results, server_now })
            }
            other => Err(Failure::new(FailureKind::Dialect, format!("{other:?}"))),
        }
    }

    fn get_records_by_id(&mut self, _: &Dialect, _: &[&str], _: Patience) -> Result<Records, Failure> {
        Ok(Records::default())
    }

    fn traffic(&self) -> Traffic {
        Traffic { requests: self.requests, ..Traffic::default() }
    }

    fn gzip(&self) -> bool {
        true
    }
}

/// Some records cannot be stored.
fn is_faulty(identifier: &str) -> bool {
    identifier.ends_with('7')
}

impl Shown {
    /// What the store is to hold.
    fn truth(&self) -> BTreeMap<String, (Option<String>, u64)> {
        self.catalogue.visible().into_iter().filter(|(identifier, _)| !is_faulty(identifier)).collect()
    }
}

/// Time stands; waits cost nothing.
struct Standing(Micros);

impl Clock for Standing {
    fn now(&self) -> time::OffsetDateTime {
        time::OffsetDateTime::from_unix_timestamp(self.0 / SECOND).expect("a time")
    }

    fn pause(&mut self, _: Duration, _: &Stop) -> Result<(), Stopped> {
        Ok(())
    }
}

fn job() -> Job {
    Job {
        source: "s".to_owned(),
        base: "http://model/csw".to_owned(),
        pinned: Pinned::default(),
        fingerprint: "model".to_owned(),
        page_size: 10,
        settle: 60 * SECOND,
        since: None,
        reading: Reading::Incremental,
        strictness: Strictness::Lenient,
        reconcile: Reconcile::Auto,
        mass_deletion: MassDeletion::Refused,
        is_selective: false,
    }
}

fn run(store: &mut Store, shown: &mut Shown) -> Result<Ending, StoreError> {
    let mut time = Standing(shown.catalogue.now());
    harvest(store, shown, &job(), &mut time, &Stop::new(), &mut Untold)
}

/// The exit status of a run that the store cut off, whichever way it was told.
fn status(end: Result<Ending, StoreError>) -> ExitStatus {
    match end {
        Ok(Ending { error: Some(error), .. }) => error.exit_status(),
        Ok(Ending { error: None, .. }) => ExitStatus::Ok,
        Err(error) => Error::from(error).exit_status(),
    }
}

/// Fills the disk at every size from what the store has on, until a run is complete. Returns at how many sizes it was full.
fn fill_at_every_size(haste: u64, begin: impl Fn(&mut Store, &mut Shown)) -> u32 {
    for limit in 1..=400_u32 {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state.db");
        let mut shown = Shown { catalogue: catalogue(Quirks::default(), RECORDS), requests: 0, haste };
        let mut open = Store::open(&path, Mode::ReadWrite).expect("a store");
        begin(&mut open, &mut shown);
        let before = store::Store::open(&path);
        let (watermark, rows) = (before.rows("SELECT watermark FROM harvest_state").concat(), before.records().len());
        drop(before);
        open.limit_pages(limit).expect("a bound");
        let end = run(&mut open, &mut shown);
        drop(open);
        let looked_at = store::Store::open(&path);
        assert_eq!(looked_at.integrity(), "ok", "at {limit} pages");
        if let Ok(Ending { counters, .. }) = &end {
            // Only what is in the store counts.
            assert_eq!(looked_at.records().len() as u64, rows as u64 + counters.new, "at {limit} pages");
            let problems = looked_at.number("SELECT count(*) FROM problems WHERE run = (SELECT max(id) FROM runs)");
            assert_eq!(counters.skipped, problems as u64, "at {limit} pages");
        }
        let status = status(end);
        if status == ExitStatus::Ok {
            assert!(difference(&shown.truth(), &looked_at.records()).is_empty());
            return limit - 1;
        }
        assert_eq!(status, ExitStatus::IoErr, "at {limit} pages");
        let held = looked_at.rows("SELECT watermark FROM harvest_state").concat();
        assert!(held == watermark || (watermark.is_empty() && held == [FIRST]), "{held:?}, not {watermark:?} at {limit} pages");
        // Pages are whole or not there: what is held is what the first pages showed.
        let held = looked_at.records();
        let truth = shown.truth();
        assert!(held.keys().all(|identifier| truth.contains_key(identifier)));
        drop(looked_at);
        let mut roomy = Store::open(&path, Mode::ReadWrite).expect("a store");
        let mended = run(&mut roomy, &mut shown).expect("a store with room");
        assert_eq!((mended.outcome, mended.error.is_none()), (Outcome::Complete, true), "after {limit} pages");
        drop(roomy);
        let looked_at = store::Store::open(&path);
        let difference = difference(&truth, &looked_at.records());
        assert!(difference.is_empty(), "after {limit} pages:\n{difference}");
        assert_ne!(looked_at.rows("SELECT watermark FROM harvest_state").concat(), [FIRST]);
    }
    panic!("no size is enough");
}

#[test]
fn a_first_harvest_survives_a_full_disk_of_every_size() {
    for haste in [1, 4] {
        let full = fill_at_every_size(haste, |_, _| {});
        assert!(full > 40, "it was full at {full} sizes only");
    }
}

#[test]
fn a_later_run_survives_a_full_disk_of_every_size() {
    let full = fill_at_every_size(3, |store, shown| {
        for number in 41..=RECORDS {
            shown.catalogue.delete(&format!("r-{number:06}"));
        }
        let ending = run(store, shown).expect("a store with room");
        assert_eq!(ending.outcome, Outcome::Complete);
        for number in 1..=30 {
            shown.catalogue.advance(HOUR);
            shown.catalogue.edit(&format!("r-{number:06}"));
            shown.catalogue.insert(&format!("late-{number:02}"));
        }
        shown.catalogue.advance(HOUR);
    });
    assert!(full > 40, "it was full at {full} sizes only");
}
