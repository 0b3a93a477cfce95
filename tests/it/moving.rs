//! The model catalogue as the harvester's own trait, changing between any two requests. No sockets, no XML.
//!
//! What is proved with it stands in `simulation.rs` and `proof.rs`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of this is test code, where a panic is a failed test"
)]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use csw_harvester::catalogue::{Answer, Catalogue, Failure, FailureKind, Patience, Traffic};
use csw_harvester::cli::{Reading, Strictness};
use csw_harvester::clock::Clock as TimeSource;
use csw_harvester::csw::capabilities::Capabilities;
use csw_harvester::csw::response::{Record, Records, SearchResults};
use csw_harvester::csw::{Lower, Query, ResultType, SortOrder};
use csw_harvester::dialect::Dialect;
use csw_harvester::harvest::{Ending, Job, harvest};
use csw_harvester::negotiate::Pinned;
use csw_harvester::signal::{Stop, Stopped};
use csw_harvester::store::{Store, StoreError};

use crate::support::model::{self, ElementSet, ModelAnswer, ModelRequest, Operator};
use crate::support::quirks::{self, Quirks};
use crate::support::stamps::{Micros, SECOND};

/// The age at which stamps are settled, as the jobs have it.
pub(crate) const SETTLE: Micros = 60 * SECOND;

/// xorshift64*: enough for histories, and the same everywhere.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % sides.max(1)
    }

    pub(crate) fn one_in(&mut self, sides: u64) -> bool {
        self.roll(sides) == 0
    }

    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.roll(from.len() as u64) as usize].clone()
    }
}

/// Time stands where the model's clock stands; waits cost nothing.
pub(crate) struct ModelTime(pub(crate) Micros);

impl TimeSource for ModelTime {
    fn now(&self) -> time::OffsetDateTime {
        time::OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000).expect("a time")
    }

    fn pause(&mut self, _: std::time::Duration, _: &Stop) -> Result<(), Stopped> {
        Ok(())
    }
}

/// Called before the n-th request is answered.
pub(crate) type Before = Box<dyn FnMut(&mut model::Catalogue, u64)>;

/// The catalogue as the harvester sees it.
pub(crate) struct Moving {
    pub(crate) catalogue: model::Catalogue,
    pub(crate) dice: Dice,
    /// One request in so many is followed by edits; 0 for a rest.
    pub(crate) churn: u64,
    pub(crate) kill_at: Option<u64>,
    pub(crate) requests: u64,
    /// Requests for records, not for their number.
    pub(crate) pages: u64,
    pub(crate) edits: u64,
    /// Edits after which this run sees no more: a catalogue that grows faster than it can be read has no end.
    pub(crate) edits_max: u64,
    pub(crate) next_name: u64,
    pub(crate) names: Vec<String>,
    pub(crate) deletions: bool,
    /// Whether each insert becomes visible late, and not one in four.
    pub(crate) all_late: bool,
    pub(crate) before: Option<Before>,
}

/// What a kill is: the harvester never gets to run another line.
pub(crate) struct Killed;

impl Moving {
    /// One that only changes by what `before` does.
    pub(crate) fn still(catalogue: model::Catalogue) -> Self {
        Moving {
            catalogue,
            dice: Dice::new(1),
            churn: 0,
            kill_at: None,
            requests: 0,
            pages: 0,
            edits: 0,
            edits_max: 0,
            next_name: 0,
            names: Vec::new(),
            deletions: false,
            all_late: false,
            before: None,
        }
    }

    pub(crate) fn change(&mut self) {
        let edits = 1 + self.dice.roll(4);
        for _ in 0..edits {
            self.edits += 1;
            match self.dice.roll(10) {
                0..=2 => self.insert(),
                3..=6 => self.with_some(|catalogue, name| {
                    catalogue.edit(name);
                }),
                7 => self.with_some(|catalogue, name| {
                    catalogue.touch(name);
                }),
                8 if self.deletions && !self.names.is_empty() => {
                    let at = self.dice.roll(self.names.len() as u64) as usize;
                    let name = self.names.swap_remove(at);
                    self.catalogue.delete(&name);
                }
                _ => self.catalogue.advance(self.dice.pick(&[SECOND, SECOND, 7 * SECOND, 90 * SECOND])),
            }
        }
        if self.dice.one_in(3) {
            self.catalogue.advance(SECOND);
        }
    }

    fn with_some(&mut self, change: impl FnOnce(&mut model::Catalogue, &str)) {
        if self.names.is_empty() {
            return;
        }
        let name = self.dice.pick(&self.names);
        change(&mut self.catalogue, &name);
    }

    fn insert(&mut self) {
        self.next_name += 1;
        let name = format!("n{:04}-{}", self.dice.roll(10_000), self.next_name);
        self.catalogue.insert(&name);
        if self.all_late || self.dice.one_in(4) {
            // Becomes visible late, though before its stamp is settled.
            let from = self.catalogue.now() + self.dice.roll((SETTLE / SECOND) as u64) as Micros * SECOND;
            self.catalogue.change(&name, |record| record.visible_from = from);
        }
        self.names.push(name);
    }
}

impl Catalogue for Moving {
    fn get_capabilities(&mut self, _: &str) -> Result<Option<Capabilities>, Failure> {
        Ok(None)
    }

    fn get_records(&mut self, dialect: &Dialect, query: &Query, _: Patience) -> Result<Answer, Failure> {
        self.requests += 1;
        if self.kill_at == Some(self.requests) {
            resume_unwind(Box::new(Killed));
        }
        self.pages += u64::from(query.result_type == ResultType::Results);
        if let Some(before) = &mut self.before {
            before(&mut self.catalogue, self.requests);
        }
        let server_now = self.catalogue.now();
        let request = asked(dialect, query);
        let answer = self.catalogue.answer(&request);
        if self.churn > 0 && self.edits < self.edits_max && self.dice.one_in(self.churn) {
            self.change();
        }
        read(answer, server_now, self.catalogue.quirks())
    }

    fn traffic(&self) -> Traffic {
        Traffic { requests: self.requests, ..Traffic::default() }
    }

    fn gzip(&self) -> bool {
        true
    }
}

fn asked(dialect: &Dialect, query: &Query) -> ModelRequest {
    let bounded = query.window.lower.is_some() || query.window.upper.is_some();
    ModelRequest {
        property: dialect.property.clone().filter(|_| bounded),
        lower: query.window.lower.as_ref().map(|lower| match lower {
            Lower::After(literal) => (Operator::After, literal.clone()),
            Lower::From(literal) => (Operator::From, literal.clone()),
        }),
        upper: query.window.upper.clone(),
        also: None,
        sort: dialect.sort.clone(),
        sort_then: None,
        descending: query.sort_order == SortOrder::Descending,
        start_position: query.start_position as i64,
        max_records: query.max_records,
        hits: query.result_type == ResultType::Hits,
        schema: quirks::CSW.to_owned(),
        element_set: ElementSet::Full,
        version: "2.0.2",
    }
}

fn read(answer: ModelAnswer, server_now: Micros, quirks: &Quirks) -> Result<Answer, Failure> {
    match answer {
        ModelAnswer::Results { matched, next, records, .. } => {
            let mut results = SearchResults {
                matched: matched.and_then(|text| text.parse().ok()),
                next_record: next,
                ..SearchResults::default()
            };
            let mut held = Records::default();
            for record in &records {
                let stamps = model::stamps_in(quirks, record, quirks::CSW);
                let latest =
                    stamps.iter().max_by_key(|stamp| csw_harvester::timestamp::parse(stamp).map(|interval| interval.nominal));
                held.push(Record {
                    identifier: record.identifier.as_deref(),
                    title: Some(&record.title),
                    modified: latest.map(String::as_str),
                    xml: &record.marker(),
                    flaw: None,
                });
            }
            results.records = held;
            Ok(Answer { results, server_now })
        }
        ModelAnswer::Report(report) => {
            let kind = match report.locator.as_str() {
                "startPosition" => FailureKind::PastTheEnd,
                _ if report.text.contains("Result window is too large") => FailureKind::Ceiling,
                _ if report.text.contains("startPosition") || report.text.contains("Start position") => FailureKind::PastTheEnd,
                _ => FailureKind::Dialect,
            };
            Err(Failure::new(kind, format!("{report:?}")))
        }
        ModelAnswer::Http { status, body } => Err(Failure::new(FailureKind::Unavailable, format!("{status} {body}"))),
    }
}

/// The job of one source, with that many records a page.
pub(crate) fn job(page_size: u32) -> Job {
    Job {
        source: "s".to_owned(),
        base: "http://model/csw".to_owned(),
        pinned: Pinned::default(),
        fingerprint: "model".to_owned(),
        page_size,
        settle: SETTLE,
        since: None,
        reading: Reading::Incremental,
        strictness: Strictness::Lenient,
    }
}

/// One run; `None` when the catalogue killed it.
pub(crate) fn run(store: &mut Store, catalogue: &mut dyn Catalogue, job: &Job, now: Micros) -> Option<Result<Ending, StoreError>> {
    let mut time = ModelTime(now);
    match catch_unwind(AssertUnwindSafe(|| harvest(store, catalogue, job, &mut time, &Stop::new()))) {
        Ok(ending) => Some(ending),
        Err(panic) if panic.is::<Killed>() => None,
        Err(panic) => resume_unwind(panic),
    }
}

/// A catalogue that stands still, and the store that is filled from it.
pub(crate) struct Bench {
    pub(crate) moving: Moving,
    pub(crate) store: Store,
    pub(crate) job: Job,
}

impl Bench {
    pub(crate) fn new(catalogue: model::Catalogue, page_size: u32) -> Self {
        Self::over(Store::in_memory().expect("a store"), catalogue, page_size)
    }

    pub(crate) fn over(store: Store, catalogue: model::Catalogue, page_size: u32) -> Self {
        Bench { moving: Moving::still(catalogue), store, job: job(page_size) }
    }

    /// One run, killed before the n-th request from now on if so wished.
    pub(crate) fn run(&mut self, kill: Option<u64>) -> Option<Ending> {
        self.moving.kill_at = kill.map(|after| self.moving.requests + after);
        let now = self.moving.catalogue.now();
        run(&mut self.store, &mut self.moving, &self.job, now).map(|ending| ending.expect("a store that can be written"))
    }

    /// One run that ends well; the requests that it took, and those of them that were for records.
    #[track_caller]
    pub(crate) fn complete(&mut self) -> (Ending, Cost) {
        let (requests, pages) = (self.moving.requests, self.moving.pages);
        let ending = self.run(None).expect("a run that nobody kills");
        assert!(ending.error.is_none(), "{ending:?}");
        (ending, Cost { requests: self.moving.requests - requests, pages: self.moving.pages - pages })
    }
}

/// What a run took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub(crate) requests: u64,
    pub(crate) pages: u64,
}
