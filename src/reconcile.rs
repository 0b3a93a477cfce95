//! When everything that the catalogue holds has to be compared with the store, and what may then be taken for deleted.
//!
//! A watermark cannot see deletions, back-dated inserts, records without a stamp and newly published ones. Counting the catalogue costs one
//! request and shows most of them; comparing everything once a week shows the rest, such as a change that leaves the stamp as it was. Pure
//! arithmetic: what is asked, and what is done about the answers, stands in `harvest/inventory.rs`.

use crate::timestamp::{Micros, SECOND};

const DAY: Micros = 86_400 * SECOND;
/// How old an inventory may become.
const AGE_MAX: Micros = 7 * DAY;
/// How long an inventory that could not tell is not tried again for the same reason.
const RETRY_AFTER: Micros = DAY;
/// How far a time in the store may be ahead of our clock before it counts for nothing.
const AHEAD_MAX: Micros = DAY;
/// Fewer records than this are each asked for before they are taken for deleted.
pub const ASKED_MAX: u64 = 50;
/// Up to so many may always go at once.
const MASS_RECORDS: u64 = 10;
/// And up to so many in a hundred.
const MASS_PERCENT: u64 = 30;

/// `--reconcile`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reconcile {
    /// When the count differs or the last inventory is old.
    #[default]
    Auto,
    /// In this run.
    Always,
    /// Not even where everything is read anyhow.
    Never,
}

impl Reconcile {
    /// The value of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "auto" => Some(Reconcile::Auto),
            "always" => Some(Reconcile::Always),
            "never" => Some(Reconcile::Never),
            _ => None,
        }
    }
}

/// `--allow-mass-deletion`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MassDeletion {
    /// It ends the run.
    #[default]
    Refused,
    /// The user says that it is right.
    Allowed,
}

/// The inventories of the past. Times in microseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Past {
    /// The last one.
    pub at: Option<Micros>,
    /// What the catalogue counted then, less what the store held.
    pub gap: Option<i64>,
    /// A later one that could not tell whether it had seen everything.
    pub tried_at: Option<Micros>,
    /// The gap then.
    pub tried_gap: Option<i64>,
}

/// What the catalogue counts, less what the store holds.
#[must_use]
pub fn gap(counted: u64, held: u64) -> i64 {
    let signed = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    signed(counted).saturating_sub(signed(held))
}

impl Past {
    /// Whether it is time for an inventory, whatever the count.
    #[must_use]
    pub fn is_old(&self, now: Micros) -> bool {
        let fresh = self.at.is_some_and(|at| within(at, AGE_MAX, now));
        !fresh && !self.was_tried(now)
    }

    /// Whether the count shows that the store does not hold what the catalogue holds. Until a gap is known there should be none.
    #[must_use]
    pub fn is_contradicted(&self, gap: i64, now: Micros) -> bool {
        let known = gap == self.gap.unwrap_or(0);
        let in_vain = self.was_tried(now) && self.tried_gap == Some(gap);
        !known && !in_vain
    }

    fn was_tried(&self, now: Micros) -> bool {
        self.tried_at.is_some_and(|at| within(at, RETRY_AFTER, now))
    }
}

fn within(at: Micros, age_max: Micros, now: Micros) -> bool {
    now - at < age_max && at - now <= AHEAD_MAX
}

/// Whether so many deletions at once need somebody's word: more than 10 and more than 30 % of what is held, or all of it, because the
/// catalogue shows nothing at all.
#[must_use]
pub fn is_mass_deletion(gone: u64, held: u64, catalogue_is_empty: bool) -> bool {
    let many = gone > MASS_RECORDS && gone.saturating_mul(100) > held.saturating_mul(MASS_PERCENT);
    many || (catalogue_is_empty && gone > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Micros = 1_800_000_000 * SECOND;

    fn past(at: Option<Micros>, tried_at: Option<Micros>) -> Past {
        Past { at, gap: Some(-3), tried_at, tried_gap: Some(5) }
    }

    #[test]
    fn an_inventory_is_old_after_a_week_and_one_in_vain_is_repeated_after_a_day() {
        let old = |at: Option<Micros>, tried_at| past(at, tried_at).is_old(NOW);
        assert!(old(None, None));
        assert!(!old(Some(NOW), None) && !old(Some(NOW - 7 * DAY + SECOND), None));
        assert!(old(Some(NOW - 7 * DAY), None) && old(Some(0), None));
        assert!(!old(None, Some(NOW - DAY + SECOND)) && old(None, Some(NOW - DAY)));
        // The clock was set back: what lies in the future says nothing.
        assert!(!old(Some(NOW + DAY), None) && old(Some(NOW + 2 * DAY), None));
    }

    #[test]
    fn a_gap_that_is_not_the_known_one_contradicts() {
        let contradicted = |past: Past, gap| past.is_contradicted(gap, NOW);
        let usual = past(Some(NOW - DAY), None);
        assert!(!contradicted(usual, -3) && contradicted(usual, -2) && contradicted(usual, 0));
        let unknown = Past { gap: None, ..usual };
        assert!(!contradicted(unknown, 0) && contradicted(unknown, 1));
        let in_vain = past(Some(NOW - DAY), Some(NOW - SECOND));
        assert!(!contradicted(in_vain, 5) && contradicted(in_vain, 6) && !contradicted(in_vain, -3));
        assert!(contradicted(past(Some(NOW - DAY), Some(NOW - DAY)), 5));
        assert_eq!((gap(3, 5), gap(5, 3), gap(u64::MAX, 0)), (-2, 2, i64::MAX));
    }

    #[test]
    fn more_than_ten_and_more_than_thirty_in_a_hundred_are_a_mass() {
        assert!(!is_mass_deletion(10, 10, false) && is_mass_deletion(11, 11, false));
        assert!(!is_mass_deletion(300, 1_000, false) && is_mass_deletion(301, 1_000, false));
        assert!(is_mass_deletion(1, 1, true) && is_mass_deletion(5, 100, true) && !is_mass_deletion(0, 0, true));
    }

    #[test]
    fn the_words_of_the_option_are_known() {
        assert_eq!(Reconcile::named("auto"), Some(Reconcile::default()));
        assert_eq!(Reconcile::named("always"), Some(Reconcile::Always));
        assert_eq!(Reconcile::named("never"), Some(Reconcile::Never));
        assert_eq!(Reconcile::named("Auto"), None);
    }
}
