//! One step at a time through a document that is text already.
//!
//! Counts depth, bounds it, and turns the reader's errors into answers that say whether the document ended early or is broken. It leaves
//! tags, names and references unread, and never goes on after an error.

use quick_xml::Reader;
use quick_xml::errors::{Error, SyntaxError};
use quick_xml::events::Event;

use crate::csw::exception::{AnswerError, html_title, looks_like_html, shown};

/// How deep elements may be nested.
pub const DEPTH_MAX: usize = 1_000;
const REASON_CHARS_MAX: usize = 200;

/// What stands at a place in a document. All texts are as they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// A start tag, without its angle brackets.
    Start(&'a str),
    /// An element in one tag, without its angle brackets and slash.
    Empty(&'a str),
    /// An end tag.
    End,
    /// Text up to the next markup or reference. One that begins with an ampersand holds an ampersand that is not escaped.
    Text(&'a str),
    /// What a CDATA section holds.
    CData(&'a str),
    /// What stands between `&` and `;`.
    Reference(&'a str),
    /// What a comment holds.
    Comment(&'a str),
    /// A processing instruction without its brackets; an XML declaration too.
    Instruction(&'a str),
    /// The end of the text. Whether that is the end of a document is for the caller to say, see [`Cursor::depth`].
    Eof,
}

/// A place in a document.
#[derive(Debug)]
pub struct Cursor<'a> {
    text: &'a str,
    reader: Reader<&'a [u8]>,
    start: usize,
    depth: usize,
}

impl<'a> Cursor<'a> {
    /// At the beginning of a text, which must not begin with a byte order mark: the reader would not count its bytes.
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        let mut reader = Reader::from_str(text);
        reader.config_mut().allow_dangling_amp = true;
        Cursor { text, reader, start: 0, depth: 0 }
    }

    /// Where the last step begins, in bytes.
    #[must_use]
    pub fn start(&self) -> usize {
        self.start
    }

    /// Where the last step ends, in bytes.
    #[must_use]
    pub fn end(&self) -> usize {
        usize::try_from(self.reader.buffer_position()).unwrap_or(usize::MAX)
    }

    /// How many elements are open after the last step.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The next step.
    ///
    /// # Errors
    /// [`AnswerError::Truncated`], [`AnswerError::Malformed`], [`AnswerError::DocumentType`], [`AnswerError::Html`].
    pub fn step(&mut self) -> Result<Step<'a>, AnswerError> {
        self.start = self.end();
        let event = match self.reader.read_event() {
            Ok(event) => event,
            Err(error) => return Err(self.failure(&error)),
        };
        Ok(match event {
            Event::Start(_) => {
                self.depth += 1;
                if self.depth > DEPTH_MAX {
                    return Err(self.malformed("elements nested deeper than 1,000"));
                }
                Step::Start(self.within("<", ">"))
            }
            Event::Empty(_) => Step::Empty(self.within("<", "/>")),
            Event::End(_) => {
                self.depth = self.depth.saturating_sub(1);
                Step::End
            }
            Event::Text(_) => Step::Text(self.within("", "")),
            Event::CData(_) => Step::CData(self.within("<![CDATA[", "]]>")),
            Event::GeneralRef(_) => Step::Reference(self.within("&", ";")),
            Event::Comment(_) => Step::Comment(self.within("<!--", "-->")),
            Event::PI(_) | Event::Decl(_) => Step::Instruction(self.within("<?", "?>")),
            Event::DocType(kind) if begins_with_html(&kind) => return Err(self.html()),
            Event::DocType(_) => return Err(AnswerError::DocumentType),
            Event::Eof => Step::Eof,
        })
    }

    /// That the last step should not be where it is.
    #[must_use]
    pub fn malformed(&self, why: &str) -> AnswerError {
        AnswerError::Malformed(format!("byte {}: {}", self.start, shown(why, REASON_CHARS_MAX)))
    }

    /// The last step without what opens and closes it.
    fn within(&self, open: &str, close: &str) -> &'a str {
        let end = self.end().saturating_sub(close.len());
        self.text.get(self.start + open.len()..end).unwrap_or_default()
    }

    fn html(&self) -> AnswerError {
        AnswerError::Html { title: html_title(self.text) }
    }

    fn failure(&self, error: &Error) -> AnswerError {
        if looks_like_html(self.text) {
            return self.html();
        }
        let last = self.text.len().saturating_sub(self.start) <= "<!".len();
        match error {
            Error::Syntax(SyntaxError::InvalidBangMarkup) if !last => self.malformed("markup that is not known"),
            Error::Syntax(_) => AnswerError::Truncated,
            _ => self.malformed(&error.to_string()),
        }
    }
}

fn begins_with_html(kind: &str) -> bool {
    kind.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("html"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_places_are_told_as_they_are_written() {
        let text = "<?xml version='1.0'?><a b='>'>t&amp;\u{e9}<c d='e'/><![CDATA[f]]><!-- g --><?h i?>&</a >\n";
        let expected = [
            (Step::Instruction("xml version='1.0'"), 0),
            (Step::Start("a b='>'"), 1),
            (Step::Text("t"), 1),
            (Step::Reference("amp"), 1),
            (Step::Text("\u{e9}"), 1),
            (Step::Empty("c d='e'"), 1),
            (Step::CData("f"), 1),
            (Step::Comment(" g "), 1),
            (Step::Instruction("h i"), 1),
            (Step::Text("&"), 1),
            (Step::End, 0),
            (Step::Text("\n"), 0),
            (Step::Eof, 0),
        ];
        let mut cursor = Cursor::new(text);
        let mut last = 0;
        for (step, depth) in expected {
            assert_eq!((cursor.step(), cursor.depth()), (Ok(step), depth));
            assert_eq!(cursor.start(), last);
            last = cursor.end();
        }
        assert_eq!(last, text.len());
    }

    #[test]
    fn an_end_within_markup_is_an_early_end_and_wrong_markup_is_not() {
        for text in ["<", "<a", "<a b='", "<!", "<!-", "<!--", "<![CD", "<![CDATA[", "<?", "<?xml ", "</", "<!D", "<!DOCTYPE a"] {
            assert_eq!(Cursor::new(text).step(), Err(AnswerError::Truncated), "{text}");
        }
        for text in ["<!x>", "<!ELEMENT a>", "</a>", "<?>?"] {
            let error = Cursor::new(text).step().unwrap_err();
            assert!(matches!(error, AnswerError::Malformed(_) | AnswerError::Truncated), "{text}: {error:?}");
        }
        assert!(matches!(Cursor::new("<!ELEMENT a>").step(), Err(AnswerError::Malformed(why)) if why.starts_with("byte 0: ")));
    }
}
