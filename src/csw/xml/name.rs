//! Names: which are none, what their prefix is, and prefixes as numbers.
//!
//! Names are taken as they are written; what a prefix is bound to is for [`super::Scope`] to say.

use super::{FLAW_MARKUP, FLAW_NAME, Flaw};

/// How much of a prefix lies in its key.
pub(super) const KEY_BYTES: usize = 7;

/// A number that is as good as the prefix up to seven bytes, and nearly so beyond: comparing them is most of the work in a record.
pub(super) fn key_of(prefix: &str) -> u64 {
    let length = u64::try_from(prefix.len().min(255)).unwrap_or(255);
    prefix.bytes().take(KEY_BYTES).fold(length, |key, byte| key << 8 | u64::from(byte))
}

/// A QName.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Name<'a> {
    pub(super) prefix: &'a str,
    pub(super) local: &'a str,
    pub(super) key: u64,
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
pub(super) fn prefixes(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices(':').map(move |(colon, _)| {
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
