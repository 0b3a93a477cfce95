//! What the tests of the store share: a store in a folder of its own, short ways to write a page, and rows read back by a second
//! connection, as an operator would read them.

use std::path::PathBuf;

use rusqlite::Connection;

use super::{
    CursorEnd, CursorWrite, FullDue, InventoryEnd, Mode, PageCounts, PageWrite, Pass, Phase, RecordWrite, RunCounts, RunEnd, RunId,
    RunOutcome, Store, StoreError,
};

pub(super) const SOURCE: &str = "https://a.example/csw";
pub(super) const NOW: &str = "2026-07-10T00:00:00Z";

/// Identifier, stamp, content.
pub(super) type Short<'a> = (&'a str, Option<i64>, &'a str);

/// Identifier, content, `harvested_at`, `changed_seq`.
pub(super) type Line = (String, String, String, i64);

pub(super) struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub(super) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join("harvest_state.db")
    }

    pub(super) fn open(&self) -> Store {
        Store::open(&self.path(), Mode::ReadWrite).unwrap()
    }

    pub(super) fn begun(&self) -> (Store, RunId) {
        let mut store = self.open();
        let run = begin(&mut store);
        (store, run)
    }

    pub(super) fn dry(&self) -> (Store, RunId) {
        let mut store = Store::open(&self.path(), Mode::DryRun).unwrap();
        let run = begin(&mut store);
        (store, run)
    }

    pub(super) fn sql(&self) -> Connection {
        Connection::open(self.path()).unwrap()
    }

    pub(super) fn lines(&self) -> Vec<Line> {
        lines(&self.sql())
    }

    /// The names beside the store, sorted.
    pub(super) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// What a power cut would leave of the store now: its file and its WAL, without the index of the WAL.
    pub(super) fn wreck(&self) -> Self {
        let wreck = Self::new();
        for name in ["harvest_state.db", "harvest_state.db-wal"] {
            std::fs::copy(self.folder.path().join(name), wreck.folder.path().join(name)).unwrap();
        }
        wreck
    }
}

pub(super) fn begin(store: &mut Store) -> RunId {
    store.begin_run(SOURCE, NOW, "1970-01-01T00:00:00Z").unwrap()
}

pub(super) fn lines(connection: &Connection) -> Vec<Line> {
    let mut statement =
        connection.prepare("SELECT identifier, xml, harvested_at, changed_seq FROM records ORDER BY source, identifier").unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

pub(super) fn contents(connection: &Connection) -> Vec<(String, String)> {
    lines(connection).into_iter().map(|(identifier, xml, _, _)| (identifier, xml)).collect()
}

/// Marks and commits a page of `SOURCE`.
pub(super) fn try_page(store: &mut Store, records: &[Short<'_>], at: &str, plan: Option<&str>) -> Result<PageCounts, StoreError> {
    let known = store.mark_seen(Pass { phase: Phase::Window, number: 1 }, records.iter().map(|record| (record.0, "")))?;
    let stamps: Vec<Option<String>> = records.iter().map(|record| record.1.map(|at| at.to_string())).collect();
    let writes: Vec<RecordWrite<'_>> = records
        .iter()
        .zip(&stamps)
        .zip(known)
        .map(|(((identifier, modified_at, xml), modified), meeting)| RecordWrite {
            identifier,
            title: Some("t"),
            modified: modified.as_deref(),
            modified_at: *modified_at,
            modified_until: modified_at.map(|at| at + 1),
            xml,
            known_in_run: meeting.known_in_run,
        })
        .collect();
    let cursor = plan.map(|plan| CursorWrite::Window { plan, newest: Some(NOW), skipped: 0 });
    store.commit_page(&PageWrite { source: SOURCE, records: &writes, harvested_at: at, cursor, problems: &[] })
}

pub(super) fn page(store: &mut Store, records: &[Short<'_>], at: &str) -> PageCounts {
    try_page(store, records, at, None).unwrap()
}

/// A whole run of these pages, settled and complete.
pub(super) fn whole_run(store: &mut Store, pages: &[&[Short<'_>]], at: &str) -> PageCounts {
    let run = begin(store);
    store.forget_seen().unwrap();
    let mut counts = PageCounts::default();
    for records in pages {
        counts.add(page(store, records, at));
    }
    counts.add(store.settle_deferred(SOURCE, at).unwrap());
    store.finish_run(&complete(run)).unwrap();
    counts
}

pub(super) fn complete<'a>(run: RunId) -> RunEnd<'a> {
    RunEnd {
        run,
        source: SOURCE,
        ended_at: NOW,
        outcome: RunOutcome::Complete { watermark: None },
        exit_code: 0,
        counts: RunCounts::default(),
        shapes: None,
        full_due: FullDue::Keep,
        cursor: CursorEnd::Drop,
        problems: crate::store::ProblemsEnd::Keep,
        inventory: InventoryEnd::None,
        error: None,
    }
}

pub(super) fn counted(new: u64, updated: u64, unchanged: u64) -> PageCounts {
    PageCounts { new, updated, unchanged, recounted: 0 }
}

pub(super) fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(identifier, xml)| ((*identifier).to_string(), (*xml).to_string())).collect()
}

pub(super) fn count(connection: &Connection, sql: &str) -> i64 {
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}
