//! What was met under a hash: a table on disk, and in memory as much as makes it quick.
//!
//! Hashes come in no order, and a table by hash changes most of its pages with every page of a catalogue. So the last entries wait in
//! memory and go to the table together, in its order; and a filter (B. H. Bloom, 1970) says of most hashes at once that the table has none
//! of them. Neither grows with the catalogue. The table is a temporary one and ends with the connection. What the entries mean is for
//! `seen.rs` to say.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Transaction, params};

/// Entries that wait in memory: nearly as many as a table of 32,768 places holds before it doubles.
const RECENT_MAX: usize = 28_000;
/// With a million hashes in it, the filter still spares five of six look-ups.
const FILTER_BITS: u64 = 1 << 22;

const CREATE: &str = "CREATE TEMP TABLE seen (hash INTEGER PRIMARY KEY, stamp INTEGER NOT NULL, pass INTEGER NOT NULL) STRICT";
const FIND: &str = "SELECT stamp, pass FROM temp.seen WHERE hash = ?1";
const PUT: &str = "
INSERT INTO temp.seen (hash, stamp, pass) VALUES (?1, ?2, ?3)
ON CONFLICT (hash) DO UPDATE SET stamp = excluded.stamp, pass = excluded.pass";
const FORGET: &str = "DELETE FROM temp.seen";
const LOWER: &str = "UPDATE temp.seen SET pass = ?2 WHERE pass >= ?1";
const COUNT: &str = "SELECT count(*) FROM temp.seen WHERE pass >= ?1";
const ANY: &str = "SELECT EXISTS (SELECT 1 FROM temp.seen WHERE pass >= ?1)";

/// A stamp's hash and the pass.
pub(super) type Entry = (i64, u32);

/// Entries by hash.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    recent: HashMap<i64, Entry>,
    /// Bits; empty until the table has its first entry.
    filter: Vec<u64>,
}

/// Makes the temporary table.
pub(super) fn install(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(CREATE)
}

impl Ledger {
    /// What stands under a hash.
    pub(super) fn find(&self, connection: &Connection, hash: i64) -> rusqlite::Result<Option<Entry>> {
        if let Some(entry) = self.recent.get(&hash) {
            return Ok(Some(*entry));
        }
        if !self.may_be_in_table(hash) {
            return Ok(None);
        }
        connection.prepare_cached(FIND)?.query_row([hash], |row| Ok((row.get(0)?, row.get(1)?))).optional()
    }

    /// Puts an entry in the place of whatever stands under its hash. Takes no lock on the store.
    pub(super) fn put(&mut self, connection: &Connection, hash: i64, entry: Entry) -> rusqlite::Result<()> {
        self.recent.insert(hash, entry);
        if self.recent.len() >= RECENT_MAX { self.write_down(connection) } else { Ok(()) }
    }

    /// Forgets everything.
    pub(super) fn forget(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute(FORGET, [])?;
        *self = Ledger::default();
        Ok(())
    }

    /// Gives all entries of a pass from `from` on the pass `to`.
    pub(super) fn lower(&mut self, connection: &Connection, from: u32, to: u32) -> rusqlite::Result<()> {
        connection.execute(LOWER, [from, to])?;
        self.recent.values_mut().filter(|(_, pass)| *pass >= from).for_each(|(_, pass)| *pass = to);
        Ok(())
    }

    /// How many entries there are of a pass from `from` on.
    pub(super) fn count(&mut self, connection: &Connection, from: u32) -> rusqlite::Result<u64> {
        self.write_down(connection)?;
        let count: i64 = connection.query_row(COUNT, [from], |row| row.get(0))?;
        Ok(u64::try_from(count).unwrap_or_default())
    }

    /// Whether there is an entry of a pass from `from` on.
    pub(super) fn has_any(&mut self, connection: &Connection, from: u32) -> rusqlite::Result<bool> {
        // What waits in memory may stand in the place of what is in the table.
        self.write_down(connection)?;
        connection.query_row(ANY, [from], |row| row.get(0))
    }

    fn write_down(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let mut entries: Vec<(i64, Entry)> = self.recent.iter().map(|(hash, entry)| (*hash, *entry)).collect();
        entries.sort_unstable();
        if self.filter.is_empty() {
            self.filter = vec![0; usize::try_from(FILTER_BITS / 64).unwrap_or_default()];
        }
        // One that pages are being written in serves as well.
        let transaction = if connection.is_autocommit() { Some(connection.unchecked_transaction()?) } else { None };
        {
            let mut put = connection.prepare_cached(PUT)?;
            for (hash, (stamp, pass)) in &entries {
                put.execute(params![hash, stamp, pass])?;
            }
        }
        transaction.map_or(Ok(()), Transaction::commit)?;
        self.recent.clear();
        for (word, bit) in entries.iter().flat_map(|(hash, _)| places(*hash)) {
            if let Some(word) = self.filter.get_mut(word) {
                *word |= bit;
            }
        }
        Ok(())
    }

    fn may_be_in_table(&self, hash: i64) -> bool {
        places(hash).iter().all(|(word, bit)| self.filter.get(*word).is_some_and(|word| word & bit != 0))
    }
}

/// Two bits of the filter: a word and a bit in it, each.
fn places(hash: i64) -> [(usize, u64); 2] {
    let hash = hash.cast_unsigned();
    [hash, hash >> 32].map(|part| {
        let bit = part % FILTER_BITS;
        (usize::try_from(bit / 64).unwrap_or_default(), 1 << (bit % 64))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn ledger() -> (Ledger, Connection) {
        let connection = Connection::open_in_memory().unwrap();
        install(&connection).unwrap();
        (Ledger::default(), connection)
    }

    fn rows(connection: &Connection) -> i64 {
        connection.query_row("SELECT count(*) FROM temp.seen", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn more_than_fits_in_memory_goes_to_the_table_and_is_found_there() {
        let (mut ledger, connection) = ledger();
        let hash = |n: i64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64.cast_signed());
        for n in 0..60_000 {
            assert_eq!(ledger.find(&connection, hash(n)).unwrap(), None);
            ledger.put(&connection, hash(n), (n, 1)).unwrap();
        }
        assert_eq!(rows(&connection), 2 * i64::try_from(RECENT_MAX).unwrap());
        for n in 0..60_000 {
            assert_eq!(ledger.find(&connection, hash(n)).unwrap(), Some((n, 1)), "{n}");
        }
        let spared = (60_000..70_000).filter(|n| !ledger.may_be_in_table(hash(*n))).count();
        assert!(spared > 9_900, "{spared}");
    }

    proptest! {
        #[test]
        fn it_is_a_map(steps in prop::collection::vec((0_i64..40, 0_i64..3, 0_u32..4, 0_u8..20), 1..200)) {
            let (mut ledger, connection) = ledger();
            let mut map: BTreeMap<i64, Entry> = BTreeMap::new();
            for (hash, stamp, pass, step) in steps {
                match step {
                    0 => {
                        ledger.forget(&connection).unwrap();
                        map.clear();
                    }
                    1 => {
                        ledger.lower(&connection, pass, 1).unwrap();
                        map.values_mut().filter(|entry| entry.1 >= pass).for_each(|entry| entry.1 = 1);
                    }
                    2 | 3 => ledger.write_down(&connection).unwrap(),
                    4..10 => prop_assert_eq!(ledger.find(&connection, hash).unwrap(), map.get(&hash).copied()),
                    10 => {
                        let count = map.values().filter(|entry| entry.1 >= pass).count();
                        prop_assert_eq!(ledger.count(&connection, pass).unwrap(), count as u64);
                    }
                    11 => prop_assert_eq!(ledger.has_any(&connection, pass).unwrap(), map.values().any(|entry| entry.1 >= pass)),
                    _ => {
                        ledger.put(&connection, hash, (stamp, pass)).unwrap();
                        map.insert(hash, (stamp, pass));
                    }
                }
            }
        }
    }
}
