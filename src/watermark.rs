//! Which stamp may become the watermark, and which literal is sent for it.
//!
//! The watermark is the newest stamp of which it is certain that everything at or below it was harvested. It is drawn only from *settled*
//! stamps (`timestamp.rs`), so that a second record in the same second, a record of the same day, one that becomes visible late and
//! a stamp of 2099 all stay ahead of it, and the filter can stay a strict PropertyIsGreaterThan. It never moves back. This module
//! does not move it: the store does, in the transaction that completes a run (I2).

use crate::timestamp::{self, Interval, Micros, Shapes};

/// What the watermark reads while the first harvest is not complete.
pub const FIRST: &str = "1970-01-01T00:00:00Z";

/// The newest settled stamp delivered so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Newest {
    best: Option<(Micros, String)>,
}

impl Newest {
    /// Takes up a stamp, if it is settled by `server_now` and newer than those before.
    pub fn observe(&mut self, text: &str, interval: &Interval, server_now: Micros, settle: Micros) {
        if !interval.settled(server_now, settle) {
            return;
        }
        if self.best.as_ref().is_none_or(|(at, _)| *at < interval.nominal) {
            self.best = Some((interval.nominal, text.to_owned()));
        }
    }

    /// Takes up what an earlier part of the same run had found.
    pub fn observe_earlier(&mut self, text: &str) {
        let Some(interval) = timestamp::parse(text) else { return };
        if self.best.as_ref().is_none_or(|(at, _)| *at < interval.nominal) {
            self.best = Some((interval.nominal, text.to_owned()));
        }
    }

    /// The text of the newest, as delivered.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        self.best.as_ref().map(|(_, text)| text.as_str())
    }

    /// The watermark after a complete run: the newest settled stamp, unless the present one is as new.
    #[must_use]
    pub fn moved_from(&self, present: &str) -> Option<String> {
        let (at, text) = self.best.as_ref()?;
        let present_at = timestamp::parse(present).map(|interval| interval.nominal);
        (present == FIRST || present_at.is_none_or(|present_at| present_at < *at)).then(|| text.clone())
    }
}

/// The watermark of a source whose filter follows the server's clock: its time when the run began, less `settle`.
#[must_use]
pub fn of_server(started: Micros, settle: Micros) -> String {
    timestamp::format_utc(started - settle)
}

/// Changes in a row that a literal without margin must have brought before the margin is given up.
pub const EXACT_CHANGES_MIN: u32 = 50;

/// The literal sent for the watermark of a source whose filter follows a clock that no record shows.
///
/// Nobody tells in which zone that clock writes its stamps, nor whether it writes more than the day (deegree and GeoNetwork 3 filter
/// on a dateStamp that csw:Record does not show, and it may be a plain day or a local time without zone). So the literal is the
/// plain day two days before, until enough changes were seen that the exact time would have brought all of them.
#[must_use]
pub fn server_literal(watermark: &str, exact_changes: u32, days_only: bool) -> String {
    match timestamp::parse(watermark) {
        Some(interval) if days_only || exact_changes < EXACT_CHANGES_MIN => {
            timestamp::format_day(interval.nominal - 2 * 86_400 * timestamp::SECOND)
        }
        _ => watermark.to_owned(),
    }
}

/// Records that must have shown one shape of stamp before it is taken for the only one.
pub const SHAPED_MIN: u32 = 5;

/// The literal sent for a watermark.
///
/// Its own text while all stamps of the source have one shape in which text order is time order; else the plain day before, which
/// is earlier whether a catalogue compares texts, local or UTC times. Where date-times are refused it is the day before too.
#[must_use]
pub fn literal(watermark: &str, shapes: Shapes, days_only: bool) -> String {
    match timestamp::parse(watermark) {
        Some(interval) if days_only || !shapes.uniform() || !is_common(watermark) => timestamp::day_before(&interval),
        _ => watermark.to_owned(),
    }
}

/// Whether a catalogue can be expected to take the text as a literal: a plain day, or an instant as XML Schema writes it, without the leap
/// second and the 24th hour, which many parsers refuse.
#[must_use]
pub fn is_common(text: &str) -> bool {
    let digits = |from: usize, to: usize| text.get(from..to).filter(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
    let up_to =
        |from: usize, most: u32| digits(from, from + 2).is_some_and(|part| part.parse().is_ok_and(|number: u32| number <= most));
    let mark = |at: usize, mark: u8| text.as_bytes().get(at) == Some(&mark);
    let day = digits(0, 4).is_some() && mark(4, b'-') && up_to(5, 12) && mark(7, b'-') && up_to(8, 31);
    if !day || text.len() == 10 {
        return day;
    }
    let time = mark(10, b'T') && up_to(11, 23) && mark(13, b':') && up_to(14, 59) && mark(16, b':') && up_to(17, 59);
    let Some(rest) = text.get(19..).filter(|_| time) else { return false };
    let zone = match rest.strip_prefix('.') {
        Some(fraction) => fraction.trim_start_matches(|character: char| character.is_ascii_digit()),
        None => rest,
    };
    let is_offset = || zone.len() == 6 && zone.starts_with(['+', '-']) && zone.as_bytes().get(3) == Some(&b':');
    zone.is_empty() || zone == "Z" || is_offset()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timestamp::{SECOND, parse};

    #[test]
    fn a_literal_is_what_every_parser_takes() {
        for common in [
            "2025-06-30",
            "2025-06-30T23:59:59",
            "2025-06-30T23:59:59Z",
            "2025-06-30T00:00:00.123456Z",
            "2025-06-30T00:00:00-03:30",
        ] {
            assert!(is_common(common), "{common}");
            assert_eq!(literal(common, Shapes::default(), true), "2025-06-29", "{common}");
        }
        for odd in [
            "2025",
            "2025-06",
            "2025-06-30Z",
            "2025-06-30T23:59:60Z",
            "2025-06-30T24:00:00Z",
            "2025-06-30 10:00:00",
            "2025-06-30t10:00:00z",
            "2025-06-30T10:00Z",
            "2025-06-30T10:00:00+0200",
            "2025-06-30T10:00:00,5Z",
            "20250630",
            "Mon Jun 30 10:00:00 UTC 2025",
        ] {
            assert!(!is_common(odd), "{odd}");
        }
    }

    fn newest(stamps: &[&str], now: &str) -> Newest {
        let mut newest = Newest::default();
        for stamp in stamps {
            if let Some(interval) = parse(stamp) {
                newest.observe(stamp, &interval, parse(now).unwrap().nominal, 60 * SECOND);
            }
        }
        newest
    }

    #[test]
    fn a_stamp_of_the_far_future_does_not_freeze_the_watermark() {
        // cases.md S1
        let newest = newest(&["9999-01-01", "2025-02-02T00:00:00Z"], "2026-01-01T00:00:00Z");
        assert_eq!(newest.moved_from(FIRST).as_deref(), Some("2025-02-02T00:00:00Z"));
    }

    #[test]
    fn the_latest_instant_wins_whatever_its_offset() {
        // cases.md S2
        let newest =
            newest(&["2025-03-01T01:00:00+02:00", "2025-03-01T00:00:00.5Z", "2025-03-01T00:00:00Z"], "2026-01-01T00:00:00Z");
        assert_eq!(newest.text(), Some("2025-03-01T00:00:00.5Z"));
    }

    #[test]
    fn a_day_that_is_not_over_everywhere_is_no_watermark() {
        // cases.md S3
        assert_eq!(newest(&["2025-03-01"], "2025-03-01T23:00:00Z").text(), None);
        assert_eq!(newest(&["2025-03-01"], "2025-03-02T11:59:00Z").text(), None);
        assert_eq!(newest(&["2025-03-01"], "2025-03-02T12:01:00Z").text(), Some("2025-03-01"));
    }

    #[test]
    fn odd_stamps_neither_break_nor_freeze_it() {
        // cases.md S6
        let newest = newest(&["2011", "2011-07", "20110704", "WED JUN 28 00:00:00 CES"], "2026-01-01T00:00:00Z");
        assert_eq!(newest.text(), Some("20110704"));
    }

    #[test]
    fn it_never_moves_back() {
        let newest = newest(&["2025-03-01T00:00:00Z"], "2026-01-01T00:00:00Z");
        assert_eq!(newest.moved_from("2025-04-01T00:00:00Z"), None);
        assert_eq!(newest.moved_from("2025-03-01T00:00:00Z"), None);
        assert_eq!(newest.moved_from("2025-02-01T00:00:00Z").as_deref(), Some("2025-03-01T00:00:00Z"));
    }

    #[test]
    fn the_literal_is_the_day_before_where_shapes_are_mixed() {
        let mut shapes = Shapes::default();
        shapes.observe(parse("2025-03-01T00:00:00Z").unwrap().shape);
        assert_eq!(literal("2025-03-01T00:00:00Z", shapes, false), "2025-03-01T00:00:00Z");
        assert_eq!(literal("2025-03-01T00:00:00Z", shapes, true), "2025-02-28");
        shapes.observe(parse("2025-03-01").unwrap().shape);
        assert_eq!(literal("2025-03-01T00:00:00Z", shapes, false), "2025-02-28");
    }
}
