//! The proof that nothing is lost: random histories of a catalogue that changes while it is read, against the real plan and the real store.
//!
//! A history is a catalogue with its quirks, edits between any two requests, and runs that may be killed at any request. After every end
//! I1 must hold, and no record is taken for deleted that the catalogue held all the while; after a rest, one run must bring all that it
//! holds, one that reconciles must make the store equal to it, and one more must change nothing. In half of the histories records are
//! inserted and edited with stamps of the past or without one, which no watermark sees. No sockets, no XML.
//!
//! A quarter as many histories are of catalogues with a ceiling, which not every client can pass: there, what is lost must be told.
//!
//! `CSW_HARVESTER_HISTORIES` sets how many (12,000), `CSW_HARVESTER_SEED` where they begin: a failure prints the seed that repeats it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of this is test code, where a panic is a failed test"
)]

use std::collections::BTreeMap;
use std::panic::{catch_unwind, resume_unwind};

use csw_harvester::error::Error;
use csw_harvester::harvest::{Ending, Job};
use csw_harvester::reconcile::{MassDeletion, Reconcile};
use csw_harvester::report::Outcome;
use csw_harvester::store::Store;

use crate::invariants::{
    Row, nothing_below_the_watermark_is_missing, rows, the_rows_stayed, the_store_holds_nothing_else, the_store_is_the_catalogue,
    the_watermark_stayed, watermark,
};
use crate::moving::{self, ById, Dice, Moving, Summary};
use crate::support::model;
use crate::support::quirks::{self, Quirks};
use crate::support::stamps::{DAY, HOUR, Micros, SECOND, StampShape, day};

/// Edits while one run is under way: as many as fill some pages, whatever their size.
const EDITS_MIN: u64 = 30;
const EDITS_A_PAGE: u64 = 10;
/// Pages that a catalogue fills at first, at most.
const PAGES_MAX: u64 = 20;
/// Runs that a history may have before it rests.
const RUNS_MAX: u64 = 5;

#[test]
fn random_histories_lose_nothing() {
    let histories = number("CSW_HARVESTER_HISTORIES", 12_000);
    let all = play_all(histories, History::new);
    // The histories must really hold what they are meant to try.
    let share = |part: u64| part * 100 >= histories;
    assert!(share(all.killed) && share(all.resumed) && share(all.edited_under_way) && share(all.second_passes), "{all:?}");
    assert!(share(all.deleted) && share(all.refused * 5) && share(all.inventories_resumed) && share(all.looked_up), "{all:?}");
    assert!(share(all.backdating), "{all:?}");
    assert!(all.by_clock.values().all(|count| share(*count)) && all.by_clock.len() == 3, "{all:?}");
}

#[test]
fn random_histories_under_a_ceiling_lose_nothing_without_a_word() {
    let histories = number("CSW_HARVESTER_HISTORIES", 12_000) / 4;
    let all = play_all(histories, |seed| History::new(seed).under_a_ceiling());
    assert!(all.complete * 10 >= histories && all.deleted * 10 >= histories, "{all:?}");
}

fn play_all(histories: u64, history: fn(u64) -> History) -> Tally {
    let first = number("CSW_HARVESTER_SEED", 1);
    let threads = 2;
    let outcomes: Vec<(Tally, Vec<String>)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|worker| {
                scope.spawn(move || {
                    let (mut tally, mut failures) = (Tally::default(), Vec::new());
                    for seed in (first..first + histories).filter(|seed| seed % threads == worker) {
                        match catch_unwind(|| history(seed).play()) {
                            Ok(Ok(history)) => tally.add(&history),
                            Ok(Err(why)) => failures.push(why),
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
    let told: Vec<_> = failures.iter().map(|why| why.lines().next().unwrap_or_default()).collect();
    assert!(failures.is_empty(), "{} of {histories} histories failed, the first: {}\n{told:#?}", failures.len(), failures[0]);
    println!("{all:?}");
    all
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a number"))
}

fn is_readable(stamp: &str) -> bool {
    csw_harvester::timestamp::parse(stamp).is_some()
}

/// What the histories tried.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    runs: u64,
    requests: u64,
    killed: u64,
    resumed: u64,
    edited_under_way: u64,
    second_passes: u64,
    /// Under a ceiling only.
    complete: u64,
    deleted: u64,
    refused: u64,
    inventories_resumed: u64,
    looked_up: u64,
    backdating: u64,
    by_clock: BTreeMap<&'static str, u64>,
}

impl Tally {
    fn add(&mut self, other: &Tally) {
        self.runs += other.runs;
        self.requests += other.requests;
        self.killed += other.killed;
        self.resumed += other.resumed;
        self.edited_under_way += other.edited_under_way;
        self.second_passes += other.second_passes;
        self.deleted += other.deleted;
        self.refused += other.refused;
        self.inventories_resumed += other.inventories_resumed;
        self.looked_up += other.looked_up;
        self.backdating += other.backdating;
        self.complete += other.complete;
        for (clock, count) in &other.by_clock {
            *self.by_clock.entry(clock).or_default() += count;
        }
    }
}

/// A catalogue and what befalls it.
pub(crate) struct History {
    seed: u64,
    moving: Moving,
    store: Store,
    job: Job,
    tally: Tally,
    /// Whether the last run resumed an unfinished one.
    resumed: bool,
    /// The first request of the runs that resume one another.
    chain: u64,
    /// The catalogue has a ceiling, which not every client can pass: what is lost must be told.
    ceiling: bool,
}

impl History {
    pub(crate) fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let quirks = random_quirks(&mut dice);
        let now = day(2026, 3, 1) + dice.roll(86_400) as Micros * SECOND;
        let mut catalogue = model::Catalogue::new(now, quirks).with_seed(seed);
        let page_size = dice.pick(&[1, 2, 3, 5, 10, 25]);
        // What more pages would try, small catalogues in small pages have tried.
        let served = page_size.min(catalogue.quirks().page_cap.unwrap_or(page_size));
        let count = dice.pick(&[0, 1, 2, 5, 9, 20, 40, 60]).min(PAGES_MAX * u64::from(served));
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
        let backdating = dice.one_in(2);
        let by_id = dice.pick(&[ById::Given, ById::Given, ById::First, ById::MissingIsReport, ById::Refused, ById::Nothing]);
        let summary = dice.pick(&[Summary::Stamped, Summary::Stamped, Summary::Stamped, Summary::Stampless, Summary::Refused]);
        let haste = dice.pick(&[0, 0, 2, 3, 10]);
        let moving = Moving { dice, names, deletions, backdating, by_id, summary, haste, ..Moving::still(catalogue) };
        let job = moving::job(page_size);
        let tally = Tally { backdating: u64::from(backdating), ..Tally::default() };
        History { seed, moving, store: Store::in_memory().expect("a store"), job, tally, resumed: false, chain: 1, ceiling: false }
    }

    /// How many records a page brings at most.
    fn served(&self) -> u64 {
        let size = self.job.page_size;
        u64::from(self.moving.catalogue.quirks().page_cap.map_or(size, |cap| cap.min(size)))
    }

    /// Nothing beyond some position is served, in one way or another.
    pub(crate) fn under_a_ceiling(mut self) -> Self {
        use quirks::CeilingFace::*;
        let dice = &mut self.moving.dice;
        let counts = matches!(self.moving.catalogue.quirks().matched, quirks::Matched::True | quirks::Matched::GarbageForNone(_));
        // Where nobody counts, silence is the end.
        let faces = if counts { &[Exception, Http500, Silence, EmptyPage, NoneMatch][..] } else { &[Exception, Http500] };
        let face = dice.pick(faces);
        let ceiling = dice.pick(&[3, 5, 8, 13, 21]);
        let repeats = matches!(face, Exception | Http500) && dice.one_in(4);
        let quirks = self.moving.catalogue.quirks_mut();
        quirks.ceiling = Some((ceiling, face));
        if repeats {
            quirks.past_end = quirks::PastEnd::LastAgain;
        }
        self.moving.backdating = false;
        self.ceiling = true;
        self
    }

    /// Every insert becomes visible late, and a stamp is taken for settled at once.
    pub(crate) fn unsettled(mut self) -> Self {
        self.moving.all_late = true;
        self.job.settle = 0;
        self
    }

    /// Plays it to its end; what went wrong, with all that is needed to play it again.
    pub(crate) fn play(mut self) -> Result<Tally, String> {
        match self.try_play() {
            Ok(()) => Ok(self.tally),
            Err(why) => Err(self.told(&why)),
        }
    }

    fn try_play(&mut self) -> Result<(), String> {
        let runs = 1 + self.moving.dice.roll(RUNS_MAX);
        for _ in 0..runs {
            self.moving.churn = self.moving.dice.pick(&[0, 1, 2, 5]);
            let kill = self.moving.dice.one_in(3).then(|| 1 + self.moving.dice.roll(30));
            self.job.reconcile = self.moving.dice.pick(&[Reconcile::Auto, Reconcile::Auto, Reconcile::Always, Reconcile::Never]);
            self.job.mass_deletion = self.moving.dice.pick(&[MassDeletion::Allowed, MassDeletion::Refused]);
            self.run(kill)?;
            self.check_watermark()?;
            self.moving.churn = 1;
            for _ in 0..self.moving.dice.roll(3) {
                self.moving.change();
            }
            self.moving.catalogue.advance(self.moving.dice.pick(&[SECOND, 600 * SECOND, DAY]));
        }
        if self.ceiling { self.rest_below() } else { self.rest() }
    }

    /// Whether all comes is the catalogue's to say: what is said to be below the watermark is there, and what is there is not taken for
    /// deleted.
    fn rest_below(&mut self) -> Result<(), String> {
        self.moving.churn = 0;
        for reconcile in [Reconcile::Auto, Reconcile::Always, Reconcile::Auto] {
            self.moving.catalogue.advance(3 * DAY);
            self.job.reconcile = reconcile;
            let ending = self.run(None)?.expect("a run that nobody kills ends");
            self.check_watermark()?;
            if ending.reconciled && reconcile == Reconcile::Always {
                // What has no stamp is in no list that goes on beyond a ceiling.
                let dated = self.moving.catalogue.visible().values().all(|(stamp, _)| stamp.as_deref().is_some_and(is_readable));
                if dated {
                    the_store_is_the_catalogue(&self.store, &self.moving.catalogue)?;
                }
                the_store_holds_nothing_else(&self.store, &self.moving.catalogue)?;
            }
            self.tally.complete += u64::from(ending.error.is_none() && ending.reconciled);
        }
        Ok(())
    }

    fn rest(&mut self) -> Result<(), String> {
        self.moving.catalogue.advance(3 * DAY);
        self.moving.churn = 0;
        self.job.reconcile = Reconcile::Auto;
        self.job.mass_deletion = MassDeletion::Allowed;
        let mut ending = self.run(None)?.expect("a run that nobody kills ends");
        if self.resumed {
            // It ended the window of a run that had been cut off; what changed after that run began is for the one after it.
            ending = self.run(None)?.expect("a run that nobody kills ends");
        }
        if ending.outcome != Outcome::Complete {
            return Err(format!("the run at rest is not complete: {ending:?}"));
        }
        if !self.moving.backdating {
            the_store_is_the_catalogue(&self.store, &self.moving.catalogue)?;
        }
        self.check_watermark()?;
        self.job.reconcile = Reconcile::Always;
        let reconciled = self.run(None)?.expect("a run that nobody kills ends");
        if !reconciled.reconciled {
            return Err(format!("at rest the inventory is not complete: {reconciled:?}"));
        }
        the_store_is_the_catalogue(&self.store, &self.moving.catalogue)?;
        the_store_holds_nothing_else(&self.store, &self.moving.catalogue)?;
        self.job.reconcile = Reconcile::Auto;
        *self.tally.by_clock.entry(ending.clock.as_str()).or_default() += 1;
        let before = rows(&self.store);
        let again = self.run(None)?.expect("a run that nobody kills ends");
        if again.counters.new + again.counters.updated + again.counters.deleted > 0 {
            return Err(format!("a quiet run changes something: {again:?}"));
        }
        the_rows_stayed(&before, &rows(&self.store))
    }

    fn check_watermark(&self) -> Result<(), String> {
        if self.moving.backdating {
            return Ok(());
        }
        nothing_below_the_watermark_is_missing(&self.store, &self.moving.catalogue, self.job.settle)
    }

    /// One run, killed before its n-th request if so wished. `None` when it was killed.
    fn run(&mut self, kill: Option<u64>) -> Result<Option<Ending>, String> {
        let before = self.moving.edits;
        self.moving.edits_max = before + EDITS_MIN + EDITS_A_PAGE * self.served();
        self.moving.kill_at = kill.map(|after| self.moving.requests + after);
        self.tally.runs += 1;
        self.resumed = self.store.source_state("s").expect("a state").is_some_and(|state| state.cursor.is_some());
        self.tally.resumed += u64::from(self.resumed);
        let watermark_before = watermark(&self.store).unwrap_or_else(|| csw_harvester::watermark::FIRST.to_owned());
        let first = self.moving.requests;
        let held = rows(&self.store);
        let inventory = self.store.unfinished_inventory("s").expect("a state").is_some();
        self.tally.inventories_resumed += u64::from(inventory);
        if !inventory && !self.resumed {
            self.chain = first;
        }
        let now = self.moving.catalogue.now();
        let ending = moving::run(&mut self.store, &mut self.moving, &self.job, now);
        self.tally.requests += self.moving.requests - first;
        self.tally.edited_under_way += u64::from(self.moving.edits > before);
        self.tally.looked_up += std::mem::take(&mut self.moving.looked_up);
        self.check_deletions(&held)?;
        let Some(ending) = ending else {
            self.tally.killed += 1;
            return the_watermark_stayed(&watermark_before, &self.store).map(|()| None);
        };
        let ending = ending.map_err(|error| format!("the store failed: {error}"))?;
        self.tally.deleted += ending.counters.deleted;
        match &ending.error {
            Some(Error::MassDeletion { .. }) if self.job.mass_deletion == MassDeletion::Refused => {
                self.tally.refused += 1;
                if ending.counters.deleted > 0 || ending.watermark != ending.watermark_before {
                    return Err(format!("what was refused was done: {ending:?}"));
                }
            }
            Some(_) if self.ceiling && ending.watermark == ending.watermark_before => {}
            Some(error) => return Err(format!("the run failed: {error}")),
            None => {}
        }
        self.tally.second_passes += u64::from(ending.passes > 1);
        Ok(Some(ending))
    }

    /// No record left the store that the catalogue held from the first request of the run, or of the one that it resumes, to the last.
    fn check_deletions(&self, held: &BTreeMap<String, Row>) -> Result<(), String> {
        let (kept, shown) = (rows(&self.store), self.moving.catalogue.visible());
        let throughout =
            |name: &String| shown.contains_key(name) && self.moving.absent.get(name).is_none_or(|absent| *absent < self.chain);
        match held.keys().find(|name| !kept.contains_key(*name) && throughout(name)) {
            Some(name) => Err(format!("{name} was taken for deleted, and the catalogue held it all the while")),
            None => Ok(()),
        }
    }

    fn told(&self, what: &str) -> String {
        format!(
            "seed {}: {what}\nstate {:?}\njob {:?}\nquirks {:?}\nnow {}",
            self.seed,
            self.store.source_state("s"),
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
