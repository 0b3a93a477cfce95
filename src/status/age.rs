//! How long ago something was, in seconds and in words. Pure: the present comes in as a value.

use time::OffsetDateTime;

use crate::findings::lasting;
use crate::timestamp::{self, Micros, SECOND};

/// The moment that ages are told from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now(Micros);

impl Now {
    pub(super) fn of(now: OffsetDateTime) -> Self {
        Now(Micros::try_from(now.unix_timestamp_nanos() / 1_000).unwrap_or(Micros::MAX))
    }

    /// RFC 3339 in UTC.
    pub(super) fn text(self) -> String {
        let nanos = i128::from(self.0) * 1_000;
        OffsetDateTime::from_unix_timestamp_nanos(nanos).map(crate::clock::utc_text).unwrap_or_default()
    }

    /// Whole seconds since a time that is written in one of the forms of a stamp; negative when it is yet to come.
    pub(super) fn age_s(self, at: &str) -> Option<i64> {
        timestamp::parse(at).map(|interval| self.age_of(interval.nominal))
    }

    /// Whole seconds since an instant.
    pub(super) fn age_of(self, at: Micros) -> i64 {
        self.0.saturating_sub(at).div_euclid(SECOND)
    }

    /// `3 hours ago`, or the text itself where it is no time.
    pub(super) fn ago(self, at: &str) -> String {
        self.age_s(at).map_or_else(|| at.to_owned(), ago)
    }
}

/// `3 hours ago`, `just now`, `in 2 minutes`.
pub(super) fn ago(age_s: i64) -> String {
    match age_s {
        0 => "just now".to_owned(),
        1.. => format!("{} ago", lasting(age_s.unsigned_abs())),
        _ => format!("in {}", lasting(age_s.unsigned_abs())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    #[test]
    fn ages_are_told_in_the_unit_that_says_most() {
        let expected = [
            (0, "just now"),
            (1, "1 second ago"),
            (119, "119 seconds ago"),
            (120, "2 minutes ago"),
            (7_199, "119 minutes ago"),
            (7_200, "2 hours ago"),
            (172_799, "47 hours ago"),
            (172_800, "2 days ago"),
            (63_071_999, "729 days ago"),
            (63_072_000, "2 years ago"),
            (i64::MAX, "292471208677 years ago"),
            (-90, "in 90 seconds"),
            (i64::MIN, "in 292471208677 years"),
        ];
        for (age, words) in expected {
            assert_eq!(ago(age), words);
        }
    }

    #[test]
    fn an_age_is_counted_from_now_whatever_the_form_of_the_time() {
        let now = Now::of(datetime!(2026-07-10 00:00:00 UTC));
        assert_eq!(now.text(), "2026-07-10T00:00:00Z");
        assert_eq!(now.age_s("2026-07-09T23:59:00Z"), Some(60));
        assert_eq!(now.age_s("2026-07-10T02:00:30+02:00"), Some(-30));
        assert_eq!(now.age_s("2026-07-09"), Some(86_400));
        assert_eq!(now.age_s("yesterday"), None);
        assert_eq!(now.ago("2026-07-09T00:00:00Z"), "24 hours ago");
        assert_eq!(now.ago("yesterday"), "yesterday");
        assert_eq!(Now::of(datetime!(2026-07-10 00:00:00.999 UTC)).age_s("2026-07-10T00:00:01Z"), Some(-1));
    }
}
