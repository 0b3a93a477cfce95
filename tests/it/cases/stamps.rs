//! S: what stamps say, and whose clock they are of.

use csw_harvester::clock::{Clock as _, SystemClock};
use csw_harvester::timestamp::micros_from;

use super::{FIRST, list, play, play_script, right};
use crate::support::canned::{dc, dc_of, iso};
use crate::support::harness::Harness;
use crate::support::model::{Catalogue, ModelRecord};
use crate::support::quirks::{Clock, EditedStamp, Quirks};
use crate::support::server::Server;
use crate::support::stamps::{DAY, HOUR, MINUTE, StampShape, day};

#[test]
fn s6_what_not_every_parser_reads_is_no_literal() {
    for odd in ["2025-05-30T23:59:60Z", "2025-05-30T24:00:00Z"] {
        let usual: Vec<String> = (1..=28).map(|day| format!("2025-05-{day:02}T10:00:00Z")).collect();
        let stamps: Vec<&str> = usual.iter().map(String::as_str).chain([odd]).collect();
        let (server, harness) = showing(&stamps);
        harness.harvest_quickly(&server, &["--page-size", "5"]).expect_code(0);
        assert_eq!(harness.store().watermark(), odd);
        server.catalogue().insert("late");
        server.catalogue().advance(HOUR);
        harness.harvest_quickly(&server, &["--page-size", "5"]).expect_code(0);
        harness.expect_mirror(&server.catalogue());
        let sent = server.journal().told();
        assert!(sent.contains("2025-05-30") && !sent.contains(odd), "{sent}");
    }
}

/// A catalogue of 2025-06-01 whose records show these stamps: `r0`, `r1` and so on.
fn showing(stamps: &[&str]) -> (Server, Harness) {
    let mut catalogue = Catalogue::new(day(2025, 6, 1), Quirks::default());
    for (number, stamp) in stamps.iter().enumerate() {
        catalogue.insert_record(ModelRecord::showing(&format!("r{number}"), &[stamp]));
    }
    play(catalogue)
}

#[test]
fn s1_a_stamp_of_the_far_future_does_not_freeze_the_watermark() {
    let (server, harness) = showing(&["9999-01-01", "2025-02-02T00:00:00Z", "2025-01-01T00:00:00Z"]);
    harness.harvest_quickly(&server, &[]).expect_code(0);
    harness.expect_mirror(&server.catalogue());
    assert_eq!(harness.store().watermark(), "2025-02-02T00:00:00Z");
    // And what comes later still comes.
    server.catalogue().insert("late");
    server.catalogue().advance(HOUR);
    harness.harvest_quickly(&server, &[]).expect_code(0);
    harness.expect_mirror(&server.catalogue());
    assert_eq!(harness.store().watermark(), "2025-06-01T00:00:00Z");
}

#[test]
fn s1_a_clock_of_the_far_future_does_not_freeze_the_watermark() {
    for clock in [Clock::Hidden(StampShape::Seconds), Clock::Shown] {
        let now = micros_from(SystemClock.now());
        let mut catalogue = Catalogue::new(now, Quirks { clock, ..Quirks::default() });
        catalogue.fill("r", 20, |number| day(2025, 1, 1) + i64::try_from(number).expect("few") * HOUR);
        catalogue.insert_record(ModelRecord::showing("early", &["2050-01-01T00:00:00Z"]));
        let (server, harness) = play(catalogue);
        harness.harvest_quickly(&server, &[]).expect_code(0);
        // While one run lasts, the server believes that a century has passed.
        server.catalogue().set_now(now + 100 * 365 * DAY);
        harness.harvest_quickly(&server, &[]).expect_code(0).expect_stderr("is not believed");
        server.catalogue().set_now(now + MINUTE);
        server.catalogue().edit("r-000003");
        server.catalogue().insert("late");
        harness.harvest_quickly(&server, &[]).expect_code(0);
        harness.expect_mirror(&server.catalogue());
        assert!(harness.store().watermark().as_str() < "2050", "{}", harness.store().watermark());
    }
}

#[test]
fn s2_the_latest_instant_is_the_watermark_whatever_its_offset() {
    let (server, harness) = showing(&["2025-03-01T01:00:00+02:00", "2025-03-01T00:00:00.5Z", "2025-03-01T00:00:00Z"]);
    harness.harvest_quickly(&server, &[]).expect_code(0);
    harness.expect_mirror(&server.catalogue());
    assert_eq!(harness.store().watermark(), "2025-03-01T00:00:00.5Z");
}

#[test]
fn s3_a_second_record_of_the_same_day_arrives() {
    let mut catalogue = Catalogue::new(day(2025, 3, 1) + 10 * HOUR, Quirks { shape: StampShape::Day, ..Quirks::default() });
    for (number, name) in ["x", "y", "z"].into_iter().enumerate() {
        catalogue.insert_at(name, day(2025, 2, 1 + number as i64));
    }
    catalogue.insert("a");
    let (server, harness) = play(catalogue);
    harness.harvest_quickly(&server, &[]).expect_code(0);
    assert_eq!(harness.store().watermark(), "2025-02-03");
    server.catalogue().advance(HOUR);
    server.catalogue().insert("b");
    harness.harvest_quickly(&server, &[]).expect_code(0);
    harness.expect_mirror(&server.catalogue());
    // Once the day is over everywhere it is settled, and quiet.
    server.catalogue().advance(3 * DAY);
    harness.harvest_quickly(&server, &[]).expect_code(0);
    assert_eq!(harness.store().watermark(), "2025-03-01");
}

#[test]
fn s4_of_several_stamps_the_latest_that_can_be_read_counts() {
    let records = vec![
        dc_of("a", "Two", &["2020-01-01", "2024-05-05T00:00:00Z", "2021-01-01"]),
        dc_of("b", "One and an odd one", &["2024-04-04", "WED JUN 28 00:00:00 CES"]),
        dc_of("c", "An odd one first", &["yesterday", "2023-03-03"]),
    ];
    let (server, harness) = play_script(list(records, right));
    harness.harvest_quickly(&server, &[]).expect_code(0);
    let held = harness.store().records();
    let modified = |identifier: &str| held[identifier].modified.clone().unwrap_or_default();
    assert_eq!([modified("a"), modified("b"), modified("c")], ["2024-05-05T00:00:00Z", "2024-04-04", "2023-03-03"]);
}

#[test]
fn s5_dates_and_date_times_of_iso_are_both_read() {
    let records = vec![iso("a", "A day", "2025-01-02"), iso("b", "A time", "2025-01-03T04:05:06")];
    let (server, harness) = play_script(list(records, right));
    harness.harvest_quickly(&server, &["--schema", "iso"]).expect_code(0);
    let held = harness.store().records();
    assert_eq!(held["a"].modified.as_deref(), Some("2025-01-02"));
    assert_eq!(held["b"].modified.as_deref(), Some("2025-01-03T04:05:06"));
    assert_eq!((held["a"].title.as_deref(), held["b"].title.as_deref()), (Some("A day"), Some("A time")));
}

#[test]
fn s6_odd_stamps_are_stored_as_they_are_and_freeze_nothing() {
    let odd = ["2011", "2011-07", "20110704", "WED JUN 28 00:00:00 CES", "2025-02-02T00:00:00Z"];
    let (server, harness) = showing(&odd);
    harness.harvest_quickly(&server, &[]).expect_code(0);
    harness.expect_mirror(&server.catalogue());
    assert_eq!(harness.store().watermark(), "2025-02-02T00:00:00Z");
    for name in ["late", "later"] {
        server.catalogue().advance(HOUR);
        server.catalogue().insert(name);
        server.catalogue().advance(HOUR);
        harness.harvest_quickly(&server, &[]).expect_code(0);
        harness.expect_mirror(&server.catalogue());
    }
}

#[test]
fn s6_odd_stamps_alone_freeze_nothing_either() {
    let records = ["WED JUN 28 00:00:00 CES", "soon", "2011-13-45"].iter().enumerate();
    let records = records.map(|(number, stamp)| dc(&format!("r{number}"), "Odd", stamp)).collect();
    let (server, harness) = play_script(list(records, right));
    harness.harvest_quickly(&server, &[]).expect_code(0);
    assert_eq!(harness.store().records()["r0"].modified.as_deref(), Some("WED JUN 28 00:00:00 CES"));
    assert_eq!(harness.store().watermark(), FIRST);
}

/// A catalogue that filters on its own change time; what it shows is as told.
fn hidden(shape: StampShape, edited_stamp: EditedStamp) -> (Server, Harness) {
    let quirks = Quirks { clock: Clock::Hidden(StampShape::Seconds), shape, edited_stamp, ..Quirks::default() };
    let mut catalogue = Catalogue::new(day(2025, 5, 1), quirks);
    for number in 0..20 {
        catalogue.advance(HOUR);
        catalogue.insert_at(&format!("r{number:02}"), day(2003, 1, 1) + number * DAY);
    }
    catalogue.advance(DAY);
    play(catalogue)
}

/// The clock is the server's, every change arrives, quiet runs are cheap.
#[track_caller]
fn expect_server_clock(server: &Server, harness: &Harness) {
    harness.harvest_quickly(server, &["--json"]).expect_code(0).expect_json("clock", "\"server\"");
    harness.expect_mirror(&server.catalogue());
    for turn in 0..3 {
        server.catalogue().advance(10 * MINUTE);
        server.catalogue().edit(&format!("r{turn:02}"));
        server.catalogue().insert_at(&format!("new{turn}"), day(2004, 1, 1));
        server.catalogue().advance(10 * MINUTE);
        let outcome = harness.harvest_quickly(server, &["--json"]).expect_code(0);
        outcome.expect_json("new", "1").expect_json("updated", "1");
        harness.expect_mirror(&server.catalogue());
    }
    // Nobody knows the zone of a clock that is not shown: a margin of some days is read again until it has passed.
    server.catalogue().advance(5 * DAY);
    harness.harvest_quickly(server, &[]).expect_code(0);
    server.catalogue().advance(DAY);
    server.forget_journal();
    harness.harvest_quickly(server, &["--json"]).expect_code(0).expect_json("unchanged", "0");
    assert!(server.asked() <= 2, "{}", server.journal().told());
}

#[test]
fn s7_without_any_stamp_the_clock_is_the_servers() {
    let (server, harness) = hidden(StampShape::Absent, EditedStamp::Kept);
    expect_server_clock(&server, &harness);
}

#[test]
fn s8_where_the_stamps_shown_are_of_the_resource_the_clock_is_the_servers() {
    let (server, harness) = hidden(StampShape::Day, EditedStamp::Kept);
    expect_server_clock(&server, &harness);
}
