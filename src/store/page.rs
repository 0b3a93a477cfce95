//! Writing a page: its records, its problems and the cursor to resume from, all in one transaction.
//!
//! Pages that come one soon after the other may share one: the index by identifiers is random, and each commit writes most of it
//! anew. What is not committed is lost to a kill together with its cursor, so that nothing is missed. When to commit is the caller's
//! to say.
//!
//! What differs from a held record is judged by `twins.rs`. What is put off lies in the table `deferred`, which belongs to the
//! page's transaction and so outlives a kill; the held content coming along later in the run settles it, and else the end of the
//! run does. Which pages are asked for, and which stamp may become the watermark, is decided elsewhere.

use rusqlite::{CachedStatement, Connection, OptionalExtension, params};

use super::overlay::{self, Face};
use super::run::RunMarks;
use super::seen::Diary;
use super::twins::{Age, Incoming, Kin, Met, Verdict, judge, one_each};
use super::{Store, StoreError};

/// A record as it was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordWrite<'a> {
    /// Its identifier, unique in the source.
    pub identifier: &'a str,
    /// Its title.
    pub title: Option<&'a str>,
    /// Its stamp as delivered.
    pub modified: Option<&'a str>,
    /// The stamp's instant in microseconds since 1970; `None` when it cannot be read.
    pub modified_at: Option<i64>,
    /// The first instant after what the stamp names, in microseconds since 1970.
    pub modified_until: Option<i64>,
    /// The record: UTF-8, well formed on its own.
    pub xml: &'a str,
    /// What [`Store::mark_seen`] said of the identifier.
    pub known_in_run: bool,
}

/// A record or position that could not be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProblemWrite<'a> {
    /// Where: `id:...` or `position ...`.
    pub place: &'a str,
    /// What came instead.
    pub why: &'a str,
}

/// Where the next run resumes if this one does not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CursorWrite<'a> {
    /// In the window.
    Window {
        /// The plan's own text.
        plan: &'a str,
        /// The newest settled stamp met so far.
        newest: Option<&'a str>,
        /// How many records and positions could not be had so far.
        skipped: u64,
    },
    /// In the inventory that has begun, see [`Store::begin_inventory`].
    Inventory {
        /// The plan's own text.
        plan: &'a str,
    },
}

/// A page, or whatever is to be committed as one.
#[derive(Clone, Copy, Debug)]
pub struct PageWrite<'a> {
    /// The source whose run has begun.
    pub source: &'a str,
    /// The records in the order of delivery.
    pub records: &'a [RecordWrite<'a>],
    /// Now, RFC 3339 in UTC.
    pub harvested_at: &'a str,
    /// `None` leaves the cursor where it was.
    pub cursor: Option<CursorWrite<'a>>,
    /// What could not be had.
    pub problems: &'a [ProblemWrite<'a>],
}

/// What a page did to the store. A record counts once a run, however often it is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCounts {
    /// Records that the store did not hold.
    pub new: u64,
    /// Records whose content changed.
    pub updated: u64,
    /// Records delivered as the store holds them.
    pub unchanged: u64,
    /// Of those counted as unchanged by an earlier page of this run, how many have changed since; they are among `updated` now.
    pub recounted: u64,
}

impl PageCounts {
    /// Adds a later page's counts where none of them is in a run's yet.
    pub fn join(&mut self, page: PageCounts) {
        self.new = self.new.saturating_add(page.new);
        self.updated = self.updated.saturating_add(page.updated);
        self.unchanged = self.unchanged.saturating_add(page.unchanged);
        self.recounted = self.recounted.saturating_add(page.recounted);
    }

    /// Adds a later page's counts to a run's. `recounted` is settled with `unchanged` and stays 0 in the sum.
    pub fn add(&mut self, page: PageCounts) {
        self.new = self.new.saturating_add(page.new);
        self.updated = self.updated.saturating_add(page.updated);
        self.unchanged = self.unchanged.saturating_add(page.unchanged).saturating_sub(page.recounted);
    }
}

const FIND: &str = "
SELECT id, modified_at, changed_seq, twin, title, modified, xml FROM records WHERE source = ?1 AND identifier = ?2";
const INSERT: &str = "
INSERT INTO records (source, identifier, title, modified, modified_at, harvested_at, changed_seq, twin, xml)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
ON CONFLICT (source, identifier) DO NOTHING";
const UPDATE: &str = "
UPDATE records SET title = ?2, modified = ?3, modified_at = ?4, harvested_at = ?5, changed_seq = ?6, xml = ?7 WHERE id = ?1";
const UPDATE_INSTANT: &str = "UPDATE records SET modified_at = ?2 WHERE id = ?1";
const MARK_TWIN: &str = "UPDATE records SET twin = 1 WHERE id = ?1";
const ANY_TOMBSTONE: &str = "SELECT EXISTS (SELECT 1 FROM tombstones WHERE source = ?1)";
const LEAVE_TOMBSTONE: &str = "DELETE FROM tombstones WHERE source = ?1 AND identifier = ?2";

const PROBLEM: &str = "
INSERT INTO problems (source, place, why, first_seen, last_seen, attempts, run) VALUES (?1, ?2, ?3, ?4, ?4, 1, ?5)
ON CONFLICT (source, place) DO UPDATE SET why = excluded.why, last_seen = excluded.last_seen,
    attempts = problems.attempts + (problems.run <> excluded.run), run = excluded.run";
const CURSOR: &str = "
INSERT INTO cursors (source, plan, newest, begin_seq, skipped) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (source) DO UPDATE SET plan = excluded.plan, newest = excluded.newest, skipped = excluded.skipped";
const INVENTORY: &str = "UPDATE inventories SET plan = ?2 WHERE source = ?1";
const SOLVED: &str = "DELETE FROM problems WHERE source = ?1 AND place = 'id:' || ?2 AND run <> ?3";

/// More changes than any store has: beyond it somebody else wrote the number.
const SEQUENCE_MAX: i64 = i64::MAX / 2;
const SEQUENCE: &str = "SELECT last FROM sequence";
const ADVANCE: &str = "UPDATE sequence SET last = ?1";

impl Store {
    /// Writes a page and commits it: all of it, or on an error nothing of it, see [`Store::write_page`].
    pub fn commit_page(&mut self, page: &PageWrite<'_>) -> Result<PageCounts, StoreError> {
        let counts = self.write_page(page)?;
        self.commit_pages()?;
        Ok(counts)
    }

    /// Writes a page, which is in the store once [`Store::commit_pages`] has succeeded; no other transaction may begin before. On an
    /// error all pages that were not committed are taken back.
    ///
    /// New records come in, changed ones are replaced, equal ones are not touched: `harvested_at` and `changed_seq` stay. Of one
    /// identifier delivered twice, the newer stamp wins; a readable one wins over none. What is older than the record held is
    /// put off until [`Store::settle_deferred`]. Fails with [`StoreError::Other`] when no run of the source has begun.
    pub fn write_page(&mut self, page: &PageWrite<'_>) -> Result<PageCounts, StoreError> {
        let mut marks = self.marks_of(page.source)?;
        let written = write_page(&self.connection, self.face, &mut marks, page, &self.diary);
        let counts = written.map_err(|error| {
            self.take_back_pages();
            self.failed(&error)
        })?;
        self.diary.turn_page();
        marks.met_unheld |= !page.problems.is_empty();
        self.run = Some(marks);
        Ok(counts)
    }

    /// Commits the pages that were written since the last time: all of them, or on an error none.
    pub fn commit_pages(&mut self) -> Result<(), StoreError> {
        overlay::close(&self.connection).map_err(|error| self.failed(&error))
    }

    /// Takes back the pages that are not committed, as the end of the process does.
    pub fn take_back_pages(&mut self) {
        overlay::give_up(&self.connection);
    }

    pub(super) fn marks_of(&self, source: &str) -> Result<RunMarks, StoreError> {
        let why = || format!("no run of {source} has begun");
        let marks = self.run.as_ref().filter(|marks| marks.source == source);
        marks.cloned().ok_or_else(|| StoreError::Other { path: self.path.clone(), why: why() })
    }
}

/// What the store holds under an identifier, compared with what has come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    id: i64,
    pub(super) modified_at: Option<i64>,
    changed_seq: i64,
    pub(super) kin: Kin,
    /// Title, stamp and XML are what has come.
    pub(super) same: bool,
    /// Another content of this identifier was put off.
    pub(super) deferred: bool,
}

/// A transaction at work.
pub(super) struct Writing<'t> {
    pub(super) connection: &'t Connection,
    pub(super) face: Face,
    pub(super) marks: &'t mut RunMarks,
    pub(super) harvested_at: &'t str,
    /// The last `changed_seq` given out.
    pub(super) sequence: i64,
    pub(super) counts: PageCounts,
    find: CachedStatement<'t>,
    insert: CachedStatement<'t>,
    /// The last record was new, as the next one is then: it goes in without a look whether it is there.
    expects_new: bool,
    /// Whether the source has tombstones; false spares the look-ups.
    tombstones: bool,
}

fn write_page(
    connection: &Connection,
    face: Face,
    marks: &mut RunMarks,
    page: &PageWrite<'_>,
    diary: &Diary,
) -> rusqlite::Result<PageCounts> {
    overlay::open(connection, face)?;
    let mut writing = Writing::begin(connection, face, marks, page.harvested_at)?;
    for incoming in one_each(page.records) {
        writing.record(&incoming)?;
    }
    writing.problems(page.problems)?;
    writing.position(page)?;
    diary.keep(connection, page.source)?;
    writing.end()
}

impl<'t> Writing<'t> {
    pub(super) fn begin(
        connection: &'t Connection,
        face: Face,
        marks: &'t mut RunMarks,
        harvested_at: &'t str,
    ) -> rusqlite::Result<Self> {
        let sequence = connection.prepare_cached(SEQUENCE)?.query_row([], |row| row.get(0))?;
        if !(0..=SEQUENCE_MAX).contains(&sequence) {
            return Err(rusqlite::Error::IntegralValueOutOfRange(0, sequence));
        }
        let tombstones = connection.prepare_cached(ANY_TOMBSTONE)?.query_row([marks.source.as_str()], |row| row.get(0))?;
        Ok(Self {
            connection,
            face,
            marks,
            harvested_at,
            sequence,
            counts: PageCounts::default(),
            find: connection.prepare_cached(FIND)?,
            insert: connection.prepare_cached(INSERT)?,
            expects_new: false,
            tombstones,
        })
    }

    /// Writes the sequence back, if it moved: a page without a change then writes nothing at all.
    pub(super) fn end(self) -> rusqlite::Result<PageCounts> {
        let counts = self.counts;
        let stored: i64 = self.connection.prepare_cached(SEQUENCE)?.query_row([], |row| row.get(0))?;
        if stored != self.sequence {
            self.connection.prepare_cached(ADVANCE)?.execute([self.sequence])?;
        }
        Ok(counts)
    }

    fn record(&mut self, incoming: &Incoming<'_>) -> rusqlite::Result<()> {
        let record = &incoming.record;
        if self.expects_new && self.insert(incoming)? {
            return Ok(());
        }
        let Some(held) = self.find(record)? else {
            // In a dry run a record that is held has to be lifted first.
            self.expects_new = self.insert(incoming)? && self.face == Face::Direct;
            return Ok(());
        };
        self.expects_new = false;
        if held.same {
            return self.unchanged(incoming, &held);
        }
        let met = self.met(record, &held);
        let kin = held.kin.max(incoming.kin);
        let verdict = judge(Age::of(record.modified_at, record.modified_until, held.modified_at), met, kin);
        match verdict {
            Verdict::Replace => {
                self.replace(record, &held)?;
                self.count_replaced(record, &held);
                self.drop_deferred(record.identifier, &held)?;
            }
            Verdict::Keep if !record.known_in_run => self.counts.unchanged += 1,
            Verdict::Keep => {}
            Verdict::Defer => self.defer(record)?,
        }
        // An ordinary edit between two readings is marked as well: that costs no more than putting off its next edit without a
        // new stamp.
        if incoming.kin == Kin::Twin || (met != Met::First && verdict != Verdict::Defer) {
            self.mark_twin(&held)?;
        }
        Ok(())
    }

    pub(super) fn find(&mut self, record: &RecordWrite<'_>) -> rusqlite::Result<Option<Held>> {
        overlay::lift(self.connection, self.face, &self.marks.source, record.identifier)?;
        let text = |row: &rusqlite::Row<'_>, column: usize, other: Option<&str>| -> rusqlite::Result<bool> {
            Ok(row.get_ref(column)?.as_str_or_null()? == other)
        };
        let deferred = self.is_deferred(record.identifier)?;
        self.find
            .query_row([self.marks.source.as_str(), record.identifier], |row| {
                Ok(Held {
                    id: row.get(0)?,
                    modified_at: row.get(1)?,
                    changed_seq: row.get(2)?,
                    kin: if row.get(3)? { Kin::Twin } else { Kin::Alone },
                    same: text(row, 4, record.title)? && text(row, 5, record.modified)? && text(row, 6, Some(record.xml))?,
                    deferred,
                })
            })
            .optional()
    }

    fn met(&self, record: &RecordWrite<'_>, held: &Held) -> Met {
        if held.changed_seq > self.marks.chain_seq {
            return Met::Written;
        }
        match (held.deferred, record.known_in_run) {
            (true, _) => Met::Deferred,
            (false, true) => Met::Confirmed,
            (false, false) => Met::First,
        }
    }

    /// Puts a record in, unless its identifier is there; says whether it went in.
    fn insert(&mut self, incoming: &Incoming<'_>) -> rusqlite::Result<bool> {
        let record = &incoming.record;
        let source = self.marks.source.as_str();
        let inserted = self.insert.execute(params![
            source,
            record.identifier,
            record.title,
            record.modified,
            record.modified_at,
            self.harvested_at,
            self.sequence + 1,
            incoming.kin == Kin::Twin,
            record.xml,
        ])?;
        if inserted == 0 {
            return Ok(false);
        }
        self.sequence += 1;
        self.counts.new += 1;
        if self.tombstones {
            self.connection.prepare_cached(LEAVE_TOMBSTONE)?.execute([source, record.identifier])?;
        }
        self.solve(record.identifier)?;
        Ok(true)
    }

    pub(super) fn replace(&mut self, record: &RecordWrite<'_>, held: &Held) -> rusqlite::Result<()> {
        self.sequence += 1;
        self.connection.prepare_cached(UPDATE)?.execute(params![
            held.id,
            record.title,
            record.modified,
            record.modified_at,
            self.harvested_at,
            self.sequence,
            record.xml,
        ])?;
        self.solve(record.identifier)
    }

    /// The record could be had after all.
    fn solve(&self, identifier: &str) -> rusqlite::Result<()> {
        if self.marks.problems {
            let row = params![self.marks.source, identifier, self.marks.run];
            self.connection.prepare_cached(SOLVED)?.execute(row)?;
        }
        Ok(())
    }

    /// What is held has come again. If another content was put off, then it was a twin's.
    fn unchanged(&mut self, incoming: &Incoming<'_>, held: &Held) -> rusqlite::Result<()> {
        let record = &incoming.record;
        if held.deferred || !record.known_in_run {
            self.counts.unchanged += 1;
        }
        if record.modified_at != held.modified_at {
            // The same text, understood differently by a later version of this program.
            self.connection.prepare_cached(UPDATE_INSTANT)?.execute(params![held.id, record.modified_at])?;
        }
        self.drop_deferred(record.identifier, held)?;
        if held.deferred || incoming.kin == Kin::Twin {
            self.mark_twin(held)?;
        }
        Ok(())
    }

    pub(super) fn count_replaced(&mut self, record: &RecordWrite<'_>, held: &Held) {
        if held.changed_seq > self.marks.run_seq {
            return;
        }
        self.counts.updated += 1;
        if record.known_in_run && !held.deferred {
            self.counts.recounted += 1;
        }
    }

    fn mark_twin(&self, held: &Held) -> rusqlite::Result<()> {
        if held.kin == Kin::Alone {
            self.connection.prepare_cached(MARK_TWIN)?.execute([held.id])?;
        }
        Ok(())
    }

    fn problems(&self, problems: &[ProblemWrite<'_>]) -> rusqlite::Result<()> {
        for problem in problems {
            let row = params![self.marks.source, problem.place, problem.why, self.harvested_at, self.marks.run];
            self.connection.prepare_cached(PROBLEM)?.execute(row)?;
        }
        Ok(())
    }

    fn position(&self, page: &PageWrite<'_>) -> rusqlite::Result<()> {
        match page.cursor {
            Some(CursorWrite::Window { plan, newest, skipped }) => {
                let skipped = i64::try_from(skipped).unwrap_or(i64::MAX);
                let row = params![page.source, plan, newest, self.marks.chain_seq, skipped];
                self.connection.prepare_cached(CURSOR)?.execute(row)?;
            }
            Some(CursorWrite::Inventory { plan }) => {
                self.connection.prepare_cached(INVENTORY)?.execute([page.source, plan])?;
            }
            None => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{
        NOW, Place, SOURCE, Short, begin, complete, contents, count, counted, owned, page, try_page, whole_run,
    };
    use super::*;
    use crate::store::RunEnd;

    const LATER: &str = "2026-07-11T00:00:00Z";
    const LATEST: &str = "2026-07-12T00:00:00Z";

    #[test]
    fn new_changed_and_equal_records_are_told_apart_and_equal_ones_are_not_touched() {
        let place = Place::new();
        let mut store = place.open();
        assert_eq!(whole_run(&mut store, &[&[("a", Some(1), "a1"), ("b", Some(1), "b1")]], NOW), counted(2, 0, 0));

        let second: &[Short<'_>] = &[("a", Some(1), "a1"), ("b", Some(2), "b2"), ("c", None, "c")];
        let counts = whole_run(&mut store, &[second], LATER);

        assert_eq!(counts, counted(1, 1, 1));
        let line = |identifier: &str, xml: &str, at: &str, seq| (identifier.to_string(), xml.to_string(), at.to_string(), seq);
        assert_eq!(place.lines(), [line("a", "a1", NOW, 1), line("b", "b2", LATER, 3), line("c", "c", LATER, 4)]);
        assert_eq!(count(&place.sql(), "SELECT last FROM sequence"), 4);
    }

    #[test]
    fn title_and_stamp_are_part_of_the_content() {
        let place = Place::new();
        let (mut store, run) = place.begun();
        let mut record = RecordWrite {
            identifier: "a",
            title: None,
            modified: None,
            modified_at: None,
            modified_until: None,
            xml: "x",
            known_in_run: false,
        };
        let write = |store: &mut Store, record| {
            let records = [record];
            let page = PageWrite { source: SOURCE, records: &records, harvested_at: NOW, cursor: None, problems: &[] };
            store.commit_page(&page).unwrap()
        };
        write(&mut store, record);
        store.finish_run(&complete(run)).unwrap();
        begin(&mut store);
        record.title = Some("");
        assert_eq!(write(&mut store, record).updated, 1);
        let run = begin(&mut store);
        record.modified = Some("2011");
        assert_eq!(write(&mut store, record).updated, 1);
        store.finish_run(&complete(run)).unwrap();
        begin(&mut store);
        // The instant is how the text is understood, not content.
        record.modified_at = Some(5);
        record.modified_until = Some(6);
        assert_eq!(write(&mut store, record), counted(0, 0, 1));
        assert_eq!(count(&place.sql(), "SELECT modified_at FROM records"), 5);
    }

    #[test]
    fn one_identifier_in_two_sources_is_two_rows() {
        let place = Place::new();
        let mut store = place.open();
        whole_run(&mut store, &[&[("a", Some(1), "ours")]], NOW);
        let other = "https://b.example/csw";
        store.begin_run(other, NOW, "").unwrap();
        let theirs = [RecordWrite {
            identifier: "a",
            title: None,
            modified: None,
            modified_at: None,
            modified_until: None,
            xml: "theirs",
            known_in_run: false,
        }];
        let page = PageWrite { source: other, records: &theirs, harvested_at: NOW, cursor: None, problems: &[] };
        assert_eq!(store.commit_page(&page).unwrap(), counted(1, 0, 0));
        assert_eq!(contents(&place.sql()), owned(&[("a", "ours"), ("a", "theirs")]));
        assert_eq!(store.count_records(other).unwrap(), 1);
    }

    #[test]
    fn of_one_identifier_twice_in_a_page_the_newer_is_stored_and_counted_once() {
        let old_and_new: [&[Short<'_>]; 2] =
            [&[("a", Some(20), "new"), ("a", Some(10), "old")], &[("a", Some(10), "old"), ("a", Some(20), "new")]];
        for records in old_and_new {
            let place = Place::new();
            let mut store = place.open();
            assert_eq!(whole_run(&mut store, &[records], NOW), counted(1, 0, 0));
            let first = place.lines();
            assert_eq!(contents(&place.sql()), owned(&[("a", "new")]));
            assert_eq!(whole_run(&mut store, &[records], LATER), counted(0, 0, 1));
            assert_eq!(place.lines(), first);
        }
    }

    #[test]
    fn twins_in_two_pages_keep_the_newer_whichever_comes_first_and_a_second_reading_changes_nothing() {
        let (old, new): (&[Short<'_>], &[Short<'_>]) = (&[("a", Some(10), "old")], &[("a", Some(20), "new")]);
        let (unread, read): (&[Short<'_>], &[Short<'_>]) = (&[("a", None, "old")], &[("a", Some(20), "new")]);
        for pages in [[old, new], [new, old], [unread, read], [read, unread]] {
            for again in [[pages[0], pages[1]], [pages[1], pages[0]]] {
                let place = Place::new();
                let mut store = place.open();
                assert_eq!(whole_run(&mut store, &pages, NOW), counted(1, 0, 0));
                assert_eq!(contents(&place.sql()), owned(&[("a", "new")]));
                let first = place.lines();
                for at in [LATER, LATEST] {
                    assert_eq!(whole_run(&mut store, &again, at), counted(0, 0, 1), "I3");
                    assert_eq!(place.lines(), first, "I3");
                }
            }
        }
    }

    #[test]
    fn a_twin_that_was_added_later_changes_nothing_when_both_are_read() {
        let place = Place::new();
        let mut store = place.open();
        whole_run(&mut store, &[&[("a", Some(10), "old")]], NOW);
        assert_eq!(whole_run(&mut store, &[&[("a", Some(20), "new")]], NOW), counted(0, 1, 0));
        let before = place.lines();
        assert_eq!(whole_run(&mut store, &[&[("a", Some(10), "old")], &[("a", Some(20), "new")]], LATER), counted(0, 0, 1));
        assert_eq!(place.lines(), before, "I3");
    }

    #[test]
    fn twins_of_one_stamp_stay_as_they_were_left() {
        let pages: [&[Short<'_>]; 2] = [&[("a", Some(10), "one")], &[("a", Some(10), "two")]];
        let place = Place::new();
        let mut store = place.open();
        assert_eq!(whole_run(&mut store, &pages, NOW), counted(1, 0, 0));
        let first = place.lines();
        assert_eq!(contents(&place.sql()), owned(&[("a", "two")]));
        assert_eq!(whole_run(&mut store, &pages, LATER), counted(0, 0, 1), "I3");
        assert_eq!(place.lines(), first, "I3");
        // In another order the last one stays, once, for it could as well be an edit in mid-run.
        let turned = [pages[1], pages[0]];
        assert_eq!(whole_run(&mut store, &turned, LATEST), counted(0, 1, 0));
        let second = place.lines();
        assert_eq!(whole_run(&mut store, &turned, LATEST), counted(0, 0, 1), "I3");
        assert_eq!(place.lines(), second, "I3");
    }

    #[test]
    fn a_change_without_a_new_stamp_is_taken_at_once_and_counted_once() {
        let place = Place::new();
        let mut store = place.open();
        whole_run(&mut store, &[&[("a", None, "1"), ("b", Some(1), "1")]], NOW);
        begin(&mut store);
        store.forget_seen().unwrap();
        assert_eq!(page(&mut store, &[("a", None, "2"), ("b", Some(1), "2")], LATER), counted(0, 2, 0));
        assert_eq!(page(&mut store, &[("a", None, "3"), ("b", Some(1), "2")], LATER), counted(0, 0, 0));
        assert_eq!(contents(&place.sql()), owned(&[("a", "3"), ("b", "2")]));
    }

    #[test]
    fn a_record_read_twice_in_a_run_counts_once_as_what_it_was_first() {
        let place = Place::new();
        let mut store = place.open();
        whole_run(&mut store, &[&[("a", Some(1), "1")]], NOW);
        begin(&mut store);
        store.forget_seen().unwrap();
        let mut counts = page(&mut store, &[("a", Some(1), "1"), ("n", Some(1), "1")], LATER);
        assert_eq!(counts, counted(1, 0, 1));
        counts.add(page(&mut store, &[("a", Some(2), "2"), ("n", Some(2), "2")], LATER));
        assert_eq!(counts, counted(1, 1, 0));
        counts.add(page(&mut store, &[("a", Some(3), "3"), ("n", Some(2), "2")], LATER));
        assert_eq!(counts, counted(1, 1, 0));
    }

    #[test]
    fn a_record_that_comes_back_leaves_its_tombstone() {
        let place = Place::new();
        let (mut store, _) = place.begun();
        let tombstones =
            "INSERT INTO tombstones VALUES (?1, 'a', '2020-01-01T00:00:00Z', 1), ('other', 'a', '2020-01-01T00:00:00Z', 2)";
        place.sql().execute(tombstones, [SOURCE]).unwrap();
        page(&mut store, &[("a", Some(1), "a")], NOW);
        assert_eq!(count(&place.sql(), "SELECT count(*) FROM tombstones"), 1);
        assert_eq!(count(&place.sql(), "SELECT count(*) FROM tombstones WHERE source = 'other'"), 1);
    }

    #[test]
    fn an_error_in_the_middle_of_a_page_leaves_nothing_of_it() {
        let place = Place::new();
        let (mut store, _) = place.begun();
        try_page(&mut store, &[("a", Some(1), "a")], NOW, Some("1")).unwrap();
        let before = place.lines();
        let trigger = "CREATE TEMP TRIGGER boom BEFORE INSERT ON main.records WHEN NEW.identifier = 'c' \
            BEGIN SELECT RAISE(ABORT, 'boom'); END";
        store.connection.execute_batch(trigger).unwrap();

        let error = try_page(&mut store, &[("a", Some(2), "a2"), ("b", None, "b"), ("c", None, "c")], LATER, Some("2"));

        assert!(matches!(error, Err(StoreError::Other { why, .. }) if why.contains("boom")));
        assert_eq!(place.lines(), before);
        assert_eq!(count(&place.sql(), "SELECT last FROM sequence"), 1);
        assert_eq!(store.source_state(SOURCE).unwrap().unwrap().cursor.unwrap().plan, "1");
        store.connection.execute_batch("DROP TRIGGER boom").unwrap();
        assert_eq!(page(&mut store, &[("c", None, "c")], LATER).new, 1);
    }

    #[test]
    fn a_full_disk_takes_back_the_page_and_leaves_the_store_usable() {
        let place = Place::new();
        let (mut store, _) = place.begun();
        page(&mut store, &[("a", Some(1), "a")], NOW);
        let before = place.lines();
        store.limit_pages(40).unwrap();
        let large = "x".repeat(300_000);

        let error =
            try_page(&mut store, &[("b", None, "b"), ("c", None, &large), ("d", None, &large), ("e", None, &large)], NOW, None);

        assert_eq!(error, Err(StoreError::Full { path: place.path() }));
        assert_eq!(place.lines(), before);
        assert_eq!(store.count_records(SOURCE).unwrap(), 1);
        assert_eq!(page(&mut store, &[("b", None, "b")], NOW).new, 1);
    }

    #[test]
    fn a_writer_that_waits_too_long_is_told_so_and_nothing_is_lost() {
        let place = Place::new();
        let (mut store, _) = place.begun();
        store.connection.busy_timeout(std::time::Duration::from_millis(1)).unwrap();
        let other = place.sql();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        assert_eq!(try_page(&mut store, &[("a", None, "a")], NOW, None), Err(StoreError::Busy { path: place.path() }));
        assert_eq!(store.count_records(SOURCE).unwrap(), 0);
        other.execute_batch("ROLLBACK").unwrap();
        assert_eq!(page(&mut store, &[("a", None, "a")], NOW).new, 1);
    }

    #[test]
    fn a_page_before_its_run_is_refused() {
        let place = Place::new();
        let mut store = place.open();
        assert!(matches!(try_page(&mut store, &[("a", None, "a")], NOW, None), Err(StoreError::Other { .. })));
        assert!(matches!(store.settle_deferred(SOURCE, NOW), Err(StoreError::Other { .. })));
    }

    #[test]
    fn a_sequence_that_was_never_given_out_is_damage() {
        let place = Place::new();
        let (mut store, _) = place.begun();
        page(&mut store, &[("a", None, "a")], NOW);
        for last in [i64::MAX, -1] {
            place.sql().execute("UPDATE sequence SET last = ?1", [last]).unwrap();
            let error = try_page(&mut store, &[("b", None, "b")], NOW, None);
            assert!(matches!(&error, Err(StoreError::Damaged { why, .. }) if why.contains(&last.to_string())), "{error:?}");
        }
        assert_eq!(store.count_records(SOURCE).unwrap(), 1);
    }

    #[test]
    fn a_store_that_dies_keeps_exactly_the_pages_that_were_committed() {
        let place = Place::new();
        let (mut store, _) = place.begun();
        try_page(&mut store, &[("a", Some(1), "a")], NOW, Some("1")).unwrap();
        try_page(&mut store, &[("b", Some(2), "b")], NOW, Some("2")).unwrap();
        let half = overlay::begin(&mut store.connection, Face::Direct).unwrap();
        half.execute("DELETE FROM records", []).unwrap();
        half.cache_flush().unwrap();
        let wreck = place.wreck();
        drop(half);

        let after = wreck.open();

        assert_eq!(after.count_records(SOURCE).unwrap(), 2);
        let cursor = after.source_state(SOURCE).unwrap().unwrap().cursor.unwrap();
        assert_eq!((cursor.plan.as_str(), cursor.newest.as_deref()), ("2", Some(NOW)));
        assert_eq!(count(&wreck.sql(), "SELECT count(*) FROM pragma_quick_check WHERE quick_check <> 'ok'"), 0);
    }

    /// Writes a page and leaves it uncommitted.
    fn write(store: &mut Store, identifier: &str, plan: &str) -> Result<PageCounts, StoreError> {
        let record = RecordWrite {
            identifier,
            title: None,
            modified: None,
            modified_at: None,
            modified_until: None,
            xml: identifier,
            known_in_run: false,
        };
        store.mark_seen(crate::store::Pass { phase: crate::store::Phase::Window, number: 1 }, [(identifier, "")].into_iter())?;
        let cursor = CursorWrite::Window { plan, newest: None, skipped: 0 };
        store.write_page(&PageWrite { source: SOURCE, records: &[record], harvested_at: NOW, cursor: Some(cursor), problems: &[] })
    }

    #[test]
    fn pages_that_share_a_commit_are_all_there_after_it_and_none_before() {
        let place = Place::new();
        let (mut store, _) = place.begun();
        try_page(&mut store, &[("a", None, "a")], NOW, Some("1")).unwrap();
        for (identifier, plan) in [("b", "2"), ("c", "3")] {
            assert_eq!(write(&mut store, identifier, plan).unwrap().new, 1);
        }
        let plan = |store: &Store| store.source_state(SOURCE).unwrap().unwrap().cursor.unwrap().plan;
        let before = place.wreck().open();
        assert_eq!((before.count_records(SOURCE).unwrap(), plan(&before).as_str()), (1, "1"));
        store.commit_pages().unwrap();
        let after = place.wreck().open();
        assert_eq!((after.count_records(SOURCE).unwrap(), plan(&after).as_str()), (3, "3"));
        store.commit_pages().unwrap();
        assert_eq!(page(&mut store, &[("d", None, "d")], NOW).new, 1);
    }

    #[test]
    fn an_error_takes_back_all_pages_that_wait_and_the_next_page_goes_in() {
        let place = Place::new();
        let (mut store, _) = place.begun();
        try_page(&mut store, &[("a", None, "a")], NOW, Some("1")).unwrap();
        let before = place.lines();
        let trigger = "CREATE TEMP TRIGGER boom BEFORE INSERT ON main.records WHEN NEW.identifier = 'c' \
            BEGIN SELECT RAISE(ABORT, 'boom'); END";
        store.connection.execute_batch(trigger).unwrap();
        write(&mut store, "b", "2").unwrap();
        assert!(matches!(write(&mut store, "c", "3"), Err(StoreError::Other { why, .. }) if why.contains("boom")));
        assert!(store.connection.is_autocommit());
        assert_eq!(place.lines(), before);
        write(&mut store, "d", "4").unwrap();
        store.commit_pages().unwrap();
        assert_eq!(contents(&place.sql()), owned(&[("a", "a"), ("d", "d")]));
    }

    #[test]
    fn identifiers_met_while_a_page_waits_go_to_their_table_as_well() {
        let place = Place::new();
        let (mut store, _) = place.begun();
        write(&mut store, "a", "1").unwrap();
        let pass = crate::store::Pass { phase: crate::store::Phase::Window, number: 1 };
        let many: Vec<String> = (0..30_000).map(|n| n.to_string()).collect();
        store.mark_seen(pass, many.iter().map(|identifier| (identifier.as_str(), ""))).unwrap();
        store.commit_pages().unwrap();
        let again = store.mark_seen(pass, ["a", "7", "new"].into_iter().map(|identifier| (identifier, ""))).unwrap();
        assert_eq!(again.iter().map(|meeting| meeting.known_in_run).collect::<Vec<_>>(), [true, true, false]);
    }

    #[test]
    fn a_problem_is_one_row_however_often_it_is_met() {
        let place = Place::new();
        let (mut store, run) = place.begun();
        let report = |store: &mut Store, why: &str, at: &str| {
            let problems = [ProblemWrite { place: "id:a", why }];
            let page = PageWrite { source: SOURCE, records: &[], harvested_at: at, cursor: None, problems: &problems };
            store.commit_page(&page).unwrap();
        };
        report(&mut store, "no title", NOW);
        report(&mut store, "no end", LATER);
        let row: (String, String, String, i64) = place
            .sql()
            .query_row("SELECT why, first_seen, last_seen, attempts FROM problems", [], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
            })
            .unwrap();
        assert_eq!(row, ("no end".to_string(), NOW.to_string(), LATER.to_string(), 1));
        let end = RunEnd { problems: crate::store::ProblemsEnd::DropUnmet, ..complete(run) };
        store.finish_run(&end).unwrap();
        assert_eq!(count(&place.sql(), "SELECT count(*) FROM problems"), 1);

        let run = store.begin_run(SOURCE, LATER, "w").unwrap();
        report(&mut store, "no end", LATER);
        assert_eq!(count(&place.sql(), "SELECT attempts FROM problems"), 2);
        store.finish_run(&RunEnd { problems: crate::store::ProblemsEnd::DropUnmet, ..complete(run) }).unwrap();
        assert_eq!(count(&place.sql(), "SELECT count(*) FROM problems"), 1);

        let run = store.begin_run(SOURCE, LATER, "w").unwrap();
        store.finish_run(&RunEnd { problems: crate::store::ProblemsEnd::DropUnmet, ..complete(run) }).unwrap();
        assert_eq!(count(&place.sql(), "SELECT count(*) FROM problems"), 0);
    }

    #[test]
    fn a_dry_run_counts_as_a_real_one_and_writes_nothing() {
        let place = Place::new();
        let mut store = place.open();
        whole_run(&mut store, &[&[("a", Some(1), "a"), ("b", Some(1), "b"), ("c", Some(9), "c"), ("u", Some(9), "u")]], NOW);
        drop(store);
        let before = std::fs::read(place.path()).unwrap();
        let pages: [&[Short<'_>]; 3] = [
            &[("a", Some(2), "a2"), ("n", Some(2), "n"), ("c", Some(1), "back"), ("b", Some(1), "b")],
            &[("n", Some(3), "n3"), ("u", Some(8), "twin"), ("b", Some(2), "b2")],
            &[("u", Some(9), "u")],
        ];

        let (mut dry, run) = place.dry();
        let mut counts = PageCounts::default();
        for records in pages {
            counts.add(try_page(&mut dry, records, LATER, Some("p")).unwrap());
        }
        assert_eq!(dry.count_records(SOURCE).unwrap(), 5);
        assert_eq!(dry.count_modified_between(SOURCE, 9, [9, 10, 1_000]).unwrap(), [0, 2, 2]);
        counts.add(dry.settle_deferred(SOURCE, LATER).unwrap());
        assert_eq!(dry.count_modified_between(SOURCE, 9, [9, 10, 1_000]).unwrap(), [0, 1, 1]);
        assert_eq!(dry.median_modified_between(SOURCE, 0, 1_000).unwrap().unwrap().0, 2);
        assert_eq!(dry.source_state(SOURCE).unwrap().unwrap().cursor.unwrap().plan, "p");
        dry.finish_run(&complete(run)).unwrap();
        drop(dry);

        assert_eq!(counts, counted(1, 3, 1));
        assert_eq!(std::fs::read(place.path()).unwrap(), before);
        assert_eq!(place.names(), ["harvest_state.db"]);
        assert_eq!(whole_run(&mut place.open(), &pages, LATER), counts);
    }

    #[test]
    fn a_dry_run_holds_up_no_one() {
        let place = Place::new();
        drop(place.open());
        let (mut dry, _) = place.dry();
        page(&mut dry, &[("a", None, "dry")], NOW);
        let (mut store, _) = place.begun();
        store.connection.busy_timeout(std::time::Duration::from_millis(1)).unwrap();
        page(&mut store, &[("a", None, "real")], NOW);
        page(&mut dry, &[("b", None, "dry")], NOW);
        assert_eq!(contents(&place.sql()), owned(&[("a", "real")]));
    }

    mod histories {
        use proptest::prelude::*;

        use super::super::super::fixture::Line;
        use super::*;

        /// Of a record's life: its own stamp and content, and those of a twin that never changes and is older, if it has one.
        #[derive(Clone, Debug)]
        struct Life {
            stamps: Vec<i64>,
            twin: bool,
        }

        /// One pass over the catalogue: the order of records, the size of a page, after which pages the process dies.
        #[derive(Clone, Debug)]
        struct Pass {
            order: Vec<u8>,
            page: usize,
            deaths: Vec<bool>,
        }

        const PASSES: usize = 3;

        fn life() -> impl Strategy<Value = Life> {
            (prop::collection::vec(10_i64..14, PASSES), any::<bool>()).prop_map(|(mut stamps, twin)| {
                if twin {
                    stamps.fill(12);
                }
                Life { stamps, twin }
            })
        }

        fn pass() -> impl Strategy<Value = Pass> {
            (prop::collection::vec(any::<u8>(), 16), 1_usize..5, prop::collection::vec(prop::bool::weighted(0.3), 16))
                .prop_map(|(order, page, deaths)| Pass { order, page, deaths })
        }

        fn catalogue(lives: &[Life], pass: usize) -> Vec<(String, i64, String)> {
            let mut all = Vec::new();
            for (n, life) in lives.iter().enumerate() {
                let stamp = life.stamps[pass];
                all.push((format!("id{n}"), stamp, format!("{n}@{stamp}")));
                if life.twin {
                    all.push((format!("id{n}"), 5, format!("{n}@twin")));
                }
            }
            all
        }

        fn shuffled<T: Clone>(all: &[T], order: &[u8]) -> Vec<T> {
            let mut keyed: Vec<(u8, T)> = order.iter().copied().zip(all.iter().cloned()).collect();
            keyed.sort_by_key(|(key, _)| *key);
            keyed.into_iter().map(|(_, record)| record).collect()
        }

        /// The disk is not waited for: what dies here is the process, not the machine.
        fn hasty(place: &Place) -> (Store, crate::store::RunId) {
            let (store, run) = place.begun();
            store.connection.pragma_update(None, "synchronous", "OFF").unwrap();
            (store, run)
        }

        /// Reads the catalogue to its end, dying and resuming on the way. The page after which it died is read again.
        fn read(place: &Place, all: &[(String, i64, String)], pass: &Pass, at: &str) -> PageCounts {
            let pages: Vec<Vec<Short<'_>>> = all
                .chunks(pass.page)
                .map(|chunk| chunk.iter().map(|(id, stamp, xml)| (id.as_str(), Some(*stamp), xml.as_str())).collect())
                .collect();
            let (mut store, mut run) = hasty(place);
            let mut counts = PageCounts::default();
            for (n, records) in pages.iter().enumerate() {
                let plan = n.to_string();
                counts.add(try_page(&mut store, records, at, Some(&plan)).unwrap());
                if pass.deaths[n] {
                    drop(store);
                    (store, run) = hasty(place);
                    counts.add(try_page(&mut store, records, at, Some(&plan)).unwrap());
                }
            }
            counts.add(store.settle_deferred(SOURCE, at).unwrap());
            store.finish_run(&complete(run)).unwrap();
            counts
        }

        proptest! {
            #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]
            #[test]
            fn every_complete_pass_leaves_the_newest_of_each_identifier_and_touches_no_other_row(
                lives in prop::collection::vec(life(), 1..8),
                passes in prop::collection::vec(pass(), PASSES),
            ) {
                let place = Place::new();
                drop(place.open());
                let mut before = Vec::new();
                for (n, pass) in passes.iter().enumerate() {
                    let at = format!("2026-07-1{n}T00:00:00Z");
                    let counts = read(&place, &shuffled(&catalogue(&lives, n), &pass.order), pass, &at);
                    let after = place.lines();
                    let due: Vec<String> = lives.iter().enumerate().map(|(k, life)| format!("{k}@{}", life.stamps[n])).collect();
                    let held: Vec<String> = after.iter().map(|line| line.1.clone()).collect();
                    prop_assert_eq!(held, due);
                    let mut changed = 0;
                    for line in &after {
                        let same = before.iter().find(|old: &&Line| old.0 == line.0 && old.1 == line.1);
                        match same {
                            Some(old) => prop_assert_eq!(old, line),
                            None => changed += 1,
                        }
                    }
                    if !pass.deaths.contains(&true) {
                        prop_assert_eq!(counts.new + counts.updated, changed);
                        prop_assert_eq!(counts.unchanged, lives.len() as u64 - changed);
                    }
                    before = after;
                }
            }
        }
    }
}
