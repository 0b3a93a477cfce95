//! The inventory: everything that the catalogue holds, compared with what the store holds.
//!
//! A reading of everything is an inventory at no further cost. Otherwise the catalogue is counted, and when the count does not fit, it is
//! listed in the element set that shows identifiers and stamps cheapest; what is missing or differs is asked for by identifier, page by
//! page. Once a week, and on demand, everything is read in full instead: only that shows a change that leaves the stamp as it was. Element
//! sets are mixed only as far as identifiers and stamps go, output schemas never: the same record has other stamps there, and another
//! identifier in some catalogues.
//!
//! Nothing is taken for deleted unless the list was read to its end without doubt. Few records are each asked for before they go, many
//! only go after a reading in full has not met them either, and very many need somebody's word. A fault on the way deletes nothing.

use std::collections::{HashMap, HashSet};

use super::lookup::{Found, Lookup};
use super::{Harvest, NAMELESS, Read, may_be_forgotten_words, place_of, place_of_anonymous, write_of};
use crate::catalogue::{Failure, FailureKind, Patience};
use crate::cli::Strictness;
use crate::csw::response::Record;
use crate::csw::{ElementSet, Query, Window};
use crate::dialect::{Clock, Dialect};
use crate::error::Error;
use crate::http::escape_outside_text;
use crate::plan::{Certainty, Plan, Step};
use crate::reconcile::{ASKED_MAX, MassDeletion, Past, Reconcile, gap, is_mass_deletion};
use crate::store::{
    Gone, HeldStamp, InventoryEnd, LastInventory, PageCounts, PageWrite, Phase, RecordWrite, SourceState, StoredInventory,
};
use crate::timestamp::{self, Micros, SECOND, Shapes, micros_from};

/// How long an inventory that was cut off may be resumed.
const RESUME_AFTER_MAX: Micros = 86_400 * SECOND;
/// Records of a page whose stamps differ and whose contents do not, from which on stamps of this element set are not compared.
const VAIN_RECORDS: usize = 10;
/// Records asked for at a time before they go.
const ASKED_BATCH: u32 = 20;
/// What is said of a record that a list names and the catalogue does not give.
const NOT_GIVEN: &str = "listed, and not given when asked for by its identifier";

/// What is known of an inventory while records are listed and not read.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pages: u64,
    /// Records that showed a stamp.
    stamped: u64,
    /// Stamps of this element set are not those of the full one.
    vain: bool,
    /// Nothing can be concluded from this list.
    of_no_use: bool,
}

impl Listing {
    /// Whether everything has to be read in full instead.
    pub(super) const fn is_of_no_use(&self) -> bool {
        self.of_no_use
    }

    /// Whether a listed record has to be asked for.
    fn differs(&mut self, listed: &Record<'_>, held: Option<&HeldStamp>) -> bool {
        self.stamped += u64::from(listed.modified.is_some());
        let Some(held) = held else { return true };
        // The full element set showed a stamp, and this one shows none at all.
        self.of_no_use |= self.stamped == 0 && held.modified.is_some();
        !self.vain && !held.twin && held.modified.as_deref() != listed.modified
    }
}

/// What came of a list.
enum Conclusion {
    Reached,
    /// Everything has to be read in full before anything can be concluded.
    ReadInFull,
}

impl Harvest<'_> {
    /// After a window was read: compares everything, if it is time for that.
    pub(super) fn reconcile(&mut self, state: &SourceState, read: &Read) -> Result<(), Error> {
        if self.job.reconcile == Reconcile::Never {
            return Ok(());
        }
        self.settle()?;
        if read.full {
            if self.store.unfinished_inventory(&self.job.source)?.is_some() {
                self.store.forget_inventory(&self.job.source)?;
            }
            self.conclude(state, read, &PageCounts::default())?;
        } else if let Some(element_set) = self.due(state, read)? {
            self.take_inventory(state, element_set)?;
        }
        Ok(())
    }

    /// Whether an inventory is due, and how much of each record it needs.
    fn due(&mut self, state: &SourceState, read: &Read) -> Result<Option<ElementSet>, Error> {
        let now = micros_from(self.time.now());
        let past = past_of(&state.inventory);
        let ordered = self.job.reconcile == Reconcile::Always;
        if let Some(unfinished) = self.store.unfinished_inventory(&self.job.source)? {
            let fresh = instant(&unfinished.began_at).is_some_and(|began| now - began < RESUME_AFTER_MAX && began <= now);
            match ElementSet::named(&unfinished.element_set).filter(|_| fresh) {
                Some(element_set) if !ordered => return Ok(Some(element_set)),
                // By order all of it is compared now, and not what was left of an earlier one.
                _ => self.store.forget_inventory(&self.job.source)?,
            }
        }
        if ordered || past.is_old(now) {
            return Ok(Some(ElementSet::Full));
        }
        let contradicted = read.certainty == Certainty::Sure && self.is_contradicted(&past, read, now)?;
        Ok(contradicted.then_some(ElementSet::Summary))
    }

    /// Whether the catalogue counts other than what is held and known to be missing.
    fn is_contradicted(&mut self, past: &Past, read: &Read, now: Micros) -> Result<bool, Error> {
        let held = self.store.count_records(&self.job.source)?;
        let Some(counted) = self.count_of(Window::default())? else { return Ok(false) };
        // A count that was never seen to be of more than the page says something only where it is of more than one now, or where a page may
        // be all there is. What was seen may be unlearnt by a record that came between the count and the page (pycsw asks twice).
        let page_size = u64::from(self.job.page_size);
        let counts = |dialect: &Dialect| dialect.matched_is_total || counted > page_size || held <= page_size;
        if !self.dialect.as_ref().is_some_and(counts) {
            return Ok(false);
        }
        let found = gap(counted, held);
        if !past.is_contradicted(found, now) {
            return Ok(false);
        }
        let more = found.saturating_sub(past.gap.unwrap_or(0));
        if more > 0 && read.came.is_some() {
            // What was inserted since the window was read is for the next run.
            let inserted = self.count_of(read.window.clone())?.zip(read.came).map(|(counted, came)| gap(counted, came));
            return Ok(inserted != Some(more));
        }
        Ok(true)
    }

    /// How many records the catalogue counts; `None` when it does not say.
    fn count_of(&mut self, window: Window) -> Result<Option<u64>, Error> {
        match self.get_records(&Query::hits(window), Patience::Short) {
            Ok(answer) => Ok(answer.results.matched),
            Err(failure) if is_final(failure.kind) => Err(failure.into()),
            Err(failure) => {
                log::warn!("{}; the catalogue could not be counted, deletions are looked for by the next run", failure.message);
                Ok(None)
            }
        }
    }

    fn take_inventory(&mut self, state: &SourceState, element_set: ElementSet) -> Result<(), Error> {
        if let Conclusion::ReadInFull = self.list_everything(state, element_set)? {
            self.list_everything(state, ElementSet::Full)?;
        }
        Ok(())
    }

    fn list_everything(&mut self, state: &SourceState, element_set: ElementSet) -> Result<Conclusion, Error> {
        let Some(dialect) = self.dialect.clone() else { return Ok(Conclusion::Reached) };
        self.phase = Phase::Inventory;
        self.listing = (element_set != ElementSet::Full).then(Listing::default);
        let order = self.order(&dialect, Window::default(), element_set, Shapes::default());
        let unfinished = self.store.unfinished_inventory(&self.job.source)?;
        let unfinished = unfinished.filter(|unfinished| unfinished.element_set == element_set.as_str());
        let mut plan = match unfinished.and_then(|unfinished| Plan::resume(&order, &unfinished.plan)) {
            Some(plan) => {
                log::info!("going on with the inventory of {}", self.job.source);
                // The window is read and settled: there is nothing to resume in it.
                self.store.forget_cursor(&self.job.source)?;
                self.recall(&plan)?;
                plan
            }
            None => {
                log::info!("taking an inventory of {} ({} records)", self.job.source, element_set.as_str());
                let plan = Plan::new(order);
                let inventory = StoredInventory {
                    element_set: element_set.as_str().to_owned(),
                    plan: plan.cursor(),
                    began_at: self.time.now_text(),
                };
                self.store.begin_inventory(&self.job.source, &inventory)?;
                plan
            }
        };
        let before = self.counters;
        self.store.keep_met(Some(Phase::Inventory));
        let certainty = self.read_window(&mut plan);
        self.store.keep_met(None);
        self.tell_bad_positions(&mut plan)?;
        if certainty.is_ok() {
            self.settle()?;
        }
        if self.listing.as_ref().is_some_and(Listing::is_of_no_use) {
            return Ok(Conclusion::ReadInFull);
        }
        let certainty = match certainty {
            Err(Error::Catalogue(failure)) if self.is_refused(&failure) => {
                log::info!("{}; the inventory reads the records in full", failure.message);
                return Ok(Conclusion::ReadInFull);
            }
            certainty => certainty?,
        };
        let found = PageCounts {
            new: self.counters.new - before.new,
            updated: self.counters.updated.saturating_sub(before.updated),
            ..PageCounts::default()
        };
        if self.job.strictness == Strictness::Strict && self.counters.skipped > 0 {
            return Err(Error::Strict { problems: self.counters.skipped });
        }
        let read = self.read_of(&plan, certainty);
        self.conclude(state, &read, &found)
    }

    /// Whether a list of this element set cannot be had at all.
    fn is_refused(&self, failure: &Failure) -> bool {
        self.listing.as_ref().is_some_and(|listing| listing.pages == 0) && may_be_forgotten_words(failure.kind)
    }

    /// A page of an inventory that lists: asks for what is missing or differs, and commits that with the place in the list.
    pub(super) fn take_listed(&mut self, plan: &mut Plan, records: &[Record<'_>], known: &[bool]) -> Result<(), Error> {
        let named: Vec<(&Record<'_>, &str)> = records.iter().filter_map(|record| Some((record, record.identifier?))).collect();
        let held = self.store.held_stamps(&self.job.source, named.iter().map(|(_, identifier)| *identifier))?;
        let listing = self.listing.get_or_insert_default();
        let (mut wanted, mut chosen) = (Vec::new(), HashSet::new());
        let nameless = records.iter().filter(|record| record.identifier.is_none());
        let nameless = nameless.map(|record| (place_of_anonymous(record.xml), NAMELESS));
        for ((record, identifier), held) in named.iter().zip(&held) {
            if listing.differs(record, held.as_ref()) && chosen.insert(*identifier) {
                wanted.push(*identifier);
            }
        }
        if listing.of_no_use {
            return Ok(());
        }
        listing.pages += 1;
        let found = self.look_up(&wanted)?;
        if self.lookup.is_of_no_use() && !wanted.is_empty() {
            log::info!("records cannot be asked for by identifier; the inventory reads them in full");
            self.listing.get_or_insert_default().of_no_use = true;
            return Ok(());
        }
        if let (true, Some((_, failure))) = (found.gave_up(), found.failed.last()) {
            // If the catalogue is unwell, that shows there too.
            log::warn!("{}; the inventory reads the records in full", failure.message);
            self.listing.get_or_insert_default().of_no_use = true;
            return Ok(());
        }
        if let (Step::Ask(next), Some(dialect)) = (plan.step(), &self.dialect) {
            self.catalogue.begin(dialect, &next);
        }
        let given = found.identifiers();
        let flaws: Vec<(String, &str)> = wanted
            .iter()
            .filter(|identifier| !given.contains(*identifier))
            .map(|identifier| (place_of(identifier), why_not_given(&found.failed, identifier)))
            .chain(nameless)
            .collect();
        let known: HashMap<&str, bool> =
            records.iter().zip(known).filter_map(|(record, known)| Some((record.identifier?, *known))).collect();
        let whole: Vec<Record<'_>> = found.answers.iter().flat_map(|answer| answer.iter()).collect();
        let rows = whole.iter().map(|record| {
            let known = record.identifier.and_then(|identifier| known.get(identifier)).copied().unwrap_or(false);
            (record, record.modified.and_then(timestamp::parse), known)
        });
        let counts = self.write(plan, rows, flaws)?;
        // What is older than the record held is put off, and counts as nothing yet.
        let in_vain = wanted.len() >= VAIN_RECORDS && counts.unchanged >= wanted.len() as u64;
        self.listing.get_or_insert_default().vain |= in_vain;
        Ok(())
    }

    /// After everything was read or listed: what did not come is gone.
    fn conclude(&mut self, state: &SourceState, read: &Read, found: &PageCounts) -> Result<Conclusion, Error> {
        // Before anything goes: a run that fails here deletes nothing.
        let counted = match self.dialect.as_ref().and_then(|dialect| dialect.clock) {
            Some(Clock::None) => None,
            _ => self.count_of(Window::default())?,
        };
        let deleted = match read.certainty {
            Certainty::Told => None,
            Certainty::Sure => {
                let gone = self.store.find_gone(&self.job.source, self.phase)?;
                match self.delete(&gone, read)? {
                    Verdict::ReadInFull => return Ok(Conclusion::ReadInFull),
                    Verdict::Unknown => None,
                    Verdict::Deleted(deleted) => Some(deleted),
                }
            }
        };
        let held = self.store.count_records(&self.job.source)?;
        let now = counted.map(|counted| gap(counted, held));
        let Some(deleted) = deleted else {
            log::warn!(
                "whether the catalogue has deleted records cannot be told: its list kept moving, or could not be read whole"
            );
            self.inventory = InventoryEnd::Tried { gap: now };
            return Ok(Conclusion::Reached);
        };
        let quiet = read.whole && read.matched == counted;
        let nothing = found.new + found.updated + deleted == 0;
        let known = if quiet || nothing { now } else { state.inventory.gap };
        if self.phase == Phase::Inventory || deleted > 0 {
            log::info!("inventory: {} records were missing, {} differed, {deleted} are deleted", found.new, found.updated);
        }
        self.inventory = InventoryEnd::Complete { gap: known, new: found.new, updated: found.updated, deleted };
        Ok(Conclusion::Reached)
    }

    fn delete(&mut self, gone: &Gone, read: &Read) -> Result<Verdict, Error> {
        if gone.gone == 0 {
            return Ok(Verdict::Deleted(0));
        }
        let empty = !self.store.met_any(self.phase)?;
        let is_mass = is_mass_deletion(gone.gone, gone.held, empty);
        if self.listing.is_some() && (is_mass || gone.gone >= ASKED_MAX) {
            log::info!("{} of {} records were not listed; everything is read in full before they go", gone.gone, gone.held);
            return Ok(Verdict::ReadInFull);
        }
        if is_mass && self.job.mass_deletion == MassDeletion::Refused {
            return Err(Error::MassDeletion { gone: gone.gone, held: gone.held, empty });
        }
        let each = gone.gone < ASKED_MAX || !read.whole || self.is_any_given(gone)?;
        if each && !self.ask_before_deleting(gone, read.whole)? {
            return Ok(Verdict::Unknown);
        }
        let mut deleted = 0;
        loop {
            self.stop.check()?;
            let buried = self.store.bury_some(&self.job.source, &self.time.now_text())?;
            if buried == 0 {
                return Ok(Verdict::Deleted(deleted));
            }
            deleted += buried;
            self.counters.deleted += buried;
        }
    }

    /// Whether the catalogue gives any of the first that were not met: then its lists lack what it holds, whatever they say.
    fn is_any_given(&mut self, gone: &Gone) -> Result<bool, Error> {
        if !self.gives_what_is_there(gone)? {
            return Ok(false);
        }
        let few = self.store.gone_after("", ASKED_BATCH)?;
        let found = self.look_up(&few.iter().map(String::as_str).collect::<Vec<_>>())?;
        Ok(!found.answers.is_empty() || !found.failed.is_empty())
    }

    /// Whether single records can be had: what is known to be there must be given, or else that nothing is given says nothing.
    fn gives_what_is_there(&mut self, gone: &Gone) -> Result<bool, Error> {
        let Some(met) = &gone.met else { return Ok(false) };
        if self.lookup.is_of_no_use() {
            // The list named records that were not given, which may have gone in between.
            self.lookup = Lookup::new(self.job.is_selective);
        }
        Ok(!self.look_up(&[met])?.answers.is_empty())
    }

    /// Asks for each record that was not met; what is given is kept, as it is given, and so is that of which it cannot be told. Whether the
    /// rest may go.
    ///
    /// `whole`: it may also go where such questions are not answered.
    fn ask_before_deleting(&mut self, gone: &Gone, whole: bool) -> Result<bool, Error> {
        if !self.gives_what_is_there(gone)? {
            return Ok(whole);
        }
        let mut after = String::new();
        loop {
            let batch = self.store.gone_after(&after, ASKED_BATCH)?;
            let Some(last) = batch.last() else { return Ok(true) };
            after.clone_from(last);
            let asked: Vec<&str> = batch.iter().map(String::as_str).collect();
            let found = self.look_up(&asked)?;
            self.keep_given(&found)?;
            if self.lookup.is_of_no_use() {
                return Ok(whole);
            }
            for (identifier, failure) in &found.failed {
                log::warn!("{}; {} stays", failure.message, escape_outside_text(identifier, 200));
            }
            self.store.spare(found.failed.iter().map(|(identifier, _)| identifier.as_str()))?;
            // Whoever gives nothing at all any more is unwell, and what it does not give says nothing.
            if found.gave_up() || found.answers.is_empty() {
                if !self.gives_what_is_there(gone)? {
                    let failure = found.failed.into_iter().last().map(|(_, failure)| Error::from(failure));
                    return failure.map_or(Ok(false), Err);
                }
                if found.gave_up() {
                    return Ok(false);
                }
            }
        }
    }

    fn keep_given(&mut self, found: &Found) -> Result<(), Error> {
        let records: Vec<Record<'_>> = found.answers.iter().flat_map(|answer| answer.iter()).collect();
        let sound = records.iter().filter(|record| record.flaw.is_none());
        let writes: Vec<RecordWrite<'_>> = sound
            .filter_map(|record| Some(write_of(record, record.identifier?, record.modified.and_then(timestamp::parse), false)))
            .collect();
        self.store.spare(records.iter().filter_map(|record| record.identifier))?;
        let counts = self.store.commit_page(&PageWrite {
            source: &self.job.source,
            records: &writes,
            harvested_at: &self.time.now_text(),
            cursor: None,
            problems: &[],
        })?;
        self.count(counts);
        Ok(())
    }
}

/// What became of the records that were not met.
enum Verdict {
    Deleted(u64),
    /// Whether they are gone cannot be told.
    Unknown,
    ReadInFull,
}

fn why_not_given<'a>(failed: &'a [(String, Failure)], identifier: &str) -> &'a str {
    failed.iter().find(|(failed, _)| failed == identifier).map_or(NOT_GIVEN, |(_, failure)| &failure.message)
}

/// Kinds of failure that end the run wherever they are met.
fn is_final(kind: FailureKind) -> bool {
    matches!(kind, FailureKind::Access | FailureKind::Unreachable | FailureKind::Stopped(_) | FailureKind::Fault)
}

fn instant(text: &str) -> Option<Micros> {
    timestamp::parse(text).map(|interval| interval.nominal)
}

fn past_of(inventory: &LastInventory) -> Past {
    Past {
        at: inventory.at.as_deref().and_then(instant),
        gap: inventory.gap,
        tried_at: inventory.tried_at.as_deref().and_then(instant),
        tried_gap: inventory.tried_gap,
    }
}
