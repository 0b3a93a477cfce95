//! Records that were put off: older than what is held, and not yet known to be a twin of it.
//!
//! They lie in the table `deferred`, which belongs to the page's transaction and so outlives a kill. The held content coming
//! along later in the run drops them (`page.rs`); what is left when a complete run ends is what the catalogue holds now, and goes
//! in.

use rusqlite::{Connection, params};

use super::overlay::{self, Face};
use super::page::{Held, PageCounts, RecordWrite, Writing};
use super::run::RunMarks;
use super::twins::{Age, Kin};
use super::{Store, StoreError};

/// How many deferred records are settled in a transaction.
const SETTLE_BATCH_RECORDS: u32 = 50;

const DEFER: &str = "
INSERT INTO deferred (source, identifier, title, modified, modified_at, modified_until, xml) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (source, identifier) DO UPDATE SET
    title = excluded.title, modified = excluded.modified, modified_at = excluded.modified_at,
    modified_until = excluded.modified_until, xml = excluded.xml
WHERE deferred.modified_at IS NULL OR excluded.modified_at >= deferred.modified_at";
const IS_DEFERRED: &str = "SELECT EXISTS (SELECT 1 FROM deferred WHERE source = ?1 AND identifier = ?2)";
const DROP_DEFERRED: &str = "DELETE FROM deferred WHERE source = ?1 AND identifier = ?2";
const SOME_DEFERRED: &str = "
SELECT identifier, title, modified, modified_at, modified_until, xml FROM deferred WHERE source = ?1 ORDER BY identifier LIMIT ?2";

impl Store {
    /// Decides on all that was put off, before a complete run is finished: what was put off and not contradicted since is what the
    /// catalogue holds now, and goes in. A killed call leaves the rest for the next one.
    pub fn settle_deferred(&mut self, source: &str, harvested_at: &str) -> Result<PageCounts, StoreError> {
        let mut marks = self.marks_of(source)?;
        let mut counts = PageCounts::default();
        // Every batch takes away what it read, so this ends after as many turns as there are batches.
        while marks.deferrals {
            let batch =
                settle_batch(&mut self.connection, self.face, &mut marks, harvested_at).map_err(|error| self.failed(&error))?;
            counts.add(batch);
        }
        self.run = Some(marks);
        Ok(counts)
    }
}

fn settle_batch(connection: &mut Connection, face: Face, marks: &mut RunMarks, harvested_at: &str) -> rusqlite::Result<PageCounts> {
    let transaction = overlay::begin(connection, face)?;
    let mut writing = Writing::begin(&transaction, face, marks, harvested_at)?;
    writing.settle()?;
    let counts = writing.end()?;
    transaction.commit()?;
    Ok(counts)
}

impl Writing<'_> {
    pub(super) fn is_deferred(&self, identifier: &str) -> rusqlite::Result<bool> {
        if !self.marks.deferrals {
            return Ok(false);
        }
        self.connection.prepare_cached(IS_DEFERRED)?.query_row([self.marks.source.as_str(), identifier], |row| row.get(0))
    }

    pub(super) fn defer(&mut self, record: &RecordWrite<'_>) -> rusqlite::Result<()> {
        self.marks.deferrals = true;
        self.connection.prepare_cached(DEFER)?.execute(params![
            self.marks.source,
            record.identifier,
            record.title,
            record.modified,
            record.modified_at,
            record.modified_until,
            record.xml,
        ])?;
        Ok(())
    }

    pub(super) fn drop_deferred(&self, identifier: &str, held: &Held) -> rusqlite::Result<()> {
        if held.deferred {
            self.connection.prepare_cached(DROP_DEFERRED)?.execute([self.marks.source.as_str(), identifier])?;
        }
        Ok(())
    }

    fn settle(&mut self) -> rusqlite::Result<()> {
        let batch = some_deferred(self.connection, &self.marks.source)?;
        self.marks.deferrals = batch.len() == SETTLE_BATCH_RECORDS as usize;
        for deferred in &batch {
            self.settle_one(&deferred.as_write())?;
        }
        Ok(())
    }

    /// In a run that continues others, the half that was read before may have confirmed what is held. Where twins are known and the
    /// stamp is older, that is the likelier story; otherwise a record that was set back, or changed without a new stamp, is.
    fn settle_one(&mut self, record: &RecordWrite<'_>) -> rusqlite::Result<()> {
        let held = self.find(record)?;
        self.connection.prepare_cached(DROP_DEFERRED)?.execute([self.marks.source.as_str(), record.identifier])?;
        let Some(held) = held else {
            return Ok(());
        };
        let older = Age::of(record.modified_at, record.modified_until, held.modified_at) == Age::Older;
        if held.same || (self.marks.resumed && held.kin == Kin::Twin && older) {
            self.counts.unchanged += 1;
            return Ok(());
        }
        self.replace(record, &held)?;
        self.count_replaced(record, &held);
        Ok(())
    }
}

struct Deferred {
    identifier: String,
    title: Option<String>,
    modified: Option<String>,
    modified_at: Option<i64>,
    modified_until: Option<i64>,
    xml: String,
}

impl Deferred {
    fn as_write(&self) -> RecordWrite<'_> {
        RecordWrite {
            identifier: &self.identifier,
            title: self.title.as_deref(),
            modified: self.modified.as_deref(),
            modified_at: self.modified_at,
            modified_until: self.modified_until,
            xml: &self.xml,
            // It was counted as nothing when it was put off.
            known_in_run: false,
        }
    }
}

fn some_deferred(connection: &Connection, source: &str) -> rusqlite::Result<Vec<Deferred>> {
    let mut statement = connection.prepare_cached(SOME_DEFERRED)?;
    let rows = statement.query_map(params![source, SETTLE_BATCH_RECORDS], |row| {
        Ok(Deferred {
            identifier: row.get(0)?,
            title: row.get(1)?,
            modified: row.get(2)?,
            modified_at: row.get(3)?,
            modified_until: row.get(4)?,
            xml: row.get(5)?,
        })
    })?;
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{
        NOW, Place, SOURCE, Short, begin, complete, contents, count, counted, lines, owned, page, try_page, whole_run,
    };
    use super::*;
    use crate::store::{CursorEnd, RunEnd, RunOutcome};

    const LATER: &str = "2026-07-11T00:00:00Z";
    const LATEST: &str = "2026-07-12T00:00:00Z";

    #[test]
    fn a_record_that_was_set_back_is_taken_when_the_run_is_settled() {
        let place = Place::new();
        let mut store = place.open();
        whole_run(&mut store, &[&[("a", Some(20), "new"), ("b", Some(20), "b")]], NOW);
        let run = begin(&mut store);
        store.forget_seen().unwrap();
        // Twice, as a page that overlaps delivers it.
        for _ in 0..2 {
            assert_eq!(page(&mut store, &[("a", Some(10), "back")], LATER), counted(0, 0, 0));
        }
        assert_eq!(contents(&place.sql()), owned(&[("a", "new"), ("b", "b")]));

        let counts = store.settle_deferred(SOURCE, LATER).unwrap();

        assert_eq!(counts, counted(0, 1, 0));
        store.finish_run(&complete(run)).unwrap();
        assert_eq!(contents(&place.sql()), owned(&[("a", "back"), ("b", "b")]));
        assert_eq!(place.lines()[0].2, LATER);
        assert_eq!(count(&place.sql(), "SELECT count(*) FROM deferred"), 0);
    }

    #[test]
    fn a_whole_catalogue_that_was_set_back_is_settled_in_batches() {
        let place = Place::new();
        let mut store = place.open();
        let names: Vec<String> = (0..SETTLE_BATCH_RECORDS * 2).map(|n| format!("id{n:04}")).collect();
        let records =
            |at: i64, xml: &'static str| -> Vec<Short<'_>> { names.iter().map(|name| (name.as_str(), Some(at), xml)).collect() };
        whole_run(&mut store, &[&records(20, "new")], NOW);
        let counts = whole_run(&mut store, &[&records(10, "back")], LATER);
        assert_eq!(counts, counted(0, u64::from(SETTLE_BATCH_RECORDS) * 2, 0));
        assert!(contents(&place.sql()).iter().all(|(_, xml)| xml == "back"));
    }

    #[test]
    fn what_was_put_off_outlives_a_kill_and_is_dropped_when_the_held_record_comes_in_the_next_run() {
        let place = Place::new();
        let mut store = place.open();
        whole_run(&mut store, &[&[("a", Some(20), "new")]], NOW);
        let before = place.lines();
        begin(&mut store);
        store.forget_seen().unwrap();
        try_page(&mut store, &[("a", Some(10), "old")], LATER, Some("2")).unwrap();
        let wreck = place.wreck();

        let (mut resumed, run) = wreck.begun();
        let mut counts = page(&mut resumed, &[("a", Some(20), "new")], LATER);
        counts.add(resumed.settle_deferred(SOURCE, LATER).unwrap());
        resumed.finish_run(&complete(run)).unwrap();

        assert_eq!(counts, counted(0, 0, 1));
        assert_eq!(wreck.lines(), before, "I3");
    }

    #[test]
    fn giving_up_the_cursor_gives_up_what_was_put_off() {
        let place = Place::new();
        let mut store = place.open();
        whole_run(&mut store, &[&[("a", Some(20), "new")]], NOW);
        begin(&mut store);
        store.forget_seen().unwrap();
        try_page(&mut store, &[("a", Some(10), "old")], LATER, Some("2")).unwrap();
        begin(&mut store);
        store.forget_cursor(SOURCE).unwrap();
        assert_eq!(store.settle_deferred(SOURCE, LATER).unwrap(), counted(0, 0, 0));
        assert_eq!(store.source_state(SOURCE).unwrap().unwrap().cursor, None);
        assert_eq!(contents(&place.sql()), owned(&[("a", "new")]));
    }

    #[test]
    fn a_partial_run_keeps_its_cursor_and_what_it_put_off() {
        let place = Place::new();
        let mut store = place.open();
        whole_run(&mut store, &[&[("a", Some(20), "new")]], NOW);
        let run = begin(&mut store);
        store.forget_seen().unwrap();
        try_page(&mut store, &[("a", Some(10), "back")], LATER, Some("2")).unwrap();
        store.finish_run(&RunEnd { outcome: RunOutcome::Partial, cursor: CursorEnd::Keep, ..complete(run) }).unwrap();

        let run = begin(&mut store);
        assert_eq!(store.settle_deferred(SOURCE, LATEST).unwrap(), counted(0, 1, 0));
        store.finish_run(&complete(run)).unwrap();
        assert_eq!(lines(&store.connection)[0].1, "back");
    }
}
