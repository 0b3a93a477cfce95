//! The command `check`: what it says of each server of the field, its exit codes, and that it leaves nothing behind.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of this is test code, where a panic is a failed test"
)]

use std::fs;
use std::net::TcpListener;

use crate::cases::{catalogue, in_parallel, play, play_script, stage};
use crate::support::canned::{Canned, Reply, exc};
use crate::support::faults::Fault;
use crate::support::harness::{Harness, Outcome};
use crate::support::model::Poison;
use crate::support::profiles;
use crate::support::quirks::{Bindings, CSW, CeilingFace, Clock, DateTimes, Quirks, SortObedience};
use crate::support::server::DateHeader;
use crate::support::stamps::StampShape;
use crate::support::xml::CapabilitiesFace;

/// `check` of the server's url, with waits so short that faults do not make a test slow; nothing may come into the folder.
#[track_caller]
fn check(harness: &Harness, url: &str, more: &[&str]) -> Outcome {
    let before = fs::read_dir(harness.folder()).expect("the folder of the test").count();
    let outcome = harness.run(&[&["check", url, "--retry-max-wait", "0"], more].concat());
    let left = fs::read_dir(harness.folder()).expect("the folder of the test").count();
    outcome.expect("nothing written", |_| left == before)
}

/// The mark and the text of a finding, put together again where it was wrapped.
#[track_caller]
fn finding(outcome: &Outcome, name: &str) -> (String, String) {
    let mut lines = outcome.stdout.lines().skip_while(|line| !line.starts_with(&format!("{name:<17}")));
    let Some(first) = lines.next() else { outcome.fail(&format!("expected a finding on {name}")) };
    let (mark, text) = first[17..].split_once(' ').expect("a mark and a text");
    let mut text = text.trim().to_owned();
    for line in lines.take_while(|line| line.starts_with("      ")) {
        text = format!("{text} {}", line.trim());
    }
    (mark.to_owned(), text)
}

#[track_caller]
fn expect_finding(outcome: &Outcome, name: &str, mark: &str, part: &str) {
    let found = finding(outcome, name);
    if found.0 != mark || !found.1.contains(part) {
        outcome.fail(&format!("expected {name} to be {mark} with {part:?}, it is {found:?}"));
    }
}

/// The findings of a verdict that went well, in their order.
const FINDINGS: [&str; 14] = [
    "reachable",
    "version",
    "binding",
    "address",
    "property",
    "filter",
    "clock",
    "sort",
    "page cap",
    "ceiling",
    "output schemas",
    "element sets",
    "clock difference",
    "gzip",
];

/// What is to be said of a server of the field: property, filter, clock, page cap, full element set.
struct Expected {
    property: (&'static str, &'static str),
    filter: &'static str,
    clock: (&'static str, &'static str),
    cap: (&'static str, &'static str),
    binding: &'static str,
    stamps: &'static str,
}

fn expected_of(profile: &str) -> Expected {
    let usual = Expected {
        property: ("ok", "dct:modified"),
        filter: "ok",
        clock: ("ok", "record"),
        cap: ("ok", "none"),
        binding: "POST; GET is advertised too",
        stamps: "ok",
    };
    let apiso = ("ok", "apiso:Modified; not dct:modified");
    let unread = ("odd", "server: no stamp shown can be read");
    match profile {
        "pycsw" => Expected { cap: ("odd", "10 records a page, where 100 were asked for; MaxRecordDefault is 10"), ..usual },
        "geonetwork3" | "geonetwork4" => Expected { clock: unread, stamps: "odd", ..usual },
        "deegree" => Expected { property: apiso, clock: unread, binding: "the only one", stamps: "odd", ..usual },
        "esri1" | "esri2" | "micka" => usual,
        "geoserver" => Expected { property: ("odd", "none of dct:modified"), filter: "odd", clock: ("odd", "none"), ..usual },
        "examind" => Expected { property: apiso, ..usual },
        "terra" => Expected { property: apiso, binding: "the only one", ..usual },
        other => panic!("what is to be said of {other}?"),
    }
}

#[test]
fn every_server_of_the_field_gets_its_verdict() {
    let cases: Vec<_> = profiles::all().into_iter().flat_map(|profile| [(profile.clone(), 30), (profile, 250)]).collect();
    in_parallel(cases.len(), |number| {
        let ((name, quirks), count) = cases[number].clone();
        let (server, harness) = stage(quirks, count);
        let outcome = check(&harness, &server.url(), &[]).expect_code(0);
        let expected = expected_of(name);
        expect_finding(&outcome, "reachable", "ok", "gives records");
        expect_finding(&outcome, "version", "ok", "2.0.2");
        expect_finding(&outcome, "binding", "ok", expected.binding);
        expect_finding(&outcome, "address", "ok", "the one given is the one advertised");
        expect_finding(&outcome, "property", expected.property.0, expected.property.1);
        expect_finding(&outcome, "filter", expected.filter, if expected.filter == "ok" { "honoured" } else { "none works" });
        expect_finding(&outcome, "clock", expected.clock.0, expected.clock.1);
        expect_finding(&outcome, "page cap", expected.cap.0, expected.cap.1);
        expect_finding(&outcome, "ceiling", "ok", &format!("none met: {count} records"));
        expect_finding(&outcome, "output schemas", "ok", "http://www.isotc211.org/2005/gmd");
        expect_finding(&outcome, "element sets", expected.stamps, "brief 0 of 5, summary");
        // All hidden dates of this model are of one instant, in an order of its own each time: either may be seen.
        if name != "geonetwork4" {
            expect_finding(&outcome, "sort", if name == "geoserver" { "odd" } else { "ok" }, "by ");
        }
        let clock = harness.harvest_quickly(&server, &["--json"]).expect_code(0).json("clock");
        assert!(expected.clock.1.starts_with(clock.trim_matches('"')), "{name}: a harvest says {clock}");
    });
}

#[test]
fn a_catalogue_that_does_all_right_gets_ok_throughout_in_80_columns_and_the_command_last() {
    let (server, harness) = stage(Quirks::default(), 250);
    server.set(|settings| settings.date = DateHeader::Real);
    let outcome = check(&harness, &server.url(), &[]).expect_code(0);
    for name in FINDINGS {
        expect_finding(&outcome, name, "ok", "");
    }
    let findings: Vec<&str> = outcome.stdout.lines().take_while(|line| !line.is_empty()).collect();
    assert!(findings.iter().all(|line| line.len() <= 80), "{}", outcome.stdout);
    assert_eq!(findings.iter().filter(|line| !line.starts_with(' ')).count(), FINDINGS.len());
    let command = format!("csw-harvester harvest '{}' --retry-max-wait 0", server.url());
    assert_eq!(outcome.stdout.lines().last(), Some(command.as_str()));
    expect_finding(&outcome, "element sets", "ok", "brief 0 of 5, summary 5 of 5, full 100 of 100");
}

#[test]
fn the_command_it_recommends_is_one_that_works() {
    let (server, harness) = stage(Quirks::default(), 5);
    let options =
        ["--schema", "iso", "--property", "apiso:Modified", "--timeout", "7", "--delay", "1", "--retries", "2", "--method", "post"];
    let outcome = check(&harness, &server.url(), &options).expect_code(0);
    let command = outcome.stdout.lines().last().unwrap_or_default();
    let words: Vec<&str> = command.split(' ').skip(1).map(|word| word.trim_matches('\'')).collect();
    let given = ["--schema iso", "--property 'apiso:Modified'", "--timeout 7", "--delay 1", "--retries 2", "--method post"];
    assert!(given.iter().all(|option| command.contains(option)), "{command}");
    harness.run(&words).expect_code(0);
    assert_eq!(harness.store().records().len(), 5);
}

#[test]
fn manners_that_matter_are_told() {
    type Case = (Quirks, usize, &'static str, &'static str, &'static str);
    let right = Quirks::default;
    let hidden = Quirks { clock: Clock::Hidden(StampShape::Seconds), ..right() };
    let many = |face| Quirks { ceiling: Some((10_000, face)), ..right() };
    let cases: Vec<Case> = vec![
        (hidden.clone(), 250, "clock", "odd", "server: the filter follows a date not shown"),
        (hidden, 30, "clock", "odd", "server: the filter follows a date not shown"),
        (Quirks { filter_ignored: true, ..right() }, 30, "filter", "odd", "ignored"),
        (Quirks { filter_ignored: true, ..right() }, 30, "clock", "odd", "none"),
        (Quirks { date_times: DateTimes::EveryDateRefused, ..right() }, 30, "filter", "odd", "none works"),
        (Quirks { date_times: DateTimes::Refused, ..right() }, 30, "clock", "ok", "literals are plain days"),
        (Quirks { sort: SortObedience::NotObeyed, ..right() }, 250, "sort", "odd", "not seen to be obeyed"),
        (Quirks { sort: SortObedience::NotObeyed, ..right() }, 250, "clock", "ok", "record"),
        (many(CeilingFace::Exception), 10_050, "ceiling", "odd", "10000 of 10050 records"),
        (many(CeilingFace::MatchedPinned), 10_050, "ceiling", "odd", "suspected: exactly 10000"),
        (right(), 10_050, "ceiling", "ok", "none at 10000"),
        (right(), 10_050, "clock", "ok", "record"),
        (right(), 0, "property", "odd", "the catalogue is empty"),
        (Quirks { bindings: Bindings::GetOnly, ..right() }, 5, "binding", "ok", "GET, the only one advertised"),
        (Quirks { bindings: Bindings::GetOnly, ..right() }, 5, "address", "ok", "the one given is the one advertised"),
        (Quirks { schemas: vec![CSW], ..right() }, 5, "output schemas", "ok", CSW),
    ];
    in_parallel(cases.len(), |number| {
        let (quirks, count, name, mark, part) = cases[number].clone();
        let (server, harness) = stage(quirks, count);
        expect_finding(&check(&harness, &server.url(), &[]).expect_code(0), name, mark, part);
    });
}

#[test]
fn faults_of_the_server_are_told() {
    let (server, harness) = stage(Quirks::default(), 30);
    server.set(|settings| settings.date = DateHeader::Absent);
    server.set(|settings| settings.capabilities = CapabilitiesFace::Address("http://intern.example/csw".to_owned()));
    server.fault_at(3, Fault::GzipMislabelled);
    let outcome = check(&harness, &server.url(), &[]).expect_code(0);
    expect_finding(&outcome, "address", "odd", "the one given works and is asked; advertised is http://intern.example/csw");
    expect_finding(&outcome, "clock difference", "odd", "not known");
    expect_finding(&outcome, "gzip", "odd", "broken");
    server.set(|settings| settings.capabilities = CapabilitiesFace::Html);
    let outcome = check(&harness, &server.url(), &[]).expect_code(0);
    expect_finding(&outcome, "version", "odd", "no capabilities can be read");
    server.set(|settings| settings.date = DateHeader::Model);
    expect_finding(&check(&harness, &server.url(), &[]), "clock difference", "odd", "days behind this computer");
}

#[test]
fn a_record_at_fault_is_stepped_over_and_a_page_that_is_too_large_made_smaller() {
    let mut poisoned = catalogue(Quirks::default(), 30);
    poisoned.change("r-000001", |record| record.poison = Some(Poison::Http(500)));
    let (server, harness) = play(poisoned);
    let outcome = check(&harness, &server.url(), &["--retries", "0"]).expect_code(0);
    expect_finding(&outcome, "page cap", "odd", "at position 2 came after 3 failures");
    let mut large = catalogue(Quirks::default(), 30);
    for number in 1..=30 {
        large.change(&format!("r-{number:06}"), |record| record.size = 60 * 1024);
    }
    let (server, harness) = play(large);
    let outcome = check(&harness, &server.url(), &["--max-body", "1"]).expect_code(0);
    expect_finding(&outcome, "page cap", "odd", "10 records at position 1 came after 1 failures");
    assert!(outcome.stdout.contains("--page-size 10 "), "{}", outcome.stdout);
}

/// Runs `check` and `harvest` and expects both to end so.
#[track_caller]
fn expect_end(harness: &Harness, url: &str, more: &[&str], code: i32, name: &str, part: &str) {
    let more = [&["--retries", "0"], more].concat();
    let outcome = check(harness, url, &more).expect_code(code);
    expect_finding(&outcome, name, "bad", part);
    let json = check(harness, url, &[&more[..], &["--json"]].concat()).expect_code(code);
    assert_eq!(extract(&json, "$.exit_code"), code.to_string());
    assert_eq!(extract(&json, "$.recommended"), "null");
    assert_ne!(extract(&json, "$.error"), "null");
    let harvest = harness.run(&[&["harvest", url, "--dry-run", "--retry-max-wait", "0"], &more[..]].concat());
    harvest.expect_code(code);
}

#[test]
fn the_exit_code_is_the_one_that_harvest_would_have() {
    let html =
        || play_script(Canned::in_order([]).rule(|_| Some(Reply::of(200, "text/html", "<html><title>Hello</title></html>"))));
    let report = exc("NoApplicableCode", "", "Everything is broken");
    let refusing = play_script(Canned::in_order([]).rule(move |_| Some(Reply::xml(report.clone()))));
    let status = |status| play_script(Canned::in_order([]).rule(move |_| Some(Reply::of(status, "text/plain", "no"))));
    let cases = [
        (html(), 76, "Hello"),
        (refusing, 76, "Everything is broken"),
        (status(401), 77, "401"),
        (status(403), 77, "403"),
        (status(404), 76, "404"),
        (status(503), 69, "503"),
    ];
    for ((server, harness), code, part) in &cases {
        expect_end(harness, &server.url(), &[], *code, "reachable", part);
    }
    // A port that was free a moment ago.
    let closed = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    expect_end(&Harness::new(), &format!("http://{closed}/csw"), &[], 69, "reachable", "no connection");
    let (server, harness) = stage(Quirks { schemas: vec![CSW], ..Quirks::default() }, 5);
    expect_end(&harness, &server.url(), &["--schema", "iso"], 76, "reachable", "outputSchema");
    expect_end(&harness, &server.url(), &["--property", "dc:colour"], 76, "property", "dc:colour");
}

#[test]
fn a_catalogue_that_fails_page_after_page_ends_as_a_harvest_would() {
    let mut unwell = catalogue(Quirks::default(), 12);
    for number in 1..=12 {
        unwell.change(&format!("r-{number:06}"), |record| record.poison = Some(Poison::Http(500)));
    }
    let (server, harness) = play(unwell);
    let code = harness.harvest(&server.url(), &["--retries", "0", "--retry-max-wait", "0", "--dry-run"]).code();
    assert!(code.is_some_and(|code| code != 0));
    assert_eq!(check(&Harness::new(), &server.url(), &["--retries", "0"]).code(), code);
}

/// A value of the JSON on stdout, as SQLite reads it; `null` for null.
#[track_caller]
fn extract(outcome: &Outcome, path: &str) -> String {
    let line = outcome.stdout.strip_suffix('\n').filter(|line| !line.contains('\n'));
    let Some(line) = line else { outcome.fail("expected one line on stdout") };
    let sqlite = rusqlite::Connection::open_in_memory().expect("a database");
    let value = sqlite.query_row("SELECT json_extract(?1, ?2)", [line, path], |row| row.get::<_, rusqlite::types::Value>(0));
    match value.unwrap_or_else(|error| outcome.fail(&format!("{path}: {error}"))) {
        rusqlite::types::Value::Null => "null".to_owned(),
        rusqlite::types::Value::Integer(number) => number.to_string(),
        rusqlite::types::Value::Text(text) => text,
        other => outcome.fail(&format!("{path} is {other:?}")),
    }
}

#[test]
fn the_json_is_one_object_with_every_finding() {
    let (server, harness) = stage(profiles::pycsw(), 30);
    let outcome = check(&harness, &server.url(), &["--json"]).expect_code(0);
    for (number, name) in FINDINGS.iter().enumerate() {
        assert_eq!(extract(&outcome, &format!("$.findings[{number}].finding")), *name);
        assert_ne!(extract(&outcome, &format!("$.findings[{number}].text")), "");
    }
    assert_eq!(extract(&outcome, "$.findings[14]"), "null");
    assert_eq!(extract(&outcome, "$.findings[8].mark"), "odd");
    assert!(extract(&outcome, "$.recommended").starts_with("csw-harvester harvest 'http://127.0.0.1:"));
    assert_eq!((extract(&outcome, "$.exit_code"), extract(&outcome, "$.error")), ("0".to_owned(), "null".to_owned()));
}

#[test]
fn what_was_typed_wrong_is_64_and_has_its_json_too() {
    let harness = Harness::new();
    let quiet = check(&harness, "ftp://127.0.0.1/csw", &[]).expect_code(64);
    quiet.expect("nothing on stdout", |outcome| outcome.stdout.is_empty());
    let outcome = check(&harness, "http://127.0.0.1/csw", &["--timeout", "0", "--json"]).expect_code(64);
    assert_eq!((extract(&outcome, "$.exit_code"), extract(&outcome, "$.findings[0]")), ("64".to_owned(), "null".to_owned()));
    check(&harness, "http://127.0.0.1/csw", &["--db", "x.db"]).expect_code(64);
}

#[test]
fn credentials_are_used_and_not_shown() {
    let (server, harness) = stage(Quirks::default(), 5);
    server.set(|settings| settings.basic = Some(("reader".to_owned(), "s3cret".to_owned())));
    check(&harness, &server.url(), &[]).expect_code(77);
    let url = server.url().replacen("http://", "http://reader:s3cret@", 1);
    let outcome = check(&harness, &url, &[]).expect_code(0);
    assert!(outcome.stdout.contains("# with the credentials, headers"), "{}", outcome.stdout);
    outcome.expect("no password", |outcome| !outcome.stdout.contains("s3cret") && !outcome.stderr.contains("s3cret"));
}
