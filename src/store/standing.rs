//! How a source stands in the store, for those who watch it from outside.
//!
//! Reads only, also from a store that another process is writing to. What is made of the numbers is the caller's business.

use rusqlite::{OptionalExtension, params};

use super::{Store, StoreError};

const TIMES: &str = "SELECT watermark, last_success_at, inventory_at FROM harvest_state WHERE source = ?1";
const PROBLEMS: &str = "SELECT count(*) FROM problems WHERE source = ?1";

/// What the store knows of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// As the catalogue wrote it; `None` for a source that never had a run.
    pub watermark: Option<String>,
    /// When the last complete run ended, RFC 3339 in UTC.
    pub last_success_at: Option<String>,
    /// When the last complete inventory ended, RFC 3339 in UTC.
    pub inventory_at: Option<String>,
    /// Records held.
    pub records: u64,
    /// Problems that are open.
    pub problems: u64,
}

impl Store {
    /// How a source stands; one that the store does not know has nothing.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn standing(&self, source: &str) -> Result<Standing, StoreError> {
        let times = self
            .connection
            .prepare_cached(TIMES)
            .and_then(|mut statement| {
                let times = |row: &rusqlite::Row<'_>| {
                    Ok(Standing {
                        watermark: row.get(0)?,
                        last_success_at: row.get(1)?,
                        inventory_at: row.get(2)?,
                        ..Standing::default()
                    })
                };
                statement.query_row([source], times).optional()
            })
            .map_err(|error| self.failed(&error))?;
        Ok(Standing {
            records: self.count_records(source)?,
            problems: self.count(PROBLEMS, params![source])?,
            ..times.unwrap_or_default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{NOW, Place, SOURCE, page};
    use super::*;

    #[test]
    fn a_source_stands_where_its_rows_say() {
        let place = Place::new();
        let (mut store, _) = place.begun();
        page(&mut store, &[("a", Some(10), "a"), ("b", Some(20), "b")], NOW);
        let sql = place.sql();
        let state = "UPDATE harvest_state SET watermark = 'w', last_success_at = 's', inventory_at = 'i'";
        let problem =
            format!("INSERT INTO problems VALUES ('{SOURCE}', 'p', 'y', 'f', 'l', 1, 1), ('other', 'p', 'y', 'f', 'l', 1, 1)");
        sql.execute_batch(&format!("{state}; {problem};")).unwrap();
        let text = |text: &str| Some(text.to_owned());
        let expected =
            Standing { watermark: text("w"), last_success_at: text("s"), inventory_at: text("i"), records: 2, problems: 1 };
        assert_eq!(Store::open_existing(&place.path()).unwrap().standing(SOURCE).unwrap(), expected);
    }

    #[test]
    fn a_source_without_a_run_has_nothing() {
        assert_eq!(Place::new().open().standing("another").unwrap(), Standing::default());
    }
}
