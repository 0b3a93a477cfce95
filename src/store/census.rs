//! What the store counts: records of a source, and how their stamps lie.
//!
//! Calibration of a catalogue's clock compares these numbers with the catalogue's own. Reads only; knows nothing of catalogues.

use rusqlite::{OptionalExtension, params};

use super::{Store, StoreError};

const COUNT: &str = "SELECT count(*) FROM stored WHERE source = ?1";
const COUNT_SOME: &str = "SELECT count(*) FROM (SELECT 1 FROM stored WHERE source = ?1 LIMIT ?2)";
const COUNT_BETWEEN: &str = "SELECT count(*) FROM stored WHERE source = ?1 AND modified_at >= ?2 AND modified_at < ?3";
const NTH_STAMP: &str = "
SELECT modified_at, modified FROM stored
WHERE source = ?1 AND modified_at >= ?2 AND modified_at < ?3
ORDER BY modified_at, identifier LIMIT 1 OFFSET ?4";
const CHANGED: &str = "SELECT identifier FROM stored WHERE source = ?1 AND changed_seq > ?2 LIMIT ?3";
const ROWS: &str = "SELECT identifier, modified, xml, changed_seq FROM stored WHERE source = ?1 ORDER BY identifier";

/// A record as the store holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRow<'a> {
    /// Its identifier.
    pub identifier: &'a str,
    /// Its stamp as delivered.
    pub modified: Option<&'a str>,
    /// The record.
    pub xml: &'a str,
    /// When it last changed, as a number that rises through the store.
    pub changed_seq: i64,
}

impl Store {
    /// How many records of a source the store holds.
    pub fn count_records(&self, source: &str) -> Result<u64, StoreError> {
        self.count(COUNT, params![source])
    }

    /// Whether a source has as many records, or more.
    pub fn holds_at_least(&self, source: &str, records: u32) -> Result<bool, StoreError> {
        Ok(self.count(COUNT_SOME, params![source, records])? >= u64::from(records))
    }

    /// How many records of a source have a readable stamp from `start` on and before `end`, both in microseconds since 1970.
    pub fn count_modified_between(&self, source: &str, start: i64, end: i64) -> Result<u64, StoreError> {
        self.count(COUNT_BETWEEN, params![source, start, end])
    }

    /// The stamp in the middle of the readable ones from `start` on and before `end` (of two, the earlier), in microseconds and as
    /// delivered.
    pub fn median_modified_between(&self, source: &str, start: i64, end: i64) -> Result<Option<(i64, String)>, StoreError> {
        let middle = self.count_modified_between(source, start, end)?.saturating_sub(1) / 2;
        let middle = i64::try_from(middle).unwrap_or(i64::MAX);
        self.connection
            .prepare_cached(NTH_STAMP)
            .and_then(|mut statement| {
                let read = |row: &rusqlite::Row<'_>| {
                    let text: Option<String> = row.get(1)?;
                    Ok((row.get(0)?, text.unwrap_or_default()))
                };
                statement.query_row(params![source, start, end, middle], read).optional()
            })
            .map_err(|error| self.failed(&error))
    }

    /// The identifiers of records that the present run has written, `limit` of them at the most.
    pub fn changed_in_run(&self, source: &str, limit: u32) -> Result<Vec<String>, StoreError> {
        let run_seq = self.marks_of(source)?.run_seq;
        let read = || -> rusqlite::Result<Vec<String>> {
            let mut statement = self.connection.prepare_cached(CHANGED)?;
            statement.query_map(params![source, run_seq, limit], |row| row.get(0))?.collect()
        };
        read().map_err(|error| self.failed(&error))
    }

    /// Shows every record of a source, by identifier.
    pub fn for_each_record(&self, source: &str, mut show: impl FnMut(&RecordRow<'_>)) -> Result<(), StoreError> {
        let mut walk = || -> rusqlite::Result<()> {
            let mut statement = self.connection.prepare_cached(ROWS)?;
            let mut rows = statement.query([source])?;
            while let Some(row) = rows.next()? {
                show(&RecordRow {
                    identifier: row.get_ref(0)?.as_str()?,
                    modified: row.get_ref(1)?.as_str_or_null()?,
                    xml: row.get_ref(2)?.as_str()?,
                    changed_seq: row.get(3)?,
                });
            }
            Ok(())
        };
        walk().map_err(|error| self.failed(&error))
    }

    pub(super) fn count(&self, sql: &str, params: impl rusqlite::Params) -> Result<u64, StoreError> {
        let counted: i64 = self
            .connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.query_row(params, |row| row.get(0)))
            .map_err(|error| self.failed(&error))?;
        Ok(u64::try_from(counted).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{NOW, Place, SOURCE, page};

    #[test]
    fn the_median_is_the_earlier_of_two_and_leaves_out_what_has_no_stamp() {
        let place = Place::new();
        let (mut store, _) = place.begun();
        assert_eq!(store.median_modified_between(SOURCE, -100, 100).unwrap(), None);
        page(&mut store, &[("n", None, "n")], NOW);
        assert_eq!(store.median_modified_between(SOURCE, -100, 100).unwrap(), None);
        page(&mut store, &[("d", Some(40), "d"), ("a", Some(10), "a"), ("c", Some(30), "c"), ("b", Some(-20), "b")], NOW);
        assert_eq!(store.median_modified_between(SOURCE, -100, 100).unwrap(), Some((10, "10".to_string())));
        page(&mut store, &[("e", Some(50), "e")], NOW);
        assert_eq!(store.median_modified_between(SOURCE, -100, 100).unwrap(), Some((30, "30".to_string())));
        assert_eq!(store.median_modified_between("another", -100, 100).unwrap(), None);
    }

    #[test]
    fn a_bound_counts_what_is_after_it_and_a_span_its_start_but_not_its_end() {
        let place = Place::new();
        let (mut store, _) = place.begun();
        page(&mut store, &[("a", Some(10), "a"), ("b", Some(20), "b"), ("c", Some(30), "c"), ("n", None, "n")], NOW);
        assert_eq!(store.count_records(SOURCE).unwrap(), 4);
        assert_eq!(store.count_modified_between(SOURCE, 10, 30).unwrap(), 2);
        assert_eq!(store.count_records("another").unwrap(), 0);
    }
}
