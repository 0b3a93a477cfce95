//! Finds out how to speak with a catalogue, once a source, in seven cheap requests as a rule and at most twelve (seven names of the
//! modified property are in use, so that ten are not enough to try them all and the sort); and whose clock its filter follows.
//!
//! The order is that of dialects: capabilities, records at all (in which version, by which method, at which address: `ways.rs`), the
//! property, whether the filter is honoured, the sort. Whatever was pinned by an option is not asked for. What was found is remembered
//! by the store, and this is done again when it starts to fail.

mod ways;

use std::collections::HashSet;

use crate::catalogue::{Answer, Catalogue, Failure, FailureKind, Patience};
use crate::csw::capabilities::{Capabilities, modified_candidates};
use crate::csw::request::TypeName;
use crate::csw::{Binding, ConstraintLanguage, GMD, Lower, OutputSchema, Query, ResultType, SortOrder, Version, Window};
use crate::dialect::{Clock, ClockCounts, Dialect, clock_probe};
use crate::timestamp::{self, Micros, SECOND, Shapes};
use ways::{Refusal, Way, Ways};

/// Requests that a negotiation may take.
const REQUESTS_MAX: usize = 12;
/// Requests kept back for what follows the property: the far future and the sort.
const REQUESTS_RESERVED: usize = 3;
/// Requests after which no other version, method or address is tried: the likeliest names of the property must still find room.
const REQUESTS_FOR_THE_WAY: usize = 7;
/// Output schemas named in a message.
const SCHEMAS_TOLD_MAX: usize = 20;
/// Records looked at to see which stamps a window shows.
const SAMPLE: u32 = 5;
/// Records that ascending and descending order must not have in common.
const SORT_SAMPLE: u32 = 3;
/// Before every stamp that matters.
const LONG_AGO: &str = "1970-01-01";
/// After every stamp that is true.
const FAR_FUTURE: &str = "2999-01-01";

/// What the user pinned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pinned {
    /// `--property`.
    pub property: Option<String>,
    /// `--csw-version`.
    pub version: Option<Version>,
    /// `--method`.
    pub binding: Option<Binding>,
    /// `--schema`, unless it is csw:Record.
    pub schema: Option<OutputSchema>,
}

/// Which of the ways one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rank {
    First,
    Other,
}

struct Talk<'a> {
    catalogue: &'a mut dyn Catalogue,
    spent: usize,
}

impl Talk<'_> {
    /// A question that may fail on account of a single record.
    ///
    /// # Errors
    /// Access, an unreachable server, being told to stop.
    fn ask_briefly(&mut self, dialect: &Dialect, query: &Query) -> Result<Option<Answer>, Failure> {
        self.spent += 1;
        match self.catalogue.get_records(dialect, query, Patience::Short) {
            Err(failure) if may_be_one_record(failure.kind) => {
                log::debug!("{}", failure.message);
                Ok(None)
            }
            answer => unless_refused(answer),
        }
    }

    fn ask(&mut self, dialect: &Dialect, query: &Query) -> Result<Answer, Failure> {
        self.spent += 1;
        self.catalogue.get_records(dialect, query, Patience::Full)
    }
}

/// Negotiates with the catalogue at `base`.
///
/// # Errors
/// The catalogue gives no records whatever is tried, or cannot be reached.
pub fn negotiate(catalogue: &mut dyn Catalogue, base: &str, pinned: &Pinned) -> Result<Dialect, Failure> {
    let capabilities = catalogue.get_capabilities(base)?;
    let capabilities = capabilities.as_ref();
    let mut talk = Talk { catalogue, spent: 1 };
    let mut ways = Ways::of(base, capabilities, pinned);
    let (mut dialect, first) = find_way(&mut talk, &mut ways, pinned).map_err(|failure| with_offer(failure, capabilities))?;
    dialect.matched_is_total = first.results.matched.is_some_and(|matched| matched > first.results.records.len() as u64);
    if is_empty(&first) {
        return Ok(dialect);
    }
    let candidates = match &pinned.property {
        Some(property) => vec![property.clone()],
        None => modified_candidates(capabilities),
    };
    let languages = languages(dialect.binding, capabilities);
    find_property(&mut talk, &mut dialect, &candidates, languages)?;
    if let Some(property) = &pinned.property
        && dialect.property.is_none()
    {
        return Err(Failure::new(FailureKind::Dialect, format!("the catalogue at {base} does not filter on {property}")));
    }
    find_sort(&mut talk, &mut dialect, &candidates)?;
    if dialect.property.is_none() {
        dialect.clock = Some(Clock::None);
    }
    dialect.gzip = talk.catalogue.gzip();
    Ok(dialect)
}

/// The first way in which the catalogue gives a record, or says that it has none, and that answer.
///
/// # Errors
/// The most telling of the failures.
fn find_way(talk: &mut Talk<'_>, ways: &mut Ways, pinned: &Pinned) -> Result<(Dialect, Answer), Failure> {
    let mut refused: Option<Failure> = None;
    while let Some(way) = ways.next() {
        let dialect = in_way(&way);
        let failure = match try_way(talk, &dialect, if refused.is_none() { Rank::First } else { Rank::Other }) {
            Ok(answer) => return with_records(talk, dialect, answer, pinned),
            Err(failure) => failure,
        };
        if refused.is_none() && !may_be_the_way(failure.kind) {
            return Err(failure);
        }
        if matches!(failure.kind, FailureKind::Stopped(_) | FailureKind::Fault) {
            return Err(failure);
        }
        log::info!("CSW {} by {}: {}", way.version.as_str(), way.binding.as_str(), failure.message);
        ways.learn(&way, if failure.is_report() { Refusal::Report } else { Refusal::NoCatalogue });
        if failure.refuses_schema() && asks_for_iso(pinned) && way.type_name == TypeName::Record {
            ways.prefer(Way { type_name: TypeName::Metadata, ..way });
        }
        refused = Some(match refused {
            Some(held) if telling(&held) >= telling(&failure) => held,
            _ => failure,
        });
        if talk.spent >= REQUESTS_FOR_THE_WAY {
            break;
        }
    }
    Err(refused.unwrap_or_else(|| Failure::new(FailureKind::Fault, "there was no way to try")))
}
fn in_way(way: &Way) -> Dialect {
    Dialect { version: way.version, binding: way.binding, type_name: way.type_name, ..Dialect::untried(way.endpoint.clone()) }
}

/// Asks for one record. The first way is worth all attempts, and a look at whether a single record is to blame; the others come after a
/// refusal that no attempt mended.
fn try_way(talk: &mut Talk<'_>, dialect: &Dialect, rank: Rank) -> Result<Answer, Failure> {
    if rank == Rank::Other {
        talk.spent += 1;
        return talk.catalogue.get_records(dialect, &first_record(), Patience::Short);
    }
    let failure = match talk.ask(dialect, &first_record()) {
        Ok(answer) => return Ok(answer),
        Err(failure) => failure,
    };
    if !may_be_one_record(failure.kind) {
        return Err(failure);
    }
    match talk.ask_briefly(dialect, &Query::hits(Window::default()))? {
        Some(answer) if answer.results.matched.is_some_and(|matched| matched > 0) => Ok(answer),
        _ => Err(failure),
    }
}

/// Catalogues that keep ISO records apart show none of them under csw:Record (GeoServer).
fn with_records(talk: &mut Talk<'_>, dialect: Dialect, answer: Answer, pinned: &Pinned) -> Result<(Dialect, Answer), Failure> {
    if !is_empty(&answer) || !asks_for_iso(pinned) || dialect.type_name == TypeName::Metadata {
        return Ok((dialect, answer));
    }
    let metadata = Dialect { type_name: TypeName::Metadata, ..dialect.clone() };
    match talk.ask_briefly(&metadata, &first_record())? {
        Some(other) if !is_empty(&other) => Ok((metadata, other)),
        _ => Ok((dialect, answer)),
    }
}

fn is_empty(answer: &Answer) -> bool {
    answer.results.matched.unwrap_or(0) == 0 && answer.results.records.is_empty()
}

fn asks_for_iso(pinned: &Pinned) -> bool {
    pinned.schema.as_ref().is_some_and(|schema| schema.0 == GMD)
}

/// Failures that another version, method or address may mend.
fn may_be_the_way(kind: FailureKind) -> bool {
    matches!(kind, FailureKind::NotCsw | FailureKind::Dialect | FailureKind::Report | FailureKind::BadPage)
}

/// How much a failure says to the user, of several.
fn telling(failure: &Failure) -> u8 {
    match (failure.refuses_schema(), failure.is_report()) {
        (true, _) => 2,
        (false, true) => 1,
        (false, false) => 0,
    }
}

/// A refusal of the schema, with those that the capabilities offer.
fn with_offer(mut failure: Failure, capabilities: Option<&Capabilities>) -> Failure {
    if failure.refuses_schema() {
        let offered = capabilities.map(|capabilities| capabilities.output_schemas.as_slice()).unwrap_or_default();
        let names: Vec<String> =
            offered.iter().take(SCHEMAS_TOLD_MAX).map(|name| crate::http::escape_outside_text(name, 200)).collect();
        failure.message += &match names.as_slice() {
            [] => "; its capabilities name no output schemas".to_owned(),
            names => format!("; its capabilities offer the output schemas {}", names.join(", ")),
        };
    }
    failure
}

/// The languages of filters worth trying, the likelier first. By POST there is one.
fn languages(binding: Binding, capabilities: Option<&Capabilities>) -> Vec<ConstraintLanguage> {
    let (filter, cql) = (ConstraintLanguage::Filter, ConstraintLanguage::CqlText);
    let named = capabilities.map(|capabilities| capabilities.constraint_languages.as_slice()).unwrap_or_default();
    let offers = |language: ConstraintLanguage| named.iter().any(|name| name.eq_ignore_ascii_case(language.as_str()));
    match binding {
        Binding::Post => vec![filter],
        Binding::Get if offers(cql) && !offers(filter) => vec![cql, filter],
        Binding::Get => vec![filter, cql],
    }
}

fn first_record() -> Query {
    Query { result_type: ResultType::Results, ..Query::default() }
}

fn after(literal: &str) -> Window {
    Window { lower: Some(Lower::After(literal.to_owned())), upper: None }
}

/// Kinds of failure that one bad record in the answer may be to blame for.
fn may_be_one_record(kind: FailureKind) -> bool {
    matches!(kind, FailureKind::BadPage | FailureKind::Report | FailureKind::Unavailable | FailureKind::TooLarge)
}

/// A refusal that says "not in these words": try the next ones. Anything else ends the negotiation.
fn unless_refused(answer: Result<Answer, Failure>) -> Result<Option<Answer>, Failure> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(failure) => match failure.kind {
            FailureKind::Dialect | FailureKind::Report | FailureKind::BadPage | FailureKind::NotCsw | FailureKind::PastTheEnd => {
                log::debug!("{}", failure.message);
                Ok(None)
            }
            _ => Err(failure),
        },
    }
}

/// The first name that matches some records long ago and fewer in the far future, in the first language that is understood.
fn find_property(
    talk: &mut Talk<'_>,
    dialect: &mut Dialect,
    candidates: &[String],
    mut languages: Vec<ConstraintLanguage>,
) -> Result<(), Failure> {
    for name in candidates {
        let Some((trial, old)) = ask_in(talk, dialect, name, &mut languages)? else { continue };
        dialect.language = trial.language;
        // No hit means an unknown name on servers that refuse none (GeoNetwork, Examind).
        if old == 0 {
            continue;
        }
        let future = unless_refused(talk.ask(&trial, &Query::hits(after(FAR_FUTURE))))?;
        // A record may be stamped 9999, all of them are not: then the filter is ignored, and is so by any name.
        if future.is_some_and(|answer| answer.results.matched.unwrap_or(0) >= old) {
            log::warn!("the catalogue ignores a filter on {name}: every run has to read everything");
            return Ok(());
        }
        dialect.property = Some(name.clone());
        return Ok(());
    }
    log::warn!("the catalogue filters on no modified date that is known: every run has to read everything");
    Ok(())
}

/// How many are newer than long ago by that name; `None` where it is refused, or no request is left for it. A refusal may mean the name or
/// the language: both languages are tried with the first name only, and one of them is left afterwards.
fn ask_in(
    talk: &mut Talk<'_>,
    dialect: &Dialect,
    name: &str,
    languages: &mut Vec<ConstraintLanguage>,
) -> Result<Option<(Dialect, u64)>, Failure> {
    for language in languages.clone() {
        if talk.spent + REQUESTS_RESERVED > REQUESTS_MAX {
            return Ok(None);
        }
        let trial = Dialect { property: Some(name.to_owned()), language, ..dialect.clone() };
        if let Some(answer) = unless_refused(talk.ask(&trial, &Query::hits(after(LONG_AGO))))? {
            *languages = vec![language];
            return Ok(Some((trial, answer.results.matched.unwrap_or(0))));
        }
    }
    languages.truncate(1);
    Ok(None)
}

/// A name to sort by that is not refused, and whether it is obeyed: then the oldest first is another record than the newest first.
///
/// Ascending stamps alone would show nothing: a catalogue filled in order shows them without any sort, until the first edit.
fn find_sort(talk: &mut Talk<'_>, dialect: &mut Dialect, candidates: &[String]) -> Result<(), Failure> {
    let mut names: Vec<&str> = dialect.property.as_deref().or(candidates.first().map(String::as_str)).into_iter().collect();
    names.extend(["modified", "Modified"].into_iter().filter(|name| dialect.property.as_deref() != Some(name)));
    for name in names {
        if talk.spent + 2 > REQUESTS_MAX {
            break;
        }
        let trial = Dialect { sort: Some(name.to_owned()), ..dialect.clone() };
        let few = Query { max_records: SORT_SAMPLE, ..first_record() };
        let oldest = match unless_refused(talk.ask(&trial, &few)) {
            Ok(Some(oldest)) => oldest,
            Ok(None) => continue,
            // A record that cannot be delivered says nothing about the sort.
            Err(failure) if may_be_one_record(failure.kind) => match talk.ask_briefly(&trial, &first_record())? {
                Some(oldest) => oldest,
                None => continue,
            },
            Err(failure) => return Err(failure),
        };
        let few = Query { max_records: u32::try_from(oldest.results.records.len()).unwrap_or(1).max(1), ..few };
        let Some(newest) = talk.ask_briefly(&trial, &Query { sort_order: SortOrder::Descending, ..few })? else { continue };
        let first = |answer: &Answer| answer.results.records.iter().next().and_then(|record| record.identifier.map(str::to_owned));
        let mut obeyed = has_none_in_common(&oldest, &newest);
        if obeyed && talk.spent < REQUESTS_MAX {
            // Not because the list changed in between.
            obeyed = unless_refused(talk.ask(&trial, &first_record()))?.is_some_and(|again| first(&again) == first(&oldest));
        }
        if obeyed || dialect.sort.is_none() {
            dialect.sort = Some(name.to_owned());
            dialect.sort_obeyed = obeyed;
        }
        if obeyed {
            break;
        }
    }
    Ok(())
}

fn has_none_in_common(one: &Answer, other: &Answer) -> bool {
    let names = |answer: &Answer| -> Vec<String> {
        answer.results.records.iter().filter_map(|record| record.identifier.map(str::to_owned)).collect()
    };
    let (one, other) = (names(one), names(other));
    !one.is_empty() && !other.is_empty() && one.iter().all(|name| !other.contains(name))
}

/// What the store knows of the stamps of a source, for the calibration.
pub trait OwnStamps {
    /// A stamp near the middle of those after 1970 and before `before`, as delivered.
    ///
    /// # Errors
    /// The store's.
    fn median(&self, before: Micros) -> Result<Option<String>, crate::store::StoreError>;
    /// How many stamps lie after 1970-01-01 and before each of these.
    ///
    /// # Errors
    /// The store's.
    fn count_before(&self, befores: [Micros; 3]) -> Result<[u64; 3], crate::store::StoreError>;
}

/// Finds out whose clock the filter follows, and writes it into `dialect`.
///
/// `started` is the catalogue's time when the run began, `shapes` are those of the stamps seen, `missing` the records that the
/// catalogue counts and the store cannot hold.
///
/// # Errors
/// The catalogue's, unless it only refuses, and the store's.
pub fn calibrate(
    catalogue: &mut dyn Catalogue,
    dialect: &mut Dialect,
    own: &dyn OwnStamps,
    shapes: Shapes,
    started: Micros,
    missing: u64,
) -> Result<(), crate::error::Error> {
    let Some(total) = count(catalogue, dialect, after(LONG_AGO))? else {
        dialect.clock = Some(Clock::None);
        return Ok(());
    };
    let median = own.median(started)?.and_then(|text| timestamp::parse(&text));
    let Some(median) = median else {
        // No stamp that can be read: whatever the filter follows, it is nothing that we are shown.
        dialect.clock = (total > 0).then_some(Clock::Server);
        dialect.days_only = refuses_times(catalogue, dialect, LONG_AGO, started)?;
        return find_upper(catalogue, dialect, total, started);
    };
    let mut answered = false;
    for days_only in [dialect.days_only, true] {
        let probe = clock_probe(&median, shapes, days_only);
        let Some(above) = count(catalogue, dialect, after(&probe.literal))? else {
            dialect.days_only = true;
            continue;
        };
        answered = true;
        let pinned = total >= 1_000 && total % 1_000 == 0;
        if !dialect.matched_is_total || pinned {
            // What says how many matched counts the page only, or stops at a ceiling: look at the records themselves.
            let shown = shown_after(catalogue, dialect, &probe.literal)?;
            if shown == Shown::Otherwise {
                continue;
            }
            dialect.clock = Some(Clock::Record);
            dialect.clock_sure = shown == Shown::NewerInOrder;
            dialect.days_only = days_only || refuses_times(catalogue, dialect, &probe.literal, started)?;
            return Ok(());
        }
        let [own_below_min, own_below_max, own_total] = own.count_before([probe.below, probe.above, Micros::MAX])?;
        let mut counts = ClockCounts { total, above, own_below_min, own_below_max, own_total, changed: 0, missing };
        if !counts.fit_record() {
            let recent = if days_only { timestamp::format_day(started) } else { timestamp::format_utc(started) };
            counts.changed = count(catalogue, dialect, after(&recent))?.unwrap_or(0);
        }
        if counts.fit_record() {
            log::debug!("clock record: {counts:?}");
            dialect.clock = Some(Clock::Record);
            dialect.clock_sure = counts.are_telling();
            dialect.days_only = days_only || refuses_times(catalogue, dialect, &probe.literal, started)?;
            return Ok(());
        }
        log::debug!("not the clock of the records: {counts:?} above {}", probe.literal);
    }
    if !answered {
        // Every literal was refused.
        dialect.clock = Some(Clock::None);
        return Ok(());
    }
    dialect.clock = Some(Clock::Server);
    find_upper(catalogue, dialect, total, started)
}

/// Clock *server*: whether a literal without margin brings all of the records that have changed, in one page.
///
/// # Errors
/// The catalogue's, unless it only refuses.
pub fn brings_all(
    catalogue: &mut dyn Catalogue,
    dialect: &Dialect,
    watermark: &str,
    changed: &[String],
    page_size: u32,
) -> Result<bool, crate::error::Error> {
    let query = Query { window: after(watermark), max_records: page_size, ..first_record() };
    let Some(answer) = unless_refused(catalogue.get_records(dialect, &query, Patience::Full))? else { return Ok(false) };
    let brought: HashSet<&str> = answer.results.records.iter().filter_map(|record| record.identifier).collect();
    Ok(changed.iter().all(|identifier| brought.contains(identifier.as_str())))
}

/// Whether date-times are refused, where the clock was told by a plain day: shapes are mixed now, and need not stay so.
fn refuses_times(
    catalogue: &mut dyn Catalogue,
    dialect: &Dialect,
    told_by: &str,
    started: Micros,
) -> Result<bool, crate::error::Error> {
    if told_by.contains('T') {
        return Ok(false);
    }
    let recent = Query::hits(after(&timestamp::format_utc(started)));
    match catalogue.get_records(dialect, &recent, Patience::Full) {
        // None is newer: GeoNetwork says so of the first position.
        Err(failure) if matches!(failure.kind, FailureKind::PastTheEnd) => Ok(false),
        answer => Ok(unless_refused(answer)?.is_none()),
    }
}

/// What the first records after a literal show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// A stamp before the literal, or none that can be read.
    Otherwise,
    /// Stamps after it, as far as they can be read.
    Newer,
    /// As many as were asked for, each with a stamp after it, and in order: no coincidence where the sort is obeyed.
    NewerInOrder,
}

fn shown_after(catalogue: &mut dyn Catalogue, dialect: &Dialect, literal: &str) -> Result<Shown, crate::error::Error> {
    let few = Query { window: after(literal), max_records: SAMPLE, ..first_record() };
    let Some(answer) = unless_refused(catalogue.get_records(dialect, &few, Patience::Full))? else { return Ok(Shown::Otherwise) };
    let bound = timestamp::parse(literal).map_or(Micros::MIN, |interval| interval.start);
    let records = &answer.results.records;
    let stamps: Vec<_> = records.iter().filter_map(|record| timestamp::parse(record.modified?)).collect();
    if stamps.iter().any(|interval| interval.end <= bound) || (stamps.is_empty() && !records.is_empty()) {
        return Ok(Shown::Otherwise);
    }
    let in_order = stamps.len() == SAMPLE as usize && stamps.is_sorted_by_key(|interval| interval.nominal);
    Ok(if in_order && dialect.sort_obeyed { Shown::NewerInOrder } else { Shown::Newer })
}

/// Whether an upper bound is obeyed: none lie before long ago, all before tomorrow.
fn find_upper(
    catalogue: &mut dyn Catalogue,
    dialect: &mut Dialect,
    total: u64,
    started: Micros,
) -> Result<(), crate::error::Error> {
    let upto = |upper: String| Window { upper: Some(upper), ..after(LONG_AGO) };
    let tomorrow = started + 86_400 * SECOND;
    let literal = if dialect.days_only { timestamp::format_day(tomorrow) } else { timestamp::format_utc(tomorrow) };
    let none = count(catalogue, dialect, upto("1970-01-02".to_owned()))?;
    if none == Some(0) {
        let all = count(catalogue, dialect, upto(literal))?;
        dialect.upper_obeyed = all.is_some_and(|all| all > 0 && all + total / 100 + 1 >= total);
    }
    Ok(())
}

fn count(catalogue: &mut dyn Catalogue, dialect: &Dialect, window: Window) -> Result<Option<u64>, crate::error::Error> {
    let answer = unless_refused(catalogue.get_records(dialect, &Query::hits(window), Patience::Full))?;
    Ok(answer.and_then(|answer| answer.results.matched))
}
