//! Versions, methods, addresses and schemas: what is spoken with a catalogue that was never met, and in the runs after that.

use crate::support::canned::Reply;
use crate::support::faults::Fault;
use crate::support::harness::Harness;
use crate::support::model::Catalogue;
use crate::support::profiles;
use crate::support::quirks::{Bindings, CSW, GMD, KvpFilters, Quirks, Versions};
use crate::support::server::Server;
use crate::support::stamps::{DAY, HOUR, day};
use crate::support::xml::{CapabilitiesFace, ReportFace};

/// Requests that a negotiation may take.
const NEGOTIATION_MAX: usize = 12;
/// `--page-size` unless told otherwise.
const PAGE_SIZE: u32 = 100;

fn catalogue(quirks: Quirks) -> Catalogue {
    let mut catalogue = Catalogue::new(day(2025, 6, 1), quirks);
    catalogue.fill("r", 25, |number| day(2025, 1, 1) + number as i64 * DAY);
    catalogue
}

fn served(quirks: Quirks) -> Server {
    let server = Server::start(catalogue(quirks));
    server.set(|settings| settings.report_face = ReportFace::Ows20);
    server
}

fn version_and_method(harness: &Harness) -> (String, String) {
    let rows = harness.store().rows("SELECT version, binding FROM harvest_state");
    (rows[0][0].clone(), rows[0][1].clone())
}

/// First run complete, quiet ticks of one or two requests, a change and a new record arrive; and what was asked first stays asked.
#[track_caller]
fn lives_with(server: &Server, options: &[&str], expected: (&str, &str)) {
    let harness = Harness::against(server);
    harness.harvest_quickly(server, options).expect_code(0);
    harness.expect_mirror(&server.catalogue());
    // The first page of the size asked for comes after the last question of the negotiation.
    let requests = server.requests();
    let negotiated = requests.iter().take_while(|entry| entry.page().is_none_or(|page| page.max_records < PAGE_SIZE)).count();
    assert!(negotiated <= NEGOTIATION_MAX && negotiated < requests.len(), "{negotiated}\n{}", server.journal().told());
    assert_eq!(version_and_method(&harness), (expected.0.to_owned(), expected.1.to_owned()));

    for _ in 0..2 {
        server.forget_journal();
        let told = harness.harvest_quickly(server, options).expect_code(0);
        told.expect("a quiet tick", |told| told.stderr.contains("Harvest complete: 0 records"));
        assert!((1..=2).contains(&server.asked()), "{}", server.journal().told());
    }

    server.catalogue().advance(HOUR);
    server.catalogue().edit("r-000003");
    server.catalogue().insert("later");
    server.catalogue().advance(HOUR);
    server.forget_journal();
    harness.harvest_quickly(server, options).expect_code(0);
    harness.expect_mirror(&server.catalogue());
    let methods: Vec<String> = server.requests().into_iter().map(|entry| entry.method).collect();
    let method = if expected.1.starts_with("get") { "GET" } else { "POST" };
    assert!(methods.iter().all(|held| held == method), "{}", server.journal().told());
}

#[test]
fn every_version_by_every_method_is_harvested_when_pinned() {
    for (version, options) in [("2.0.2", ["--csw-version", "2.0.2"]), ("3.0.0", ["--csw-version", "3.0.0"])] {
        for method in ["post", "get"] {
            let server = served(Quirks { versions: Versions::Both, ..Quirks::default() });
            lives_with(&server, &[options[0], options[1], "--method", method], (version, method));
            for request in server.get_records() {
                assert_eq!(request.version, version);
            }
        }
    }
}

#[test]
fn a11_get_alone_and_post_alone_work_and_are_remembered() {
    for (bindings, expected) in [(Bindings::GetOnly, "get"), (Bindings::PostOnly, "post")] {
        let server = served(Quirks { bindings, ..Quirks::default() });
        lives_with(&server, &[], ("2.0.2", expected));
    }
}

#[test]
fn a11_a_method_that_is_not_implemented_is_left_for_the_other() {
    for status in [404, 405, 501, 400] {
        let server = served(Quirks::default());
        server.fault_when(|entry| entry.method == "POST", Fault::Reply(Reply::of(status, "text/html", "no")));
        lives_with(&server, &[], ("2.0.2", "get"));
    }
}

#[test]
fn a12_the_version_spoken_is_found_out() {
    for (versions, expected) in [(Versions::Only202, "2.0.2"), (Versions::Only300, "3.0.0"), (Versions::Both, "2.0.2")] {
        let server = served(Quirks { versions, exception_status: 400, ..Quirks::default() });
        lives_with(&server, &[], (expected, "post"));
    }
}

#[test]
fn a12_the_version_spoken_is_found_out_without_capabilities() {
    for bindings in [Bindings::Both, Bindings::GetOnly] {
        let server = served(Quirks { versions: Versions::Only300, bindings, exception_status: 400, ..Quirks::default() });
        server.set(|settings| settings.capabilities = CapabilitiesFace::NotFound);
        let method = if bindings == Bindings::GetOnly { "get" } else { "post" };
        lives_with(&server, &[], ("3.0.0", method));
    }
}

#[test]
fn cql_is_spoken_where_filters_are_not_read_by_get() {
    for (kvp_filters, options, expected) in [
        (KvpFilters::CqlOnly, vec!["--method", "get"], ("2.0.2", "get CQL_TEXT")),
        (KvpFilters::Filter11, vec!["--method", "get", "--csw-version", "3.0.0"], ("3.0.0", "get CQL_TEXT")),
        (KvpFilters::Filter11, vec!["--method", "get"], ("2.0.2", "get")),
    ] {
        let server = served(Quirks { kvp_filters, versions: Versions::Both, exception_status: 400, ..profiles::pycsw() });
        lives_with(&server, &options, expected);
    }
}

#[test]
fn what_is_remembered_is_found_out_anew_when_it_fails() {
    let server = served(Quirks { versions: Versions::Both, ..Quirks::default() });
    let harness = Harness::against(&server);
    harness.harvest_quickly(&server, &[]).expect_code(0);

    // The server is replaced by one that speaks 3.0.0 by GET alone.
    server.catalogue().quirks_mut().versions = Versions::Only300;
    server.catalogue().quirks_mut().bindings = Bindings::GetOnly;
    server.catalogue().advance(HOUR);
    server.catalogue().insert("later");
    server.catalogue().advance(HOUR);
    server.forget_journal();
    harness.harvest_quickly(&server, &[]).expect_code(0);

    // The page that failed is halved before the words are doubted.
    assert!(server.asked() <= 7 + NEGOTIATION_MAX + 4, "{}", server.journal().told());
    assert_eq!(version_and_method(&harness), ("3.0.0".to_owned(), "get".to_owned()));
    let records = harness.store().records();
    assert!(records.contains_key("later"));
    // Each version has a csw:Record of its own: the store does not hold both.
    assert!(records.values().all(|record| record.xml.contains("http://www.opengis.net/cat/csw/3.0")), "{records:?}");
}

#[test]
fn another_pinned_version_or_method_reads_everything_again() {
    let server = served(Quirks { versions: Versions::Both, ..Quirks::default() });
    let harness = Harness::against(&server);
    harness.harvest_quickly(&server, &[]).expect_code(0);
    for options in [["--csw-version", "3.0.0"], ["--method", "get"]] {
        let told = harness.harvest_quickly(&server, &options).expect_code(0);
        told.expect_stderr("everything is read again");
    }
}

#[test]
fn a9_capabilities_of_no_use_are_passed_over() {
    let faces = [
        CapabilitiesFace::Html,
        CapabilitiesFace::NotFound,
        CapabilitiesFace::NoSections,
        CapabilitiesFace::Address("${SITE_URL}/csw".to_owned()),
        CapabilitiesFace::SoapFirst("http://127.0.0.1:1/soap".to_owned()),
    ];
    for face in faces {
        let server = served(Quirks::default());
        server.set(|settings| settings.capabilities = face.clone());
        lives_with(&server, &[], ("2.0.2", "post"));
    }
}

#[test]
fn a10_a_post_that_is_sent_on_keeps_its_body() {
    let server = served(Quirks::default());
    let elsewhere = Fault::Redirect(301, "/elsewhere/csw".to_owned());
    server.fault_when(|entry| entry.path() == "/csw" && entry.method == "POST", elsewhere);
    let harness = Harness::against(&server);

    harness.harvest_quickly(&server, &[]).expect_code(0);

    harness.expect_mirror(&server.catalogue());
    let bodies = server.requests().into_iter().filter(|entry| entry.path() == "/elsewhere/csw" && !entry.body.is_empty());
    assert!(bodies.count() > 3, "{}", server.journal().told());
}

#[test]
fn a9_the_advertised_address_is_used_where_the_given_one_fails() {
    let server = served(Quirks::default());
    let advertised = server.url_at("/real/csw");
    server.set(|settings| settings.capabilities = CapabilitiesFace::Address(advertised.clone()));
    server.fault_when(|entry| entry.method == "POST" && entry.path() == "/csw", Fault::Reply(Reply::of(404, "text/html", "no")));
    let harness = Harness::against(&server);

    harness.harvest_quickly(&server, &[]).expect_code(0);

    harness.expect_mirror(&server.catalogue());
    assert_eq!(harness.store().rows("SELECT endpoint, binding FROM harvest_state"), [[advertised, "post".to_owned()]]);
}

#[test]
fn a_schema_that_is_refused_ends_the_run_and_the_offer_is_told() {
    for (versions, bindings) in
        [(Versions::Only202, Bindings::Both), (Versions::Only300, Bindings::Both), (Versions::Only202, Bindings::GetOnly)]
    {
        let server = served(Quirks { versions, bindings, schemas: vec![CSW], ..Quirks::default() });
        let harness = Harness::against(&server);

        let told = harness.harvest_quickly(&server, &["--schema", "iso3"]).expect_code(76);

        let offered = if versions == Versions::Only300 { "http://www.opengis.net/cat/csw/3.0" } else { CSW };
        told.expect_stderr(&format!("its capabilities offer the output schemas {offered}"));
        assert!(server.asked() <= 8, "{}", server.journal().told());
    }
}

#[test]
fn iso_records_are_had_under_their_own_type_name_where_need_be() {
    let plain = || Quirks { schemas: vec![GMD], ..Quirks::default() };
    for quirks in [
        Quirks { type_names_refused: vec!["Record"], ..plain() },
        Quirks { type_names_empty: vec!["Record"], ..plain() },
        Quirks { type_names_empty: vec!["Record"], bindings: Bindings::GetOnly, versions: Versions::Only300, ..plain() },
    ] {
        let method = if quirks.bindings == Bindings::GetOnly { "get" } else { "post" };
        let server = served(quirks);
        let harness = Harness::against(&server);

        harness.harvest_quickly(&server, &["--schema", "iso"]).expect_code(0);

        assert_eq!(harness.store().records().len(), 25);
        assert_eq!(version_and_method(&harness).1, format!("{method} gmd:MD_Metadata"));
        server.forget_journal();
        harness.harvest_quickly(&server, &["--schema", "iso"]).expect_code(0);
        assert!(server.asked() <= 2, "{}", server.journal().told());
    }
}

#[test]
fn iso_is_harvested_in_version_3_too() {
    let server = served(Quirks { versions: Versions::Only300, ..Quirks::default() });
    let harness = Harness::against(&server);

    harness.harvest_quickly(&server, &["--schema", "iso"]).expect_code(0);

    let records = harness.store().records();
    assert_eq!(records.len(), 25);
    assert!(records.values().all(|record| record.xml.contains("MD_Metadata")));
}
