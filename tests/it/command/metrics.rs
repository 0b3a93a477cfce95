//! What monitoring is told: the file and the Pushgateway, at every end of a run.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use prometheus_parse::{Scrape, Value};
use rusqlite::Connection;

use super::inputs::files;
use crate::cases::{FIRST, catalogue, play, stage};
use crate::support::canned::{Reply, exc};
use crate::support::faults::Fault;
use crate::support::harness::Harness;
use crate::support::model::Poison;
use crate::support::quirks::Quirks;
use crate::support::server::Server;
use crate::support::stamps::HOUR;

const LONG: Duration = Duration::from_secs(60);
const FILE: &str = "csw.prom";
const SUCCEEDED: &str = "csw_harvester_last_success_timestamp_seconds";
const CODE: &str = "csw_harvester_last_run_exit_code";
const HELD: &str = "csw_harvester_records";

/// Metrics as a parser of the format reads them.
struct Metrics(Scrape);

impl Metrics {
    fn of(text: &str) -> Self {
        Metrics(Scrape::parse(text.lines().map(|line| Ok(line.to_owned()))).expect("the text format"))
    }

    fn in_file(harness: &Harness) -> Self {
        Self::of(&std::fs::read_to_string(harness.path(FILE)).expect("a metrics file"))
    }

    /// The value of the only series with this name and result; its source must be `source`.
    #[track_caller]
    fn of_result(&self, source: &str, name: &str, result: Option<&str>) -> Option<f64> {
        let of_it = |sample: &&prometheus_parse::Sample| sample.metric == name && sample.labels.get("result") == result;
        let found: Vec<_> = self.0.samples.iter().filter(of_it).collect();
        assert!(found.len() <= 1, "{name} {result:?}: {found:?}");
        found.first().map(|sample| {
            assert_eq!(sample.labels.get("source"), Some(source));
            match sample.value {
                Value::Gauge(value) => value,
                ref other => panic!("{name}: {other:?}"),
            }
        })
    }

    #[track_caller]
    fn get(&self, source: &str, name: &str) -> Option<f64> {
        self.of_result(source, name, None)
    }

    fn names(&self) -> BTreeSet<String> {
        self.0.samples.iter().map(|sample| sample.metric.clone()).collect()
    }
}

/// What a gateway got.
#[derive(Clone, Debug)]
struct Pushed {
    line: String,
    header: String,
    body: String,
}

/// A Pushgateway on the loopback that answers with one status after the other, the last one for good; 0 is no answer at all.
struct Pushgateway {
    url: String,
    pushed: Arc<Mutex<Vec<Pushed>>>,
    // Ends with the process, should a test fail before it is asked to stop.
    _thread: JoinHandle<()>,
}

impl Pushgateway {
    fn answering(statuses: &'static [u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let pushed: Arc<Mutex<Vec<Pushed>>> = Arc::default();
        let got = Arc::clone(&pushed);
        let thread = std::thread::spawn(move || {
            let mut silent = Vec::new();
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let Some(request) = read(&mut stream) else { continue };
                let mut got = got.lock().unwrap();
                let status = statuses[got.len().min(statuses.len() - 1)];
                got.push(request);
                match status {
                    0 => silent.push(stream),
                    302 => answer(&mut stream, "302 Found\r\nLocation: /elsewhere"),
                    _ => answer(&mut stream, &format!("{status} Whatever")),
                }
            }
        });
        Pushgateway { url, pushed, _thread: thread }
    }

    fn pushed(&self) -> Vec<Pushed> {
        self.pushed.lock().unwrap().clone()
    }
}

fn answer(stream: &mut TcpStream, status: &str) {
    let _ = write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 4\r\nConnection: close\r\n\r\nsaid");
}

fn read(stream: &mut TcpStream) -> Option<Pushed> {
    let (mut bytes, mut byte) = (Vec::new(), [0]);
    while !bytes.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        bytes.push(byte[0]);
    }
    let header = String::from_utf8(bytes).unwrap().to_ascii_lowercase();
    let length = header.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok())?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    let line = header.lines().next()?.to_owned();
    Some(Pushed { line, header, body: String::from_utf8(body).unwrap() })
}

/// A harvest with metrics of this source in the usual file.
fn tick(server: &Server, harness: &Harness, more: &[&str]) -> crate::support::harness::Outcome {
    harness.harvest_quickly(server, &[&["--metrics-file", FILE], more].concat())
}

/// A catalogue of five, harvested once with metrics, and when that was.
fn harvested() -> (Server, Harness, f64) {
    let (server, harness) = stage(Quirks::default(), 5);
    tick(&server, &harness, &[]).expect_code(0);
    let succeeded = Metrics::in_file(&harness).get(&server.url(), SUCCEEDED).expect("a success");
    // So that a later time cannot pass for it.
    let earlier = "UPDATE harvest_state SET last_success_at = '2025-06-01T00:00:00Z'";
    Connection::open(harness.path("harvest_state.db")).unwrap().execute_batch(earlier).unwrap();
    assert!(succeeded > 1_700_000_000.0);
    (server, harness, 1_748_736_000.0)
}

#[test]
fn a_complete_run_tells_everything_that_the_readme_lists() {
    let (server, harness) = stage(Quirks::default(), 5);
    tick(&server, &harness, &[]).expect_code(0);
    let source = server.url();
    let first = Metrics::in_file(&harness);
    for (name, value) in [
        (CODE, 0.0),
        ("csw_harvester_last_run_success", 1.0),
        ("csw_harvester_last_run_matched_records", 5.0),
        ("csw_harvester_last_run_requests", server.asked() as f64),
        ("csw_harvester_watermark_timestamp_seconds", 1_735_704_000.0),
        (HELD, 5.0),
        ("csw_harvester_problems", 0.0),
    ] {
        assert_eq!(first.get(&source, name), Some(value), "{name}");
    }
    assert_eq!(first.of_result(&source, "csw_harvester_last_run_records", Some("new")), Some(5.0));
    assert_eq!(first.of_result(&source, "csw_harvester_last_run_records", Some("updated")), Some(0.0));
    assert!(first.get(&source, "csw_harvester_last_run_response_bytes") > Some(1_000.0));

    let inventory = "UPDATE harvest_state SET inventory_at = '2025-06-01T00:00:00Z'";
    Connection::open(harness.path("harvest_state.db")).unwrap().execute_batch(inventory).unwrap();
    tick(&server, &harness, &[]).expect_code(0);
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    let told: BTreeSet<String> =
        readme.lines().filter_map(|line| Some(line.strip_prefix("| `csw_harvester_")?.split_once('`')?.0.to_owned())).collect();
    let told: BTreeSet<String> = told.into_iter().map(|name| format!("csw_harvester_{name}")).collect();
    assert_eq!(Metrics::in_file(&harness).names(), told);
}

#[test]
fn the_file_is_for_all_to_read_whatever_the_umask_and_alone() {
    let (server, harness) = stage(Quirks::default(), 5);
    let harness = harness.with_binary(Path::new("sh"));
    let url = server.url();
    for _ in 0..2 {
        let binary = env!("CARGO_BIN_EXE_csw-harvester");
        let masked = ["-c", "umask 077; exec \"$0\" \"$@\"", binary, "harvest", &url, "--metrics-file", FILE];
        harness.run(&masked).expect_code(0);
        let mode = |name: &str| std::fs::metadata(harness.path(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(FILE), mode("harvest_state.db")), (0o644, 0o600));
        let left: Vec<_> = files(harness.folder()).into_keys().filter(|name| name.contains("prom")).collect();
        assert_eq!(left, [FILE]);
    }
}

#[test]
fn the_last_success_is_kept_through_failures_by_the_store() {
    let (server, harness, succeeded) = harvested();
    let source = server.url();
    server.fault_when(|_| true, Fault::Reply(Reply::xml(exc("NoApplicableCode", "", "Out of order"))));
    std::fs::remove_file(harness.path(FILE)).unwrap();
    tick(&server, &harness, &["--retries", "0"]).expect_code(76);
    let metrics = Metrics::in_file(&harness);
    assert_eq!(metrics.get(&source, CODE), Some(76.0));
    assert_eq!(metrics.get(&source, "csw_harvester_last_run_success"), Some(0.0));
    assert_eq!(metrics.get(&source, SUCCEEDED), Some(succeeded));
    assert_eq!(metrics.get(&source, HELD), Some(5.0));
}

#[test]
fn the_last_success_is_carried_over_where_the_store_cannot_be_read() {
    let (server, harness, succeeded) = harvested();
    let source = server.url();
    tick(&server, &harness, &["--page-size", "0"]).expect_code(64);
    let before = Metrics::in_file(&harness).get(&source, SUCCEEDED);
    harness.write("harvest_state.db", "Buy milk.\n");
    for (more, code) in
        [(&[][..], 78), (&["--db", "missing/state.db"], 73), (&["--page-size", "0"], 64), (&["--ca-file", "none"], 78)]
    {
        tick(&server, &harness, more).expect_code(code);
        let metrics = Metrics::in_file(&harness);
        assert_eq!(metrics.get(&source, CODE), Some(f64::from(code)), "{more:?}");
        assert_eq!(metrics.get(&source, SUCCEEDED), before, "{more:?}");
        assert_eq!(metrics.get(&source, HELD), None, "{more:?}");
    }
    assert_ne!(before, None);
    assert_ne!(before, Some(succeeded), "the file was older than the store");
}

#[test]
fn a_success_is_never_made_up() {
    let (server, harness) = stage(Quirks::default(), 5);
    tick(&server, &harness, &["--page-size", "0"]).expect_code(64);
    assert_eq!(Metrics::in_file(&harness).get(&server.url(), SUCCEEDED), None);
    // The file of another source is no source of times.
    let other = format!("{SUCCEEDED}{{source=\"other\"}} 7\n");
    harness.write(FILE, other);
    server.fault_when(|_| true, Fault::status(401));
    tick(&server, &harness, &[]).expect_code(77);
    let metrics = Metrics::in_file(&harness);
    assert_eq!(metrics.get(&server.url(), SUCCEEDED), None);
    assert_eq!(metrics.get(&server.url(), "csw_harvester_watermark_timestamp_seconds"), None, "the first harvest is not complete");
    assert_eq!(metrics.get(&server.url(), HELD), Some(0.0));
}

#[test]
fn options_that_make_no_sense_are_told_under_the_source_of_the_file() {
    let (server, harness, _) = harvested();
    let source = server.url();
    harness.run(&["harvest", "htp:/oops", "--metrics-file", FILE]).expect_code(64);
    assert_eq!(Metrics::in_file(&harness).get(&source, CODE), Some(64.0));
    harness.run(&["harvest", "--no-such-option", "--metrics-file", FILE, "--source", "named"]).expect_code(64);
    assert_eq!(Metrics::in_file(&harness).get("named", CODE), Some(64.0));
    harness.run(&["harvest", "http://me:hunter2@oops/csw", "--metrics-file", FILE, "--no-such-option"]).expect_code(64);
    assert_eq!(Metrics::in_file(&harness).get("http://oops/csw", CODE), Some(64.0));
    std::fs::remove_file(harness.path(FILE)).unwrap();
    harness.run(&["harvest", "me:hunter2@oops", "--metrics-file", FILE]).expect_code(64);
    assert_eq!(Metrics::in_file(&harness).get("oops", CODE), Some(64.0));
}

#[test]
fn a_run_that_was_cut_off_and_one_that_was_skipped_are_told() {
    let mut catalogue = catalogue(Quirks::default(), 30);
    for number in 12..=20 {
        catalogue.change(&format!("r-{number:06}"), |record| record.poison = Some(Poison::Http(503)));
    }
    let (server, harness) = play(catalogue);
    let source = server.url();
    tick(&server, &harness, &["--page-size", "10", "--retries", "0"]).expect_code(69);
    let metrics = Metrics::in_file(&harness);
    assert_eq!(metrics.of_result(&source, "csw_harvester_last_run_records", Some("new")), Some(11.0));
    assert_eq!(metrics.get(&source, HELD), Some(11.0));
    assert_eq!(metrics.get(&source, CODE), Some(69.0));

    server.clear_faults();
    server.fault_times(1, |entry| entry.page().is_some(), Fault::Stall);
    let running = harness.spawn(&["harvest", &source]);
    assert!(server.wait_for_stall(LONG), "{}", server.journal().told());
    tick(&server, &harness, &[]).expect_code(75);
    let metrics = Metrics::in_file(&harness);
    assert_eq!(metrics.get(&source, CODE), Some(75.0));
    assert_eq!(metrics.get(&source, HELD), Some(11.0), "the other run does not lock out the look into the store");
    running.signal("TERM");
    server.release();
    running.wait();
}

#[test]
fn a_dry_run_and_check_tell_nothing() {
    let (server, harness) = stage(Quirks::default(), 5);
    let gateway = Pushgateway::answering(&[200]);
    tick(&server, &harness, &["--dry-run", "--metrics-push", &gateway.url]).expect_code(0);
    tick(&server, &harness, &["--dry-run", "--metrics-push", &gateway.url, "--page-size", "0"]).expect_code(64);
    assert!(files(harness.folder()).is_empty());
    assert!(gateway.pushed().is_empty());
    harness.run(&["check", &server.url(), "--metrics-file", FILE]).expect_code(64);
}

#[test]
fn a_place_that_cannot_hold_the_file_is_78_before_anything_is_asked() {
    let (server, harness) = stage(Quirks::default(), 5);
    for place in ["missing/csw.prom", ".", "/dev/null"] {
        let outcome = harness.harvest_quickly(&server, &["--metrics-file", place]);
        outcome.expect_code(if place == "." { 64 } else { 78 }).expect_stderr("--metrics-file");
    }
    assert!(files(harness.folder()).is_empty());
    assert_eq!(server.asked(), 0);
}

#[test]
fn a_file_that_cannot_be_written_at_the_end_is_a_warning() {
    let (server, harness) = stage(Quirks::default(), 5);
    std::fs::create_dir(harness.path("gone")).unwrap();
    let folder = harness.path("gone");
    server.after_request(move |_, _| {
        let _ = std::fs::remove_dir(&folder);
    });
    let outcome = harness.harvest_quickly(&server, &["--metrics-file", "gone/csw.prom"]).expect_code(0);
    let outcome = outcome.expect_stderr("WARN").expect_stderr("could not be written to gone/csw.prom");
    assert!(outcome.stderr.lines().last().unwrap().contains("Harvest complete"), "{}", outcome.stderr);
}

#[test]
fn a_gateway_gets_what_the_file_gets_in_the_group_of_the_source() {
    let (server, harness) = stage(Quirks::default(), 5);
    let gateway = Pushgateway::answering(&[200]);
    harness.write("password", "hunter2");
    let secret = ["--user", "me", "--password-file", "password", "--header", "X-Key: hunter2"];
    let push = ["--metrics-push", &gateway.url, "--source", "a/b"];
    tick(&server, &harness, &[&push[..], &secret].concat()).expect_code(0).expect("no warning", |o| !o.stderr.contains("WARN"));
    let pushed = gateway.pushed();
    assert_eq!(pushed.len(), 1, "{pushed:?}");
    assert_eq!(pushed[0].line, "put /metrics/job/csw_harvester/source@base64/ys9i http/1.1");
    assert!(pushed[0].header.contains("\r\ncontent-type: text/plain; version=0.0.4; charset=utf-8\r\n"), "{}", pushed[0].header);
    assert_eq!(pushed[0].body, std::fs::read_to_string(harness.path(FILE)).unwrap());
    assert!(!pushed[0].header.contains("authorization") && !pushed[0].header.contains("hunter2"), "{}", pushed[0].header);
}

#[test]
fn without_a_known_success_the_gateway_keeps_what_it_has() {
    let (server, harness) = stage(Quirks::default(), 5);
    let gateway = Pushgateway::answering(&[202]);
    harness.harvest_quickly(&server, &["--metrics-push", &gateway.url, "--page-size", "0"]).expect_code(64);
    harness.harvest_quickly(&server, &["--metrics-push", &gateway.url]).expect_code(0);
    let lines: Vec<String> = gateway.pushed().iter().map(|pushed| pushed.line.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(lines, ["post", "put"]);
}

#[test]
fn credentials_of_the_gateway_go_to_it_and_into_no_log() {
    let (server, harness) = stage(Quirks::default(), 5);
    let gateway = Pushgateway::answering(&[401]);
    let url = gateway.url.replace("http://", "http://me:hunter2@") + "/metrics/job/geo";
    let outcome = tick(&server, &harness, &["--metrics-push", &url]).expect_code(0);
    let outcome = outcome.expect_stderr("WARN").expect_stderr("HTTP 401 said");
    assert!(!outcome.stderr.contains("hunter2"), "{}", outcome.stderr);
    assert!(!std::fs::read_to_string(harness.path(FILE)).unwrap().contains("hunter2"));
    let pushed = gateway.pushed();
    assert_eq!(pushed.len(), 1, "401 is final: {pushed:?}");
    assert!(pushed[0].header.contains("authorization: basic bwu6ahvudgvymg=="), "{}", pushed[0].header);
    assert!(pushed[0].line.starts_with("put /metrics/job/geo/source@base64/"), "{}", pushed[0].line);
    assert!(server.requests().iter().all(|entry| entry.header("authorization").is_none()));
}

#[test]
fn a_gateway_in_trouble_is_asked_once_more_and_changes_no_exit_code() {
    for (statuses, requests, warning) in [
        (&[503, 200][..], 2, None),
        (&[503, 500], 2, Some("HTTP 500 said")),
        (&[400], 1, Some("HTTP 400 said")),
        (&[302], 1, Some("redirect")),
    ] {
        let (server, harness) = stage(Quirks::default(), 5);
        let gateway = Pushgateway::answering(statuses);
        let outcome = harness.harvest_quickly(&server, &["--json", "--metrics-push", &gateway.url]).expect_code(0);
        assert_eq!(gateway.pushed().len(), requests, "{statuses:?}");
        let outcome = outcome.expect_json("outcome", "\"complete\"");
        let outcome = outcome.expect("a warning or none", |o| o.stderr.contains("WARN") == warning.is_some());
        outcome.expect_stderr(warning.unwrap_or("Harvest complete"));
    }
}

#[test]
fn a_gateway_that_never_answers_or_is_not_there_keeps_nobody() {
    let (server, harness) = stage(Quirks::default(), 5);
    let gateway = Pushgateway::answering(&[0]);
    let outcome =
        harness.harvest_quickly(&server, &["--metrics-push", &gateway.url]).expect_code(0).expect_stderr("could not be pushed");
    // By limits of its own, not by --timeout.
    outcome.expect("few seconds", |outcome| outcome.stderr.contains("out of time") && outcome.stderr.contains(" 3 s"));
    assert_eq!(gateway.pushed().len(), 2);
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", nobody.local_addr().unwrap());
    drop(nobody);
    server.catalogue().advance(HOUR);
    let outcome = harness.harvest_quickly(&server, &["--metrics-push", &url]).expect_code(0);
    outcome.expect_stderr("could not be pushed").expect_stderr("no connection");
}

#[test]
fn the_push_goes_through_the_proxy_of_the_environment() {
    let (server, mut harness) = stage(Quirks::default(), 5);
    let proxy = Pushgateway::answering(&[503]);
    harness.set_env("HTTP_PROXY", &proxy.url);
    harness.set_env("NO_PROXY", &format!("127.0.0.1:{}", server.address().port()));
    harness.harvest_quickly(&server, &["--metrics-push", "http://pushgateway.invalid:9091"]).expect_code(0).expect_stderr("proxy");
    assert_ne!(harness.store().watermark(), FIRST);
}
