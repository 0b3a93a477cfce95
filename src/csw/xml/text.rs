//! Characters and references: which are allowed, and what they mean.
//!
//! Entities of a document type are never known here.

use std::borrow::Cow;

use super::{FLAW_AMPERSAND, FLAW_ATTRIBUTE, FLAW_CHARACTER, FLAW_ENTITY, Flaw};

/// How much of a text is looked through at once.
const BLOCK_BYTES: usize = 1_024;

/// A blank as XML sees it.
#[must_use]
pub const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// Whether a character may stand in an XML document (XML 1.0, 2.2).
#[must_use]
pub const fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..)
}

/// Whether a text holds a raw character that XML forbids.
#[must_use]
pub fn holds_forbidden(text: &str) -> bool {
    let mut perhaps = false;
    for block in text.as_bytes().chunks(BLOCK_BYTES) {
        // Most blocks need no second look, which asks for more.
        if any(block, |byte| (byte < b' ' && byte != b'\n') || byte == 0xEF) {
            if any(block, |byte| byte < b' ' && !is_blank(byte)) {
                return true;
            }
            perhaps |= block.contains(&0xEF);
        }
    }
    perhaps && (text.contains('\u{fffe}') || text.contains('\u{ffff}'))
}

/// Looks at every byte, which a processor does to many at once.
fn any(bytes: &[u8], fits: impl Fn(u8) -> bool) -> bool {
    bytes.iter().fold(false, |any, byte| any | fits(*byte))
}

/// The character that a reference (what stands between `&` and `;`) names.
///
/// # Errors
/// [`FLAW_ENTITY`] or [`FLAW_CHARACTER`].
pub fn resolve(reference: &str) -> Result<char, Flaw> {
    let Some(number) = reference.strip_prefix('#') else {
        return match reference {
            "amp" => Ok('&'),
            "lt" => Ok('<'),
            "gt" => Ok('>'),
            "apos" => Ok('\''),
            "quot" => Ok('"'),
            _ => Err(FLAW_ENTITY),
        };
    };
    let (digits, radix) = number.strip_prefix('x').map_or((number, 10), |digits| (digits, 16));
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Err(FLAW_ENTITY);
    }
    let code = u32::from_str_radix(digits, radix).map_err(|_| FLAW_CHARACTER)?;
    char::from_u32(code).filter(|c| is_allowed(*c)).ok_or(FLAW_CHARACTER)
}

/// Whether the value of an attribute may stand in a document as it is written.
pub(super) fn check_value(value: &str) -> Result<(), Flaw> {
    if value.contains('<') {
        return Err(FLAW_ATTRIBUTE);
    }
    for reference in value.split('&').skip(1) {
        let (name, _) = reference.split_once(';').ok_or(FLAW_AMPERSAND)?;
        resolve(name)?;
    }
    Ok(())
}

/// A text with its references resolved; what is none stays as it is written.
#[must_use]
pub fn unescape(value: &str) -> Cow<'_, str> {
    if !value.contains('&') {
        return Cow::Borrowed(value);
    }
    let mut parts = value.split('&');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(';').map(|(name, rest)| (resolve(name), rest)) {
            Some((Ok(c), rest)) => {
                text.push(c);
                text.push_str(rest);
            }
            _ => {
                text.push('&');
                text.push_str(part);
            }
        }
    }
    Cow::Owned(text)
}
