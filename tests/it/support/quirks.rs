//! In what ways a catalogue may differ from the specification (OGC 07-006r1) and from its neighbours, as values.
//!
//! `Quirks::default()` is a catalogue that does everything right; `profiles` has the servers of the field. Nothing here acts.

use super::stamps::StampShape;

pub(crate) const CSW: &str = "http://www.opengis.net/cat/csw/2.0.2";
pub(crate) const CSW_300: &str = "http://www.opengis.net/cat/csw/3.0";
pub(crate) const GMD: &str = "http://www.isotc211.org/2005/gmd";

/// What a name must be like to be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    pub(crate) accepted: Vec<&'static str>,
    pub(crate) matching: Matching,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Matching {
    /// Prefix and all, letter by letter (pycsw).
    Exact,
    /// The same in any case (Esri Geoportal 1).
    AnyCase,
    /// What follows the first colon, letter by letter (Examind).
    LocalName,
    /// What follows the first colon, in any case (GeoNetwork).
    LocalNameAnyCase,
    /// Any name that contains one of the accepted (MICKA).
    Containing,
}

impl Names {
    pub(crate) fn exactly(accepted: &[&'static str]) -> Self {
        Names { accepted: accepted.to_vec(), matching: Matching::Exact }
    }

    pub(crate) fn of(matching: Matching, accepted: &[&'static str]) -> Self {
        Names { accepted: accepted.to_vec(), matching }
    }

    pub(crate) fn none() -> Self {
        Names { accepted: Vec::new(), matching: Matching::Exact }
    }

    pub(crate) fn accepts(&self, name: &str) -> bool {
        let local = name.split_once(':').map_or(name, |(_, local)| local);
        self.accepted.iter().any(|accepted| match self.matching {
            Matching::Exact => name == *accepted,
            Matching::AnyCase => name.eq_ignore_ascii_case(accepted),
            Matching::LocalName => local == *accepted,
            Matching::LocalNameAnyCase => local.eq_ignore_ascii_case(accepted),
            Matching::Containing => name.contains(accepted),
        })
    }
}

/// What the filter and the sort look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    /// The stamp that the record shows.
    Shown,
    /// The catalogue's own change time, written in a shape of its own.
    Hidden(StampShape),
}

/// What an edit does to the stamp shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EditedStamp {
    Rewritten,
    /// Whatever is shown stays, as where it is a publication date.
    Kept,
}

/// What csw:Record shows as dct:modified, when it is not what ISO shows as dateStamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CswStamp {
    Same,
    /// deegree 3: `Wed Jun 28 00:00:00 CEST 2017`.
    JavaText,
    /// GeoNetwork: the resource's revision date, often absent.
    Revision,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Text,
    Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnknownName {
    Exception,
    NoHits,
    /// The filter is dropped and everything comes.
    Ignored,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DateTimes {
    Exact,
    /// Date-time literals give an exception, plain days work.
    Refused,
    /// Every date literal gives an exception (GeoNetwork 4.2.8 to 4.2.10).
    EveryDateRefused,
    /// A date-time literal becomes midnight of its month's first day (Esri Geoportal 1).
    MonthStart,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Greater {
    Strict,
    /// `>` acts as `>=` (Esri catalog 2 and 3).
    Inclusive,
}

/// Which instant a plain day names in `>` and `<=`, where times are compared; in `>=` it is always its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DayLiterals {
    Start,
    /// Elasticsearch fills what is missing with 23:59:59.999 in `gt` and `lte`: `>` passes over the whole day.
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnknownSort {
    Exception,
    Ignored,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SortObedience {
    Obeyed,
    /// Accepted, and the order is the one without a sort.
    NotObeyed,
}

/// The order when no sort is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Insertion,
    Identifier,
    /// Another one at each request, from the catalogue's seed.
    RandomEachTime,
    /// What was inserted or edited last comes last, as in a heap table.
    EditedLast,
    /// Newest first (Esri Geoportal 1).
    NewestFirst,
}

/// The order among equal stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ties {
    Rowid,
    /// Shuffled, but always in the same way.
    RandomStable,
    /// Shuffled anew at each request (a search engine with replicas).
    RandomEachTime,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Undated {
    First,
    Last,
}

/// What meets a request whose position + size lies beyond the ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CeilingFace {
    /// NoApplicableCode, "Result window is too large".
    Exception,
    /// HTTP 500 without a body.
    Http500,
    /// No more than that many are said to match, and nothing beyond is to be had (GeoNetwork 4.0).
    MatchedPinned,
    /// The count is right, and nothing beyond is to be had.
    Silence,
    /// A page that begins beyond it is empty, with the right count. One that begins before it is whole.
    EmptyPage,
    /// The same, and nothing is said to match.
    NoneMatch,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Matched {
    True,
    Absent,
    /// As many as the page holds (GeoNetwork 4.2 of spring 2024).
    PageSize,
    Garbage(String),
    /// Garbage only where nothing matches (Esri catalog: `[object Object]`).
    GarbageForNone(String),
    /// Never more than that.
    Pinned(u64),
    /// As many more are said to match than there are.
    TooMany(u64),
    /// Position - 1 + rows (deegree 3 with MaxMatches).
    GrowsWithPage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextRecord {
    /// The next position, 0 at the end.
    Right,
    Absent,
    /// 0 one record early: where next = matched (GeoNetwork 3).
    ZeroTooEarly,
    /// 0 after each page that is full (deegree 3 with MaxMatches).
    ZeroOnFullPage,
    MinusOneAtEnd,
    /// matched + 1 at the end.
    MatchedPlusOne,
    /// Always one more position, whatever came.
    OneMore,
}

/// What a position past the end brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PastEnd {
    /// returned 0, nextRecord 1 (pycsw, CSW 2.0.2).
    EmptyNextOne,
    EmptyNextZero,
    /// InvalidParameterValue, locator startPosition.
    Exception,
    /// NoApplicableCode with the real code and locator within the text (GeoNetwork 4).
    Buried,
    /// The last record comes again.
    LastAgain,
}

/// Whether a past-the-end exception also meets position 1 of an empty result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoMatch {
    Empty,
    AsPastEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hits {
    /// matched, returned 0, nextRecord 1.
    Right,
    SendsRecords,
    /// Neither returned nor nextRecord.
    MatchedOnly,
    /// Says that a page was returned, and sends none (pycsw up to 2.6).
    ClaimsPage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultTypeMissing {
    Hits,
    Results,
}

/// What becomes of a record of another kind than the schema asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conversion {
    Converted,
    /// The whole page fails (GeoNetwork 4: "not supported for metadata").
    PageFails,
    /// A gmd:MD_Metadata that holds a sentence only (Esri catalog).
    Sentence,
}

/// Which versions are spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Versions {
    Only202,
    Only300,
    /// Both; 3.0.0 for those that name none (pycsw, Esri catalog).
    Both,
}

impl Versions {
    pub(crate) fn speaks(self, version: &str) -> bool {
        self.numbers().contains(&version)
    }

    /// The version of whoever names none first.
    pub(crate) fn numbers(self) -> &'static [&'static str] {
        match self {
            Versions::Only202 => &["2.0.2"],
            Versions::Only300 => &["3.0.0"],
            Versions::Both => &["3.0.0", "2.0.2"],
        }
    }
}

/// Which filters are read by GET.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KvpFilters {
    /// The filter of the version, and CQL_TEXT.
    Right,
    /// Filter 1.1 in both versions, and CQL_TEXT (pycsw 2.6).
    Filter11,
    /// CQL_TEXT alone.
    CqlOnly,
}

/// By which binding GetRecords can be had; the other is answered 405.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bindings {
    Both,
    PostOnly,
    GetOnly,
}

/// What is done with a request that the schemas would not let pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Validation {
    Strict,
    Lenient,
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Quirks {
    pub(crate) page_cap: Option<u32>,
    pub(crate) clock: Clock,
    /// How stamps are written at insert and edit.
    pub(crate) shape: StampShape,
    pub(crate) edited_stamp: EditedStamp,
    pub(crate) csw_stamp: CswStamp,
    pub(crate) comparison: Comparison,
    /// Names of the modified property in filters.
    pub(crate) properties: Names,
    pub(crate) unknown_property: UnknownName,
    /// Every filter is dropped, whatever it names.
    pub(crate) filter_ignored: bool,
    pub(crate) date_times: DateTimes,
    pub(crate) greater: Greater,
    pub(crate) day_literals: DayLiterals,
    /// Names of the modified property in SortBy.
    pub(crate) sort_names: Names,
    /// Names of the identifier in SortBy, first or second.
    pub(crate) sort_identifier: Names,
    pub(crate) unknown_sort: UnknownSort,
    pub(crate) sort: SortObedience,
    pub(crate) order: Order,
    pub(crate) ties: Ties,
    pub(crate) undated: Undated,
    /// No request may reach beyond that many records.
    pub(crate) ceiling: Option<(u64, CeilingFace)>,
    pub(crate) matched: Matched,
    pub(crate) next: NextRecord,
    pub(crate) past_end: PastEnd,
    pub(crate) no_match: NoMatch,
    /// Whether startPosition 0 (or less) is an exception.
    pub(crate) position_zero_refused: bool,
    pub(crate) hits: Hits,
    pub(crate) result_type_missing: ResultTypeMissing,
    /// Output schemas offered.
    pub(crate) schemas: Vec<&'static str>,
    pub(crate) conversion: Conversion,
    pub(crate) bindings: Bindings,
    pub(crate) versions: Versions,
    pub(crate) kvp_filters: KvpFilters,
    /// Type names that are refused, by local name.
    pub(crate) type_names_refused: Vec<&'static str>,
    /// Type names under which there is nothing, by local name: records of another kind are kept apart (GeoServer).
    pub(crate) type_names_empty: Vec<&'static str>,
    pub(crate) validation: Validation,
    /// Status of exception reports.
    pub(crate) exception_status: u16,
    /// Locator of the exception about an unknown property.
    pub(crate) property_locator: &'static str,
    /// Queryables that the capabilities name.
    pub(crate) queryables: Vec<&'static str>,
}

impl Default for Quirks {
    fn default() -> Self {
        Quirks {
            page_cap: None,
            clock: Clock::Shown,
            shape: StampShape::Seconds,
            edited_stamp: EditedStamp::Rewritten,
            csw_stamp: CswStamp::Same,
            comparison: Comparison::Time,
            properties: Names::exactly(&["dct:modified", "apiso:Modified"]),
            unknown_property: UnknownName::Exception,
            filter_ignored: false,
            date_times: DateTimes::Exact,
            greater: Greater::Strict,
            day_literals: DayLiterals::Start,
            sort_names: Names::exactly(&["dct:modified", "apiso:Modified"]),
            sort_identifier: Names::exactly(&["dc:identifier", "apiso:Identifier"]),
            unknown_sort: UnknownSort::Exception,
            sort: SortObedience::Obeyed,
            order: Order::Insertion,
            ties: Ties::Rowid,
            undated: Undated::First,
            ceiling: None,
            matched: Matched::True,
            next: NextRecord::Right,
            past_end: PastEnd::EmptyNextZero,
            no_match: NoMatch::Empty,
            position_zero_refused: true,
            hits: Hits::Right,
            result_type_missing: ResultTypeMissing::Hits,
            schemas: vec![CSW, GMD],
            conversion: Conversion::Converted,
            bindings: Bindings::Both,
            versions: Versions::Only202,
            kvp_filters: KvpFilters::Right,
            type_names_refused: Vec::new(),
            type_names_empty: Vec::new(),
            validation: Validation::Strict,
            exception_status: 200,
            property_locator: "PropertyName",
            queryables: vec!["dct:modified"],
        }
    }
}
