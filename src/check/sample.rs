//! The stamps of a sample of records, in place of those that a store holds: enough to find out whose clock a filter follows.
//!
//! Where the catalogue sorts, the oldest and the newest page say exactly how many records lie below an instant, as long as that
//! instant lies within one of the two. The sample chooses its stamp in the middle so. Nothing is asked here.

use crate::dialect::clock_probe;
use crate::negotiate::OwnStamps;
use crate::store::StoreError;
use crate::timestamp::{Interval, Micros, Shapes};

/// A stamp as it was delivered, and what it means.
pub(super) type Stamp = (Interval, String);

/// What part of the catalogue the sample is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// All records.
    Whole,
    /// The oldest and the newest of so many.
    Ends(u64),
    /// Any: only fit to look at, not to count.
    Some,
}

/// The sample.
pub(super) struct Sample {
    extent: Extent,
    oldest: Vec<Stamp>,
    newest: Vec<Stamp>,
    pub(super) shapes: Shapes,
}

impl Sample {
    /// Of the oldest and the newest records; with [`Extent::Whole`] all stand in `oldest`.
    pub(super) fn new(extent: Extent, mut oldest: Vec<Stamp>, mut newest: Vec<Stamp>) -> Self {
        let mut shapes = Shapes::default();
        for (interval, _) in oldest.iter().chain(&newest) {
            shapes.observe(interval.shape);
        }
        oldest.sort_by_key(|(interval, _)| interval.nominal);
        newest.sort_by_key(|(interval, _)| interval.nominal);
        Sample { extent, oldest, newest, shapes }
    }

    /// Whether no stamp could be read at all.
    pub(super) fn is_empty(&self) -> bool {
        self.oldest.is_empty() && self.newest.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.oldest.len() + self.newest.len()
    }

    /// Whether counts of the sample say something of the catalogue's.
    pub(super) fn can_be_counted(&self) -> bool {
        self.extent != Extent::Some
    }

    /// The stamp nearest to the middle of a page around which can be counted.
    pub(super) fn middle(&self, before: Micros) -> Option<&Stamp> {
        let candidates = from_the_middle(&self.oldest).chain(from_the_middle(&self.newest));
        candidates.filter(|(interval, _)| (1..before).contains(&interval.nominal)).find(|(interval, _)| {
            [false, true].into_iter().all(|days_only| {
                let probe = clock_probe(interval, self.shapes, days_only);
                self.is_known(probe.below) && self.is_known(probe.above)
            })
        })
    }

    fn is_known(&self, at: Micros) -> bool {
        match self.extent {
            Extent::Whole | Extent::Some => true,
            Extent::Ends(_) => self.is_in_oldest(at) || self.is_in_newest(at),
        }
    }

    fn is_in_oldest(&self, at: Micros) -> bool {
        self.oldest.last().is_some_and(|(last, _)| at <= last.nominal)
    }

    fn is_in_newest(&self, at: Micros) -> bool {
        self.newest.first().is_some_and(|(first, _)| at > first.nominal)
    }
}

/// All of a list, those in the middle first.
fn from_the_middle(list: &[Stamp]) -> impl Iterator<Item = &Stamp> {
    let (lower, upper) = list.split_at_checked(list.len() / 2).unwrap_or((list, &[]));
    upper.iter().chain(lower.iter().rev())
}

fn count(list: &[Stamp], within: impl Fn(Micros) -> bool) -> u64 {
    list.iter().filter(|(interval, _)| within(interval.nominal)).count() as u64
}

impl OwnStamps for Sample {
    fn median(&self, before: Micros) -> Result<Option<String>, StoreError> {
        Ok(self.middle(before).map(|(_, text)| text.clone()))
    }

    fn count_before(&self, befores: [Micros; 3]) -> Result<[u64; 3], StoreError> {
        Ok(befores.map(|before| match self.extent {
            Extent::Ends(total) if self.is_in_newest(before) && !self.is_in_oldest(before) => {
                total.saturating_sub(count(&self.newest, |at| at >= before))
            }
            _ => count(&self.oldest, |at| (1..before).contains(&at)),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timestamp::parse;

    fn stamps(days: std::ops::RangeInclusive<u32>, month: u32) -> Vec<Stamp> {
        let texts = days.map(|day| format!("2020-{month:02}-{day:02}T00:00:00Z"));
        texts.map(|text| (parse(&text).unwrap(), text)).collect()
    }

    fn at(text: &str) -> Micros {
        parse(text).unwrap().nominal
    }

    #[test]
    fn the_oldest_and_the_newest_page_count_what_lies_below_an_instant_within_them() {
        let sample = Sample::new(Extent::Ends(1_000), stamps(1..=20, 1), stamps(1..=20, 12));
        let counts = sample.count_before([at("2020-01-11"), at("2020-12-11"), Micros::MAX]).unwrap();
        assert_eq!(counts, [10, 990, 1_000]);
        assert!(!sample.is_known(at("2020-06-01")));
    }

    #[test]
    fn the_middle_is_a_stamp_around_which_can_be_counted() {
        let sample = Sample::new(Extent::Ends(1_000), stamps(1..=20, 1), stamps(1..=20, 12));
        assert_eq!(sample.median(Micros::MAX).unwrap().as_deref(), Some("2020-01-11T00:00:00Z"));
        let one = stamps(1..=1, 1);
        let same: Vec<Stamp> = (0..20).flat_map(|_| one.clone()).collect();
        assert_eq!(Sample::new(Extent::Ends(1_000), same.clone(), same.clone()).median(0).unwrap(), None);
        assert!(Sample::new(Extent::Whole, same, Vec::new()).median(Micros::MAX).unwrap().is_some());
    }
}
