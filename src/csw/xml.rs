//! XML as catalogues send it: a cursor over one document, names and their namespaces, attributes, references.
//!
//! Lies over the plain reader of quick-xml, which checks neither names nor attributes, prefixes or characters: what it leaves out is
//! checked here, so that a record which passes is well formed wherever it is read. Such a *flaw* is told and costs what the caller makes
//! of it; what breaks the nesting of elements ends the document. Document types are refused and entities never expanded. Nothing here
//! knows what an element means.

mod blocks;
mod cursor;
mod decode;
mod name;
mod repeats;
mod text;

use std::borrow::Cow;

pub use cursor::{Cursor, DEPTH_MAX, Step};
pub use decode::decode;
pub use name::check_instruction;
pub use text::{holds_forbidden, is_allowed, is_blank, resolve, unescape};

use blocks::{marks, positions};
use name::{KEY_BYTES, Name, Names, bit_of, key_of, prefixes, split_name};
use repeats::{PREFIXES_MAX, Repeats};
use text::check_value;

/// Why an element is not well formed by itself though its nesting is sound.
pub type Flaw = &'static str;

/// A control character, U+FFFE or U+FFFF, raw or as a reference (XML 1.0, 2.2).
pub const FLAW_CHARACTER: Flaw = "character that XML forbids";
/// A reference to an entity other than the five of XML, or no reference at all.
pub const FLAW_ENTITY: Flaw = "entity that is not defined";
/// An ampersand that begins no reference.
pub const FLAW_AMPERSAND: Flaw = "ampersand that is not escaped";
/// An element or attribute name that is no QName.
pub const FLAW_NAME: Flaw = "name that XML forbids";
/// A prefix without a declaration in scope.
pub const FLAW_PREFIX: Flaw = "unbound prefix";
/// A declaration that Namespaces in XML 1.0 forbids.
pub const FLAW_DECLARATION: Flaw = "namespace declaration that is not allowed";
/// The same attribute twice, by name or by namespace.
pub const FLAW_DUPLICATE: Flaw = "duplicate attribute";
/// No quotes, no blank between two, `<` in a value.
pub const FLAW_ATTRIBUTE: Flaw = "attribute that is not well formed";
/// More attributes or namespace declarations than anybody needs.
pub const FLAW_ATTRIBUTES: Flaw = "too many attributes or namespaces";
/// `]]>` in text, `--` in a comment, an XML declaration or a reserved target within the document.
pub const FLAW_MARKUP: Flaw = "markup that XML forbids in its place";

/// How many attributes one element may have.
pub const ATTRIBUTES_MAX: usize = 256;
/// How many namespace declarations may be in scope.
pub const BINDINGS_MAX: usize = 256;

/// The namespaces in which elements are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ns {
    /// No namespace at all.
    None,
    /// Any that is not listed here, an unbound prefix too.
    Other,
    /// Any version of the CSW messages.
    Csw,
    /// Dublin Core elements.
    Dc,
    /// Dublin Core terms.
    Dct,
    /// ISO 19139.
    Gmd,
    /// ISO 19139-2.
    Gmi,
    /// ISO 19115-3 metadata base.
    Mdb,
    /// ISO 19115-3 common classes.
    Mcc,
    /// ISO 19115-3 citation.
    Cit,
    /// ISO 19115-3 resource identification.
    Mri,
    /// ISO 19115-3 languages.
    Lan,
    /// Atom.
    Atom,
    /// OWS common, any version.
    Ows,
    /// The envelope of SOAP 1.1 and 1.2.
    Soap,
}

/// A star stands for whatever follows.
const NAMESPACES: [(&str, Ns); 15] = [
    ("", Ns::None),
    ("http://www.opengis.net/cat/csw*", Ns::Csw),
    ("http://purl.org/dc/elements/1.1/", Ns::Dc),
    ("http://purl.org/dc/terms/", Ns::Dct),
    ("http://www.isotc211.org/2005/gmd", Ns::Gmd),
    ("http://www.isotc211.org/2005/gmi", Ns::Gmi),
    ("http://standards.iso.org/iso/19115/-3/mdb/*", Ns::Mdb),
    ("http://standards.iso.org/iso/19115/-3/mcc/*", Ns::Mcc),
    ("http://standards.iso.org/iso/19115/-3/cit/*", Ns::Cit),
    ("http://standards.iso.org/iso/19115/-3/mri/*", Ns::Mri),
    ("http://standards.iso.org/iso/19115/-3/lan/*", Ns::Lan),
    ("http://www.w3.org/2005/Atom", Ns::Atom),
    ("http://www.opengis.net/ows*", Ns::Ows),
    ("http://schemas.xmlsoap.org/soap/envelope/", Ns::Soap),
    ("http://www.w3.org/2003/05/soap-envelope", Ns::Soap),
];

/// What a value holds that is to be looked at again.
const MARKUP: u8 = 1;
const COLON: u8 = 2;

const XML_NAMESPACE: &str = "http://www.w3.org/XML/1998/namespace";
const XMLNS_NAMESPACE: &str = "http://www.w3.org/2000/xmlns/";

impl Ns {
    fn of(uri: &str) -> Ns {
        let fits = |written: &str| match written.strip_suffix('*') {
            Some(start) => uri.starts_with(start),
            None => uri == written,
        };
        NAMESPACES.iter().find(|(written, _)| fits(written)).map_or(Ns::Other, |(_, ns)| *ns)
    }
}

/// One namespace declaration in scope.
#[derive(Clone, Copy, Debug)]
pub struct Binding<'a> {
    /// Empty for the default namespace.
    pub prefix: &'a str,
    /// As written between its quotes.
    pub value: &'a str,
    /// The quotes around it.
    pub quote: char,
    /// Depth of the element that declares it; the root has 1.
    pub depth: usize,
    /// Whether its prefix was met since [`Scope::forget_uses`]: before a name, or before a colon in a text or value that may be one.
    pub used: bool,
    key: u64,
    ns: Ns,
}

/// An attribute that is no namespace declaration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attribute<'a> {
    /// Empty when there is none.
    pub prefix: &'a str,
    /// Local name.
    pub local: &'a str,
    /// As written between its quotes.
    pub value: &'a str,
}

/// What a start tag opens.
#[derive(Clone, Copy, Debug)]
pub struct Opened<'a> {
    /// The name as written, whether it is one or not.
    pub name: &'a str,
    /// Its namespace.
    pub ns: Ns,
    /// Its local name.
    pub local: &'a str,
    /// The first flaw of the tag.
    pub flaw: Option<Flaw>,
}

/// The namespace declarations in scope, and the attributes of the tag that was opened last.
#[derive(Debug, Default)]
pub struct Scope<'a> {
    bindings: Vec<Binding<'a>>,
    attributes: Vec<Attribute<'a>>,
    names: Names<'a>,
    repeats: Repeats<'a>,
    /// What the values of the tag that was opened last may use.
    met: Vec<&'a str>,
    /// A bit for each prefix that was ever declared, to know at once most of those that never were.
    declared: u64,
}

impl<'a> Scope<'a> {
    /// Takes in a start tag (what stands between `<` and `>` or `/>`) at a depth.
    pub fn open(&mut self, tag: &'a str, depth: usize) -> Opened<'a> {
        self.open_named(tag, tag.bytes().position(is_blank).unwrap_or(tag.len()), depth)
    }

    /// The same where it is known how many bytes there are up to the first blank, see [`Cursor::name_bytes`].
    #[inline(always)]
    pub fn open_named(&mut self, tag: &'a str, name_bytes: usize, depth: usize) -> Opened<'a> {
        self.attributes.clear();
        let (name, rest) = tag.split_at_checked(name_bytes).unwrap_or((tag, ""));
        let mut flaw = if rest.is_empty() { None } else { self.take_attributes(rest, depth).err() };
        let Ok(split) = self.names.split(name) else {
            return Opened { name, ns: Ns::Other, local: "", flaw: Some(FLAW_NAME) };
        };
        let ns = match self.use_of(split.key, split.prefix) {
            Some(binding) => binding.ns,
            None if split.prefix.is_empty() => Ns::None,
            None => {
                flaw = flaw.or(if split.prefix == "xml" { None } else { Some(FLAW_PREFIX) });
                Ns::Other
            }
        };
        Opened { name, ns, local: split.local, flaw }
    }

    /// Forgets the declarations of the elements at this depth and below.
    pub fn close(&mut self, depth: usize) {
        while self.bindings.last().is_some_and(|binding| binding.depth >= depth) {
            self.bindings.pop();
        }
    }

    /// The attributes of the tag that was opened last.
    #[must_use]
    pub fn attributes(&self) -> &[Attribute<'a>] {
        &self.attributes
    }

    /// The value of an attribute of the tag that was opened last, without prefix, references resolved.
    #[must_use]
    pub fn attribute(&self, local: &str) -> Option<Cow<'a, str>> {
        let found = self.attributes.iter().find(|attribute| attribute.prefix.is_empty() && attribute.local == local)?;
        Some(unescape(found.value))
    }

    /// All declarations, the outer ones first, those that are hidden by an inner one too.
    #[must_use]
    pub fn bindings(&self) -> &[Binding<'a>] {
        &self.bindings
    }

    /// The namespace of an element's name as it is written, empty when there is none.
    #[must_use]
    pub fn namespace(&self, name: &str) -> Cow<'a, str> {
        let split = split_name(name).unwrap_or_default();
        self.lookup(split.key, split.prefix).map_or(Cow::Borrowed(""), |binding| unescape(binding.value))
    }

    /// Takes a text in which names may stand (xsi:type, QNames and paths as text) for a use of their prefixes.
    #[inline]
    pub fn use_in(&mut self, text: &str) {
        if marks(text.as_bytes(), |byte| u8::from(byte == b':')) != 0 {
            self.use_prefixes(text);
        }
    }

    fn use_prefixes(&mut self, text: &str) {
        let mut last = "";
        for prefix in prefixes(text) {
            if prefix != last {
                self.use_prefix(prefix);
            }
            last = prefix;
        }
    }

    fn use_value(&mut self, value: &'a str) {
        for prefix in prefixes(value) {
            self.use_prefix(prefix);
            // One too many is enough to know that they are.
            if self.met.last() != Some(&prefix) && self.met.len() <= PREFIXES_MAX {
                self.met.push(prefix);
            }
        }
    }

    fn use_prefix(&mut self, prefix: &str) {
        let key = key_of(prefix);
        if self.declared & bit_of(key) != 0 {
            self.use_of(key, prefix);
        }
    }

    /// Marks what the attributes of the tag that was opened last use, also what that tag declares itself.
    pub fn use_attributes(&mut self) {
        let attributes = std::mem::take(&mut self.attributes);
        for attribute in &attributes {
            if !attribute.prefix.is_empty() {
                self.use_of(key_of(attribute.prefix), attribute.prefix);
            }
            self.use_in(attribute.value);
        }
        self.attributes = attributes;
    }

    /// From here on nothing was used.
    pub fn forget_uses(&mut self) {
        self.bindings.iter_mut().for_each(|binding| binding.used = false);
    }

    fn lookup(&self, key: u64, prefix: &str) -> Option<&Binding<'a>> {
        self.bindings.iter().rev().find(|binding| binding.is(key, prefix))
    }

    fn use_of(&mut self, key: u64, prefix: &str) -> Option<&Binding<'a>> {
        let binding = self.bindings.iter_mut().rev().find(|binding| binding.is(key, prefix))?;
        binding.used = true;
        Some(binding)
    }

    /// What follows the name of a tag, read anew only where it was not read before.
    fn take_attributes(&mut self, rest: &'a str, depth: usize) -> Result<(), Flaw> {
        if let Some(kept) = self.repeats.find(rest).copied() {
            self.attributes.extend_from_slice(kept.attributes());
            kept.prefixes().iter().for_each(|prefix| self.use_prefix(prefix));
            return Ok(());
        }
        self.met.clear();
        let declared = self.bindings.len();
        self.read_attributes(rest, depth)?;
        self.check_attributes()?;
        if self.bindings.len() == declared && self.attributes.iter().all(|attribute| attribute.prefix.is_empty()) {
            self.repeats.keep(rest, &self.attributes, &self.met);
        }
        Ok(())
    }

    fn read_attributes(&mut self, mut rest: &'a str, depth: usize) -> Result<(), Flaw> {
        // Each round takes at least one blank and one `=` off the rest.
        loop {
            let start = rest.trim_ascii_start();
            if start.is_empty() {
                return Ok(());
            }
            if start.len() == rest.len() {
                return Err(FLAW_ATTRIBUTE);
            }
            let equals = start.as_bytes().iter().position(|byte| *byte == b'=').ok_or(FLAW_ATTRIBUTE)?;
            let (name, after) = start.split_at_checked(equals).ok_or(FLAW_ATTRIBUTE)?;
            let after = after.get(1..).unwrap_or_default().trim_ascii_start();
            let quote = after.bytes().next().filter(|byte| matches!(byte, b'"' | b'\'')).ok_or(FLAW_ATTRIBUTE)?;
            let after = after.get(1..).unwrap_or_default();
            let (value, after) = positions(after.as_bytes(), quote)
                .next()
                .and_then(|length| after.split_at_checked(length))
                .ok_or(FLAW_ATTRIBUTE)?;
            let held = marks(value.as_bytes(), |byte| {
                let markup = byte == b'<' || byte == b'&';
                (u8::from(markup) * MARKUP) | (u8::from(byte == b':') * COLON)
            });
            if held & MARKUP != 0 {
                check_value(value)?;
            }
            let name = name.trim_ascii_end();
            if held & COLON != 0 && !name.starts_with("xmlns") {
                self.use_value(value);
            }
            self.take_in(name, value, char::from(quote), depth)?;
            rest = after.get(1..).unwrap_or_default();
        }
    }

    fn take_in(&mut self, name: &'a str, value: &'a str, quote: char, depth: usize) -> Result<(), Flaw> {
        if name == "xmlns" {
            return self.declare("", value, quote, depth);
        }
        let Name { prefix, local, key } = self.names.split(name)?;
        if prefix == "xmlns" {
            return self.declare(local, value, quote, depth);
        }
        if !prefix.is_empty() {
            // Marks what is in scope already; what this tag declares itself needs no mark.
            self.use_of(key, prefix);
        }
        if self.attributes.len() >= ATTRIBUTES_MAX {
            return Err(FLAW_ATTRIBUTES);
        }
        self.attributes.push(Attribute { prefix, local, value });
        Ok(())
    }

    fn declare(&mut self, prefix: &'a str, value: &'a str, quote: char, depth: usize) -> Result<(), Flaw> {
        let uri = unescape(value);
        let reserved = prefix == "xmlns" || (prefix == "xml") != (uri == XML_NAMESPACE) || uri == XMLNS_NAMESPACE;
        if reserved || (uri.is_empty() && !prefix.is_empty()) {
            return Err(FLAW_DECLARATION);
        }
        let key = key_of(prefix);
        let own = self.bindings.iter().rev().take_while(|binding| binding.depth >= depth);
        if own.into_iter().any(|binding| binding.is(key, prefix)) {
            return Err(FLAW_DUPLICATE);
        }
        if self.bindings.len() >= BINDINGS_MAX {
            return Err(FLAW_ATTRIBUTES);
        }
        self.declared |= bit_of(key);
        self.bindings.push(Binding { prefix, value, quote, depth, used: false, key, ns: Ns::of(&uri) });
        Ok(())
    }

    /// Waits for all declarations of the tag, which may stand after their first use.
    fn check_attributes(&self) -> Result<(), Flaw> {
        let mut rest = self.attributes.as_slice();
        while let Some((one, others)) = rest.split_first() {
            let bound = self.attribute_namespace(one)?;
            for other in others.iter().filter(|other| other.local == one.local) {
                if self.attribute_namespace(other)? == bound {
                    return Err(FLAW_DUPLICATE);
                }
            }
            rest = others;
        }
        Ok(())
    }

    fn attribute_namespace(&self, attribute: &Attribute<'a>) -> Result<&'a str, Flaw> {
        match attribute.prefix {
            "" => Ok(""),
            "xml" => Ok(XML_NAMESPACE),
            prefix => self.lookup(key_of(prefix), prefix).map(|binding| binding.value).ok_or(FLAW_PREFIX),
        }
    }
}

impl Binding<'_> {
    fn is(&self, key: u64, prefix: &str) -> bool {
        self.key == key && (prefix.len() <= KEY_BYTES || self.prefix == prefix)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_tag_is_taken_apart() {
        let mut scope = Scope::default();
        let opened = scope.open("a:b\n xmlns:a = 'http://purl.org/dc/terms/' c=\"d&amp;'\" a:e='' ", 1);
        assert_eq!((opened.name, opened.ns, opened.local, opened.flaw), ("a:b", Ns::Dct, "b", None));
        assert_eq!(scope.attribute("c").as_deref(), Some("d&'"));
        assert_eq!(scope.attribute("e"), None, "it has a prefix");
        assert_eq!(scope.attributes().len(), 2);
        assert_eq!(scope.namespace("a:x"), "http://purl.org/dc/terms/");
        assert_eq!(scope.namespace("x"), "");
    }

    #[test]
    fn declarations_go_out_of_scope_with_their_element() {
        let mut scope = Scope::default();
        scope.open("x xmlns='http://www.w3.org/2005/Atom'", 1);
        assert_eq!(scope.open("y xmlns=''", 2).ns, Ns::None);
        scope.close(2);
        assert_eq!(scope.open("y", 2).ns, Ns::Atom);
        scope.close(1);
        assert_eq!(scope.open("y", 1).ns, Ns::None);
    }

    #[test]
    fn namespaces_are_known_by_their_whole_name_or_by_how_it_begins() {
        for (uri, ns) in [
            ("http://www.opengis.net/cat/csw", Ns::Csw),
            ("http://www.opengis.net/cat/csw/2.0.2", Ns::Csw),
            ("http://www.opengis.net/cat/csw/3.0", Ns::Csw),
            ("http://standards.iso.org/iso/19115/-3/mdb/1.0", Ns::Mdb),
            ("http://www.isotc211.org/2005/gmd", Ns::Gmd),
            ("http://www.isotc211.org/2005/gmd/", Ns::Other),
            ("http://purl.org/dc/terms", Ns::Other),
            ("", Ns::None),
        ] {
            assert_eq!(Ns::of(uri), ns, "{uri}");
        }
        assert_eq!(Scope::default().open("x xmlns='http://www.w3.org/2005/&#65;tom'", 1).ns, Ns::Atom);
    }

    #[test]
    fn what_is_read_again_uses_what_is_in_scope_then() {
        let list = "x type='p:T' path=\"q:a/p:b\"";
        let used = |scope: &Scope<'_>| scope.bindings().iter().map(|binding| binding.used).collect::<Vec<_>>();
        let mut scope = Scope::default();
        assert_eq!(scope.open(list, 1).flaw, None);
        scope.open("y xmlns:p='u:p' xmlns:r='u:r'", 2);
        assert_eq!((scope.open(list, 3).flaw, used(&scope)), (None, vec![true, false]));
        scope.open("y xmlns:q='u:q' xmlns:p='u:s'", 3);
        scope.forget_uses();
        assert_eq!((scope.open(list, 4).flaw, used(&scope)), (None, vec![false, false, true, true]));
        assert_eq!(scope.attribute("path").as_deref(), Some("q:a/p:b"));
    }

    proptest! {
        #[test]
        fn a_tag_means_the_same_whatever_was_read_before(tags in prop::collection::vec((0..TAGS.len(), 1..4_usize), 0..60)) {
            const OUTER: &str = "o xmlns='u:d' xmlns:p='u:p' xmlns:q='u:q' xmlns:e='u:e'";
            let mut old = Scope::default();
            old.open(OUTER, 1);
            for (tag, times) in tags {
                for _ in 0..times {
                    let mut new = Scope::default();
                    new.open(OUTER, 1);
                    old.forget_uses();
                    new.forget_uses();
                    let (one, other) = (old.open(TAGS[tag], 2), new.open(TAGS[tag], 2));
                    prop_assert_eq!(format!("{one:?}"), format!("{other:?}"));
                    prop_assert_eq!(format!("{:?}", old.attributes()), format!("{:?}", new.attributes()));
                    prop_assert_eq!(format!("{:?}", old.bindings()), format!("{:?}", new.bindings()), "{}", TAGS[tag]);
                    old.close(2);
                }
            }
        }
    }

    /// Some differ in no more than their beginnings.
    const TAGS: [&str; 26] = [
        "a",
        "p:a",
        "z:a",
        "x list='http://a/b#c' value='eng'",
        "x list='http://a/b#d' value='eng'",
        "y list='http://a/b#c' value='eng'",
        "x list='http://a/b#c'  value='eng'",
        "x list='p:b' value='q:eng' third=''",
        "x list='p:bbbbbbbbbbbb'",
        "x list='q:bbbbbbbbbbbb'",
        "x list=':bbbbbbbbbbbbb'",
        "x list='p:q:e:p:q:e'",
        "x list='p:q:e:p:q:e:p:q:e'",
        "x list='1:2:3:4:5:6:7:p:q:'",
        "x q:list='bbbbbbbbbbbbb'",
        "x z:list='bbbbbbbbbbbbb'",
        "x list='p:b' xmlns:p='u:other'",
        "x xmlns:p='u:other' list='p:b'",
        "x list='p:b' list='p:bbbbbbb'",
        "x list='bbbbbbbbbbbb&b'",
        "x list='bbbbbbbbb&lt;b'",
        "x list='bbbbbbbbbbb' 1='2'",
        "x list='bbbbbbbbbbbbb'  ",
        "x list='b'",
        "x one='p:1' list='bbbbbbbbbbbbb'",
        "x two='q:2' list='bbbbbbbbbbbbb'",
    ];

    #[test]
    fn references_are_resolved_or_told() {
        for (reference, character) in
            [("amp", '&'), ("lt", '<'), ("gt", '>'), ("apos", '\''), ("quot", '"'), ("#65", 'A'), ("#x10348", '\u{10348}')]
        {
            assert_eq!(resolve(reference), Ok(character));
        }
        for reference in ["", "#", "#x", "AMP", "#X41", "#-1", "nbsp", "# 5"] {
            assert_eq!(resolve(reference), Err(FLAW_ENTITY), "{reference}");
        }
        for reference in ["#0", "#8", "#xFFFF", "#xDFFF", "#x110000", "#4294967361"] {
            assert_eq!(resolve(reference), Err(FLAW_CHARACTER), "{reference}");
        }
        assert_eq!(unescape("a&lt;&b;&#65"), "a<&b;&#65");
    }

    #[test]
    fn forbidden_characters_are_seen() {
        for text in ["\0", "a\u{8}", "\u{b}", "\u{1f}b", "\u{fffe}", "x\u{ffff}"] {
            assert!(holds_forbidden(text) && !text.chars().all(is_allowed), "{text:?}");
        }
        for text in ["", "\t\r\n ~", "\u{7f}\u{85}", "\u{feff}\u{fffd}\u{fb01}", "\u{10ffff}"] {
            assert!(!holds_forbidden(text) && text.chars().all(is_allowed), "{text:?}");
        }
        for lead in (0..80).chain(1_000..1_050) {
            let text =
                |inner: &str| format!("{}{inner}{}", "a\n".repeat(lead / 2) + &"b".repeat(lead % 2), "\t\r\u{fffd}".repeat(400));
            assert!(!holds_forbidden(&text("\u{e9}")), "{lead}");
            for inner in ["\u{1}", "\u{1f}", "\u{fffe}", "\u{ffff}"] {
                assert!(holds_forbidden(&text(inner)), "{inner:?} after {lead}");
            }
        }
    }

    #[test]
    fn what_a_value_holds_is_seen_wherever_it_stands() {
        for (before, after) in (0..70).flat_map(|before| [(before, 0), (before, 1), (before, 40)]) {
            for quote in ['"', '\''] {
                let tag = |held: &str| format!("x a={quote}{}{held}{}{quote} b='c'", ".".repeat(before), " ".repeat(after));
                let opened = |held: &str| {
                    let tag = tag(held);
                    let mut scope = Scope::default();
                    scope.open("x xmlns:p='u'", 1);
                    let flaw = scope.open(&tag, 2).flaw;
                    (flaw, scope.bindings()[0].used, scope.attributes().len())
                };
                assert_eq!(opened("="), (None, false, 2));
                assert_eq!(opened(">"), (None, false, 2));
                assert_eq!(opened("&lt;"), (None, false, 2));
                assert_eq!(opened("<"), (Some(FLAW_ATTRIBUTE), false, 0));
                assert_eq!(opened("&"), (Some(FLAW_AMPERSAND), false, 0));
                assert_eq!(opened("/p:"), (None, true, 2));
                assert_eq!(opened("/q:"), (None, false, 2));
            }
        }
    }

    #[test]
    fn a_tag_is_the_same_however_the_end_of_its_name_is_found() {
        for tag in ["a", "a ", "p:a\tb='c'", "\u{e9}\n", "", " a", "a\u{c}b"] {
            let bytes = tag.find([' ', '\t', '\r', '\n']).unwrap_or(tag.len());
            let (mut one, mut other) = (Scope::default(), Scope::default());
            let (one, other) = (one.open(tag, 1), other.open_named(tag, bytes, 1));
            assert_eq!((one.name, one.local, one.ns, one.flaw), (other.name, other.local, other.ns, other.flaw));
            assert_eq!(one.name.len(), bytes);
        }
    }
}
