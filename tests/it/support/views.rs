//! Orders of the visible records, sorted once and kept until the catalogue changes.
//!
//! A page then costs its own length, also with 100,000 records. Knows nothing of requests.

use std::cmp::Ordering;
use std::sync::Arc;

use super::super::quirks::{Comparison, Order, Quirks, Ties, Undated};
use super::super::stamps::Micros;
use super::{Condition, ModelRecord, Operator};

/// What filter and sort compare. One catalogue makes keys of one variant only.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Text(String),
    Time(Micros),
}

/// The order of a whole view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrangement {
    /// By stamp; true for descending.
    Stamp(bool),
    /// By stamp, ties by identifier.
    StampThenIdentifier(bool),
    Identifier(bool),
    Unsorted(Order),
}

/// Which records are wanted, bounds already read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Everything,
    Nothing,
    Bounds { lower: Option<(Operator, Key)>, upper: Option<Key>, also: Option<Condition> },
}

/// The views built since the last change.
#[derive(Clone, Debug, Default)]
pub(super) struct Views {
    /// The catalogue's time when they were built; visibility is judged by it.
    built_at: Micros,
    /// When the next record becomes visible.
    stale_from: Option<Micros>,
    orders: Vec<(Arrangement, Arc<Vec<u32>>)>,
    selected: Option<(Arrangement, Wanted, Arc<Vec<u32>>)>,
}

impl Views {
    pub(super) fn forget(&mut self) {
        self.orders.clear();
        self.selected = None;
        self.stale_from = None;
    }

    /// The wanted records in order, as indices; `matches` judges the conditions that are no bounds.
    pub(super) fn select(
        &mut self,
        records: &[Arc<ModelRecord>],
        quirks: &Quirks,
        (now, seed): (Micros, u64),
        (arrangement, wanted): (Arrangement, Wanted),
        matches: impl Fn(&ModelRecord, &Condition) -> bool,
    ) -> Arc<Vec<u32>> {
        if self.stale_from.is_some_and(|from| from <= now) || now < self.built_at {
            self.forget();
        }
        if let Some((held_arrangement, held_wanted, selected)) = &self.selected
            && *held_arrangement == arrangement
            && *held_wanted == wanted
        {
            return Arc::clone(selected);
        }
        let order = self.order(records, quirks, now, seed, arrangement);
        let selected = match &wanted {
            Wanted::Everything => order,
            Wanted::Nothing => Arc::default(),
            Wanted::Bounds { lower, upper, also: None } if arrangement == Arrangement::Stamp(false) => {
                Arc::new(between(&order, records, quirks, lower.as_ref(), upper.as_ref()))
            }
            Wanted::Bounds { lower, upper, also } => {
                let wanted = |index: &u32| {
                    let record = &records[*index as usize];
                    within(record, quirks, lower.as_ref(), upper.as_ref())
                        && also.as_ref().is_none_or(|condition| matches(record, condition))
                };
                Arc::new(order.iter().copied().filter(wanted).collect())
            }
        };
        self.selected = Some((arrangement, wanted, Arc::clone(&selected)));
        selected
    }

    fn order(
        &mut self,
        records: &[Arc<ModelRecord>],
        quirks: &Quirks,
        now: Micros,
        seed: u64,
        arrangement: Arrangement,
    ) -> Arc<Vec<u32>> {
        if let Some((_, order)) = self.orders.iter().find(|(held, _)| *held == arrangement) {
            return Arc::clone(order);
        }
        self.built_at = now;
        self.stale_from = records.iter().map(|record| record.visible_from).filter(|from| *from > now).min();
        let visible = |index: &u32| records[*index as usize].visible_from <= now;
        let mut order: Vec<u32> = (0..records.len() as u32).filter(visible).collect();
        order.sort_by(|left, right| arrange(&records[*left as usize], &records[*right as usize], quirks, seed, arrangement));
        let order = Arc::new(order);
        self.orders.push((arrangement, Arc::clone(&order)));
        order
    }
}

/// What the filter sees of a record; None for an undated one.
pub(super) fn has_key(record: &ModelRecord, comparison: Comparison) -> bool {
    match comparison {
        Comparison::Text => record.filter_text.is_some(),
        Comparison::Time => record.filter_stamp.is_some(),
    }
}

/// The record's key against `key`; None for an undated record.
pub(super) fn against(record: &ModelRecord, key: &Key) -> Option<Ordering> {
    match key {
        Key::Text(text) => record.filter_text.as_deref().map(|held| held.cmp(text.as_str())),
        Key::Time(at) => record.filter_stamp.map(|held| held.cmp(at)),
    }
}

/// Whether two records have one and the same key.
pub(super) fn tied(left: &ModelRecord, right: &ModelRecord, comparison: Comparison) -> bool {
    by_key(left, right, comparison) == Ordering::Equal
}

fn by_key(left: &ModelRecord, right: &ModelRecord, comparison: Comparison) -> Ordering {
    match comparison {
        Comparison::Text => left.filter_text.cmp(&right.filter_text),
        Comparison::Time => left.filter_stamp.cmp(&right.filter_stamp),
    }
}

fn arrange(left: &ModelRecord, right: &ModelRecord, quirks: &Quirks, seed: u64, arrangement: Arrangement) -> Ordering {
    let turn = |ordering: Ordering, descending: bool| if descending { ordering.reverse() } else { ordering };
    let rowids = || left.rowid.cmp(&right.rowid);
    let identifiers = || left.identifier.cmp(&right.identifier).then_with(rowids);
    let ties = || match quirks.ties {
        Ties::RandomStable => mix(seed ^ left.rowid).cmp(&mix(seed ^ right.rowid)),
        Ties::Rowid | Ties::RandomEachTime => rowids(),
    };
    match arrangement {
        Arrangement::Stamp(descending) => turn(by_stamp(left, right, quirks), descending).then_with(ties),
        Arrangement::StampThenIdentifier(descending) => turn(by_stamp(left, right, quirks), descending).then_with(identifiers),
        Arrangement::Identifier(descending) => turn(identifiers(), descending),
        Arrangement::Unsorted(Order::Identifier) => identifiers(),
        Arrangement::Unsorted(Order::EditedLast) => left.edited.cmp(&right.edited),
        Arrangement::Unsorted(Order::NewestFirst) => by_stamp(right, left, quirks).then_with(ties),
        Arrangement::Unsorted(Order::Insertion | Order::RandomEachTime) => rowids(),
    }
}

fn by_stamp(left: &ModelRecord, right: &ModelRecord, quirks: &Quirks) -> Ordering {
    // None sorts before Some, which is `Undated::First`.
    let dated = |record: &ModelRecord| has_key(record, quirks.comparison);
    match (quirks.undated, dated(left), dated(right)) {
        (Undated::Last, true, false) => Ordering::Less,
        (Undated::Last, false, true) => Ordering::Greater,
        _ => by_key(left, right, quirks.comparison),
    }
}

fn above_lower(record: &ModelRecord, lower: Option<&(Operator, Key)>) -> Option<bool> {
    let Some((operator, key)) = lower else { return Some(true) };
    let ordering = against(record, key)?;
    Some(match operator {
        Operator::After => ordering == Ordering::Greater,
        Operator::From => ordering != Ordering::Less,
    })
}

fn below_upper(record: &ModelRecord, upper: Option<&Key>) -> Option<bool> {
    let Some(key) = upper else { return Some(true) };
    Some(against(record, key)? != Ordering::Greater)
}

fn within(record: &ModelRecord, quirks: &Quirks, lower: Option<&(Operator, Key)>, upper: Option<&Key>) -> bool {
    // A range never matches an undated record; a filter without bounds does.
    if lower.is_none() && upper.is_none() {
        return true;
    }
    has_key(record, quirks.comparison) && above_lower(record, lower).unwrap_or(false) && below_upper(record, upper).unwrap_or(false)
}

// In ascending order the wanted ones lie side by side.
fn between(
    order: &[u32],
    records: &[Arc<ModelRecord>],
    quirks: &Quirks,
    lower: Option<&(Operator, Key)>,
    upper: Option<&Key>,
) -> Vec<u32> {
    if lower.is_none() && upper.is_none() {
        return order.to_vec();
    }
    let undated_first = quirks.undated == Undated::First;
    let dated = |index: &u32| has_key(&records[*index as usize], quirks.comparison);
    let start = order.partition_point(|index| match dated(index) {
        true => !above_lower(&records[*index as usize], lower).unwrap_or(true),
        false => undated_first,
    });
    let end = order.partition_point(|index| match dated(index) {
        true => below_upper(&records[*index as usize], upper).unwrap_or(true),
        false => undated_first,
    });
    order[start.min(end)..end].to_vec()
}

/// SplitMix64's finaliser: a number that looks random, always the same for the same input.
pub(super) fn mix(seed: u64) -> u64 {
    let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Shuffles in place, the same way for the same seed.
pub(super) fn shuffle(indices: &mut [u32], seed: u64) {
    for last in (1..indices.len()).rev() {
        let other = mix(seed.wrapping_add(last as u64)) % (last as u64 + 1);
        indices.swap(last, other as usize);
    }
}
