//! What is known of a catalogue: which words it understands, and whose clock its filter follows.
//!
//! Values and pure judgement only. How it is found out lies in `negotiate.rs`; where it is remembered, in `store/`.

use crate::csw::request::TypeName;
use crate::csw::{Binding, ConstraintLanguage, Version};
use crate::timestamp::{self, Interval, Micros, Precision, SECOND, Shapes, Zone};

/// What the filter on the modified property compares with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The stamp that the record shows.
    Record,
    /// The catalogue's own change date, which no record shows.
    Server,
    /// Nothing: the filter is ignored, refused or broken, and every run reads everything.
    None,
}

impl Clock {
    /// As it stands in the summary and in the store.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Clock::Record => "record",
            Clock::Server => "server",
            Clock::None => "none",
        }
    }

    /// The clock of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Clock::Record, Clock::Server, Clock::None].into_iter().find(|clock| clock.as_str() == name)
    }
}

/// How to speak with one catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// The url that GetRecords goes to.
    pub endpoint: String,
    /// The version spoken.
    pub version: Version,
    /// How GetRecords is sent.
    pub binding: Binding,
    /// The language of filters by GET.
    pub language: ConstraintLanguage,
    /// What is queried.
    pub type_name: TypeName,
    /// The queryable to filter on; `None` where none works.
    pub property: Option<String>,
    /// The name to sort by; `None` where sorting is refused.
    pub sort: Option<String>,
    /// Ascending and descending were seen to differ: the sort is obeyed.
    pub sort_obeyed: bool,
    /// The calibrated clock; `None` before the first calibration that could tell.
    pub clock: Option<Clock>,
    /// The clock was told without a doubt: the counts were equal while nothing changed.
    pub clock_sure: bool,
    /// Literals are plain days, since date-times are refused or misread.
    pub days_only: bool,
    /// An upper bound was seen to be obeyed.
    pub upper_obeyed: bool,
    /// `numberOfRecordsMatched` was seen to count the whole list, not the page.
    pub matched_is_total: bool,
    /// Clock *server*: how many changes in a row a literal without margin would have brought; see `watermark.rs`.
    pub exact_changes: u32,
    /// Whether gzip may be asked for.
    pub gzip: bool,
}

impl Dialect {
    /// What is assumed of an endpoint before anything was asked.
    #[must_use]
    pub fn untried(endpoint: String) -> Self {
        Dialect {
            endpoint,
            version: Version::default(),
            binding: Binding::default(),
            language: ConstraintLanguage::default(),
            type_name: TypeName::default(),
            property: None,
            sort: None,
            sort_obeyed: false,
            clock: None,
            clock_sure: false,
            days_only: false,
            upper_obeyed: false,
            matched_is_total: false,
            exact_changes: 0,
            gzip: true,
        }
    }
}

impl Dialect {
    /// Whether nothing could be found out, since the catalogue is empty: an unknown name matches as little as a known one.
    #[must_use]
    pub fn is_provisional(&self) -> bool {
        self.property.is_none() && self.clock.is_none()
    }

    /// Whether a filter on the stamp is known to be of use, or may be.
    #[must_use]
    pub fn is_filterable(&self) -> bool {
        self.property.is_some() && self.clock != Some(Clock::None)
    }

    /// How GetRecords is sent, in words that the store keeps: the method, and what differs from the usual.
    #[must_use]
    pub fn manner(&self) -> String {
        let mut words = vec![self.binding.as_str()];
        if self.language == ConstraintLanguage::CqlText {
            words.push(ConstraintLanguage::CqlText.as_str());
        }
        if self.type_name == TypeName::Metadata {
            words.push(TypeName::Metadata.as_str(self.version));
        }
        words.join(" ")
    }

    /// The dialect with what [`Dialect::manner`] said; words that are not known mean the usual.
    #[must_use]
    pub fn in_manner(mut self, manner: &str) -> Self {
        for word in manner.split_whitespace() {
            if let Some(binding) = Binding::named(word) {
                self.binding = binding;
            } else if word == ConstraintLanguage::CqlText.as_str() {
                self.language = ConstraintLanguage::CqlText;
            } else if word == TypeName::Metadata.as_str(self.version) {
                self.type_name = TypeName::Metadata;
            }
        }
        self
    }
}

/// Records with a stamp that equal counts must be made of before they are no coincidence.
const TELLING_MIN: u64 = 8;

/// A question whose answer tells the clocks apart: how many records are newer than a literal just above the median stamp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockProbe {
    /// The literal to send with PropertyIsGreaterThan.
    pub literal: String,
    /// Records whose stamp is before this instant are below the literal, however the catalogue compares.
    pub below: Micros,
    /// Records whose stamp is at or after this instant are above it, however the catalogue compares.
    pub above: Micros,
}

/// The probe for a median stamp.
///
/// The literal lies one unit above the stamp, so that `>` and `>=` (Esri takes the one for the other) answer alike.
#[must_use]
pub fn clock_probe(median: &Interval, shapes: Shapes, days_only: bool) -> ClockProbe {
    const DAY: Micros = 86_400 * SECOND;
    let nominal = median.nominal;
    let exact = shapes.uniform() && !days_only;
    match (exact, median.shape.precision, median.shape.zone, median.shape.separator) {
        (true, Precision::Second(digits @ 0..=6), Zone::Utc | Zone::Unstated, 'T') => {
            let next = nominal + 10_i64.pow(6 - u32::from(digits));
            let mut literal = timestamp::format_utc(next).trim_end_matches('Z').to_owned();
            if digits > 0 {
                let fraction = next.rem_euclid(SECOND) / 10_i64.pow(6 - u32::from(digits));
                literal.push_str(&format!("{}{fraction:0width$}", median.shape.fraction_mark, width = usize::from(digits)));
            }
            if median.shape.zone == Zone::Utc {
                literal.push_str(median.shape.utc_text);
            }
            ClockProbe { literal, below: next, above: next }
        }
        (true, Precision::Day, ..) => {
            // `>` a day may leave out that day (Elasticsearch rounds up) or take in its hours (text comparison).
            ClockProbe { literal: timestamp::format_day(nominal + DAY), below: nominal + DAY, above: nominal + 2 * DAY }
        }
        _ => {
            let literal = timestamp::format_day(nominal + 2 * DAY);
            let start = (nominal + 2 * DAY).div_euclid(DAY) * DAY;
            ClockProbe { literal, below: start - 14 * 3_600 * SECOND, above: start + 36 * 3_600 * SECOND }
        }
    }
}

/// The counts that the clock is judged by. All of records with a stamp after 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockCounts {
    /// The catalogue's: how many there are.
    pub total: u64,
    /// The catalogue's: how many of them are above the probe.
    pub above: u64,
    /// Ours: how many are below the probe for certain.
    pub own_below_min: u64,
    /// Ours: how many may be below it.
    pub own_below_max: u64,
    /// Ours: how many there are.
    pub own_total: u64,
    /// The catalogue's: how many changed since the run began; 0 when not asked.
    pub changed: u64,
    /// Records that the catalogue counts and we cannot hold: without identifier, of one identifier with another, not to be had.
    pub missing: u64,
}

impl ClockCounts {
    /// How many records may have left the part below the probe since we read them, although the clock is *record*, by an edit or a
    /// deletion: what we have too much, also from before this run, when what changed is added to it.
    fn tolerance(&self) -> u64 {
        (self.own_total + self.changed).saturating_sub(self.total)
    }

    /// Whether the counts fit the clock *record*.
    ///
    /// A doubt is decided for *record*: a watermark that is a settled stamp loses nothing under either clock, one that is the server's time
    /// does where the filter follows the records.
    #[must_use]
    pub fn fit_record(&self) -> bool {
        let below = self.total.saturating_sub(self.above);
        let tolerance = self.tolerance();
        below + tolerance >= self.own_below_min && below <= self.own_below_max + self.changed + self.missing
    }

    /// Whether they fit by so little tolerance, among so many records, that it is no coincidence.
    #[must_use]
    pub fn are_telling(&self) -> bool {
        let smaller = self.own_below_min.min(self.own_total.saturating_sub(self.own_below_max));
        self.own_total >= TELLING_MIN && (self.tolerance() + self.missing) * 5 <= smaller
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timestamp::parse;

    fn counts(total: u64, above: u64, own_below: u64, changed: u64) -> ClockCounts {
        ClockCounts { total, above, own_below_min: own_below, own_below_max: own_below, own_total: total, changed, missing: 0 }
    }

    #[test]
    fn equal_counts_mean_record_and_others_server() {
        assert!(counts(10, 5, 5, 0).fit_record());
        assert!(!counts(10, 10, 5, 0).fit_record());
        assert!(!counts(1, 1, 1, 0).fit_record());
    }

    #[test]
    fn records_deleted_before_this_run_are_allowed_for() {
        let counts = ClockCounts { own_total: 1_190, own_below_min: 600, own_below_max: 600, ..counts(1_000, 500, 600, 0) };
        assert!(counts.fit_record());
        assert!(!counts.are_telling());
    }

    #[test]
    fn a_few_records_or_a_large_tolerance_tell_little() {
        assert!(counts(200, 100, 100, 5).are_telling());
        assert!(!counts(200, 100, 100, 30).are_telling());
        assert!(!counts(6, 3, 3, 0).are_telling());
    }

    #[test]
    fn what_changed_meanwhile_is_allowed_for() {
        assert!(counts(5_000, 2_560, 2_500, 80).fit_record());
        assert!(!counts(5_000, 4_900, 2_500, 80).fit_record());
    }

    #[test]
    fn records_that_cannot_be_held_are_no_reason_to_mistake_the_clock() {
        let counts = ClockCounts { own_total: 9, own_below_min: 4, own_below_max: 4, ..counts(10, 5, 4, 0) };
        assert!(!counts.fit_record());
        assert!(ClockCounts { missing: 1, ..counts }.fit_record());
    }

    #[test]
    fn the_probe_lies_one_unit_above_the_stamp() {
        let mut shapes = Shapes::default();
        let stamp = parse("2020-12-31T23:59:59Z").unwrap();
        shapes.observe(stamp.shape);
        assert_eq!(clock_probe(&stamp, shapes, false).literal, "2021-01-01T00:00:00Z");
        assert_eq!(clock_probe(&stamp, shapes, true).literal, "2021-01-02");
        let stamp = parse("2020-12-31T23:59:59.999Z").unwrap();
        let mut shapes = Shapes::default();
        shapes.observe(stamp.shape);
        assert_eq!(clock_probe(&stamp, shapes, false).literal, "2021-01-01T00:00:00.000Z");
        let stamp = parse("2020-12-31T23:59:59").unwrap();
        let mut shapes = Shapes::default();
        shapes.observe(stamp.shape);
        assert_eq!(clock_probe(&stamp, shapes, false).literal, "2021-01-01T00:00:00");
    }

    #[test]
    fn manners_go_both_ways() {
        let usual = Dialect::untried("http://c/".to_owned());
        let cql = Dialect { binding: Binding::Get, language: ConstraintLanguage::CqlText, ..usual.clone() };
        let iso = Dialect { type_name: TypeName::Metadata, version: Version::V300, ..usual.clone() };
        for (dialect, manner) in [(usual, "post"), (cql, "get CQL_TEXT"), (iso, "post gmd:MD_Metadata")] {
            assert_eq!(dialect.manner(), manner);
            let again = Dialect { version: dialect.version, ..Dialect::untried("http://c/".to_owned()) }.in_manner(manner);
            assert_eq!(again, dialect);
        }
    }

    #[test]
    fn names_of_clocks_go_both_ways() {
        for clock in [Clock::Record, Clock::Server, Clock::None] {
            assert_eq!(Clock::named(clock.as_str()), Some(clock));
        }
        assert_eq!(Clock::named("moon"), None);
    }
}
