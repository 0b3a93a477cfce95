//! The canned catalogue: a process of its own, so that its work is nobody else's, with a page for every url of the form
//! `/KIND/RECORD_BYTES/RECORDS/THINK_MS/csw`.
//!
//! It listens on 127.0.0.1 and knows as much of CSW 2.0.2 by POST as a harvest asks: capabilities, startPosition, maxRecords, hits, a
//! filter and a sort on the modified date. Requests are not parsed, their parts are looked for as text. It ends when its stdin does.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use time::OffsetDateTime;

use crate::records::{Holdings, Kind, Pages, stamp};

const BODY_BYTES_MAX: usize = 1 << 20;
const CATALOGUES_MAX: usize = 16;

/// What the catalogue did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Served {
    pub(crate) connections: u64,
    pub(crate) requests: u64,
    pub(crate) thought_ms: u64,
}

/// The catalogue as a child of the benchmark.
pub(crate) struct Catalogue {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    port: u16,
}

impl Catalogue {
    pub(crate) fn start() -> Catalogue {
        let program = std::env::current_exe().expect("a path to this program");
        let mut command = Command::new(program);
        command.arg("catalogue").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a catalogue");
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let mut catalogue = Catalogue { child, stdin, stdout, port: 0 };
        catalogue.port = catalogue.line().parse().expect("a port");
        catalogue
    }

    pub(crate) fn url(&self, holdings: Holdings, think: Duration) -> String {
        let Holdings { kind, record_bytes, records } = holdings;
        format!("http://127.0.0.1:{}/{}/{record_bytes}/{records}/{}/csw", self.port, kind.name(), think.as_millis())
    }

    /// What it did since it was asked last.
    pub(crate) fn served(&mut self) -> Served {
        writeln!(self.stdin.as_mut().expect("open"), "served").expect("a catalogue that listens");
        let line = self.line();
        let mut numbers = line.split(' ').map(|number| number.parse().expect("a number"));
        let mut next = || numbers.next().expect("three numbers");
        Served { connections: next(), requests: next(), thought_ms: next() }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("a line of the catalogue");
        line.trim_end().to_owned()
    }
}

impl Drop for Catalogue {
    fn drop(&mut self) {
        self.stdin.take();
        let _ = self.child.wait();
    }
}

#[derive(Default)]
struct Counts {
    connections: AtomicU64,
    requests: AtomicU64,
    thought_ms: AtomicU64,
}

/// The child's part: says its port, then what it did as often as a line comes in.
pub(crate) fn serve() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port on the loopback");
    let port = listener.local_addr().expect("an address").port();
    let counts = Arc::new(Counts::default());
    let counting = Arc::clone(&counts);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            counting.connections.fetch_add(1, Ordering::SeqCst);
            let counts = Arc::clone(&counting);
            std::thread::spawn(move || converse(stream, &counts));
        }
    });
    let mut stdout = io::stdout();
    writeln!(stdout, "{port}").expect("a parent that reads");
    for _ in io::stdin().lines().map_while(Result::ok) {
        let taken = |count: &AtomicU64| count.swap(0, Ordering::SeqCst);
        let Counts { connections, requests, thought_ms } = &*counts;
        writeln!(stdout, "{} {} {}", taken(connections), taken(requests), taken(thought_ms)).expect("a parent that reads");
    }
}

struct Request {
    target: String,
    host: String,
    body: String,
}

fn converse(stream: TcpStream, counts: &Counts) {
    let _ = stream.set_nodelay(true);
    let mut reader = BufReader::new(stream);
    let mut known: Vec<(String, Pages)> = Vec::new();
    let mut page = String::new();
    while let Some(request) = read_request(&mut reader) {
        counts.requests.fetch_add(1, Ordering::SeqCst);
        let place = request.target.split('?').next().unwrap_or_default().to_owned();
        if !known.iter().any(|(known, _)| *known == place) {
            let Some(holdings) = holdings_of(&place) else { return };
            if known.len() >= CATALOGUES_MAX {
                known.clear();
            }
            known.push((place.clone(), Pages::new(holdings)));
        }
        let Some((_, pages)) = known.iter().find(|(known, _)| *known == place) else { return };
        if request.body.is_empty() {
            page = capabilities(&format!("http://{}{place}", request.host));
        } else {
            let think = place.split('/').nth(4).and_then(|think| think.parse().ok()).unwrap_or(0);
            std::thread::sleep(Duration::from_millis(think));
            counts.thought_ms.fetch_add(think, Ordering::SeqCst);
            answer(pages, &request.body, &mut page);
        }
        if send(reader.get_mut(), &page).is_err() {
            return;
        }
    }
}

fn holdings_of(place: &str) -> Option<Holdings> {
    let mut parts = place.split('/').skip(1);
    let kind = Kind::named(parts.next()?)?;
    Some(Holdings { kind, record_bytes: parts.next()?.parse().ok()?, records: parts.next()?.parse().ok()? })
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let target = line.split(' ').nth(1)?.to_owned();
    let (mut host, mut length) = (String::new(), 0);
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "host" => value.trim().clone_into(&mut host),
            "content-length" => length = value.trim().parse().ok()?,
            _ => {}
        }
    }
    if length > BODY_BYTES_MAX {
        return None;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { target, host, body: String::from_utf8(body).ok()? })
}

fn send(stream: &mut TcpStream, body: &str) -> io::Result<()> {
    let now = OffsetDateTime::from(SystemTime::now());
    let (weekday, month) = (now.weekday().to_string(), now.month().to_string());
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/xml; charset=utf-8\r\nContent-Length: {}\r\n\
         Date: {:.3}, {:02} {:.3} {} {:02}:{:02}:{:02} GMT\r\n\r\n",
        body.len(),
        weekday,
        now.day(),
        month,
        now.year(),
        now.hour(),
        now.minute(),
        now.second(),
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    Some(text.split_once(start)?.1.split_once(end)?.0)
}

fn answer(pages: &Pages, request: &str, page: &mut String) {
    let number = |name: &str| between(request, &format!(" {name}=\""), "\"").and_then(|value| value.parse::<u64>().ok());
    let records = pages.holdings().records;
    let (mut first, mut past) = (0, records);
    for (operator, reaches) in
        [("PropertyIsGreaterThan>", reaches_after as fn(&str, &str) -> bool), ("PropertyIsGreaterThanOrEqualTo>", reaches_from)]
    {
        if let Some(literal) = literal_of(request, operator) {
            first = first_that(records, |record| reaches(&stamp(record), literal));
        }
    }
    if let Some(literal) = literal_of(request, "PropertyIsLessThanOrEqualTo>") {
        past = first_that(records, |record| stamp(record).as_str() > literal);
    }
    let matched = past.saturating_sub(first);
    let start_position = number("startPosition").unwrap_or(1).max(1);
    let hits = request.contains("resultType=\"hits\"");
    let count = if hits { 0 } else { number("maxRecords").unwrap_or(10).min((matched + 1).saturating_sub(start_position)) };
    let descending = request.contains("SortOrder>DESC<");
    let wanted: Vec<u64> = (start_position..start_position + count)
        .map(|position| if descending { past - position } else { first + position - 1 })
        .collect();
    pages.write(page, &wanted, start_position, matched);
}

fn reaches_after(stamp: &str, literal: &str) -> bool {
    stamp > literal
}

fn reaches_from(stamp: &str, literal: &str) -> bool {
    stamp >= literal
}

fn literal_of<'a>(request: &'a str, operator: &str) -> Option<&'a str> {
    let (_, after) = request.split_once(operator)?;
    between(after, "Literal>", "<").map(str::trim)
}

/// The first record of which it is true; it is true of all that follow.
fn first_that(records: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, records);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

fn capabilities(url: &str) -> String {
    let operation = |name: &str, parameters: &str| {
        format!(
            "<ows:Operation name=\"{name}\"><ows:DCP><ows:HTTP><ows:Get xlink:href=\"{url}\"/><ows:Post xlink:href=\"{url}\"/></ows:HTTP>\
             </ows:DCP>{parameters}</ows:Operation>"
        )
    };
    let schemas: String = [Kind::Dc, Kind::Iso].iter().map(|kind| format!("<ows:Value>{}</ows:Value>", kind.schema())).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<csw:Capabilities xmlns:csw=\"http://www.opengis.net/cat/csw/2.0.2\" \
         xmlns:ows=\"http://www.opengis.net/ows\" xmlns:ogc=\"http://www.opengis.net/ogc\" \
         xmlns:xlink=\"http://www.w3.org/1999/xlink\" version=\"2.0.2\"><ows:ServiceIdentification><ows:Title>Canned</ows:Title>\
         <ows:ServiceType>CSW</ows:ServiceType><ows:ServiceTypeVersion>2.0.2</ows:ServiceTypeVersion></ows:ServiceIdentification>\
         <ows:OperationsMetadata>{}{}</ows:OperationsMetadata><ogc:Filter_Capabilities/></csw:Capabilities>",
        operation("GetCapabilities", ""),
        operation(
            "GetRecords",
            &format!(
                "<ows:Parameter name=\"outputSchema\">{schemas}</ows:Parameter>\
                 <ows:Constraint name=\"SupportedDublinCoreQueryables\"><ows:Value>dct:modified</ows:Value></ows:Constraint>"
            )
        ),
    )
}
