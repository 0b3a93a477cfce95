//! One harvest of one source: {plan -> ask -> seen -> commit}, then the watermark.
//!
//! This is the only place that sees both the pure half and the effects. It decides nothing about paging (`plan.rs`), about words
//! (`dialect.rs`, `csw/`) or about which stamp is settled (`watermark.rs`); it keeps the order of things: records first, the cursor with
//! them, the watermark last, in the transaction that completes the run, and in no other (I2). What opens the lock, the store and
//! the line to the catalogue stands in `harvest/command.rs`.

pub mod command;
mod finish;
mod inventory;
mod lookup;
mod remembered;
mod waiting;

use std::collections::HashSet;
use std::time::Duration;

use crate::catalogue::{Answer, Catalogue, Failure, FailureKind, Patience};
use crate::cli::{Reading, Strictness};
use crate::clock::Clock as TimeSource;
use crate::csw::response::Record;
use crate::csw::{ElementSet, Lower, Query, Version, Window};
use crate::dialect::{Clock, Dialect};
use crate::error::Error;
use crate::negotiate::{self, OwnStamps, Pinned};
use crate::plan::{BadPosition, Cause, Certainty, ElementFacts, Order, PageFacts, PageFailure, Plan, Seen, Step};
use crate::progress::Progress;
use crate::reconcile::{MassDeletion, Reconcile};
use crate::report::{Counters, Outcome};
use crate::signal::Stop;
use crate::stable_hash::stable_hash;
use crate::store::{
    CursorWrite, InventoryEnd, Meeting, PageCounts, PageWrite, Pass, Phase, ProblemWrite, RecordWrite, SourceState, Store,
    StoreError,
};
use crate::timestamp::{self, Interval, Micros, Shapes, micros_from};
use crate::watermark::{self, EXACT_CHANGES_MIN, FIRST, Newest, SHAPED_MIN};
use inventory::Listing;
use lookup::Lookup;
use remembered::{dialect_of, stored};
use waiting::Waiting;

/// Problems that are told apart and counted within a run.
const TOLD_MAX: usize = 1_000_000;
/// Problems that have a log line each.
const LOGGED_MAX: usize = 1_000;
/// What is said of an element that nobody can ask for.
const NAMELESS: &str = "a record without identifier";
/// The day in an RFC 3339 text.
const DAY_CHARS: usize = "2026-01-01".len();
/// The wait between two requests while a page that failed is being halved.
const HALVING_PAUSE: Duration = Duration::from_millis(200);

/// What is to be harvested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The key in the store.
    pub source: String,
    /// The cleaned url.
    pub base: String,
    /// What the user pinned.
    pub pinned: Pinned,
    /// Of endpoint, schema and filter: when it differs from the stored one, everything is read again.
    pub fingerprint: String,
    /// `maxRecords`.
    pub page_size: u32,
    /// How old a stamp must be.
    pub settle: Micros,
    /// Where to start in this run.
    pub since: Option<String>,
    /// What is read.
    pub reading: Reading,
    /// What a record that could not be had means.
    pub strictness: Strictness,
    /// Whether everything is compared.
    pub reconcile: Reconcile,
    /// Whether many records may be taken for deleted at once.
    pub mass_deletion: MassDeletion,
    /// Whether the user wants only a part of the catalogue, so that what is given by identifier need not be in it.
    pub is_selective: bool,
}

/// How the harvest of a source ended.
#[derive(Debug)]
pub struct Ending {
    /// How.
    pub outcome: Outcome,
    /// Why, unless it is complete.
    pub error: Option<Error>,
    /// The counters.
    pub counters: Counters,
    /// The watermark before.
    pub watermark_before: String,
    /// The watermark now.
    pub watermark: String,
    /// The clock of the source.
    pub clock: Clock,
    /// Passes over the window; more than one where the list was seen to move.
    pub passes: u32,
    /// Whether everything was compared.
    pub reconciled: bool,
}

/// Harvests one source, from what the store knows of it to the end of the run.
///
/// # Errors
/// Only when the run could not even be begun in the store, or its end not be written; all else is in the [`Ending`].
pub fn harvest(
    store: &mut Store,
    catalogue: &mut dyn Catalogue,
    job: &Job,
    time: &mut dyn TimeSource,
    stop: &Stop,
    progress: &mut dyn Progress,
) -> Result<Ending, StoreError> {
    store.forget_seen()?;
    let mut state = store.source_state(&job.source)?.unwrap_or_default();
    let watermark_before = state.watermark.clone();
    let began_at = time.now_text();
    let run = store.begin_run(&job.source, &began_at, &watermark_before)?;
    if state.fingerprint.as_ref() != Some(&job.fingerprint) {
        if state.fingerprint.is_some() {
            log::info!("url, schema, property or filter of {} changed: everything is read again", job.source);
        }
        begin_anew(store, job, &mut state)?;
    }
    let mut harvest = Harvest {
        store,
        catalogue,
        job,
        time,
        stop,
        progress,
        dialect: None,
        newest: Newest::default(),
        started: None,
        counters: Counters::default(),
        pages: 0,
        waiting: Waiting::default(),
        prompt: true,
        passes: 0,
        patience: Patience::Full,
        last_failure: None,
        told: HashSet::new(),
        resumed: false,
        skipped_before: 0,
        held: None,
        phase: Phase::Window,
        listing: None,
        lookup: Lookup::new(job.is_selective),
        inventory: InventoryEnd::None,
    };
    let result = harvest.read(&mut state).and_then(|read| {
        harvest.reconcile(&state, &read)?;
        Ok(read)
    });
    harvest.finish(run, &state, result)
}

/// A run under way.
struct Harvest<'a> {
    store: &'a mut Store,
    catalogue: &'a mut dyn Catalogue,
    job: &'a Job,
    time: &'a mut dyn TimeSource,
    stop: &'a Stop,
    progress: &'a mut dyn Progress,
    dialect: Option<Dialect>,
    newest: Newest,
    /// The catalogue's time when the run began, from its first answer.
    started: Option<Micros>,
    counters: Counters,
    /// Pages that are committed.
    pages: u64,
    waiting: Waiting,
    /// Whether the last answer came soon enough for pages to wait for the next.
    prompt: bool,
    passes: u32,
    /// How many attempts a page is worth now: few while one that failed is being halved.
    patience: Patience,
    last_failure: Option<Failure>,
    /// The places of problems told in this run.
    told: HashSet<u64>,
    /// Whether this run goes on where another one was cut off.
    resumed: bool,
    /// What that one had skipped.
    skipped_before: u64,
    /// Why the watermark stays where it is although the run is complete.
    held: Option<String>,
    /// What is being read.
    phase: Phase,
    /// The inventory, while its records are only listed.
    listing: Option<Listing>,
    lookup: Lookup,
    inventory: InventoryEnd,
}

/// Forgets what was found out of a catalogue, and has everything read again.
fn begin_anew(store: &mut Store, job: &Job, state: &mut SourceState) -> Result<(), StoreError> {
    store.adopt(&job.source, &job.fingerprint)?;
    *state = SourceState { watermark: state.watermark.clone(), full_due: true, ..SourceState::default() };
    Ok(())
}

/// A list that was read to its end.
struct Read {
    shapes: Shapes,
    full: bool,
    certainty: Certainty,
    /// What did not come is not there.
    whole: bool,
    window: Window,
    /// How many records came, where that is known.
    came: Option<u64>,
    /// How many there are, as the catalogue first told.
    matched: Option<u64>,
}

impl Harvest<'_> {
    /// Reads the window; negotiates first where nothing is remembered, and once more where what is remembered is refused.
    fn read(&mut self, state: &mut SourceState) -> Result<Read, Error> {
        let remembered = dialect_of(&state.dialect, &self.job.base);
        let was_remembered = remembered.is_some();
        let dialect = match remembered {
            Some(dialect) if self.is_due_another_try(&dialect, state) => {
                // What was found out in an hour of trouble would have everything read for ever.
                begin_anew(self.store, self.job, state)?;
                self.negotiate(state)?
            }
            Some(dialect) => dialect,
            None => self.negotiate(state)?,
        };
        match self.read_with(dialect, state) {
            Err(Error::Catalogue(failure)) if was_remembered && self.pages == 0 && may_be_forgotten_words(failure.kind) => {
                log::info!("{}; asking anew how to speak with this catalogue", failure.message);
                let dialect = self.negotiate(state)?;
                self.read_with(dialect, state)
            }
            result => result,
        }
    }

    /// Whether no filter was of use, and this is the first run of a day. One that was cut off is gone on with first.
    fn is_due_another_try(&self, dialect: &Dialect, state: &SourceState) -> bool {
        let (now, last) = (self.time.now_text(), state.last_success_at.as_deref());
        let is_first = last.is_some_and(|last| last.get(..DAY_CHARS) != now.get(..DAY_CHARS));
        is_first && state.cursor.is_none() && !dialect.is_filterable()
    }

    fn negotiate(&mut self, state: &mut SourceState) -> Result<Dialect, Error> {
        let mut dialect = negotiate::negotiate(self.catalogue, &self.job.base, &self.job.pinned)?;
        let before = Clock::named(state.dialect.clock.as_deref().unwrap_or_default());
        if dialect.clock.is_none() && dialect.property == state.dialect.property {
            dialect.clock = before;
        }
        log::info!(
            "{}: CSW {} by {}, filter on {}, sort by {}",
            self.job.source,
            dialect.version.as_str(),
            dialect.manner(),
            dialect.property.as_deref().unwrap_or("nothing"),
            dialect.sort.as_deref().unwrap_or("nothing")
        );
        if !dialect.is_provisional() {
            let spoken = state.dialect.version.as_deref().and_then(Version::named);
            if spoken.is_some_and(|spoken| spoken != dialect.version) {
                // Each version has a csw:Record of its own: one source does not hold both.
                log::info!("{} is spoken with in another version now: everything is read again", self.job.source);
                begin_anew(self.store, self.job, state)?;
            }
            state.dialect = stored(&dialect, &self.job.base);
            self.store.save_dialect(&self.job.source, &state.dialect)?;
        }
        Ok(dialect)
    }

    fn read_with(&mut self, dialect: Dialect, state: &SourceState) -> Result<Read, Error> {
        let shapes = state.shapes.as_deref().map(Shapes::from_text).unwrap_or_default();
        // A handful of stamps of one shape may be one by chance, and the next one a plain day.
        let shaped = self.store.holds_at_least(&self.job.source, SHAPED_MIN)?;
        let window = self.window(&dialect, state, if shaped { shapes } else { Shapes::Mixed });
        let full = window.lower.is_none();
        self.progress.begin(&self.job.source, &window);
        let order = self.order(&dialect, window, ElementSet::Full, if full { Shapes::default() } else { shapes });
        let mut plan = self.resume(&order, state)?.unwrap_or_else(|| Plan::new(order));
        // Whatever this run is told of inventories: the one that resumes it may be told otherwise.
        self.store.keep_met(full.then_some(Phase::Window));
        self.dialect = Some(dialect);
        let certainty = self.read_window(&mut plan);
        self.counters.matched = plan.matched();
        self.passes = plan.pass();
        self.tell_bad_positions(&mut plan)?;
        let certainty = certainty?;
        self.judge(&mut plan, certainty)?;
        self.weigh_margin(state, &plan)?;
        Ok(self.read_of(&plan, certainty))
    }

    fn order(&self, dialect: &Dialect, window: Window, element_set: ElementSet, shapes: Shapes) -> Order {
        Order {
            window,
            element_set,
            page_size: self.job.page_size,
            clock: dialect.clock,
            upper_obeyed: dialect.upper_obeyed,
            days_only: dialect.days_only,
            clock_sure: dialect.clock_sure,
            sorted: dialect.sort_obeyed,
            matched_is_total: dialect.matched_is_total,
            shapes,
            started: micros_from(self.time.now()),
        }
    }

    fn read_of(&self, plan: &Plan, certainty: Certainty) -> Read {
        Read {
            shapes: plan.shapes(),
            full: !plan.is_filtered(),
            certainty,
            whole: plan.saw_the_whole_list(),
            window: plan.window().clone(),
            came: plan.came(),
            matched: plan.matched(),
        }
    }

    /// What this run reads: after the watermark, or everything.
    fn window(&mut self, dialect: &Dialect, state: &SourceState, shapes: Shapes) -> Window {
        let after = |literal: String| Window { lower: Some(Lower::After(literal)), upper: None };
        let filterable = dialect.is_filterable();
        if let Some(since) = &self.job.since {
            let at = |text: &str| timestamp::parse(text).map(|interval| interval.nominal);
            if state.watermark == FIRST || at(since) > at(&state.watermark) {
                self.held = Some("--since begins after it".to_owned());
            }
            if filterable {
                return after(watermark::literal(since, Shapes::default(), dialect.days_only));
            }
        }
        let everything = self.job.reading == Reading::Full || state.full_due || state.watermark == FIRST || !filterable;
        match dialect.clock {
            _ if everything => Window::default(),
            Some(Clock::Server) => after(watermark::server_literal(&state.watermark, dialect.exact_changes, dialect.days_only)),
            _ => after(watermark::literal(&state.watermark, shapes, dialect.days_only)),
        }
    }

    fn resume(&mut self, order: &Order, state: &SourceState) -> Result<Option<Plan>, Error> {
        let Some(cursor) = &state.cursor else { return Ok(None) };
        let Some(plan) = Plan::resume(order, &cursor.plan) else {
            self.store.forget_cursor(&self.job.source)?;
            return Ok(None);
        };
        log::info!("resuming an unfinished run of {}", self.job.source);
        self.recall(&plan)?;
        if let Some(newest) = &cursor.newest {
            self.newest.observe_earlier(newest);
        }
        self.started = Some(plan.started());
        self.resumed = true;
        self.skipped_before = cursor.skipped;
        Ok(Some(plan))
    }

    /// Meets again what the run that is resumed had met: all of it where everything is read, else what an overlap is recognised by.
    fn recall(&mut self, plan: &Plan) -> Result<(), Error> {
        if !plan.is_filtered() {
            self.store.recall_met(&self.job.source, self.phase)?;
        }
        let anchors = plan.anchors().iter().map(|(identifier, modified)| (identifier.as_str(), modified.as_str()));
        self.store.mark_seen(self.pass(plan), anchors)?;
        Ok(())
    }

    fn pass(&self, plan: &Plan) -> Pass {
        Pass { phase: self.phase, number: plan.pass() }
    }

    /// The loop, and then what it left uncommitted, however it ended.
    fn read_window(&mut self, plan: &mut Plan) -> Result<Certainty, Error> {
        let read = self.read_pages(plan);
        let committed = self.commit_pages();
        if let (Err(_), Err(error)) = (&read, &committed) {
            log::warn!("{error}");
        }
        read.and_then(|certainty| committed.map(|()| certainty))
    }

    /// Ask, write, until the plan says that the window is read. Nothing is waited for before all that was written is committed.
    fn read_pages(&mut self, plan: &mut Plan) -> Result<Certainty, Error> {
        loop {
            self.stop.check()?;
            if self.listing.as_ref().is_some_and(Listing::is_of_no_use) {
                return Ok(Certainty::Told);
            }
            match plan.step() {
                Step::Ask(query) => self.ask(plan, &query)?,
                Step::Count(query) => {
                    self.commit_pages()?;
                    let answer = self.get_records(&query, Patience::Full)?;
                    plan.on_count(answer.results.matched);
                }
                Step::Calibrate => {
                    self.commit_pages()?;
                    self.calibrate(plan)?;
                    if let Some(dialect) = &self.dialect {
                        plan.on_clock(dialect.clock, dialect.clock_sure, dialect.upper_obeyed);
                    }
                }
                Step::Done(certainty) => return Ok(certainty),
                Step::Failed(cause) => return Err(self.why(cause)),
            }
        }
    }

    fn get_records(&mut self, query: &Query, patience: Patience) -> Result<Answer, Failure> {
        let dialect = self.dialect.clone().unwrap_or_else(|| Dialect::untried(String::new()));
        let answer = self.catalogue.get_records(&dialect, query, patience)?;
        self.started.get_or_insert(answer.server_now);
        Ok(answer)
    }

    fn ask(&mut self, plan: &mut Plan, query: &Query) -> Result<(), Error> {
        match self.answer_to(query)? {
            Ok(answer) => {
                self.patience = Patience::Full;
                plan.begin_at(*self.started.get_or_insert(answer.server_now));
                self.take_page(plan, &answer)
            }
            Err(failure) => {
                let page = match failure.kind {
                    FailureKind::Stopped(_) | FailureKind::Fault | FailureKind::Access | FailureKind::Unreachable => {
                        return Err(failure.into());
                    }
                    // After good pages it is not the words that are wrong.
                    FailureKind::Dialect if self.pages == 0 => return Err(failure.into()),
                    FailureKind::TooLarge => PageFailure::TooLarge,
                    FailureKind::PastTheEnd => PageFailure::PastTheEnd,
                    FailureKind::Ceiling => PageFailure::Ceiling,
                    FailureKind::Unavailable
                    | FailureKind::NotCsw
                    | FailureKind::Dialect
                    | FailureKind::BadPage
                    | FailureKind::Report => PageFailure::Page,
                };
                log::warn!("{}", failure.message);
                plan.on_failure(page);
                if matches!(page, PageFailure::Page | PageFailure::TooLarge) {
                    self.last_failure = Some(failure);
                }
                if page == PageFailure::Page {
                    self.patience = Patience::Short;
                    self.time.pause(HALVING_PAUSE, self.stop)?;
                }
                Ok(())
            }
        }
    }

    /// A page: what is new in it, where the plan goes from here, and then all of it into the store with the cursor.
    fn take_page(&mut self, plan: &mut Plan, answer: &Answer) -> Result<(), Error> {
        let records: Vec<_> = answer.results.records.iter().collect();
        let named = records.iter().filter_map(|record| Some((record.identifier?, record.modified.unwrap_or_default())));
        let mut meetings = self.store.mark_seen(self.pass(plan), named)?.into_iter();
        let nameless = Meeting { seen: Seen::Anonymous, known_in_run: false };
        let started = self.started.unwrap_or(answer.server_now);
        let mut elements = Vec::with_capacity(records.len());
        let mut known = Vec::with_capacity(records.len());
        for record in &records {
            let interval: Option<Interval> = record.modified.and_then(timestamp::parse);
            if let (Some(text), Some(interval), Phase::Window) = (record.modified, &interval, self.phase) {
                self.newest.observe(text, interval, started, self.job.settle);
            }
            let Meeting { seen, known_in_run } = record.identifier.and_then(|_| meetings.next()).unwrap_or(nameless);
            elements.push(ElementFacts { identifier: record.identifier, modified: record.modified, interval, seen });
            known.push(known_in_run);
        }
        let results = &answer.results;
        plan.on_page(&PageFacts {
            elements: &elements,
            matched: results.matched,
            next_record: results.next_record,
            server_now: answer.server_now,
        });
        if !plan.is_contiguous() {
            let first_met = elements.iter().filter(|element| element.seen != Seen::Here).filter_map(|element| element.identifier);
            self.store.disown_seen(self.phase, first_met)?;
        }
        let confirmed = plan.take_confirmed();
        let pairs = confirmed.iter().map(|(identifier, modified)| (identifier.as_str(), modified.as_str()));
        self.store.mark_seen(self.pass(plan), pairs)?;
        if self.listing.is_some() {
            return self.take_listed(plan, &records, &known);
        }
        if let (Step::Ask(next), Some(dialect)) = (plan.step(), &self.dialect) {
            self.catalogue.begin(dialect, &next);
        }
        let rows = records.iter().zip(&elements).zip(&known);
        self.write(plan, rows.map(|((record, facts), known)| (record, facts.interval, *known)), Vec::new())?;
        Ok(())
    }

    /// Records, each with the interval of its stamp and whether this run knows it already, and problems found before, with the cursor.
    fn write<'r>(
        &mut self,
        plan: &mut Plan,
        rows: impl Iterator<Item = (&'r Record<'r>, Option<Interval>, bool)>,
        mut flaws: Vec<(String, &str)>,
    ) -> Result<PageCounts, Error> {
        let mut writes = Vec::new();
        for (record, interval, known_in_run) in rows {
            match (record.identifier, record.flaw) {
                (Some(identifier), None) => writes.push(write_of(record, identifier, interval, known_in_run)),
                (Some(identifier), Some(flaw)) => flaws.push((place_of(identifier), flaw)),
                (None, flaw) => flaws.push((place_of_anonymous(record.xml), flaw.unwrap_or(NAMELESS))),
            }
        }
        let bad = plan.take_bad_positions();
        let why_bad = self.why_bad();
        let places: Vec<String> = bad.iter().map(place_of_position).collect();
        let problems: Vec<ProblemWrite<'_>> = flaws
            .iter()
            .map(|(place, why)| ProblemWrite { place, why })
            .chain(places.iter().map(|place| ProblemWrite { place, why: &why_bad }))
            .collect();
        let text = plan.cursor();
        let told = self.tell_problems(&problems);
        let skipped = self.skipped_before + self.counters.skipped + self.waiting.skipped() + told;
        let cursor = match self.phase {
            Phase::Window => CursorWrite::Window { plan: &text, newest: self.newest.text(), skipped },
            Phase::Inventory => CursorWrite::Inventory { plan: &text },
        };
        let page = PageWrite {
            source: &self.job.source,
            records: &writes,
            harvested_at: &self.time.now_text(),
            cursor: Some(cursor),
            problems: &problems,
        };
        // An error takes back what waits as well.
        let waiting = std::mem::take(&mut self.waiting);
        let counts = self.store.write_page(&page)?;
        self.waiting = waiting;
        self.waiting.add(counts, told, &writes, self.time.now());
        self.progress.page(plan.came().unwrap_or_else(|| self.counters.came()), plan.matched());
        Ok(counts)
    }

    fn count(&mut self, page: PageCounts) {
        let counters = &self.counters;
        let mut sum = PageCounts { new: counters.new, updated: counters.updated, unchanged: counters.unchanged, recounted: 0 };
        sum.add(page);
        self.counters = Counters { new: sum.new, updated: sum.updated, unchanged: sum.unchanged, ..self.counters };
    }

    /// Tells problems, and says how many: one that is met twice in a run, in the overlap of two pages, is told and counted once.
    fn tell_problems(&mut self, problems: &[ProblemWrite<'_>]) -> u64 {
        let told_before = self.told.len();
        for problem in problems {
            if self.told.len() >= TOLD_MAX || !self.told.insert(stable_hash(problem.place)) {
                continue;
            }
            match self.told.len() {
                ..LOGGED_MAX => log::warn!("skipped: {}: {}", crate::http::escape_outside_text(problem.place, 200), problem.why),
                LOGGED_MAX => log::warn!("skipped: many; the rest stands in the table problems"),
                _ => {}
            }
        }
        (self.told.len() - told_before) as u64
    }

    fn why_bad(&self) -> String {
        self.last_failure.as_ref().map_or("this position cannot be read", |failure| failure.message.as_str()).to_owned()
    }

    /// Positions found bad at the very end of a window have no page to be committed with.
    fn tell_bad_positions(&mut self, plan: &mut Plan) -> Result<(), Error> {
        let places: Vec<String> = plan.take_bad_positions().iter().map(place_of_position).collect();
        if places.is_empty() {
            return Ok(());
        }
        let why = self.why_bad();
        let problems: Vec<_> = places.iter().map(|place| ProblemWrite { place, why: &why }).collect();
        self.store.commit_page(&PageWrite {
            source: &self.job.source,
            records: &[],
            harvested_at: &self.time.now_text(),
            cursor: None,
            problems: &problems,
        })?;
        self.counters.skipped += self.tell_problems(&problems);
        Ok(())
    }

    /// After the last page: the clock, where it is not known or was contradicted, and whether the watermark may move.
    fn judge(&mut self, plan: &mut Plan, certainty: Certainty) -> Result<(), Error> {
        if let Some((came, matched)) = plan.shortfall() {
            log::warn!("{matched} records matched, {came} different ones came");
        }
        if certainty == Certainty::Told {
            let why = "the catalogue's list kept moving, or does not hold what it says it matches";
            log::warn!("{why}: the next run reads this window again");
            self.held = Some(why.to_owned());
        }
        let doubtful = |dialect: &Dialect| dialect.clock.is_none() || (dialect.clock == Some(Clock::Record) && !dialect.clock_sure);
        let unknown = self.dialect.as_ref().is_some_and(doubtful);
        let provisional = self.dialect.as_ref().is_some_and(Dialect::is_provisional);
        // Whoever read everything may ask a little more, and where the clock stays unknown each run has to.
        let news = self.counters.new + self.counters.updated > 0 || !plan.is_filtered();
        if !provisional && ((unknown && news) || plan.contradicted()) {
            self.calibrate(plan)?;
        }
        let skipped = self.skipped_before + self.counters.skipped;
        if self.job.strictness == Strictness::Strict && skipped > 0 {
            return Err(Error::Strict { problems: skipped });
        }
        Ok(())
    }

    /// Clock *server*: counts the changes that the exact watermark would have brought as well as one with a margin of days.
    fn weigh_margin(&mut self, state: &SourceState, plan: &Plan) -> Result<(), Error> {
        let Some(dialect) = &mut self.dialect else { return Ok(()) };
        dialect.matched_is_total = plan.matched_is_total();
        let weighable = dialect.clock == Some(Clock::Server) && !dialect.days_only && dialect.exact_changes < EXACT_CHANGES_MIN;
        if !weighable || !plan.is_filtered() || !plan.is_quiet() {
            return Ok(());
        }
        let changed = self.store.changed_in_run(&self.job.source, self.job.page_size)?;
        if changed.is_empty() {
            return Ok(());
        }
        let brought = negotiate::brings_all(self.catalogue, dialect, &state.watermark, &changed, self.job.page_size)?;
        let changed = u32::try_from(changed.len()).unwrap_or(u32::MAX);
        dialect.exact_changes = if brought { dialect.exact_changes.saturating_add(changed) } else { 0 };
        Ok(())
    }

    fn calibrate(&mut self, plan: &Plan) -> Result<(), Error> {
        let Some(mut dialect) = self.dialect.clone() else { return Ok(()) };
        let before = dialect.clock.take();
        // A record came that is older than the bound: the catalogue may read a date-time as something earlier (Esri: its month's start).
        dialect.days_only |= before == Some(Clock::Record) && plan.contradicted();
        let missing = if plan.is_filtered() { self.missing(&dialect)? } else { plan.unheld() };
        let own = Own { store: self.store, source: &self.job.source };
        let started = self.started.unwrap_or_else(|| micros_from(self.time.now()));
        negotiate::calibrate(self.catalogue, &mut dialect, &own, plan.shapes(), started, missing)?;
        if dialect.clock != before {
            match dialect.clock {
                Some(Clock::Record) => log::info!("the filter follows the stamps that the records show"),
                Some(Clock::Server) => {
                    log::info!("the filter follows the catalogue's own clock, not the stamps that the records show")
                }
                Some(Clock::None) => log::warn!("no filter on a modified date works: every run has to read everything"),
                None => log::info!("whose clock the filter follows cannot be told yet"),
            }
        }
        self.dialect = Some(dialect);
        Ok(())
    }

    /// How many records the catalogue counts and the store does not hold.
    fn missing(&mut self, dialect: &Dialect) -> Result<u64, Error> {
        let answer = self.catalogue.get_records(dialect, &Query::hits(Window::default()), Patience::Short)?;
        let held = self.store.count_records(&self.job.source)?;
        Ok(answer.results.matched.unwrap_or(0).saturating_sub(held))
    }

    fn why(&mut self, cause: Cause) -> Error {
        let why = "the catalogue sends the same records over and over, or none where more are to follow";
        let endless = || Error::Endless(format!("{}: {why}", self.job.source));
        match cause {
            Cause::Unwell => self.last_failure.take().map_or_else(endless, Error::from),
            Cause::Endless => endless(),
        }
    }

    /// Decides on what was put off.
    fn settle(&mut self) -> Result<(), Error> {
        let counts = self.store.settle_deferred(&self.job.source, &self.time.now_text())?;
        self.count(counts);
        Ok(())
    }
}

/// The store's stamps of one source, for the calibration.
struct Own<'a> {
    store: &'a Store,
    source: &'a str,
}

impl OwnStamps for Own<'_> {
    fn median(&self, before: Micros) -> Result<Option<String>, StoreError> {
        Ok(self.store.median_modified_between(self.source, 1, before)?.map(|(_, text)| text))
    }

    fn count_before(&self, befores: [Micros; 3]) -> Result<[u64; 3], StoreError> {
        self.store.count_modified_between(self.source, 1, befores)
    }
}

/// Kinds of failure that a remembered dialect may be to blame for.
fn may_be_forgotten_words(kind: FailureKind) -> bool {
    matches!(kind, FailureKind::Dialect | FailureKind::Report | FailureKind::NotCsw | FailureKind::BadPage)
}

/// A sound record as it is written.
fn write_of<'r>(record: &Record<'r>, identifier: &'r str, interval: Option<Interval>, known_in_run: bool) -> RecordWrite<'r> {
    RecordWrite {
        identifier,
        title: record.title,
        modified: record.modified,
        modified_at: interval.map(|interval| interval.nominal),
        modified_until: interval.map(|interval| interval.end),
        xml: record.xml,
        known_in_run,
    }
}

fn place_of(identifier: &str) -> String {
    format!("id:{identifier}")
}

fn place_of_position(bad: &BadPosition) -> String {
    match bad.lower.as_str() {
        "" => format!("position {}", bad.position),
        lower => format!("position {} of what is newer than {lower}", bad.position),
    }
}

/// Names an element without identifier by its content, so that the next run finds the same name.
fn place_of_anonymous(xml: &str) -> String {
    format!("element {:016x}", stable_hash(xml))
}
