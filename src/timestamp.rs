//! The forms of a stamp, the interval that each names, and how they are ordered.
//!
//! A *stamp* is a modified date as a catalogue delivered it. Catalogues deliver seconds, fractions, minutes, days, months and
//! years, with `Z`, with an offset or with no zone at all. This module says which span of time a stamp names and of which shape
//! it is; it never changes a stamp's text, never guesses at a form that it does not know, and knows no clock.

use time::{Date, Month, OffsetDateTime};

/// Microseconds since 1970-01-01T00:00:00Z.
pub type Micros = i64;

/// One second in [`Micros`].
pub const SECOND: Micros = 1_000_000;

const MINUTE: Micros = 60 * SECOND;
const HOUR: Micros = 60 * MINUTE;
const DAY: Micros = 24 * HOUR;

/// The zones on earth reach from `+14:00` to `-12:00`.
const ZONE_EAST_MOST: Micros = 14 * HOUR;
const ZONE_WEST_MOST: Micros = 12 * HOUR;

/// XML Schema part 2, 3.2.7.3: an offset is at most 14 hours.
const OFFSET_MINUTES_MAX: i16 = 14 * 60;

/// More digits than any clock has; a longer fraction is no stamp.
const FRACTION_DIGITS_MAX: usize = 18;

/// 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z in seconds: what four digits of a year can say.
const SECONDS_MIN: i64 = -62_135_596_800;
const SECONDS_MAX: i64 = 253_402_300_799;

/// Every way to write UTC. They mean the same and sort differently as text, so each makes a shape of its own.
const UTC_TEXTS: [&str; 8] = ["Z", "z", "+00:00", "-00:00", "+0000", "-0000", "+00", "-00"];

/// How precise a stamp is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// `2011`
    Year,
    /// `2011-07`
    Month,
    /// `2011-07-04`
    Day,
    /// `20110704`
    BasicDay,
    /// `2011-07-04T10:00`
    Minute,
    /// `20110704T1000`
    BasicMinute,
    /// `2011-07-04T10:00:00` with so many digits of a fraction (0 for none).
    Second(u8),
    /// `20110704T100000` with so many digits of a fraction (0 for none).
    BasicSecond(u8),
}

/// What stands in the place of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zone {
    /// `Z`, `+00:00`, `-00:00`: all that is UTC. Which of them is told by [`Shape::utc_text`].
    Utc,
    /// Any other offset.
    Offset,
    /// None written: the catalogue's own zone, which nobody told us.
    Unstated,
}

/// The written form of a stamp. Stamps of one shape sort as text as they sort in time, unless the zone is [`Zone::Offset`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Precision.
    pub precision: Precision,
    /// Zone.
    pub zone: Zone,
    /// UTC as it was written (`Z`, `z`, `+00:00`, ...); empty unless the zone is [`Zone::Utc`].
    pub utc_text: &'static str,
    /// The character between date and time (`T`, `t` or a blank); `T` where there is no time.
    pub separator: char,
    /// The character before the fraction (`.` or `,`); `.` where there is no fraction.
    pub fraction_mark: char,
}

/// The span of time that a stamp names: `start` inclusive, `end` exclusive.
///
/// Where no zone is written the span is widened to every zone on earth: from 14 hours before to 12 hours after what UTC would give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// First instant.
    pub start: Micros,
    /// First instant after.
    pub end: Micros,
    /// The instant that the stamp would name in UTC (or names, if a zone is written), for ordering.
    pub nominal: Micros,
    /// The offset that is written, in minutes east of UTC; 0 where none is.
    pub offset_minutes: i16,
    /// The written form.
    pub shape: Shape,
}

impl Interval {
    /// Whether the span ended at least `settle` before `server_now`, so that no further record should get a stamp within it.
    #[must_use]
    pub fn settled(&self, server_now: Micros, settle: Micros) -> bool {
        self.end.saturating_add(settle) <= server_now
    }
}

/// The shapes that the stamps of a source were seen in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Shapes {
    /// No stamp yet.
    #[default]
    Unseen,
    /// All alike.
    One(Shape),
    /// At least two.
    Mixed,
}

impl Shapes {
    /// Takes note of one stamp's shape.
    pub fn observe(&mut self, shape: Shape) {
        self.merge(Shapes::One(shape));
    }

    /// Takes note of what was seen elsewhere.
    pub fn merge(&mut self, other: Shapes) {
        *self = match (*self, other) {
            (Shapes::Unseen, seen) | (seen, Shapes::Unseen) => seen,
            (Shapes::One(ours), Shapes::One(theirs)) if ours == theirs => Shapes::One(ours),
            _ => Shapes::Mixed,
        };
    }

    /// Whether text order and time order agree among the stamps seen, so that a stamp's own text may be sent as a literal.
    #[must_use]
    pub fn uniform(&self) -> bool {
        match self {
            Shapes::Unseen => true,
            Shapes::One(shape) => shape.zone != Zone::Offset,
            Shapes::Mixed => false,
        }
    }

    /// A stable text to store: empty, `mixed`, or a pattern such as `YYYY-MM-DDThh:mm:ss.fffZ`.
    #[must_use]
    pub fn to_text(&self) -> String {
        match self {
            Shapes::Unseen => String::new(),
            Shapes::One(shape) => shape.pattern(),
            Shapes::Mixed => "mixed".to_owned(),
        }
    }

    /// Reads [`Shapes::to_text`]. Text that it does not know is [`Shapes::Mixed`], which promises nothing.
    #[must_use]
    pub fn from_text(text: &str) -> Shapes {
        if text.is_empty() {
            return Shapes::Unseen;
        }
        match Shape::from_pattern(text) {
            Some(shape) => Shapes::One(shape),
            None => Shapes::Mixed,
        }
    }
}

impl Shape {
    fn pattern(&self) -> String {
        let (date, clock, digits) = match self.precision {
            Precision::Year => ("YYYY", "", 0),
            Precision::Month => ("YYYY-MM", "", 0),
            Precision::Day => ("YYYY-MM-DD", "", 0),
            Precision::BasicDay => ("YYYYMMDD", "", 0),
            Precision::Minute => ("YYYY-MM-DD", "hh:mm", 0),
            Precision::BasicMinute => ("YYYYMMDD", "hhmm", 0),
            Precision::Second(digits) => ("YYYY-MM-DD", "hh:mm:ss", digits),
            Precision::BasicSecond(digits) => ("YYYYMMDD", "hhmmss", digits),
        };
        let mut text = date.to_owned();
        if !clock.is_empty() {
            text.push(self.separator);
            text.push_str(clock);
        }
        if digits > 0 {
            text.push(self.fraction_mark);
            text.extend(std::iter::repeat_n('f', usize::from(digits)));
        }
        text.push_str(if self.zone == Zone::Offset { "+hh:mm" } else { self.utc_text });
        text
    }

    /// A pattern with digits for its letters is a stamp, and its shape is the one meant.
    fn from_pattern(pattern: &str) -> Option<Shape> {
        let stamp: String = pattern.chars().map(|c| if "YMDhmsf".contains(c) { '1' } else { c }).collect();
        let shape = parse(&stamp)?.shape;
        (shape.pattern() == pattern).then_some(shape)
    }
}

/// Reads a stamp, surrounding blanks aside, by its shape: `YYYY`, `YYYY-MM`, `YYYY-MM-DD` with or without a zone (as `xs:date`
/// has it), `YYYYMMDD`, and dates with a time to the minute, the second or a fraction of it, extended or basic, with or without a
/// zone.
///
/// Years are 0001 to 9999. `24:00` is the start of the next day. A second 60 is the end of second 59, whatever its fraction.
/// None where the text has no such form or names no day of the calendar.
#[must_use]
pub fn parse(text: &str) -> Option<Interval> {
    let mut cursor = Cursor(text.trim());
    let year = i32::try_from(cursor.number(4)?).ok().filter(|year| *year > 0)?;
    if cursor.at_end() {
        let width = Micros::from(time::util::days_in_year(year)) * DAY;
        return day_interval(year, Month::January, 1, Precision::Year, width);
    }

    let style = if cursor.skip('-') { Style::Extended } else { Style::Basic };
    let month = Month::try_from(u8::try_from(cursor.number(2)?).ok()?).ok()?;
    if cursor.at_end() && style == Style::Extended {
        let width = Micros::from(month.length(year)) * DAY;
        return day_interval(year, month, 1, Precision::Month, width);
    }
    if style == Style::Extended && !cursor.skip('-') {
        return None;
    }

    let day = u8::try_from(cursor.number(2)?).ok()?;
    if cursor.at_end() && style == Style::Basic {
        return day_interval(year, month, day, Precision::BasicDay, DAY);
    }
    if let Some(separator) = cursor.one_of(&['T', 't', ' ']) {
        return moment(start_of(year, month, day)?, separator, style, cursor);
    }
    if style == Style::Basic || !matches!(cursor.0.len(), 0 | 1 | 6) {
        return None;
    }
    Some(interval(start_of(year, month, day)?, DAY, Written::plain(Precision::Day), WrittenZone::parse(cursor.0)?))
}

/// `2026-07-09T22:14:07Z`: the second in which the instant lies. Instants outside of the years 0001 to 9999 give the nearest of
/// these.
#[must_use]
pub fn format_utc(at: Micros) -> String {
    let at = calendar(at);
    let (hour, minute, second) = at.to_hms();
    format!("{}T{hour:02}:{minute:02}:{second:02}Z", day_text(at.date()))
}

/// `2026-07-09`: the day in UTC in which the instant lies, bounded like [`format_utc`].
#[must_use]
pub fn format_day(at: Micros) -> String {
    day_text(calendar(at).date())
}

/// The plain day before the day of a stamp: of the day that is written and the day in UTC the earlier one counts.
///
/// As a literal it lies before the stamp whether a catalogue compares text, days or instants, and whichever zone it takes a plain
/// day to be in (but there is no day before 0001-01-01).
#[must_use]
pub fn day_before(interval: &Interval) -> String {
    let written = interval.nominal.saturating_add(Micros::from(interval.offset_minutes) * MINUTE);
    format_day(written.min(interval.nominal).saturating_sub(DAY))
}

/// An instant of the `time` crate, floored to microseconds.
#[must_use]
pub fn micros_from(t: OffsetDateTime) -> Micros {
    let micros = t.unix_timestamp_nanos().div_euclid(1_000);
    Micros::try_from(micros).unwrap_or(if micros < 0 { Micros::MIN } else { Micros::MAX })
}

/// With or without separators within date and time (ISO 8601); the two are not mixed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Extended,
    Basic,
}

/// The parts of a [`Shape`] that are not the zone.
struct Written {
    precision: Precision,
    separator: char,
    fraction_mark: char,
}

impl Written {
    fn plain(precision: Precision) -> Self {
        Written { precision, separator: 'T', fraction_mark: '.' }
    }
}

struct WrittenZone {
    zone: Zone,
    utc_text: &'static str,
    offset_minutes: i16,
}

impl WrittenZone {
    const UNSTATED: WrittenZone = WrittenZone { zone: Zone::Unstated, utc_text: "", offset_minutes: 0 };

    /// All of `text` is the zone: nothing, `Z`, `z`, `+hh:mm`, `+hhmm`, `+hh`, or the same with `-`.
    fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self::UNSTATED);
        }
        if let Some(utc_text) = UTC_TEXTS.into_iter().find(|utc| *utc == text) {
            return Some(WrittenZone { zone: Zone::Utc, utc_text, offset_minutes: 0 });
        }
        let mut cursor = Cursor(text);
        let sign = if cursor.one_of(&['+', '-'])? == '+' { 1 } else { -1 };
        let hours = cursor.number(2)?;
        let minutes = match cursor.0.len() {
            0 => 0,
            3 if !cursor.skip(':') => return None,
            2 | 3 => cursor.number(2)?,
            _ => return None,
        };
        let offset_minutes = i16::try_from(hours * 60 + minutes).ok()?;
        if minutes > 59 || offset_minutes > OFFSET_MINUTES_MAX || !cursor.at_end() {
            return None;
        }
        Some(WrittenZone { zone: Zone::Offset, utc_text: "", offset_minutes: sign * offset_minutes })
    }
}

/// What is left to read.
struct Cursor<'a>(&'a str);

impl Cursor<'_> {
    fn at_end(&self) -> bool {
        self.0.is_empty()
    }

    /// Exactly so many decimal digits.
    fn number(&mut self, digits: usize) -> Option<u32> {
        let (number, rest) = self.0.split_at_checked(digits)?;
        if !number.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        self.0 = rest;
        number.parse().ok()
    }

    fn skip(&mut self, expected: char) -> bool {
        self.one_of(&[expected]).is_some()
    }

    fn one_of(&mut self, expected: &[char]) -> Option<char> {
        let first = self.0.chars().next().filter(|c| expected.contains(c))?;
        self.0 = self.0.strip_prefix(first)?;
        Some(first)
    }
}

/// The rest of a date-time after its separator.
fn moment(midnight: Micros, separator: char, style: Style, mut cursor: Cursor<'_>) -> Option<Interval> {
    let hour = cursor.number(2)?;
    if style == Style::Extended && !cursor.skip(':') {
        return None;
    }
    let minute = cursor.number(2)?;
    let second = match style {
        Style::Extended if cursor.skip(':') => Some(cursor.number(2)?),
        Style::Basic if cursor.0.starts_with(|c: char| c.is_ascii_digit()) => Some(cursor.number(2)?),
        _ => None,
    };
    let fraction = match second {
        Some(_) => Fraction::read(&mut cursor)?,
        None => Fraction::NONE,
    };
    let zone = WrittenZone::parse(cursor.0)?;

    let full_second = second.unwrap_or(0);
    let past_midnight = minute > 0 || full_second > 0 || fraction.micros > 0;
    if minute > 59 || full_second > 60 || hour > 24 || (hour == 24 && past_midnight) {
        return None;
    }
    let within_second = if full_second == 60 { 0 } else { fraction.micros };
    let at =
        midnight + Micros::from(hour) * HOUR + Micros::from(minute) * MINUTE + Micros::from(full_second) * SECOND + within_second;
    let (precision, width) = match (style, second) {
        (Style::Extended, None) => (Precision::Minute, MINUTE),
        (Style::Basic, None) => (Precision::BasicMinute, MINUTE),
        (Style::Extended, Some(_)) => (Precision::Second(fraction.digits), fraction.width),
        (Style::Basic, Some(_)) => (Precision::BasicSecond(fraction.digits), fraction.width),
    };
    Some(interval(at, width, Written { precision, separator, fraction_mark: fraction.mark }, zone))
}

/// The fraction of a second, cut to microseconds.
struct Fraction {
    micros: Micros,
    /// How long the unit of the last digit lasts, at least a microsecond.
    width: Micros,
    digits: u8,
    mark: char,
}

impl Fraction {
    const NONE: Fraction = Fraction { micros: 0, width: SECOND, digits: 0, mark: '.' };

    fn read(cursor: &mut Cursor<'_>) -> Option<Fraction> {
        let Some(mark) = cursor.one_of(&['.', ',']) else {
            return Some(Fraction::NONE);
        };
        let rest = cursor.0.trim_start_matches(|c: char| c.is_ascii_digit());
        let written = cursor.0.strip_suffix(rest)?;
        cursor.0 = rest;
        if written.is_empty() || written.len() > FRACTION_DIGITS_MAX {
            return None;
        }
        let mut fraction = Fraction { mark, digits: u8::try_from(written.len()).ok()?, ..Fraction::NONE };
        for digit in written.bytes().take(6) {
            fraction.width /= 10;
            fraction.micros += Micros::from(digit - b'0') * fraction.width;
        }
        Some(fraction)
    }
}

fn start_of(year: i32, month: Month, day: u8) -> Option<Micros> {
    let date = Date::from_calendar_date(year, month, day).ok()?;
    Some(date.midnight().assume_utc().unix_timestamp() * SECOND)
}

fn day_interval(year: i32, month: Month, day: u8, precision: Precision, width: Micros) -> Option<Interval> {
    Some(interval(start_of(year, month, day)?, width, Written::plain(precision), WrittenZone::UNSTATED))
}

fn interval(written_at: Micros, width: Micros, written: Written, zone: WrittenZone) -> Interval {
    let nominal = written_at - Micros::from(zone.offset_minutes) * MINUTE;
    let (before, after) = match zone.zone {
        Zone::Unstated => (ZONE_EAST_MOST, ZONE_WEST_MOST),
        Zone::Utc | Zone::Offset => (0, 0),
    };
    let Written { precision, separator, fraction_mark } = written;
    Interval {
        start: nominal - before,
        end: nominal + width + after,
        nominal,
        offset_minutes: zone.offset_minutes,
        shape: Shape { precision, zone: zone.zone, utc_text: zone.utc_text, separator, fraction_mark },
    }
}

fn calendar(at: Micros) -> OffsetDateTime {
    let seconds = at.div_euclid(SECOND).clamp(SECONDS_MIN, SECONDS_MAX);
    OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

fn day_text(date: Date) -> String {
    format!("{:04}-{:02}-{:02}", date.year(), u8::from(date.month()), date.day())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn utc(text: &str) -> Micros {
        time::OffsetDateTime::parse(text, &time::format_description::well_known::Rfc3339).map(micros_from).unwrap()
    }

    fn span(text: &str) -> (Micros, Micros) {
        let read = parse(text).unwrap();
        (read.start, read.end)
    }

    fn shape(text: &str) -> Shape {
        parse(text).unwrap().shape
    }

    #[test]
    fn a_stamp_with_a_zone_names_exactly_the_span_of_its_last_digit() {
        let cases = [
            ("2011-07-04T10:00:00Z", "2011-07-04T10:00:00Z", SECOND),
            ("  2011-07-04T10:00:00Z\n", "2011-07-04T10:00:00Z", SECOND),
            ("2011-07-04T10:00:00.5Z", "2011-07-04T10:00:00.5Z", 100_000),
            ("2011-07-04T10:00:00,05Z", "2011-07-04T10:00:00.05Z", 10_000),
            ("2011-07-04T10:00:00.123456Z", "2011-07-04T10:00:00.123456Z", 1),
            ("2011-07-04T10:00:00.123456789012345678Z", "2011-07-04T10:00:00.123456Z", 1),
            ("2011-07-04T10:00Z", "2011-07-04T10:00:00Z", MINUTE),
            ("2011-07-04t10:00:00z", "2011-07-04T10:00:00Z", SECOND),
            ("2011-07-04 10:00:00+00:00", "2011-07-04T10:00:00Z", SECOND),
            ("2011-07-04T10:00:00+02:00", "2011-07-04T08:00:00Z", SECOND),
            ("2011-07-04T10:00:00+0230", "2011-07-04T07:30:00Z", SECOND),
            ("2011-07-04T10:00:00-05", "2011-07-04T15:00:00Z", SECOND),
            ("20110704T100000Z", "2011-07-04T10:00:00Z", SECOND),
            ("20110704T100000.25+0100", "2011-07-04T09:00:00.25Z", 10_000),
            ("20110704T1000Z", "2011-07-04T10:00:00Z", MINUTE),
            ("2024-05-06Z", "2024-05-06T00:00:00Z", DAY),
            ("2024-05-06+02:00", "2024-05-05T22:00:00Z", DAY),
            ("2024-05-06-05:00", "2024-05-06T05:00:00Z", DAY),
            ("2024-05-06T24:00:00Z", "2024-05-07T00:00:00Z", SECOND),
            ("2024-12-31T24:00Z", "2025-01-01T00:00:00Z", MINUTE),
            ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z", SECOND),
            ("2016-12-31T23:59:60.7Z", "2017-01-01T00:00:00Z", 100_000),
            ("1969-12-31T23:59:59.9Z", "1969-12-31T23:59:59.9Z", 100_000),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z", SECOND),
        ];
        for (text, start, width) in cases {
            assert_eq!(span(text), (utc(start), utc(start) + width), "{text}");
        }
        assert_eq!(span("9999-12-31T24:00:00Z").0, utc("9999-12-31T23:59:59Z") + SECOND);
    }

    #[test]
    fn a_stamp_without_a_zone_is_widened_to_every_zone_on_earth() {
        let cases = [
            ("2011", "2011-01-01T00:00:00Z", 365 * DAY),
            ("2012", "2012-01-01T00:00:00Z", 366 * DAY),
            ("9999", "9999-01-01T00:00:00Z", 365 * DAY),
            ("2012-02", "2012-02-01T00:00:00Z", 29 * DAY),
            ("2011-12", "2011-12-01T00:00:00Z", 31 * DAY),
            ("2011-07-04", "2011-07-04T00:00:00Z", DAY),
            ("20110704", "2011-07-04T00:00:00Z", DAY),
            ("2011-07-04T10:00", "2011-07-04T10:00:00Z", MINUTE),
            ("2011-07-04T10:00:00", "2011-07-04T10:00:00Z", SECOND),
            ("2011-07-04 10:00:00.000", "2011-07-04T10:00:00Z", 1_000),
        ];
        for (text, nominal, width) in cases {
            let read = parse(text).unwrap();
            assert_eq!(read.nominal, utc(nominal), "{text}");
            assert_eq!((read.start, read.end), (read.nominal - 14 * HOUR, read.nominal + width + 12 * HOUR), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_stamps() {
        let cases = [
            "",
            " ",
            "0000",
            "0000-01-01",
            "201",
            "20111",
            "201107",
            "2011070",
            "2011-7-4",
            "2011-13",
            "2011-00-01",
            "2011-02-29",
            "20110229",
            "2011-0704",
            "201107-04",
            "2011/07/04",
            "01/06/2024",
            "WED JUN 28",
            "2011Z",
            "2011-07Z",
            "20110704Z",
            "2011-07-04+02",
            "2011-07-04T",
            "2011-07-04T10",
            "2011-07-04T10Z",
            "2011-07-04T1000Z",
            "20110704T10:00Z",
            "2011-07-04T10:00:00.",
            "2011-07-04T10:00:00.Z",
            "2011-07-04T10:00:00.1234567890123456789Z",
            "2011-07-04T10:00.5Z",
            "2011-07-04T25:00:00Z",
            "2011-07-04T24:00:01Z",
            "2011-07-04T24:00:00.1Z",
            "2011-07-04T10:60:00Z",
            "2011-07-04T10:00:61Z",
            "2011-07-04T10:00:00 Z",
            "2011-07-04T10:00:00+2",
            "2011-07-04T10:00:00+02:0",
            "2011-07-04T10:00:00+02:60",
            "2011-07-04T10:00:00+14:01",
            "2011-07-04T10:00:00+02:000",
            "2011-07-04T10:00:00ZZ",
            "2011-07-04  10:00:00Z",
            "+2011-07-04",
            "-2011-07-04",
            "2011\u{2010}07\u{2010}04",
            "\u{662}\u{660}\u{661}\u{661}",
        ];
        for text in cases {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn s2_instants_are_compared_not_texts() {
        let stamps = ["2025-03-01T01:00:00+02:00", "2025-03-01T00:00:00.5Z", "2025-03-01T00:00:00Z"];

        let latest = stamps.into_iter().max_by_key(|text| parse(text).unwrap().nominal);

        assert_eq!(latest, Some("2025-03-01T00:00:00.5Z"));
    }

    #[test]
    fn s5_a_gco_date_and_a_gco_date_time_are_both_read() {
        assert_eq!(shape("2011-07-04").precision, Precision::Day);
        assert_eq!(shape("2011-07-04T10:00:00").precision, Precision::Second(0));
    }

    #[test]
    fn s6_years_months_and_basic_days_are_read_and_java_dates_are_not() {
        assert_eq!(shape("2011").precision, Precision::Year);
        assert_eq!(shape("2011-07").precision, Precision::Month);
        assert_eq!(shape("20110704").precision, Precision::BasicDay);
        assert_eq!(parse("WED JUN 28 00:00:00 CES"), None);
        assert_eq!(parse("Wed Jun 28 00:00:00 CEST 2017"), None);
    }

    #[test]
    fn forms_that_sort_differently_as_text_have_different_shapes() {
        let forms = [
            "2011",
            "2011-07",
            "2011-07-04",
            "2011-07-04Z",
            "2011-07-04+02:00",
            "20110704",
            "2011-07-04T10:00",
            "2011-07-04T10:00Z",
            "2011-07-04T10:00:00",
            "2011-07-04T10:00:00Z",
            "2011-07-04T10:00:00z",
            "2011-07-04t10:00:00Z",
            "2011-07-04 10:00:00Z",
            "2011-07-04T10:00:00+00:00",
            "2011-07-04T10:00:00-00:00",
            "2011-07-04T10:00:00+0000",
            "2011-07-04T10:00:00+00",
            "2011-07-04T10:00:00+01:00",
            "2011-07-04T10:00:00.0Z",
            "2011-07-04T10:00:00,0Z",
            "2011-07-04T10:00:00.00Z",
            "20110704T1000Z",
            "20110704T100000Z",
            "20110704T100000.0Z",
        ];
        for (i, one) in forms.iter().enumerate() {
            for other in forms.iter().skip(i + 1) {
                assert_ne!(shape(one), shape(other), "{one} {other}");
            }
        }
    }

    #[test]
    fn a_span_is_settled_once_its_end_is_as_old_as_asked() {
        let second = parse("2025-03-01T00:00:00Z").unwrap();
        let day = parse("2025-03-01").unwrap();
        let now = utc("2025-03-01T00:01:01Z");

        assert!(second.settled(now, 60 * SECOND));
        assert!(!second.settled(now - 1, 60 * SECOND));
        assert!(!day.settled(utc("2025-03-02T11:59:59Z"), 0));
        assert!(day.settled(utc("2025-03-02T12:00:00Z"), 0));
        assert!(!second.settled(now, Micros::MAX));
    }

    #[test]
    fn the_day_before_is_earlier_than_the_written_day_and_the_day_in_utc() {
        let cases = [
            ("2025-03-01T10:00:00Z", "2025-02-28"),
            ("2025-03-01", "2025-02-28"),
            ("2025-03-01T00:00:00", "2025-02-28"),
            ("2025-03", "2025-02-28"),
            ("2025", "2024-12-31"),
            ("2025-03-01T01:00:00+02:00", "2025-02-27"),
            ("2025-03-01T03:00:00+02:00", "2025-02-28"),
            ("2025-03-01T23:00:00-05:00", "2025-02-28"),
            ("2025-03-01-05:00", "2025-02-28"),
            ("2025-03-01+05:00", "2025-02-27"),
            ("0001-01-01", "0001-01-01"),
        ];
        for (stamp, before) in cases {
            assert_eq!(day_before(&parse(stamp).unwrap()), before, "{stamp}");
        }
    }

    #[test]
    fn instants_are_written_by_the_second_that_holds_them() {
        assert_eq!(format_utc(utc("2026-07-09T22:14:07.999Z")), "2026-07-09T22:14:07Z");
        assert_eq!(format_day(utc("2026-07-09T22:14:07Z")), "2026-07-09");
        assert_eq!(format_utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(format_utc(-1), "1969-12-31T23:59:59Z");
        assert_eq!(format_day(-1), "1969-12-31");
        assert_eq!(format_utc(Micros::MIN), "0001-01-01T00:00:00Z");
        assert_eq!(format_utc(Micros::MAX), "9999-12-31T23:59:59Z");
    }

    #[test]
    fn an_instant_of_the_time_crate_is_floored_to_microseconds() {
        let before_epoch = OffsetDateTime::from_unix_timestamp_nanos(-1).unwrap();

        assert_eq!(micros_from(before_epoch), -1);
        assert_eq!(micros_from(OffsetDateTime::UNIX_EPOCH), 0);
    }

    #[test]
    fn shapes_are_uniform_while_all_are_one_and_none_has_an_offset() {
        let mut seen = Shapes::default();
        assert!(seen.uniform());

        seen.observe(shape("2011-07-04T10:00:00+00:00"));
        seen.observe(shape("2012-07-04T10:00:01+00:00"));
        seen.merge(Shapes::Unseen);
        assert!(seen.uniform());

        seen.observe(shape("2011-07-04T10:00:00Z"));
        assert_eq!(seen, Shapes::Mixed);
        assert!(!seen.uniform());
        seen.merge(Shapes::Unseen);
        seen.observe(shape("2011-07-04T10:00:00Z"));
        assert_eq!(seen, Shapes::Mixed);
        assert!(!Shapes::One(shape("2011-07-04T10:00:00+01:00")).uniform());
        assert!(Shapes::One(shape("2011-07-04")).uniform());
    }

    #[test]
    fn shapes_are_stored_as_a_pattern_that_can_be_read_again() {
        assert_eq!(Shapes::One(shape("2011-07-04T10:00:00.123Z")).to_text(), "YYYY-MM-DDThh:mm:ss.fffZ");
        assert_eq!(Shapes::One(shape("20110704 1000-05")).to_text(), "YYYYMMDD hhmm+hh:mm");
        assert_eq!(Shapes::from_text(""), Shapes::Unseen);
        assert_eq!(Shapes::from_text("mixed"), Shapes::Mixed);
        for unknown in ["YYYY-DD", "2011-07-04", "YYYY-MM-DDThh:mm:ss+hhmm", "One", "YYYY-MM-DDThh:mm:ssQ"] {
            assert_eq!(Shapes::from_text(unknown), Shapes::Mixed, "{unknown}");
        }
    }

    prop_compose! {
        fn instant()(seconds in SECONDS_MIN..=SECONDS_MAX, micros in 0..SECOND) -> Micros { seconds * SECOND + micros }
    }

    /// Zones that keep a shape uniform, each with each form of date and time.
    fn uniform_form() -> impl Strategy<Value = (u8, &'static str, &'static str, &'static str)> {
        let zones = prop::sample::select(vec!["", "Z", "z", "+00:00", "-00:00", "+0000", "-0000", "+00", "-00"]);
        let separators = prop::sample::select(vec!["T", "t", " "]);
        (0..26_u8, zones, separators, prop::sample::select(vec![".", ","]))
    }

    fn written(at: Micros, form: (u8, &str, &str, &str)) -> String {
        let (form, zone, separator, mark) = form;
        let (day, clock) = (format_day(at), format_utc(at)[11..19].to_owned());
        let fraction = format!("{:06}000000000000", at.rem_euclid(SECOND));
        match form {
            0 => day[..4].to_owned(),
            1 => day[..7].to_owned(),
            2 if zone.len() == 1 || zone.len() == 6 => format!("{day}{zone}"),
            2 => day,
            3 => day.replace('-', ""),
            4 => format!("{day}{separator}{}{zone}", &clock[..5]),
            5 => format!("{}{separator}{}{zone}", day.replace('-', ""), clock[..5].replace(':', "")),
            6 => format!("{}{separator}{}{zone}", day.replace('-', ""), clock.replace(':', "")),
            7 => format!("{day}{separator}{clock}{zone}"),
            digits => format!("{day}{separator}{clock}{mark}{}{zone}", &fraction[..usize::from(digits) - 7]),
        }
    }

    proptest! {
        #[test]
        fn what_is_formatted_reads_back_as_its_second(at in instant()) {
            let read = parse(&format_utc(at)).unwrap();
            prop_assert!(read.start <= at && at < read.end);
            prop_assert_eq!(read.end - read.start, SECOND);
            let day = parse(&format_day(at)).unwrap();
            prop_assert!(day.nominal <= at && at < day.nominal + DAY);
        }

        #[test]
        fn within_one_uniform_shape_text_order_is_time_order(
            a in instant(), far in instant(), near in -3 * SECOND..3 * SECOND, close in any::<bool>(), form in uniform_form()
        ) {
            let b = if close { a + near } else { far };
            let (text_a, text_b) = (written(a, form), written(b, form));
            let (read_a, read_b) = (parse(&text_a).unwrap(), parse(&text_b).unwrap());
            prop_assert_eq!(read_a.shape, read_b.shape);
            prop_assert_eq!(text_a.cmp(&text_b), read_a.nominal.cmp(&read_b.nominal), "{} {}", text_a, text_b);
        }

        #[test]
        fn a_span_holds_its_nominal_instant_and_the_day_before_lies_before(at in instant(), form in uniform_form()) {
            let text = written(at, form);
            let read = parse(&text).unwrap();
            prop_assert!(read.start <= read.nominal && read.nominal < read.end);
            let before = day_before(&read);
            prop_assert!(before == "0001-01-01" || parse(&before).unwrap().nominal + DAY <= read.nominal);
        }

        #[test]
        fn every_shape_survives_being_stored(at in instant(), form in uniform_form()) {
            let seen = Shapes::One(parse(&written(at, form)).unwrap().shape);
            prop_assert_eq!(Shapes::from_text(&seen.to_text()), seen);
        }

        #[test]
        fn no_text_makes_it_panic(text in any::<String>(), close in "[ 0-9TZtz:.,+-]{0,40}") {
            for text in [text, close] {
                if let Some(read) = parse(&text) {
                    prop_assert!(read.start <= read.nominal && read.nominal < read.end);
                    let _ = day_before(&read);
                }
                let _ = Shapes::from_text(&text);
            }
        }
    }
}
