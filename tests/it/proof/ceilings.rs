//! Catalogues of which no window reaches beyond a bound: search engines stop at 10,000.

use crate::cases::play;
use crate::invariants::{rows, the_rows_stayed, the_store_is_the_catalogue};
use crate::moving::Bench;
use crate::support::model::{Catalogue, ModelRecord};
use crate::support::quirks::{CeilingFace, Clock, EditedStamp, Matched, PastEnd, Quirks};
use crate::support::stamps::{DAY, MINUTE, Micros, StampShape, day, seconds_z};

/// What the records show where the filter follows a clock of the catalogue's own.
#[derive(Clone, Copy, Debug)]
enum Shown {
    /// No stamp.
    Nothing,
    /// A date that has nothing to do with the change.
    Unrelated,
}

/// Sorted by the stamps that the records show, three of each.
fn by_record(ceiling: u64, face: CeilingFace, count: usize) -> Catalogue {
    let quirks = Quirks { ceiling: Some((ceiling, face)), ..Quirks::default() };
    let mut catalogue = Catalogue::new(day(2026, 3, 1), quirks);
    catalogue.fill("r", count, |number| day(2025, 1, 1) + (number / 3) as Micros * MINUTE);
    catalogue
}

/// Sorted by a clock that no record shows.
fn by_server(ceiling: u64, face: CeilingFace, count: usize, shown: Shown) -> Catalogue {
    let quirks = Quirks {
        ceiling: Some((ceiling, face)),
        clock: Clock::Hidden(StampShape::Seconds),
        edited_stamp: EditedStamp::Kept,
        ..Quirks::default()
    };
    let mut catalogue = Catalogue::new(day(2026, 3, 1), quirks);
    for number in 0..count {
        let identifier = format!("r-{:06}", number + 1);
        let unrelated = seconds_z(day(1990, 1, 1) + (number * 7_919 % 10_000) as Micros * DAY);
        let mut record = match shown {
            Shown::Nothing => ModelRecord::new(&identifier),
            Shown::Unrelated => ModelRecord::showing(&identifier, &[&unrelated]),
        };
        let changed = day(2024, 1, 1) + number as Micros * 11 * MINUTE;
        record.filter_stamp = Some(changed);
        record.filter_text = Some(seconds_z(changed));
        catalogue.insert_record(record);
    }
    catalogue
}

/// Everything comes, and the next run changes nothing.
#[track_caller]
fn expect_everything(what: &str, catalogue: Catalogue) {
    let count = catalogue.records().len();
    let mut bench = Bench::new(catalogue, 500);
    let (first, cost) = bench.complete();
    let held = rows(&bench.store);
    assert_eq!(held.len(), count, "{what}: {first:?} {cost:?}");
    the_store_is_the_catalogue(&bench.store, &bench.moving.catalogue).unwrap();
    bench.moving.catalogue.advance(5 * DAY);
    let (second, cost) = bench.complete();
    assert_eq!((second.counters.new, second.counters.updated), (0, 0), "{what}: {second:?}");
    assert!(cost.requests <= 2, "{what}: the second run took {cost:?}: {second:?}");
    the_rows_stayed(&held, &rows(&bench.store)).unwrap();
}

#[test]
fn a_ceiling_of_an_exception_is_passed_by_keys() {
    expect_everything("record", by_record(10_000, CeilingFace::Exception, 50_000));
}

#[test]
fn a_ceiling_of_a_broken_answer_is_passed_by_keys() {
    expect_everything("record", by_record(10_000, CeilingFace::Http500, 50_000));
}

#[test]
fn a_ceiling_that_nobody_tells_is_passed_by_keys() {
    expect_everything("record", by_record(10_000, CeilingFace::MatchedPinned, 50_000));
}

#[test]
fn a_ceiling_of_an_exception_is_passed_by_halving() {
    expect_everything("unrelated", by_server(10_000, CeilingFace::Exception, 50_000, Shown::Unrelated));
    expect_everything("nothing", by_server(10_000, CeilingFace::Exception, 50_000, Shown::Nothing));
}

#[test]
fn a_ceiling_of_a_broken_answer_is_passed_by_halving() {
    expect_everything("unrelated", by_server(10_000, CeilingFace::Http500, 50_000, Shown::Unrelated));
}

#[test]
fn a_ceiling_that_nobody_tells_is_passed_by_halving() {
    expect_everything("unrelated", by_server(10_000, CeilingFace::MatchedPinned, 50_000, Shown::Unrelated));
}

/// The faces of a ceiling that shows itself only in that nothing comes any more.
const SILENT: [CeilingFace; 3] = [CeilingFace::Silence, CeilingFace::EmptyPage, CeilingFace::NoneMatch];
const PAST_ENDS: [PastEnd; 4] = [PastEnd::EmptyNextOne, PastEnd::EmptyNextZero, PastEnd::Exception, PastEnd::Buried];

#[test]
fn a_ceiling_where_nothing_comes_any_more_is_passed() {
    for (face, past_end) in SILENT.into_iter().flat_map(|face| PAST_ENDS.map(|past_end| (face, past_end))) {
        let with = |mut catalogue: Catalogue| {
            catalogue.quirks_mut().past_end = past_end;
            catalogue
        };
        expect_everything(&format!("record, {face:?}, {past_end:?}"), with(by_record(2_000, face, 9_000)));
        expect_everything(&format!("unrelated, {face:?}, {past_end:?}"), with(by_server(2_000, face, 9_000, Shown::Unrelated)));
    }
}

#[test]
fn a_count_that_is_too_high_is_no_ceiling() {
    for (more, past_end) in [(1, PastEnd::EmptyNextOne), (30, PastEnd::EmptyNextZero), (500, PastEnd::EmptyNextZero)] {
        let quirks = Quirks { matched: Matched::TooMany(more), past_end, ..Quirks::default() };
        let mut catalogue = Catalogue::new(day(2026, 3, 1), quirks);
        catalogue.fill("r", 300, |number| day(2025, 1, 1) + (number / 3) as Micros * MINUTE);
        let mut bench = Bench::new(catalogue, 50);
        for edited in 0..4 {
            let (ending, cost) = bench.complete();
            the_store_is_the_catalogue(&bench.store, &bench.moving.catalogue).unwrap();
            let told = format!("{more} too many, after {edited} edits: {cost:?}, {ending:?}");
            assert!(ending.watermark > ending.watermark_before, "{told}");
            assert!(cost.requests <= if edited == 0 { 60 } else { 20 }, "{told}");
            bench.moving.catalogue.advance(DAY);
            bench.moving.catalogue.edit(&format!("r-{:06}", edited * 7 + 1));
            bench.moving.catalogue.advance(DAY);
        }
    }
}

/// The same by the binary, with a tenth of it.
#[track_caller]
fn expect_everything_by_the_binary(catalogues: Vec<Catalogue>) {
    for catalogue in catalogues {
        let (server, harness) = play(catalogue);
        let paged = ["--page-size", "200", "--json", "--retries", "0"];
        harness.harvest_quickly(&server, &paged).expect_code(0).expect_json("new", "5000");
        harness.expect_mirror(&server.catalogue());
        server.catalogue().advance(5 * DAY);
        let quiet = harness.harvest_quickly(&server, &paged).expect_code(0);
        quiet.expect_json("new", "0").expect_json("updated", "0");
    }
}

#[test]
fn the_binary_passes_a_ceiling_that_is_told() {
    for face in [CeilingFace::Exception, CeilingFace::Http500, CeilingFace::NoneMatch] {
        expect_everything_by_the_binary(vec![by_record(1_000, face, 5_000), by_server(1_000, face, 5_000, Shown::Unrelated)]);
    }
}

#[test]
fn the_binary_passes_a_ceiling_that_nobody_tells() {
    // Without keys only the ceilings that are in use are looked beyond, for that means reading everything once more.
    expect_everything_by_the_binary(vec![by_record(1_000, CeilingFace::MatchedPinned, 5_000)]);
}
