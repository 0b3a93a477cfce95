//! One question to the catalogue: the request, its attempts, and what the answer is.
//!
//! Joins `csw/` (words), `http.rs` (one exchange) and `retry.rs` (attempts), and counts the traffic. What is asked next is not
//! decided here.

use std::time::{Duration, Instant};

use crate::clock::{Clock, SystemClock};
use crate::csw::capabilities::{self, Capabilities};
use crate::csw::exception::{AnswerError, Class, classify, classify_status};
use crate::csw::request::{self, Phrasing};
use crate::csw::response::{self, Records, SearchResults};
use crate::csw::user_filter::UserFilter;
use crate::csw::{Binding, Lower, OutputSchema, Query, ResultType, xml};
use crate::dialect::Dialect;
use crate::http::{Courier, Method, Request, Response, TransportError, escape_outside_text, without_credentials};
use crate::retry::{self, Attempted, Random, RetryEnd, RetryPolicy};
use crate::signal::{Stop, Stopped};
use crate::timestamp::{Micros, SECOND, micros_from, parse};

/// Secrets that are shorter are not looked for in messages.
const SECRET_BYTES_MIN: usize = 4;
/// How far the catalogue's clock may be ahead of ours and be believed.
const CLOCK_AHEAD_MAX: Micros = 24 * 3_600 * SECOND;

/// An answer to GetRecords.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Counters and records.
    pub results: SearchResults,
    /// The catalogue's time: HTTP `Date`, else `SearchStatus/@timestamp`, else our own; our own too where that is far ahead of it.
    pub server_now: Micros,
}

/// How many attempts a question is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// All that the user allows.
    Full,
    /// One more after the first: while a page that failed is being halved.
    Short,
}

/// Anything that answers GetCapabilities and GetRecords.
pub trait Catalogue {
    /// GetCapabilities; `None` when what comes is of no use, which is no reason to stop.
    ///
    /// # Errors
    /// Only for access, an unreachable server and being told to stop.
    fn get_capabilities(&mut self, base: &str) -> Result<Option<Capabilities>, Failure>;

    /// Tells what will be asked next, so that it can be on its way already.
    fn begin(&mut self, dialect: &Dialect, query: &Query) {
        let _ = (dialect, query);
    }

    /// The answer to this question, if it was begun, is here within that time and is of use. What it does not give,
    /// [`Catalogue::get_records`] does.
    fn answered(&mut self, dialect: &Dialect, query: &Query, within: Duration) -> Option<Answer> {
        let _ = (dialect, query, within);
        None
    }

    /// Asks, and tries again as often as `patience` allows.
    ///
    /// # Errors
    /// [`Failure`], after the last attempt.
    fn get_records(&mut self, dialect: &Dialect, query: &Query, patience: Patience) -> Result<Answer, Failure>;

    /// Asks for the whole records of these identifiers by GetRecordById. What the catalogue does not give is not in the answer; where it
    /// answers 404, or a report that is not of its own trouble, none is.
    ///
    /// # Errors
    /// [`Failure`], after the last attempt.
    fn get_records_by_id(&mut self, dialect: &Dialect, identifiers: &[&str], patience: Patience) -> Result<Records, Failure>;

    /// What the traffic came to so far.
    fn traffic(&self) -> Traffic;

    /// Whether gzip came as it was labelled so far.
    fn gzip(&self) -> bool;
}

/// Of which kind a failure is: what may be done about it, and which exit code it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// 401, 403, 407.
    Access,
    /// No way to the server: name, connection, certificate, redirect.
    Unreachable,
    /// Time-out, 5xx, cut or broken body, "retry later".
    Unavailable,
    /// The body is larger than allowed.
    TooLarge,
    /// Well delivered, and no CSW answer.
    NotCsw,
    /// A report about startPosition.
    PastTheEnd,
    /// A report that the offset is too deep.
    Ceiling,
    /// A report about a name or a form that this catalogue does not know.
    Dialect,
    /// A report about what is in one page.
    BadPage,
    /// Any other report.
    Report,
    /// A bug of ours.
    Fault,
    /// We were told to stop.
    Stopped(Stopped),
}

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its kind.
    pub kind: FailureKind,
    /// What was attempted, on which url, and what came back.
    pub message: String,
    transient: bool,
    retry_after_s: Option<u64>,
    reported: bool,
    schema_refused: bool,
}

impl Failure {
    /// A failure that no further attempt would mend.
    #[must_use]
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Failure { kind, message: message.into(), transient: false, retry_after_s: None, reported: false, schema_refused: false }
    }
}

impl Failure {
    /// Whether a catalogue spoke: an exception report came.
    #[must_use]
    pub fn is_report(&self) -> bool {
        self.reported
    }

    /// Whether it is a report that refuses the output schema or the type names.
    #[must_use]
    pub fn refuses_schema(&self) -> bool {
        self.schema_refused
    }
}

impl Attempted for Failure {
    fn transient(&self) -> bool {
        self.transient
    }

    fn retry_after_s(&self) -> Option<u64> {
        self.retry_after_s
    }

    fn stopped(&self) -> Option<Stopped> {
        match self.kind {
            FailureKind::Stopped(stopped) => Some(stopped),
            _ => None,
        }
    }
}

/// What the traffic came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Requests sent, attempts included.
    pub requests: u64,
    /// Attempts after the first.
    pub retries: u64,
    /// Bytes of bodies, decompressed.
    pub bytes: u64,
}

/// A catalogue behind HTTP.
pub struct HttpCatalogue {
    line: Line,
    policy: RetryPolicy,
    random: Random,
    stop: Stop,
    schema: OutputSchema,
    user_filter: Option<UserFilter>,
    /// Not to be shown, also where the catalogue quotes what it was sent.
    secrets: Vec<String>,
}

/// The wire: one request at a time, with the least delay between two.
struct Line {
    courier: Courier,
    stop: Stop,
    delay: Duration,
    last_sent: Option<Instant>,
    under_way: Option<Request>,
    traffic: Traffic,
    gzip: bool,
    answered: bool,
    clock_ahead: Option<Micros>,
}

impl HttpCatalogue {
    /// A catalogue that is asked through `courier`.
    #[must_use]
    pub fn new(courier: Courier, policy: RetryPolicy, delay: Duration, schema: OutputSchema, stop: Stop) -> Self {
        let line = Line {
            courier,
            stop: stop.clone(),
            delay,
            last_sent: None,
            under_way: None,
            traffic: Traffic::default(),
            gzip: true,
            answered: false,
            clock_ahead: None,
        };
        HttpCatalogue { line, policy, random: Random::from_process(), stop, schema, user_filter: None, secrets: Vec::new() }
    }

    /// The same, with texts that no message shows. What is shorter than a few characters could be any word and is let go.
    #[must_use]
    pub fn hiding(self, secrets: Vec<String>) -> Self {
        let secrets = secrets.into_iter().filter(|secret| secret.len() >= SECRET_BYTES_MIN).collect();
        HttpCatalogue { secrets, ..self }
    }

    /// The same, of which the user wants only what this filter selects.
    #[must_use]
    pub fn filtered_by(self, user_filter: Option<UserFilter>) -> Self {
        HttpCatalogue { user_filter, ..self }
    }

    /// How far the catalogue's clock (HTTP `Date`) was ahead of ours at the last answer; `None` when it did not tell.
    #[must_use]
    pub fn clock_ahead(&self) -> Option<Micros> {
        self.line.clock_ahead
    }

    fn request(&self, dialect: &Dialect, query: &Query) -> Request {
        let phrasing = Phrasing {
            version: dialect.version,
            language: dialect.language,
            property: dialect.property.as_deref(),
            sort: dialect.sort.as_deref(),
            schema: &self.schema,
            type_name: dialect.type_name,
            user_filter: self.user_filter.as_ref(),
        };
        let (method, url, body) = match dialect.binding {
            Binding::Post => (Method::Post, dialect.endpoint.clone(), request::get_records_body(query, &phrasing)),
            Binding::Get => (Method::Get, request::get_records_url(&dialect.endpoint, query, &phrasing), String::new()),
        };
        Request { method, url, body, gzip: self.line.gzip && dialect.gzip }
    }

    fn exchange<T>(
        &mut self,
        what: &str,
        request: &Request,
        patience: Patience,
        read: impl Fn(&Response) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let policy = match patience {
            Patience::Full => self.policy,
            Patience::Short => RetryPolicy { retries: self.policy.retries.min(1), ..self.policy },
        };
        let (line, secrets) = (&mut self.line, &self.secrets);
        let mut retried = |failure: &Failure, wait: Duration, attempt: u32| {
            log::warn!("attempt {attempt}: {}; again in {:.1} s", failure.message, wait.as_secs_f64());
        };
        let outcome = retry::run(&policy, &mut SystemClock, &self.stop, &mut self.random, &mut retried, |attempt| {
            line.traffic.retries += u64::from(attempt > 1);
            line.attempt(what, request, &read).map_err(|failure| struck(failure, secrets))
        });
        outcome.map_err(|end| match end {
            RetryEnd::GaveUp { last, attempts } if attempts > 1 => {
                Failure { message: format!("{} (after {attempts} attempts)", last.message), ..last }
            }
            RetryEnd::GaveUp { last, .. } => last,
            RetryEnd::Stopped(stopped) => Failure::new(FailureKind::Stopped(stopped), stopped.to_string()),
        })
    }
}

impl Catalogue for HttpCatalogue {
    fn get_capabilities(&mut self, base: &str) -> Result<Option<Capabilities>, Failure> {
        let request =
            Request { method: Method::Get, url: request::get_capabilities_url(base), body: String::new(), gzip: self.line.gzip };
        let read = |response: &Response| {
            let text = xml::decode(&response.body, response.charset.as_deref()).ok();
            match text.and_then(|text| capabilities::parse(&text)) {
                Some(capabilities) => Ok(Some(capabilities)),
                None => match classify_status(response.status) {
                    Some(Class::Access) => Err(access("GetCapabilities", &request, response)),
                    _ => Ok(None),
                },
            }
        };
        match self.exchange("GetCapabilities", &request, Patience::Full, read) {
            Err(failure) if failure.kind == FailureKind::Unavailable => {
                log::debug!("{}", failure.message);
                Ok(None)
            }
            other => other,
        }
    }

    fn traffic(&self) -> Traffic {
        self.line.traffic
    }

    fn gzip(&self) -> bool {
        self.line.gzip
    }

    fn begin(&mut self, dialect: &Dialect, query: &Query) {
        if self.line.under_way.is_none() && self.line.delay.is_zero() {
            let request = self.request(dialect, query);
            self.line.send(request);
        }
    }

    fn answered(&mut self, dialect: &Dialect, query: &Query, within: Duration) -> Option<Answer> {
        let request = self.request(dialect, query);
        let (what, answered) = (described(query), self.line.answered);
        self.line.take_arrived(&request, within, |response| read_records(&what, &request, response, answered))
    }

    fn get_records(&mut self, dialect: &Dialect, query: &Query, patience: Patience) -> Result<Answer, Failure> {
        let request = self.request(dialect, query);
        let what = described(query);
        let answered = self.line.answered;
        let answer = self.exchange(&what, &request, patience, |response| read_records(&what, &request, response, answered))?;
        self.line.answered = true;
        Ok(answer)
    }

    fn get_records_by_id(&mut self, dialect: &Dialect, identifiers: &[&str], patience: Patience) -> Result<Records, Failure> {
        let (version, schema) = (dialect.version, &self.schema);
        let (method, url, body) = match dialect.binding {
            Binding::Post => (Method::Post, dialect.endpoint.clone(), request::get_record_by_id_body(identifiers, version, schema)),
            Binding::Get => {
                let url = request::get_record_by_id_url(&dialect.endpoint, identifiers, version, schema);
                (Method::Get, url, String::new())
            }
        };
        let request = Request { method, url, body, gzip: self.line.gzip && dialect.gzip };
        let what = match identifiers {
            [only] => format!("GetRecordById ({})", escape_outside_text(only, 200)),
            several => format!("GetRecordById ({} records)", several.len()),
        };
        self.exchange(&what, &request, patience, |response| read_records_by_id(&what, &request, response))
    }
}

impl Line {
    fn send(&mut self, request: Request) {
        self.traffic.requests += 1;
        self.last_sent = Some(Instant::now());
        self.courier.send(request.clone());
        self.under_way = Some(request);
    }

    fn attempt<T>(&mut self, what: &str, request: &Request, read: &impl Fn(&Response) -> Result<T, Failure>) -> Result<T, Failure> {
        match self.fetch(request) {
            Ok(Err(TransportError::Decompress(detail))) if request.gzip && self.gzip => {
                log::warn!("{}: gzip is broken ({detail}); asking without from now on", without_credentials(&request.url));
                self.gzip = false;
                let plain = Request { gzip: false, ..request.clone() };
                let fetched = self.fetch(&plain);
                self.read(what, &plain, fetched, read)
            }
            fetched => self.read(what, request, fetched, read),
        }
    }

    fn read<T>(
        &mut self,
        what: &str,
        request: &Request,
        fetched: Result<Result<Response, TransportError>, Stopped>,
        read: &impl Fn(&Response) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        match fetched {
            Err(stopped) => Err(Failure::new(FailureKind::Stopped(stopped), stopped.to_string())),
            Ok(Err(error)) => Err(from_transport(what, request, &error)),
            Ok(Ok(response)) => {
                self.account(&response);
                read(&response)
            }
        }
    }

    fn account(&mut self, response: &Response) {
        self.traffic.bytes += response.body.len() as u64;
        let ahead = response.date.map(|date| micros_from(date) - micros_from(SystemClock.now()));
        let is_far = |ahead: Option<Micros>| ahead.is_some_and(|ahead| ahead > CLOCK_AHEAD_MAX);
        if is_far(ahead) && !is_far(self.clock_ahead) {
            log::warn!("the catalogue's clock is more than a day ahead of ours and is not believed");
        }
        self.clock_ahead = ahead;
    }

    /// What is read in the response to this request, if that is under way and comes within that time; one that cannot be read is kept
    /// for who waits for it.
    fn take_arrived<T>(
        &mut self,
        request: &Request,
        within: Duration,
        read: impl Fn(&Response) -> Result<T, Failure>,
    ) -> Option<T> {
        self.under_way.as_ref().filter(|under_way| *under_way == request)?;
        let value = read(self.courier.arrived(within)?.as_ref().ok()?).ok()?;
        self.under_way = None;
        if let Ok(Ok(response)) = self.courier.receive(&self.stop) {
            self.account(&response);
        }
        Some(value)
    }

    /// One exchange; takes over what is under way already when it is the same request.
    fn fetch(&mut self, request: &Request) -> Result<Result<Response, TransportError>, Stopped> {
        let request = Request { gzip: request.gzip && self.gzip, ..request.clone() };
        if let Some(other) = self.under_way.take() {
            if other == request {
                return self.courier.receive(&self.stop);
            }
            let _ = self.courier.receive(&self.stop)?;
        }
        let waited = self.last_sent.map_or(Duration::MAX, |sent| sent.elapsed());
        SystemClock.pause(self.delay.saturating_sub(waited), &self.stop)?;
        self.send(request);
        self.under_way = None;
        self.courier.receive(&self.stop)
    }
}

/// A failure whose message shows none of these.
fn struck(failure: Failure, secrets: &[String]) -> Failure {
    let message = secrets.iter().fold(failure.message, |message, secret| message.replace(secret.as_str(), "***"));
    Failure { message, ..failure }
}

/// A GetRecords in words: how much, from where, of what.
fn described(query: &Query) -> String {
    let window = match (&query.window.lower, &query.window.upper) {
        (None, None) => String::new(),
        (Some(Lower::After(literal)), None) => format!(" after {literal}"),
        (Some(Lower::From(literal)), None) => format!(" since {literal}"),
        (lower, Some(upper)) => format!(" after {} up to {upper}", lower.as_ref().map_or("the beginning", Lower::literal)),
    };
    match query.result_type {
        ResultType::Hits => format!("GetRecords (hits{window})"),
        ResultType::Results => format!("GetRecords ({} from position {}{window})", query.max_records, query.start_position),
    }
}

fn attempted(what: &str, request: &Request) -> String {
    format!("{what} at {}", without_credentials(&request.url))
}

fn access(what: &str, request: &Request, response: &Response) -> Failure {
    let word = match response.status {
        401 => "wants a user name and a password",
        403 => "refuses access",
        _ => "refuses access by way of the proxy",
    };
    Failure::new(FailureKind::Access, format!("{}: HTTP {}: the catalogue {word}", attempted(what, request), response.status))
}

fn from_transport(what: &str, request: &Request, error: &TransportError) -> Failure {
    let kind = match error {
        _ if error.denied() => FailureKind::Access,
        TransportError::TooLarge { .. } => FailureKind::TooLarge,
        TransportError::Fault(_) => FailureKind::Fault,
        TransportError::Timeout(_) | TransportError::Cut(_) | TransportError::Decompress(_) | TransportError::Protocol(_) => {
            FailureKind::Unavailable
        }
        _ => FailureKind::Unreachable,
    };
    let message = format!("{}: {error}", attempted(what, request));
    Failure { transient: error.transient(), ..Failure::new(kind, message) }
}

/// The catalogue's time. One that is far ahead of ours would settle stamps that are still to come, for good: then ours is taken, and of two
/// clocks that are wrong the earlier one costs no more than that some records are read again.
fn believed(told: Option<Micros>, ours: Micros) -> Micros {
    told.filter(|told| *told <= ours.saturating_add(CLOCK_AHEAD_MAX)).unwrap_or(ours)
}

/// Reads an answer to GetRecords. `answered`: whether this catalogue gave records before, so that 403 and 404 are a passing fault.
fn read_records(what: &str, request: &Request, response: &Response, answered: bool) -> Result<Answer, Failure> {
    let error = match response::parse(&response.body, response.charset.as_deref()) {
        Ok(results) if (200..300).contains(&response.status) => {
            let told = response.date.map(micros_from);
            let stated = || results.timestamp.as_deref().and_then(parse).map(|interval| interval.nominal);
            let server_now = believed(told.or_else(stated), micros_from(SystemClock.now()));
            return Ok(Answer { results, server_now });
        }
        Ok(_) => None,
        Err(error) => Some(error),
    };
    Err(refused(what, request, response, error.as_ref(), answered))
}

/// Reads an answer to GetRecordById. 404 is what 3.0.0 (OGC 12-176r7, 7.4.4.2) has for a record that is not there, and a report what many
/// have of 2.0.2; one with a 5xx is of the catalogue's own trouble.
fn read_records_by_id(what: &str, request: &Request, response: &Response) -> Result<Records, Failure> {
    match response::parse_by_id(&response.body, response.charset.as_deref()) {
        Ok(records) if (200..300).contains(&response.status) => Ok(records),
        _ if response.status == 404 => Ok(Records::default()),
        Err(error @ AnswerError::Report(_)) if response.status < 500 && classify(response.status, &error) != Class::Transient => {
            Ok(Records::default())
        }
        other => Err(refused(what, request, response, other.err().as_ref(), false)),
    }
}

fn refused(what: &str, request: &Request, response: &Response, error: Option<&AnswerError>, answered: bool) -> Failure {
    let status = response.status;
    let said = error
        .map_or_else(|| "records with a status that says failure".to_owned(), |error| escape_outside_text(&error.to_string(), 800));
    let message = match status {
        200 => format!("{}: {said}", attempted(what, request)),
        _ => format!("{}: HTTP {status}: {said}", attempted(what, request)),
    };
    // RFC 9110, 15.6.2: the method is not known there, and no waiting mends that.
    let by_status = if status == 501 { Some(Class::NotCsw) } else { classify_status(status) };
    let is_report = matches!(error, Some(AnswerError::Report(_)));
    let class = match (by_status, error) {
        (Some(class), _) if !is_report => class,
        (_, Some(error)) => classify(status, error),
        (_, None) => Class::NotCsw,
    };
    let passing = answered && matches!(status, 403 | 404);
    let (kind, transient) = match class {
        _ if passing => (FailureKind::Unavailable, true),
        Class::Access => return access(what, request, response),
        Class::Transient if status == 200 && error.is_some_and(delivered_whole) => (FailureKind::NotCsw, true),
        Class::Transient => (FailureKind::Unavailable, true),
        Class::EndOfList => (FailureKind::PastTheEnd, false),
        Class::Ceiling => (FailureKind::Ceiling, false),
        Class::Dialect => (FailureKind::Dialect, false),
        Class::BadPage => (FailureKind::BadPage, false),
        Class::NotCsw => (FailureKind::NotCsw, false),
        Class::Report => (FailureKind::Report, false),
    };
    let schema_refused = kind == FailureKind::Dialect && error.is_some_and(is_about_schema);
    Failure { transient, retry_after_s: response.retry_after_s, reported: is_report, schema_refused, ..Failure::new(kind, message) }
}

/// Whether a report names the output schema or the type names as what it refuses; GeoNetwork 4 buries the locator in its text.
fn is_about_schema(error: &AnswerError) -> bool {
    let AnswerError::Report(report) = error else { return false };
    let named = |text: &str| {
        let text = text.to_ascii_lowercase();
        text.contains("outputschema") || text.contains("typename")
    };
    // pycsw says "service" of all that is wrong in a body.
    let place = report.locator.rsplit(':').next().unwrap_or_default().trim();
    named(place) || (matches!(place, "" | "service") && named(&report.text))
}

/// Whether a body came whole and is no CSW: 76 after the last attempt, not 69.
fn delivered_whole(error: &AnswerError) -> bool {
    matches!(
        error,
        AnswerError::Html { .. } | AnswerError::NotXml { .. } | AnswerError::OtherRoot { .. } | AnswerError::DocumentType
    )
}
