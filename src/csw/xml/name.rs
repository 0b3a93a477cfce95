//! Names: which are none, what their prefix is, and prefixes as numbers.
//!
//! Names are taken as they are written; what a prefix is bound to is for [`super::Scope`] to say.

use super::blocks::positions;
use super::{FLAW_MARKUP, FLAW_NAME, Flaw};

/// How much of a prefix lies in its key.
pub(super) const KEY_BYTES: usize = 7;
/// How many places there are for names that are kept; a power of two.
const PLACES: usize = 128;

/// A number that is as good as the prefix up to seven bytes, and nearly so beyond: comparing them is most of the work in a record.
pub(super) fn key_of(prefix: &str) -> u64 {
    let length = u64::try_from(prefix.len().min(255)).unwrap_or(255);
    prefix.bytes().take(KEY_BYTES).fold(length, |key, byte| key << 8 | u64::from(byte))
}

/// One bit of a word, the same for the same key and seldom for another.
pub(super) fn bit_of(key: u64) -> u64 {
    1 << (mixed(key) >> (u64::BITS - u64::BITS.ilog2()))
}

/// A number whose upper bits depend on all bits of another.
#[inline]
pub(super) fn mixed(word: u64) -> u64 {
    word.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// A QName.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Name<'a> {
    pub(super) prefix: &'a str,
    pub(super) local: &'a str,
    pub(super) key: u64,
}

/// Names that were taken apart, each where it is found again: a page has few, and each many times.
#[derive(Debug, Default)]
pub(super) struct Names<'a> {
    /// Two names a place, the later one first. Empty until there is a name.
    places: Vec<[(&'a str, Name<'a>); 2]>,
}

impl<'a> Names<'a> {
    /// As [`split_name`].
    #[inline]
    pub(super) fn split(&mut self, name: &'a str) -> Result<Name<'a>, Flaw> {
        let place = place_of(name.as_bytes());
        if let Some([(one, split), (other, split_too)]) = self.places.get(place)
            && !name.is_empty()
        {
            if *one == name {
                return Ok(*split);
            }
            if *other == name {
                return Ok(*split_too);
            }
        }
        self.split_new(name, place)
    }

    #[cold]
    fn split_new(&mut self, name: &'a str, place: usize) -> Result<Name<'a>, Flaw> {
        let split = split_name(name)?;
        self.places.resize(PLACES, Default::default());
        if let Some([one, other]) = self.places.get_mut(place) {
            (*one, *other) = ((name, split), *one);
        }
        Ok(split)
    }
}

/// Names of one length may differ in their beginnings or their ends alone.
#[inline]
fn place_of(name: &[u8]) -> usize {
    let (start, end) = match (name.first_chunk(), name.last_chunk()) {
        (Some(start), Some(end)) => (u64::from_le_bytes(*start), u64::from_le_bytes(*end)),
        _ => (name.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)), 0),
    };
    usize::try_from(mixed(start ^ end.rotate_left(23)) >> (u64::BITS - PLACES.ilog2())).unwrap_or(0)
}

enum Kind {
    Start,
    Inner,
    Colon,
    /// Beyond ASCII, to be looked at as a character.
    Wide,
    Blank,
    Other,
}

fn kind(byte: u8) -> Kind {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'_' => Kind::Start,
        b'0'..=b'9' | b'-' | b'.' => Kind::Inner,
        b':' => Kind::Colon,
        0x80.. => Kind::Wide,
        b' ' | b'\t' | b'\r' | b'\n' => Kind::Blank,
        _ => Kind::Other,
    }
}

/// The QName at the beginning of a tag taken apart (Namespaces in XML 1.0, 4), and how many bytes it has up to the first blank.
pub(super) fn read_name(tag: &str) -> (Result<Name<'_>, Flaw>, usize) {
    let mut colon = None;
    let (mut wide, mut wrong, mut at_start) = (false, false, true);
    let mut length = 0;
    for byte in tag.bytes() {
        match kind(byte) {
            Kind::Start => at_start = false,
            Kind::Inner => wrong |= at_start,
            Kind::Colon => {
                wrong |= at_start || colon.is_some();
                colon = Some(length);
                at_start = true;
            }
            Kind::Wide => {
                wide = true;
                at_start = false;
            }
            Kind::Blank => break,
            Kind::Other => wrong = true,
        }
        length += 1;
    }
    let name = tag.get(..length).unwrap_or_default();
    if wrong || at_start || (wide && !name.split(':').all(is_ncname)) {
        return (Err(FLAW_NAME), length);
    }
    let Some((prefix, local)) = colon.and_then(|at| name.split_at_checked(at)) else {
        return (Ok(Name { prefix: "", local: name, key: 0 }), length);
    };
    (Ok(Name { prefix, local: local.get(1..).unwrap_or_default(), key: key_of(prefix) }), length)
}

/// A QName taken apart, see [`read_name`].
pub(super) fn split_name(name: &str) -> Result<Name<'_>, Flaw> {
    let (split, length) = read_name(name);
    if length == name.len() { split } else { Err(FLAW_NAME) }
}

/// XML 1.0 (fifth edition), 2.3, NameStartChar and NameChar.
fn is_ncname(name: &str) -> bool {
    let start = |c: char| {
        matches!(c, 'a'..='z' | 'A'..='Z' | '_' | '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}' | '\u{f8}'..='\u{2ff}' | '\u{370}'..='\u{37d}'
            | '\u{37f}'..='\u{1fff}' | '\u{200c}'..='\u{200d}' | '\u{2070}'..='\u{218f}' | '\u{2c00}'..='\u{2fef}'
            | '\u{3001}'..='\u{d7ff}' | '\u{f900}'..='\u{fdcf}' | '\u{fdf0}'..='\u{fffd}' | '\u{10000}'..='\u{effff}')
    };
    let inner = |c: char| matches!(c, '-' | '.' | '0'..='9' | '\u{b7}' | '\u{300}'..='\u{36f}' | '\u{203f}'..='\u{2040}');
    name.starts_with(start) && name.chars().all(|c| start(c) || inner(c))
}

/// What may be a prefix in a text: each run of name characters before a colon; may be empty.
#[inline]
pub(super) fn prefixes(text: &str) -> impl Iterator<Item = &str> {
    positions(text.as_bytes(), b':').map(move |colon| {
        let head = text.get(..colon).unwrap_or_default();
        let length = head.bytes().rev().take_while(|byte| matches!(kind(*byte), Kind::Start | Kind::Inner | Kind::Wide)).count();
        head.get(head.len() - length..).unwrap_or_default()
    })
}

/// The flaw of a processing instruction, which may be an XML declaration in a place where none may be.
///
/// # Errors
/// [`FLAW_MARKUP`] or [`FLAW_NAME`].
pub fn check_instruction(text: &str) -> Result<(), Flaw> {
    let target = text.split(|c: char| c.is_ascii_whitespace()).next().unwrap_or_default();
    if target.eq_ignore_ascii_case("xml") {
        return Err(FLAW_MARKUP);
    }
    split_name(target).and_then(|name| if name.prefix.is_empty() { Ok(()) } else { Err(FLAW_NAME) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_is_taken_apart_anew_as_it_was_before() {
        let names: Vec<String> = (0..2_000).flat_map(|n| [format!("p{}:n{n}", n % 7), format!("n{n}"), format!("{n}:")]).collect();
        let mut kept = Names::default();
        for name in names.iter().chain(&names).chain(names.iter().rev()) {
            assert_eq!(kept.split(name), split_name(name), "{name}");
        }
        assert_eq!(kept.split(""), Err(FLAW_NAME));
    }

    #[test]
    fn names_that_are_kept_in_one_place_are_told_apart() {
        let names: Vec<String> = (0..PLACES * 8).map(|n| format!("gmd:name{n}")).collect();
        let place = place_of(names[0].as_bytes());
        let together: Vec<&String> = names.iter().filter(|name| place_of(name.as_bytes()) == place).collect();
        assert!(together.len() > 2, "{together:?}");
        let mut kept = Names::default();
        for name in together.iter().cycle().take(together.len() * 3) {
            assert_eq!(kept.split(name).map(|split| split.local), Ok(&name["gmd:".len()..]));
            assert_eq!(kept.split(name).map(|split| split.prefix), Ok("gmd"));
        }
    }

    proptest! {
        #[test]
        fn keeping_names_changes_nothing(names in prop::collection::vec("[ab:1\u{e9}\u{d7} ]{0,9}", 0..60)) {
            let mut kept = Names::default();
            for name in names.iter().chain(&names) {
                prop_assert_eq!(kept.split(name), split_name(name), "{}", name);
            }
        }

        #[test]
        fn prefixes_are_what_stands_before_colons(text in "[a1:\u{e9}/ .-]{0,40}") {
            let expected: Vec<&str> = text
                .match_indices(':')
                .map(|(colon, _)| {
                    let head = &text[..colon];
                    &head[head.rfind([':', '/', ' ']).map_or(0, |end| end + 1)..]
                })
                .collect();
            prop_assert_eq!(prefixes(&text).collect::<Vec<_>>(), expected);
        }
    }
}
