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

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use csw_harvester::catalogue::{Answer, Catalogue, Failure, FailureKind, Patience, Traffic};
use csw_harvester::cli::{Reading, Strictness};
use csw_harvester::clock::Clock as TimeSource;
use csw_harvester::csw::capabilities::Capabilities;
use csw_harvester::csw::response::{Record, Records, SearchResults};
use csw_harvester::csw::{self, Lower, Query, ResultType, SortOrder};
use csw_harvester::dialect::Dialect;
use csw_harvester::harvest::{Ending, Job, harvest};
use csw_harvester::negotiate::Pinned;
use csw_harvester::progress::Untold;
use csw_harvester::reconcile::{MassDeletion, Reconcile};
use csw_harvester::signal::{Stop, Stopped};
use csw_harvester::store::{Store, StoreError};

use crate::support::model::{self, Compare, Condition, ElementSet, ModelAnswer, ModelRequest, Operator};
use crate::support::quirks::{self, Quirks};
use crate::support::stamps::{DAY, HOUR, Micros, SECOND};

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

    fn pause(&mut self, _: Duration, _: &Stop) -> Result<(), Stopped> {
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
    /// Of so many answers all but one are here before they are waited for; 0 and 1 for none.
    pub(crate) haste: u64,
    /// What was to be here and is a failure: it is told when it is waited for.
    pub(crate) early: Option<Failure>,
    /// How long each answer was to be waited for, before anything else was done.
    pub(crate) waits: Vec<Duration>,
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
    pub(crate) by_id: ById,
    pub(crate) summary: Summary,
    /// Questions for single records.
    pub(crate) looked_up: u64,
    /// Names of records that were deleted, to come back.
    pub(crate) deleted: Vec<String>,
    /// Whether records are inserted, or edited, with a stamp of the past or with none.
    pub(crate) backdating: bool,
    /// The request after which a record was last not there.
    pub(crate) absent: BTreeMap<String, u64>,
}

/// How the catalogue answers questions for single records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ById {
    Given,
    /// Of several, the first alone.
    First,
    /// What is not there makes a report of the whole answer.
    MissingIsReport,
    /// GetRecordById is not known.
    Refused,
    /// Nothing is ever given.
    Nothing,
}

/// What the summary set shows of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Summary {
    Stamped,
    Stampless,
    Refused,
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
            haste: 0,
            early: None,
            waits: Vec::new(),
            requests: 0,
            pages: 0,
            edits: 0,
            edits_max: 0,
            next_name: 0,
            names: Vec::new(),
            deletions: false,
            all_late: false,
            before: None,
            by_id: ById::Given,
            summary: Summary::Stamped,
            looked_up: 0,
            deleted: Vec::new(),
            backdating: false,
            absent: BTreeMap::new(),
        }
    }

    pub(crate) fn change(&mut self) {
        let edits = 1 + self.dice.roll(4);
        for _ in 0..edits {
            self.edits += 1;
            if self.backdating && self.dice.one_in(5) {
                self.backdate();
                continue;
            }
            match self.dice.roll(10) {
                0..=2 => self.insert(),
                3..=6 => self.with_some(|catalogue, name| {
                    catalogue.edit(name);
                }),
                7 => self.with_some(|catalogue, name| {
                    catalogue.touch(name);
                }),
                8 if self.deletions => self.delete(),
                _ => self.catalogue.advance(self.dice.pick(&[SECOND, SECOND, 7 * SECOND, 90 * SECOND])),
            }
        }
        if self.dice.one_in(3) {
            self.catalogue.advance(SECOND);
        }
    }

    /// Deletes a record, or lets one come back.
    fn delete(&mut self) {
        if !self.deleted.is_empty() && self.dice.one_in(4) {
            let at = self.dice.roll(self.deleted.len() as u64) as usize;
            let name = self.deleted.swap_remove(at);
            self.absent.insert(name.clone(), self.requests);
            self.catalogue.insert(&name);
            self.names.push(name);
        } else if self.dice.one_in(20) {
            // A mass of them.
            let kept = self.names.len() / 3;
            for name in self.names.drain(kept..) {
                self.catalogue.delete(&name);
                self.deleted.push(name);
            }
        } else if !self.names.is_empty() {
            let at = self.dice.roll(self.names.len() as u64) as usize;
            let name = self.names.swap_remove(at);
            self.catalogue.delete(&name);
            self.deleted.push(name);
        }
    }

    /// What no watermark sees: a record with a stamp of the past or none, new or edited.
    fn backdate(&mut self) {
        let past = self.catalogue.now() - self.dice.pick(&[HOUR, DAY, 400 * DAY]);
        match self.dice.roll(4) {
            0 => {
                self.next_name += 1;
                let name = format!("b{:04}-{}", self.dice.roll(10_000), self.next_name);
                self.absent.insert(name.clone(), self.requests);
                self.catalogue.insert_at(&name, past);
                self.names.push(name);
            }
            1 => {
                self.next_name += 1;
                let name = format!("u{:04}-{}", self.dice.roll(10_000), self.next_name);
                self.absent.insert(name.clone(), self.requests);
                self.catalogue.insert_record(model::ModelRecord::showing(&name, &[]));
                self.names.push(name);
            }
            2 => self.with_some(|catalogue, name| {
                catalogue.edit_at(name, past);
            }),
            _ => self.with_some(|catalogue, name| {
                catalogue.change(name, |record| record.version += 1);
            }),
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
        self.absent.insert(name.clone(), self.requests);
        self.catalogue.insert(&name);
        if self.all_late || self.dice.one_in(4) {
            // Becomes visible late, though before its stamp is settled.
            let from = self.catalogue.now() + self.dice.roll((SETTLE / SECOND) as u64) as Micros * SECOND;
            self.catalogue.change(&name, |record| record.visible_from = from);
        }
        self.names.push(name);
    }
}

impl Moving {
    /// What happens between two requests.
    fn churn(&mut self) {
        if self.churn > 0 && self.edits < self.edits_max && self.dice.one_in(self.churn) {
            self.change();
        }
    }
}

fn without_stamps(answer: &Answer) -> Answer {
    let mut records = Records::default();
    for record in answer.results.records.iter() {
        records.push(Record { modified: None, ..record });
    }
    let results = SearchResults { records, ..answer.results.clone() };
    Answer { results, server_now: answer.server_now }
}

impl Catalogue for Moving {
    fn get_capabilities(&mut self, _: &str) -> Result<Option<Capabilities>, Failure> {
        Ok(None)
    }

    fn answered(&mut self, dialect: &Dialect, query: &Query, within: Duration) -> Option<Answer> {
        self.waits.push(within);
        if self.haste == 0 || self.requests.is_multiple_of(self.haste) {
            return None;
        }
        self.get_records(dialect, query, Patience::Full).map_err(|failure| self.early = Some(failure)).ok()
    }

    fn get_records(&mut self, dialect: &Dialect, query: &Query, _: Patience) -> Result<Answer, Failure> {
        if let Some(failure) = self.early.take() {
            return Err(failure);
        }
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
        self.looked_up += u64::from(query.identifier.is_some());
        let summary = query.element_set != csw::ElementSet::Full;
        if summary && self.summary == Summary::Refused {
            return Err(Failure::new(FailureKind::Dialect, "no such element set"));
        }
        let answer = self.catalogue.answer(&request);
        self.churn();
        let answer = read(answer, server_now, self.catalogue.quirks())?;
        let stampless = summary && self.summary == Summary::Stampless;
        Ok(if stampless { without_stamps(&answer) } else { answer })
    }

    fn get_records_by_id(&mut self, _: &Dialect, identifiers: &[&str], _: Patience) -> Result<Records, Failure> {
        self.requests += 1;
        self.looked_up += 1;
        if self.kill_at == Some(self.requests) {
            resume_unwind(Box::new(Killed));
        }
        if let Some(before) = &mut self.before {
            before(&mut self.catalogue, self.requests);
        }
        let names: Vec<String> = identifiers.iter().map(|identifier| (*identifier).to_owned()).collect();
        let found = self.catalogue.by_ids(&names);
        self.churn();
        match self.by_id {
            ById::Refused => return Err(Failure::new(FailureKind::Dialect, "no such operation")),
            ById::MissingIsReport if found.len() < identifiers.len() => {
                return Ok(Records::default());
            }
            _ => {}
        }
        let given = match self.by_id {
            ById::First => found.len().min(1),
            ById::Nothing => 0,
            _ => found.len(),
        };
        Ok(held(self.catalogue.quirks(), found.get(..given).expect("no more than there are")))
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
        also: query.identifier.as_ref().map(|identifier| Condition::Term {
            property: "dc:identifier".to_owned(),
            compare: Compare::Equal,
            literal: identifier.clone(),
        }),
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
            results.records = held(quirks, &records);
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

fn held(quirks: &Quirks, records: &[Arc<model::ModelRecord>]) -> Records {
    let mut held = Records::default();
    for record in records {
        let stamps = model::stamps_in(quirks, record, quirks::CSW);
        let latest = stamps.iter().max_by_key(|stamp| csw_harvester::timestamp::parse(stamp).map(|interval| interval.nominal));
        held.push(Record {
            identifier: record.identifier.as_deref(),
            title: Some(&record.title),
            modified: latest.map(String::as_str),
            xml: &record.marker(),
            flaw: None,
        });
    }
    held
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
        reconcile: Reconcile::Auto,
        mass_deletion: MassDeletion::Refused,
        is_selective: false,
    }
}

/// One run; `None` when the catalogue killed it.
pub(crate) fn run(store: &mut Store, catalogue: &mut dyn Catalogue, job: &Job, now: Micros) -> Option<Result<Ending, StoreError>> {
    let mut time = ModelTime(now);
    match catch_unwind(AssertUnwindSafe(|| harvest(store, catalogue, job, &mut time, &Stop::new(), &mut Untold))) {
        Ok(ending) => Some(ending),
        Err(panic) if panic.is::<Killed>() => {
            store.take_back_pages();
            None
        }
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
