//! Requests as they are read, answers as they are written.

use crate::support::canned::{dc, dc_of, env, exc, iso};
use crate::support::model::{Catalogue, Compare, Condition, ElementSet, ModelRecord, ModelRequest, Operator};
use crate::support::quirks::{Bindings, CSW, GMD, Quirks, Validation, Versions};
use crate::support::requests::{Operation, from_body, from_target};
use crate::support::stamps::day;
use crate::support::tree::{Element, parse};
use crate::support::xml::{self, CapabilitiesFace, DCT, Declared, Prefixes, Rendering, ReportFace};

fn body(attributes: &str, query: &str) -> String {
    format!(
        "<csw:GetRecords xmlns:csw=\"{CSW}\" xmlns:ogc=\"http://www.opengis.net/ogc\" xmlns:dct=\"{DCT}\" service=\"CSW\" \
         version=\"2.0.2\" {attributes}><csw:Query typeNames=\"csw:Record\">{query}</csw:Query></csw:GetRecords>"
    )
}

const FULL: &str = "<csw:ElementSetName>full</csw:ElementSetName>";

fn constraint(inner: &str) -> String {
    format!("<csw:Constraint version=\"1.1.0\"><ogc:Filter>{inner}</ogc:Filter></csw:Constraint>")
}

fn compared(operator: &str, literal: &str) -> String {
    format!(
        "<ogc:{operator}><ogc:PropertyName>dct:modified</ogc:PropertyName><ogc:Literal>{literal}</ogc:Literal></ogc:{operator}>"
    )
}

#[track_caller]
fn read(body: &str) -> ModelRequest {
    match from_body(body, &Quirks::default()) {
        Ok(Operation::GetRecords(request)) => request,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn refused(body: &str) -> String {
    from_body(body, &Quirks::default()).expect_err("a refusal").text
}

#[test]
fn a_post_is_read_by_namespace() {
    let sort = "<ogc:SortBy><ogc:SortProperty><ogc:PropertyName>dct:modified</ogc:PropertyName><ogc:SortOrder>ASC</ogc:SortOrder>\
                </ogc:SortProperty></ogc:SortBy>";
    let and = format!(
        "<ogc:And>{}{}</ogc:And>",
        compared("PropertyIsGreaterThan", "2025-01-01"),
        compared("PropertyIsLessThanOrEqualTo", "2025-02-01")
    );
    let document = body(
        "resultType=\"results\" startPosition=\"21\" maxRecords=\"20\" outputSchema=\"http://www.isotc211.org/2005/gmd\"",
        &format!("{FULL}{}{sort}", constraint(&and)),
    );
    let expected = ModelRequest::page(21, 20)
        .after("dct:modified", "2025-01-01")
        .until("dct:modified", "2025-02-01")
        .sorted("dct:modified")
        .in_schema(GMD);
    assert_eq!(read(&document), expected);
    assert_eq!(read(&document.replace("csw:", "q:").replace("xmlns:csw", "xmlns:q").replace("q:Record", "csw:Record")), expected);
}

#[test]
fn what_is_not_valid_is_refused() {
    let results = "resultType=\"results\"";
    assert!(refused(&body("startPosition=\"0\"", FULL)).contains("positive"));
    assert!(refused(&body(results, "")).contains("ElementSetName"));
    assert!(refused(&body("results=\"yes\"", FULL)).contains("'results' is not allowed"));
    let filter = constraint(&compared("PropertyIsGreaterThan", "2025"));
    assert!(refused(&body(results, &format!("{filter}{FULL}"))).contains("not expected"));
    let blank = constraint(&compared("PropertyIsGreaterThan", " 2025 "));
    assert!(refused(&body(results, &format!("{FULL}{blank}"))).contains("blanks"));
    let unbound = body(results, &format!("{FULL}{filter}")).replace("xmlns:dct=", "xmlns:other=");
    assert!(refused(&unbound).contains("prefix of dct:modified"));
    assert!(refused(&body(results, FULL).replace("2.0.2\" re", "3.0.0\" re")).contains("required"));
    assert!(refused("<csw:GetRecords").contains("not valid"));
}

#[test]
fn a_lenient_catalogue_passes_over_a_filter_in_another_namespace() {
    let quirks = Quirks { validation: Validation::Lenient, ..Quirks::default() };
    let filter = constraint(&compared("PropertyIsGreaterThan", "2025")).replace("ogc:Filter", "csw:Filter");
    let document = body("resultType=\"results\"", &format!("{FULL}{filter}"));
    let Ok(Operation::GetRecords(request)) = from_body(&document, &quirks) else { panic!("a request") };
    assert_eq!(request.lower, None);
    assert!(refused(&document).contains("Constraint"));
}

#[test]
fn a_missing_result_type_means_hits() {
    assert!(read(&body("", FULL)).hits);
    assert!(!read(&body("resultType=\"results\"", FULL)).hits);
}

#[test]
fn the_parameters_of_a_get_are_read_in_any_case() {
    let target = "/csw?map=/x.map&SERVICE=CSW&Version=2.0.2&REQUEST=GetRecords&typeNames=csw:Record&ElementSetName=full&resulttype=results\
                  &startPosition=11&maxRecords=10&constraintLanguage=CQL_TEXT&constraint_language_version=1.1.0\
                  &constraint=dct%3Amodified+%3E%3D+'2025-01-01'+AND+dc:title%20LIKE%20'%25water%25'&sortby=dct:modified:A";
    let Ok(Operation::GetRecords(request)) = from_target(target, &Quirks::default()) else { panic!("a request") };
    assert_eq!((request.start_position, request.max_records, request.hits), (11, 10, false));
    assert_eq!(request.lower, Some((Operator::From, "2025-01-01".to_owned())));
    assert_eq!(request.sort.as_deref(), Some("dct:modified"));
    let like = Condition::Term { property: "dc:title".to_owned(), compare: Compare::Like, literal: "%water%".to_owned() };
    assert_eq!(request.also, Some(like));
    let without_order = target.replace(":A", "");
    assert_eq!(from_target(&without_order, &Quirks::default()).unwrap_err().locator, "sortby");
}

#[test]
fn versions_are_negotiated() {
    let quirks = Quirks::default();
    let ask = |query: &str| from_target(&format!("/csw?service=CSW&request=GetCapabilities&{query}"), &quirks);
    assert_eq!(ask("version=2.0.2&acceptversions=2.0.2,3.0.0"), Ok(Operation::GetCapabilities));
    assert_eq!(ask("acceptversions=3.0.0").unwrap_err().code, "VersionNegotiationFailed");
    assert_eq!(ask("version=3.0.0").unwrap_err().locator, "version");
}

#[test]
fn identifiers_are_read_from_get_and_post() {
    let quirks = Quirks::default();
    let expected = Operation::GetRecordById {
        identifiers: vec!["a".to_owned(), "b".to_owned()],
        schema: CSW.to_owned(),
        element_set: ElementSet::Full,
    };
    let target = "/csw?service=CSW&version=2.0.2&request=GetRecordById&id=a,b&elementsetname=full";
    assert_eq!(from_target(target, &quirks), Ok(expected.clone()));
    let document = format!(
        "<GetRecordById xmlns=\"{CSW}\" service=\"CSW\" version=\"2.0.2\"><Id>a</Id><Id>b</Id>\
         <ElementSetName>full</ElementSetName></GetRecordById>"
    );
    assert_eq!(from_body(&document, &quirks), Ok(expected));
}

fn rendered(rendering: Rendering, schema: &str, element_set: ElementSet) -> Element {
    let quirks = Quirks::default();
    let mut catalogue = Catalogue::new(day(2025, 6, 1), quirks.clone());
    let mut record = ModelRecord::showing("a<&>b", &["2025-03-01T10:00:00Z"]);
    record.size = 5_000;
    catalogue.insert_record(record);
    let envelope = xml::Envelope {
        matched: Some("1"),
        returned: Some(1),
        next: Some(0),
        timestamp: "2025-06-01T00:00:00Z",
        schema,
        element_set,
        version: "2.0.2",
    };
    let records = xml::records(rendering, &quirks, (schema, element_set), catalogue.records());
    if element_set == ElementSet::Full {
        assert!((5_000..5_200).contains(&records.len()), "{}", records.len());
    }
    parse(&xml::envelope(rendering, &envelope, &records)).expect("well formed, every prefix declared")
}

#[test]
fn records_are_the_same_whatever_the_prefixes() {
    for declared in [Declared::OnRoot, Declared::OnRecords] {
        for prefixes in [Prefixes::Usual, Prefixes::Foreign, Prefixes::Rebound] {
            let rendering = Rendering { declared, prefixes };
            let csw = rendered(rendering, CSW, ElementSet::Full);
            let record = csw.find("Record").unwrap();
            assert_eq!(record.namespace, CSW);
            assert_eq!(record.text_of("identifier").as_deref(), Some("a<&>b"));
            assert_eq!(record.text_of("modified").as_deref(), Some("2025-03-01T10:00:00Z"));
            assert_eq!(record.find("modified").unwrap().namespace, DCT);
            assert!(record.text_of("abstract").unwrap().starts_with("[version 1] "));
            let iso = rendered(rendering, GMD, ElementSet::Full);
            let record = iso.find("MD_Metadata").unwrap();
            assert_eq!(record.namespace, GMD);
            assert_eq!(record.text_of("fileIdentifier").as_deref(), Some("a<&>b"));
            let stamp = record.find("dateStamp").unwrap();
            assert_eq!((stamp.namespace.as_str(), stamp.text_of("DateTime").as_deref()), (GMD, Some("2025-03-01T10:00:00Z")));
            assert_eq!(record.find("citation").unwrap().text_of("title").as_deref(), Some("Title of a<&>b"));
        }
    }
}

#[test]
fn brief_carries_no_stamp() {
    let brief = rendered(Rendering::default(), CSW, ElementSet::Brief);
    assert!(brief.find("BriefRecord").is_some() && brief.find("modified").is_none());
    assert!(rendered(Rendering::default(), GMD, ElementSet::Brief).find("dateStamp").is_none());
    assert!(rendered(Rendering::default(), CSW, ElementSet::Summary).find("modified").is_some());
}

#[test]
fn attributes_of_an_envelope_are_left_out_when_absent() {
    let document = parse(&env(None, Some(2), Some(-1), &[dc("a", "A", "2025"), dc_of("b", "B", &["2024", "2025"])])).unwrap();
    let results = document.find("SearchResults").unwrap();
    assert_eq!(results.attribute("numberOfRecordsMatched"), None);
    assert_eq!(results.attribute("nextRecord"), Some("-1"));
    assert_eq!(results.children.len(), 2);
    let document = parse(&env(Some(1), None, None, &[iso("a", "A", "2025-01-01")])).unwrap();
    assert_eq!(document.find("SearchResults").unwrap().attribute("recordSchema"), Some(GMD));
    assert_eq!(document.text_of("dateStamp").as_deref(), Some("2025-01-01"));
}

#[test]
fn exception_reports_speak_every_tongue() {
    let report = crate::support::model::Report {
        code: "InvalidParameterValue".to_owned(),
        locator: "typeNames".to_owned(),
        text: "a < b".to_owned(),
        status: 200,
    };
    for face in [ReportFace::Ows, ReportFace::Ows11, ReportFace::Ows20, ReportFace::Service, ReportFace::Soap] {
        let document = parse(&xml::exception_report(face, &report)).unwrap();
        assert!(document.all_text().contains("a < b"), "{face:?}");
    }
    let document = parse(&exc("NoApplicableCode", "", "text")).unwrap();
    assert_eq!(document.find("Exception").unwrap().attribute("locator"), None);
}

#[test]
fn capabilities_name_queryables_addresses_and_schemas() {
    let quirks = Quirks { queryables: vec!["dct:modified", "apiso:Modified"], page_cap: Some(10), ..Quirks::default() };
    let text = |face: &CapabilitiesFace, quirks: &Quirks| xml::capabilities(face, "http://h/csw?a=1&b=2", quirks).2;
    let document = parse(&text(&CapabilitiesFace::Right, &quirks)).unwrap();
    let mut operations = Vec::new();
    document.find_all("Operation", &mut operations);
    let get_records = operations.into_iter().find(|operation| operation.attribute("name") == Some("GetRecords")).unwrap();
    assert_eq!(get_records.find("Post").unwrap().attribute("xlink:href"), Some("http://h/csw?a=1&b=2"));
    assert!(get_records.all_text().contains("apiso:Modified"));
    let get_only = Quirks { bindings: Bindings::GetOnly, ..quirks.clone() };
    assert!(parse(&text(&CapabilitiesFace::Right, &get_only)).unwrap().find("Post").is_none());
    let soap = text(&CapabilitiesFace::SoapFirst("http://h/soap".to_owned()), &quirks);
    assert!(soap.find("http://h/soap").unwrap() < soap.rfind("<ows:Value>XML").unwrap());
    assert!(text(&CapabilitiesFace::Address("${SITE_URL}/csw".to_owned()), &quirks).contains("${SITE_URL}/csw"));
}

fn body_300(query: &str) -> String {
    format!(
        "<csw30:GetRecords xmlns:csw30=\"http://www.opengis.net/cat/csw/3.0\" xmlns:fes=\"http://www.opengis.net/fes/2.0\" \
         xmlns:dct=\"http://purl.org/dc/terms/\" service=\"CSW\" version=\"3.0.0\" {query}</csw30:Query></csw30:GetRecords>"
    )
}

#[test]
fn a_request_of_version_3_is_read_where_that_is_spoken() {
    let speaking = |versions: Versions| Quirks { versions, ..Quirks::default() };
    let body = body_300(
        "maxRecords=\"0\"><csw30:Query typeNames=\"csw30:Record\"><csw30:ElementSetName>full</csw30:ElementSetName>\
         <csw30:Constraint version=\"1.1.0\"><fes:Filter><fes:PropertyIsGreaterThan><fes:ValueReference>dct:modified\
         </fes:ValueReference><fes:Literal>2024</fes:Literal></fes:PropertyIsGreaterThan></fes:Filter></csw30:Constraint>",
    );

    let expected = ModelRequest { version: "3.0.0", ..ModelRequest::page(1, 0).after("dct:modified", "2024").counting() };
    assert_eq!(from_body(&body, &speaking(Versions::Both)), Ok(Operation::GetRecords(expected)));

    assert!(from_body(&body, &speaking(Versions::Only202)).is_err());
    // pycsw looks for the older namespace anywhere in the body.
    let mixed = body.replace("xmlns:dct", "xmlns:csw=\"http://www.opengis.net/cat/csw/2.0.2\" xmlns:dct");
    assert!(from_body(&mixed, &speaking(Versions::Both)).is_err());
    let with_result_type = body.replace("maxRecords", "resultType=\"hits\" maxRecords");
    assert!(from_body(&with_result_type, &speaking(Versions::Both)).is_err());
}

#[test]
fn whoever_names_no_version_is_answered_in_the_newest() {
    let quirks = Quirks { versions: Versions::Both, ..Quirks::default() };
    let version = |query: &str| match from_target(&format!("/csw?service=CSW&request=GetRecords&typeNames=Record&{query}"), &quirks)
    {
        Ok(Operation::GetRecords(request)) => request.version,
        other => panic!("{other:?}"),
    };
    assert_eq!(version("maxRecords=1"), "3.0.0");
    assert_eq!(version("version=2.0.2"), "2.0.2");
    assert_eq!(version("version=3.0.0"), "3.0.0");
    assert_eq!(version("version=3.0.0&acceptversions=2.0.2,3.0.0"), "2.0.2");
}
