//! Two records under one identifier: which of them the store keeps.
//!
//! Pure rules, no SQL. They make a second reading leave every row as it was (I3), also when a catalogue holds an identifier twice
//! (case B6). Within a page the newer wins. Between pages it wins too, but an older record that comes first in a later run cannot
//! be told from one that was really set back (a catalogue restored from its backup): it is put off until the run has shown
//! whether the held one still lives. How things are put off, and for how long, is `page.rs`'s.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::page::RecordWrite;

/// The stamp of what has come, against what is held. A readable stamp is newer than none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Age {
    Newer,
    Equal,
    Older,
}

impl Age {
    /// `until` is the end of what the incoming stamp names: a plain day is not older than an hour of that day.
    pub(super) fn of(incoming_at: Option<i64>, until: Option<i64>, held_at: Option<i64>) -> Self {
        // `None` sorts before every `Some`.
        match incoming_at.cmp(&held_at) {
            Ordering::Greater => Self::Newer,
            Ordering::Equal => Self::Equal,
            Ordering::Less if held_at.is_some() && until > held_at => Self::Equal,
            Ordering::Less => Self::Older,
        }
    }
}

/// How an identifier was met earlier in this run, or in the cut-off runs that it continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Met {
    /// Not at all.
    First,
    /// What came then was put off.
    Deferred,
    /// What came then is what is held, since it was written then.
    Written,
    /// What came then was what is held already.
    Confirmed,
}

/// Whether the catalogue is known to hold two records of an identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kin {
    /// Not known.
    Alone,
    /// Known.
    Twin,
}

/// What to do with a record whose content differs from what is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It takes the place of what is held.
    Replace,
    /// What is held stays.
    Keep,
    /// That cannot be told yet.
    Defer,
}

/// The rule for two different records of one identifier.
///
/// A newer stamp always replaces. An older one never does at once: if the held content was met in this run, the two are twins and
/// the newer stays; if not, it is put off. An equal stamp replaces (a record may change without its stamp), except where twins
/// are known to share it and the held one may still come: those would take each other's place in every run.
pub(super) fn judge(age: Age, met: Met, kin: Kin) -> Verdict {
    match (age, met) {
        (Age::Newer, _) | (Age::Equal, Met::Written) => Verdict::Replace,
        (Age::Older, Met::First | Met::Deferred) => Verdict::Defer,
        (Age::Older, Met::Written | Met::Confirmed) => Verdict::Keep,
        (Age::Equal, _) if kin == Kin::Alone => Verdict::Replace,
        (Age::Equal, Met::First | Met::Deferred) => Verdict::Defer,
        // An edit in mid-run looks just like this, and losing one is worse than writing a twin once more.
        (Age::Equal, Met::Confirmed) => Verdict::Replace,
    }
}

/// A record together with what its page says about it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Incoming<'a> {
    pub(super) record: RecordWrite<'a>,
    /// Whether the page held another record of this identifier.
    pub(super) kin: Kin,
}

/// One record an identifier, in the order of first delivery: the newer stamp, and of equal ones the last.
pub(super) fn one_each<'a>(records: &[RecordWrite<'a>]) -> Vec<Incoming<'a>> {
    let mut places: HashMap<&str, usize> = HashMap::with_capacity(records.len());
    let mut kept: Vec<Incoming<'a>> = Vec::with_capacity(records.len());
    for record in records {
        let place = places.get(record.identifier).copied();
        let Some(earlier) = place.and_then(|place| kept.get_mut(place)) else {
            places.insert(record.identifier, kept.len());
            kept.push(Incoming { record: *record, kin: Kin::Alone });
            continue;
        };
        let known_in_run = earlier.record.known_in_run && record.known_in_run;
        if content(&earlier.record) != content(record) {
            earlier.kin = Kin::Twin;
        }
        if Age::of(record.modified_at, record.modified_until, earlier.record.modified_at) != Age::Older {
            earlier.record = *record;
        }
        earlier.record.known_in_run = known_in_run;
    }
    kept
}

fn content<'a>(record: &RecordWrite<'a>) -> (Option<&'a str>, Option<&'a str>, &'a str) {
    (record.title, record.modified, record.xml)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record<'a>(identifier: &'a str, modified_at: Option<i64>, xml: &'a str, known_in_run: bool) -> RecordWrite<'a> {
        RecordWrite {
            identifier,
            title: None,
            modified: None,
            modified_at,
            modified_until: modified_at.map(|at| at.saturating_add(1)),
            xml,
            known_in_run,
        }
    }

    #[test]
    fn a_readable_stamp_is_newer_than_none() {
        assert_eq!(Age::of(Some(i64::MIN), Some(i64::MIN), None), Age::Newer);
        assert_eq!(Age::of(None, None, Some(i64::MIN)), Age::Older);
        assert_eq!(Age::of(None, None, None), Age::Equal);
    }

    #[test]
    fn a_day_is_not_older_than_an_hour_of_it() {
        assert_eq!(Age::of(Some(0), Some(24), Some(10)), Age::Equal);
        assert_eq!(Age::of(Some(0), Some(24), Some(24)), Age::Older);
    }

    #[test]
    fn an_older_record_never_replaces_at_once_and_a_newer_one_always_does() {
        for met in [Met::First, Met::Deferred, Met::Written, Met::Confirmed] {
            for kin in [Kin::Alone, Kin::Twin] {
                assert_eq!(judge(Age::Newer, met, kin), Verdict::Replace);
                assert_ne!(judge(Age::Older, met, kin), Verdict::Replace);
            }
        }
    }

    #[test]
    fn what_was_not_confirmed_yet_is_put_off_and_what_was_is_kept() {
        assert_eq!(judge(Age::Older, Met::First, Kin::Alone), Verdict::Defer);
        assert_eq!(judge(Age::Older, Met::Confirmed, Kin::Alone), Verdict::Keep);
        assert_eq!(judge(Age::Equal, Met::First, Kin::Twin), Verdict::Defer);
        assert_eq!(judge(Age::Equal, Met::Confirmed, Kin::Twin), Verdict::Replace);
    }

    #[test]
    fn a_page_keeps_one_record_an_identifier_in_the_order_of_delivery() {
        let records = [
            record("a", Some(1), "a1", false),
            record("b", None, "b0", true),
            record("a", Some(3), "a3", true),
            record("a", Some(2), "a2", true),
            record("b", None, "b1", true),
        ];
        let kept: Vec<_> = one_each(&records).into_iter().map(|one| (one.record.xml, one.record.known_in_run, one.kin)).collect();
        assert_eq!(kept, [("a3", false, Kin::Twin), ("b1", true, Kin::Twin)]);
    }

    #[test]
    fn the_same_record_twice_in_a_page_is_no_twin() {
        let kept = one_each(&[record("a", Some(1), "a1", false), record("a", Some(1), "a1", true)]);
        assert_eq!(kept.len(), 1);
        assert_eq!(kept[0].kin, Kin::Alone);
        assert!(!kept[0].record.known_in_run);
    }
}
