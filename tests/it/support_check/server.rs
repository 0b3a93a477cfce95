//! The loopback server over a bare socket, and the harness as far as it needs no harvest.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use crate::support::canned::{Canned, Reply, dc, env};
use crate::support::faults::{Fault, gzip};
use crate::support::harness::{Harness, difference, json_field};
use crate::support::model::{Catalogue, ModelRequest};
use crate::support::quirks::{Bindings, CSW, Quirks};
use crate::support::server::{DateHeader, Server};
use crate::support::stamps::{HOUR, Micros, day};
use crate::support::tree::parse;
use crate::support::xml::CapabilitiesFace;

const LONG: Duration = Duration::from_secs(30);

fn server() -> Server {
    let mut catalogue = Catalogue::new(day(2025, 6, 1), Quirks::default());
    catalogue.fill("r", 5, |number| day(2025, 1, 1) + number as Micros * HOUR);
    Server::start(catalogue)
}

fn get_records(start: i64) -> String {
    format!(
        "<csw:GetRecords xmlns:csw=\"{CSW}\" service=\"CSW\" version=\"2.0.2\" resultType=\"results\" startPosition=\"{start}\" \
         maxRecords=\"2\"><csw:Query typeNames=\"csw:Record\"><csw:ElementSetName>full</csw:ElementSetName></csw:Query></csw:GetRecords>"
    )
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.address()).expect("a server on the loopback");
    stream.set_read_timeout(Some(LONG)).expect("a time-out");
    stream
}

fn post_bytes(target: &str, headers: &str, body: &str) -> String {
    format!("POST {target} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
}

/// Head and body of the one answer that a connection is asked for.
struct Answer {
    head: String,
    body: Vec<u8>,
    error: Option<ErrorKind>,
}

impl Answer {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    fn announced(&self) -> usize {
        let line = self.head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).expect("a length");
        line.parse().expect("a number")
    }
}

fn exchange(server: &Server, bytes: &str) -> Answer {
    let mut stream = connect(server);
    stream.write_all(bytes.as_bytes()).expect("a request that is sent");
    let mut all = Vec::new();
    let error = stream.read_to_end(&mut all).err().map(|error| error.kind());
    let at = all.windows(4).position(|window| window == b"\r\n\r\n").map_or(all.len(), |at| at + 4);
    let body = all.split_off(at);
    Answer { head: String::from_utf8_lossy(&all).into_owned(), body, error }
}

fn post(server: &Server, start: i64) -> Answer {
    exchange(server, &post_bytes("/csw", "Connection: close\r\nAccept-Encoding: gzip\r\n", &get_records(start)))
}

fn get(server: &Server, target: &str) -> Answer {
    exchange(server, &format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"))
}

#[test]
fn a_page_is_served_and_stands_in_the_journal() {
    let server = server();
    let answer = post(&server, 3);
    assert!(answer.head.starts_with("HTTP/1.1 200 OK\r\n"), "{}", answer.head);
    assert!(answer.head.contains("Date: Sun, 01 Jun 2025 00:00:00 GMT\r\n"), "{}", answer.head);
    let document = parse(&answer.text()).unwrap();
    let results = document.find("SearchResults").unwrap();
    assert_eq!(results.attribute("nextRecord"), Some("5"));
    assert_eq!(results.children[0].text_of("identifier").as_deref(), Some("r-000003"));
    assert_eq!(server.get_records(), [ModelRequest::page(3, 2)]);
    assert_eq!(server.requests()[0].header("accept-encoding"), Some("gzip"));
    assert!(server.journal().told().contains("GetRecords 3+2 -> 200 matched"), "{}", server.journal().told());
}

#[test]
fn one_connection_serves_many_requests() {
    let server = server();
    let mut stream = connect(&server);
    for _ in 0..3 {
        stream.write_all(post_bytes("/csw", "", &get_records(1)).as_bytes()).unwrap();
        read_one(&mut stream);
    }
    stream.write_all(b"GET /csw?service=CSW&request=GetCapabilities HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    assert!(read_one(&mut stream).contains("csw:Capabilities"));
    assert_eq!(server.requests().iter().map(|entry| entry.connection).collect::<Vec<_>>(), [1, 1, 1, 1]);
}

fn read_one(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap().parse().unwrap();
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    String::from_utf8(body).unwrap()
}

#[test]
fn capabilities_and_single_records_are_served() {
    let server = server();
    assert!(get(&server, "/csw?service=CSW&request=GetCapabilities").text().contains(&server.url()));
    let found = get(&server, "/csw?service=CSW&version=2.0.2&request=GetRecordById&id=r-000002,nobody");
    assert!(found.text().contains("r-000002"));
    let none = get(&server, "/csw?service=CSW&version=2.0.2&request=GetRecordById&id=nobody");
    assert!(parse(&none.text()).unwrap().children.is_empty());
    server.set(|settings| settings.capabilities = CapabilitiesFace::NotFound);
    assert!(get(&server, "/csw").head.starts_with("HTTP/1.1 404 "));
}

#[test]
fn bindings_that_are_not_had_are_405() {
    let server = server();
    server.catalogue().quirks_mut().bindings = Bindings::GetOnly;
    assert!(post(&server, 1).head.starts_with("HTTP/1.1 405 "));
    let target = "/csw?service=CSW&version=2.0.2&request=GetRecords&typenames=csw:Record&resulttype=results&elementsetname=full";
    assert!(get(&server, target).text().contains("r-000005"));
}

#[test]
fn without_the_password_all_is_401() {
    let server = server();
    server.set(|settings| settings.basic = Some(("Aladdin".to_owned(), "open sesame".to_owned())));
    assert!(post(&server, 1).head.contains("WWW-Authenticate: Basic"));
    let headers = "Connection: close\r\nAuthorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n";
    assert!(exchange(&server, &post_bytes("/csw", headers, &get_records(1))).head.starts_with("HTTP/1.1 200 "));
}

#[test]
fn faults_strike_by_number_by_predicate_and_for_a_while() {
    let server = server();
    server.fault_at(2, Fault::retry_after(503, "7"));
    server.fault_times(1, |entry| entry.page().is_some_and(|page| page.start_position == 3), Fault::status(500));
    assert!(post(&server, 1).head.starts_with("HTTP/1.1 200 "));
    assert!(
        post(&server, 1)
            .head
            .contains("503 Service Unavailable\r\nConnection: close\r\nContent-Type: text/plain\r\nRetry-After: 7")
    );
    assert!(post(&server, 3).head.starts_with("HTTP/1.1 500 "));
    assert!(post(&server, 3).head.starts_with("HTTP/1.1 200 "));
    server.fault_next(2, Fault::Html("Please wait"));
    assert!(post(&server, 1).text().contains("<title>Please wait</title>"));
    server.clear_faults();
    assert!(post(&server, 1).text().contains("SearchResults"));
    server.fault_when(|_| true, Fault::exception(400, "InvalidParameterValue", "PropertyName", "no"));
    assert!(post(&server, 1).text().contains("locator=\"PropertyName\""));
    assert!(post(&server, 1).head.starts_with("HTTP/1.1 400 "));
    assert_eq!(server.asked(), 8);
}

#[test]
fn connections_end_early_in_every_way() {
    let server = server();
    let whole = post(&server, 1).body.len();
    server.fault_next(1, Fault::CloseBeforeHeaders);
    let closed = post(&server, 1);
    assert_eq!((closed.head.as_str(), closed.error), ("", None));
    server.fault_next(1, Fault::Reset);
    assert_eq!(post(&server, 1).error, Some(ErrorKind::ConnectionReset));
    server.fault_next(1, Fault::Reset);
    assert_eq!(get(&server, "/csw").error, Some(ErrorKind::ConnectionReset));
    server.fault_next(1, Fault::ShortContentLength);
    let short = post(&server, 1);
    assert_eq!((short.announced(), short.body.len()), (whole, whole / 2));
    server.fault_next(1, Fault::MissingLastChunk);
    let chunked = post(&server, 1);
    assert!(chunked.head.contains("Transfer-Encoding: chunked") && !chunked.text().ends_with("0\r\n\r\n"));
    server.fault_next(1, Fault::UnfinishedXml);
    let unfinished = post(&server, 1);
    assert_eq!(unfinished.announced(), unfinished.body.len());
    assert!(parse(&unfinished.text()).is_err());
}

#[test]
fn bodies_are_wrong_in_every_way() {
    let server = server();
    let right = post(&server, 1).body;
    server.fault_next(1, Fault::Garbage);
    assert!(parse(&post(&server, 1).text()).is_err());
    server.fault_next(1, Fault::Json);
    assert!(post(&server, 1).text().starts_with('{'));
    server.fault_next(1, Fault::Empty);
    assert_eq!(post(&server, 1).announced(), 0);
    server.fault_next(1, Fault::ByteOrderMark);
    assert!(post(&server, 1).text().starts_with("\u{feff}<?xml"));
    server.fault_next(1, Fault::GzipWrongLength);
    let wrong = post(&server, 1);
    assert!(wrong.head.contains("Content-Encoding: gzip") && wrong.announced() > wrong.body.len());
    assert_eq!(wrong.body, gzip(&right));
    server.fault_next(1, Fault::GzipWrongLength);
    let identity = exchange(&server, &post_bytes("/csw", "Connection: close\r\nAccept-Encoding: identity\r\n", &get_records(1)));
    assert_eq!(identity.body, right);
    server.fault_next(1, Fault::Redirect(301, "/other?x=1".to_owned()));
    assert!(post(&server, 1).head.contains("Location: /other?x=1\r\n"));
}

#[test]
fn gzip_is_valid() {
    assert_eq!(gzip(b"")[10..], [1, 0, 0, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0]);
    let packed = gzip(b"123456789");
    assert_eq!(packed[packed.len() - 8..], [0x26, 0x39, 0xf4, 0xcb, 9, 0, 0, 0], "CRC-32's check value");
    assert_eq!(gzip(&vec![b'x'; 70_000]).len(), 10 + 2 * 5 + 70_000 + 8);
}

#[test]
fn latin_1_is_declared_and_what_it_lacks_is_a_reference() {
    let server = server();
    server.catalogue().change("r-000001", |record| record.title = "Ga\u{e4}s \u{20ac}".to_owned());
    server.fault_next(1, Fault::Latin1);
    let answer = post(&server, 1);
    assert!(answer.head.contains("Content-Type: application/xml\r\n"));
    let text = answer.text();
    assert!(text.starts_with("<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>"));
    assert!(answer.body.windows(8).any(|window| window == b"Ga\xe4s &#8"), "{text}");
}

#[test]
fn a_slow_answer_comes_in_drops_and_ends_with_the_server() {
    let server = server();
    server.fault_next(1, Fault::Slow(500, Duration::from_millis(1)));
    let whole = post(&server, 1);
    assert_eq!(whole.announced(), whole.body.len());
    server.fault_next(1, Fault::Slow(1, Duration::from_secs(1)));
    let mut stream = connect(&server);
    stream.write_all(post_bytes("/csw", "", &get_records(1)).as_bytes()).unwrap();
    assert!(server.wait_for_requests(2, LONG));
    drop(server);
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(rest.len() < whole.body.len());
}

#[test]
fn a_stalled_request_goes_on_when_it_is_released() {
    let server = server();
    server.fault_next(1, Fault::Stall);
    let mut stream = connect(&server);
    stream.write_all(post_bytes("/csw", "Connection: close\r\n", &get_records(1)).as_bytes()).unwrap();
    assert!(server.wait_for_stall(LONG));
    server.release();
    let mut all = String::new();
    stream.read_to_string(&mut all).unwrap();
    assert!(all.contains("SearchResults"));
}

#[test]
fn a_stalled_request_does_not_keep_the_server_from_ending() {
    let server = server();
    server.fault_next(1, Fault::Stall);
    let mut stream = connect(&server);
    stream.write_all(post_bytes("/csw", "", &get_records(1)).as_bytes()).unwrap();
    assert!(server.wait_for_stall(LONG));
    // What is promised is that this returns; whether the stalled answer still gets out is a race that nobody needs to win.
    drop(server);
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    let _ = stream.shutdown(Shutdown::Both);
}

#[test]
fn the_hook_changes_the_catalogue_between_two_pages() {
    let server = server();
    server.after_request(|catalogue, entry| {
        if entry.page().is_some_and(|page| page.start_position == 1) {
            catalogue.delete("r-000001");
        }
    });
    assert!(post(&server, 1).text().contains("r-000001"));
    assert!(!post(&server, 3).text().contains("r-000003"), "it moved up and is skipped");
    assert_eq!(server.catalogue().visible().len(), 4);
}

#[test]
fn a_script_gives_its_pages_and_leaves_probes_apart() {
    let by_start = Canned::by_start([
        (1, env(Some(3), Some(2), Some(3), &[dc("a", "A", "2025-01-01"), dc("b", "B", "2025-01-01")])),
        (3, env(Some(3), Some(1), Some(4), &[dc("c", "C", "2025-01-01")])),
    ]);
    let server = Server::canned(by_start);
    assert!(post(&server, 3).text().contains(">c<"));
    assert!(post(&server, 4).text().contains("numberOfRecordsMatched=\"0\""));
    let target = "/csw?service=CSW&version=2.0.2&request=GetRecords&typenames=csw:Record&resulttype=results&elementsetname=full";
    let filtered = format!("{target}&constraintlanguage=CQL_TEXT&constraint=dct:modified%3E'1970-01-01'");
    assert!(get(&server, &filtered).text().contains("locator=\"PropertyName\""));
    let in_order = Canned::in_order([env(None, None, None, &[dc("a", "A", "")]), env(None, None, None, &[dc("b", "B", "")])]);
    let server = Server::canned(in_order.rule(|operation| match operation {
        crate::support::requests::Operation::GetRecordById { .. } => Some(Reply::of(404, "text/plain", "")),
        _ => None,
    }));
    assert!(get(&server, &format!("{target}&maxrecords=1")).text().contains(">a<"));
    assert!(post(&server, 1).text().contains(">a<"));
    assert!(post(&server, 1).text().contains(">b<"));
    assert!(!post(&server, 1).text().contains("Record>"));
    assert!(get(&server, "/csw?service=CSW&request=GetRecordById&id=a").head.starts_with("HTTP/1.1 404 "));
}

#[test]
fn the_date_header_may_be_absent() {
    let server = server();
    server.set(|settings| settings.date = DateHeader::Absent);
    assert!(!post(&server, 1).head.contains("Date:"));
}

#[test]
fn a_flat_json_line_gives_its_fields() {
    let line = r#"{"source":"a \"b\", c","error":null,"new":12,"reconciled":true}"#;
    assert_eq!(json_field(line, "source"), Some(r#""a \"b\", c""#));
    assert_eq!(json_field(line, "error"), Some("null"));
    assert_eq!(json_field(line, "new"), Some("12"));
    assert_eq!(json_field(line, "reconciled"), Some("true"));
    assert_eq!(json_field(line, "gone"), None);
}

#[test]
fn the_harness_runs_a_program_in_a_folder_of_its_own() {
    let mut harness = Harness::new().with_binary(std::path::Path::new("/bin/sh"));
    harness.set_env("GIVEN", "yes");
    let outcome = harness.run(&["-c", "echo \"$GIVEN$HOME\"; echo told >&2; echo x > left; exit 75"]);
    let outcome = outcome.expect_code(75).expect_stdout("yes\n").expect_stderr("told");
    assert_eq!(outcome.stdout, "yes\n");
    assert!(harness.path("left").exists());
}

#[test]
fn a_failed_expectation_tells_all_that_is_known() {
    let server = server();
    post(&server, 3);
    let harness = Harness::against(&server).with_binary(std::path::Path::new("/bin/sh"));
    let outcome = harness.run(&["-c", "echo out; echo err >&2; exit 7"]);
    let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| outcome.expect_code(0))).err().expect("a panic");
    let told = failed.downcast_ref::<String>().expect("a text");
    for part in ["expected exit code 0", "/bin/sh -c echo out", "exit status: 7", "out\n", "err\n", "GetRecords 3+2"] {
        assert!(told.contains(part), "{part:?} is not in {told}");
    }
}

#[test]
fn a_store_is_held_against_the_truth() {
    let harness = Harness::new();
    let connection = rusqlite::Connection::open(harness.path("harvest_state.db")).unwrap();
    let schema = "CREATE TABLE records (source, identifier, title, modified, xml, harvested_at, changed_seq);
        CREATE TABLE harvest_state (source, watermark);
        INSERT INTO harvest_state VALUES ('s', '2025-01-01T04:00:00Z');";
    connection.execute_batch(schema).unwrap();
    let server = server();
    let put = "INSERT INTO records SELECT 's', ?1, 't', ?2, '<a>[version 1] </a>', 'now', 1";
    for (identifier, (stamp, _)) in server.catalogue().visible() {
        connection.execute(put, (identifier, stamp)).unwrap();
    }
    assert_eq!(harness.store().watermark(), "2025-01-01T04:00:00Z");
    harness.expect_mirror(&server.catalogue());
    server.catalogue().edit("r-000001");
    server.catalogue().delete("r-000002");
    server.catalogue().insert("new");
    let told = difference(&server.catalogue().visible(), &harness.store().records());
    for part in ["new is missing", "r-000001 is stamped", "r-000001 is not version 2", "r-000002 is too many"] {
        assert!(told.contains(part), "{part:?} is not in {told}");
    }
    assert_eq!(told.lines().count(), 4);
}

#[test]
fn a_running_program_is_killed_or_told_to_end() {
    let harness = Harness::new().with_binary(std::path::Path::new("/bin/sh"));
    let mut killed = harness.spawn(&["-c", "exec sleep 60"]);
    killed.kill();
    assert_eq!(killed.wait().code(), None);
    let told = harness.spawn(&["-c", "trap 'exit 75' TERM; echo ready > up; while :; do sleep 0.02; done"]);
    while !harness.path("up").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    told.signal("TERM");
    let _ = told.wait().expect_code(75);
}
