//! The one pass over a page: the envelope, its counters, and each record as a document of its own.
//!
//! Elements of the envelope must be sound; a record that is not keeps its flaw to itself. Where things stand within a record is left
//! to `record.rs`. Buffers are the page's, none is a record's.

use super::{Record, SearchResults};
use crate::csw::exception::AnswerError;
use crate::csw::record::Finder;
use crate::csw::xml::{Cursor, FLAW_AMPERSAND, FLAW_CHARACTER, FLAW_MARKUP, FLAW_PREFIX, Flaw, Ns, Opened, Scope, Step};
use crate::csw::xml::{check_instruction, holds_forbidden, resolve};

/// Depth of SearchStatus and SearchResults.
const PART_DEPTH: usize = 2;
/// Depth of a record in a GetRecordsResponse.
const LISTED_DEPTH: usize = 3;
/// In a GetRecordByIdResponse.
const ASKED_DEPTH: usize = 2;
/// Where the record is all that comes, as in 3.0.0.
const BARE_DEPTH: usize = 1;
/// No server sends as many in one page; each costs more memory than it has bytes.
const RECORDS_MAX: usize = 1_000_000;
/// How much longer than the page its records may become by what is put into them: so many times, and so many bytes.
const GROWTH_MAX: usize = 8;
const GROWTH_BYTES_MAX: usize = 16 << 20;
/// The flaw of what stands in a record's place and says why it is missing.
const FLAW_REPORT: Flaw = "exception report in place of a record";

/// What a document is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Root {
    GetRecordsResponse,
    /// Of GetRecordById: the response of 2.0.2, or a record alone.
    Asked,
    Other,
}

/// One answer while it is read.
pub(super) struct Page<'a> {
    text: &'a str,
    cursor: Cursor<'a>,
    scope: Scope<'a>,
    finder: Finder,
    results: SearchResults,
    /// Depth of a record.
    record_depth: usize,
    /// Whether there was a SearchResults.
    searched: bool,
    /// Whether anywhere in the page stands a character that XML forbids; if so each record is looked through for itself.
    forbidden: bool,
    /// The same for `]]>`.
    brackets: bool,
}

impl<'a> Page<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let mut results = SearchResults::default();
        // Records are most of a page; what is injected and kept apart is less than what is left out.
        results.records.arena.reserve(text.len());
        Page {
            text,
            cursor: Cursor::new(text),
            scope: Scope::default(),
            finder: Finder::default(),
            results,
            record_depth: LISTED_DEPTH,
            searched: false,
            forbidden: holds_forbidden(text),
            brackets: text.contains("]]>"),
        }
    }

    /// Up to the end of the root element.
    pub(super) fn read_root(&mut self) -> Result<Root, AnswerError> {
        loop {
            let step = self.cursor.step()?;
            match step {
                Step::Start(tag) | Step::Empty(tag) => {
                    let opened = self.scope.open(tag, 1);
                    if opened.ns != Ns::Csw || opened.local != "GetRecordsResponse" {
                        return Ok(Root::Other);
                    }
                    self.check_envelope(tag, &opened)?;
                    if matches!(step, Step::Start(_)) {
                        self.read_parts()?;
                    }
                    return Ok(Root::GetRecordsResponse);
                }
                Step::Eof => return Err(AnswerError::Truncated),
                _ => self.expect_nothing(step)?,
            }
        }
    }

    /// Up to the end of the root element of an answer to GetRecordById.
    pub(super) fn read_asked_root(&mut self) -> Result<Root, AnswerError> {
        loop {
            let step = self.cursor.step()?;
            match step {
                Step::Start(tag) | Step::Empty(tag) => {
                    let opened = self.scope.open(tag, 1);
                    let whole = matches!(step, Step::Empty(_));
                    self.searched = true;
                    if opened.ns == Ns::Csw && opened.local == "GetRecordByIdResponse" {
                        self.check_envelope(tag, &opened)?;
                        self.record_depth = ASKED_DEPTH;
                        if !whole {
                            self.read_asked()?;
                        }
                        return Ok(Root::Asked);
                    }
                    if !is_record(&opened) {
                        return Ok(Root::Other);
                    }
                    self.record_depth = BARE_DEPTH;
                    self.scope.use_attributes();
                    self.finder.begin(opened.ns, opened.local);
                    if whole {
                        self.end_record(self.cursor.start(), &opened, opened.flaw)?;
                    } else {
                        self.read_record_within(self.cursor.start(), &opened)?;
                    }
                    return Ok(Root::Asked);
                }
                Step::Eof => return Err(AnswerError::Truncated),
                _ => self.expect_nothing(step)?,
            }
        }
    }

    /// The children of a GetRecordByIdResponse, up to its end.
    fn read_asked(&mut self) -> Result<(), AnswerError> {
        loop {
            match self.cursor.step()? {
                Step::Start(tag) => self.read_record(tag)?,
                Step::Empty(tag) => self.read_empty_record(tag)?,
                Step::End if self.cursor.depth() == 0 => return Ok(()),
                Step::Eof => return Err(AnswerError::Truncated),
                _ => {}
            }
        }
    }

    /// Whether the document is a record and nothing else.
    pub(super) fn is_bare(&self) -> bool {
        self.record_depth == BARE_DEPTH
    }

    /// What comes after the root element, and then what was found.
    pub(super) fn finish(mut self) -> Result<SearchResults, AnswerError> {
        loop {
            match self.cursor.step()? {
                Step::Eof => break,
                step => self.expect_nothing(step)?,
            }
        }
        if !self.searched {
            return Err(self.cursor.malformed("the end of a GetRecordsResponse without SearchResults"));
        }
        Ok(self.results)
    }

    /// Blanks, comments and instructions are nothing.
    fn expect_nothing(&self, step: Step<'_>) -> Result<(), AnswerError> {
        match step {
            Step::Comment(_) | Step::Instruction(_) => Ok(()),
            Step::Text(text) if text.trim_ascii().is_empty() => Ok(()),
            _ => Err(self.cursor.malformed("something beside the root element")),
        }
    }

    /// The children of the root element, up to its end. Whatever they are besides the two that are known, nothing is made of them.
    fn read_parts(&mut self) -> Result<(), AnswerError> {
        let mut in_results = false;
        loop {
            match self.cursor.step()? {
                Step::Start(tag) if self.cursor.depth() == PART_DEPTH => in_results = self.open_part(tag)?,
                Step::Empty(tag) if self.cursor.depth() == PART_DEPTH - 1 => {
                    self.open_part(tag)?;
                    self.scope.close(PART_DEPTH);
                }
                Step::Start(tag) if in_results && self.cursor.depth() == LISTED_DEPTH => self.read_record(tag)?,
                Step::Empty(tag) if in_results && self.cursor.depth() == LISTED_DEPTH - 1 => self.read_empty_record(tag)?,
                Step::End if self.cursor.depth() == PART_DEPTH - 1 => {
                    in_results = false;
                    self.scope.close(PART_DEPTH);
                }
                Step::End if self.cursor.depth() == 0 => return Ok(()),
                Step::Eof => return Err(AnswerError::Truncated),
                _ => {}
            }
        }
    }

    /// Whether it is SearchResults.
    fn open_part(&mut self, tag: &'a str) -> Result<bool, AnswerError> {
        let opened = self.scope.open(tag, PART_DEPTH);
        self.check_envelope(tag, &opened)?;
        match (opened.ns, opened.local) {
            (Ns::Csw, "SearchStatus") => {
                self.results.timestamp = self.scope.attribute("timestamp").map(Into::into);
                Ok(false)
            }
            (Ns::Csw, "SearchResults") if !self.searched => {
                self.searched = true;
                self.results.matched = self.scope.attribute("numberOfRecordsMatched").and_then(|n| n.trim().parse().ok());
                self.results.next_record = self.scope.attribute("nextRecord").and_then(|n| n.trim().parse().ok());
                Ok(true)
            }
            (Ns::Csw, "SearchResults") => Err(self.cursor.malformed("a second SearchResults")),
            _ => Ok(false),
        }
    }

    /// What the envelope declares goes into each record, so it has to be sound. An unbound prefix of its own harms nobody.
    fn check_envelope(&self, tag: &str, opened: &Opened<'_>) -> Result<(), AnswerError> {
        match opened.flaw {
            None | Some(FLAW_PREFIX) if !(self.forbidden && holds_forbidden(tag)) => Ok(()),
            flaw => Err(self.cursor.malformed(flaw.unwrap_or(FLAW_CHARACTER))),
        }
    }

    fn begin_record(&mut self, tag: &'a str) -> Opened<'a> {
        self.scope.forget_uses();
        let opened = self.scope.open_named(tag, self.cursor.name_bytes(), self.record_depth);
        self.finder.begin(opened.ns, opened.local);
        let report = opened.ns == Ns::Ows && opened.local == "ExceptionReport";
        Opened { flaw: opened.flaw.or(report.then_some(FLAW_REPORT)), ..opened }
    }

    fn read_record(&mut self, tag: &'a str) -> Result<(), AnswerError> {
        let start = self.cursor.start();
        let record = self.begin_record(tag);
        self.read_record_within(start, &record)
    }

    fn read_empty_record(&mut self, tag: &'a str) -> Result<(), AnswerError> {
        let start = self.cursor.start();
        let opened = self.begin_record(tag);
        self.end_record(start, &opened, opened.flaw)
    }

    /// The rest of a record whose start tag was read.
    fn read_record_within(&mut self, start: usize, record: &Opened<'a>) -> Result<(), AnswerError> {
        let mut flaw = record.flaw;
        loop {
            // Blanks between elements mean nothing but within a text that is looked for.
            let step = self.cursor.step_past(!self.finder.listens())?;
            let found = match step {
                Step::Text(text) => {
                    self.take_text(text);
                    self.flaw_of_text(text)
                }
                Step::Start(tag) | Step::Empty(tag) => {
                    let whole = matches!(step, Step::Empty(_));
                    let depth = self.cursor.depth() + usize::from(whole);
                    let found = self.enter(tag, depth);
                    if whole {
                        self.leave(depth);
                    }
                    found
                }
                Step::End => {
                    let depth = self.cursor.depth() + 1;
                    if depth == self.record_depth {
                        break;
                    }
                    self.leave(depth);
                    None
                }
                Step::Reference(name) => self.take_reference(name),
                Step::CData(text) => {
                    self.take_text(text);
                    None
                }
                Step::Comment(text) => (text.contains("--") || text.ends_with('-')).then_some(FLAW_MARKUP),
                Step::Instruction(text) => check_instruction(text).err(),
                Step::Eof => return Err(AnswerError::Truncated),
            };
            flaw = flaw.or(found);
        }
        self.end_record(start, record, flaw)
    }

    #[inline]
    fn enter(&mut self, tag: &'a str, depth: usize) -> Option<Flaw> {
        let opened = self.scope.open_named(tag, self.cursor.name_bytes(), depth);
        self.finder.enter(depth - self.record_depth, opened.ns, opened.local, self.scope.attributes());
        opened.flaw
    }

    #[inline]
    fn leave(&mut self, depth: usize) {
        self.finder.leave(depth - self.record_depth);
        self.scope.close(depth);
    }

    fn take_text(&mut self, text: &str) {
        self.scope.use_in(text);
        self.finder.text(text);
    }

    fn flaw_of_text(&self, text: &str) -> Option<Flaw> {
        if text.starts_with('&') {
            return Some(FLAW_AMPERSAND);
        }
        (self.brackets && text.contains("]]>")).then_some(FLAW_MARKUP)
    }

    /// A reference that means nothing stays in the text as it is written.
    fn take_reference(&mut self, name: &str) -> Option<Flaw> {
        match resolve(name) {
            Ok(c) => {
                self.finder.character(c);
                None
            }
            Err(flaw) => {
                for part in ["&", name, ";"] {
                    self.finder.text(part);
                }
                Some(flaw)
            }
        }
    }

    /// Keeps the record that ends here, with the declarations that it lacks put behind its name. One that stands alone declares what its
    /// whole document might need; it keeps what it uses, so that it reads as it does in a list.
    fn end_record(&mut self, start: usize, record: &Opened<'_>, flaw: Option<Flaw>) -> Result<(), AnswerError> {
        let text: &'a str = self.text;
        let xml = text.get(start..self.cursor.end()).unwrap_or_default();
        let forbidden = (self.forbidden && holds_forbidden(xml)).then_some(FLAW_CHARACTER);
        let (head, tail) = xml.split_at_checked(1 + record.name.len()).unwrap_or((xml, ""));
        let from = self.results.records.arena.len();
        self.results.records.arena.push_str(head);
        if self.is_bare() && record.flaw.is_none() {
            self.inject(BARE_DEPTH + 1);
            push_undeclared(&mut self.results.records.arena, tail);
        } else {
            self.inject(self.record_depth);
            self.results.records.arena.push_str(tail);
        }
        let range = from..self.results.records.arena.len();
        self.scope.close(self.record_depth);
        let found = self.finder.finish();
        let kept = Record {
            identifier: found.identifier,
            title: found.title,
            modified: found.modified,
            xml: "",
            flaw: flaw.or(forbidden).or(found.flaw),
        };
        self.results.records.push_span(kept, range);
        if self.results.records.len() > RECORDS_MAX {
            return Err(self.cursor.malformed("more than 1,000,000 records"));
        }
        if self.results.records.arena.len() > self.text.len().saturating_mul(GROWTH_MAX).saturating_add(GROWTH_BYTES_MAX) {
            return Err(self.cursor.malformed("namespace declarations beyond all measure"));
        }
        Ok(())
    }

    /// The declarations above this depth that the record in hand needs: the default namespace, and what it was seen to use. What is
    /// declared at this depth it does not need.
    fn inject(&mut self, depth: usize) {
        let bindings = self.scope.bindings();
        let (outer, own) = bindings.split_at_checked(bindings.partition_point(|b| b.depth < depth)).unwrap_or((bindings, &[]));
        let default = outer.iter().rfind(|binding| binding.prefix.is_empty()).filter(|binding| !binding.value.is_empty());
        let used = outer.iter().filter(|binding| binding.used && !binding.prefix.is_empty());
        for needed in default.into_iter().chain(used).filter(|needed| own.iter().all(|own| own.prefix != needed.prefix)) {
            let colon = if needed.prefix.is_empty() { "" } else { ":" };
            let quote = if needed.quote == '"' { "\"" } else { "'" };
            for part in [" xmlns", colon, needed.prefix, "=", quote, needed.value, quote] {
                self.results.records.arena.push_str(part);
            }
        }
    }
}

/// Copies what follows the name of a sound start tag, without the declarations of that tag.
fn push_undeclared(out: &mut String, mut rest: &str) {
    // Each round takes an attribute off the rest.
    while let Some((attribute, after)) = split_attribute(rest) {
        let name = attribute.split('=').next().unwrap_or_default().trim_ascii();
        if name != "xmlns" && !name.starts_with("xmlns:") {
            out.push_str(attribute);
        }
        rest = after;
    }
    out.push_str(rest);
}

/// The next attribute of a sound start tag, with the blanks before it, and what follows; `None` where the tag ends.
fn split_attribute(rest: &str) -> Option<(&str, &str)> {
    let equals = rest.find(['=', '>']).filter(|at| rest.as_bytes().get(*at) == Some(&b'='))?;
    let open = equals + rest.get(equals..)?.find(['"', '\''])?;
    let quote = rest.get(open..)?.chars().next()?;
    let close = open + 1 + rest.get(open + 1..)?.find(quote)?;
    rest.split_at_checked(close + 1)
}

/// Whether a root element may be a record that stands alone: a report, a page for people or capabilities are none.
fn is_record(opened: &Opened<'_>) -> bool {
    match opened.ns {
        Ns::Csw => matches!(opened.local, "Record" | "SummaryRecord" | "BriefRecord"),
        Ns::Ows => false,
        _ => !opened.local.eq_ignore_ascii_case("html"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use quick_xml::NsReader;
    use quick_xml::events::{BytesStart, Event};
    use quick_xml::name::ResolveResult;

    use crate::csw::response::parse;

    /// The children at depth 3 of a page, or the root at depth 1 of a record, each as its content: every name resolved, attributes sorted,
    /// texts run together. Panics at an unbound prefix.
    fn contents(xml: &str, depth_wanted: usize) -> Vec<Vec<String>> {
        let mut reader = NsReader::from_str(xml);
        let (mut found, mut depth) = (Vec::new(), 0);
        loop {
            let event = reader.read_event().unwrap();
            let mut closes = false;
            let part = match &event {
                Event::Start(tag) | Event::Empty(tag) => {
                    closes = matches!(event, Event::Empty(_));
                    depth += 1;
                    if depth == depth_wanted {
                        found.push(Vec::new());
                    }
                    tag_content(&reader, tag)
                }
                Event::End(_) => {
                    closes = true;
                    String::new()
                }
                Event::Text(text) => text.to_string(),
                Event::CData(text) => text.to_string(),
                Event::GeneralRef(name) => format!("&{};", &**name),
                Event::Eof => return found,
                other => format!("{other:?}"),
            };
            if depth >= depth_wanted {
                found.last_mut().unwrap().push(part);
            }
            depth -= usize::from(closes);
        }
    }

    fn tag_content(reader: &NsReader<&[u8]>, tag: &BytesStart<'_>) -> String {
        let uri = |resolved: ResolveResult<'_>| match resolved {
            ResolveResult::Bound(namespace) => namespace.into_inner().to_owned(),
            ResolveResult::Unbound => String::new(),
            ResolveResult::Unknown(prefix) => panic!("unbound prefix {prefix} in {tag:?}"),
        };
        let (namespace, local) = reader.resolver().resolve_element(tag.name());
        let mut attributes = Vec::new();
        for attribute in tag.attributes() {
            let attribute = attribute.unwrap();
            if attribute.key.as_namespace_binding().is_none() {
                let (namespace, local) = reader.resolver().resolve_attribute(attribute.key);
                attributes.push(format!("{{{}}}{}={}", uri(namespace), local.as_ref(), attribute.value));
            }
        }
        attributes.sort();
        format!("<{{{}}}{} {attributes:?}", uri(namespace), local.as_ref())
    }

    fn page(root: &str, results: &str, records: &str) -> String {
        format!(
            "<csw:GetRecordsResponse xmlns:csw=\"http://www.opengis.net/cat/csw/2.0.2\" {root}><csw:SearchResults {results}>{records}\
             </csw:SearchResults></csw:GetRecordsResponse>"
        )
    }

    /// The XML of the records, after it was seen to say alone what it said in the page.
    fn alone(page: &str) -> Vec<String> {
        let results = parse(page.as_bytes(), None).unwrap();
        let before = contents(page, 3);
        assert_eq!(results.records.len(), before.len());
        for (record, before) in results.records.iter().zip(before) {
            assert_eq!(record.flaw, None, "{}", record.xml);
            assert_eq!(contents(record.xml, 1), [before], "{}", record.xml);
        }
        results.records.iter().map(|record| record.xml.to_owned()).collect()
    }

    fn flaws(page: &str) -> Vec<Option<&'static str>> {
        parse(page.as_bytes(), None).unwrap().records.iter().map(|record| record.flaw).collect()
    }

    #[test]
    fn y2_a_record_carries_the_prefixes_that_its_ancestors_declare() {
        let xml = alone(&page("xmlns:a='u:a' xmlns:unused='u:b'", "xmlns:b=\"u:c\"", "<a:x><b:y/></a:x><csw:Record a:z='1' />"));
        assert_eq!(xml[0], "<a:x xmlns:a='u:a' xmlns:b=\"u:c\"><b:y/></a:x>");
        assert_eq!(xml[1], "<csw:Record xmlns:csw=\"http://www.opengis.net/cat/csw/2.0.2\" xmlns:a='u:a' a:z='1' />");
    }

    #[test]
    fn names_in_values_and_texts_keep_their_prefixes() {
        let xml = alone(&page(
            "xmlns:a='u:a' xmlns:b='u:b' xmlns:c='u:c' xmlns:d='u:d' xmlns:e='u:e'",
            "",
            "<r xsi:type=\"a:T\" xmlns:xsi='u:x'>//b:p/text() <![CDATA[c:q]]><!-- d:no -->http://x.e/e :e&#101;:</r>",
        ));
        assert_eq!(xml[0].split_once(" xsi:type").unwrap().0, "<r xmlns:a='u:a' xmlns:b='u:b' xmlns:c='u:c'");
    }

    #[test]
    fn the_default_namespace_is_inherited_unless_declared_again() {
        let records = "<r/><r xmlns=''><s/></r><p:r xmlns:p='u:p'><s xmlns='u:t'/><t/></p:r>";
        let xml = alone(&page("xmlns='u:d'", "", records));
        assert_eq!(xml, ["<r xmlns='u:d'/>", "<r xmlns=''><s/></r>", "<p:r xmlns='u:d' xmlns:p='u:p'><s xmlns='u:t'/><t/></p:r>"]);
        assert_eq!(alone(&page("xmlns='u:d'", "xmlns=''", "<r/>")), ["<r/>"]);
    }

    #[test]
    fn the_innermost_declaration_counts() {
        let xml = alone(&page(
            "xmlns:a='u:1' xmlns:b='u:1'",
            "xmlns:a='u:2'",
            "<a:x/><b:x a:b='' xmlns:a='u:3'/><x><a:y xmlns:a='u:4'/></x>",
        ));
        assert_eq!(xml, ["<a:x xmlns:a='u:2'/>", "<b:x xmlns:b='u:1' a:b='' xmlns:a='u:3'/>", "<x><a:y xmlns:a='u:4'/></x>"]);
    }

    #[test]
    fn a_value_keeps_its_quotes_and_its_references() {
        let xml = alone(&page("xmlns:a='u:\"q\"' xmlns:b=\"u:'q'&amp;&#x22;\"", "", "<a:x/><b:x/>"));
        assert_eq!(xml, ["<a:x xmlns:a='u:\"q\"'/>", "<b:x xmlns:b=\"u:'q'&amp;&#x22;\"/>"]);
    }

    #[test]
    fn prefixes_of_any_length_and_letters_are_told_apart() {
        let long = "p".repeat(300);
        let root = format!(
            "xmlns:{long}='u:1' xmlns:{long}q='u:2' xmlns:abcdefgh='u:3' xmlns:abcdefgi='u:4' xmlns:\u{e9}='u:5' xmlns:_.-='u:6'"
        );
        let records = format!("<{long}:x/><{long}q:x/><abcdefgi:x/><\u{e9}:x/><_.-:x/>");
        let xml = alone(&page(&root, "", &records));
        assert_eq!(xml[2], "<abcdefgi:x xmlns:abcdefgi='u:4'/>");
    }

    #[test]
    fn what_is_not_a_declaration_is_not_inherited() {
        assert_eq!(alone(&page("xml:lang='fr' xml:space='preserve'", "", "<x xml:lang='de'/>")), ["<x xml:lang='de'/>"]);
    }

    #[test]
    fn a_flaw_costs_one_record_alone() {
        let flawed = [
            ("<x>\u{1}</x>", "character that XML forbids"),
            ("<x a='\u{1f}'/>", "character that XML forbids"),
            ("<x>\u{fffe}</x>", "character that XML forbids"),
            ("<x><!-- \u{ffff} --></x>", "character that XML forbids"),
            ("<x>&#0;</x>", "character that XML forbids"),
            ("<x>&#x1;</x>", "character that XML forbids"),
            ("<x>&#xD800;</x>", "character that XML forbids"),
            ("<x>&#99999999999;</x>", "character that XML forbids"),
            ("<x a='&#xFFFE;'/>", "character that XML forbids"),
            ("<x>&nbsp;</x>", "entity that is not defined"),
            ("<x>&;</x>", "entity that is not defined"),
            ("<x>&#;</x>", "entity that is not defined"),
            ("<x>&#+5;</x>", "entity that is not defined"),
            ("<x>A & B; C</x>", "entity that is not defined"),
            ("<x a='&auml;'/>", "entity that is not defined"),
            ("<x>A & B</x>", "ampersand that is not escaped"),
            ("<x>\n & </x>", "ampersand that is not escaped"),
            ("<x><y/> &</x>", "ampersand that is not escaped"),
            ("<x>&&amp;</x>", "ampersand that is not escaped"),
            ("<x a='?b=1&c=2'/>", "ampersand that is not escaped"),
            ("<q:x/>", "unbound prefix"),
            ("<x><y><q:z/></y></x>", "unbound prefix"),
            ("<x q:a=''/>", "unbound prefix"),
            ("<x a='' a=''/>", "duplicate attribute"),
            ("<x xmlns:p='u' p:a='' xmlns:q='u' q:a=''/>", "duplicate attribute"),
            ("<x xmlns:p='u' xmlns:p='u'/>", "duplicate attribute"),
            ("<x xmlns:p=''/>", "namespace declaration that is not allowed"),
            ("<x xmlns:xmlns='u'/>", "namespace declaration that is not allowed"),
            ("<x xmlns:xml='u'/>", "namespace declaration that is not allowed"),
            ("<x a/>", "attribute that is not well formed"),
            ("<x a=b/>", "attribute that is not well formed"),
            ("<x a=''b=''/>", "attribute that is not well formed"),
            ("<x a='<'/>", "attribute that is not well formed"),
            ("<1a></1a>", "name that XML forbids"),
            ("<a:b:c/>", "name that XML forbids"),
            ("<:a/>", "name that XML forbids"),
            ("<></>", "name that XML forbids"),
            ("<x \u{d7}=''/>", "name that XML forbids"),
            ("<x>]]></x>", "markup that XML forbids in its place"),
            ("<x><!-- a -- b --></x>", "markup that XML forbids in its place"),
            ("<x><!-- a ---></x>", "markup that XML forbids in its place"),
            ("<x><?xml version='1.0'?></x>", "markup that XML forbids in its place"),
            ("<x><? a?></x>", "name that XML forbids"),
        ];
        for (record, flaw) in flawed {
            let text =
                page("xmlns:dc='http://purl.org/dc/elements/1.1/'", "", &format!("<a><![CDATA[x]]></a>{record}<b>&amp;</b>"));
            assert_eq!(flaws(&text), [None, Some(flaw), None], "{record}");
        }
    }

    #[test]
    fn a_flawed_record_still_says_what_it_is() {
        let record = "<csw:Record><dc:identifier>a\u{2}</dc:identifier><dc:title>R&D &nbsp;</dc:title></csw:Record>";
        let results = parse(page("xmlns:dc='http://purl.org/dc/elements/1.1/'", "", record).as_bytes(), None).unwrap();
        let record = results.records.iter().next().unwrap();
        assert_eq!((record.identifier, record.title), (Some("a\u{2}"), Some("R&D &nbsp;")));
        assert!(record.flaw.is_some());
    }

    #[test]
    fn too_many_attributes_or_namespaces_are_a_flaw_and_no_wait() {
        let attributes: String = (0..300).map(|n| format!(" a{n}=''")).collect();
        let namespaces: String = (0..300).map(|n| format!(" xmlns:a{n}='u'")).collect();
        let nested: String = (0..300).map(|n| format!("<x xmlns:a{n}='u'>")).collect::<String>() + &"</x>".repeat(300);
        let text = page("", "", &format!("<x{attributes}/><x{namespaces}/>{nested}<x/>"));
        let flaw = Some("too many attributes or namespaces");
        assert_eq!(flaws(&text), [flaw, flaw, flaw, None]);
    }

    #[test]
    fn a_page_that_would_fill_the_memory_is_refused() {
        let refused = |page: String, why: &str| {
            let error = parse(page.as_bytes(), None).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        };
        refused(page("", "", &"<x/>".repeat(super::RECORDS_MAX + 1)), "more than 1,000,000 records");
        let long = "u".repeat(1 << 20);
        assert_eq!(parse(page(&format!("xmlns='{long}'"), "", &"<x/>".repeat(20)).as_bytes(), None).unwrap().records.len(), 20);
        refused(page(&format!("xmlns='{long}'"), "", &"<x/>".repeat(30)), "beyond all measure");
    }

    #[test]
    fn an_unsound_envelope_is_refused_but_for_its_own_unbound_prefixes() {
        assert_eq!(flaws(&page("xsi:schemaLocation='a b'", "q:a=''", "<x/>")), [None]);
        for root in ["a='\u{1}'", "xmlns:p='&x;'", "a='1' a='2'", "a=b", "xmlns:p=''"] {
            assert!(parse(page(root, "", "<x/>").as_bytes(), None).is_err(), "{root}");
            assert!(parse(page("", root, "<x/>").as_bytes(), None).is_err(), "{root}");
        }
    }

    /// An element with declarations, attributes, texts and children drawn from few names, so that they meet.
    fn element() -> impl Strategy<Value = String> {
        const DECLARATIONS: [&str; 8] =
            ["", "", " xmlns='u:0'", " xmlns=\"\"", " xmlns:a='u:1'", " xmlns:b=\"u:'\"", " xmlns:a='u:\"'", " xmlns:b='u:4'"];
        const ATTRIBUTES: [&str; 6] = ["", " k='v'", " a:k='1'", " b:k=\"b:v\"", " t='a:v'", " k='&lt;&#9;'"];
        const TEXTS: [&str; 6] = ["", "t", "a:t", "&amp;", "<![CDATA[<b:t>]]>", "<!-- c -->"];
        const NAMES: [&str; 4] = ["x", "a:x", "b:x", "y"];
        let tag = (0..NAMES.len(), 0..DECLARATIONS.len(), 0..ATTRIBUTES.len(), 0..TEXTS.len(), any::<prop::sample::Index>());
        let make = |(name, declaration, attribute, text, order): (usize, usize, usize, usize, prop::sample::Index), inner: &str| {
            let (name, text) = (NAMES[name], TEXTS[text]);
            let (one, two) = (DECLARATIONS[declaration], ATTRIBUTES[attribute]);
            let (one, two) = if order.index(2) == 0 { (one, two) } else { (two, one) };
            if inner.is_empty() && text.is_empty() {
                format!("<{name}{one}{two}/>")
            } else {
                format!("<{name}{one}{two}>{text}{inner}</{name}>")
            }
        };
        let leaf = tag.clone().prop_map(move |tag| make(tag, ""));
        leaf.prop_recursive(4, 24, 4, move |inner| {
            (tag.clone(), prop::collection::vec(inner, 0..4)).prop_map(move |(tag, inner)| make(tag, &inner.concat()))
        })
    }

    proptest! {
        #[test]
        fn any_record_says_alone_what_it_said_in_its_page(records in prop::collection::vec(element(), 1..4), default in 0..2_usize) {
            let root = ["xmlns:a='u:a' xmlns:b=\"u:b\"", "xmlns='u:d' xmlns:b='u:x' xmlns:a='u:\"a\"'"][default];
            alone(&page(root, "xmlns:b='u:b2'", &records.concat()));
        }
    }
}
