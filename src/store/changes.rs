//! What the store holds, and what became of it after a given moment, in the order in which it changed.
//!
//! Row by row out of one snapshot, by the index on `changed_seq`: nothing is sorted, and memory does not grow with the store. Each number
//! was given out once, so that the order is one and what comes after N is told without loss. Reads only.

use rusqlite::{Row, params};

use super::{Snapshot, StoreError};

const LIVE: &str = "
SELECT source, identifier, harvested_at, changed_seq, title, modified, xml FROM stored
WHERE ?1 IS NULL OR source = ?1
ORDER BY changed_seq";
const SINCE: &str = "
SELECT source, identifier, harvested_at AS at, changed_seq AS seq, title, modified, xml FROM stored
WHERE changed_seq > ?2 AND (?1 IS NULL OR source = ?1)
UNION ALL
SELECT source, identifier, deleted_at, changed_seq, NULL, NULL, NULL FROM tombstones
WHERE changed_seq > ?2 AND (?1 IS NULL OR source = ?1)
ORDER BY seq";

/// A record, or the end of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<'a> {
    /// Whose it is.
    pub source: &'a str,
    /// Its identifier.
    pub identifier: &'a str,
    /// When this content arrived, or when the record was found to be gone; RFC 3339 in UTC.
    pub at: &'a str,
    /// `changed_seq`.
    pub seq: i64,
    /// What the record holds; `None` for one that is gone.
    pub content: Option<Content<'a>>,
}

/// What a record holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content<'a> {
    /// Its title.
    pub title: Option<&'a str>,
    /// Its stamp as delivered.
    pub modified: Option<&'a str>,
    /// The record, well formed on its own.
    pub xml: &'a str,
}

impl Snapshot<'_> {
    /// Shows every record, of one source or of all, by rising `changed_seq`; what `show` returns as an error ends the walk.
    ///
    /// # Errors
    /// The store cannot be read, or what `show` returned.
    pub fn each_record<E: From<StoreError>>(
        &self,
        source: Option<&str>,
        show: impl FnMut(&Change<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.walk(LIVE, params![source], show)
    }

    /// Shows what has a `changed_seq` above `seq`: records as they are now, and what is gone. Otherwise as [`Snapshot::each_record`].
    ///
    /// # Errors
    /// The store cannot be read, or what `show` returned.
    pub fn each_change<E: From<StoreError>>(
        &self,
        seq: i64,
        source: Option<&str>,
        show: impl FnMut(&Change<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.walk(SINCE, params![source, seq], show)
    }

    fn walk<E: From<StoreError>>(
        &self,
        sql: &str,
        params: impl rusqlite::Params,
        mut show: impl FnMut(&Change<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let failed = |error: rusqlite::Error| E::from(self.store.failed(&error));
        let mut statement = self.store.connection.prepare_cached(sql).map_err(failed)?;
        let mut rows = statement.query(params).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            show(&change_of(row).map_err(failed)?)?;
        }
        Ok(())
    }
}

fn change_of<'a>(row: &'a Row<'_>) -> rusqlite::Result<Change<'a>> {
    let content = match row.get_ref(6)?.as_str_or_null()? {
        Some(xml) => Some(Content { title: row.get_ref(4)?.as_str_or_null()?, modified: row.get_ref(5)?.as_str_or_null()?, xml }),
        None => None,
    };
    Ok(Change {
        source: row.get_ref(0)?.as_str()?,
        identifier: row.get_ref(1)?.as_str()?,
        at: row.get_ref(2)?.as_str()?,
        seq: row.get(3)?,
        content,
    })
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{NOW, Place, SOURCE, page};
    use super::*;
    use crate::store::Store;

    /// Two sources, an edit, a deletion: `a` 1, `b` 4, `x` of another source 5, `c` gone 6.
    fn place() -> Place {
        let place = Place::new();
        let (mut store, _) = place.begun();
        page(&mut store, &[("a", Some(1), "<a/>"), ("b", Some(2), "<b/>"), ("c", None, "<c/>")], NOW);
        page(&mut store, &[("b", Some(3), "<b2/>")], NOW);
        drop(store);
        place
            .sql()
            .execute_batch(
                "INSERT INTO records (source, identifier, harvested_at, changed_seq, xml) VALUES ('other', 'x', 'h', 5, '<x/>');
                 DELETE FROM records WHERE identifier = 'c';
                 INSERT INTO tombstones VALUES ('https://a.example/csw', 'c', 'gone', 6);
                 UPDATE sequence SET last = 6",
            )
            .unwrap();
        place
    }

    fn told(snapshot: &Snapshot<'_>, since: Option<i64>, source: Option<&str>) -> Vec<String> {
        let mut told = Vec::new();
        let mut show = |change: &Change<'_>| {
            let xml = change.content.map_or("-", |content| content.xml);
            told.push(format!("{} {} {xml}", change.seq, change.identifier));
            Ok::<(), StoreError>(())
        };
        match since {
            Some(seq) => snapshot.each_change(seq, source, &mut show).unwrap(),
            None => snapshot.each_record(source, &mut show).unwrap(),
        }
        told
    }

    #[test]
    fn records_and_deletions_come_in_the_order_in_which_they_changed() {
        let place = place();
        let store = Store::open_existing(&place.path()).unwrap();
        let snapshot = store.snapshot().unwrap();
        assert_eq!(snapshot.last_seq(), 6);
        assert_eq!(told(&snapshot, None, None), ["1 a <a/>", "4 b <b2/>", "5 x <x/>"]);
        assert_eq!(told(&snapshot, None, Some(SOURCE)), ["1 a <a/>", "4 b <b2/>"]);
        assert_eq!(told(&snapshot, Some(0), None), ["1 a <a/>", "4 b <b2/>", "5 x <x/>", "6 c -"]);
        assert_eq!(told(&snapshot, Some(4), None), ["5 x <x/>", "6 c -"]);
        assert_eq!(told(&snapshot, Some(3), Some(SOURCE)), ["4 b <b2/>", "6 c -"]);
        assert_eq!(told(&snapshot, Some(6), None), [""; 0]);
        assert_eq!(told(&snapshot, None, Some("nobody")), [""; 0]);
    }

    #[test]
    fn what_the_caller_returns_ends_the_walk() {
        let place = place();
        let store = Store::open_existing(&place.path()).unwrap();
        let mut seen = 0;
        let end = store.snapshot().unwrap().each_change(0, None, |change| {
            seen += 1;
            if change.seq == 4 { Err(StoreError::Busy { path: place.path() }) } else { Ok(()) }
        });
        assert_eq!((end, seen), (Err(StoreError::Busy { path: place.path() }), 2));
    }

    #[test]
    fn no_rows_are_sorted_and_no_index_on_the_source_is_walked() {
        let place = place();
        let store = Store::open_existing(&place.path()).unwrap();
        for sql in [LIVE, SINCE] {
            let mut statement = store.connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let wanted = statement.parameter_count();
            let given: Vec<Option<i64>> = vec![Some(1); wanted];
            let rows = statement.query_map(rusqlite::params_from_iter(given), |row| row.get::<_, String>(3)).unwrap();
            let plan = rows.collect::<Result<Vec<_>, _>>().unwrap().join("\n");
            assert!(!plan.contains("TEMP B-TREE") && plan.contains("records_changed_seq"), "{plan}");
        }
    }
}
