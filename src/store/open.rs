//! From a path to a connection that may be used, or to the reason why not.
//!
//! A file is looked at before SQLite is let near it: the first hundred bytes say whether it is a database, whose, and of which
//! version (sqlite.org/fileformat2.html, 1.3), and reading them leaves neither a changed byte nor a `-wal` beside somebody else's
//! file. What the header says is asked again through SQL, since a newer page 1 may still lie in the WAL. Nothing is written here
//! but a new store, the migrations and the connection's own settings.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::error::StoreError;
use super::{BUSY_PAUSE, BUSY_SECONDS, schema};
use crate::signal::Stop;

const MAGIC: &[u8; 16] = b"SQLite format 3\0";
const HEADER_BYTES: usize = 100;

/// First bytes of a rollback journal (sqlite.org/fileformat2.html, 3).
const JOURNAL_MAGIC: &[u8; 8] = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7";

/// 16 KiB pages: measured twice as fast as the defaults with random identifiers as key; 4 and 8 KiB gave no more. 18 MiB of cache gave
/// no more than 12 either, at 100,000 and at 400,000 records.
const PAGE_BYTES: u32 = 16 * 1024;
const CACHE_KIB: i32 = 12 * 1024;
const TEMP_CACHE_KIB: i32 = 2 * 1024;
const JOURNAL_BYTES_MAX: u32 = 64 * 1024 * 1024;
/// Pages of identifiers change with every commit: the fewer checkpoints, the fewer times each is copied. At most `JOURNAL_BYTES_MAX`.
const CHECKPOINT_PAGES: u32 = 4_000;
const STATEMENTS_CACHED: usize = 64;

/// How long a writer still waits once it is told to stop.
const BUSY_SECONDS_STOPPED: u64 = 2;

const WAL_ATTEMPTS: u32 = 50;
const WAL_PAUSE: Duration = Duration::from_millis(20);

const TABLE_THERE: &str = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1)";

/// What stands at the path.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// No file, or one without a byte.
    Nothing,
    /// A store, as far as its header tells.
    Store,
}

/// Looks at the file without touching it.
pub(super) fn inspect(path: &Path, steps: &[&str]) -> Result<Found, StoreError> {
    let refused = |why: String| StoreError::Create { path: path.to_path_buf(), why };
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return nothing_there(path),
        Err(error) => return Err(refused(error.to_string())),
    };
    if metadata.is_dir() {
        return Err(refused("it is a directory".to_string()));
    }
    if !metadata.is_file() {
        return Err(refused("it is not a regular file".to_string()));
    }
    if metadata.len() == 0 {
        return Ok(Found::Nothing);
    }
    let unreadable = |error: std::io::Error| StoreError::Other { path: path.to_path_buf(), why: error.to_string() };
    let header = first_bytes(path, HEADER_BYTES).map_err(unreadable)?;
    judge_header(path, &header, steps)
}

fn first_bytes(path: &Path, bytes_max: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(bytes_max);
    File::open(path)?.take(bytes_max as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn starts_with(path: &Path, magic: &[u8]) -> bool {
    first_bytes(path, magic.len()).is_ok_and(|bytes| bytes == magic)
}

fn nothing_there(path: &Path) -> Result<Found, StoreError> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    match parent {
        Some(parent) if !parent.is_dir() => {
            Err(StoreError::Create { path: path.to_path_buf(), why: format!("there is no directory {}", parent.display()) })
        }
        _ => Ok(Found::Nothing),
    }
}

fn judge_header(path: &Path, header: &[u8], steps: &[&str]) -> Result<Found, StoreError> {
    let (Some(user_version), Some(application_id)) = (big_endian(header, 60), big_endian(header, 68)) else {
        return Err(StoreError::NotADatabase { path: path.to_path_buf() });
    };
    if header.iter().all(|byte| *byte == 0) && starts_with(&beside(path, "-journal"), JOURNAL_MAGIC) {
        // Power was cut while the store was being made: SQLite takes it back to nothing when it is opened.
        return Ok(Found::Store);
    }
    if !header.starts_with(MAGIC) || header.len() < HEADER_BYTES {
        return Err(StoreError::NotADatabase { path: path.to_path_buf() });
    }
    if application_id != schema::APPLICATION_ID {
        return Err(StoreError::Foreign { path: path.to_path_buf(), why: format!("application_id {application_id:#010x}") });
    }
    let known = schema::version_of(steps);
    if user_version > known {
        return Err(StoreError::Newer { path: path.to_path_buf(), found: user_version, known });
    }
    Ok(Found::Store)
}

fn big_endian(header: &[u8], offset: usize) -> Option<u32> {
    let bytes = header.get(offset..offset.checked_add(4)?)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

/// A connection that writes. Makes the store where there is none, and brings an older one up to date.
pub(super) fn writer(path: &Path, steps: &[&str], stop: &Stop) -> Result<Connection, StoreError> {
    inspect(path, steps)?;
    // Root may write to a file whose every write bit is off; whoever took them off did not want that.
    if fs::metadata(path).is_ok_and(|metadata| metadata.permissions().readonly()) {
        return Err(StoreError::ReadOnly { path: path.to_path_buf() });
    }
    let failed = |error: rusqlite::Error| StoreError::of(path, &error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(plain(path)?, flags).map_err(failed)?;
    patience(&mut connection, stop).map_err(failed)?;
    let version = recognise(path, &connection, steps)?;
    if connection.is_readonly("main").map_err(failed)? {
        return Err(StoreError::ReadOnly { path: path.to_path_buf() });
    }
    if version == 0 {
        connection.pragma_update(None, "page_size", PAGE_BYTES).map_err(failed)?;
    }
    // The new store is made before the change to WAL, so that its header in the file itself says from the first moment whose it is.
    schema::migrate(&mut connection, steps).map_err(failed)?;
    expect_tables(path, &connection, schema::TABLES.len())?;
    settings(&connection).and_then(|()| write_ahead(&mut connection, stop)).map_err(failed)?;
    Ok(connection)
}

/// A connection to a store that is there, for reading. It may have to recover a WAL, which is why it is not opened read-only: a
/// read-only connection cannot, and leaves its `-shm` behind, owned by whoever looked.
pub(super) fn reader(path: &Path, steps: &[&str], stop: &Stop) -> Result<Connection, StoreError> {
    let missing = || StoreError::Missing { path: path.to_path_buf() };
    if fs::metadata(path).is_err_and(|error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)) {
        return Err(missing());
    }
    if inspect(path, steps)? == Found::Nothing {
        return Err(missing());
    }
    let failed = |error: rusqlite::Error| StoreError::of(path, &error);
    let connection = connect_for_reading(path, stop)?;
    let found = recognise(path, &connection, steps)?;
    let known = schema::version_of(steps);
    if found == 0 {
        return Err(missing());
    }
    if found < known {
        return Err(StoreError::Older { path: path.to_path_buf(), found, known });
    }
    expect_tables(path, &connection, schema::TABLES.len())?;
    settings(&connection).map_err(failed)?;
    Ok(connection)
}

/// A store without a file.
pub(super) fn memory() -> rusqlite::Result<Connection> {
    let mut connection = Connection::open_in_memory()?;
    schema::migrate(&mut connection, schema::STEPS)?;
    settings(&connection)?;
    Ok(connection)
}

/// Where the directory may not be written to and no WAL is left, the file is whole and can be read as it lies.
fn connect_for_reading(path: &Path, stop: &Stop) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let first = Connection::open_with_flags(plain(path)?, flags).and_then(|mut connection| {
        patience(&mut connection, stop)?;
        schema::user_version(&connection)?;
        Ok(connection)
    });
    let error = match first {
        Ok(connection) => return Ok(connection),
        Err(error) => error,
    };
    let unwritable = matches!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly));
    let (Some(uri), true) = (immutable_uri(path), unwritable && !beside(path, "-wal").exists()) else {
        return Err(StoreError::of(path, &error));
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    Connection::open_with_flags(uri, flags).map_err(|error| StoreError::of(path, &error))
}

fn immutable_uri(path: &Path) -> Option<String> {
    let absolute = std::path::absolute(path).ok()?;
    let mut uri = String::from("file:");
    for character in absolute.to_str()?.chars() {
        match character {
            '%' => uri.push_str("%25"),
            '?' => uri.push_str("%3f"),
            '#' => uri.push_str("%23"),
            other => uri.push(other),
        }
    }
    uri.push_str("?immutable=1");
    Some(uri)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push(suffix);
    PathBuf::from(name)
}

/// SQLite takes `:memory:` and `file:x` for something else than a file's name; an absolute path cannot be mistaken.
fn plain(path: &Path) -> Result<PathBuf, StoreError> {
    std::path::absolute(path).map_err(|error| StoreError::Create { path: path.to_path_buf(), why: error.to_string() })
}

/// Asks through SQL what the header said. Returns the store's version, 0 for a database without anything in it.
fn recognise(path: &Path, connection: &Connection, steps: &[&str]) -> Result<u32, StoreError> {
    let failed = |error: rusqlite::Error| StoreError::of(path, &error);
    let foreign = |why: String| StoreError::Foreign { path: path.to_path_buf(), why };
    let (found, application_id, objects) = marks(connection).map_err(failed)?;
    if found == 0 && objects == 0 {
        return Ok(0);
    }
    if application_id != i64::from(schema::APPLICATION_ID) {
        return Err(foreign(format!("application_id {application_id:#010x}")));
    }
    if found == 0 {
        return Err(foreign("it has tables, but no version".to_string()));
    }
    let known = schema::version_of(steps);
    if found > known {
        // Closing would move the WAL into the file.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(failed)?;
        return Err(StoreError::Newer { path: path.to_path_buf(), found, known });
    }
    expect_tables(path, connection, schema::TABLES_OF_FIRST)?;
    Ok(found)
}

/// Version, owner and number of objects, all of one moment: another process may be making the store.
fn marks(connection: &Connection) -> rusqlite::Result<(u32, i64, i64)> {
    let snapshot = connection.unchecked_transaction()?;
    let found = schema::user_version(&snapshot)?;
    let application_id = snapshot.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let objects = snapshot.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok((found, application_id, objects))
}

/// Asked by SQL: what SQLite remembers of a schema may be from before another process made the store.
fn expect_tables(path: &Path, connection: &Connection, first: usize) -> Result<(), StoreError> {
    for table in schema::TABLES.iter().take(first) {
        let there: bool =
            connection.query_row(TABLE_THERE, [table], |row| row.get(0)).map_err(|error| StoreError::of(path, &error))?;
        if !there {
            return Err(StoreError::Foreign { path: path.to_path_buf(), why: format!("it has no table {table}") });
        }
    }
    Ok(())
}

/// Lets a connection wait for another's write lock, and no longer than a moment once a stop is requested.
///
/// SQLite's own waits grow to a tenth of a second; whoever writes one page after the other leaves gaps of a few milliseconds.
fn patience(connection: &mut Connection, stop: &Stop) -> rusqlite::Result<()> {
    let stop = stop.clone();
    let mut began = Instant::now();
    connection.busy_handler(Some(move |attempts| {
        if attempts == 0 {
            began = Instant::now();
        }
        let seconds = if stop.requested().is_some() { BUSY_SECONDS_STOPPED } else { BUSY_SECONDS };
        let waits = began.elapsed() < Duration::from_secs(seconds);
        if waits {
            thread::sleep(BUSY_PAUSE);
        }
        waits
    }))
}

fn settings(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS_CACHED);
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "temp_store", "FILE")?;
    connection.pragma_update(Some("temp"), "cache_size", -TEMP_CACHE_KIB)?;
    connection.pragma_update_and_check(None, "wal_autocheckpoint", CHECKPOINT_PAGES, |_| Ok(()))?;
    connection.pragma_update_and_check(None, "journal_size_limit", JOURNAL_BYTES_MAX, |_| Ok(()))
}

/// The change to WAL happens once in a store's life and wants it alone. Of two processes that try at the same time SQLite turns
/// one away at once, whatever its busy time-out. Without WAL (also where the file system has no shared memory) the store is
/// slower, and as safe.
fn write_ahead(connection: &mut Connection, stop: &Stop) -> rusqlite::Result<()> {
    connection.busy_timeout(WAL_PAUSE)?;
    for _ in 0..WAL_ATTEMPTS {
        match connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0)) {
            Ok(mode) if mode == "wal" => return patience(connection, stop),
            Ok(mode) => {
                log::warn!("the file system of the store does not allow WAL; its journal mode is {mode}");
                return patience(connection, stop);
            }
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => thread::sleep(WAL_PAUSE),
            Err(error) => return Err(error),
        }
    }
    log::warn!("the store is in use and could not be changed to WAL; the next run tries again");
    patience(connection, stop)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::super::fixture::{NOW, Place, SOURCE, begin, page, try_page};
    use super::*;
    use crate::store::{Mode, Store};

    const ONE_MORE: &[&str] = &[schema::STEPS[0], schema::STEPS[1], "ALTER TABLE runs ADD COLUMN host TEXT;"];

    fn all_ways(path: &Path) -> [StoreError; 3] {
        [
            Store::open(path, Mode::ReadWrite).unwrap_err(),
            Store::open(path, Mode::DryRun).unwrap_err(),
            Store::open_existing(path).unwrap_err(),
        ]
    }

    /// Every way of opening the file gives this error, and neither the file nor its folder changes.
    fn assert_refused(place: &Place, expected: impl Fn(&StoreError) -> bool) {
        let (bytes, names) = (fs::read(place.path()).unwrap(), place.names());
        for error in all_ways(&place.path()) {
            assert!(expected(&error), "{error:?}");
        }
        assert_eq!(fs::read(place.path()).unwrap(), bytes);
        assert_eq!(place.names(), names);
    }

    /// The version of a store that is opened now.
    #[expect(clippy::cast_possible_truncation, reason = "a handful")]
    const KNOWN: u32 = schema::STEPS.len() as u32;

    fn pragma(connection: &Connection, name: &str) -> i64 {
        connection.pragma_query_value(None, name, |row| row.get(0)).unwrap()
    }

    #[test]
    fn a_new_store_has_the_settings_that_it_should_have() {
        let place = Place::new();
        let store = place.open();
        let mode: String = store.connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        assert_eq!(mode, "wal");
        for (name, value) in [
            ("application_id", 0x4353_5748),
            ("user_version", i64::from(KNOWN)),
            ("page_size", 16_384),
            ("cache_size", -12_288),
            ("synchronous", 2),
            ("journal_size_limit", 64 << 20),
            ("wal_autocheckpoint", 4_000),
            ("temp_store", 1),
        ] {
            assert_eq!(pragma(&store.connection, name), value, "{name}");
        }
        drop(store);
        assert_eq!(place.names(), ["harvest_state.db"]);
        drop(place.open());
    }

    #[test]
    fn a_writer_gets_in_between_the_commits_of_one_that_hardly_pauses() {
        let place = Place::new();
        let (mut store, _) = place.begun();
        let done = AtomicBool::new(false);
        let rounds = std::thread::scope(|scope| {
            let writing = scope.spawn(|| {
                let busy = place.sql();
                for round in 0..2_000 {
                    if done.load(Ordering::SeqCst) {
                        return round;
                    }
                    busy.execute_batch("BEGIN IMMEDIATE").unwrap();
                    thread::sleep(Duration::from_millis(20));
                    busy.execute_batch("COMMIT").unwrap();
                    thread::sleep(Duration::from_millis(1));
                }
                2_000
            });
            page(&mut store, &[("a", None, "a")], NOW);
            done.store(true, Ordering::SeqCst);
            writing.join().unwrap()
        });
        assert!(rounds < 2_000);
    }

    #[test]
    fn a_writer_that_is_told_to_stop_waits_no_longer_than_a_moment() {
        let place = Place::new();
        drop(place.open());
        let stop = Stop::new();
        let mut store = Store::open_heeding(&place.path(), Mode::ReadWrite, &stop).unwrap();
        begin(&mut store);
        let other = place.sql();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        stop.ask();
        assert_eq!(try_page(&mut store, &[("a", None, "a")], NOW, None), Err(StoreError::Busy { path: place.path() }));
        // Nor where it would first make a newer store of an older one.
        let opened = Store::open_with(&place.path(), Mode::ReadWrite, ONE_MORE, &stop);
        assert_eq!(opened.unwrap_err(), StoreError::Busy { path: place.path() });
        other.execute_batch("ROLLBACK").unwrap();
        page(&mut store, &[("a", None, "a")], NOW);
        drop(Store::open_with(&place.path(), Mode::ReadWrite, ONE_MORE, &stop).unwrap());
    }

    #[test]
    fn an_empty_file_becomes_a_store() {
        let place = Place::new();
        fs::write(place.path(), "").unwrap();
        assert_eq!(Store::open_existing(&place.path()).unwrap_err(), StoreError::Missing { path: place.path() });
        drop(Store::open(&place.path(), Mode::DryRun).unwrap());
        assert_eq!(fs::metadata(place.path()).unwrap().len(), 0);
        drop(place.open());
        Store::open_existing(&place.path()).unwrap();
    }

    #[test]
    fn what_is_no_database_is_left_as_it_is() {
        for content in [&b"name,value\n"[..], &[0_u8; 4096], b"SQLite format 3\0"] {
            let place = Place::new();
            fs::write(place.path(), content).unwrap();
            assert_refused(&place, |error| matches!(error, StoreError::NotADatabase { .. }));
        }
    }

    #[test]
    fn somebody_elses_database_is_left_as_it_is() {
        for pragmas in ["PRAGMA journal_mode = WAL;", "PRAGMA application_id = 7; PRAGMA user_version = 1;"] {
            let place = Place::new();
            place.sql().execute_batch(&format!("{pragmas} CREATE TABLE records (x);")).unwrap();
            assert_refused(&place, |error| matches!(error, StoreError::Foreign { .. }));
        }
    }

    #[test]
    fn somebody_elses_database_in_use_keeps_its_wal() {
        let place = Place::new();
        let theirs = place.sql();
        theirs.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (x); INSERT INTO t VALUES (1);").unwrap();
        let wal = fs::read(beside(&place.path(), "-wal")).unwrap();
        assert_refused(&place, |error| matches!(error, StoreError::Foreign { .. }));
        assert_eq!(fs::read(beside(&place.path(), "-wal")).unwrap(), wal);
    }

    #[test]
    fn our_mark_on_other_tables_does_not_make_a_store() {
        let place = Place::new();
        place.sql().execute_batch("PRAGMA application_id = 0x43535748; CREATE TABLE t (x);").unwrap();
        assert_refused(&place, |error| matches!(error, StoreError::Foreign { why, .. } if why.contains("no version")));
        place.sql().execute_batch("PRAGMA user_version = 1").unwrap();
        assert_refused(&place, |error| matches!(error, StoreError::Foreign { why, .. } if why.contains("harvest_state")));
    }

    #[test]
    fn a_newer_store_is_left_as_it_is() {
        let place = Place::new();
        drop(place.open());
        place.sql().execute_batch("PRAGMA user_version = 99").unwrap();
        assert_refused(&place, |error| *error == StoreError::Newer { path: place.path(), found: 99, known: KNOWN });
    }

    #[test]
    fn a_newer_version_that_lies_in_the_wal_only_is_seen_and_stays_there() {
        let place = Place::new();
        let store = place.open();
        store.connection.execute_batch("PRAGMA user_version = 88").unwrap();
        let wreck = place.wreck();
        let bytes = fs::read(wreck.path()).unwrap();
        for error in all_ways(&wreck.path()) {
            assert_eq!(error, StoreError::Newer { path: wreck.path(), found: 88, known: KNOWN });
        }
        assert_eq!(fs::read(wreck.path()).unwrap(), bytes);
    }

    #[test]
    fn an_older_store_is_brought_up_to_date_by_writers_only() {
        let place = Place::new();
        drop(place.open());
        let older = StoreError::Older { path: place.path(), found: KNOWN, known: KNOWN + 1 };
        assert_eq!(reader(&place.path(), ONE_MORE, &Stop::new()).unwrap_err(), older);
        let open = |mode| Store::open_with(&place.path(), mode, ONE_MORE, &Stop::new());
        assert_eq!(open(Mode::DryRun).unwrap_err(), older);
        drop(open(Mode::ReadWrite).unwrap());
        reader(&place.path(), ONE_MORE, &Stop::new()).unwrap();
        open(Mode::DryRun).unwrap();
    }

    #[test]
    fn a_store_of_the_first_version_keeps_its_rows_when_it_is_brought_up_to_date() {
        let place = Place::new();
        let mut first = place.sql();
        schema::migrate(&mut first, &schema::STEPS[..1]).unwrap();
        first.execute_batch("INSERT INTO harvest_state (source, watermark) VALUES ('a', '2026-01-01')").unwrap();
        drop(first);
        let store = place.open();
        assert_eq!(store.source_state("a").unwrap().unwrap().watermark, "2026-01-01");
        assert_eq!(pragma(&store.connection, "user_version"), i64::from(KNOWN));
    }

    #[test]
    fn where_no_file_can_be_nothing_is_made() {
        let place = Place::new();
        let folder = place.path().parent().unwrap().to_path_buf();
        for path in [folder.clone(), folder.join("no/such.db")] {
            let made = Store::open(&path, Mode::ReadWrite).unwrap_err();
            assert!(matches!(&made, StoreError::Create { path: told, .. } if *told == path), "{made:?}");
            assert!(matches!(Store::open(&path, Mode::DryRun), Err(StoreError::Create { .. })));
        }
        fs::write(place.path(), "").unwrap();
        assert!(matches!(Store::open(&place.path().join("x.db"), Mode::ReadWrite), Err(StoreError::Create { .. })));
        assert_eq!(place.names(), ["harvest_state.db"]);
    }

    #[test]
    fn a_store_that_is_missing_is_not_made_by_looking() {
        let place = Place::new();
        for path in [place.path(), place.path().join("no/such.db")] {
            assert_eq!(Store::open_existing(&path).unwrap_err(), StoreError::Missing { path });
        }
        let (mut dry, _) = place.dry();
        assert_eq!(page(&mut dry, &[("a", None, "a")], NOW).new, 1);
        assert_eq!(place.names(), Vec::<String>::new());
    }

    #[test]
    fn a_file_without_write_permission_is_not_written_to_even_by_root_and_can_be_read() {
        let place = Place::new();
        drop(place.open());
        let mut permissions = fs::metadata(place.path()).unwrap().permissions();
        permissions.set_readonly(true);
        fs::set_permissions(place.path(), permissions).unwrap();
        assert_eq!(Store::open(&place.path(), Mode::ReadWrite).unwrap_err(), StoreError::ReadOnly { path: place.path() });
        assert_eq!(Store::open_existing(&place.path()).unwrap().count_records(SOURCE).unwrap(), 0);
    }

    #[test]
    fn where_no_wal_index_can_be_made_a_whole_file_can_still_be_read() {
        let place = Place::new();
        let (mut store, _) = place.begun();
        page(&mut store, &[("a", None, "a")], NOW);
        drop(store);
        // A folder in the place of the index: SQLite cannot open it, as in a directory that is not writable.
        fs::create_dir(beside(&place.path(), "-shm")).unwrap();
        let store = Store::open_existing(&place.path()).unwrap();
        assert_eq!(store.count_records(SOURCE).unwrap(), 1);
    }

    #[test]
    fn a_look_writes_nothing() {
        let place = Place::new();
        drop(place.open());
        let mut store = Store::open_existing(&place.path()).unwrap();
        assert_eq!(store.begin_run(SOURCE, NOW, "").unwrap_err(), StoreError::ReadOnly { path: place.path() });
        drop(store);
        assert_eq!(place.names(), ["harvest_state.db"]);
    }

    #[test]
    fn a_damaged_store_is_told_as_such() {
        let place = Place::new();
        let (mut store, _) = place.begun();
        page(&mut store, &[("a", None, &"x".repeat(100_000))], NOW);
        drop(store);
        let whole = fs::read(place.path()).unwrap();
        let mut scribbled = whole.clone();
        scribbled[200..].fill(0xa5);
        for bytes in [&whole[..20_000], &scribbled[..]] {
            fs::write(place.path(), bytes).unwrap();
            for error in all_ways(&place.path()) {
                assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
            }
        }
    }

    #[test]
    fn a_table_that_vanishes_under_an_open_store_is_an_error_with_its_name() {
        let place = Place::new();
        let store = place.open();
        place.sql().execute_batch("DROP TABLE cursors").unwrap();
        place.sql().execute("INSERT INTO harvest_state (source) VALUES (?1)", [SOURCE]).unwrap();
        let error = store.source_state(SOURCE).unwrap_err();
        assert!(matches!(&error, StoreError::Other { why, .. } if why.contains("cursors")), "{error:?}");
    }

    #[test]
    fn names_that_sqlite_would_take_for_something_else_are_files() {
        let place = Place::new();
        for name in ["file:x.db?mode=memory", ":memory:", "a%20b#c.db"] {
            let path = place.path().with_file_name(name);
            drop(Store::open(&path, Mode::ReadWrite).unwrap());
            assert!(path.is_file(), "{name}");
            fs::create_dir(beside(&path, "-shm")).unwrap();
            Store::open_existing(&path).unwrap();
        }
    }

    #[test]
    fn many_may_make_the_same_store_at_once() {
        for _ in 0..10 {
            let place = Place::new();
            let path = place.path();
            std::thread::scope(|scope| {
                let openings: Vec<_> = (0..6).map(|_| scope.spawn(|| Store::open(&path, Mode::ReadWrite).map(drop))).collect();
                for opening in openings {
                    opening.join().unwrap().unwrap();
                }
            });
            assert_eq!(pragma(&place.open().connection, "user_version"), i64::from(KNOWN));
        }
    }

    #[test]
    fn a_store_that_somebody_reads_before_it_has_a_wal_is_used_without_one() {
        let place = Place::new();
        schema::migrate(&mut place.sql(), schema::STEPS).unwrap();
        let reading = place.sql();
        reading.execute_batch("BEGIN; SELECT * FROM sequence;").unwrap();
        let store = place.open();
        let mode: String = store.connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        assert_eq!(mode, "delete");
    }

    /// What a cut of power leaves of a store in the making: some pages of its file, and the journal that takes them back.
    fn half_made() -> Place {
        let place = Place::new();
        let connection = place.sql();
        connection.execute_batch("PRAGMA page_size = 16384; BEGIN IMMEDIATE;").unwrap();
        connection.execute_batch(schema::STEPS[0]).unwrap();
        connection.execute_batch("CREATE TABLE filler (x); INSERT INTO filler VALUES (zeroblob(1000000));").unwrap();
        connection.cache_flush().unwrap();
        let wreck = Place::new();
        fs::copy(place.path(), wreck.path()).unwrap();
        fs::copy(beside(&place.path(), "-journal"), beside(&wreck.path(), "-journal")).unwrap();
        wreck
    }

    #[test]
    fn a_store_whose_making_was_cut_off_is_made_by_the_next_run() {
        let wreck = half_made();
        assert_ne!(fs::metadata(wreck.path()).unwrap().len(), 0);
        assert_eq!(pragma(&wreck.open().connection, "user_version"), i64::from(KNOWN));
    }

    #[test]
    fn a_store_whose_making_was_cut_off_is_none_for_those_who_look() {
        let wreck = half_made();
        assert_eq!(Store::open_existing(&wreck.path()).unwrap_err(), StoreError::Missing { path: wreck.path() });
        Store::open(&half_made().path(), Mode::DryRun).unwrap();
    }
}
