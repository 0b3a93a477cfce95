//! The user's own filter: in every request, beside our dates, and a reason to read everything again when it changes.

use super::harness;
use crate::support::harness::Harness;
use crate::support::model::{Catalogue, Compare, Condition};
use crate::support::quirks::{Names, Quirks, Versions};
use crate::support::server::Server;
use crate::support::stamps::{HOUR, day};

const FILTER: &str = r#"<?xml version="1.0"?>
<Filter xmlns="http://www.opengis.net/fes/2.0">
  <PropertyIsLike wildCard="%" singleChar="_" escapeChar="\">
    <ValueReference>dc:title</ValueReference>
    <Literal>%kept%</Literal>
  </PropertyIsLike>
</Filter>
"#;
const CQL: &str = "dc:title LIKE '%kept%' AND NOT dc:title LIKE '%other%'";

fn server(quirks: Quirks) -> Server {
    let mut catalogue = Catalogue::new(day(2025, 6, 1), quirks);
    catalogue.fill("kept", 12, |number| day(2025, 1, 1) + number as i64 * HOUR);
    catalogue.fill("other", 12, |number| day(2025, 1, 1) + number as i64 * HOUR);
    Server::start(catalogue)
}

fn like_title(text: &str) -> Condition {
    Condition::Term { property: "dc:title".to_owned(), compare: Compare::Like, literal: text.to_owned() }
}

/// All GetRecords so far carry this condition.
#[track_caller]
fn expect_in_all(server: &Server, wanted: &Condition) {
    let requests = server.get_records();
    assert!(!requests.is_empty());
    for request in &requests {
        assert_eq!(request.also.as_ref(), Some(wanted), "{request:?}");
    }
}

fn kept(harness: &Harness) -> usize {
    let identifiers = harness.store().identifiers();
    assert!(identifiers.iter().all(|identifier| identifier.starts_with("kept")), "{identifiers:?}");
    identifiers.len()
}

#[test]
fn a_filter_document_holds_in_every_request_of_every_run() {
    let server = server(Quirks::default());
    let harness = harness(&server);
    let file = harness.write("filter.given", FILTER);
    let options = ["--filter-file", file.to_str().unwrap(), "--page-size", "5", "--json"];

    harness.harvest(&server.url(), &options).expect_code(0).expect_json("new", "12").expect_json("clock", "\"record\"");
    expect_in_all(&server, &like_title("%kept%"));
    assert!(server.get_records().iter().any(|request| request.hits && request.lower.is_some()));
    server.forget_journal();
    server.catalogue().edit("kept-000003");
    server.catalogue().edit("other-000003");
    server.catalogue().advance(HOUR);
    harness.harvest(&server.url(), &options).expect_code(0).expect_json("updated", "1").expect_json("new", "0");

    expect_in_all(&server, &like_title("%kept%"));
    assert!(server.get_records().iter().all(|request| request.hits || request.lower.is_some()));
    assert_eq!(kept(&harness), 12);
}

#[test]
fn cql_holds_in_every_request_of_every_run() {
    let server = server(Quirks::default());
    let harness = harness(&server);
    let options = ["--cql", CQL, "--page-size", "5", "--json"];
    let wanted = Condition::All(vec![like_title("%kept%"), Condition::Not(Box::new(like_title("%other%")))]);

    harness.harvest(&server.url(), &options).expect_code(0).expect_json("new", "12").expect_json("clock", "\"record\"");
    server.catalogue().edit("kept-000003");
    server.catalogue().edit("other-000003");
    server.catalogue().advance(HOUR);
    harness.harvest(&server.url(), &options).expect_code(0).expect_json("updated", "1").expect_json("new", "0");

    expect_in_all(&server, &wanted);
    assert!(server.requests().iter().filter(|entry| entry.page().is_some()).all(|entry| entry.body.contains("<csw:CqlText>")));
    assert_eq!(kept(&harness), 12);
}

#[test]
fn without_a_date_to_filter_on_the_users_filter_stands_alone() {
    let quirks = Quirks { properties: Names::none(), sort_names: Names::none(), ..Quirks::default() };
    let server = server(quirks);
    let harness = harness(&server);
    let file = harness.write("filter.given", FILTER);

    for new in ["12", "0"] {
        harness
            .harvest(&server.url(), &["--filter-file", file.to_str().unwrap(), "--json"])
            .expect_code(0)
            .expect_json("new", new)
            .expect_json("clock", "\"none\"");
    }

    assert_eq!(kept(&harness), 12);
}

#[test]
fn every_version_and_method_carries_it() {
    let wanted = Condition::All(vec![like_title("%kept%"), Condition::Not(Box::new(like_title("%other%")))]);
    for (version, method) in [("2.0.2", "get"), ("3.0.0", "post"), ("3.0.0", "get")] {
        for (way, wanted) in [("--filter-file", &like_title("%kept%")), ("--cql", &wanted)] {
            let server = server(Quirks { versions: Versions::Both, ..Quirks::default() });
            let harness = harness(&server);
            let file = harness.write("filter.given", FILTER);
            let value = if way == "--cql" { CQL } else { file.to_str().unwrap() };
            let options = [way, value, "--csw-version", version, "--method", method, "--json"];

            harness.harvest(&server.url(), &options).expect_code(0).expect_json("new", "12").expect_json("clock", "\"record\"");

            expect_in_all(&server, wanted);
            assert_eq!(kept(&harness), 12);
        }
    }
}

#[test]
fn another_filter_reads_everything_again_and_another_layout_does_not() {
    let server = server(Quirks::default());
    let harness = harness(&server);
    let harvest = |content: &str| {
        let file = harness.write("filter.given", content);
        server.forget_journal();
        harness.harvest(&server.url(), &["--filter-file", file.to_str().unwrap(), "--json"]).expect_code(0)
    };

    harvest(FILTER).expect_json("new", "12");
    harvest(&FILTER.replace('\n', " ")).expect_json("new", "0");
    assert!(server.get_records().iter().all(|request| request.hits || request.lower.is_some()));
    harvest(&FILTER.replace("%kept%", "%")).expect_json("new", "12");

    assert_eq!(harness.store().identifiers().len(), 24);
}

#[test]
fn a_filter_that_the_catalogue_refuses_is_76_in_its_own_words() {
    let server = server(Quirks::default());
    let harness = harness(&server);
    let file = harness.write("filter.given", FILTER.replace("dc:title", "dc:nonsense"));

    harness.harvest(&server.url(), &["--filter-file", file.to_str().unwrap()]).expect_code(76).expect_stderr("dc:nonsense");
}
