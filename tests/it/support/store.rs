//! Reads what a run left in its SQLite file, by the published columns and no others.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

/// A row of `records`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredRecord {
    pub(crate) title: Option<String>,
    pub(crate) modified: Option<String>,
    pub(crate) xml: String,
    pub(crate) harvested_at: String,
    pub(crate) changed_seq: i64,
}

/// A store, open for reading.
pub(crate) struct Store {
    connection: Connection,
}

impl Store {
    pub(crate) fn open(path: &Path) -> Self {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Store { connection }
    }

    /// All records by identifier; fails where two sources hold one identifier (see [`Store::records_of`]).
    pub(crate) fn records(&self) -> BTreeMap<String, StoredRecord> {
        let rows = self.select("1 = 1");
        let count = rows.len();
        let records: BTreeMap<String, StoredRecord> = rows.into_iter().collect();
        assert_eq!(records.len(), count, "an identifier stands more than once");
        records
    }

    /// The records of one source by identifier.
    pub(crate) fn records_of(&self, source: &str) -> BTreeMap<String, StoredRecord> {
        self.select(&format!("source = '{}'", source.replace('\'', "''"))).into_iter().collect()
    }

    fn select(&self, condition: &str) -> Vec<(String, StoredRecord)> {
        let sql = format!(
            "SELECT identifier, title, modified, xml, harvested_at, changed_seq FROM records WHERE {condition} ORDER BY identifier"
        );
        let mut statement = self.connection.prepare(&sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        let row = |row: &rusqlite::Row<'_>| {
            let record = StoredRecord {
                title: row.get(1)?,
                modified: row.get(2)?,
                xml: row.get(3)?,
                harvested_at: row.get(4)?,
                changed_seq: row.get(5)?,
            };
            Ok((row.get(0)?, record))
        };
        let rows = statement.query_map([], row).expect("a query");
        rows.collect::<Result<_, _>>().expect("rows of the published shape")
    }

    pub(crate) fn identifiers(&self) -> Vec<String> {
        self.records().into_keys().collect()
    }

    /// The watermark of the only source.
    pub(crate) fn watermark(&self) -> String {
        let rows = self.rows("SELECT watermark FROM harvest_state");
        assert_eq!(rows.len(), 1, "one source, not {rows:?}");
        rows[0][0].clone()
    }

    pub(crate) fn problems(&self) -> i64 {
        self.number("SELECT count(*) FROM problems")
    }

    pub(crate) fn runs(&self) -> i64 {
        self.number("SELECT count(*) FROM runs")
    }

    pub(crate) fn tombstones(&self) -> Vec<String> {
        self.rows("SELECT identifier FROM tombstones ORDER BY identifier").into_iter().map(|row| row[0].clone()).collect()
    }

    /// The number that a query of one row and one column gives.
    pub(crate) fn number(&self, sql: &str) -> i64 {
        self.connection.query_row(sql, [], |row| row.get(0)).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// All rows of a query as text; NULL as `NULL`.
    pub(crate) fn rows(&self, sql: &str) -> Vec<Vec<String>> {
        let mut statement = self.connection.prepare(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        let columns = statement.column_count();
        let text = |value: ValueRef<'_>| match value {
            ValueRef::Null => "NULL".to_owned(),
            ValueRef::Integer(number) => number.to_string(),
            ValueRef::Real(number) => number.to_string(),
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        };
        let row = |row: &rusqlite::Row<'_>| (0..columns).map(|column| row.get_ref(column).map(text)).collect();
        let rows = statement.query_map([], row).expect("a query");
        rows.collect::<Result<_, _>>().expect("rows")
    }

    /// `ok` for a whole database.
    pub(crate) fn integrity(&self) -> String {
        self.rows("PRAGMA integrity_check")[0][0].clone()
    }
}
