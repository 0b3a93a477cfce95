//! The server's threads: one that accepts, one for each connection, at most `CONNECTIONS_MAX`.
//!
//! Every request is settled one at a time: read, given its fault, answered by the model or the script, put into the journal, shown to the
//! hook. Then the answer is sent.

#[path = "wire.rs"]
mod wire;

use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::super::canned::Reply;
use super::super::faults::{After, Fault, Wishes, deliver, strike};
use super::super::journal::{Entry, lock};
use super::super::model::{ModelAnswer, ModelRequest, Report};
use super::super::quirks::{Bindings, Quirks, Versions};
use super::super::requests::{Operation, from_body, from_target};
use super::super::stamps::http_date;
use super::super::xml::{self, Envelope};
use super::{DateHeader, Settings, Shared, Stall};

const CONNECTIONS_MAX: usize = 64;
const DRIP_MAX: Duration = Duration::from_secs(60);

pub(super) fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut connections: Vec<JoinHandle<()>> = Vec::new();
    let mut number = 0;
    for stream in listener.incoming() {
        if shared.stopped.load(Ordering::SeqCst) {
            break;
        }
        let Ok(stream) = stream else { continue };
        connections.retain(|connection| !connection.is_finished());
        if connections.len() >= CONNECTIONS_MAX {
            continue;
        }
        number += 1;
        if let Ok(copy) = stream.try_clone() {
            lock(&shared.streams).insert(number, copy);
        }
        let shared = Arc::clone(shared);
        connections.push(std::thread::spawn(move || {
            serve(&stream, number, &shared);
            // The copy holds the socket open, and a reset is only sent when the last one goes.
            lock(&shared.streams).remove(&number);
        }));
    }
    for stream in lock(&shared.streams).values() {
        let _ = stream.shutdown(Shutdown::Both);
    }
    for connection in connections {
        let _ = connection.join();
    }
}

fn serve(stream: &TcpStream, connection: u64, shared: &Shared) {
    let stopped = || shared.stopped.load(Ordering::SeqCst);
    let _ = stream.set_nodelay(true);
    while let Some(request) = wire::read_request(stream, &stopped) {
        let wishes = Wishes {
            gzip: request.header("accept-encoding").is_some_and(|value| value.contains("gzip")),
            keep_alive: !request.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close")),
        };
        let (reply, fault) = settle(request, connection, shared);
        match &fault {
            Some(Fault::Stall) => stall(shared),
            Some(Fault::Late(wait)) => wire::pause(*wait, &stopped),
            _ => {}
        }
        let date = date(shared);
        let delivery = deliver(reply, fault.as_ref(), date.as_deref(), wishes);
        if delivery.after != After::Reset && wire::take_last_byte(stream).is_err() {
            return;
        }
        if wire::send(stream, &delivery, DRIP_MAX, &stopped).is_err() || delivery.after != After::Keep {
            return;
        }
    }
}

// What is answered to one request, and what then happens to the answer; the journal and the hook have seen it.
fn settle(request: wire::Incoming, connection: u64, shared: &Shared) -> (Reply, Option<Fault>) {
    let _one_at_a_time = lock(&shared.settling);
    let settings = lock(&shared.settings).clone();
    let quirks = lock(&shared.catalogue).quirks().clone();
    let operation = match request.method.as_str() {
        "POST" => from_body(&request.body, &quirks),
        _ => from_target(&request.target, &quirks),
    };
    let mut entry = Entry {
        number: lock(&shared.journal.entries).len() + 1,
        connection,
        method: request.method,
        target: request.target,
        headers: request.headers,
        body: request.body,
        operation,
        answered: String::new(),
    };
    let fault = strike(&mut lock(&shared.faults), &entry);
    let (reply, told) = match fault.as_ref().and_then(Fault::in_place) {
        Some(reply) => (reply, String::new()),
        None => right_answer(&entry, &settings, &quirks, shared),
    };
    entry.answered = match &fault {
        Some(fault) => wire::shortened(&format!("{told} {fault:?}")),
        None => told,
    };
    lock(&shared.journal.entries).push(entry.clone());
    shared.journal.grown.notify_all();
    if let Some(hook) = lock(&shared.hook).as_mut() {
        hook(&mut lock(&shared.catalogue), &entry);
    }
    (reply, fault)
}

fn right_answer(entry: &Entry, settings: &Settings, quirks: &Quirks, shared: &Shared) -> (Reply, String) {
    if let Some((name, password)) = &settings.basic
        && entry.header("authorization") != Some(&wire::basic(name, password))
    {
        let reply = Reply::of(401, "text/html", xml::html("Unauthorized"));
        return (reply.with_header("WWW-Authenticate", "Basic realm=\"catalogue\""), "401".to_owned());
    }
    let operation = match &entry.operation {
        Ok(operation) => operation,
        Err(report) => return reported(report, settings),
    };
    let allowed = match quirks.bindings {
        Bindings::Both => true,
        Bindings::PostOnly => entry.method == "POST",
        Bindings::GetOnly => entry.method == "GET",
    };
    if !allowed && *operation != Operation::GetCapabilities {
        return (Reply::of(405, "text/html", xml::html("Method Not Allowed")), "405".to_owned());
    }
    if let Some(reply) = lock(&shared.script).as_mut().and_then(|script| script.answer(operation)) {
        let told = wire::shortened(&String::from_utf8_lossy(&reply.body));
        return (reply, told);
    }
    match operation {
        Operation::GetCapabilities => {
            let endpoint = format!("http://{}{}", shared.address, entry.path());
            let (status, media_type, body) = xml::capabilities(&settings.capabilities, &endpoint, quirks);
            let body = match quirks.versions {
                Versions::Only300 => xml::in_version("3.0.0", body),
                _ => body,
            };
            (Reply::of(status, media_type, body), format!("{status} capabilities"))
        }
        Operation::GetRecords(request) => {
            let answer = lock(&shared.catalogue).answer(request);
            rendered(answer, request, settings, quirks)
        }
        Operation::GetRecordById { identifiers, schema, element_set } => {
            let (found, failure) = {
                let catalogue = lock(&shared.catalogue);
                let found = catalogue.by_ids(identifiers);
                let failure = found.iter().find_map(|record| catalogue.failure(record, schema));
                (found, failure)
            };
            match failure {
                Some(ModelAnswer::Report(report)) => reported(&report, settings),
                Some(ModelAnswer::Http { status, body }) => (Reply::of(status, "text/plain", body), status.to_string()),
                _ => {
                    let body = xml::by_id(settings.rendering, quirks, (schema, *element_set), &found);
                    (Reply::of(200, &settings.media_type, body), format!("200 {} by id", found.len()))
                }
            }
        }
    }
}

fn reported(report: &Report, settings: &Settings) -> (Reply, String) {
    let body = xml::exception_report(settings.report_face, report);
    let told = wire::shortened(&format!("{} {} {}: {}", report.status, report.code, report.locator, report.text));
    (Reply::of(report.status, &settings.media_type, body), told)
}

fn rendered(answer: ModelAnswer, request: &ModelRequest, settings: &Settings, quirks: &Quirks) -> (Reply, String) {
    let (matched, returned, next, records, timestamp) = match answer {
        ModelAnswer::Report(report) => return reported(&report, settings),
        ModelAnswer::Http { status, body } => return (Reply::of(status, "text/plain", body), status.to_string()),
        ModelAnswer::Results { matched, returned, next, records, timestamp } => (matched, returned, next, records, timestamp),
    };
    let told = format!("200 matched {matched:?} records {} next {next:?}", records.len());
    let envelope = Envelope {
        matched: matched.as_deref(),
        returned,
        next,
        timestamp: &timestamp,
        schema: &request.schema,
        element_set: request.element_set,
        version: request.version,
    };
    let records = xml::records(settings.rendering, quirks, (&request.schema, request.element_set), &records);
    (Reply::of(200, &settings.media_type, xml::envelope(settings.rendering, &envelope, &records)), told)
}

fn stall(shared: &Shared) {
    let mut stall = lock(&shared.stall);
    stall.waiting += 1;
    shared.stall_changed.notify_all();
    let waits = |stall: &mut Stall| !stall.released && !shared.stopped.load(Ordering::SeqCst);
    let mut stall = shared.stall_changed.wait_while(stall, waits).unwrap_or_else(PoisonError::into_inner);
    stall.waiting -= 1;
}

fn date(shared: &Shared) -> Option<String> {
    let header = lock(&shared.settings).date;
    match header {
        DateHeader::Absent => None,
        DateHeader::Model => Some(http_date(lock(&shared.catalogue).now())),
        DateHeader::Real => {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
            Some(http_date(since.as_micros() as i64))
        }
    }
}
