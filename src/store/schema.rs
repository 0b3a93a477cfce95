//! The tables of the store, and how an older store becomes a newer one.
//!
//! `application_id` says that a file is ours, `user_version` how many steps it has seen. Steps only ever lead forward, each in
//! one transaction together with its version number, so that a kill between two steps leaves a store of the version in between.
//! This file opens nothing and reads no rows. A step that has been released is never edited: a change is a new step.

use rusqlite::{Connection, Transaction, TransactionBehavior};

/// `PRAGMA application_id` of every store: `CSWH` in ASCII.
pub(super) const APPLICATION_ID: u32 = 0x4353_5748;

/// The steps from an empty file to the present schema; the store's version is their number.
pub(super) const STEPS: &[&str] = &[VERSION_1, VERSION_2];

/// How many of [`TABLES`] every store has, whatever its version.
pub(super) const TABLES_OF_FIRST: usize = 8;

/// All tables, in the order in which they are made.
pub(super) const TABLES: &[&str] =
    &["harvest_state", "records", "tombstones", "runs", "problems", "cursors", "deferred", "sequence", "inventories", "met"];

/// `xml` stands last in its row, so that a scan for stamps or identifiers need not walk through it.
const VERSION_1: &str = "
CREATE TABLE harvest_state (
    source TEXT PRIMARY KEY NOT NULL,
    watermark TEXT NOT NULL DEFAULT '1970-01-01T00:00:00Z',
    watermark_at INTEGER,
    fingerprint TEXT,
    shapes TEXT,
    full_due INTEGER NOT NULL DEFAULT 0,
    last_success_at TEXT,
    endpoint TEXT,
    version TEXT,
    binding TEXT,
    property TEXT,
    sort TEXT,
    sort_obeyed INTEGER,
    clock_sure INTEGER,
    literal TEXT,
    clock TEXT,
    upper_bound INTEGER,
    matched_is_total INTEGER,
    exact_changes INTEGER,
    gzip INTEGER
) STRICT;
CREATE TABLE records (
    id INTEGER PRIMARY KEY,
    source TEXT NOT NULL,
    identifier TEXT NOT NULL,
    title TEXT,
    modified TEXT,
    modified_at INTEGER,
    harvested_at TEXT NOT NULL,
    changed_seq INTEGER NOT NULL,
    twin INTEGER NOT NULL DEFAULT 0,
    xml TEXT NOT NULL,
    UNIQUE (source, identifier)
) STRICT;
CREATE INDEX records_changed_seq ON records (changed_seq);
CREATE TABLE tombstones (
    source TEXT NOT NULL,
    identifier TEXT NOT NULL,
    deleted_at TEXT NOT NULL,
    changed_seq INTEGER NOT NULL,
    UNIQUE (source, identifier)
) STRICT;
CREATE INDEX tombstones_changed_seq ON tombstones (changed_seq);
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    source TEXT NOT NULL,
    started_at TEXT NOT NULL,
    ended_at TEXT,
    outcome TEXT,
    exit_code INTEGER,
    new INTEGER NOT NULL DEFAULT 0,
    updated INTEGER NOT NULL DEFAULT 0,
    unchanged INTEGER NOT NULL DEFAULT 0,
    deleted INTEGER NOT NULL DEFAULT 0,
    skipped INTEGER NOT NULL DEFAULT 0,
    matched INTEGER,
    requests INTEGER NOT NULL DEFAULT 0,
    retries INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL DEFAULT 0,
    watermark_before TEXT NOT NULL,
    watermark TEXT,
    error TEXT
) STRICT;
CREATE INDEX runs_source ON runs (source);
CREATE TABLE problems (
    source TEXT NOT NULL,
    place TEXT NOT NULL,
    why TEXT NOT NULL,
    first_seen TEXT NOT NULL,
    last_seen TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    run INTEGER NOT NULL,
    UNIQUE (source, place)
) STRICT;
CREATE TABLE cursors (
    source TEXT PRIMARY KEY NOT NULL,
    plan TEXT NOT NULL,
    newest TEXT,
    begin_seq INTEGER NOT NULL,
    skipped INTEGER NOT NULL
) STRICT;
CREATE TABLE deferred (
    source TEXT NOT NULL,
    identifier TEXT NOT NULL,
    title TEXT,
    modified TEXT,
    modified_at INTEGER,
    modified_until INTEGER,
    xml TEXT NOT NULL,
    UNIQUE (source, identifier)
) STRICT;
CREATE TABLE sequence (last INTEGER NOT NULL) STRICT;
INSERT INTO sequence (last) VALUES (0);
";

/// Inventories: what the last one found, the one that was cut off, and what a reading of everything has met so far.
const VERSION_2: &str = "
ALTER TABLE harvest_state ADD COLUMN inventory_at TEXT;
ALTER TABLE harvest_state ADD COLUMN inventory_gap INTEGER;
ALTER TABLE harvest_state ADD COLUMN inventory_new INTEGER;
ALTER TABLE harvest_state ADD COLUMN inventory_updated INTEGER;
ALTER TABLE harvest_state ADD COLUMN inventory_deleted INTEGER;
ALTER TABLE harvest_state ADD COLUMN inventory_tried_at TEXT;
ALTER TABLE harvest_state ADD COLUMN inventory_tried_gap INTEGER;
ALTER TABLE runs ADD COLUMN reconciled INTEGER NOT NULL DEFAULT 0;
CREATE TABLE inventories (
    source TEXT PRIMARY KEY NOT NULL,
    element_set TEXT NOT NULL,
    plan TEXT NOT NULL,
    begin_seq INTEGER NOT NULL,
    began_at TEXT NOT NULL
) STRICT;
CREATE TABLE met (
    id INTEGER PRIMARY KEY,
    source TEXT NOT NULL,
    phase INTEGER NOT NULL,
    entries BLOB NOT NULL
) STRICT;
CREATE INDEX met_source ON met (source, phase);
";

/// The version that `steps` lead to.
pub(super) fn version_of(steps: &[&str]) -> u32 {
    u32::try_from(steps.len()).unwrap_or(u32::MAX)
}

/// Takes the steps that the store has not seen. Several processes may do this at once: the version is read again under the write
/// lock.
pub(super) fn migrate(connection: &mut Connection, steps: &[&str]) -> rusqlite::Result<()> {
    for (done, step) in (0_u32..).zip(steps) {
        if user_version(connection)? > done {
            continue;
        }
        let transaction = Transaction::new(connection, TransactionBehavior::Immediate)?;
        if user_version(&transaction)? != done {
            continue;
        }
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", done + 1)?;
        transaction.commit()?;
    }
    Ok(())
}

/// How many steps the store has seen. A negative number was never written by us: it counts as newer than anything.
pub(super) fn user_version(connection: &Connection) -> rusqlite::Result<u32> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok(u32::try_from(version).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_STEP: &str = "ALTER TABLE runs ADD COLUMN host TEXT; UPDATE sequence SET last = last + 100;";

    fn last(connection: &Connection) -> i64 {
        connection.query_row("SELECT last FROM sequence", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn each_step_is_taken_once() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, &[VERSION_1]).unwrap();
        migrate(&mut connection, &[VERSION_1, SECOND_STEP]).unwrap();
        migrate(&mut connection, &[VERSION_1, SECOND_STEP]).unwrap();
        assert_eq!(user_version(&connection).unwrap(), 2);
        assert_eq!(last(&connection), 100);
    }

    #[test]
    fn a_step_that_fails_leaves_the_version_before_it() {
        let mut connection = Connection::open_in_memory().unwrap();
        let broken = "UPDATE sequence SET last = 7; CREATE TABLE runs (x);";
        migrate(&mut connection, &[VERSION_1, broken]).unwrap_err();
        assert_eq!(user_version(&connection).unwrap(), 1);
        assert_eq!(last(&connection), 0);
        migrate(&mut connection, &[VERSION_1, SECOND_STEP]).unwrap();
        assert_eq!(user_version(&connection).unwrap(), 2);
    }

    #[test]
    fn the_list_of_tables_is_what_the_steps_make_and_all_are_strict() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, STEPS).unwrap();
        let mut made: Vec<(String, bool)> = connection
            .prepare("SELECT name, strict FROM pragma_table_list WHERE schema = 'main' AND name NOT LIKE 'sqlite_%'")
            .unwrap()
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        made.sort();
        let mut listed: Vec<(String, bool)> = TABLES.iter().map(|name| ((*name).to_string(), true)).collect();
        listed.sort();
        assert_eq!(made, listed);
    }
}
