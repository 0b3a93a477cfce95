//! Which identifiers have been met in this run, in which pass, and with which stamp.
//!
//! Hashes in a temporary table: a few bytes an identifier and a bounded cache, so that a catalogue of millions costs disk and not memory.
//! They end with the connection: a resumed run meets everything anew, and what it writes is the same (I3). With 64 bits two of a million
//! identifiers share a hash once in some 37 million runs; the second of them would then be taken for known. Stores no record.

use std::hash::{DefaultHasher, Hash, Hasher};

use rusqlite::{Connection, OptionalExtension, params};

use super::{Store, StoreError};
use crate::plan::Seen;

const CREATE: &str = "CREATE TEMP TABLE seen (hash INTEGER PRIMARY KEY, stamp INTEGER NOT NULL, pass INTEGER NOT NULL) STRICT";
const FIND: &str = "SELECT stamp, pass FROM temp.seen WHERE hash = ?1";
const ADD: &str = "INSERT INTO temp.seen (hash, stamp, pass) VALUES (?1, ?2, ?3)";
const MEET_AGAIN: &str = "UPDATE temp.seen SET stamp = ?2, pass = ?3 WHERE hash = ?1";
const DISOWN: &str = "UPDATE temp.seen SET pass = 0 WHERE hash = ?1";
const FORGET: &str = "DELETE FROM temp.seen";

/// Makes the temporary table.
pub(super) fn install(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(CREATE)
}

impl Store {
    /// Marks identifiers, each with its stamp as delivered, as met in this pass, and says of each, in order, how it had been met before:
    /// in an earlier call, or earlier in this one. Works alike in a dry run, and is no part of the page's transaction.
    pub fn mark_seen<'a>(&mut self, pass: u32, met: impl Iterator<Item = (&'a str, &'a str)>) -> Result<Vec<Seen>, StoreError> {
        mark(&mut self.connection, pass, met).map_err(|error| self.failed(&error))
    }

    /// Takes back that identifiers were met in the present pass: they count as met earlier.
    pub fn disown_seen<'a>(&mut self, identifiers: impl Iterator<Item = &'a str>) -> Result<(), StoreError> {
        disown(&mut self.connection, identifiers).map_err(|error| self.failed(&error))
    }

    /// Forgets all that were met: a run begins.
    pub fn forget_seen(&mut self) -> Result<(), StoreError> {
        self.connection.execute(FORGET, []).map_err(|error| self.failed(&error))?;
        Ok(())
    }
}

/// One transaction for all of a page's identifiers; it touches temporary tables only and so takes no lock on the store.
fn mark<'a>(connection: &mut Connection, pass: u32, met: impl Iterator<Item = (&'a str, &'a str)>) -> rusqlite::Result<Vec<Seen>> {
    let transaction = connection.transaction()?;
    let mut seen = Vec::with_capacity(met.size_hint().0);
    {
        let mut find = transaction.prepare_cached(FIND)?;
        let mut add = transaction.prepare_cached(ADD)?;
        let mut again = transaction.prepare_cached(MEET_AGAIN)?;
        for (identifier, stamp) in met {
            let (hash, stamp) = (hash_of(identifier), hash_of(stamp));
            let before: Option<(i64, u32)> = find.query_row([hash], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
            seen.push(match before {
                None => Seen::New,
                Some((_, before)) if before != pass => Seen::Earlier,
                Some((before, _)) if before == stamp => Seen::Here,
                Some(_) => Seen::Restamped,
            });
            match before {
                None => add.execute(params![hash, stamp, pass])?,
                Some(before) if before != (stamp, pass) => again.execute(params![hash, stamp, pass])?,
                Some(_) => 0,
            };
        }
    }
    transaction.commit()?;
    Ok(seen)
}

fn disown<'a>(connection: &mut Connection, identifiers: impl Iterator<Item = &'a str>) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    {
        let mut statement = transaction.prepare_cached(DISOWN)?;
        for identifier in identifiers {
            statement.execute([hash_of(identifier)])?;
        }
    }
    transaction.commit()
}

fn hash_of(text: &str) -> i64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    i64::from_ne_bytes(hasher.finish().to_ne_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Mode;

    #[test]
    fn a_second_meeting_tells_its_pass_and_whether_the_stamp_stayed() {
        let mut store = Store::in_memory().unwrap();
        let first = [("a", "1"), ("b", "1"), ("a", "1"), ("b", "2")];
        assert_eq!(store.mark_seen(1, first.into_iter()).unwrap(), [Seen::New, Seen::New, Seen::Here, Seen::Restamped]);
        assert_eq!(store.mark_seen(1, [("b", "2"), ("c", "")].into_iter()).unwrap(), [Seen::Here, Seen::New]);
        assert_eq!(store.mark_seen(2, [("b", "2"), ("b", "2")].into_iter()).unwrap(), [Seen::Earlier, Seen::Here]);
        store.forget_seen().unwrap();
        assert_eq!(store.mark_seen(1, [("a", "1")].into_iter()).unwrap(), [Seen::New]);
    }

    #[test]
    fn a_hundred_thousand_identifiers_are_told_apart() {
        let mut store = Store::in_memory().unwrap();
        let names: Vec<String> = (0..100_000).map(|n| format!("urn:uuid:{n:08}")).collect();
        for page in names.chunks(1000) {
            let met = store.mark_seen(1, page.iter().map(|name| (name.as_str(), "s"))).unwrap();
            assert!(met.iter().all(|seen| *seen == Seen::New));
        }
        let met = store.mark_seen(1, names.iter().map(|name| (name.as_str(), "s"))).unwrap();
        assert!(met.iter().all(|seen| *seen == Seen::Here));
    }

    #[test]
    fn marking_needs_no_lock_on_the_store_and_works_in_a_dry_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        let mut store = Store::open(&path, Mode::ReadWrite).unwrap();
        let mut dry = Store::open(&path, Mode::DryRun).unwrap();
        let other = rusqlite::Connection::open(&path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        assert_eq!(store.mark_seen(1, [("a", "")].into_iter()).unwrap(), [Seen::New]);
        assert_eq!(dry.mark_seen(1, [("a", ""), ("a", "")].into_iter()).unwrap(), [Seen::New, Seen::Here]);
    }
}
