//! HTTP's dates (RFC 9110, 5.6.7) and `Retry-After` (10.2.3).
//!
//! All three forms that a recipient must accept; the name of the weekday is not checked. It knows no clock: "now" is handed in.

use time::{Date, Month, OffsetDateTime, Time};

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT` or `Sun Nov  6 08:49:37 1994`.
pub(super) fn http_date(text: &str) -> Option<OffsetDateTime> {
    let words: Vec<&str> = text.split([' ', '-', ',']).filter(|word| !word.is_empty()).take(8).collect();
    let (day, month, year, clock) = match words.as_slice() {
        [_, day, month, year, clock, "GMT" | "UTC" | "Z" | "+0000"] => (day, month, year, clock),
        [_, month, day, clock, year] => (day, month, year, clock),
        _ => return None,
    };
    let month = MONTHS.iter().zip(1u8..).find(|(name, _)| name.eq_ignore_ascii_case(month))?.1;
    let date = Date::from_calendar_date(full_year(year)?, Month::try_from(month).ok()?, day.parse().ok()?).ok()?;
    Some(date.with_time(time_of_day(clock)?).assume_utc())
}

/// Two digits are a year from 1970 to 2069.
fn full_year(text: &str) -> Option<i32> {
    let year: u16 = text.parse().ok()?;
    match text.len() {
        4 => Some(i32::from(year)),
        2 => Some(i32::from(if year < 70 { 2000 + year } else { 1900 + year })),
        _ => None,
    }
}

fn time_of_day(text: &str) -> Option<Time> {
    let mut parts = text.split(':').map(|part| part.parse::<u8>().ok());
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    // A leap second has no place in `Time`.
    parts.next().map_or(Time::from_hms(hour, minute, second.min(59)).ok(), |_| None)
}

/// Seconds from `now` until the server wants to be asked again: a count, or a date, which is 0 when it is past.
pub(super) fn retry_after_s(text: &str, now: OffsetDateTime) -> Option<u64> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return Some(text.parse().unwrap_or(u64::MAX));
    }
    let wait = http_date(text)? - now;
    Some(u64::try_from(wait.whole_seconds()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use time::macros::datetime;

    #[test]
    fn all_three_forms_of_a_date_are_read() {
        for text in ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"] {
            assert_eq!(http_date(text), Some(datetime!(1994-11-06 08:49:37 UTC)), "{text}");
        }
        assert_eq!(http_date("Thu, 31 Dec 2026 23:59:60 GMT"), Some(datetime!(2026-12-31 23:59:59 UTC)));
        assert_eq!(http_date("Tuesday, 01-Jan-30 00:00:00 GMT"), Some(datetime!(2030-01-01 00:00:00 UTC)));
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "x",
            "Sun, 31 Feb 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 06 Nov 94999 08:49:37 GMT",
            "1994-11-06T08:49:37Z",
        ] {
            assert_eq!(http_date(text), None, "{text}");
        }
        assert_eq!(http_date("Sun, 06 Nov 1994 08:49 GMT"), None);
        assert_eq!(http_date("Sun, 06 Nov 1994 08:49:37:01 GMT"), None);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = datetime!(1994-11-06 08:49:07 UTC);
        assert_eq!(retry_after_s("120", now), Some(120));
        assert_eq!(retry_after_s(" 0 ", now), Some(0));
        assert_eq!(retry_after_s("99999999999999999999999", now), Some(u64::MAX));
        assert_eq!(retry_after_s("Sun, 06 Nov 1994 08:49:37 GMT", now), Some(30));
        assert_eq!(retry_after_s("Sun, 06 Nov 1993 08:49:37 GMT", now), Some(0));
        for text in ["", "-1", "1.5", "soon"] {
            assert_eq!(retry_after_s(text, now), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC*|[A-Za-z]{3}, [0-9]{1,5} (Jan|Feb) [0-9]{1,9} [0-9:]{0,12} GMT") {
            let _ = retry_after_s(&text, OffsetDateTime::UNIX_EPOCH);
        }
    }
}
