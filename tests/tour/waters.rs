//! What the catalogue of the tour holds: hydrography of many waters, in ties and with odd stamps, as catalogues have them.

use crate::support::model::{Catalogue, ModelRecord};
use crate::support::quirks::Quirks;
use crate::support::stamps::{DAY, HOUR, MINUTE, Micros, SECOND, day, seconds_z};

/// How many records there are at the beginning.
const RECORDS: usize = 1_284;
/// Coprime to [`RECORDS`]: records are inserted in another order than that of their stamps.
const STRIDE: usize = 577;
/// The newest stamp at the beginning, that of 9999 aside.
pub(crate) const NEWEST: &str = "2026-07-09T13:20:00Z";

/// Stamps that say nothing, or too much.
const ODD: [(usize, Option<&str>); 5] =
    [(100, None), (101, None), (640, Some("unknown")), (641, Some("n/a")), (1_000, Some("9999-12-31T00:00:00Z"))];

const SUBJECTS: [&str; 12] = [
    "Bathymetric survey",
    "Tide gauge readings",
    "River network",
    "Flood hazard zones",
    "Depth contours",
    "Wetland extent",
    "Discharge measurements",
    "Shoreline change",
    "Catchment boundaries",
    "Water quality stations",
    "Nautical chart coverage",
    "Sediment samples",
];
const PLACES: [&str; 27] = [
    "Elbe Estuary",
    "Firth of Clyde",
    "Lake Constance",
    "Gulf of Riga",
    "Western Scheldt",
    "Douro Valley",
    "Lake Balaton",
    "Skagerrak",
    "Bay of Biscay",
    "Danube Delta",
    "Oder Lagoon",
    "Upper Rhone",
    "Lough Neagh",
    "Gulf of Trieste",
    "Wadden Sea",
    "Lake Saimaa",
    "Severn Estuary",
    "Ebro Basin",
    "Kattegat",
    "Thessaloniki Gulf",
    "Lake Geneva",
    "Vistula Spit",
    "Lower Meuse",
    "Faroe Bank",
    "Strait of Messina",
    "Moselle Basin",
    "Inner Hebrides",
];

/// The catalogue, its clock at 2026-07-09T22:00:00Z.
pub(crate) fn catalogue() -> Catalogue {
    let mut catalogue = Catalogue::new(day(2026, 7, 9) + 22 * HOUR, Quirks::default());
    for turn in 0..RECORDS {
        let number = turn * STRIDE % RECORDS;
        let odd = ODD.iter().find(|(place, _)| *place == number);
        let shown = match odd {
            Some((_, text)) => text.map(str::to_owned),
            None => Some(seconds_z(stamp(number))),
        };
        insert_record(&mut catalogue, &identifier(number), number, shown);
    }
    catalogue
}

/// The identifier of a record that is there from the beginning.
pub(crate) fn identifier(number: usize) -> String {
    format!("water-{:04}", number + 1)
}

/// Inserts a record that is stamped now.
pub(crate) fn insert(catalogue: &mut Catalogue, identifier: &str, number: usize) {
    let now = seconds_z(catalogue.now());
    insert_record(catalogue, identifier, number, Some(now));
}

fn insert_record(catalogue: &mut Catalogue, identifier: &str, number: usize, shown: Option<String>) {
    let record = ModelRecord { title: title(number), shown: shown.into_iter().collect(), ..ModelRecord::new(identifier) };
    catalogue.insert_record(record);
}

/// The number of a record is its place by age; 160 of them came with one import, 40 with another.
fn stamp(number: usize) -> Micros {
    match number {
        300..460 => day(2013, 11, 4) + 9 * HOUR,
        700..740 => day(2018, 6, 21) + 14 * HOUR + 30 * MINUTE,
        _ => {
            let age = (RECORDS - 1 - number) as Micros;
            day(2026, 7, 9) + 13 * HOUR + 20 * MINUTE - age * 4 * DAY - age * age % 997 * 83 * SECOND
        }
    }
}

fn title(number: usize) -> String {
    let subject = SUBJECTS[number % SUBJECTS.len()];
    let place = PLACES[number / SUBJECTS.len() % PLACES.len()];
    format!("{subject}, {place}, {}", 2012 + number % 14)
}
