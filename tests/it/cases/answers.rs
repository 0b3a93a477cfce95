//! A: answers that are no answer, and names that a catalogue does not know.

use super::{FIRST, catalogue, list, play, play_script, right, stage};
use crate::support::canned::{Canned, Reply, exc};
use crate::support::faults::Fault;
use crate::support::harness::Harness;
use crate::support::quirks::{Matching, Names, Order, Quirks, UnknownName, UnknownSort};
use crate::support::requests::Operation;
use crate::support::server::Server;
use crate::support::stamps::{DAY, HOUR};
use crate::support::xml::CapabilitiesFace;

fn knows(names: &[&'static str]) -> Quirks {
    let names = Names::exactly(names);
    Quirks { properties: names.clone(), sort_names: names, queryables: Vec::new(), ..Quirks::default() }
}

/// After a first run: one edit, which the second run must bring without reading everything.
#[track_caller]
fn expect_incremental(server: &Server, harness: &Harness) {
    server.catalogue().advance(HOUR);
    server.catalogue().edit("r-000002");
    server.catalogue().advance(HOUR);
    server.forget_journal();
    harness.harvest_quickly(server, &["--json"]).expect_code(0).expect_json("updated", "1").expect_json("unchanged", "0");
    harness.expect_mirror(&server.catalogue());
    let refused = server.requests().iter().filter(|entry| entry.answered.contains("queryable")).count();
    assert_eq!(refused, 0, "the name is remembered\n{}", server.journal().told());
    assert!(server.asked() <= 2, "{}", server.journal().told());
}

#[test]
fn a1_an_exception_to_everything_is_76_and_told_in_full() {
    let (server, harness) = play_script(
        Canned::in_order([]).rule(|_| Some(Reply::xml(exc("NoApplicableCode", "", "java.lang.NullPointerException: null")))),
    );
    let outcome = harness.harvest_quickly(&server, &["--json"]).expect_code(76);
    let parts = ["NoApplicableCode", "NullPointerException", &server.url(), "position 1"];
    let outcome = parts.into_iter().fold(outcome, |outcome, part| outcome.expect_stderr(part));
    outcome.expect_json("outcome", "\"failed\"").expect("few requests", |_| server.asked() < 15);
    assert_eq!(harness.store().watermark(), FIRST);
}

#[test]
fn a2_the_body_of_a_400_or_500_says_that_the_property_is_unknown() {
    for status in [400, 500] {
        let (server, harness) = stage(Quirks { exception_status: status, ..knows(&["Modified"]) }, 12);
        harness.harvest_quickly(&server, &[]).expect_code(0).expect("no waiting", |outcome| !outcome.stderr.contains("again in"));
        harness.expect_mirror(&server.catalogue());
        expect_incremental(&server, &harness);
    }
}

#[test]
fn a3_a_waiting_page_is_waited_for() {
    let (server, harness) = stage(Quirks::default(), 12);
    server.fault_times(2, |entry| entry.page().is_some(), Fault::Html("Please wait"));
    harness.harvest_quickly(&server, &[]).expect_code(0);
    harness.expect_mirror(&server.catalogue());
}

#[test]
fn a3_a_waiting_page_for_ever_is_told_by_its_title() {
    let (server, harness) = stage(Quirks::default(), 12);
    server.fault_when(|_| true, Fault::Html("Please wait"));
    let outcome = harness.harvest_quickly(&server, &["--retries", "2"]);
    outcome.expect("69 or 76", |outcome| matches!(outcome.code(), Some(69 | 76))).expect_stderr("Please wait");
}

#[test]
fn a4_a_catalogue_that_indexes_is_waited_for() {
    let (server, harness) = stage(Quirks::default(), 12);
    let busy = Fault::exception(200, "NoApplicableCode", "", "Catalog is indexing records, retry later");
    server.fault_times(2, |entry| entry.page().is_some(), busy.clone());
    server.fault_times(2, |entry| entry.page().is_some_and(|page| page.start_position > 1), busy);
    harness.harvest_quickly(&server, &["--page-size", "10"]).expect_code(0);
    harness.expect_mirror(&server.catalogue());
}

#[test]
fn a5_the_property_that_works_is_found_and_remembered() {
    for name in ["apiso:Modified", "Modified", "apiso:modified", "dct:Modified", "modified"] {
        let (server, harness) = stage(knows(&[name]), 12);
        harness.harvest_quickly(&server, &["--json"]).expect_code(0).expect_json("clock", "\"record\"");
        harness.expect_mirror(&server.catalogue());
        expect_incremental(&server, &harness);
    }
}

#[test]
fn a5_the_last_of_the_usual_names_is_tried_too() {
    let (server, harness) = stage(knows(&["dc:modified"]), 12);
    harness.harvest_quickly(&server, &["--json"]).expect_code(0).expect_json("clock", "\"record\"");
    expect_incremental(&server, &harness);
}

#[test]
fn a6_no_hit_for_an_unknown_property_is_not_taken_for_no_change() {
    let names = Names::of(Matching::LocalName, &["Modified"]);
    let quirks =
        Quirks { properties: names.clone(), sort_names: names, unknown_property: UnknownName::NoHits, ..Quirks::default() };
    let (server, harness) = stage(quirks, 12);
    harness.harvest_quickly(&server, &[]).expect_code(0);
    harness.expect_mirror(&server.catalogue());
    expect_incremental(&server, &harness);
}

#[test]
fn a6_where_no_name_has_hits_everything_is_read_every_time() {
    let quirks = Quirks { properties: Names::none(), unknown_property: UnknownName::NoHits, ..Quirks::default() };
    let (server, harness) = stage(quirks, 12);
    harness
        .harvest_quickly(&server, &["--json"])
        .expect_code(0)
        .expect_json("clock", "\"none\"")
        .expect_stderr("every run has to read");
    server.catalogue().advance(HOUR);
    server.catalogue().edit("r-000002");
    harness.harvest_quickly(&server, &["--json"]).expect_code(0).expect_json("updated", "1").expect_json("unchanged", "11");
    harness.expect_mirror(&server.catalogue());
}

#[test]
fn a7_a_filter_that_failed_in_an_hour_of_trouble_is_tried_again_on_another_day() {
    let trouble = [Fault::exception(200, "NoApplicableCode", "", "java.lang.NullPointerException"), Fault::Html("Proxy error")];
    for fault in trouble {
        let (server, harness) = stage(Quirks::default(), 40);
        server.fault_when(|entry| entry.get_records().is_some_and(|request| request.lower.is_some()), fault);
        harness.harvest_quickly(&server, &[]).expect_code(0).expect_stderr("filter on nothing");
        server.clear_faults();
        // On the same day nothing is tried that failed.
        server.forget_journal();
        harness.harvest_quickly(&server, &["--json"]).expect_code(0).expect_json("unchanged", "40");
        assert!(server.get_records().iter().all(|request| request.lower.is_none()), "{}", server.journal().told());
        let store = rusqlite::Connection::open(harness.path("harvest_state.db")).expect("a store");
        store.execute_batch("UPDATE harvest_state SET last_success_at = '2025-06-01T00:00:00Z'").expect("a source");
        drop(store);
        harness.harvest_quickly(&server, &["--json"]).expect_code(0).expect_json("clock", "\"record\"");
        expect_incremental(&server, &harness);
    }
}

#[test]
fn a7_a_filter_that_is_ignored_is_told_and_touches_nothing() {
    let (server, harness) = stage(Quirks { filter_ignored: true, ..Quirks::default() }, 12);
    harness.harvest_quickly(&server, &["--json"]).expect_code(0).expect_json("clock", "\"none\"").expect_stderr("ignores");
    let before = harness.store().records();
    server.catalogue().advance(DAY);
    let again = harness.harvest_quickly(&server, &["--json"]).expect_code(0);
    again.expect_json("unchanged", "12").expect_json("updated", "0").expect_json("clock", "\"none\"");
    assert_eq!(harness.store().records(), before);
}

#[test]
fn a8_a_catalogue_that_refuses_to_sort_loses_nothing_under_change() {
    for order in [Order::Insertion, Order::EditedLast, Order::Identifier, Order::NewestFirst] {
        let quirks = Quirks {
            sort_names: Names::none(),
            sort_identifier: Names::none(),
            unknown_sort: UnknownSort::Exception,
            order,
            ..Quirks::default()
        };
        let (server, harness) = stage(quirks, 40);
        let mut turn = 0;
        server.after_request(move |catalogue, entry| {
            if turn < 8 && entry.page().is_some_and(|page| page.max_records == 10) {
                turn += 1;
                catalogue.advance(HOUR);
                catalogue.edit(&format!("r-{:06}", turn * 3));
                catalogue.insert(&format!("new-{turn}"));
            }
        });
        harness.harvest_quickly(&server, &["--page-size", "10"]).expect_code(0);
        server.after_request(|_, _| {});
        server.catalogue().advance(DAY);
        harness.harvest_quickly(&server, &["--page-size", "10"]).expect_code(0);
        harness.expect_mirror(&server.catalogue());
    }
}

#[test]
fn a9_capabilities_of_no_use_are_no_reason_to_stop() {
    let faces = [
        CapabilitiesFace::Html,
        CapabilitiesFace::NotFound,
        CapabilitiesFace::NoSections,
        CapabilitiesFace::Address("${SITE_URL}/csw".to_owned()),
        CapabilitiesFace::Address("http://localhost:1/csw".to_owned()),
    ];
    for face in faces {
        let (server, harness) = stage(Quirks::default(), 12);
        server.set(|settings| settings.capabilities = face);
        harness.harvest_quickly(&server, &[]).expect_code(0);
        harness.expect_mirror(&server.catalogue());
    }
    let (server, harness) = stage(Quirks::default(), 12);
    let soap = server.url_at("/soap");
    server.set(|settings| settings.capabilities = CapabilitiesFace::SoapFirst(soap));
    harness.harvest_quickly(&server, &[]).expect_code(0);
    assert!(server.requests().iter().all(|entry| entry.path() == "/csw"), "{}", server.journal().told());
}

#[test]
fn a10_a_post_that_is_moved_is_repeated_with_its_body() {
    for status in [301, 302, 307, 308] {
        let (server, harness) = stage(Quirks::default(), 12);
        let moved = server.url_at("/other/csw");
        server.fault_when(|entry| entry.method == "POST" && entry.path() == "/csw", Fault::Redirect(status, moved));
        harness.harvest_quickly(&server, &[]).expect_code(0);
        harness.expect_mirror(&server.catalogue());
        let there: Vec<_> = server.requests().into_iter().filter(|entry| entry.path() == "/other/csw").collect();
        assert!(!there.is_empty() && there.iter().all(|entry| entry.method == "POST" && entry.get_records().is_some()));
    }
}

#[test]
fn a10_redirects_in_a_ring_end() {
    let (server, harness) = stage(Quirks::default(), 12);
    server.fault_when(|entry| entry.method == "POST", Fault::Redirect(301, server.url()));
    let outcome = harness.harvest_quickly(&server, &["--retries", "2"]);
    outcome.expect("69 or 76", |outcome| matches!(outcome.code(), Some(69 | 76))).expect("a bound", |_| server.asked() < 60);
}

#[test]
fn a13_a_pasted_capabilities_url_is_cleaned() {
    let (server, harness) = stage(Quirks::default(), 12);
    let pasted = server.url_at("/csw?Request=GetCapabilities&SERVICE=CSW&map=/x.map&");
    harness.harvest(&pasted, &["--retry-max-wait", "0"]).expect_code(0);
    let base = server.url_at("/csw?map=/x.map");
    assert_eq!(harness.store().rows("SELECT source FROM harvest_state"), [[base.clone()]]);
    assert_eq!(harness.store().records_of(&base).len(), 12);
    let vendor =
        |entry: &crate::support::journal::Entry| entry.target.contains("map=/x.map") || entry.target.contains("map=%2Fx.map");
    assert!(server.requests().iter().all(vendor), "{}", server.journal().told());
    for entry in server.requests().iter().filter(|entry| entry.method == "GET") {
        let services = entry.target.to_ascii_lowercase().matches("service=").count();
        assert_eq!((services, entry.operation.clone()), (1, Ok(Operation::GetCapabilities)), "{}", entry.target);
    }
}

#[test]
fn a_record_between_two_good_pages_of_html_is_not_lost() {
    let (server, harness) = play(catalogue(Quirks::default(), 30));
    let mut turn = 0;
    let every_second = move |entry: &crate::support::journal::Entry| {
        turn += usize::from(entry.page().is_some());
        entry.page().is_some() && turn % 2 == 0
    };
    server.fault_when(every_second, Fault::Html("Gateway"));
    harness.harvest_quickly(&server, &["--page-size", "10"]).expect_code(0);
    harness.expect_mirror(&server.catalogue());
}

#[test]
fn a_catalogue_that_holds_nothing_is_complete() {
    let (server, harness) = play_script(list(Vec::new(), right));
    let outcome = harness.harvest_quickly(&server, &["--json"]).expect_code(0);
    outcome.expect_json("outcome", "\"complete\"").expect_json("new", "0").expect_stderr("Harvest complete: 0 records");
    // What comes later is not passed over.
    let (server, harness) = stage(Quirks::default(), 0);
    harness.harvest_quickly(&server, &[]).expect_code(0);
    assert_eq!(harness.store().rows("SELECT watermark FROM harvest_state"), [[FIRST]]);
    server.catalogue().insert("first");
    server.catalogue().advance(HOUR);
    harness.harvest_quickly(&server, &[]).expect_code(0);
    harness.expect_mirror(&server.catalogue());
}
