//! Y: letters, prefixes, and bytes that do not come.

use super::{list, play_script, right, stage};
use crate::support::canned::{Canned, Reply, dc, env};
use crate::support::faults::Fault;
use crate::support::quirks::{CSW, GMD, Quirks};
use crate::support::requests::Operation;
use crate::support::tree::parse;
use crate::support::xml::{Declared, Prefixes, Rendering};
use std::time::Duration;

const TITLE: &str = "Gr\u{f6}\u{df}e \u{2013} \u{c5}ngstr\u{f6}m \u{20ac}";

#[test]
fn y1_letters_follow_the_declaration_where_the_header_is_silent() {
    for fault in [Fault::Latin1, Fault::ContentType("application/xml"), Fault::ByteOrderMark, Fault::Gzip] {
        let (server, harness) = stage(Quirks::default(), 5);
        server.catalogue().change("r-000001", |record| record.title = TITLE.to_owned());
        server.fault_when(|entry| entry.get_records().is_some(), fault);
        harness.harvest_quickly(&server, &[]).expect_code(0);
        let held = harness.store().records();
        assert_eq!(held["r-000001"].title.as_deref(), Some(TITLE));
        let tree = parse(&held["r-000001"].xml).expect("XML that stands alone");
        assert_eq!(tree.text_of("title").as_deref(), Some(TITLE), "the xml is UTF-8, whatever came");
    }
}

#[test]
fn gzip_that_is_never_marked_is_told_once() {
    let (server, harness) = stage(Quirks::default(), 5);
    server.fault_when(|entry| entry.get_records().is_some(), Fault::GzipUnlabelled);
    let outcome = harness.harvest_quickly(&server, &["--retries", "3"]).expect_code(69).expect_stderr("not marked so");
    let told = outcome.stderr.matches("asking without from now on").count();
    outcome.expect("one word that gzip is broken", |_| told == 1);
    // Once with gzip, then the first attempt and three more without.
    let pages = server.get_records().iter().filter(|request| !request.hits).count();
    assert_eq!(pages, 5, "{}", server.journal().told());
}

#[test]
fn y1_the_declaration_wins_over_the_header() {
    let body = env(Some(1), Some(1), Some(0), &[dc("a", "Gr\u{f6}\u{df}e", "2025-01-01")]);
    let body = body.replacen("encoding=\"UTF-8\"", "encoding=\"ISO-8859-1\"", 1);
    let latin: Vec<u8> = body.chars().map(|letter| u8::try_from(u32::from(letter)).expect("a letter of Latin-1")).collect();
    let (server, harness) = play_script(Canned::in_order([]).rule(move |operation| {
        let Operation::GetRecords(request) = operation else { return None };
        request.lower.is_none().then(|| Reply::of(200, "text/xml; charset=utf-8", latin.clone()))
    }));
    harness.harvest_quickly(&server, &[]).expect_code(0);
    assert_eq!(harness.store().records()["a"].title.as_deref(), Some("Gr\u{f6}\u{df}e"));
}

#[test]
fn y2_y3_records_are_found_by_namespace_and_stand_alone() {
    for declared in [Declared::OnRoot, Declared::OnRecords] {
        for prefixes in [Prefixes::Usual, Prefixes::Foreign, Prefixes::Rebound] {
            for (schema, namespace, root) in [("csw", CSW, "Record"), ("iso", GMD, "MD_Metadata")] {
                let (server, harness) = stage(Quirks::default(), 3);
                server.set(|settings| settings.rendering = Rendering { declared, prefixes });
                harness.harvest_quickly(&server, &["--schema", schema]).expect_code(0);
                harness.expect_mirror(&server.catalogue());
                for (identifier, record) in harness.store().records() {
                    assert_eq!(record.title, Some(format!("Title of {identifier}")));
                    let tree = parse(&record.xml).unwrap_or_else(|error| panic!("{error:?}: {}", record.xml));
                    assert!(tree.is(namespace, root), "{}", record.xml);
                }
            }
        }
    }
}

#[test]
fn y2_the_same_record_declared_elsewhere_is_unchanged() {
    let (server, harness) = stage(Quirks::default(), 3);
    server.set(|settings| settings.rendering.declared = Declared::OnRecords);
    harness.harvest_quickly(&server, &[]).expect_code(0);
    harness
        .harvest_quickly(&server, &["--full", "--json"])
        .expect_code(0)
        .expect_json("unchanged", "3")
        .expect_json("updated", "0");
}

#[test]
fn y4_a_byte_now_and_then_ends_by_the_time_out() {
    let (server, harness) = stage(Quirks::default(), 5);
    server.fault_when(|entry| entry.get_records().is_some(), Fault::Slow(1, Duration::from_secs(3)));
    harness.harvest_quickly(&server, &["--timeout", "1", "--retries", "0"]).expect_code(69);
}

#[test]
fn y4_a_byte_now_and_then_ends_by_the_bound_of_the_run() {
    let (server, harness) = stage(Quirks::default(), 5);
    server.fault_when(|entry| entry.get_records().is_some(), Fault::Slow(1, Duration::from_millis(100)));
    harness.harvest_quickly(&server, &["--timeout", "5", "--max-runtime", "1"]).expect_code(75);
}

#[test]
fn document_types_and_entities_are_refused() {
    let record = dc("a", "A title", "2025-01-01");
    let body = env(Some(1), Some(1), Some(0), &[record]);
    let body =
        body.replacen("?>\n", "?>\n<!DOCTYPE x [<!ENTITY e SYSTEM \"file:///etc/passwd\">]>\n", 1).replacen("A title", "&e;", 1);
    let (server, harness) = play_script(list(Vec::new(), right).rule(move |operation| match operation {
        Operation::GetRecords(_) => Some(Reply::xml(body.clone())),
        _ => None,
    }));
    let outcome = harness.harvest_quickly(&server, &["--retries", "1"]).expect_code(76);
    outcome.expect_stderr("document type");
}
