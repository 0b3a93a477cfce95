//! What must hold, as questions to a store and to the catalogue that it was filled from: the invariants of `src/lib.rs`.
//!
//! Each answers with what is wrong instead of failing, so that a deliberate break can show that it is noticed (`proof/breaks.rs`).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of this is test code, where a panic is a failed test"
)]

use std::collections::BTreeMap;

use csw_harvester::error::Error;
use csw_harvester::harvest::Ending;
use csw_harvester::store::Store;
use csw_harvester::timestamp::parse;

use crate::support::model::Catalogue;
use crate::support::stamps::{Micros, SECOND};

/// A row of the store: stamp, body, number of the last change.
pub(crate) type Row = (Option<String>, String, i64);

/// The rows of the source of `moving::job`.
pub(crate) fn rows(store: &Store) -> BTreeMap<String, Row> {
    let mut rows = BTreeMap::new();
    store
        .for_each_record("s", |row| {
            rows.insert(row.identifier.to_owned(), (row.modified.map(str::to_owned), row.xml.to_owned(), row.changed_seq));
        })
        .expect("rows");
    rows
}

/// The watermark of that source, if it has been harvested.
pub(crate) fn watermark(store: &Store) -> Option<String> {
    store.source_state("s").expect("a state").map(|state| state.watermark)
}

/// I1: what is at or below the watermark is in the store as the catalogue has it.
pub(crate) fn nothing_below_the_watermark_is_missing(store: &Store, catalogue: &Catalogue, settle: Micros) -> Result<(), String> {
    let Some(watermark) = watermark(store).as_deref().and_then(parse) else { return Ok(()) };
    let rows = rows(store);
    for record in catalogue.records().iter().filter(|record| record.visible_from <= catalogue.now()) {
        let (Some(identifier), Some(stamp)) = (&record.identifier, record.filter_stamp) else { continue };
        let interval = record.filter_text.as_deref().and_then(parse);
        let settled = interval.is_none_or(|interval| interval.settled(catalogue.now(), settle));
        // A day is below the watermark when all of it is.
        let below = interval.map_or(stamp, |interval| interval.end - SECOND) <= watermark.nominal;
        let held = || rows.get(identifier).is_some_and(|(_, xml, _)| *xml == record.marker());
        if below && settled && !held() {
            return Err(format!("I1: {identifier} is below the watermark {watermark:?} and not held as {record:?}"));
        }
    }
    Ok(())
}

/// Every record that the catalogue shows is in the store, with its stamp and its content.
pub(crate) fn the_store_is_the_catalogue(store: &Store, catalogue: &Catalogue) -> Result<(), String> {
    let rows = rows(store);
    for (identifier, (modified, version)) in catalogue.visible() {
        let held = rows.get(&identifier).map(|(modified, xml, _)| (modified.clone(), xml.clone()));
        let wanted = (modified, format!("[version {version}]"));
        if held.as_ref() != Some(&wanted) {
            return Err(format!("{identifier} is held as {held:?}, the catalogue has {wanted:?}"));
        }
    }
    Ok(())
}

/// No record is in the store that the catalogue does not show.
pub(crate) fn the_store_holds_nothing_else(store: &Store, catalogue: &Catalogue) -> Result<(), String> {
    let shown = catalogue.visible();
    match rows(store).into_iter().find(|(identifier, _)| !shown.contains_key(identifier)) {
        Some((identifier, row)) => Err(format!("{identifier} is held as {row:?}, the catalogue has it no more")),
        None => Ok(()),
    }
}

/// I2: a run that was cut off leaves the watermark where it was.
pub(crate) fn the_watermark_stayed(before: &str, store: &Store) -> Result<(), String> {
    let after = watermark(store).unwrap_or_else(|| csw_harvester::watermark::FIRST.to_owned());
    if after == before {
        return Ok(());
    }
    Err(format!("I2: the run was cut off, and the watermark went from {before} to {after}"))
}

/// I3: what is read again leaves every row as it was.
pub(crate) fn the_rows_stayed<R: PartialEq + std::fmt::Debug>(
    before: &BTreeMap<String, R>,
    after: &BTreeMap<String, R>,
) -> Result<(), String> {
    if let Some((identifier, row)) = before.iter().find(|(identifier, row)| after.get(*identifier) != Some(row)) {
        return Err(format!("I3: {identifier} was {row:?}, and is {:?}", after.get(identifier)));
    }
    match after.keys().find(|identifier| !before.contains_key(*identifier)) {
        Some(identifier) => Err(format!("I3: {identifier} was not there before")),
        None => Ok(()),
    }
}

/// I5: the harvester itself made an end of a list without end, and does not say that it is sure of it: it gave up, or holds the
/// watermark. `None`: the test had to cut it off.
pub(crate) fn the_harvester_gave_up(ending: Option<&Ending>) -> Result<(), String> {
    match ending {
        Some(ending) if matches!(ending.error, Some(Error::Endless(_))) => Ok(()),
        Some(ending) if ending.error.is_none() && ending.watermark == ending.watermark_before => Ok(()),
        Some(ending) => Err(format!("I5: it took the list for whole: {ending:?}")),
        None => Err("I5: it asked for ever".to_owned()),
    }
}

/// I6: what could not be held is kept as a problem, one row each.
pub(crate) fn every_problem_is_kept(problems: i64, catalogue: &Catalogue) -> Result<(), String> {
    let nameless = catalogue.records().iter().filter(|record| record.identifier.is_none()).count() as i64;
    if problems == nameless {
        return Ok(());
    }
    Err(format!("I6: {nameless} records have no identifier, {problems} problems are kept"))
}
