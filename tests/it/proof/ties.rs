//! A catalogue that was filled in one go, so that all records have one stamp.

use crate::invariants::{rows, the_rows_stayed, the_store_is_the_catalogue};
use crate::moving::Bench;
use crate::support::model::Catalogue;
use crate::support::quirks::Quirks;
use crate::support::stamps::{DAY, SECOND, day};

const RECORDS: usize = 20_000;

fn bench() -> Bench {
    let mut catalogue = Catalogue::new(day(2026, 3, 1), Quirks::default());
    catalogue.fill("r", RECORDS, |_| day(2025, 1, 1));
    Bench::new(catalogue, 500)
}

#[test]
fn many_records_of_one_stamp_all_come() {
    let mut bench = bench();
    let (first, cost) = bench.complete();
    assert_eq!(first.counters.new, RECORDS as u64);
    assert!(cost.pages <= 40 + 4 + 8, "{cost:?}");
    the_store_is_the_catalogue(&bench.store, &bench.moving.catalogue).unwrap();
    let before = rows(&bench.store);
    let (second, cost) = bench.complete();
    assert_eq!((second.counters.new, second.counters.updated), (0, 0));
    assert!(cost.requests <= 2, "{cost:?}");
    the_rows_stayed(&before, &rows(&bench.store)).unwrap();
}

#[test]
fn edits_among_many_records_of_one_stamp_are_not_lost() {
    let mut bench = bench();
    let (mut edited, mut at) = (0, 0);
    bench.moving.before = Some(Box::new(move |catalogue, _| {
        catalogue.advance(SECOND);
        for _ in 0..3 {
            // Some of them were read, some were not.
            at = (at + 7_919) % RECORDS;
            edited += usize::from(edited < 120 && catalogue.edit(&format!("r-{:06}", at + 1)));
        }
    }));
    bench.complete();
    bench.moving.before = None;
    bench.moving.catalogue.advance(3 * DAY);
    let (_, cost) = bench.complete();
    the_store_is_the_catalogue(&bench.store, &bench.moving.catalogue).unwrap();
    assert!(cost.requests <= 8, "only what was edited is read again: {cost:?}");
    let (third, cost) = bench.complete();
    assert_eq!((third.counters.new, third.counters.updated), (0, 0));
    assert!(cost.requests <= 2, "{cost:?}");
}
