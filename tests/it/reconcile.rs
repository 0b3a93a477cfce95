//! What a watermark cannot see, through the real binary: deletions, back-dated and undated records, changes that leave the stamp.

mod burial;
mod faults;
mod size;

use std::path::Path;

use crate::cases::{in_parallel, stage};
use crate::support::canned::Reply;
use crate::support::faults::Fault;
use crate::support::harness::{Harness, Outcome, difference};
use crate::support::journal::Entry;
use crate::support::model::{ElementSet, ModelRecord};
use crate::support::profiles;
use crate::support::quirks::{Bindings, Clock, EditedStamp, Quirks};
use crate::support::requests::Operation;
use crate::support::server::Server;
use crate::support::stamps::{DAY, StampShape, day};

const RECORDS: usize = 60;
const SIZE: [&str; 2] = ["--page-size", "10"];

fn tick(server: &Server, harness: &Harness, more: &[&str]) -> Outcome {
    harness.harvest_quickly(server, &[&SIZE[..], &["--json"], more].concat())
}

/// A catalogue that was harvested twice, so that all that is found out once is known.
fn harvested(quirks: Quirks) -> (Server, Harness) {
    let (server, harness) = stage(quirks, RECORDS);
    tick(&server, &harness, &[]).expect_code(0);
    server.catalogue().advance(DAY);
    tick(&server, &harness, &[]).expect_code(0);
    server.catalogue().advance(DAY);
    harness.expect_mirror(&server.catalogue());
    server.forget_journal();
    (server, harness)
}

fn delete(server: &Server, numbers: impl IntoIterator<Item = usize>) -> Vec<String> {
    let names: Vec<String> = numbers.into_iter().map(|number| format!("r-{number:06}")).collect();
    for name in &names {
        server.catalogue().delete(name);
    }
    names
}

fn is_by_id(entry: &Entry) -> bool {
    matches!(entry.operation, Ok(Operation::GetRecordById { .. }))
}

fn is_listed(entry: &Entry) -> bool {
    entry.page().is_some_and(|page| page.element_set == ElementSet::Summary)
}

/// Makes the last inventory so many days older.
fn age_inventory(store: &Path, days: u32) {
    let connection = rusqlite::Connection::open(store).expect("a store");
    let sql = format!("UPDATE harvest_state SET inventory_at = strftime('%Y-%m-%dT%H:%M:%SZ', inventory_at, '-{days} days')");
    assert_eq!(connection.execute(&sql, []).expect("a column"), 1);
}

#[test]
fn whatever_the_catalogue_the_next_tick_brings_what_no_watermark_sees() {
    let all = profiles::all();
    in_parallel(all.len(), |case| {
        let (name, quirks) = &all[case];
        let (server, harness) = harvested(quirks.clone());
        {
            let mut catalogue = server.catalogue();
            catalogue.delete("r-000007");
            catalogue.delete("r-000031");
            catalogue.insert_at("back-dated", day(2014, 5, 6));
            catalogue.insert_record(ModelRecord::showing("undated", &[]));
            catalogue.insert_at("back-dated too", day(2025, 1, 1));
        }
        let outcome = tick(&server, &harness, &[]).expect_code(0).expect_json("reconciled", "true");
        outcome.expect_json("deleted", "2").expect_json("new", "3").expect_json("skipped", "0");
        let difference = difference(&server.catalogue().visible(), &harness.store().records());
        assert!(difference.is_empty(), "{name}:\n{difference}\n{}", server.journal().told());
        assert_eq!(harness.store().tombstones(), ["r-000007", "r-000031"], "{name}");
        // What a quiet tick takes without it, and one to count.
        for _ in 0..2 {
            server.catalogue().advance(5 * DAY);
            tick(&server, &harness, &[]).expect_code(0);
        }
        server.forget_journal();
        tick(&server, &harness, &["--reconcile", "never"]).expect_code(0);
        let without = server.asked();
        server.forget_journal();
        tick(&server, &harness, &[]).expect_code(0).expect_json("deleted", "0").expect_json("new", "0");
        assert!(server.asked() <= without + 1, "{name}, {without} without:\n{}", server.journal().told());
    });
}

#[test]
fn a_page_that_shows_more_than_it_counts_does_not_hide_deletions_from_then_on() {
    let (server, harness) = harvested(Quirks::default());
    // As when a record comes in between the count and the page.
    let body = "<csw:GetRecordsResponse xmlns:csw='http://www.opengis.net/cat/csw/2.0.2' xmlns:dc='http://purl.org/dc/elements/1.1/' \
                xmlns:dct='http://purl.org/dc/terms/'><csw:SearchResults numberOfRecordsMatched='0' numberOfRecordsReturned='1' \
                nextRecord='0'><csw:Record><dc:identifier>r-000060</dc:identifier><dct:modified>2025-01-06T00:00:00Z</dct:modified>\
                </csw:Record></csw:SearchResults></csw:GetRecordsResponse>";
    server.fault_at(1, Fault::Reply(Reply::xml(body)));
    tick(&server, &harness, &[]).expect_code(0).expect_json("updated", "1");
    delete(&server, [4]);
    tick(&server, &harness, &[]).expect_code(0).expect_json("deleted", "1");
    assert_eq!(harness.store().tombstones(), ["r-000004"]);
}

#[test]
fn a_record_that_comes_back_leaves_its_tombstone() {
    let (server, harness) = harvested(Quirks::default());
    let before = harness.store().number("SELECT max(changed_seq) FROM records");
    delete(&server, [5]);
    tick(&server, &harness, &[]).expect_code(0).expect_json("deleted", "1").expect_stderr("1 deleted");
    assert!(!harness.store().records().contains_key("r-000005"));
    let buried = harness.store().number("SELECT changed_seq FROM tombstones");
    assert!(buried > before);
    // With the stamp that it had.
    server.catalogue().insert_at("r-000005", day(2025, 1, 1));
    tick(&server, &harness, &[]).expect_code(0).expect_json("new", "1").expect_json("deleted", "0");
    harness.expect_mirror(&server.catalogue());
    assert!(harness.store().tombstones().is_empty());
    assert!(harness.store().number("SELECT changed_seq FROM records WHERE identifier = 'r-000005'") > buried);
}

#[test]
fn a_change_that_leaves_the_stamp_is_seen_once_a_week_and_on_demand() {
    let (server, harness) = harvested(Quirks::default());
    let change = |name: &str| server.catalogue().change(name, |record| record.version += 1);
    change("r-000003");
    tick(&server, &harness, &[]).expect_code(0).expect_json("updated", "0").expect_json("reconciled", "false");
    tick(&server, &harness, &["--reconcile", "always"])
        .expect_code(0)
        .expect_json("updated", "1")
        .expect_json("reconciled", "true");
    harness.expect_mirror(&server.catalogue());
    change("r-000004");
    age_inventory(&harness.path("harvest_state.db"), 6);
    tick(&server, &harness, &[]).expect_code(0).expect_json("updated", "0");
    age_inventory(&harness.path("harvest_state.db"), 1);
    tick(&server, &harness, &[]).expect_code(0).expect_json("updated", "1").expect_json("reconciled", "true");
    harness.expect_mirror(&server.catalogue());
    tick(&server, &harness, &[]).expect_code(0).expect_json("reconciled", "false");
    assert_eq!(harness.store().number("SELECT count(*) FROM runs WHERE reconciled"), 3);
}

#[test]
fn a_mass_of_deletions_needs_a_word() {
    let (server, harness) = harvested(Quirks::default());
    let before = (harness.store().records(), harness.store().watermark());
    delete(&server, 1..=19);
    server.catalogue().edit("r-000040");
    server.catalogue().advance(DAY);
    for _ in 0..2 {
        let outcome = tick(&server, &harness, &[]).expect_code(65).expect_json("deleted", "0").expect_json("reconciled", "false");
        outcome.expect_stderr("19 of 60 records would be deleted").expect_stderr("--allow-mass-deletion");
        assert_eq!(harness.store().records().len(), 60);
        assert_eq!(harness.store().watermark(), before.1, "held");
        assert!(harness.store().tombstones().is_empty());
    }
    tick(&server, &harness, &["--allow-mass-deletion"]).expect_code(0).expect_json("deleted", "19");
    harness.expect_mirror(&server.catalogue());
    assert_eq!(harness.store().tombstones().len(), 19);
    assert_ne!(harness.store().watermark(), before.1);
    // Ten may always go, and nearly a third.
    delete(&server, 20..=29);
    tick(&server, &harness, &[]).expect_code(0).expect_json("deleted", "10");
}

#[test]
fn an_empty_catalogue_deletes_nothing_unless_it_is_meant() {
    let (server, harness) = harvested(Quirks::default());
    let whole = server.catalogue().clone();
    server.catalogue().clear();
    for more in [&[][..], &["--full"], &["--reconcile", "always"]] {
        let outcome = tick(&server, &harness, more).expect_code(65);
        outcome.expect_stderr("60 of 60 records would be deleted").expect_stderr("shows no record at all");
        assert_eq!(harness.store().records().len(), 60);
    }
    *server.catalogue() = whole;
    tick(&server, &harness, &[]).expect_code(0).expect_json("deleted", "0").expect_json("updated", "0");
    harness.expect_mirror(&server.catalogue());
    server.catalogue().clear();
    tick(&server, &harness, &["--allow-mass-deletion"]).expect_code(0).expect_json("deleted", "60");
    assert!(harness.store().records().is_empty());
    tick(&server, &harness, &[]).expect_code(0).expect_json("deleted", "0");
}

#[test]
fn fifty_and_more_go_only_after_a_reading_in_full() {
    let (server, harness) = stage(Quirks::default(), 300);
    tick(&server, &harness, &[]).expect_code(0);
    server.catalogue().advance(DAY);
    delete(&server, 1..=60);
    server.forget_journal();
    tick(&server, &harness, &[]).expect_code(0).expect_json("deleted", "60").expect_stderr("everything is read in full");
    harness.expect_mirror(&server.catalogue());
    let asked = server.requests().iter().filter(|entry| is_by_id(entry)).count();
    assert!(asked <= 24, "a few are asked for, and not all: {asked}");
}

#[test]
fn never_is_never() {
    let (server, harness) = harvested(Quirks::default());
    delete(&server, [1, 2]);
    server.forget_journal();
    tick(&server, &harness, &["--reconcile", "never"])
        .expect_code(0)
        .expect_json("deleted", "0")
        .expect_json("reconciled", "false");
    assert_eq!(server.asked(), 1, "{}", server.journal().told());
    tick(&server, &harness, &["--full", "--reconcile", "never"]).expect_code(0).expect_json("deleted", "0");
    assert_eq!(harness.store().records().len(), 60);
    tick(&server, &harness, &["--full"]).expect_code(0).expect_json("deleted", "2").expect_json("reconciled", "true");
    harness.expect_mirror(&server.catalogue());
}

#[test]
fn a_dry_run_tells_what_would_go() {
    let (server, harness) = harvested(Quirks::default());
    delete(&server, [1, 2]);
    server.catalogue().insert_at("old", day(2014, 1, 1));
    let before = (harness.store().records(), harness.store().number("SELECT count(*) FROM runs"));
    for more in [&["--dry-run"][..], &["--dry-run", "--reconcile", "always"]] {
        tick(&server, &harness, more).expect_code(0).expect_json("deleted", "2").expect_json("new", "1");
    }
    assert_eq!((harness.store().records(), harness.store().number("SELECT count(*) FROM runs")), before);
    assert!(harness.store().tombstones().is_empty());
    tick(&server, &harness, &[]).expect_code(0).expect_json("deleted", "2").expect_json("new", "1");
}

#[test]
fn where_no_filter_works_the_reading_is_the_inventory() {
    let (server, harness) = harvested(Quirks { filter_ignored: true, ..Quirks::default() });
    tick(&server, &harness, &[]).expect_code(0).expect_json("clock", "\"none\"").expect_json("reconciled", "true");
    let usual = server.asked();
    delete(&server, [3]);
    server.forget_journal();
    tick(&server, &harness, &[]).expect_code(0).expect_json("deleted", "1");
    // Two to see that single records are given, before and after; one for the record that is gone.
    assert!(server.asked() <= usual + 3, "{usual} requests are usual:\n{}", server.journal().told());
    harness.expect_mirror(&server.catalogue());
}

#[test]
fn where_single_records_are_not_given_a_filter_or_a_reading_in_full_brings_them() {
    let faults = [
        Fault::exception(400, "OperationNotSupported", "request", "GetRecordById"),
        Fault::exception(200, "InvalidParameterValue", "", "no"),
        Fault::status(404),
        Fault::status(500),
        Fault::Html("Not here"),
        Fault::Reply(Reply::xml("<csw:GetRecordByIdResponse xmlns:csw='http://www.opengis.net/cat/csw/2.0.2'/>")),
    ];
    in_parallel(faults.len() * 2, |case| {
        let (fault, filtered) = (&faults[case / 2], case % 2 == 0);
        let quirks = Quirks { clock: Clock::Hidden(StampShape::Seconds), edited_stamp: EditedStamp::Kept, ..Quirks::default() };
        let (server, harness) = harvested(if filtered { Quirks::default() } else { quirks });
        server.fault_when(is_by_id, fault.clone());
        let names_one = |entry: &Entry| entry.page().is_some_and(|page| page.also.is_some());
        if !filtered {
            server.fault_when(names_one, Fault::exception(400, "InvalidParameterValue", "Filter", "dc:identifier"));
        }
        delete(&server, [9, 10]);
        server.catalogue().insert_at("old", day(2014, 1, 1));
        tick(&server, &harness, &[]).expect_code(0).expect_json("deleted", "2").expect_json("new", "1").expect_json("skipped", "0");
        harness.expect_mirror(&server.catalogue());
    });
}

#[test]
fn an_identifier_with_a_comma_is_not_asked_for_by_get_as_two() {
    let (server, harness) = stage(Quirks { bindings: Bindings::GetOnly, ..Quirks::default() }, RECORDS);
    server.catalogue().insert_at("a,b", day(2025, 1, 1));
    tick(&server, &harness, &[]).expect_code(0);
    server.catalogue().advance(DAY);
    server.catalogue().insert_at("c,d", day(2014, 1, 1));
    server.catalogue().insert_at("old", day(2014, 1, 1));
    server.catalogue().delete("a,b");
    tick(&server, &harness, &[]).expect_code(0).expect_json("deleted", "1").expect_json("new", "2");
    harness.expect_mirror(&server.catalogue());
    let commas =
        |entry: &&Entry| matches!(&entry.operation, Ok(Operation::GetRecordById { identifiers, .. }) if identifiers.len() > 1);
    assert_eq!(server.requests().iter().filter(commas).count(), 0, "{}", server.journal().told());
}

#[test]
fn what_a_filter_of_the_user_selects_no_more_goes_although_it_is_given_by_identifier() {
    let (server, harness) = stage(Quirks::default(), RECORDS);
    let ours = ["--cql", "dc:title LIKE 'Title%'"];
    tick(&server, &harness, &ours).expect_code(0).expect_json("new", "60");
    server.catalogue().advance(DAY);
    server.catalogue().change("r-000012", |record| record.title = "Renamed".to_owned());
    tick(&server, &harness, &ours).expect_code(0).expect_json("deleted", "1");
    assert_eq!(harness.store().tombstones(), ["r-000012"]);
    server.forget_journal();
    tick(&server, &harness, &ours).expect_code(0).expect_json("deleted", "0");
    assert_eq!(server.asked(), 2, "{}", server.journal().told());
}

#[test]
fn a_record_that_is_given_by_identifier_and_never_listed_stays_and_costs_nothing_more() {
    let (server, harness) = harvested(Quirks::default());
    // As if it were there: hidden from lists alone.
    let given = |entry: &Entry| match &entry.operation {
        Ok(Operation::GetRecordById { identifiers, .. }) => identifiers == &["r-000012"],
        _ => false,
    };
    let record = harness.store().rows("SELECT xml FROM records WHERE identifier = 'r-000012'")[0][0].clone();
    let body =
        format!("<csw:GetRecordByIdResponse xmlns:csw='http://www.opengis.net/cat/csw/2.0.2'>{record}</csw:GetRecordByIdResponse>");
    server.fault_when(given, Fault::Reply(Reply::xml(body)));
    delete(&server, [12]);
    tick(&server, &harness, &[]).expect_code(0).expect_json("deleted", "0").expect_json("reconciled", "true");
    assert!(harness.store().records().contains_key("r-000012"));
    server.forget_journal();
    tick(&server, &harness, &[]).expect_code(0).expect_json("deleted", "0");
    assert_eq!(server.asked(), 2, "the gap is known now:\n{}", server.journal().told());
}

#[test]
fn a_problem_is_tried_again_by_an_inventory() {
    let (server, harness) = stage(Quirks::default(), RECORDS);
    server.catalogue().change("r-000020", |record| record.poison = Some(crate::support::model::Poison::Http(500)));
    tick(&server, &harness, &["--retries", "0"]).expect_code(0).expect_json("skipped", "1");
    assert_eq!((harness.store().records().len(), harness.store().problems()), (59, 1));
    server.catalogue().advance(DAY);
    server.catalogue().change("r-000020", |record| record.poison = None);
    tick(&server, &harness, &["--reconcile", "always"]).expect_code(0).expect_json("new", "1");
    harness.expect_mirror(&server.catalogue());
    assert_eq!(harness.store().problems(), 0);
}

#[test]
fn records_that_come_while_the_tick_is_under_way_are_no_reason_for_an_inventory() {
    let (server, harness) = harvested(Quirks::default());
    let mut pages = 0;
    server.after_request(move |catalogue, entry| {
        pages += usize::from(entry.page().is_some());
        if pages == 1 && entry.page().is_some() {
            catalogue.insert("meanwhile");
            catalogue.insert("meanwhile too");
        }
    });
    tick(&server, &harness, &[]).expect_code(0).expect_json("reconciled", "false").expect_json("new", "0");
    server.catalogue().advance(DAY);
    tick(&server, &harness, &[]).expect_code(0).expect_json("reconciled", "false").expect_json("new", "2");
    harness.expect_mirror(&server.catalogue());
}

#[test]
fn a_catalogue_that_was_set_back_is_held_as_it_is_now() {
    let (server, harness) = harvested(Quirks::default());
    // As from a backup: most records are older than those held, on several pages, and one is not there.
    for number in 2..=40 {
        server.catalogue().edit_at(&format!("r-{number:06}"), day(2014, 1, number as i64 % 28 + 1));
    }
    delete(&server, [50]);
    let outcome = tick(&server, &harness, &[]).expect_code(0).expect_json("updated", "39").expect_json("deleted", "1");
    outcome.expect_stderr("39 differed");
    harness.expect_mirror(&server.catalogue());
    assert_eq!(harness.store().number("SELECT inventory_updated FROM harvest_state"), 39);
}

fn asks_for(entry: &Entry, wanted: &[&str]) -> bool {
    match &entry.operation {
        Ok(Operation::GetRecordById { identifiers, .. }) => {
            identifiers.iter().any(|identifier| wanted.contains(&identifier.as_str()))
        }
        _ => false,
    }
}

#[test]
fn one_record_that_is_refused_does_not_stop_the_source() {
    for status in [401, 403] {
        let (server, harness) = harvested(Quirks::default());
        server.fault_when(|entry: &Entry| asks_for(entry, &["r-000012", "secret"]), Fault::status(status));
        // One of which it cannot be told whether it is gone, one that is listed and not given.
        delete(&server, [12, 13, 14]);
        server.catalogue().insert_at("secret", day(2014, 1, 1));
        server.catalogue().insert_at("open", day(2014, 1, 1));
        let outcome =
            tick(&server, &harness, &["--retries", "0"]).expect_code(0).expect_json("deleted", "2").expect_json("new", "1");
        outcome.expect_json("skipped", "1").expect_json("reconciled", "true");
        assert!(harness.store().records().contains_key("r-000012"));
        assert_eq!(harness.store().tombstones(), ["r-000013", "r-000014"]);
        assert_eq!(harness.store().rows("SELECT place FROM problems")[0][0], "id:secret");
    }
}

#[test]
fn what_lists_lack_and_single_questions_give_stays_however_much_it_is() {
    for gone in [49, 50, 80] {
        let (server, harness) = stage(Quirks::default(), 400);
        tick(&server, &harness, &[]).expect_code(0);
        server.catalogue().advance(DAY);
        let names = (1..=gone).map(|number| format!("r-{number:06}"));
        let rows = harness.store();
        let xml = |name: &str| rows.rows(&format!("SELECT xml FROM records WHERE identifier = '{name}'"))[0][0].clone();
        for name in names {
            let body = format!(
                "<csw:GetRecordByIdResponse xmlns:csw='http://www.opengis.net/cat/csw/2.0.2'>{}</csw:GetRecordByIdResponse>",
                xml(&name)
            );
            let asked = move |entry: &Entry| match &entry.operation {
                Ok(Operation::GetRecordById { identifiers, .. }) => identifiers == std::slice::from_ref(&name),
                _ => false,
            };
            server.fault_when(asked, Fault::Reply(Reply::xml(body)));
        }
        delete(&server, 1..=gone);
        tick(&server, &harness, &[]).expect_code(0).expect_json("deleted", "0");
        assert_eq!(harness.store().records().len(), 400, "{gone}");
    }
}

#[test]
fn an_answer_that_says_nothing_of_the_record_deletes_nothing() {
    let report = Fault::exception(500, "NoApplicableCode", "", "ORA-12541: no listener");
    for fault in [Fault::Html("down for maintenance"), report, Fault::status(503), Fault::Empty] {
        let (server, harness) = harvested(Quirks::default());
        delete(&server, [12, 13, 14]);
        let mut known = 0;
        // The first question is for a record that is there.
        let later = move |entry: &Entry| {
            known += usize::from(is_by_id(entry));
            is_by_id(entry) && known > 1
        };
        server.fault_when(later, fault.clone());
        let outcome = tick(&server, &harness, &["--retries", "0"]).expect_json("deleted", "0");
        assert!(matches!(outcome.code(), Some(0 | 69 | 76)), "{fault:?}: {:?}", outcome.code());
        assert_eq!(harness.store().records().len(), RECORDS);
    }
}

#[test]
fn a_record_that_is_given_among_others_stays() {
    let (server, harness) = harvested(Quirks::default());
    let both = ["r-000012", "r-000013"]
        .map(|name| harness.store().rows(&format!("SELECT xml FROM records WHERE identifier = '{name}'"))[0][0].clone());
    let body = format!(
        "<csw:GetRecordByIdResponse xmlns:csw='http://www.opengis.net/cat/csw/2.0.2'>{}</csw:GetRecordByIdResponse>",
        both.concat()
    );
    server.fault_when(|entry: &Entry| asks_for(entry, &["r-000012"]), Fault::Reply(Reply::xml(body)));
    delete(&server, [12]);
    tick(&server, &harness, &[]).expect_code(0).expect_json("deleted", "0");
    assert!(harness.store().records().contains_key("r-000012"));
}

#[test]
fn strict_fails_before_anything_is_deleted_and_a_nameless_record_is_told() {
    for more in [&["--strict"][..], &["--strict", "--full"], &["--strict", "--reconcile", "always"]] {
        let (server, harness) = harvested(Quirks::default());
        delete(&server, [12, 13]);
        let nameless = ModelRecord { identifier: None, ..ModelRecord::showing("x", &["2014-01-01T00:00:00Z"]) };
        server.catalogue().insert_record(nameless);
        tick(&server, &harness, more).expect_code(65).expect_json("deleted", "0").expect_json("skipped", "1");
        assert_eq!((harness.store().tombstones().len(), harness.store().problems()), (0, 1), "{more:?}");
        tick(&server, &harness, &[]).expect_code(0).expect_json("deleted", "2");
    }
}
