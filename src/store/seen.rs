//! Which identifiers have been met in this run, in which phase and pass, and with which stamp.
//!
//! Hashes in a ledger (`ledger.rs`): a few bytes an identifier, so that a catalogue of millions costs disk and not memory.
//! They end with the connection. What a reading of everything has met is kept beside its cursor as well (`met`, a row a page, in the
//! page's transaction), so that a run that resumes it can still tell in the end what it did not meet. With 64 bits two of a million
//! identifiers share a hash once in some 37 million runs; the second of them would then be taken for known. Stores no record.

use rusqlite::{Connection, params};

use super::ledger::Ledger;
use super::{Store, StoreError};
use crate::plan::Seen;
use crate::stable_hash::stable_hash;

/// Phases lie that far apart in the column `pass`; a plan has a handful of passes.
const PHASE_PASSES: u32 = 1_000;
/// Bytes of an entry in the table `met`: hash, stamp, pass.
const ENTRY_BYTES: usize = 20;

const KEEP: &str = "INSERT INTO met (source, phase, entries) VALUES (?1, ?2, ?3)";
const KEPT: &str = "SELECT entries FROM met WHERE source = ?1 AND phase = ?2 ORDER BY id";
const DROP_KEPT: &str = "DELETE FROM met WHERE source = ?1 AND phase = ?2";

/// Why something is read. A run has both phases at the most, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// What changed, or everything.
    Window,
    /// The inventory: everything once more.
    Inventory,
}

impl Phase {
    pub(super) const fn column(self) -> u32 {
        match self {
            Phase::Window => 0,
            Phase::Inventory => 1,
        }
    }

    /// The least number that the column `pass` holds of it; a record that was disowned has this very number.
    const fn base(self) -> u32 {
        self.column() * PHASE_PASSES
    }
}

/// Where a run stands: a phase, and a pass of its plan, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    /// The phase.
    pub phase: Phase,
    /// The number of the pass.
    pub number: u32,
}

impl Pass {
    fn column(self) -> u32 {
        self.phase.base() + self.number.min(PHASE_PASSES - 1)
    }
}

/// How an identifier had been met before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meeting {
    /// In this phase.
    pub seen: Seen,
    /// Whether in this run at all.
    pub known_in_run: bool,
}

/// What was met since the last commit, if it is to be kept.
#[derive(Debug, Default)]
pub(super) struct Diary {
    /// Of whose reading.
    pub(super) phase: Option<Phase>,
    entries: Vec<u8>,
}

impl Store {
    /// Marks identifiers, each with its stamp as delivered, as met in this pass, and says of each, in order, how it had been met before:
    /// in an earlier call, or earlier in this one. Works alike in a dry run; where [`Store::keep_met`] was asked for, it becomes part of
    /// the next page's transaction too.
    pub fn mark_seen<'a>(&mut self, pass: Pass, met: impl Iterator<Item = (&'a str, &'a str)>) -> Result<Vec<Meeting>, StoreError> {
        let marked = mark(&self.connection, &mut self.ledger, &mut self.diary, pass, met);
        marked.map_err(|error| self.failed(&error))
    }

    /// Takes back that identifiers were met in the present pass: they count as met earlier in this phase.
    pub fn disown_seen<'a>(&mut self, phase: Phase, identifiers: impl Iterator<Item = &'a str>) -> Result<(), StoreError> {
        let disowned = disown(&self.connection, &mut self.ledger, &mut self.diary, phase, identifiers);
        disowned.map_err(|error| self.failed(&error))
    }

    /// Forgets all that were met: a run begins.
    pub fn forget_seen(&mut self) -> Result<(), StoreError> {
        self.diary = Diary::default();
        let forgotten = self.ledger.forget(&self.connection);
        forgotten.map_err(|error| self.failed(&error))
    }

    /// Whether anything was met in this phase.
    pub fn met_any(&mut self, phase: Phase) -> Result<bool, StoreError> {
        let any = self.ledger.has_any(&self.connection, phase.base());
        any.map_err(|error| self.failed(&error))
    }

    /// From now on what is met is kept with each page, for a run that resumes this reading; `None`: not any more.
    pub fn keep_met(&mut self, phase: Option<Phase>) {
        self.diary = Diary { phase, entries: Vec::new() };
    }

    /// Brings back what the unfinished reading had met.
    pub fn recall_met(&mut self, source: &str, phase: Phase) -> Result<(), StoreError> {
        if let Some(marks) = &mut self.run {
            marks.met_unheld = true;
        }
        let recalled = recall(&self.connection, &mut self.ledger, source, phase);
        recalled.map_err(|error| self.failed(&error))
    }
}

fn mark<'a>(
    connection: &Connection,
    ledger: &mut Ledger,
    diary: &mut Diary,
    pass: Pass,
    met: impl Iterator<Item = (&'a str, &'a str)>,
) -> rusqlite::Result<Vec<Meeting>> {
    let (base, column) = (pass.phase.base(), pass.column());
    let mut meetings = Vec::with_capacity(met.size_hint().0);
    for (identifier, stamp) in met {
        let (hash, stamp) = (hash_of(identifier), hash_of(stamp));
        let before = ledger.find(connection, hash)?;
        let seen = match before {
            None => Seen::New,
            Some((_, before)) if before < base => Seen::New,
            Some((_, before)) if before != column => Seen::Earlier,
            Some((before, _)) if before == stamp => Seen::Here,
            Some(_) => Seen::Restamped,
        };
        meetings.push(Meeting { seen, known_in_run: before.is_some() });
        if before != Some((stamp, column)) {
            ledger.put(connection, hash, (stamp, column))?;
            diary.write(hash, stamp, column);
        }
    }
    Ok(meetings)
}

fn disown<'a>(
    connection: &Connection,
    ledger: &mut Ledger,
    diary: &mut Diary,
    phase: Phase,
    identifiers: impl Iterator<Item = &'a str>,
) -> rusqlite::Result<()> {
    for identifier in identifiers {
        let hash = hash_of(identifier);
        if let Some((stamp, _)) = ledger.find(connection, hash)? {
            ledger.put(connection, hash, (stamp, phase.base()))?;
        }
        diary.write(hash, 0, phase.base());
    }
    Ok(())
}

fn recall(connection: &Connection, ledger: &mut Ledger, source: &str, phase: Phase) -> rusqlite::Result<()> {
    let mut kept = connection.prepare_cached(KEPT)?;
    let mut rows = kept.query(params![source, phase.column()])?;
    while let Some(row) = rows.next()? {
        let entries = row.get_ref(0)?.as_blob()?;
        for entry in entries.chunks_exact(ENTRY_BYTES) {
            let (Some(hash), Some(stamp), Some(pass)) = (number(entry, 0), number(entry, 8), pass_of(entry)) else { continue };
            ledger.put(connection, hash, (stamp, pass))?;
        }
    }
    Ok(())
}

fn number(entry: &[u8], offset: usize) -> Option<i64> {
    Some(i64::from_le_bytes(entry.get(offset..offset + 8)?.try_into().ok()?))
}

fn pass_of(entry: &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(entry.get(16..)?.try_into().ok()?))
}

impl Diary {
    fn write(&mut self, hash: i64, stamp: i64, pass: u32) {
        if self.phase.is_some() {
            self.entries.extend_from_slice(&hash.to_le_bytes());
            self.entries.extend_from_slice(&stamp.to_le_bytes());
            self.entries.extend_from_slice(&pass.to_le_bytes());
        }
    }

    /// Puts what was met since the last time into the page's transaction.
    pub(super) fn keep(&self, connection: &Connection, source: &str) -> rusqlite::Result<()> {
        if let (Some(phase), false) = (self.phase, self.entries.is_empty()) {
            connection.prepare_cached(KEEP)?.execute(params![source, phase.column(), self.entries])?;
        }
        Ok(())
    }

    /// The transaction is committed.
    pub(super) fn turn_page(&mut self) {
        self.entries.clear();
    }
}

/// Forgets what an unfinished reading had met: it is finished, or begins anew.
pub(super) fn drop_kept(connection: &Connection, source: &str, phase: Phase) -> rusqlite::Result<()> {
    connection.prepare_cached(DROP_KEPT)?.execute(params![source, phase.column()])?;
    Ok(())
}

/// An inventory begins anew: what one before it in this run has met is known to the run, and no more.
pub(super) fn forget_inventory(connection: &Connection, ledger: &mut Ledger) -> rusqlite::Result<()> {
    ledger.lower(connection, Phase::Inventory.base(), 1)
}

/// How many identifiers were met in this phase; of those that share a hash, one.
pub(super) fn count_met(connection: &Connection, ledger: &mut Ledger, phase: Phase) -> rusqlite::Result<u64> {
    ledger.count(connection, phase.base())
}

/// Whether an identifier was met in this phase.
pub(super) fn is_met(connection: &Connection, ledger: &Ledger, phase: Phase, identifier: &str) -> rusqlite::Result<bool> {
    let entry = ledger.find(connection, hash_of(identifier))?;
    Ok(entry.is_some_and(|(_, pass)| pass >= phase.base()))
}

fn hash_of(text: &str) -> i64 {
    stable_hash(text).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{NOW, Place, SOURCE, page};
    use super::*;
    use crate::store::Mode;

    fn window(number: u32) -> Pass {
        Pass { phase: Phase::Window, number }
    }

    fn seen(store: &mut Store, pass: Pass, met: &[(&str, &str)]) -> Vec<Seen> {
        store.mark_seen(pass, met.iter().copied()).unwrap().iter().map(|meeting| meeting.seen).collect()
    }

    #[test]
    fn a_second_meeting_tells_its_pass_and_whether_the_stamp_stayed() {
        let mut store = Store::in_memory().unwrap();
        let first = [("a", "1"), ("b", "1"), ("a", "1"), ("b", "2")];
        assert_eq!(seen(&mut store, window(1), &first), [Seen::New, Seen::New, Seen::Here, Seen::Restamped]);
        assert_eq!(seen(&mut store, window(1), &[("b", "2"), ("c", "")]), [Seen::Here, Seen::New]);
        assert_eq!(seen(&mut store, window(2), &[("b", "2"), ("b", "2")]), [Seen::Earlier, Seen::Here]);
        store.forget_seen().unwrap();
        assert_eq!(seen(&mut store, window(1), &[("a", "1")]), [Seen::New]);
    }

    #[test]
    fn what_the_window_met_is_new_to_the_inventory_and_known_to_the_run() {
        let mut store = Store::in_memory().unwrap();
        let inventory = Pass { phase: Phase::Inventory, number: 1 };
        assert_eq!(seen(&mut store, window(1), &[("a", "1"), ("b", "1")]), [Seen::New, Seen::New]);
        assert!(!store.met_any(Phase::Inventory).unwrap());
        let met = store.mark_seen(inventory, [("a", "1"), ("c", "1")].into_iter()).unwrap();
        let meeting = |known_in_run| Meeting { seen: Seen::New, known_in_run };
        assert_eq!(met, [meeting(true), meeting(false)]);
        assert_eq!(seen(&mut store, inventory, &[("a", "1")]), [Seen::Here]);
        store.disown_seen(Phase::Inventory, ["a"].into_iter()).unwrap();
        assert_eq!(seen(&mut store, inventory, &[("a", "1")]), [Seen::Earlier]);
        assert!(store.met_any(Phase::Inventory).unwrap());
        let met = |identifier| is_met(&store.connection, &store.ledger, Phase::Inventory, identifier).unwrap();
        assert!(met("a") && !met("b") && met("c"));
    }

    #[test]
    fn what_was_met_comes_back_as_far_as_its_pages_were_committed() {
        let place = Place::new();
        let (mut store, _) = place.begun();
        store.keep_met(Some(Phase::Window));
        seen(&mut store, window(1), &[("a", "1"), ("b", "1"), ("c", "1")]);
        store.disown_seen(Phase::Window, ["b"].into_iter()).unwrap();
        page(&mut store, &[("z", None, "z")], NOW);
        seen(&mut store, window(2), &[("a", "2"), ("d", "1")]);
        drop(store);
        let mut store = place.open();
        store.recall_met(SOURCE, Phase::Inventory).unwrap();
        assert!(!store.met_any(Phase::Window).unwrap());
        store.recall_met(SOURCE, Phase::Window).unwrap();
        let all = [("a", "1"), ("b", "1"), ("c", "2"), ("d", "1")];
        assert_eq!(seen(&mut store, window(1), &all), [Seen::Here, Seen::Earlier, Seen::Restamped, Seen::New]);
        drop_kept(&store.connection, SOURCE, Phase::Window).unwrap();
        store.forget_seen().unwrap();
        store.recall_met(SOURCE, Phase::Window).unwrap();
        assert!(!store.met_any(Phase::Window).unwrap());
    }

    #[test]
    fn a_hundred_thousand_identifiers_are_told_apart() {
        let mut store = Store::in_memory().unwrap();
        let names: Vec<String> = (0..100_000).map(|n| format!("urn:uuid:{n:08}")).collect();
        for page in names.chunks(1000) {
            let met = store.mark_seen(window(1), page.iter().map(|name| (name.as_str(), "s"))).unwrap();
            assert!(met.iter().all(|seen| seen.seen == Seen::New));
        }
        let met = store.mark_seen(window(1), names.iter().map(|name| (name.as_str(), "s"))).unwrap();
        assert!(met.iter().all(|seen| seen.seen == Seen::Here));
    }

    #[test]
    fn marking_needs_no_lock_on_the_store_and_works_in_a_dry_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        let mut store = Store::open(&path, Mode::ReadWrite).unwrap();
        let mut dry = Store::open(&path, Mode::DryRun).unwrap();
        let other = rusqlite::Connection::open(&path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        assert_eq!(seen(&mut store, window(1), &[("a", "")]), [Seen::New]);
        assert_eq!(seen(&mut dry, window(1), &[("a", ""), ("a", "")]), [Seen::New, Seen::Here]);
    }
}
