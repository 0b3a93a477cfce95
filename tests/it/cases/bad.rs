//! B: records and pages that cannot be had, wholly or in part.

use super::{FIRST, catalogue, in_parallel, list, play, play_script, right, stage};
use crate::support::canned::{dc, iso_with};
use crate::support::faults::Fault;
use crate::support::harness::Harness;
use crate::support::model::{Catalogue, Kind, ModelRecord, Poison};
use crate::support::quirks::{Conversion, GMD, Quirks};
use crate::support::server::Server;
use crate::support::stamps::day;

/// A catalogue of `count` records of which those at `positions` make every page fail that holds them.
fn poisoned(count: usize, positions: std::ops::RangeInclusive<usize>, poison: &Poison) -> (Server, Harness) {
    let mut catalogue = catalogue(Quirks::default(), count);
    for position in positions {
        assert!(catalogue.change(&format!("r-{position:06}"), |record| record.poison = Some(poison.clone())));
    }
    play(catalogue)
}

fn exception() -> Poison {
    Poison::Exception("RuntimeException".to_owned())
}

#[track_caller]
fn expect_one_lost(server: &Server, harness: &Harness, position: usize) {
    let outcome = harness.harvest_quickly(server, &["--page-size", "4", "--json"]).expect_code(0);
    let outcome = outcome.expect_json("skipped", "1").expect_json("new", "7").expect_stderr(&format!("position {position}"));
    // One record less than the catalogue counts is no reason to take the clock for another one.
    outcome.expect_json("clock", "\"record\"");
    assert_eq!(harness.store().records().len(), 7);
    assert_eq!(harness.store().problems(), 1);
}

#[test]
fn b1_one_bad_record_of_8_costs_itself_alone() {
    let (server, harness) = poisoned(8, 3..=3, &exception());
    expect_one_lost(&server, &harness, 3);
}

#[test]
fn b1_the_same_as_a_500_without_a_body() {
    let (server, harness) = poisoned(8, 3..=3, &Poison::Http(500));
    expect_one_lost(&server, &harness, 3);
}

#[test]
fn b1_the_bad_record_may_be_the_first_or_the_last() {
    for position in [1, 8] {
        let (server, harness) = poisoned(8, position..=position, &exception());
        expect_one_lost(&server, &harness, position);
    }
}

#[test]
fn b1_one_bad_record_fails_a_strict_run_and_holds_the_watermark() {
    let (server, harness) = poisoned(8, 3..=3, &exception());
    harness.harvest_quickly(&server, &["--page-size", "4", "--strict"]).expect_code(65);
    assert_eq!(harness.store().watermark(), FIRST);
    assert_eq!(harness.store().records().len(), 7);
    assert_eq!(harness.store().problems(), 1);
}

#[test]
fn b1_after_a_strict_run_that_failed_a_lenient_one_moves_the_watermark_though_nothing_is_new() {
    let (server, harness) = poisoned(300, 33..=33, &exception());
    harness.harvest_quickly(&server, &["--strict"]).expect_code(65);
    harness.harvest_quickly(&server, &["--json"]).expect_code(0).expect_json("new", "0").expect_json("clock", "\"record\"");
    assert_ne!(harness.store().watermark(), FIRST);
    server.forget_journal();
    harness.harvest_quickly(&server, &[]).expect_code(0).expect("a tick without news", |_| server.asked() <= 2);
}

#[test]
fn b1_a_record_that_is_mended_is_no_problem_any_more() {
    let (server, harness) = poisoned(8, 3..=3, &exception());
    harness.harvest_quickly(&server, &["--page-size", "4"]).expect_code(0);
    server.catalogue().change("r-000003", |record| record.poison = None);
    harness.harvest_quickly(&server, &["--page-size", "4", "--full"]).expect_code(0);
    harness.expect_mirror(&server.catalogue());
    assert_eq!(harness.store().problems(), 0);
}

#[test]
fn b2_a_catalogue_that_fails_from_some_position_on_is_left_alone_soon() {
    let (server, harness) = poisoned(60, 3..=60, &exception());
    let outcome = harness.harvest_quickly(&server, &["--page-size", "20"]);
    outcome.expect("69 or 76", |outcome| matches!(outcome.code(), Some(69 | 76))).expect("few requests", |_| server.asked() < 60);
    assert_eq!(harness.store().watermark(), FIRST);
}

#[test]
fn b3_a_record_that_the_schema_cannot_show_is_a_problem() {
    let mut catalogue = catalogue(Quirks { conversion: Conversion::PageFails, ..Quirks::default() }, 12);
    catalogue.change("r-000007", |record| record.kind = Kind::Csw);
    let (server, harness) = play(catalogue);
    harness.harvest_quickly(&server, &["--schema", "iso", "--page-size", "4"]).expect_code(0);
    let mut truth = server.catalogue().visible_in(GMD);
    truth.remove("r-000007");
    let difference = crate::support::harness::difference(&truth, &harness.store().records());
    assert!(difference.is_empty(), "{difference}");
    assert_eq!(harness.store().problems(), 1);
}

#[test]
fn b4_a_page_that_fails_for_ever_ends_the_run_and_keeps_those_before_it() {
    let (server, harness) = poisoned(50, 21..=30, &Poison::Http(500));
    let outcome = harness.harvest_quickly(&server, &["--page-size", "10", "--json"]).expect_code(69);
    outcome.expect_json("outcome", "\"partial\"").expect("few requests", |_| server.asked() < 120);
    let held = harness.store().records();
    for number in 1..=20 {
        assert!(held.contains_key(&format!("r-{number:06}")), "r-{number:06} is missing");
    }
    assert_eq!(harness.store().watermark(), FIRST);
}

#[test]
fn b5_records_without_identifier_are_counted_and_told_and_do_not_grow() {
    let mut catalogue = catalogue(Quirks::default(), 4);
    for title in ["First nameless", "Second nameless"] {
        let record =
            ModelRecord { identifier: None, title: title.to_owned(), ..ModelRecord::showing("", &["2025-01-02T00:00:00Z"]) };
        catalogue.insert_record(record);
    }
    let (server, harness) = play(catalogue);
    let outcome = harness.harvest_quickly(&server, &["--json", "--page-size", "3"]).expect_code(0);
    outcome.expect_json("skipped", "2").expect_json("new", "4").expect_stderr("without identifier");
    for _ in 0..2 {
        assert_eq!(harness.store().records().len(), 4);
        assert_eq!(harness.store().problems(), 2);
        harness.harvest_quickly(&server, &["--full", "--page-size", "3"]).expect_code(0);
    }
    assert_eq!(harness.store().number("SELECT max(changed_seq) FROM records"), 4);
}

#[test]
fn b6_of_two_records_with_one_identifier_the_newer_stays() {
    let (old, new) = (dc("a", "old", "2020-01-01"), dc("a", "new", "2024-01-01"));
    for records in [[old.clone(), new.clone()], [new, old]] {
        let (server, harness) = play_script(list(records.to_vec(), right));
        for _ in 0..2 {
            harness.harvest_quickly(&server, &[]).expect_code(0);
            let held = harness.store().records();
            assert_eq!(held["a"].title.as_deref(), Some("new"));
            assert_eq!(held["a"].modified.as_deref(), Some("2024-01-01"));
            assert_eq!((held.len(), held["a"].changed_seq), (1, 1), "one row, and it is not written to and fro");
        }
    }
}

#[test]
fn b7_one_identifier_in_two_sources_makes_two_rows() {
    let (first, harness) = play_script(list(vec![dc("a", "here", "2024-01-01")], right));
    let second = Server::canned(list(vec![dc("a", "there", "2024-01-02")], right));
    harness.harvest_quickly(&first, &[]).expect_code(0);
    harness.harvest_quickly(&second, &[]).expect_code(0);
    assert_eq!(harness.store().records_of(&first.url())["a"].title.as_deref(), Some("here"));
    assert_eq!(harness.store().records_of(&second.url())["a"].title.as_deref(), Some("there"));
    assert_eq!(harness.store().number("SELECT count(*) FROM harvest_state"), 2);
}

#[test]
fn b8_an_iso_stamp_that_is_an_element_is_no_stamp() {
    let odd = iso_with("a", "Odd", "<gmd:MD_ScopeCode><gmd:nested>2025</gmd:nested></gmd:MD_ScopeCode>");
    let (server, harness) = play_script(list(vec![odd], right));
    harness.harvest_quickly(&server, &["--schema", "iso"]).expect_code(0);
    let held = harness.store().records();
    assert_eq!((held["a"].title.as_deref(), &held["a"].modified), (Some("Odd"), &None));
}

fn cuts() -> [Fault; 4] {
    [Fault::ShortContentLength, Fault::MissingLastChunk, Fault::UnfinishedXml, Fault::ResetInBody]
}

#[test]
fn b9_a_page_that_is_cut_is_asked_for_again() {
    for fault in cuts() {
        let (server, harness) = stage(Quirks::default(), 30);
        server.fault_times(1, |entry| entry.page().is_some_and(|page| page.max_records == 10 && page.start_position > 1), fault);
        let outcome = harness.harvest_quickly(&server, &["--page-size", "10", "--json"]).expect_code(0);
        outcome.expect_json("new", "30").expect_json("retries", "1");
        harness.expect_mirror(&server.catalogue());
    }
}

#[test]
fn b9_nothing_is_stored_of_pages_that_are_cut() {
    let cuts = cuts();
    in_parallel(cuts.len(), |case| {
        let (server, harness) = stage(Quirks::default(), 30);
        let mut whole = 0;
        let cut = move |entry: &crate::support::journal::Entry| {
            whole += usize::from(entry.page().is_some_and(|page| page.max_records == 10));
            whole > 1
        };
        server.fault_when(cut, cuts[case].clone());
        let outcome = harness.harvest_quickly(&server, &["--page-size", "10", "--retries", "1", "--json"]).expect_code(69);
        outcome.expect_json("new", "10").expect_json("outcome", "\"partial\"");
        assert_eq!(harness.store().records().len(), 10);
        assert_eq!(harness.store().watermark(), FIRST);
        server.clear_faults();
        harness.harvest_quickly(&server, &["--page-size", "10"]).expect_code(0);
        harness.expect_mirror(&server.catalogue());
    });
}

#[test]
fn b10_gzip_of_the_wrong_length_is_asked_for_again_without() {
    let (server, harness) = stage(Quirks::default(), 30);
    server.fault_when(|_| true, Fault::GzipWrongLength);
    harness.harvest_quickly(&server, &["--page-size", "10"]).expect_code(0);
    harness.expect_mirror(&server.catalogue());
    let zipped = |server: &Server| {
        let wishes =
            |entry: &crate::support::journal::Entry| entry.header("accept-encoding").is_some_and(|value| value.contains("gzip"));
        server.requests().iter().filter(|entry| wishes(entry)).count()
    };
    assert!(zipped(&server) <= 2, "{} requests asked for gzip", zipped(&server));
    // It is remembered with the source.
    server.forget_journal();
    server.catalogue().insert_at("late", day(2025, 5, 31));
    harness.harvest_quickly(&server, &["--page-size", "10"]).expect_code(0);
    harness.expect_mirror(&server.catalogue());
    assert_eq!(zipped(&server), 0);
}

/// A bad record at position 3, and a run that is cut off when the catalogue hangs after position 20.
fn cut_off_after_a_bad_record(more: &[&str]) -> (Server, Harness) {
    let (server, harness) = poisoned(50, 3..=3, &exception());
    server.fault_when(|entry| entry.page().is_some_and(|page| page.start_position > 20), Fault::Stall);
    harness.harvest_quickly(&server, &[&["--page-size", "10", "--max-runtime", "3"], more].concat()).expect_code(75);
    assert_eq!(harness.store().problems(), 1);
    server.release();
    server.clear_faults();
    (server, harness)
}

#[test]
fn b1_a_problem_outlives_a_run_that_was_cut_off() {
    let (server, harness) = cut_off_after_a_bad_record(&[]);
    harness.harvest_quickly(&server, &["--page-size", "10"]).expect_code(0).expect_stderr("resuming");
    assert_eq!(harness.store().records().len(), 49);
    assert_eq!(harness.store().problems(), 1, "the record is as bad as it was");
}

#[test]
fn b1_a_strict_run_is_strict_about_the_part_before_it_was_cut_off() {
    let (server, harness) = cut_off_after_a_bad_record(&["--strict"]);
    harness.harvest_quickly(&server, &["--page-size", "10", "--strict"]).expect_code(65);
    assert_eq!(harness.store().watermark(), FIRST);
}

#[test]
fn b1_a_strict_run_fails_as_long_as_the_record_is_bad() {
    let (server, harness) = poisoned(30, 3..=3, &exception());
    for _ in 0..3 {
        harness.harvest_quickly(&server, &["--page-size", "10", "--strict"]).expect_code(65);
        assert_eq!(harness.store().watermark(), FIRST);
    }
    server.catalogue().change("r-000003", |record| record.poison = None);
    harness.harvest_quickly(&server, &["--page-size", "10", "--strict"]).expect_code(0);
    harness.expect_mirror(&server.catalogue());
}

#[test]
fn b2_b4_a_catalogue_that_is_well_again_is_read_whole() {
    let kinds = [(60, 3..=60), (50, 21..=30), (50, 41..=50), (12, 1..=12)];
    in_parallel(kinds.len(), |case| {
        let (count, positions) = kinds[case].clone();
        let (server, harness) = poisoned(count, positions.clone(), &Poison::Http(500));
        harness.harvest_quickly(&server, &["--page-size", "10", "--retries", "0"]).expect_code(69);
        for position in positions {
            server.catalogue().change(&format!("r-{position:06}"), |record| record.poison = None);
        }
        harness.harvest_quickly(&server, &["--page-size", "10"]).expect_code(0);
        harness.expect_mirror(&server.catalogue());
        assert_eq!(harness.store().problems(), 0);
    });
}

#[test]
fn b3_a_report_on_one_page_that_blames_the_words_is_about_the_page() {
    for text in ["Could not apply the filter of this record", "Unknown version in the record", "violates check constraint"] {
        let (server, harness) = poisoned(30, 15..=15, &Poison::Exception(text.to_owned()));
        let outcome = harness.harvest_quickly(&server, &["--page-size", "5", "--json"]).expect_code(0);
        outcome.expect_json("new", "29").expect_json("skipped", "1");
        assert_eq!(harness.store().problems(), 1);
    }
}

/// The catalogue counts more records than can be stored; its clock is the records' all the same, so that what is stamped between its
/// last record and now still comes.
#[track_caller]
fn expect_the_clock_of_the_records(catalogue: Catalogue) {
    let (server, harness) = play(catalogue);
    harness.harvest_quickly(&server, &["--page-size", "4", "--json"]).expect_code(0).expect_json("clock", "\"record\"");
    server.catalogue().insert_at("late", day(2025, 5, 20));
    harness.harvest_quickly(&server, &["--page-size", "4"]).expect_code(0);
    assert!(harness.store().records().contains_key("late"), "{}", server.journal().told());
}

#[test]
fn b1_a_bad_record_is_no_reason_to_mistake_the_clock() {
    let mut catalogue = catalogue(Quirks::default(), 8);
    catalogue.change("r-000003", |record| record.poison = Some(exception()));
    expect_the_clock_of_the_records(catalogue);
}

#[test]
fn b5_records_without_identifier_are_no_reason_to_mistake_the_clock() {
    let mut catalogue = catalogue(Quirks::default(), 8);
    catalogue.insert_record(ModelRecord { identifier: None, ..ModelRecord::showing("", &["2024-12-01T00:00:00Z"]) });
    expect_the_clock_of_the_records(catalogue);
}

#[test]
fn b6_two_records_with_one_identifier_are_no_reason_to_mistake_the_clock() {
    let mut catalogue = catalogue(Quirks::default(), 8);
    catalogue.insert_record(ModelRecord::showing("r-000005", &["2024-12-01T00:00:00Z"]));
    expect_the_clock_of_the_records(catalogue);
}
