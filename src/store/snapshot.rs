//! A store as it was at one moment: one read transaction, however long the reading takes.
//!
//! Others go on writing meanwhile; what they commit is not seen. While a snapshot lives, what was committed after it stays in the WAL.
//! What is read through it stands in `changes.rs` and `overview.rs`. Nothing here writes.

use rusqlite::Transaction;

use super::{Store, StoreError};

const LAST_SEQ: &str = "
SELECT max((SELECT ifnull(max(last), 0) FROM sequence),
           (SELECT ifnull(max(changed_seq), 0) FROM records),
           (SELECT ifnull(max(changed_seq), 0) FROM tombstones))";
const KNOWS: &str = "SELECT EXISTS (SELECT 1 FROM harvest_state WHERE source = ?1)";

/// A moment of a store.
#[derive(Debug)]
pub struct Snapshot<'s> {
    pub(super) store: &'s Store,
    transaction: Transaction<'s>,
    last_seq: i64,
}

impl Store {
    /// Takes hold of the store as it is now.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn snapshot(&self) -> Result<Snapshot<'_>, StoreError> {
        let take = || -> rusqlite::Result<(Transaction<'_>, i64)> {
            let transaction = self.connection.unchecked_transaction()?;
            // The moment is that of the first reading, not of BEGIN (sqlite.org/lang_transaction.html, 2.1).
            let last_seq = transaction.query_row(LAST_SEQ, [], |row| row.get(0))?;
            Ok((transaction, last_seq))
        };
        let (transaction, last_seq) = take().map_err(|error| self.failed(&error))?;
        Ok(Snapshot { store: self, transaction, last_seq })
    }
}

impl Snapshot<'_> {
    /// The highest `changed_seq` that was given out, to whichever source; 0 for a store in which nothing ever changed.
    #[must_use]
    pub fn last_seq(&self) -> i64 {
        self.last_seq
    }

    /// Whether a source ever had a run.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn knows(&self, source: &str) -> Result<bool, StoreError> {
        self.read(|transaction| transaction.query_row(KNOWS, [source], |row| row.get(0)))
    }

    pub(super) fn read<T>(&self, read: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        read(&self.transaction).map_err(|error| self.store.failed(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{NOW, Place, SOURCE, page};
    use crate::store::Store;

    #[test]
    fn what_comes_later_is_not_seen() {
        let place = Place::new();
        let (mut store, _) = place.begun();
        page(&mut store, &[("a", None, "a")], NOW);
        let reader = Store::open_existing(&place.path()).unwrap();
        let snapshot = reader.snapshot().unwrap();
        page(&mut store, &[("b", None, "b")], NOW);
        place.sql().execute("INSERT INTO harvest_state (source) VALUES ('late')", []).unwrap();
        assert_eq!(snapshot.last_seq(), 1);
        assert!(snapshot.knows(SOURCE).unwrap() && !snapshot.knows("late").unwrap());
        drop(snapshot);
        let snapshot = reader.snapshot().unwrap();
        assert_eq!(snapshot.last_seq(), 2);
        assert!(snapshot.knows("late").unwrap());
    }
}
