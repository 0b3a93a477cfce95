//! All that is told of a source to those who watch it: how far it got, what it holds, how its runs ended.
//!
//! Reads only, one row of each kind. How old a thing may be, and what is well, is not known here.

use rusqlite::{OptionalExtension, Row, Transaction};

use super::{Snapshot, StoreError};

const SOURCES: &str = "
SELECT source, watermark, watermark_at, clock, last_success_at,
       inventory_at, inventory_gap, inventory_new, inventory_updated, inventory_deleted
FROM harvest_state WHERE ?1 IS NULL OR source = ?1 ORDER BY source";
const RECORDS: &str = "SELECT count(*) FROM stored WHERE source = ?1";
const TOMBSTONES: &str = "SELECT count(*) FROM tombstones WHERE source = ?1";
const PROBLEMS: &str = "SELECT count(*) FROM problems WHERE source = ?1";
const LATEST_PROBLEM: &str = "
SELECT place, why, first_seen, last_seen, attempts FROM problems
WHERE source = ?1 ORDER BY last_seen DESC, first_seen DESC, place LIMIT 1";
const LAST_RUN: &str = "
SELECT started_at, ended_at, outcome, exit_code, new, updated, unchanged, deleted, skipped, reconciled, error
FROM runs WHERE source = ?1 ORDER BY id DESC LIMIT 1";

/// A source as the store knows it. Times are RFC 3339 in UTC.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overview {
    /// Its key.
    pub source: String,
    /// The watermark as the catalogue wrote it.
    pub watermark: String,
    /// The watermark's instant in microseconds since 1970.
    pub watermark_at: Option<i64>,
    /// Whose clock the watermark follows; `None` while that is not found out.
    pub clock: Option<String>,
    /// When the last complete run ended.
    pub last_success_at: Option<String>,
    /// Records held.
    pub records: u64,
    /// Records that are gone.
    pub tombstones: u64,
    /// Open problems.
    pub problems: u64,
    /// The one that was met last.
    pub latest_problem: Option<Problem>,
    /// The run that began last.
    pub last_run: Option<LastRun>,
    /// The last complete inventory.
    pub inventory: Option<Inventory>,
}

/// A record or a position that could not be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub place: String,
    /// Why.
    pub why: String,
    /// When it was first met.
    pub first_seen: String,
    /// When it was last met.
    pub last_seen: String,
    /// How often.
    pub attempts: u64,
}

/// A run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastRun {
    /// When it began.
    pub started_at: String,
    /// When it ended; `None` for one that is under way or was killed.
    pub ended_at: Option<String>,
    /// How it ended: `complete`, `partial`, `skipped` or `failed`; `None` as above.
    pub outcome: Option<String>,
    /// The exit code; `None` as above.
    pub exit_code: Option<i64>,
    /// Records that the store did not have.
    pub new: u64,
    /// Records whose content differed.
    pub updated: u64,
    /// Records that were as the store had them.
    pub unchanged: u64,
    /// Records that became tombstones.
    pub deleted: u64,
    /// Records and positions that could not be had.
    pub skipped: u64,
    /// Whether an inventory was taken to its end.
    pub reconciled: bool,
    /// What went wrong.
    pub error: Option<String>,
}

/// A complete inventory and what it found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    /// When.
    pub at: String,
    /// What the catalogue counts less what the store held then.
    pub gap: Option<i64>,
    /// Records that the store did not have.
    pub new: u64,
    /// Records that differed.
    pub updated: u64,
    /// Records that were gone.
    pub deleted: u64,
}

impl Snapshot<'_> {
    /// Every source by its key, or the one of this key.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn overviews(&self, source: Option<&str>) -> Result<Vec<Overview>, StoreError> {
        self.read(|transaction| {
            let mut statement = transaction.prepare_cached(SOURCES)?;
            let found: Vec<Overview> = statement.query_map([source], overview_of)?.collect::<Result<_, _>>()?;
            found.into_iter().map(|overview| completed(transaction, overview)).collect()
        })
    }
}

fn completed(transaction: &Transaction<'_>, mut overview: Overview) -> rusqlite::Result<Overview> {
    let source = [overview.source.as_str()];
    let count = |sql: &str| transaction.prepare_cached(sql)?.query_row(source, |row| unsigned(row, 0));
    (overview.records, overview.tombstones, overview.problems) = (count(RECORDS)?, count(TOMBSTONES)?, count(PROBLEMS)?);
    overview.latest_problem = transaction.prepare_cached(LATEST_PROBLEM)?.query_row(source, problem_of).optional()?;
    overview.last_run = transaction.prepare_cached(LAST_RUN)?.query_row(source, run_of).optional()?;
    Ok(overview)
}

fn overview_of(row: &Row<'_>) -> rusqlite::Result<Overview> {
    let inventory = match row.get(5)? {
        Some(at) => {
            Some(Inventory { at, gap: row.get(6)?, new: unsigned(row, 7)?, updated: unsigned(row, 8)?, deleted: unsigned(row, 9)? })
        }
        None => None,
    };
    Ok(Overview {
        source: row.get(0)?,
        watermark: row.get(1)?,
        watermark_at: row.get(2)?,
        clock: row.get(3)?,
        last_success_at: row.get(4)?,
        inventory,
        ..Overview::default()
    })
}

fn problem_of(row: &Row<'_>) -> rusqlite::Result<Problem> {
    Ok(Problem {
        place: row.get(0)?,
        why: row.get(1)?,
        first_seen: row.get(2)?,
        last_seen: row.get(3)?,
        attempts: unsigned(row, 4)?,
    })
}

fn run_of(row: &Row<'_>) -> rusqlite::Result<LastRun> {
    Ok(LastRun {
        started_at: row.get(0)?,
        ended_at: row.get(1)?,
        outcome: row.get(2)?,
        exit_code: row.get(3)?,
        new: unsigned(row, 4)?,
        updated: unsigned(row, 5)?,
        unchanged: unsigned(row, 6)?,
        deleted: unsigned(row, 7)?,
        skipped: unsigned(row, 8)?,
        reconciled: row.get(9)?,
        error: row.get(10)?,
    })
}

/// A count; NULL and what is below zero were never counted.
fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let count: Option<i64> = row.get(column)?;
    Ok(count.and_then(|count| u64::try_from(count).ok()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{NOW, Place, SOURCE, begin, complete, page};
    use super::*;
    use crate::store::{RunOutcome, Store};

    fn overviews(place: &Place, source: Option<&str>) -> Vec<Overview> {
        Store::open_existing(&place.path()).unwrap().snapshot().unwrap().overviews(source).unwrap()
    }

    #[test]
    fn a_source_that_has_begun_has_a_run_without_an_end() {
        let place = Place::new();
        let (store, _) = place.begun();
        let last_run = Some(LastRun { started_at: NOW.to_owned(), ..LastRun::default() });
        let watermark = crate::watermark::FIRST.to_owned();
        let expected = Overview { source: SOURCE.to_owned(), watermark, last_run, ..Overview::default() };
        assert_eq!(overviews(&place, None), [expected]);
        drop(store);
    }

    #[test]
    fn each_source_has_its_own_and_the_last_of_each_kind_is_told() {
        let place = Place::new();
        let (mut store, run) = place.begun();
        page(&mut store, &[("a", Some(10), "a"), ("b", Some(20), "b")], NOW);
        store.finish_run(&complete(run)).unwrap();
        let run = begin(&mut store);
        store
            .finish_run(&crate::store::RunEnd { outcome: RunOutcome::Failed, exit_code: 69, error: Some("e"), ..complete(run) })
            .unwrap();
        drop(store);
        place
            .sql()
            .execute_batch(&format!(
                "INSERT INTO harvest_state (source, inventory_at, inventory_gap, inventory_new, inventory_updated, inventory_deleted)
                 VALUES ('a', 'i', -1, 2, 3, 4);
                 INSERT INTO tombstones VALUES ('{SOURCE}', 'c', 'd', 9);
                 INSERT INTO problems VALUES ('{SOURCE}', 'p1', 'w1', 'f1', 'l2', 5, 1), ('{SOURCE}', 'p2', 'w2', 'f2', 'l1', 6, 1)"
            ))
            .unwrap();
        let all = overviews(&place, None);
        assert_eq!(all.iter().map(|overview| overview.source.as_str()).collect::<Vec<_>>(), ["a", SOURCE]);
        let inventory = Inventory { at: "i".to_owned(), gap: Some(-1), new: 2, updated: 3, deleted: 4 };
        assert_eq!((all[0].inventory.as_ref(), all[0].last_run.as_ref(), all[0].records), (Some(&inventory), None, 0));
        let second = &all[1];
        assert_eq!((second.records, second.tombstones, second.problems), (2, 1, 2));
        assert_eq!(second.last_success_at.as_deref(), Some(NOW));
        let problem = second.latest_problem.as_ref().unwrap();
        assert_eq!((problem.place.as_str(), problem.attempts), ("p1", 5));
        let run = second.last_run.as_ref().unwrap();
        assert_eq!((run.outcome.as_deref(), run.exit_code, run.error.as_deref()), (Some("failed"), Some(69), Some("e")));
        assert_eq!(overviews(&place, Some(SOURCE)).first(), Some(second));
        assert_eq!(overviews(&place, Some("nobody")), []);
    }
}
