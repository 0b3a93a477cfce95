//! P: the end of a list, lists that lie about it, lists that move.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{FIRST, catalogue, list, pages, play, play_script, right, stage};
use crate::support::canned::dc;
use crate::support::model::Catalogue;
use crate::support::quirks::{
    CeilingFace, Clock, EditedStamp, Matched, Names, NextRecord, Order, PastEnd, Quirks, Ties, UnknownSort,
};
use crate::support::stamps::{DAY, HOUR, SECOND, StampShape, day};

fn dated(count: usize) -> Vec<String> {
    (1..=count).map(|number| dc(&format!("r{number}"), "A title", &format!("2025-01-{number:02}T00:00:00Z"))).collect()
}

fn unsorted(order: Order) -> Quirks {
    Quirks {
        sort_names: Names::none(),
        sort_identifier: Names::none(),
        unknown_sort: UnknownSort::Exception,
        order,
        ..Quirks::default()
    }
}

/// The catalogue with these quirks is read whole, in pages of that size.
#[track_caller]
fn expect_whole(quirks: Quirks, count: usize, page_size: &str) {
    let (server, harness) = stage(quirks, count);
    harness.harvest_quickly(&server, &["--page-size", page_size]).expect_code(0);
    harness.expect_mirror(&server.catalogue());
}

#[test]
fn p1_next_record_past_matched_ends() {
    expect_whole(Quirks { next: NextRecord::MatchedPlusOne, ..Quirks::default() }, 3, "2");
}

#[test]
fn p2_next_record_1_past_the_end_does_not_lead_back_to_the_start() {
    let counters = |place: super::Place| match place.returned {
        0 => (Some(2), Some(1)),
        _ => (Some(2), Some(place.next())),
    };
    let (server, harness) = play_script(list(dated(2), counters));
    harness.harvest_quickly(&server, &["--page-size", "2"]).expect_code(0);
    assert_eq!(harness.store().identifiers(), ["r1", "r2"]);
    let starts: Vec<i64> = server.get_records().iter().filter(|page| !page.hits).map(|page| page.start_position).collect();
    let beyond = starts.iter().position(|start| *start > 1).expect("a second page");
    assert!(starts[beyond..].iter().all(|start| *start > 1), "{}", server.journal().told());
}

#[test]
fn p2_pycsw_says_1_past_the_end() {
    expect_whole(Quirks { past_end: PastEnd::EmptyNextOne, next: NextRecord::Absent, ..Quirks::default() }, 4, "2");
}

#[test]
fn p3_an_absent_next_record_is_no_end() {
    expect_whole(Quirks { next: NextRecord::Absent, ..Quirks::default() }, 5, "2");
}

#[test]
fn p4_a_silent_cap_of_10_skips_nothing() {
    expect_whole(Quirks { page_cap: Some(10), ..Quirks::default() }, 25, "20");
}

#[test]
fn p5_next_record_0_too_early_is_no_end() {
    let counters = |place: super::Place| (Some(place.total), Some(if place.start == 1 { 3 } else { 0 }));
    let (server, harness) = play_script(list(dated(5), counters));
    harness.harvest_quickly(&server, &["--page-size", "2"]).expect_code(0);
    assert_eq!(harness.store().records().len(), 5);
}

#[test]
fn p5_next_record_0_on_every_full_page_is_no_end() {
    let quirks = Quirks { next: NextRecord::ZeroOnFullPage, matched: Matched::GrowsWithPage, ..Quirks::default() };
    expect_whole(quirks, 25, "10");
}

#[test]
fn p6_next_record_that_equals_matched_is_a_page() {
    expect_whole(Quirks::default(), 3, "2");
    expect_whole(Quirks { next: NextRecord::ZeroTooEarly, ..Quirks::default() }, 3, "2");
}

#[test]
fn p7_next_record_minus_1_ends() {
    expect_whole(Quirks { next: NextRecord::MinusOneAtEnd, ..Quirks::default() }, 5, "2");
}

#[test]
fn p8_matched_that_is_the_page_size_is_no_end() {
    expect_whole(Quirks { matched: Matched::PageSize, ..Quirks::default() }, 30, "10");
}

#[test]
fn p9_a_window_that_is_too_large_is_passed() {
    expect_whole(Quirks { ceiling: Some((100, CeilingFace::Exception)), ..Quirks::default() }, 230, "20");
}

#[test]
fn p9_a_window_that_is_too_large_is_passed_by_the_catalogues_own_clock() {
    let quirks = Quirks {
        ceiling: Some((100, CeilingFace::Exception)),
        clock: Clock::Hidden(StampShape::Seconds),
        edited_stamp: EditedStamp::Kept,
        ..Quirks::default()
    };
    let mut catalogue = Catalogue::new(day(2025, 5, 1), quirks);
    for number in 0..230 {
        catalogue.advance(HOUR / 10);
        catalogue.insert_at(&format!("r{number:03}"), day(2011, 1, 1 + number % 28));
    }
    catalogue.advance(DAY);
    let (server, harness) = play(catalogue);
    harness.harvest_quickly(&server, &["--page-size", "20"]).expect_code(0);
    harness.expect_mirror(&server.catalogue());
}

#[test]
fn p10_a_500_beyond_the_window_is_passed() {
    let (server, harness) = stage(Quirks { ceiling: Some((100, CeilingFace::Http500)), ..Quirks::default() }, 230);
    harness.harvest_quickly(&server, &["--page-size", "20"]).expect_code(0);
    harness.expect_mirror(&server.catalogue());
    assert_eq!(harness.store().problems(), 0, "no position is bad for lying beyond the window");
}

#[test]
fn p11_an_order_that_changes_is_read_again_or_told() {
    for seed in 1..=4 {
        let (server, harness) = play(catalogue(unsorted(Order::RandomEachTime), 6).with_seed(seed));
        let outcome = harness.harvest_quickly(&server, &["--page-size", "2"]).expect_code(0);
        let count = harness.store().records().len();
        let told = outcome.stderr.contains("kept moving");
        outcome.expect(&format!("6 records, or to be told; not {count}"), |_| count == 6 || told);
        if told {
            assert_eq!(harness.store().watermark(), FIRST);
        }
    }
}

#[test]
fn p12_300_records_of_one_stamp_in_pages_of_50() {
    for ties in [Ties::Rowid, Ties::RandomStable] {
        let mut catalogue = catalogue(Quirks { ties, ..Quirks::default() }, 10);
        let (server, harness) = play(catalogue.clone());
        harness.harvest_quickly(&server, &["--page-size", "50"]).expect_code(0);
        // Once with a window that begins at a stamp, once without.
        catalogue.fill("tie", 300, |_| day(2025, 5, 1));
        *server.catalogue() = catalogue;
        harness.harvest_quickly(&server, &["--page-size", "50"]).expect_code(0);
        harness.expect_mirror(&server.catalogue());
        let fresh = super::Harness::against(&server);
        fresh.harvest_quickly(&server, &["--page-size", "50"]).expect_code(0);
        fresh.expect_mirror(&server.catalogue());
    }
}

#[test]
fn p12_ties_in_another_order_each_time_all_come_or_it_is_told() {
    let mut catalogue = Catalogue::new(day(2025, 6, 1), Quirks { ties: Ties::RandomEachTime, ..Quirks::default() });
    catalogue.fill("tie", 300, |_| day(2025, 5, 1));
    let (server, harness) = play(catalogue);
    let outcome = harness.harvest_quickly(&server, &["--page-size", "50"]).expect_code(0);
    if !outcome.stderr.contains("kept moving") {
        harness.expect_mirror(&server.catalogue());
    }
}

fn five_records(quirks: Quirks) -> Catalogue {
    let mut catalogue = Catalogue::new(day(2025, 5, 1), quirks);
    for (number, name) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
        catalogue.insert_at(name, day(2025, 5, 1 + number as i64));
        catalogue.advance(DAY);
    }
    catalogue.advance(30 * DAY);
    catalogue
}

/// After the first page of two, `a` is edited.
fn edit_a_after_the_first_page(server: &super::Server) {
    let mut edited = false;
    server.after_request(move |catalogue, entry| {
        if !edited && entry.page().is_some_and(|page| page.max_records == 2) {
            edited = true;
            catalogue.advance(SECOND);
            catalogue.edit("a");
        }
    });
}

#[test]
fn p13_what_moves_up_while_it_is_paged_is_not_skipped() {
    let hidden = Quirks { clock: Clock::Hidden(StampShape::Seconds), edited_stamp: EditedStamp::Kept, ..Quirks::default() };
    for quirks in [Quirks::default(), unsorted(Order::EditedLast), hidden] {
        let (server, harness) = play(five_records(quirks));
        edit_a_after_the_first_page(&server);
        harness.harvest_quickly(&server, &["--page-size", "2"]).expect_code(0);
        assert_eq!(harness.store().identifiers(), ["a", "b", "c", "d", "e"], "{}", server.journal().told());
    }
}

#[test]
fn p13_what_moves_up_in_a_later_run_is_not_skipped() {
    let (server, harness) = play(five_records(Quirks::default()));
    harness.harvest_quickly(&server, &["--page-size", "2"]).expect_code(0);
    for name in ["a", "b", "c", "d", "e"] {
        server.catalogue().advance(HOUR);
        server.catalogue().edit(name);
    }
    server.catalogue().advance(HOUR);
    server.forget_journal();
    edit_a_after_the_first_page(&server);
    harness.harvest_quickly(&server, &["--page-size", "2"]).expect_code(0);
    let versions = harness.store().rows("SELECT identifier FROM records WHERE xml LIKE '%[version 1]%'");
    assert!(versions.is_empty(), "not read again: {versions:?}\n{}", server.journal().told());
}

#[test]
fn p14_one_record_over_and_over_ends_by_a_bound() {
    let (server, harness) = play_script(list(Vec::new(), right).rule(|operation| {
        let super::Operation::GetRecords(request) = operation else { return None };
        let next = request.start_position + 1;
        let record = dc("a", "The same", "2025-01-01T00:00:00Z");
        let body = super::env(Some(next), Some(1), Some(next), &[record]);
        request.lower.is_none().then(|| super::Reply::xml(body))
    }));
    harness.harvest_quickly(&server, &["--page-size", "10"]).expect_code(76).expect("a bound", |_| server.asked() < 200);
    assert_eq!(harness.store().identifiers(), ["a"]);
    assert_eq!(harness.store().watermark(), FIRST);
}

#[test]
fn p14_a_catalogue_that_comes_to_its_senses_is_read_whole() {
    let mad = Arc::new(AtomicBool::new(true));
    let still_mad = Arc::clone(&mad);
    let records = dated(20);
    let script = super::Canned::in_order([]).rule(move |operation| {
        let super::Operation::GetRecords(request) = operation else { return None };
        if request.lower.is_some() {
            return None;
        }
        let start = request.start_position;
        if still_mad.load(Ordering::SeqCst) {
            let record = dc("r1", "A title", "2025-01-01T00:00:00Z");
            return Some(super::Reply::xml(super::env(Some(start + 1), Some(1), Some(start + 1), &[record])));
        }
        let page: Vec<String> = records.iter().skip(start as usize - 1).take(request.max_records as usize).cloned().collect();
        Some(super::Reply::xml(super::env(Some(20), Some(page.len() as u64), None, &page)))
    });
    let (server, harness) = play_script(script);
    harness.harvest_quickly(&server, &["--page-size", "10"]).expect_code(76);
    mad.store(false, Ordering::SeqCst);
    harness.harvest_quickly(&server, &["--page-size", "10"]).expect_code(0);
    assert_eq!(harness.store().records().len(), 20, "{}", server.journal().told());
}

#[test]
fn p14_one_record_over_and_over_without_a_count_ends() {
    let (server, harness) = play_script(list(Vec::new(), right).rule(|operation| {
        let super::Operation::GetRecords(request) = operation else { return None };
        let record = dc("a", "The same", "2025-01-01T00:00:00Z");
        let body = super::env(None, None, Some(request.start_position + 1), &[record]);
        request.lower.is_none().then(|| super::Reply::xml(body))
    }));
    let outcome = harness.harvest_quickly(&server, &["--page-size", "10"]);
    outcome.expect("an end", |outcome| matches!(outcome.code(), Some(0 | 76))).expect("a bound", |_| server.asked() < 200);
    assert_eq!(harness.store().identifiers(), ["a"]);
}

#[test]
fn p15_no_position_lies_before_1() {
    let (server, harness) = stage(Quirks { position_zero_refused: true, ..Quirks::default() }, 5);
    harness.harvest_quickly(&server, &["--page-size", "2"]).expect_code(0);
    harness.expect_mirror(&server.catalogue());
    assert!(server.get_records().iter().all(|request| request.start_position >= 1), "{}", server.journal().told());
    assert!(pages(&server, 2) >= 3);
}

#[test]
fn p16_a_catalogue_that_shrinks_while_it_is_read_ends() {
    for quirks in [Quirks::default(), unsorted(Order::Insertion)] {
        let (server, harness) = stage(quirks, 40);
        let mut deleted = 0;
        server.after_request(move |catalogue, entry| {
            if deleted < 15 && entry.page().is_some_and(|page| page.max_records == 10) {
                for _ in 0..5 {
                    deleted += 1;
                    catalogue.delete(&format!("r-{deleted:06}"));
                }
            }
        });
        let outcome = harness.harvest_quickly(&server, &["--page-size", "10", "--json"]).expect_code(0);
        outcome.expect_json("outcome", "\"complete\"");
        let held = harness.store().records();
        for identifier in server.catalogue().visible().keys() {
            assert!(held.contains_key(identifier), "{identifier} is missing\n{}", server.journal().told());
        }
    }
}
