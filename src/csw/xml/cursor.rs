//! One step at a time through a document that is text already.
//!
//! Counts depth, bounds it, and turns the reader's errors into answers that say whether the document ended early or is broken. It leaves
//! tags, names and references unread, and never goes on after an error.

use quick_xml::Reader;
use quick_xml::errors::{Error, SyntaxError};
use quick_xml::events::Event;

use super::is_blank;
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
    /// Where the step before the last ends.
    from: usize,
    depth: usize,
    name_bytes: usize,
}

impl<'a> Cursor<'a> {
    /// At the beginning of a text, which must not begin with a byte order mark: the reader would not count its bytes.
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        let mut reader = Reader::from_str(text);
        reader.config_mut().allow_dangling_amp = true;
        Cursor { text, reader, from: 0, depth: 0, name_bytes: 0 }
    }

    /// Where the last step begins, in bytes.
    #[must_use]
    pub fn start(&self) -> usize {
        let passes_blanks = self.reader.config().trim_text_start;
        let rest = self.text.as_bytes().get(self.from..).unwrap_or_default();
        let blanks = rest.iter().take_while(|byte| passes_blanks && is_blank(**byte)).count();
        match rest.get(blanks) {
            None | Some(b'<' | b'&') => self.from + blanks,
            // They are no step but the beginning of a text.
            Some(_) => self.from,
        }
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

    /// How many bytes the last start tag or element in one tag has up to its first blank.
    #[inline]
    #[must_use]
    pub fn name_bytes(&self) -> usize {
        self.name_bytes
    }

    /// The next step.
    ///
    /// # Errors
    /// [`AnswerError::Truncated`], [`AnswerError::Malformed`], [`AnswerError::DocumentType`], [`AnswerError::Html`].
    pub fn step(&mut self) -> Result<Step<'a>, AnswerError> {
        self.step_past(false)
    }

    /// The next step; the next that is no text of blanks alone where those are passed over: between elements they are half the steps
    /// of a record.
    ///
    /// # Errors
    /// As [`Cursor::step`].
    #[inline(always)]
    pub fn step_past(&mut self, blanks: bool) -> Result<Step<'a>, AnswerError> {
        self.reader.config_mut().trim_text_start = blanks;
        self.from = self.end();
        Ok(match self.reader.read_event() {
            Ok(Event::Start(tag)) => {
                self.depth += 1;
                if self.depth > DEPTH_MAX {
                    return Err(self.malformed("elements nested deeper than 1,000"));
                }
                self.name_bytes = tag.name().0.len();
                Step::Start(self.last(tag.len(), ">"))
            }
            Ok(Event::Empty(tag)) => {
                self.name_bytes = tag.name().0.len();
                Step::Empty(self.last(tag.len(), "/>"))
            }
            Ok(Event::End(_)) => {
                self.depth = self.depth.saturating_sub(1);
                Step::End
            }
            Ok(Event::Text(_)) => Step::Text(self.text.get(self.start()..self.end()).unwrap_or_default()),
            Ok(Event::CData(text)) => Step::CData(self.last(text.len(), "]]>")),
            Ok(Event::GeneralRef(name)) => Step::Reference(self.last(name.len(), ";")),
            Ok(Event::Comment(text)) => Step::Comment(self.last(text.len(), "-->")),
            Ok(Event::PI(text)) => Step::Instruction(self.last(text.len(), "?>")),
            Ok(Event::Decl(text)) => Step::Instruction(self.last(text.len(), "?>")),
            Ok(Event::DocType(kind)) if begins_with_html(&kind) => return Err(self.html()),
            Ok(Event::DocType(_)) => return Err(AnswerError::DocumentType),
            Ok(Event::Eof) => Step::Eof,
            Err(error) => return Err(self.failure(&error)),
        })
    }

    /// That the last step should not be where it is.
    #[must_use]
    #[cold]
    pub fn malformed(&self, why: &str) -> AnswerError {
        AnswerError::Malformed(format!("byte {}: {}", self.start(), shown(why, REASON_CHARS_MAX)))
    }

    /// So many bytes of the last step before what closes it.
    #[inline]
    fn last(&self, length: usize, close: &str) -> &'a str {
        let end = self.end().saturating_sub(close.len());
        self.text.get(end.saturating_sub(length)..end).unwrap_or_default()
    }

    fn html(&self) -> AnswerError {
        AnswerError::Html { title: html_title(self.text) }
    }

    #[cold]
    fn failure(&self, error: &Error) -> AnswerError {
        if looks_like_html(self.text) {
            return self.html();
        }
        let last = self.text.len().saturating_sub(self.start()) <= "<!".len();
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
    use proptest::prelude::*;

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
    #[test]
    fn the_name_of_a_tag_ends_at_its_first_blank() {
        let mut cursor = Cursor::new("<a:b\tc='d e'><\u{e9}/></a:b >");
        for bytes in [3, 2] {
            cursor.step().unwrap();
            assert_eq!(cursor.name_bytes(), bytes);
        }
    }

    #[test]
    fn blanks_that_are_passed_over_belong_to_no_step() {
        let text = "<a> \n<b/>\t c &amp; &d; & <!-- e --> <![CDATA[ ]]> &</a>\r\n";
        let expected = [
            (Step::Start("a"), "<a>"),
            (Step::Empty("b"), "<b/>"),
            (Step::Text("\t c "), "\t c "),
            (Step::Reference("amp"), "&amp;"),
            (Step::Reference("d"), "&d;"),
            (Step::Text("& "), "& "),
            (Step::Comment(" e "), "<!-- e -->"),
            (Step::CData(" "), "<![CDATA[ ]]>"),
            (Step::Text("&"), "&"),
            (Step::End, "</a>"),
            (Step::Eof, ""),
        ];
        let mut cursor = Cursor::new(text);
        for (step, written) in expected {
            assert_eq!(cursor.step_past(true), Ok(step));
            assert_eq!(&text[cursor.start()..cursor.end()], written);
        }
    }

    proptest! {
        /// Each step with its place, or how it all ends.
        #[test]
        fn but_for_texts_of_blanks_the_steps_are_the_same(parts in prop::collection::vec(0..PARTS.len(), 0..24), passed in any::<u32>()) {
            let text: String = parts.iter().map(|part| PARTS[*part]).collect();
            let (mut one, mut other) = (Cursor::new(&text), Cursor::new(&text));
            for round in 0.. {
                let passed = passed >> (round % 32) & 1 == 1;
                let found = one.step_past(passed);
                let mut expected = other.step();
                while passed && matches!(expected, Ok(Step::Text(text)) if text.bytes().all(is_blank)) {
                    expected = other.step();
                }
                prop_assert_eq!(&found, &expected, "{}", text);
                prop_assert_eq!((one.start(), one.end(), one.depth()), (other.start(), other.end(), other.depth()), "{}", text);
                if matches!(found, Ok(Step::Eof) | Err(_)) {
                    break;
                }
            }
        }
    }

    const PARTS: [&str; 20] = [
        "<a>",
        "</a>",
        "<a b=' '/>",
        " ",
        "\n\t",
        "\r",
        "c",
        "&amp;",
        "&",
        ";",
        "<!-- -->",
        "<![CDATA[ ]]>",
        "<?d e?>",
        "<!",
        "<",
        ">",
        "\u{a0}",
        "\u{c}",
        "'",
        "<?xml version='1.0'?>",
    ];
}
