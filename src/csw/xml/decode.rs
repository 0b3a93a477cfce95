//! Bytes of an answer to text: byte order mark, XML declaration, HTTP charset, UTF-8, in that order.
//!
//! Says at once what is empty or no XML at all. UTF-8 is borrowed, everything else is copied once. What the text means is left to
//! others; nothing is ever replaced by U+FFFD in what is handed on.

use std::borrow::Cow;

use quick_xml::encoding::{DetectedEncoding, decode as transcode, detect_encoding};
use quick_xml::events::{BytesDecl, BytesStart};

use crate::csw::exception::{AnswerError, html_title, looks_like_html, shown};
use crate::csw::xml::is_blank;

const UTF8_BOM: &[u8] = b"\xEF\xBB\xBF";
/// An XML declaration that is longer than this is none.
const DECLARATION_BYTES_MAX: usize = 1_024;
const START_BYTES_MAX: usize = 400;
const START_CHARS_MAX: usize = 100;

/// The text of a body, without byte order marks and blanks before its first `<`.
///
/// `charset` is the label of the HTTP header. Labels that cannot be true are passed over: an XML declaration that can be read byte by
/// byte is not UTF-16, whatever it says (.NET serialises strings with that label), and an unknown label is UTF-8 if the bytes are.
///
/// # Errors
/// [`AnswerError::Empty`], [`AnswerError::NotXml`], and where the bytes are not what they are declared to be [`AnswerError::Html`],
/// [`AnswerError::Truncated`] (cut within a character) or [`AnswerError::Malformed`].
pub fn decode<'a>(body: &'a [u8], charset: Option<&str>) -> Result<Cow<'a, str>, AnswerError> {
    if let Some((bytes, label)) = utf16(body) {
        let text = match decode_as(bytes, label) {
            Some(Ok(text)) => text,
            _ if bytes.len() % 2 == 1 => return Err(AnswerError::Truncated),
            _ => return Err(AnswerError::Malformed(format!("not {label}, as its first bytes say"))),
        };
        let lead = text.len() - text.trim_start_matches(|c: char| c == '\u{FEFF}' || c.is_ascii_whitespace()).len();
        let text = text.get(lead..).unwrap_or_default().to_owned();
        check_start(text.as_bytes())?;
        return Ok(Cow::Owned(text));
    }
    let bytes = without_lead(body);
    check_start(bytes)?;
    if body.starts_with(UTF8_BOM) {
        return utf8(bytes, "as its byte order mark says").map(Cow::Borrowed);
    }
    match (declared(bytes), charset) {
        (Some(label), _) => labelled(bytes, &label, "as its XML declaration says"),
        (None, Some(label)) => labelled(bytes, label.trim().trim_matches('"'), "as the HTTP header says"),
        (None, None) => utf8(bytes, "which is the default").map(Cow::Borrowed),
    }
}

/// The bytes after the mark and the label, when the first bytes show UTF-16, by its mark or by how `<` and one more character look.
fn utf16(body: &[u8]) -> Option<(&[u8], &'static str)> {
    match detect_encoding(body) {
        Some(DetectedEncoding::Utf16LeBom) => return Some((body.get(2..)?, "utf-16le")),
        Some(DetectedEncoding::Utf16BeBom) => return Some((body.get(2..)?, "utf-16be")),
        _ => {}
    }
    match body {
        [b'<', 0, 1..=255, 0, ..] => Some((body, "utf-16le")),
        [0, b'<', 0, 1..=255, ..] => Some((body, "utf-16be")),
        _ => None,
    }
}

fn without_lead(body: &[u8]) -> &[u8] {
    let mut bytes = body;
    while let Some(rest) =
        bytes.strip_prefix(UTF8_BOM).or_else(|| bytes.split_first().filter(|(b, _)| is_blank(**b)).map(|(_, r)| r))
    {
        bytes = rest;
    }
    bytes
}

fn check_start(bytes: &[u8]) -> Result<(), AnswerError> {
    match bytes.first() {
        None => Err(AnswerError::Empty),
        Some(b'<') => Ok(()),
        Some(_) => {
            let start = bytes.get(..START_BYTES_MAX).unwrap_or(bytes);
            Err(AnswerError::NotXml { start: shown(&String::from_utf8_lossy(start), START_CHARS_MAX) })
        }
    }
}

/// The encoding that an XML declaration names.
fn declared(bytes: &[u8]) -> Option<String> {
    let start = bytes.get(..DECLARATION_BYTES_MAX).unwrap_or(bytes).strip_prefix(b"<?")?;
    let length = start.windows(2).position(|pair| pair == b"?>")?;
    let content = std::str::from_utf8(start.get(..length)?).ok()?;
    if !content.strip_prefix("xml")?.starts_with(|c: char| c.is_ascii_whitespace()) {
        return None;
    }
    let declaration = BytesDecl::from_start(BytesStart::from_content(content, 3));
    let label = declaration.encoding()?.ok()?;
    Some(label.trim().to_owned()).filter(|label| !label.is_empty())
}

/// None when nobody knows the label.
fn decode_as<'a>(bytes: &'a [u8], label: &str) -> Option<Result<Cow<'a, str>, ()>> {
    let sane = label.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.:+".contains(&b));
    let encoding = if sane { BytesDecl::new("1.0", Some(label), None).encoder() } else { None }?;
    Some(transcode(bytes, encoding).map_err(drop))
}

fn labelled<'a>(bytes: &'a [u8], label: &str, by: &str) -> Result<Cow<'a, str>, AnswerError> {
    let lower = label.to_ascii_lowercase();
    let superset = ["utf-8", "utf8", "us-ascii", "ascii"].contains(&lower.as_str());
    let impossible = ["utf-16", "utf16", "ucs-2", "ucs2", "unicode", "iso-10646-ucs-2"].iter().any(|wide| lower.starts_with(wide));
    if superset || impossible {
        return utf8(bytes, by).map(Cow::Borrowed);
    }
    match decode_as(bytes, &lower) {
        Some(Ok(text)) => Ok(text),
        Some(Err(())) => Err(AnswerError::Malformed(format!("not {}, {by}", shown(label, START_CHARS_MAX)))),
        None => std::str::from_utf8(bytes).map(Cow::Borrowed).map_err(|_| {
            AnswerError::Malformed(format!("in an encoding that nobody here knows: {}, {by}", shown(label, START_CHARS_MAX)))
        }),
    }
}

fn utf8<'a>(bytes: &'a [u8], by: &str) -> Result<&'a str, AnswerError> {
    let error = match std::str::from_utf8(bytes) {
        Ok(text) => return Ok(text),
        Err(error) => error,
    };
    // An error page in another encoding is still an error page.
    let text = String::from_utf8_lossy(bytes);
    if looks_like_html(&text) {
        return Err(AnswerError::Html { title: html_title(&text) });
    }
    if error.error_len().is_none() {
        return Err(AnswerError::Truncated);
    }
    Err(AnswerError::Malformed(format!("not UTF-8 at byte {}, {by}", error.valid_up_to())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf16_of(text: &str, mark: &[u8], bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        mark.iter().copied().chain(text.encode_utf16().flat_map(bytes)).collect()
    }

    #[test]
    fn utf_8_is_borrowed_with_and_without_a_mark_and_blanks_before_it() {
        for body in ["<a>\u{e9}</a>", "\u{feff}<a>\u{e9}</a>", "\r\n \t<a>\u{e9}</a>", "\u{feff}\u{feff} \u{feff}<a>\u{e9}</a>"] {
            let text = decode(body.as_bytes(), None).unwrap();
            assert_eq!(text, "<a>\u{e9}</a>");
            assert!(matches!(text, Cow::Borrowed(_)));
        }
    }

    #[test]
    fn the_declaration_goes_before_the_header() {
        let latin = b"<?xml version='1.0' encoding='ISO-8859-1'?><a>\xe9</a>";
        assert!(decode(latin, Some("utf-8")).unwrap().contains("<a>\u{e9}</a>"));
        let utf8 = "<?xml version=\"1.0\" encoding=\"UTF-8\"?><a>\u{e9}</a>";
        assert_eq!(decode(utf8.as_bytes(), Some("ISO-8859-1")).unwrap(), utf8);
        assert!(
            decode(b"\n\n<?xml version='1.0' encoding='latin1' standalone='no' ?><a>\xe9</a>", None).unwrap().contains('\u{e9}')
        );
    }

    #[test]
    fn the_header_speaks_where_the_declaration_is_silent() {
        assert_eq!(decode(b"<a>\xe9</a>", Some("ISO-8859-1")).unwrap(), "<a>\u{e9}</a>");
        assert_eq!(decode(b"<a>\xa4</a>", Some("\"iso-8859-15\"")).unwrap(), "<a>\u{20ac}</a>");
        assert_eq!(
            decode(b"<?xml version='1.0'?><a>\x80</a>", Some("windows-1252")).unwrap(),
            "<?xml version='1.0'?><a>\u{20ac}</a>"
        );
    }

    #[test]
    fn utf_16_is_seen_by_its_mark_or_its_look() {
        let text = "<?xml version=\"1.0\" encoding=\"UTF-16\"?><a>\u{e9}\u{10348}</a>";
        for (mark, bytes) in [(&b"\xff\xfe"[..], u16::to_le_bytes as fn(u16) -> [u8; 2]), (b"\xfe\xff", u16::to_be_bytes)] {
            assert_eq!(decode(&utf16_of(text, mark, bytes), Some("utf-8")).unwrap(), text);
            assert_eq!(decode(&utf16_of(text, b"", bytes), None).unwrap(), text);
            assert_eq!(decode(&utf16_of("<a/>", b"", bytes), None).unwrap(), "<a/>");
            assert_eq!(decode(&utf16_of(" \n<a/>", mark, bytes), None).unwrap(), "<a/>");
            let mut cut = utf16_of(text, mark, bytes);
            cut.pop();
            assert_eq!(decode(&cut, None), Err(AnswerError::Truncated));
        }
        assert_eq!(decode(b"\xff\xfe", None), Err(AnswerError::Empty));
        assert!(matches!(decode(&utf16_of("hello", b"\xff\xfe", u16::to_le_bytes), None), Err(AnswerError::NotXml { .. })));
    }

    #[test]
    fn a_label_that_cannot_be_true_is_passed_over() {
        for label in ["utf-16", "UTF-16LE", "Unicode", "klingon", "UTF8", "us-ascii", "\"", ""] {
            let body = format!("<?xml version='1.0' encoding='{label}'?><a>\u{e9}</a>");
            assert_eq!(decode(body.as_bytes(), Some(label)).unwrap(), body, "{label}");
        }
        let error = decode(b"<?xml version='1.0' encoding='klingon'?><a>\xe9</a>", None).unwrap_err();
        assert!(matches!(error, AnswerError::Malformed(why) if why.contains("klingon")));
    }

    #[test]
    fn wrong_bytes_are_told_with_their_place() {
        let error = decode(b"<a>\xe9</a>", None).unwrap_err();
        assert_eq!(error, AnswerError::Malformed("not UTF-8 at byte 3, which is the default".to_owned()));
        assert_eq!(decode("<a>\u{e9}".as_bytes().split_last().unwrap().1, None), Err(AnswerError::Truncated));
    }

    #[test]
    fn what_is_no_xml_is_told_with_how_it_begins() {
        assert_eq!(decode(b"", None), Err(AnswerError::Empty));
        assert_eq!(decode(b"\xef\xbb\xbf \r\n", None), Err(AnswerError::Empty));
        assert_eq!(decode(b" {\"a\":1}\n", None), Err(AnswerError::NotXml { start: "{\"a\":1}".to_owned() }));
        assert!(
            matches!(decode(b"\x1f\x8b\x08\x00\xff", None), Err(AnswerError::NotXml { start }) if start.starts_with("\\u{1f}"))
        );
        let html = decode(b"<HTML><title>Erreur g\xe9n\xe9rale</title>", None).unwrap_err();
        assert_eq!(html, AnswerError::Html { title: Some("Erreur g\u{fffd}n\u{fffd}rale".to_owned()) });
    }
}
