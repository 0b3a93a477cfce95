//! An inventory under way: what it goes on from, how what it lists compares with what is held, and what is gone in the end.
//!
//! Only records that were held, unchanged, since before the inventory (or the reading of everything) began can be gone. They are collected
//! in a temporary table, so that their number costs disk and not memory. Whether they may be taken for deleted is decided elsewhere.

use rusqlite::{Connection, OptionalExtension, params};

use super::ledger::Ledger;
use super::overlay::{self, Face};
use super::page::Writing;
use super::run::{self, RunMarks};
use super::seen::{self, Phase};
use super::{Store, StoreError};

/// Records that are buried in one transaction.
const BURIED_BATCH_RECORDS: u32 = 1_000;

const CREATE: &str = "CREATE TEMP TABLE gone (identifier TEXT PRIMARY KEY NOT NULL) STRICT, WITHOUT ROWID";
const UNFINISHED: &str = "SELECT element_set, plan, began_at FROM inventories WHERE source = ?1";
const BEGIN: &str = "
INSERT INTO inventories (source, element_set, plan, begin_seq, began_at) VALUES (?1, ?2, ?3, (SELECT last FROM sequence), ?4)
ON CONFLICT (source) DO UPDATE SET
    element_set = excluded.element_set, plan = excluded.plan, begin_seq = excluded.begin_seq, began_at = excluded.began_at";
const BEGIN_SEQ: &str = "SELECT begin_seq FROM inventories WHERE source = ?1";
const DROP: &str = "DELETE FROM inventories WHERE source = ?1";

const STAMP: &str = "SELECT modified, twin FROM stored WHERE source = ?1 AND identifier = ?2";
const IDENTIFIERS: &str = "SELECT identifier FROM stored WHERE source = ?1";
const CHANGED: &str = "SELECT changed_seq FROM stored WHERE source = ?1 AND identifier = ?2";
const FORGET_GONE: &str = "DELETE FROM temp.gone";
const ADD_GONE: &str = "INSERT INTO temp.gone (identifier) VALUES (?1)";
const SPARE: &str = "DELETE FROM temp.gone WHERE identifier = ?1";
const SOME_GONE: &str = "SELECT identifier FROM temp.gone WHERE identifier > ?1 ORDER BY identifier LIMIT ?2";
const BURY: &str = "
INSERT INTO tombstones (source, identifier, deleted_at, changed_seq) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (source, identifier) DO UPDATE SET deleted_at = excluded.deleted_at, changed_seq = excluded.changed_seq";
const REMOVE: &str = "DELETE FROM records WHERE source = ?1 AND identifier = ?2";

/// An inventory that was cut off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredInventory {
    /// The element set that it was read in.
    pub element_set: String,
    /// The plan's own text.
    pub plan: String,
    /// When it began, RFC 3339.
    pub began_at: String,
}

/// What is held of a record that an inventory lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldStamp {
    /// Its stamp as delivered.
    pub modified: Option<String>,
    /// Whether the catalogue is known to hold several records of this identifier.
    pub twin: bool,
}

/// What a reading of everything did not meet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gone {
    /// Records that the store holds.
    pub held: u64,
    /// Of them, those that were not met and are not younger than the reading.
    pub gone: u64,
    /// One that was met.
    pub met: Option<String>,
}

/// Makes the temporary table.
pub(super) fn install(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(CREATE)
}

/// Drops all that an unfinished inventory left.
pub(super) fn drop_inventory(connection: &Connection, source: &str) -> rusqlite::Result<()> {
    connection.execute(DROP, [source])?;
    seen::drop_kept(connection, source, Phase::Inventory)
}

impl Store {
    /// The inventory of a source that was cut off.
    pub fn unfinished_inventory(&self, source: &str) -> Result<Option<StoredInventory>, StoreError> {
        let of_row =
            |row: &rusqlite::Row<'_>| Ok(StoredInventory { element_set: row.get(0)?, plan: row.get(1)?, began_at: row.get(2)? });
        let read = || self.connection.prepare_cached(UNFINISHED)?.query_row([source], of_row).optional();
        read().map_err(|error| self.failed(&error))
    }

    /// Begins an inventory: the window is read and settled, so that there is nothing to resume in it, and what an earlier inventory
    /// left is given up.
    pub fn begin_inventory(&mut self, source: &str, inventory: &StoredInventory) -> Result<(), StoreError> {
        let begun = begin(&mut self.connection, &mut self.ledger, self.face, source, inventory);
        begun.map_err(|error| self.failed(&error))
    }

    /// Gives up an inventory that was cut off.
    pub fn forget_inventory(&mut self, source: &str) -> Result<(), StoreError> {
        let mut forget = || {
            let transaction = overlay::begin(&mut self.connection, self.face)?;
            drop_inventory(&transaction, source)?;
            transaction.commit()
        };
        forget().map_err(|error| self.failed(&error))
    }

    /// What is held of each of these identifiers, in order.
    pub fn held_stamps<'a>(
        &self,
        source: &str,
        identifiers: impl Iterator<Item = &'a str>,
    ) -> Result<Vec<Option<HeldStamp>>, StoreError> {
        let read = || {
            let mut statement = self.connection.prepare_cached(STAMP)?;
            let of_row = |row: &rusqlite::Row<'_>| Ok(HeldStamp { modified: row.get(0)?, twin: row.get(1)? });
            identifiers
                .map(|identifier| statement.query_row([source, identifier], of_row).optional())
                .collect::<rusqlite::Result<_>>()
        };
        read().map_err(|error| self.failed(&error))
    }

    /// Collects what the reading of everything in this phase did not meet.
    pub fn find_gone(&mut self, source: &str, phase: Phase) -> Result<Gone, StoreError> {
        let marks = self.marks_of(source)?;
        if phase == Phase::Window && marks.began_empty {
            // Whatever is there came in this run.
            return Ok(Gone { held: self.count_records(source)?, ..Gone::default() });
        }
        if !marks.met_unheld {
            // All that was met is held. If it is as many as are held, then nothing else is.
            let held = self.count_records(source)?;
            let met = seen::count_met(&self.connection, &mut self.ledger, phase).map_err(|error| self.failed(&error))?;
            if met == held {
                return Ok(Gone { held, ..Gone::default() });
            }
        }
        find_gone(&mut self.connection, &self.ledger, source, phase, marks.chain_seq).map_err(|error| self.failed(&error))
    }

    /// Those of the collected identifiers that follow after `after`, `limit` of them at the most, in order.
    pub fn gone_after(&self, after: &str, limit: u32) -> Result<Vec<String>, StoreError> {
        let read = || -> rusqlite::Result<Vec<String>> {
            self.connection.prepare_cached(SOME_GONE)?.query_map(params![after, limit], |row| row.get(0))?.collect()
        };
        read().map_err(|error| self.failed(&error))
    }

    /// Takes identifiers off what was collected.
    pub fn spare<'a>(&mut self, identifiers: impl Iterator<Item = &'a str>) -> Result<(), StoreError> {
        let spare = || {
            let transaction = self.connection.transaction()?;
            for identifier in identifiers {
                transaction.prepare_cached(SPARE)?.execute([identifier])?;
            }
            transaction.commit()
        };
        spare().map_err(|error| self.failed(&error))
    }

    /// Moves some of what is left of what was collected to the tombstones, in one transaction, and says how many: 0 when nothing is left.
    /// What is never moved is left to a later inventory.
    pub fn bury_some(&mut self, source: &str, deleted_at: &str) -> Result<u64, StoreError> {
        let mut marks = self.marks_of(source)?;
        bury_batch(&mut self.connection, self.face, &mut marks, deleted_at).map_err(|error| self.failed(&error))
    }
}

fn begin(
    connection: &mut Connection,
    ledger: &mut Ledger,
    face: Face,
    source: &str,
    inventory: &StoredInventory,
) -> rusqlite::Result<()> {
    let transaction = overlay::begin(connection, face)?;
    run::drop_cursor(&transaction, source)?;
    drop_inventory(&transaction, source)?;
    seen::forget_inventory(&transaction, ledger)?;
    transaction.execute(BEGIN, params![source, inventory.element_set, inventory.plan, inventory.began_at])?;
    transaction.commit()
}

/// Touches temporary tables only.
fn find_gone(connection: &mut Connection, ledger: &Ledger, source: &str, phase: Phase, chain_seq: i64) -> rusqlite::Result<Gone> {
    let transaction = connection.transaction()?;
    transaction.execute(FORGET_GONE, [])?;
    let begin_seq = match phase {
        Phase::Window => chain_seq,
        Phase::Inventory => transaction.query_row(BEGIN_SEQ, [source], |row| row.get(0))?,
    };
    let mut found = Gone::default();
    {
        let mut identifiers = transaction.prepare_cached(IDENTIFIERS)?;
        let mut changed = transaction.prepare_cached(CHANGED)?;
        let mut add = transaction.prepare_cached(ADD_GONE)?;
        let mut rows = identifiers.query([source])?;
        while let Some(row) = rows.next()? {
            let identifier = row.get_ref(0)?.as_str()?;
            found.held += 1;
            if seen::is_met(&transaction, ledger, phase, identifier)? {
                found.met.get_or_insert_with(|| identifier.to_owned());
                continue;
            }
            let changed_seq: i64 = changed.query_row([source, identifier], |row| row.get(0))?;
            if changed_seq <= begin_seq {
                add.execute([identifier])?;
                found.gone += 1;
            }
        }
    }
    transaction.commit()?;
    Ok(found)
}

fn bury_batch(connection: &mut Connection, face: Face, marks: &mut RunMarks, deleted_at: &str) -> rusqlite::Result<u64> {
    let transaction = overlay::begin(connection, face)?;
    let source = marks.source.clone();
    let mut writing = Writing::begin(&transaction, face, marks, deleted_at)?;
    let batch: Vec<String> = transaction
        .prepare_cached(SOME_GONE)?
        .query_map(params!["", BURIED_BATCH_RECORDS], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for identifier in &batch {
        writing.sequence += 1;
        transaction.prepare_cached(BURY)?.execute(params![source, identifier, deleted_at, writing.sequence])?;
        transaction.prepare_cached(REMOVE)?.execute([source.as_str(), identifier])?;
        transaction.prepare_cached(SPARE)?.execute([identifier])?;
    }
    writing.end()?;
    transaction.commit()?;
    Ok(batch.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{NOW, Place, SOURCE, Short, begin, contents, owned, page, whole_run};
    use super::*;
    use crate::store::{Mode, PageWrite, Pass, ProblemWrite};

    const INVENTORY: Pass = Pass { phase: Phase::Inventory, number: 1 };
    const FOUR: &[Short<'_>] = &[("a", Some(1), "a"), ("b", Some(1), "b"), ("c", Some(1), "c"), ("d", None, "d")];

    fn unfinished() -> StoredInventory {
        StoredInventory { element_set: "summary".to_owned(), plan: "p".to_owned(), began_at: NOW.to_owned() }
    }

    fn met(store: &mut Store, names: &[&str]) {
        store.mark_seen(INVENTORY, names.iter().map(|name| (*name, ""))).unwrap();
    }

    fn tombstones(place: &Place) -> Vec<(String, i64)> {
        let sql = place.sql();
        let mut statement = sql.prepare("SELECT identifier, changed_seq FROM tombstones ORDER BY identifier").unwrap();
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn what_was_not_met_and_is_no_younger_is_gone_and_gets_a_number_of_its_own() {
        let place = Place::new();
        let mut store = place.open();
        whole_run(&mut store, &[FOUR], NOW);
        begin(&mut store);
        store.begin_inventory(SOURCE, &unfinished()).unwrap();
        // Of a window of the same run, or of a run in between: it came after the inventory had begun.
        page(&mut store, &[("e", Some(2), "e"), ("b", Some(2), "b2")], NOW);
        met(&mut store, &["a"]);
        let gone = store.find_gone(SOURCE, Phase::Inventory).unwrap();
        assert_eq!(gone, Gone { held: 5, gone: 2, met: Some("a".to_owned()) });
        assert_eq!(store.gone_after("", 10).unwrap(), ["c", "d"]);
        assert_eq!(store.gone_after("c", 10).unwrap(), ["d"]);
        store.spare(["c"].into_iter()).unwrap();
        assert_eq!(store.bury_some(SOURCE, NOW).unwrap(), 1);
        assert_eq!(contents(&place.sql()), owned(&[("a", "a"), ("b", "b2"), ("c", "c"), ("e", "e")]));
        assert_eq!(tombstones(&place), [("d".to_owned(), 7)]);
        assert_eq!(store.bury_some(SOURCE, NOW).unwrap(), 0);
        page(&mut store, &[("d", None, "d")], NOW);
        assert!(tombstones(&place).is_empty());
    }

    #[test]
    fn as_many_met_as_held_means_none_gone_only_where_all_that_was_met_is_held() {
        let place = Place::new();
        let mut store = place.open();
        whole_run(&mut store, &[FOUR], NOW);
        begin(&mut store);
        store.begin_inventory(SOURCE, &unfinished()).unwrap();
        met(&mut store, &["a", "b", "c", "d"]);
        assert_eq!(store.find_gone(SOURCE, Phase::Inventory).unwrap(), Gone { held: 4, ..Gone::default() });

        // A faulty record came in the place of one that is gone.
        begin(&mut store);
        store.forget_seen().unwrap();
        store.begin_inventory(SOURCE, &unfinished()).unwrap();
        met(&mut store, &["a", "b", "c", "x"]);
        let problems = [ProblemWrite { place: "id:x", why: "faulty" }];
        let page = PageWrite { source: SOURCE, records: &[], harvested_at: NOW, cursor: None, problems: &problems };
        store.commit_page(&page).unwrap();
        assert_eq!(store.find_gone(SOURCE, Phase::Inventory).unwrap().gone, 1);
        assert_eq!(store.gone_after("", 10).unwrap(), ["d"]);

        // The run that met it was cut off.
        begin(&mut store);
        store.forget_seen().unwrap();
        store.recall_met(SOURCE, Phase::Inventory).unwrap();
        met(&mut store, &["a", "b", "c", "x"]);
        assert_eq!(store.find_gone(SOURCE, Phase::Inventory).unwrap().gone, 1);
    }

    #[test]
    fn more_than_a_batch_is_buried_whole() {
        let place = Place::new();
        let mut store = place.open();
        let names: Vec<String> = (0..2 * BURIED_BATCH_RECORDS + 7).map(|number| format!("r{number:05}")).collect();
        let records: Vec<Short<'_>> = names.iter().map(|name| (name.as_str(), Some(1), "x")).collect();
        whole_run(&mut store, &[&records], NOW);
        begin(&mut store);
        store.begin_inventory(SOURCE, &unfinished()).unwrap();
        met(&mut store, &["r00003"]);
        let gone = store.find_gone(SOURCE, Phase::Inventory).unwrap().gone;
        let batches: Vec<u64> = (0..4).map(|_| store.bury_some(SOURCE, NOW).unwrap()).collect();
        assert_eq!(batches, [1_000, 1_000, gone - 2_000, 0]);
        assert_eq!(contents(&place.sql()).len(), 1);
        assert_eq!(tombstones(&place).len() as u64, gone);
    }

    #[test]
    fn a_dry_run_buries_nothing_and_no_longer_shows_it() {
        let place = Place::new();
        whole_run(&mut place.open(), &[FOUR], NOW);
        let mut dry = Store::open(&place.path(), Mode::DryRun).unwrap();
        begin(&mut dry);
        page(&mut dry, &[("b", Some(2), "b2")], NOW);
        dry.begin_inventory(SOURCE, &unfinished()).unwrap();
        met(&mut dry, &["a"]);
        dry.find_gone(SOURCE, Phase::Inventory).unwrap();
        assert_eq!(dry.bury_some(SOURCE, NOW).unwrap(), 3);
        assert_eq!(dry.count_records(SOURCE).unwrap(), 1);
        assert_eq!(contents(&place.sql()).len(), 4);
        assert!(tombstones(&place).is_empty());
    }

    #[test]
    fn an_inventory_is_there_until_it_is_given_up_and_what_it_met_with_it() {
        let place = Place::new();
        let mut store = place.open();
        whole_run(&mut store, &[FOUR], NOW);
        begin(&mut store);
        assert_eq!(store.unfinished_inventory(SOURCE).unwrap(), None);
        store.begin_inventory(SOURCE, &unfinished()).unwrap();
        store.keep_met(Some(Phase::Inventory));
        met(&mut store, &["a", "b"]);
        page(&mut store, &[], NOW);
        drop(store);
        let mut store = place.open();
        begin(&mut store);
        assert_eq!(store.unfinished_inventory(SOURCE).unwrap(), Some(unfinished()));
        store.recall_met(SOURCE, Phase::Inventory).unwrap();
        assert_eq!(store.find_gone(SOURCE, Phase::Inventory).unwrap().gone, 2);
        store.forget_inventory(SOURCE).unwrap();
        store.forget_seen().unwrap();
        store.recall_met(SOURCE, Phase::Inventory).unwrap();
        assert!(!store.met_any(Phase::Inventory).unwrap());
        assert_eq!(store.unfinished_inventory(SOURCE).unwrap(), None);
    }

    #[test]
    fn what_is_held_is_told_in_the_order_of_the_question() {
        let place = Place::new();
        let mut store = place.open();
        whole_run(&mut store, &[FOUR], NOW);
        let held = store.held_stamps(SOURCE, ["d", "nobody", "a"].into_iter()).unwrap();
        let stamp = |modified: Option<&str>| Some(HeldStamp { modified: modified.map(str::to_owned), twin: false });
        assert_eq!(held, [stamp(None), None, stamp(Some("1"))]);
    }
}
