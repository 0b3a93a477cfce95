//! The two faces of a store: written to, or only seemingly written to.
//!
//! In a dry run every table has an empty or copied twin among the temporary tables. SQLite looks a plain name up there first, so
//! the same statements write to the twins, and the file is only read: no lock is taken on it, and nothing needs to be rolled
//! back. A record is copied to its twin when it is about to be touched. What reads whole tables of records reads the view
//! `stored`, which is the records themselves in one face and the twin laid over them in the other. This file decides nothing
//! about records.

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::schema;

/// Where a store's statements end up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Face {
    /// In the store.
    Direct,
    /// In temporary twins that vanish with the connection.
    Overlay,
}

/// Small enough to be copied as a whole; the rest starts empty.
const COPIED: &[&str] = &["harvest_state", "runs", "problems", "cursors", "deferred", "sequence", "inventories", "met"];

const CREATE: &str = "CREATE TABLE ";
const TABLE_SQL: &str = "SELECT sql FROM main.sqlite_schema WHERE type = 'table' AND name = ?1";

const VIEW_DIRECT: &str = "CREATE TEMP VIEW stored AS SELECT * FROM main.records";
const VIEW_OVERLAY: &str = "
CREATE TEMP VIEW stored AS
SELECT * FROM temp.records
UNION ALL
SELECT * FROM main.records AS below
WHERE NOT EXISTS (SELECT 1 FROM temp.records AS above WHERE above.source = below.source AND above.identifier = below.identifier)
AND NOT EXISTS (SELECT 1 FROM temp.tombstones AS gone WHERE gone.source = below.source AND gone.identifier = below.identifier)";

/// Twins get row numbers of their own: one that was copied later must not clash with one that was new before.
const LIFT: &str = "
INSERT OR IGNORE INTO temp.records (source, identifier, title, modified, modified_at, harvested_at, changed_seq, twin, xml)
SELECT source, identifier, title, modified, modified_at, harvested_at, changed_seq, twin, xml
FROM main.records WHERE source = ?1 AND identifier = ?2";

/// Makes the temporary objects that this face needs.
pub(super) fn install(connection: &Connection, face: Face) -> rusqlite::Result<()> {
    if face == Face::Direct {
        return connection.execute_batch(VIEW_DIRECT);
    }
    for table in schema::TABLES {
        let sql: String = connection.query_row(TABLE_SQL, [table], |row| row.get(0))?;
        let twin = sql.replacen(CREATE, "CREATE TEMP TABLE ", 1);
        connection.execute_batch(&twin)?;
    }
    for table in COPIED {
        connection.execute_batch(&format!("INSERT INTO temp.{table} SELECT * FROM main.{table}"))?;
    }
    connection.execute_batch(VIEW_OVERLAY)
}

/// Begins the one kind of transaction that this face writes in. `IMMEDIATE`, because a reader that becomes a writer after another's
/// commit fails at once instead of waiting.
pub(super) fn begin(connection: &mut Connection, face: Face) -> rusqlite::Result<Transaction<'_>> {
    let behaviour = match face {
        Face::Direct => TransactionBehavior::Immediate,
        Face::Overlay => TransactionBehavior::Deferred,
    };
    Transaction::new(connection, behaviour)
}

/// The same, for a transaction that stays open until [`close`] or [`give_up`]; nothing where one is open.
pub(super) fn open(connection: &Connection, face: Face) -> rusqlite::Result<()> {
    match face {
        _ if !connection.is_autocommit() => Ok(()),
        Face::Direct => connection.execute_batch("BEGIN IMMEDIATE"),
        Face::Overlay => connection.execute_batch("BEGIN DEFERRED"),
    }
}

/// Commits what [`open`] began; nothing where nothing is open. An error leaves nothing open and nothing of it in the store.
pub(super) fn close(connection: &Connection) -> rusqlite::Result<()> {
    if connection.is_autocommit() {
        return Ok(());
    }
    connection.execute_batch("COMMIT").inspect_err(|_| give_up(connection))
}

/// Takes back what [`open`] began. Some errors have done so already.
pub(super) fn give_up(connection: &Connection) {
    if !connection.is_autocommit() {
        // What cannot be taken back now is when the connection closes.
        let _ = connection.execute_batch("ROLLBACK");
    }
}

/// Copies a record to its twin, if it has one to make, before it is read for writing.
pub(super) fn lift(connection: &Connection, face: Face, source: &str, identifier: &str) -> rusqlite::Result<()> {
    if face == Face::Overlay {
        connection.prepare_cached(LIFT)?.execute([source, identifier])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Place;
    use super::*;

    #[test]
    fn a_lifted_record_has_every_column_but_its_row_number() {
        let place = Place::new();
        drop(place.open());
        let mut columns: Vec<String> = place
            .sql()
            .prepare("SELECT name FROM pragma_table_info('records') WHERE name <> 'id'")
            .unwrap()
            .query_map([], |row| row.get(0))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        columns.sort();
        let list = LIFT.split_once("temp.records (").unwrap().1.split_once(')').unwrap().0;
        let mut lifted: Vec<&str> = list.split(", ").collect();
        lifted.sort_unstable();
        assert_eq!(lifted, columns);
    }
}
