//! The proof that nothing is lost: random histories of a catalogue that changes while it is read, against the real plan and the real store.
//!
//! A history is a catalogue with its quirks, edits between any two requests, and runs that may be killed at any request. After every end
//! I1 must hold; after a rest, one run must make the store equal to the catalogue, and one more must change nothing. No sockets, no XML.
//!
//! `CSW_HARVESTER_HISTORIES` sets how many (12,000), `CSW_HARVESTER_SEED` where they begin: a failure prints the seed that repeats it.

use std::collections::BTreeMap;
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
use csw_harvester::report::Outcome;
use csw_harvester::signal::{Stop, Stopped};
use csw_harvester::store::Store;

use crate::support::model::{self, ElementSet, ModelAnswer, ModelRequest, Operator};
use crate::support::quirks::{self, Quirks};
use crate::support::stamps::{DAY, HOUR, Micros, SECOND, StampShape, day};

const SETTLE: Micros = 60 * SECOND;
/// Edits while one run is under way.
const EDITS_MAX: u64 = 150;
/// Runs that a history may have before it rests.
const RUNS_MAX: u64 = 5;

#[test]
fn random_histories_lose_nothing() {
    let histories = number("CSW_HARVESTER_HISTORIES", 12_000);
    let first = number("CSW_HARVESTER_SEED", 1);
    let threads = 2;
    let outcomes: Vec<(Tally, Vec<String>)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|worker| {
                scope.spawn(move || {
                    let (mut tally, mut failures) = (Tally::default(), Vec::new());
                    for seed in (first..first + histories).filter(|seed| seed % threads == worker) {
                        match catch_unwind(|| History::new(seed).play()) {
                            Ok(history) => tally.add(&history),
                            Err(panic) => failures.push(panic.downcast_ref::<String>().cloned().unwrap_or(format!("seed {seed}"))),
                        }
                    }
                    (tally, failures)
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    let (mut all, mut failures) = (Tally::default(), Vec::new());
    for (tally, failed) in outcomes {
        all.add(&tally);
        failures.extend(failed);
    }
    assert!(failures.is_empty(), "{} of {histories} histories failed, the first: {}", failures.len(), failures[0]);
    println!("{all:?}");
    // The histories must really hold what they are meant to try.
    let share = |part: u64| part * 100 >= histories;
    assert!(share(all.killed) && share(all.resumed) && share(all.edited_under_way) && share(all.second_passes), "{all:?}");
    assert!(all.by_clock.values().all(|count| share(*count)) && all.by_clock.len() == 3, "{all:?}");
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a number"))
}

/// What the histories tried.
#[derive(Clone, Debug, Default)]
struct Tally {
    runs: u64,
    pages: u64,
    killed: u64,
    resumed: u64,
    edited_under_way: u64,
    second_passes: u64,
    by_clock: BTreeMap<&'static str, u64>,
}

impl Tally {
    fn add(&mut self, other: &Tally) {
        self.runs += other.runs;
        self.pages += other.pages;
        self.killed += other.killed;
        self.resumed += other.resumed;
        self.edited_under_way += other.edited_under_way;
        self.second_passes += other.second_passes;
        for (clock, count) in &other.by_clock {
            *self.by_clock.entry(clock).or_default() += count;
        }
    }
}

/// xorshift64*: enough for histories, and the same everywhere.
#[derive(Clone, Debug)]
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Self {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % sides.max(1)
    }

    fn one_in(&mut self, sides: u64) -> bool {
        self.roll(sides) == 0
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.roll(from.len() as u64) as usize].clone()
    }
}

/// Time stands where the model's clock stands; waits cost nothing.
struct ModelTime(Micros);

impl TimeSource for ModelTime {
    fn now(&self) -> time::OffsetDateTime {
        time::OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000).expect("a time")
    }

    fn pause(&mut self, _: std::time::Duration, _: &Stop) -> Result<(), Stopped> {
        Ok(())
    }
}

/// The catalogue as the harvester sees it, changing between any two requests.
struct Moving {
    catalogue: model::Catalogue,
    dice: Dice,
    /// One request in so many is followed by edits; 0 for a rest.
    churn: u64,
    kill_at: Option<u64>,
    requests: u64,
    edits: u64,
    /// Edits after which this run sees no more: a catalogue that grows faster than it can be read has no end.
    edits_max: u64,
    next_name: u64,
    names: Vec<String>,
    deletions: bool,
}

/// What a kill is: the harvester never gets to run another line.
struct Killed;

impl Moving {
    fn change(&mut self) {
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
        if self.dice.one_in(4) {
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

struct History {
    seed: u64,
    moving: Moving,
    store: Store,
    job: Job,
    tally: Tally,
    /// Whether the last run resumed an unfinished one.
    resumed: bool,
}

impl History {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let quirks = random_quirks(&mut dice);
        let now = day(2026, 3, 1) + dice.roll(86_400) as Micros * SECOND;
        let mut catalogue = model::Catalogue::new(now, quirks).with_seed(seed);
        let count = dice.pick(&[0, 1, 2, 5, 9, 20, 40, 60]);
        let group = dice.pick(&[1, 1, 1, 2, 3, 10, 1_000]);
        let step = dice.pick(&[SECOND, 60 * SECOND, HOUR, 10 * DAY]);
        let mut names = Vec::new();
        for number in 0..count {
            let name = format!("r{:04}", dice.roll(10_000) * 100 + number);
            // The catalogue was filled over the past.
            catalogue.insert_at(&name, now - HOUR - step * (1 + (count - number) / group) as Micros);
            names.push(name);
        }
        if dice.one_in(6) {
            catalogue.insert_record(model::ModelRecord::showing("future", &["9999-01-01"]));
        }
        if dice.one_in(6) {
            catalogue.insert_record(model::ModelRecord::showing("odd", &["WED JUN 28 00:00:00 CES"]));
        }
        let deletions = dice.one_in(2);
        let page_size = dice.pick(&[1, 2, 3, 5, 10, 25]);
        let moving = Moving {
            catalogue,
            dice,
            churn: 0,
            kill_at: None,
            requests: 0,
            edits: 0,
            edits_max: 0,
            next_name: 0,
            names,
            deletions,
        };
        let job = Job {
            source: "s".to_owned(),
            base: "http://model/csw".to_owned(),
            pinned: Pinned::default(),
            fingerprint: "model".to_owned(),
            page_size,
            settle: SETTLE,
            since: None,
            reading: Reading::Incremental,
            strictness: Strictness::Lenient,
        };
        History { seed, moving, store: Store::in_memory().expect("a store"), job, tally: Tally::default(), resumed: false }
    }

    fn play(mut self) -> Tally {
        let runs = 1 + self.moving.dice.roll(RUNS_MAX);
        for _ in 0..runs {
            self.moving.churn = self.moving.dice.pick(&[0, 1, 2, 5]);
            let kill = self.moving.dice.one_in(3).then(|| 1 + self.moving.dice.roll(30));
            self.run(kill);
            self.check_invariant_1();
            self.moving.churn = 1;
            for _ in 0..self.moving.dice.roll(3) {
                self.moving.change();
            }
            self.moving.catalogue.advance(self.moving.dice.pick(&[SECOND, 600 * SECOND, DAY]));
        }
        self.rest();
        self.tally
    }

    fn rest(&mut self) {
        self.moving.catalogue.advance(3 * DAY);
        self.moving.churn = 0;
        let mut ending = self.run(None).expect("a run that nobody kills ends");
        if self.resumed {
            // It ended the window of a run that had been cut off; what changed after that run began is for the one after it.
            ending = self.run(None).expect("a run that nobody kills ends");
        }
        self.check(ending.outcome == Outcome::Complete, &format!("the run at rest is complete: {ending:?}"));
        self.check_equal();
        self.check_invariant_1();
        let clock = ending.clock.as_str();
        *self.tally.by_clock.entry(clock).or_default() += 1;
        let before = self.rows();
        let again = self.run(None).expect("a run that nobody kills ends");
        self.check(again.counters.new + again.counters.updated == 0, &format!("a quiet run changes nothing: {again:?}"));
        self.check(before == self.rows(), "a quiet run leaves every row as it was (I3)");
    }

    /// One run, killed before its n-th request if so wished. `None` when it was killed.
    fn run(&mut self, kill: Option<u64>) -> Option<Ending> {
        let before = self.moving.edits;
        self.moving.edits_max = before + EDITS_MAX;
        self.moving.kill_at = kill.map(|after| self.moving.requests + after);
        self.tally.runs += 1;
        let resumes = self.store.source_state("s").expect("a state").is_some_and(|state| state.cursor.is_some());
        self.resumed = resumes;
        self.tally.resumed += u64::from(resumes);
        let mut time = ModelTime(self.moving.catalogue.now());
        let (store, moving, job) = (&mut self.store, &mut self.moving, &self.job);
        let first = moving.requests;
        let run = catch_unwind(AssertUnwindSafe(|| harvest(store, moving, job, &mut time, &Stop::new())));
        self.tally.pages += self.moving.requests - first;
        self.tally.edited_under_way += u64::from(self.moving.edits > before);
        match run {
            Ok(ending) => {
                let ending = ending.unwrap_or_else(|error| self.fail(&format!("the store failed: {error}")));
                if let Some(error) = &ending.error {
                    self.fail(&format!("the run failed: {error}"));
                }
                self.tally.second_passes += u64::from(ending.passes > 1);
                Some(ending)
            }
            Err(panic) if panic.is::<Killed>() => {
                self.tally.killed += 1;
                None
            }
            Err(panic) => {
                eprintln!("seed {}", self.seed);
                resume_unwind(panic)
            }
        }
    }

    /// I1: what is at or below the watermark is in the store as the catalogue has it.
    fn check_invariant_1(&self) {
        let state = self.store.source_state("s").expect("a state");
        let Some(watermark) = state.and_then(|state| csw_harvester::timestamp::parse(&state.watermark)) else { return };
        let rows = self.rows();
        for record in self.moving.catalogue.records().iter().filter(|record| record.visible_from <= self.moving.catalogue.now()) {
            let (Some(identifier), Some(stamp)) = (&record.identifier, record.filter_stamp) else { continue };
            let interval = record.filter_text.as_deref().and_then(csw_harvester::timestamp::parse);
            let settled = interval.is_none_or(|interval| interval.settled(self.moving.catalogue.now(), SETTLE));
            // A day is below the watermark when all of it is.
            let below = interval.map_or(stamp, |interval| interval.end - SECOND) <= watermark.nominal;
            if below && settled {
                let held = rows.get(identifier).is_some_and(|(_, xml, _)| *xml == record.marker());
                self.check(held, &format!("I1: {identifier} is below the watermark {watermark:?} and not held as {record:?}"));
            }
        }
    }

    fn check_equal(&self) {
        let rows = self.rows();
        for (identifier, (modified, version)) in self.moving.catalogue.visible() {
            let held = rows.get(&identifier).map(|(modified, xml, _)| (modified.clone(), xml.clone()));
            let wanted = (modified, format!("[version {version}]"));
            self.check(held.as_ref() == Some(&wanted), &format!("{identifier} is held as {held:?}, the catalogue has {wanted:?}"));
        }
    }

    fn rows(&self) -> BTreeMap<String, (Option<String>, String, i64)> {
        let mut rows = BTreeMap::new();
        self.store
            .for_each_record("s", |row| {
                rows.insert(row.identifier.to_owned(), (row.modified.map(str::to_owned), row.xml.to_owned(), row.changed_seq));
            })
            .expect("rows");
        rows
    }

    fn check(&self, truth: bool, what: &str) {
        if !truth {
            self.fail(what);
        }
    }

    fn fail(&self, what: &str) -> ! {
        let state = self.store.source_state("s");
        panic!(
            "seed {}: {what}\nstate {state:?}\njob {:?}\nquirks {:?}\nnow {}",
            self.seed,
            self.job,
            self.moving.catalogue.quirks(),
            self.moving.catalogue.now()
        )
    }
}

/// A catalogue of any kind that the field knows, but for those that no client can read to the end.
fn random_quirks(dice: &mut Dice) -> Quirks {
    use quirks::*;
    let mut quirks = Quirks::default();
    quirks.shape = dice.pick(&[
        StampShape::Seconds,
        StampShape::Seconds,
        StampShape::Seconds,
        StampShape::Day,
        StampShape::Fraction(3),
        StampShape::NoZone,
        StampShape::Offset(120),
        StampShape::Mixed,
        StampShape::Absent,
    ]);
    quirks.clock = if dice.one_in(3) {
        quirks.edited_stamp = dice.pick(&[EditedStamp::Rewritten, EditedStamp::Kept]);
        Clock::Hidden(dice.pick(&[StampShape::Seconds, StampShape::Fraction(3)]))
    } else {
        Clock::Shown
    };
    quirks.csw_stamp = dice.pick(&[CswStamp::Same, CswStamp::Same, CswStamp::Same, CswStamp::JavaText]);
    quirks.comparison = dice.pick(&[Comparison::Time, Comparison::Text]);
    quirks.page_cap = dice.pick(&[None, None, Some(1), Some(2), Some(7)]);
    quirks.filter_ignored = dice.one_in(12);
    quirks.unknown_property = dice.pick(&[UnknownName::Exception, UnknownName::NoHits]);
    quirks.date_times =
        dice.pick(&[DateTimes::Exact, DateTimes::Exact, DateTimes::Exact, DateTimes::Refused, DateTimes::EveryDateRefused]);
    if quirks.clock == Clock::Shown && quirks.comparison == Comparison::Time && dice.one_in(6) {
        quirks.date_times = DateTimes::MonthStart;
    }
    quirks.greater = dice.pick(&[Greater::Strict, Greater::Strict, Greater::Inclusive]);
    quirks.sort = dice.pick(&[SortObedience::Obeyed, SortObedience::Obeyed, SortObedience::Obeyed, SortObedience::NotObeyed]);
    if dice.one_in(6) {
        quirks.sort_names = Names::none();
    }
    quirks.unknown_sort = dice.pick(&[UnknownSort::Exception, UnknownSort::Ignored]);
    quirks.order = dice.pick(&[Order::Insertion, Order::Identifier, Order::EditedLast, Order::NewestFirst]);
    quirks.ties = dice.pick(&[Ties::Rowid, Ties::RandomStable]);
    quirks.undated = dice.pick(&[Undated::First, Undated::Last]);
    quirks.matched = dice.pick(&[
        Matched::True,
        Matched::True,
        Matched::True,
        Matched::GarbageForNone("[object Object]".to_owned()),
        Matched::PageSize,
        Matched::GrowsWithPage,
    ]);
    quirks.next = dice.pick(&[
        NextRecord::Right,
        NextRecord::Right,
        NextRecord::Absent,
        NextRecord::ZeroTooEarly,
        NextRecord::ZeroOnFullPage,
        NextRecord::MinusOneAtEnd,
        NextRecord::MatchedPlusOne,
    ]);
    quirks.past_end = dice.pick(&[PastEnd::EmptyNextOne, PastEnd::EmptyNextZero, PastEnd::Exception, PastEnd::Buried]);
    quirks.hits = dice.pick(&[Hits::Right, Hits::SendsRecords, Hits::MatchedOnly, Hits::ClaimsPage]);
    quirks
}
