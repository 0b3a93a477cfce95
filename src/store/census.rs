//! What the store counts: records of a source, and how their stamps lie.
//!
//! Calibration of a catalogue's clock compares these numbers with the catalogue's own. Reads only; knows nothing of catalogues.
//!
//! Stamps have no index, and the one by identifier leads to rows in no order: each look would fetch another page. Rows are read in the
//! order in which they lie instead, between the first and the last of the source (the plus sign keeps SQLite from that index).

use rusqlite::{OptionalExtension, params};

use super::overlay::Face;
use super::{Store, StoreError};

const IS_ALONE: &str = "SELECT count(*) FILTER (WHERE source = ?1) = 1 AND count(*) = 1 FROM harvest_state";
/// Without a condition SQLite counts by the pages of the smallest index, not by row.
const COUNT_ALL: &str = "SELECT count(*) FROM records";
const COUNT: &str = "SELECT count(*) FROM stored WHERE source = ?1";
const COUNT_SOME: &str = "SELECT count(*) FROM (SELECT 1 FROM stored WHERE source = ?1 LIMIT ?2)";
const EXTENT: &str = "SELECT min(id), max(id) FROM stored WHERE source = ?1";
const COUNT_BEFORE: &str = "
SELECT count(*) FILTER (WHERE modified_at < ?5), count(*) FILTER (WHERE modified_at < ?6), count(*) FILTER (WHERE modified_at < ?7)
FROM stored WHERE +source = ?1 AND id BETWEEN ?2 AND ?3 AND modified_at >= ?4";
const NEXT_STAMP: &str = "
SELECT id, modified_at, modified FROM stored
WHERE +source = ?1 AND id BETWEEN ?2 AND ?3 AND modified_at >= ?4 AND modified_at < ?5
ORDER BY id LIMIT 1";
/// Records that the middle stamp is chosen from: as many as tell it well enough, and no more to read in a large store.
const SAMPLE_RECORDS: i64 = 1_000;
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
        // Each run asks this: where there is one source, all records are its own.
        let alone = self.face == Face::Direct && self.count(IS_ALONE, params![source])? == 1;
        if alone { self.count(COUNT_ALL, []) } else { self.count(COUNT, params![source]) }
    }

    /// Whether a source has as many records, or more.
    pub fn holds_at_least(&self, source: &str, records: u32) -> Result<bool, StoreError> {
        Ok(self.count(COUNT_SOME, params![source, records])? >= u64::from(records))
    }

    /// How many records of a source have a readable stamp from `start` on and before each of `ends`, all in microseconds since 1970.
    pub fn count_modified_between(&self, source: &str, start: i64, ends: [i64; 3]) -> Result<[u64; 3], StoreError> {
        let count = || -> rusqlite::Result<[u64; 3]> {
            let Some((first, last)) = self.extent(source)? else { return Ok([0; 3]) };
            let [one, two, three] = ends;
            let mut statement = self.connection.prepare_cached(COUNT_BEFORE)?;
            statement.query_row(params![source, first, last, start, one, two, three], |row| {
                let column = |at| Ok::<_, rusqlite::Error>(u64::try_from(row.get::<_, i64>(at)?).unwrap_or_default());
                Ok([column(0)?, column(1)?, column(2)?])
            })
        };
        count().map_err(|error| self.failed(&error))
    }

    /// The stamp in the middle of the readable ones from `start` on and before `end` (of two, the earlier), in microseconds and as
    /// delivered. Of more than a thousand records it is that of records spread evenly over the store, near enough to the middle.
    pub fn median_modified_between(&self, source: &str, start: i64, end: i64) -> Result<Option<(i64, String)>, StoreError> {
        let mut stamps = self.sample(source, start, end).map_err(|error| self.failed(&error))?;
        stamps.sort();
        let middle = stamps.len().saturating_sub(1) / 2;
        Ok(stamps.into_iter().nth(middle))
    }

    /// The stamps of records spread evenly over those that the source has, all of them where there are few.
    fn sample(&self, source: &str, start: i64, end: i64) -> rusqlite::Result<Vec<(i64, String)>> {
        let mut stamps = Vec::new();
        let Some((mut first, last)) = self.extent(source)? else { return Ok(stamps) };
        let stride = (last.saturating_sub(first) / SAMPLE_RECORDS).max(1);
        let mut statement = self.connection.prepare_cached(NEXT_STAMP)?;
        // Each turn takes a stride off what lies between.
        while first <= last {
            let read =
                |row: &rusqlite::Row<'_>| Ok((row.get(0)?, (row.get(1)?, row.get::<_, Option<String>>(2)?.unwrap_or_default())));
            let found: Option<(i64, _)> = statement.query_row(params![source, first, last, start, end], read).optional()?;
            let Some((id, stamp)) = found else { break };
            stamps.push(stamp);
            first = id.saturating_add(stride);
        }
        Ok(stamps)
    }

    /// The first and the last row of a source.
    fn extent(&self, source: &str) -> rusqlite::Result<Option<(i64, i64)>> {
        let extent: (Option<i64>, Option<i64>) =
            self.connection.prepare_cached(EXTENT)?.query_row([source], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(extent.0.zip(extent.1))
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
    use super::super::fixture::{NOW, Place, SOURCE, complete, count, page};

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
        assert_eq!(store.count_modified_between(SOURCE, 10, [30, 31, i64::MAX]).unwrap(), [2, 3, 3]);
        assert_eq!(store.count_modified_between("another", 10, [30, 31, i64::MAX]).unwrap(), [0; 3]);
        assert_eq!(store.count_records("another").unwrap(), 0);
    }
    #[test]
    fn records_are_counted_alike_where_there_is_one_source_and_where_there_are_more() {
        let place = Place::new();
        let (mut store, run) = place.begun();
        page(&mut store, &[("a", Some(10), "a"), ("b", Some(20), "b")], NOW);
        store.finish_run(&complete(run)).unwrap();
        assert_eq!((store.count_records(SOURCE).unwrap(), store.count_records("another").unwrap()), (2, 0));
        store.begin_run("another", NOW, "").unwrap();
        assert_eq!((store.count_records(SOURCE).unwrap(), store.count_records("another").unwrap()), (2, 0));
        drop(store);
        let (mut dry, _) = place.dry();
        page(&mut dry, &[("c", Some(10), "c")], NOW);
        assert_eq!(dry.count_records(SOURCE).unwrap(), 3);
    }

    #[test]
    fn the_median_of_many_is_near_the_middle_and_is_no_other_sources() {
        let place = Place::new();
        let (mut store, _) = place.begun();
        let names: Vec<String> = (0..5_000).map(|n| format!("id{n:04}")).collect();
        // In no order, as a catalogue that does not sort delivers them.
        let at = |n: usize| Some(i64::try_from((n * n * 31 + n * 2_003) / 7 % 5_000).unwrap());
        let records: Vec<_> = names.iter().enumerate().map(|(n, name)| (name.as_str(), at(n), "x")).collect();
        page(&mut store, &records, NOW);
        place.sql().execute_batch("UPDATE records SET source = 'another' WHERE modified_at < 1000").unwrap();
        let (median, text) = store.median_modified_between(SOURCE, 0, 10_000).unwrap().unwrap();
        assert!((2_700..3_300).contains(&median), "{median}");
        assert_eq!(text, median.to_string());
        let all = count(&place.sql(), "SELECT count(*) FROM records WHERE source <> 'another'").unsigned_abs();
        assert!(all < 4_500, "{all}");
        assert_eq!(store.count_modified_between(SOURCE, 0, [0, 1_000, 10_000]).unwrap(), [0, 0, all]);
    }
}
