//! The command `check`: asks a catalogue what it can do, as a first harvest would, and says what came of it.
//!
//! Negotiation and calibration are those of a harvest (`negotiate.rs`), the latter over a sample of records in place of a store; what
//! they say is kept by `check/observed.rs`. Only pages, element sets and the ceiling are asked for here besides, each a request or two.
//! Nothing is written: no store, no lock, no state.

mod observed;
mod sample;
mod verdict;

use std::collections::BTreeMap;
use std::ffi::OsString;

use crate::catalogue::{Answer, Catalogue, Failure, FailureKind, HttpCatalogue, Patience};
use crate::cli::{self, Command, HarvestSettings, PROGRAM};
use crate::csw::capabilities::Capabilities;
use crate::csw::request::clean_url;
use crate::csw::{Binding, ElementSet, Lower, OutputSchema, Query, ResultType, SortOrder, Window};
use crate::dialect::{Clock, Dialect};
use crate::error::Error;
use crate::findings::{Finding, Mark, lasting};
use crate::harvest::command;
use crate::http::{Roots, escape_outside_text, without_credentials};
use crate::negotiate;
use crate::signal::Stop;
use crate::timestamp::{self, Micros, SECOND};
use observed::{Observed, Talk};
use sample::{Extent, Sample, Stamp};
pub use verdict::Verdict;

/// Records of the pages that are sampled: a harvest's usual page.
const PAGE_SIZE: u32 = 100;
/// Sizes that are tried in turn where a page cannot be had.
const SMALLER_PAGES: [u32; 2] = [10, 1];
/// Positions in a row that must fail before a catalogue counts as unwell; as in a harvest.
const POSITIONS_MAX: u64 = 3;
/// Records that are looked at for stamps in the smaller element sets.
const FEW: u32 = 5;
/// Where search engines are known to stop: Elasticsearch as it comes, GeoNetwork 4.
const CEILINGS: [u64; 2] = [10_000, 15_000];
/// Seconds that a clock may differ without being worth a word.
const CLOCK_SECONDS_MAX: i64 = 5;
/// Before every stamp that matters.
const LONG_AGO: &str = "1970-01-01";
/// Characters shown of a text from outside.
const TEXT_CHARS_MAX: usize = 200;
/// Entries shown of a list from outside.
const LIST_LEN_MAX: usize = 12;

/// Runs the command.
#[must_use]
pub fn run(settings: &HarvestSettings, stop: &Stop) -> Verdict {
    let mut check = Check { settings, verdict: Verdict::default() };
    match check.examine(stop) {
        Ok(page_size) => check.verdict.recommended = Some(recommended(settings, page_size)),
        Err(error) => check.verdict.error = Some(error),
    }
    check.verdict
}

/// The end of a command that did not come to run.
#[must_use]
pub fn not_run(error: Error) -> Verdict {
    Verdict { error: Some(error), ..Verdict::default() }
}

/// The command line that a harvest takes: what was given here, where it is not what a harvest does anyway. Credentials are not repeated.
fn recommended(settings: &HarvestSettings, page_size: u32) -> String {
    let mut words = vec![PROGRAM.to_owned(), "harvest".to_owned(), verdict::quoted(&settings.url)];
    let mut add = |option: &str, value: String| words.push(format!("--{option} {value}"));
    match &settings.schema {
        schema if *schema == OutputSchema::csw() => {}
        schema if *schema == OutputSchema::iso() => add("schema", "iso".to_owned()),
        schema if *schema == OutputSchema::iso3() => add("schema", "iso3".to_owned()),
        OutputSchema(namespace) => add("schema", verdict::quoted(namespace)),
    }
    if let Some(property) = &settings.property {
        add("property", verdict::quoted(property));
    }
    if let Some(version) = settings.version {
        add("csw-version", version.as_str().to_owned());
    }
    if let Some(binding) = settings.binding {
        add("method", binding.as_str().to_owned());
    }
    // One record a page is for the record at fault; a harvest comes to that by itself.
    if (2..PAGE_SIZE).contains(&page_size) {
        add("page-size", page_size.to_string());
    }
    if let Ok(Command::Harvest(usual)) = cli::parse(["harvest", "--", &settings.url].map(OsString::from)) {
        let numbers = |settings: &HarvestSettings| {
            [
                ("timeout", u128::from(settings.timeout.as_secs())),
                ("retries", u128::from(settings.retries)),
                ("retry-max-wait", u128::from(settings.retry_wait_max.as_secs())),
                ("delay", settings.delay.as_millis()),
                ("max-body", u128::from(settings.body_bytes_max >> 20)),
            ]
        };
        for ((option, given), (_, usual)) in numbers(settings).into_iter().zip(numbers(&usual)) {
            if given != usual {
                add(option, given.to_string());
            }
        }
    }
    let access = &settings.access;
    if access.credentials.is_some() || !access.headers.is_empty() || access.roots != Roots::System {
        words.push("# with the credentials, headers and roots that were given here".to_owned());
    }
    words.join(" ")
}

/// A check under way.
struct Check<'a> {
    settings: &'a HarvestSettings,
    verdict: Verdict,
}

impl Check<'_> {
    fn tell(&mut self, finding: &'static str, mark: Mark, text: impl Into<String>) {
        self.verdict.findings.push(Finding { finding, mark, text: text.into() });
    }

    /// All findings, and the size of the page that could be had.
    fn examine(&mut self, stop: &Stop) -> Result<u32, Error> {
        let mut catalogue = command::connect(command::transport(self.settings)?, self.settings, stop)?;
        let job = command::job(self.settings);
        let mut observed = Observed::new(&mut catalogue);
        let negotiated = negotiate::negotiate(&mut observed, &job.base, &job.pinned);
        let talk = observed.into_talk();
        self.tell_reached(negotiated.as_ref().err());
        self.tell_service(&talk, negotiated.as_ref().ok());
        let dialect = match negotiated {
            Err(failure) if failure.kind == FailureKind::Dialect && self.settings.property.is_some() => {
                self.tell("property", Mark::Bad, failure.message.clone());
                return Err(failure.into());
            }
            negotiated => negotiated?,
        };
        self.tell_filter(&dialect, &talk);
        let page = first_page(&mut catalogue, &dialect)?;
        self.tell_clock(&mut catalogue, &dialect, &talk, &page)?;
        self.tell_sort(&dialect, &talk);
        self.tell_page_cap(&dialect, &page, talk.capabilities.as_ref());
        self.tell_ceiling(&mut catalogue, &dialect, page.answer.results.matched)?;
        self.tell_schemas(talk.capabilities.as_ref());
        self.tell_element_sets(&mut catalogue, &dialect, &page)?;
        self.tell_time(catalogue.clock_ahead());
        self.tell_gzip(&catalogue);
        Ok(page.size)
    }

    fn tell_reached(&mut self, failure: Option<&Failure>) {
        let Some(failure) = failure else { return self.tell("reachable", Mark::Ok, "it answers, and gives records") };
        match failure.kind {
            FailureKind::Dialect if self.settings.property.is_some() => self.tell("reachable", Mark::Ok, "it answers"),
            _ => self.tell("reachable", Mark::Bad, failure.message.clone()),
        }
    }

    fn tell_service(&mut self, talk: &Talk, dialect: Option<&Dialect>) {
        let advertised = talk.capabilities.as_ref().map(|capabilities| capabilities.versions.as_slice()).unwrap_or_default();
        let Some(dialect) = dialect else {
            if !advertised.is_empty() {
                self.tell("version", Mark::Ok, format!("advertised: {}", listed(advertised)));
            }
            return;
        };
        let version = dialect.version.as_str();
        let binding = dialect.binding.as_str().to_ascii_uppercase();
        let Some(capabilities) = &talk.capabilities else {
            self.tell("version", Mark::Odd, format!("{version} works; no capabilities can be read"));
            return self.tell("binding", Mark::Ok, binding);
        };
        match advertised.iter().any(|one| one == version) {
            true => self.tell("version", Mark::Ok, format!("{version}, of {}", listed(advertised))),
            false => self.tell("version", Mark::Odd, format!("{version} works, advertised: {}", listed(advertised))),
        }
        let (used, other) = match dialect.binding {
            Binding::Post => (&capabilities.post_urls, ("GET", &capabilities.get_urls)),
            Binding::Get => (&capabilities.get_urls, ("POST", &capabilities.post_urls)),
        };
        match (used.is_empty(), other.1.is_empty()) {
            (false, true) => self.tell("binding", Mark::Ok, format!("{binding}, the only one advertised")),
            (false, false) => self.tell("binding", Mark::Ok, format!("{binding}; {} is advertised too", other.0)),
            (true, _) => self.tell("binding", Mark::Odd, format!("{binding}, which is not advertised")),
        }
        self.tell_address(used, dialect);
    }

    fn tell_address(&mut self, advertised: &[String], dialect: &Dialect) {
        let given = &self.settings.url;
        let is_given = |url: &String| clean_url(url).is_ok_and(|clean| clean.url == *given);
        let first = advertised.first().map(|url| shown(&without_credentials(url))).unwrap_or_default();
        match () {
            () if dialect.endpoint != *given => {
                let text = format!("{} is asked, as advertised: the one given answers nothing of use", shown(&dialect.endpoint));
                self.tell("address", Mark::Odd, text);
            }
            () if first.is_empty() => self.tell("address", Mark::Odd, "the one given works; none is advertised"),
            () if advertised.iter().any(is_given) => self.tell("address", Mark::Ok, "the one given is the one advertised"),
            () => self.tell("address", Mark::Odd, format!("the one given works and is asked; advertised is {first}")),
        }
    }

    fn tell_filter(&mut self, dialect: &Dialect, talk: &Talk) {
        if let Some(property) = &dialect.property {
            let mut counts = talk.counts(property).map(|said| said.as_ref().ok().copied().flatten().unwrap_or(0));
            let (old, future) = (counts.next().unwrap_or(0), counts.next().unwrap_or(0));
            let others: Vec<String> =
                talk.properties_tried().into_iter().filter(|tried| tried != property).map(str::to_owned).collect();
            let not = if others.is_empty() { String::new() } else { format!("; not {}", listed(&others)) };
            self.tell("property", Mark::Ok, format!("{}{not}", shown(property)));
            return self.tell("filter", Mark::Ok, format!("honoured: {old} records after 1970, {future} after 2999"));
        }
        if dialect.is_provisional() {
            self.tell("property", Mark::Odd, "not found out: the catalogue is empty");
            return self.tell("filter", Mark::Odd, "not found out: the catalogue is empty");
        }
        let tried = talk.properties_tried();
        let ignored = tried.iter().find(|name| talk.counts(name).any(|said| matches!(said, Ok(Some(matched)) if *matched > 0)));
        match ignored {
            Some(name) => {
                self.tell("property", Mark::Odd, format!("{} is taken, as any name may be", shown(name)));
                self.tell("filter", Mark::Odd, "ignored: as many records after 2999 as after 1970; each run reads everything");
            }
            None => {
                let names: Vec<String> = tried.iter().map(|name| (*name).to_owned()).collect();
                let last = tried.iter().flat_map(|name| talk.counts(name)).find_map(|said| said.as_ref().err());
                let said = last.map(|said| format!("; it said: {}", shown(said))).unwrap_or_default();
                self.tell("property", Mark::Odd, format!("none of {} works{said}", listed(&names)));
                self.tell("filter", Mark::Odd, "none works: each run reads everything");
            }
        }
    }

    /// Whose clock the filter follows, as calibration judges by a sample.
    fn tell_clock(&mut self, catalogue: &mut HttpCatalogue, dialect: &Dialect, talk: &Talk, page: &Page) -> Result<(), Error> {
        let Some(property) = &dialect.property else {
            let why = if dialect.is_provisional() { "not found out: the catalogue is empty" } else { "none: no filter works" };
            self.tell("clock", Mark::Odd, why);
            return Ok(());
        };
        let total = talk.counts(property).next().and_then(|said| said.as_ref().ok().copied().flatten()).unwrap_or(0);
        let sample = take_sample(catalogue, dialect, total)?;
        let started = page.answer.server_now;
        if !sample.is_empty() && sample.middle(started).is_none() {
            let text = format!("not to be told from {} stamps; the first harvest finds out", sample.len());
            self.tell("clock", Mark::Odd, text);
            return Ok(());
        }
        let mut trial = dialect.clone();
        trial.matched_is_total &= sample.can_be_counted();
        negotiate::calibrate(catalogue, &mut trial, &sample, sample.shapes, started, 0)?;
        let literals = if trial.days_only { "; literals are plain days" } else { "" };
        match trial.clock {
            Some(Clock::Record) => self.tell("clock", Mark::Ok, format!("record: the filter follows the stamps shown{literals}")),
            Some(Clock::Server) if sample.is_empty() => {
                self.tell("clock", Mark::Odd, format!("server: no stamp shown can be read{literals}"));
            }
            Some(Clock::Server) => self.tell("clock", Mark::Odd, format!("server: the filter follows a date not shown{literals}")),
            Some(Clock::None) => self.tell("clock", Mark::Odd, "none: every literal is refused, each run reads everything"),
            None => self.tell("clock", Mark::Odd, "not found out: no record has a stamp"),
        }
        Ok(())
    }

    fn tell_sort(&mut self, dialect: &Dialect, talk: &Talk) {
        let tried: Vec<String> = talk.sorts_tried().into_iter().map(str::to_owned).collect();
        match &dialect.sort {
            Some(name) if dialect.sort_obeyed => self.tell("sort", Mark::Ok, format!("obeyed, by {}", shown(name))),
            Some(name) => {
                let text = format!("by {} is taken, and not seen to be obeyed: pages overlap instead", shown(name));
                self.tell("sort", Mark::Odd, text);
            }
            None if tried.is_empty() => self.tell("sort", Mark::Odd, "not found out: the catalogue is empty"),
            None => self.tell("sort", Mark::Odd, format!("refused, by {}: pages overlap instead", listed(&tried))),
        }
    }

    fn tell_page_cap(&mut self, dialect: &Dialect, page: &Page, capabilities: Option<&Capabilities>) {
        let came = page.answer.results.records.len() as u64;
        let stated = capabilities.and_then(|capabilities| capabilities.max_record_default);
        let stated = stated.map(|most| format!("; MaxRecordDefault is {most}")).unwrap_or_default();
        let asked = u64::from(page.size);
        let more = match page.answer.results.matched {
            Some(matched) if dialect.matched_is_total => matched > came,
            _ => page.answer.results.next_record.is_some_and(|next| next > 1),
        };
        match () {
            () if page.failed > 0 => {
                let text = format!("{asked} records at position {} came after {} failures{stated}", page.position, page.failed);
                self.tell("page cap", Mark::Odd, text);
            }
            () if came >= asked => self.tell("page cap", Mark::Ok, format!("none up to {asked}{stated}")),
            () if more => self.tell("page cap", Mark::Odd, format!("{came} records a page, where {asked} were asked for{stated}")),
            () => self.tell("page cap", Mark::Ok, format!("none up to {came}, which is all there is{stated}")),
        }
    }

    /// Asks for one record beyond each of the usual ceilings that the catalogue is large enough for.
    fn tell_ceiling(&mut self, catalogue: &mut HttpCatalogue, dialect: &Dialect, matched: Option<u64>) -> Result<(), Error> {
        let Some(matched) = matched.filter(|_| dialect.matched_is_total) else {
            self.tell("ceiling", Mark::Ok, "none known; the catalogue does not count its records");
            return Ok(());
        };
        if CEILINGS.contains(&matched) {
            self.tell("ceiling", Mark::Odd, format!("suspected: exactly {matched} records are said to match"));
            return Ok(());
        }
        for ceiling in CEILINGS.into_iter().filter(|ceiling| *ceiling < matched) {
            let beyond = Query { start_position: ceiling + 1, max_records: 1, ..page_of(1, SortOrder::Ascending) };
            let said = match catalogue.get_records(dialect, &beyond, Patience::Short) {
                Ok(answer) if !answer.results.records.is_empty() => continue,
                Ok(_) => "nothing".to_owned(),
                Err(failure) if is_final(failure.kind) => return Err(failure.into()),
                Err(failure) => shown(&failure.message),
            };
            self.tell("ceiling", Mark::Odd, format!("{ceiling} of {matched} records; beyond it comes {said}"));
            return Ok(());
        }
        let (mark, text) = match CEILINGS.into_iter().filter(|ceiling| *ceiling < matched).max() {
            Some(ceiling) => (Mark::Ok, format!("none at {ceiling} of {matched} records")),
            None => (Mark::Ok, format!("none met: {matched} records")),
        };
        self.tell("ceiling", mark, text);
        Ok(())
    }

    fn tell_schemas(&mut self, capabilities: Option<&Capabilities>) {
        let schemas = capabilities.map(|capabilities| capabilities.output_schemas.as_slice()).unwrap_or_default();
        let chosen = &self.settings.schema.0;
        match () {
            () if schemas.is_empty() => self.tell("output schemas", Mark::Odd, format!("none advertised; {} works", shown(chosen))),
            () if schemas.contains(chosen) => self.tell("output schemas", Mark::Ok, listed(schemas)),
            () => self.tell("output schemas", Mark::Odd, format!("{} is not advertised: {}", shown(chosen), listed(schemas))),
        }
    }

    /// Which element sets show a stamp that can be read.
    fn tell_element_sets(&mut self, catalogue: &mut HttpCatalogue, dialect: &Dialect, page: &Page) -> Result<(), Error> {
        let mut told = Vec::new();
        for element_set in [ElementSet::Brief, ElementSet::Summary] {
            let few = Query { start_position: page.position, element_set, ..page_of(FEW, SortOrder::Ascending) };
            let said = match catalogue.get_records(dialect, &few, Patience::Short) {
                Ok(answer) => stamped(&answer),
                Err(failure) if is_final(failure.kind) => return Err(failure.into()),
                Err(_) => "refused".to_owned(),
            };
            told.push(format!("{} {said}", element_set.as_str()));
        }
        told.push(format!("full {}", stamped(&page.answer)));
        let mark =
            if page.answer.results.records.is_empty() || stamps(&page.answer).next().is_some() { Mark::Ok } else { Mark::Odd };
        self.tell("element sets", mark, format!("records with a stamp that can be read: {}", told.join(", ")));
        Ok(())
    }

    fn tell_time(&mut self, ahead: Option<Micros>) {
        let Some(ahead) = ahead else {
            return self.tell("clock difference", Mark::Odd, "not known: no Date comes with the answers");
        };
        let seconds = ahead.div_euclid(SECOND);
        if seconds.abs() <= CLOCK_SECONDS_MAX {
            return self.tell("clock difference", Mark::Ok, format!("{seconds} s: the same within a few"));
        }
        let side = if seconds > 0 { "ahead of" } else { "behind" };
        let text = format!("the catalogue is {} {side} this computer", lasting(seconds.unsigned_abs()));
        self.tell("clock difference", Mark::Odd, text);
    }

    fn tell_gzip(&mut self, catalogue: &HttpCatalogue) {
        match catalogue.gzip() {
            true => self.tell("gzip", Mark::Ok, "asked for, and nothing came broken"),
            false => self.tell("gzip", Mark::Odd, "broken: what is labelled so cannot be decompressed; not asked for again"),
        }
    }
}

/// The first page that could be had.
struct Page {
    answer: Answer,
    /// `maxRecords`.
    size: u32,
    /// `startPosition`.
    position: u64,
    /// Requests that failed before.
    failed: u32,
}

/// Failures that no smaller page would mend.
fn is_final(kind: FailureKind) -> bool {
    matches!(kind, FailureKind::Stopped(_) | FailureKind::Fault | FailureKind::Access | FailureKind::Unreachable)
}

/// Asks as a harvest does: in smaller pages where one fails, then past the record at fault.
fn first_page(catalogue: &mut HttpCatalogue, dialect: &Dialect) -> Result<Page, Failure> {
    let smaller = SMALLER_PAGES.into_iter().map(|size| (size, 1));
    let further = (2..=POSITIONS_MAX).map(|position| (1, position));
    let mut attempts = smaller.chain(further);
    let (mut size, mut position, mut failed) = (PAGE_SIZE, 1, 0);
    loop {
        let patience = if failed == 0 { Patience::Full } else { Patience::Short };
        let query = Query { start_position: position, ..page_of(size, SortOrder::Ascending) };
        let failure = match catalogue.get_records(dialect, &query, patience) {
            Ok(answer) => return Ok(Page { answer, size, position, failed }),
            Err(failure) => failure,
        };
        failed += 1;
        match attempts.next() {
            Some(next) if !is_final(failure.kind) => (size, position) = next,
            _ => return Err(failure),
        }
    }
}

fn page_of(size: u32, sort_order: SortOrder) -> Query {
    Query { max_records: size, result_type: ResultType::Results, sort_order, ..Query::default() }
}

/// The oldest and the newest records that have a date to filter by, of `total`.
fn take_sample(catalogue: &mut HttpCatalogue, dialect: &Dialect, total: u64) -> Result<Sample, Error> {
    let stamps = |page: Dated| page.into_values().flatten().collect::<Vec<Stamp>>();
    let oldest = dated_page(catalogue, dialect, SortOrder::Ascending)?;
    let is_whole = |page: &Dated| dialect.matched_is_total && page.len() as u64 == total;
    if is_whole(&oldest) {
        return Ok(Sample::new(Extent::Whole, stamps(oldest), Vec::new()));
    }
    if !dialect.sort_obeyed {
        return Ok(Sample::new(Extent::Some, stamps(oldest), Vec::new()));
    }
    let newest = dated_page(catalogue, dialect, SortOrder::Descending)?;
    let mut both = oldest.clone();
    both.extend(newest.clone());
    if is_whole(&both) {
        return Ok(Sample::new(Extent::Whole, stamps(both), Vec::new()));
    }
    Ok(Sample::new(Extent::Ends(total), stamps(oldest), stamps(newest)))
}

/// Identifiers, each with its stamp where one can be read.
type Dated = BTreeMap<String, Option<Stamp>>;

/// A page of the records that have a date to filter by; empty where it cannot be had.
fn dated_page(catalogue: &mut HttpCatalogue, dialect: &Dialect, sort_order: SortOrder) -> Result<Dated, Error> {
    let window = Window { lower: Some(Lower::After(LONG_AGO.to_owned())), upper: None };
    for size in [PAGE_SIZE].into_iter().chain(SMALLER_PAGES) {
        let query = Query { window: window.clone(), ..page_of(size, sort_order) };
        let answer = match catalogue.get_records(dialect, &query, Patience::Short) {
            Ok(answer) => answer,
            Err(failure) if is_final(failure.kind) => return Err(failure.into()),
            Err(_) => continue,
        };
        let read = |text: &str| Some((timestamp::parse(text)?, text.to_owned()));
        let records = answer.results.records.iter();
        return Ok(records.filter_map(|record| Some((record.identifier?.to_owned(), record.modified.and_then(read)))).collect());
    }
    Ok(Dated::new())
}

fn stamps(answer: &Answer) -> impl Iterator<Item = timestamp::Interval> {
    answer.results.records.iter().filter_map(|record| timestamp::parse(record.modified?))
}

/// How many of the records show a stamp that can be read.
fn stamped(answer: &Answer) -> String {
    format!("{} of {}", stamps(answer).count(), answer.results.records.len())
}

fn shown(text: &str) -> String {
    escape_outside_text(text, TEXT_CHARS_MAX)
}

/// A list from outside, with commas.
fn listed(texts: &[String]) -> String {
    let mut words: Vec<String> = texts.iter().take(LIST_LEN_MAX).map(|text| shown(text)).collect();
    if texts.len() > LIST_LEN_MAX {
        words.push(format!("and {} more", texts.len() - LIST_LEN_MAX));
    }
    if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
}
