//! What is known of a source before its run: how far it got, what its catalogue was found to be like, where it left off.
//!
//! What a plan, a fingerprint, a shape or a dialect means is not known here: they are texts that come back as they were given.
//! The watermark is only read here; `run.rs` moves it.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{Store, StoreError, overlay};

/// What is known of a catalogue, as plain columns of `harvest_state`. `None` is "not yet found out".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredDialect {
    /// Where GetRecords goes.
    pub endpoint: Option<String>,
    /// CSW version.
    pub version: Option<String>,
    /// `post` or `get`, and after a blank what else differs from the usual in how GetRecords is put.
    pub binding: Option<String>,
    /// Queryable to filter and sort on.
    pub property: Option<String>,
    /// Whether and how the catalogue sorts.
    pub sort: Option<String>,
    /// The form of date literal that it takes.
    pub literal: Option<String>,
    /// Whose clock the watermark follows.
    pub clock: Option<String>,
    /// Whether it was seen to obey an upper bound.
    pub upper_bound: Option<bool>,
    /// Whether it was seen to obey the sort.
    pub sort_obeyed: Option<bool>,
    /// Whether the clock was told without a doubt.
    pub clock_sure: Option<bool>,
    /// Whether its count of what matched is one of the whole list.
    pub matched_is_total: Option<bool>,
    /// Changes in a row for which no margin was needed.
    pub exact_changes: Option<u32>,
    /// Whether gzip works.
    pub gzip: Option<bool>,
}

/// Where an unfinished run left off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCursor {
    /// The plan's own text.
    pub plan: String,
    /// The newest settled stamp that the unfinished run had met.
    pub newest: Option<String>,
    /// How many records and positions it could not have.
    pub skipped: u64,
}

/// When everything that the catalogue holds was last compared with what the store holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastInventory {
    /// End of the run that did it, RFC 3339; `None` when none ever did.
    pub at: Option<String>,
    /// What the catalogue counted then, less what the store held; `None` where it does not count.
    pub gap: Option<i64>,
    /// End of a later run that tried, and could not tell whether it had seen everything.
    pub tried_at: Option<String>,
    /// The gap that it found.
    pub tried_gap: Option<i64>,
}

/// What the store knows of a source before a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceState {
    /// The newest settled stamp as the catalogue wrote it; `1970-01-01T00:00:00Z` before the first complete harvest.
    pub watermark: String,
    /// The watermark's instant in microseconds since 1970.
    pub watermark_at: Option<i64>,
    /// Of what the records were read with.
    pub fingerprint: Option<String>,
    /// The shapes of stamps met so far.
    pub shapes: Option<String>,
    /// Whether the next run is to read everything.
    pub full_due: bool,
    /// End of the last complete run, RFC 3339.
    pub last_success_at: Option<String>,
    /// What is known of the catalogue.
    pub dialect: StoredDialect,
    /// When everything was last compared.
    pub inventory: LastInventory,
    /// There when the last run did not end.
    pub cursor: Option<StoredCursor>,
}

const STATE: &str = "
SELECT watermark, watermark_at, fingerprint, shapes, full_due, last_success_at,
       endpoint, version, binding, property, sort, literal, clock, upper_bound, sort_obeyed, clock_sure, matched_is_total,
       exact_changes, gzip, inventory_at, inventory_gap, inventory_tried_at, inventory_tried_gap
FROM harvest_state WHERE source = ?1";
const CURSOR: &str = "SELECT plan, newest, skipped FROM cursors WHERE source = ?1";

const ADOPT: &str = "
UPDATE harvest_state SET
    fingerprint = ?2, full_due = 1, shapes = NULL, endpoint = NULL, version = NULL, binding = NULL, property = NULL, sort = NULL,
    literal = NULL, clock = NULL, upper_bound = NULL, sort_obeyed = NULL, clock_sure = NULL,
    matched_is_total = NULL, exact_changes = NULL, gzip = NULL, inventory_gap = NULL, inventory_tried_at = NULL
WHERE source = ?1";
const SAVE_DIALECT: &str = "
INSERT INTO harvest_state (source, endpoint, version, binding, property, sort, literal, clock, upper_bound, sort_obeyed, clock_sure,
                           matched_is_total, exact_changes, gzip)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
ON CONFLICT (source) DO UPDATE SET
    endpoint = excluded.endpoint, version = excluded.version, binding = excluded.binding, property = excluded.property,
    sort = excluded.sort, literal = excluded.literal, clock = excluded.clock, upper_bound = excluded.upper_bound,
    sort_obeyed = excluded.sort_obeyed, clock_sure = excluded.clock_sure, matched_is_total = excluded.matched_is_total,
    exact_changes = excluded.exact_changes, gzip = excluded.gzip";

impl Default for SourceState {
    /// Of a source that never ran.
    fn default() -> Self {
        SourceState {
            watermark: crate::watermark::FIRST.to_owned(),
            watermark_at: None,
            fingerprint: None,
            shapes: None,
            full_due: false,
            last_success_at: None,
            dialect: StoredDialect::default(),
            inventory: LastInventory::default(),
            cursor: None,
        }
    }
}

impl Store {
    /// What is known of a source; `None` when it never ran.
    pub fn source_state(&self, source: &str) -> Result<Option<SourceState>, StoreError> {
        read_state(&self.connection, source).map_err(|error| self.failed(&error))
    }

    /// Begins to read a source anew, since endpoint, schema or filter are others than those of `fingerprint` before: everything is due, and
    /// what was known of the catalogue, its stamps and an unfinished run is given up. The watermark and the records stay.
    pub fn adopt(&mut self, source: &str, fingerprint: &str) -> Result<(), StoreError> {
        self.forget_cursor(source)?;
        self.forget_inventory(source)?;
        adopt(&mut self.connection, self.face, source, fingerprint).map_err(|error| self.failed(&error))
    }

    /// Remembers what was found out about a catalogue. All columns are replaced.
    pub fn save_dialect(&mut self, source: &str, dialect: &StoredDialect) -> Result<(), StoreError> {
        save_dialect(&mut self.connection, self.face, source, dialect).map_err(|error| self.failed(&error))
    }
}

fn adopt(connection: &mut Connection, face: overlay::Face, source: &str, fingerprint: &str) -> rusqlite::Result<()> {
    let transaction = overlay::begin(connection, face)?;
    transaction.execute(ADOPT, params![source, fingerprint])?;
    transaction.commit()
}

fn read_state(connection: &Connection, source: &str) -> rusqlite::Result<Option<SourceState>> {
    let Some(mut state) = connection.prepare_cached(STATE)?.query_row([source], state_of_row).optional()? else {
        return Ok(None);
    };
    let cursor_of_row =
        |row: &Row<'_>| Ok(StoredCursor { plan: row.get(0)?, newest: row.get(1)?, skipped: row.get::<_, i64>(2)?.unsigned_abs() });
    state.cursor = connection.prepare_cached(CURSOR)?.query_row([source], cursor_of_row).optional()?;
    Ok(Some(state))
}

fn state_of_row(row: &Row<'_>) -> rusqlite::Result<SourceState> {
    Ok(SourceState {
        watermark: row.get(0)?,
        watermark_at: row.get(1)?,
        fingerprint: row.get(2)?,
        shapes: row.get(3)?,
        full_due: row.get(4)?,
        last_success_at: row.get(5)?,
        dialect: StoredDialect {
            endpoint: row.get(6)?,
            version: row.get(7)?,
            binding: row.get(8)?,
            property: row.get(9)?,
            sort: row.get(10)?,
            literal: row.get(11)?,
            clock: row.get(12)?,
            upper_bound: row.get(13)?,
            sort_obeyed: row.get(14)?,
            clock_sure: row.get(15)?,
            matched_is_total: row.get(16)?,
            exact_changes: row.get(17)?,
            gzip: row.get(18)?,
        },
        inventory: LastInventory { at: row.get(19)?, gap: row.get(20)?, tried_at: row.get(21)?, tried_gap: row.get(22)? },
        cursor: None,
    })
}

fn save_dialect(connection: &mut Connection, face: overlay::Face, source: &str, dialect: &StoredDialect) -> rusqlite::Result<()> {
    let transaction = overlay::begin(connection, face)?;
    transaction.execute(
        SAVE_DIALECT,
        params![
            source,
            dialect.endpoint,
            dialect.version,
            dialect.binding,
            dialect.property,
            dialect.sort,
            dialect.literal,
            dialect.clock,
            dialect.upper_bound,
            dialect.sort_obeyed,
            dialect.clock_sure,
            dialect.matched_is_total,
            dialect.exact_changes,
            dialect.gzip,
        ],
    )?;
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Place, SOURCE, begin};
    use super::*;

    #[test]
    fn a_source_is_unknown_until_its_first_run_and_then_starts_in_1970() {
        let place = Place::new();
        let mut store = place.open();
        assert_eq!(store.source_state(SOURCE).unwrap(), None);
        begin(&mut store);
        let state = store.source_state(SOURCE).unwrap().unwrap();
        assert_eq!(state.watermark, "1970-01-01T00:00:00Z");
        assert_eq!((state.watermark_at, state.fingerprint, state.full_due, state.cursor), (None, None, false, None));
        assert_eq!(state.dialect, StoredDialect::default());
    }

    #[test]
    fn a_dialect_comes_back_as_it_was_saved_also_before_the_first_run() {
        let place = Place::new();
        let text = |text: &str| Some(text.to_string());
        let dialect = StoredDialect {
            endpoint: text("https://a.example/csw?map=/x.map"),
            version: text("2.0.2"),
            binding: text("post"),
            property: text("dct:modified"),
            sort: text("ascending"),
            literal: text("instant"),
            clock: text("server"),
            upper_bound: Some(false),
            sort_obeyed: Some(true),
            clock_sure: Some(true),
            matched_is_total: Some(true),
            exact_changes: Some(u32::MAX),
            gzip: Some(true),
        };
        let mut store = place.open();
        store.save_dialect(SOURCE, &StoredDialect::default()).unwrap();
        store.save_dialect(SOURCE, &dialect).unwrap();
        begin(&mut store);
        assert_eq!(store.source_state(SOURCE).unwrap().unwrap().dialect, dialect);
    }
}
