//! Lists of attributes that were read already: a page of records has few, code lists above all, and each many times.
//!
//! Kept is only what means the same wherever it stands: sound attributes without prefixes and declarations. Which prefixes their values
//! may use is kept beside them; whether they do is for the bindings in scope to say, each time anew.

use super::Attribute;
use super::name::mixed;

/// How many lists are kept; a power of two.
const PLACES: usize = 64;
/// Shorter lists are read as fast as they are found.
const LIST_BYTES_MIN: usize = 16;
/// Lists of more attributes are not kept.
const ATTRIBUTES_MAX: usize = 2;
/// Nor those that may use more prefixes; an URN has some.
pub(super) const PREFIXES_MAX: usize = 6;

/// One list of attributes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Kept<'a> {
    /// As it is written, whatever follows the name in a tag.
    list: &'a str,
    attributes: [Attribute<'a>; ATTRIBUTES_MAX],
    attribute_count: usize,
    prefixes: [&'a str; PREFIXES_MAX],
    prefix_count: usize,
}

impl<'a> Kept<'a> {
    pub(super) fn attributes(&self) -> &[Attribute<'a>] {
        self.attributes.get(..self.attribute_count).unwrap_or_default()
    }

    /// What the values may use.
    pub(super) fn prefixes(&self) -> &[&'a str] {
        self.prefixes.get(..self.prefix_count).unwrap_or_default()
    }
}

/// The lists that are kept, each where it is found again.
#[derive(Debug, Default)]
pub(super) struct Repeats<'a> {
    /// Empty until there is a list.
    places: Vec<Kept<'a>>,
}

impl<'a> Repeats<'a> {
    #[inline]
    pub(super) fn find(&self, list: &str) -> Option<&Kept<'a>> {
        self.places.get(place_of(list)?).filter(|kept| kept.list == list)
    }

    /// Keeps a list if it is one to keep. No attribute of it may have a prefix.
    pub(super) fn keep(&mut self, list: &'a str, attributes: &[Attribute<'a>], prefixes: &[&'a str]) {
        let Some(place) = place_of(list).filter(|_| attributes.len() <= ATTRIBUTES_MAX && prefixes.len() <= PREFIXES_MAX) else {
            return;
        };
        self.places.resize(PLACES, Kept::default());
        if let Some(kept) = self.places.get_mut(place) {
            (kept.list, kept.attribute_count, kept.prefix_count) = (list, attributes.len(), prefixes.len());
            kept.attributes.iter_mut().zip(attributes).for_each(|(kept, attribute)| *kept = *attribute);
            kept.prefixes.iter_mut().zip(prefixes).for_each(|(kept, prefix)| *kept = prefix);
        }
    }
}

/// Lists differ in their length or near their ends.
#[inline]
fn place_of(list: &str) -> Option<usize> {
    let end = list.as_bytes().last_chunk::<LIST_BYTES_MIN>()?;
    let (one, other) = (end.first_chunk()?, end.last_chunk()?);
    let key = u64::from_le_bytes(*one) ^ u64::from_le_bytes(*other).rotate_left(23);
    usize::try_from(mixed(key.wrapping_add(list.len() as u64)) >> (u64::BITS - PLACES.ilog2())).ok()
}
