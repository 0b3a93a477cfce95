//! What a harvest is held against: what nobody can do without, done as plainly as it can be done.
//!
//! (a) fetches the pages and lets them go. (b) makes the pages itself, which is not counted, reads them with quick-xml event by event, and
//! puts the records, which it is told and need not look for, into a table with the columns that a store promises, without journal, all in
//! one transaction. (c) is (b) with what outlives a power cut: the write-ahead log of a store, synchronised at each commit, of which there
//! are as few as a store makes. None keeps a place to resume from, knows what it had before, or checks anything.

use std::io::{Read, Write};
use std::path::Path;
use std::time::Instant;

use quick_xml::Reader;
use quick_xml::events::Event;
use rusqlite::{Connection, params};

use crate::measure::cpu_of_self;
use crate::records::{Holdings, Pages};

/// As a store has them; memory is (b)'s to spend.
const NO_JOURNAL: &str = "
PRAGMA page_size = 16384;
PRAGMA cache_size = -16384;
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;";
const WRITE_AHEAD: &str = "
PRAGMA page_size = 16384;
PRAGMA cache_size = -12288;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA wal_autocheckpoint = 4000;";
/// Bytes of records that (c) commits together.
const COMMITTED_BYTES: usize = 8 << 20;

/// What becomes of (b) at a power cut.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// (b)
    None,
    /// (c)
    Full,
}

const TABLE: &str = "
CREATE TABLE records (source TEXT NOT NULL, identifier TEXT NOT NULL, title TEXT, modified TEXT, harvested_at TEXT NOT NULL,
    changed_seq INTEGER NOT NULL, xml TEXT NOT NULL, UNIQUE (source, identifier));
CREATE INDEX records_changed_seq ON records (changed_seq);
BEGIN;";
const INSERT: &str = "INSERT INTO records VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
/// As long as the keys of the sources that are measured.
const SOURCE: &str = "http://127.0.0.1:40000/dc/1600/100000/0/csw";
const NOW: &str = "2026-01-01T00:00:00Z";

/// (a); says how many bytes came.
pub(crate) fn fetch(url: &str, records: u64, page_size: u64) {
    let agent = ureq::Agent::new_with_defaults();
    let (mut body, mut bytes) = (Vec::new(), 0);
    for start in (1..=records).step_by(usize::try_from(page_size).expect("a page size")) {
        let request = format!("<GetRecords resultType=\"results\" startPosition=\"{start}\" maxRecords=\"{page_size}\"/>");
        let mut answer = agent.post(url).send(request.as_str()).expect("an answer");
        body.clear();
        answer.body_mut().with_config().limit(u64::MAX).reader().read_to_end(&mut body).expect("a whole body");
        bytes += body.len();
    }
    writeln!(std::io::stdout(), "{bytes}").expect("a parent that reads");
}

/// (b) or (c); says the CPU and wall seconds of what counts, and how many records there are in the end.
pub(crate) fn tokenise_and_insert(holdings: Holdings, page_size: u64, path: &Path, durability: Durability) {
    let pages = Pages::new(holdings);
    let connection = Connection::open(path).expect("a database");
    let settings = if durability == Durability::Full { WRITE_AHEAD } else { NO_JOURNAL };
    connection.execute_batch(settings).and_then(|()| connection.execute_batch(TABLE)).expect("a table");
    let mut page = String::new();
    let mut waiting = 0;
    let (mut cpu_s, mut wall_s, mut events) = (0.0, 0.0, 0_u64);
    let mut first = 0;
    while first < holdings.records {
        let records: Vec<u64> = (first..holdings.records.min(first + page_size)).collect();
        let rows = pages.write(&mut page, &records, first + 1, holdings.records);
        first += page_size;
        let (cpu_before, began) = (cpu_of_self(), Instant::now());
        let mut reader = Reader::from_str(&page);
        while !matches!(reader.read_event().expect("well-formed XML"), Event::Eof) {
            events += 1;
        }
        let mut insert = connection.prepare_cached(INSERT).expect("a statement");
        for (row, record) in rows.iter().zip(&records) {
            let xml = &page[row.xml.clone()];
            let record = i64::try_from(*record).expect("a record");
            insert.execute(params![SOURCE, row.identifier, row.title, row.stamp, NOW, record, xml]).expect("a row");
            waiting += xml.len();
        }
        if durability == Durability::Full && waiting >= COMMITTED_BYTES {
            connection.execute_batch("COMMIT; BEGIN").expect("a transaction");
            waiting = 0;
        }
        cpu_s += cpu_of_self() - cpu_before;
        wall_s += began.elapsed().as_secs_f64();
    }
    let (cpu_before, began) = (cpu_of_self(), Instant::now());
    connection.execute_batch("COMMIT").expect("a transaction");
    cpu_s += cpu_of_self() - cpu_before;
    wall_s += began.elapsed().as_secs_f64();
    let count: i64 = connection.query_row("SELECT count(*) FROM records", [], |row| row.get(0)).expect("a count");
    assert!(events > count.unsigned_abs(), "a page without markup");
    writeln!(std::io::stdout(), "{cpu_s:.6} {wall_s:.6} {count}").expect("a parent that reads");
}
