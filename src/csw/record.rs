//! Where a record keeps its identifier, its title and its stamp, for each kind of record that catalogues deliver.
//!
//! A kind is a row of `KINDS`: its root elements and the paths to what is looked for. Paths are matched by namespace while the elements
//! go by, so that nothing deeper than the next wanted step is looked at. Texts are taken as they are, but for blanks around them; only to
//! choose the latest of several stamps are they read. Nothing here sees XML as text.

use std::ops::Range;

use crate::csw::xml::{Attribute, Flaw, Ns};
use crate::timestamp;

/// An identifier that is longer is none: it is a key in the store.
pub const IDENTIFIER_BYTES_MAX: usize = 4_000;
/// The flaw of a record whose identifier is too long.
pub const FLAW_IDENTIFIER: Flaw = "identifier longer than 4,000 bytes";
/// Stamps beyond this many in one record are not looked at.
const STAMPS_MAX: usize = 1_000;

/// One step of a path.
#[derive(Clone, Copy)]
enum Step {
    Named(Ns, &'static str),
    /// Of any namespace.
    Local(&'static str),
    Any,
    /// The element that holds a string (gco:CharacterString, gmx:Anchor, gcx:Anchor), whatever its name; not the one
    /// that holds its translations.
    Holder,
}
use Step::{Any, Holder, Local, Named};

impl Step {
    /// A bit for each length modulo 64 that a name which fits may have.
    const fn lengths(self) -> u64 {
        match self {
            Named(_, name) | Local(name) => 1 << (name.len() % 64),
            Any | Holder => u64::MAX,
        }
    }

    fn fits(self, ns: Ns, local: &str) -> bool {
        match self {
            Named(wanted, name) => ns == wanted && local == name,
            Local(name) => local == name,
            Any => true,
            Holder => local != "PT_FreeText",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Identifier,
    Title,
    /// The first translation, for want of a title.
    TitleTranslated,
    Stamp,
    /// A date whose role stands beside it, both below the same child of the record.
    DateOfRole,
    /// What the date beside it says: `codeListValue`, else text.
    Role,
}

struct Kind {
    roots: &'static [Step],
    rows: &'static [(Field, &'static [Step])],
}

/// The first kind that fits; the last fits all.
const KINDS: [Kind; 5] = [
    // OGC 07-006r1, 10.2.5 and figure 15: csw:Record, by the name of the namespace alone also of CSW 3.0 (OGC 12-176r7).
    Kind {
        roots: &[Named(Ns::Csw, "Record"), Named(Ns::Csw, "SummaryRecord"), Named(Ns::Csw, "BriefRecord")],
        rows: &[
            (Field::Identifier, &[Named(Ns::Dc, "identifier")]),
            (Field::Title, &[Named(Ns::Dc, "title")]),
            (Field::Stamp, &[Named(Ns::Dct, "modified")]),
        ],
    },
    // ISO 19139. A record within a record lies off these paths.
    Kind {
        roots: &[Named(Ns::Gmd, "MD_Metadata"), Named(Ns::Gmi, "MI_Metadata")],
        rows: &[
            (Field::Identifier, &[Named(Ns::Gmd, "fileIdentifier"), Holder]),
            (Field::Title, &[GMD_INFO, Any, GMD_CITATION, GMD_CI_CITATION, GMD_TITLE, Holder]),
            (
                Field::TitleTranslated,
                &[GMD_INFO, Any, GMD_CITATION, GMD_CI_CITATION, GMD_TITLE, Local("PT_FreeText"), Local("textGroup"), TRANSLATION],
            ),
            (Field::Stamp, &[Named(Ns::Gmd, "dateStamp"), Local("Date")]),
            (Field::Stamp, &[Named(Ns::Gmd, "dateStamp"), Local("DateTime")]),
        ],
    },
    // ISO 19115-3, 1.0 and 2.0.
    Kind {
        roots: &[Named(Ns::Mdb, "MD_Metadata")],
        rows: &[
            (
                Field::Identifier,
                &[Named(Ns::Mdb, "metadataIdentifier"), Named(Ns::Mcc, "MD_Identifier"), Named(Ns::Mcc, "code"), Holder],
            ),
            (Field::Title, &[MDB_INFO, Any, MRI_CITATION, CIT_CI_CITATION, CIT_TITLE, Holder]),
            (
                Field::TitleTranslated,
                &[MDB_INFO, Any, MRI_CITATION, CIT_CI_CITATION, CIT_TITLE, Local("PT_FreeText"), Local("textGroup"), TRANSLATION],
            ),
            (Field::DateOfRole, &[Named(Ns::Mdb, "dateInfo"), CIT_CI_DATE, Named(Ns::Cit, "date"), Any]),
            (
                Field::Role,
                &[Named(Ns::Mdb, "dateInfo"), CIT_CI_DATE, Named(Ns::Cit, "dateType"), Named(Ns::Cit, "CI_DateTypeCode")],
            ),
        ],
    },
    // RFC 4287.
    Kind {
        roots: &[Named(Ns::Atom, "entry")],
        rows: &[
            (Field::Identifier, &[Named(Ns::Atom, "id")]),
            (Field::Title, &[Named(Ns::Atom, "title")]),
            (Field::Stamp, &[Named(Ns::Atom, "updated")]),
        ],
    },
    // oai_dc, DIF and whatever names things as they do.
    Kind {
        roots: &[Any],
        rows: &[
            (Field::Identifier, &[Local("identifier")]),
            (Field::Identifier, &[Local("Entry_ID")]),
            (Field::Title, &[Local("title")]),
            (Field::Title, &[Local("Entry_Title")]),
            (Field::Stamp, &[Local("modified")]),
        ],
    },
];

const GMD_INFO: Step = Named(Ns::Gmd, "identificationInfo");
const GMD_CITATION: Step = Named(Ns::Gmd, "citation");
const GMD_CI_CITATION: Step = Named(Ns::Gmd, "CI_Citation");
const GMD_TITLE: Step = Named(Ns::Gmd, "title");
const MDB_INFO: Step = Named(Ns::Mdb, "identificationInfo");
const MRI_CITATION: Step = Named(Ns::Mri, "citation");
const CIT_CI_CITATION: Step = Named(Ns::Cit, "CI_Citation");
const CIT_TITLE: Step = Named(Ns::Cit, "title");
const CIT_CI_DATE: Step = Named(Ns::Cit, "CI_Date");
const TRANSLATION: Step = Local("LocalisedCharacterString");

/// What was found in one record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found<'a> {
    /// The first that is not blank, trimmed.
    pub identifier: Option<&'a str>,
    /// The first that is not blank, trimmed.
    pub title: Option<&'a str>,
    /// The latest that can be read, else the first that is not blank, trimmed.
    pub modified: Option<&'a str>,
    /// An identifier that is too long to be one.
    pub flaw: Option<Flaw>,
}

/// Follows the elements of one record after the other and keeps the wanted texts. Its buffers serve a whole page.
#[derive(Default)]
pub struct Finder {
    rows: &'static [(Field, &'static [Step])],
    /// For each row, how many of its steps the open elements fit.
    matched: Vec<usize>,
    /// The depth of an element at which some row may go on; the children of a record have depth 1.
    live: usize,
    /// See [`Step::lengths`]: of all steps that may be the next. Most names are passed over by their length.
    lengths: u64,
    depth: usize,
    /// The row whose end is open, the depth of that element, where its text begins.
    open: Option<(Field, usize, usize)>,
    texts: String,
    identifier: Option<Range<usize>>,
    title: Option<Range<usize>>,
    title_translated: Option<Range<usize>>,
    stamps: Vec<Range<usize>>,
    revisions: Vec<Range<usize>>,
    date: Option<Range<usize>>,
    revision: bool,
}

impl Finder {
    /// A record begins.
    pub fn begin(&mut self, ns: Ns, local: &str) {
        let kind = KINDS.iter().find(|kind| kind.roots.iter().any(|root| root.fits(ns, local)));
        self.rows = kind.map_or(&[], |kind| kind.rows);
        self.matched.clear();
        self.matched.resize(self.rows.len(), 0);
        (self.live, self.depth, self.open) = (1, 0, None);
        self.texts.clear();
        (self.identifier, self.title, self.title_translated) = (None, None, None);
        self.stamps.clear();
        self.revisions.clear();
        (self.date, self.revision) = (None, false);
        self.await_steps();
    }

    /// After a change of what is matched.
    fn await_steps(&mut self) {
        // What is within the last step of a row may be looked at too.
        let all = if self.open.is_some() { u64::MAX } else { 0 };
        self.lengths = self.rows.iter().zip(&self.matched).fold(all, |lengths, ((_, steps), matched)| {
            let next = steps.get(*matched).filter(|_| *matched + 1 == self.live);
            lengths | next.map_or(0, |step| step.lengths())
        });
    }

    /// An element within the record opens; the record's children have depth 1.
    #[inline]
    pub fn enter(&mut self, depth: usize, ns: Ns, local: &str, attributes: &[Attribute<'_>]) {
        self.depth = depth;
        if depth == self.live && self.lengths >> (local.len() % 64) & 1 == 1 {
            self.follow(ns, local, attributes);
        }
    }

    fn follow(&mut self, ns: Ns, local: &str, attributes: &[Attribute<'_>]) {
        let depth = self.depth;
        for ((field, steps), matched) in self.rows.iter().zip(&mut self.matched) {
            if *matched + 1 != depth || !steps.get(*matched).is_some_and(|step| step.fits(ns, local)) {
                continue;
            }
            *matched = depth;
            self.live = depth + 1;
            if steps.len() == depth {
                self.open = Some((*field, depth, self.texts.len()));
            }
        }
        if self.live > depth {
            self.await_steps();
        }
        if let Some((Field::Role, _, _)) = self.open {
            let code = attributes.iter().find(|attribute| attribute.local == "codeListValue");
            self.revision |= code.is_some_and(|code| is_revision(code.value));
        }
    }

    /// Whether an element is open whose text is looked for; where none is, texts are passed over.
    #[inline]
    #[must_use]
    pub fn listens(&self) -> bool {
        self.open.is_some()
    }

    /// Text, references resolved, directly within the element that was opened last and is not closed.
    #[inline]
    pub fn text(&mut self, text: &str) {
        if self.open.is_some_and(|(_, depth, _)| depth == self.depth) {
            self.push(text);
        }
    }

    fn push(&mut self, text: &str) {
        // XML 1.0, 2.11: line ends are one line feed.
        if text.contains('\r') {
            self.texts.push_str(&text.replace("\r\n", "\n").replace('\r', "\n"));
        } else {
            self.texts.push_str(text);
        }
    }

    /// A character that was written as a reference, see [`Finder::text`].
    pub fn character(&mut self, c: char) {
        if self.open.is_some_and(|(_, depth, _)| depth == self.depth) {
            self.texts.push(c);
        }
    }

    /// The element at this depth closes.
    #[inline]
    pub fn leave(&mut self, depth: usize) {
        self.depth = depth.saturating_sub(1);
        if depth < self.live {
            self.retreat(depth);
        }
    }

    fn retreat(&mut self, depth: usize) {
        if let Some((field, _, start)) = self.open.take_if(|(_, open, _)| *open == depth) {
            self.keep(field, start);
        }
        for matched in &mut self.matched {
            *matched = (*matched).min(depth.saturating_sub(1));
        }
        self.live = depth.max(1);
        self.await_steps();
        if depth == 1 {
            self.settle_date();
        }
    }

    fn keep(&mut self, field: Field, start: usize) {
        let text = self.texts.get(start..).unwrap_or_default();
        let from = start + text.len() - text.trim_start().len();
        let range = from..from + text.trim().len();
        if range.is_empty() {
            return;
        }
        let slot = match field {
            Field::Identifier => &mut self.identifier,
            Field::Title => &mut self.title,
            Field::TitleTranslated => &mut self.title_translated,
            Field::DateOfRole => &mut self.date,
            Field::Role => return self.revision |= is_revision(text),
            Field::Stamp if self.stamps.len() < STAMPS_MAX => return self.stamps.push(range),
            Field::Stamp => return,
        };
        slot.get_or_insert(range);
    }

    /// A child of the record closes: the date that was found in it belongs to the role that was found in it.
    fn settle_date(&mut self) {
        let stamps = if self.revision { &mut self.revisions } else { &mut self.stamps };
        if let Some(date) = self.date.take().filter(|_| stamps.len() < STAMPS_MAX) {
            stamps.push(date);
        }
        self.revision = false;
    }

    /// The record ends.
    #[must_use]
    pub fn finish(&self) -> Found<'_> {
        let text = |range: &Range<usize>| self.texts.get(range.clone()).unwrap_or_default();
        let identifier = self.identifier.as_ref().map(text);
        let long = identifier.is_some_and(|identifier| identifier.len() > IDENTIFIER_BYTES_MAX);
        let (revisions, stamps) = (self.latest(&self.revisions), self.latest(&self.stamps));
        let modified = revisions.readable.or(stamps.readable).or(revisions.first).or(stamps.first);
        Found {
            identifier: identifier.filter(|_| !long),
            title: self.title.as_ref().or(self.title_translated.as_ref()).map(text),
            modified,
            flaw: long.then_some(FLAW_IDENTIFIER),
        }
    }

    fn latest(&self, ranges: &[Range<usize>]) -> Latest<'_> {
        let mut texts = ranges.iter().map(|range| self.texts.get(range.clone()).unwrap_or_default());
        let first = texts.next();
        // One alone is the latest, whether it can be read or not.
        if ranges.len() < 2 && self.revisions.is_empty() {
            return Latest { readable: None, first };
        }
        let mut readable: Option<(timestamp::Micros, &str)> = None;
        for text in first.into_iter().chain(texts) {
            let nominal = timestamp::parse(text).map(|interval| interval.nominal);
            if let Some(nominal) = nominal.filter(|nominal| readable.is_none_or(|(latest, _)| latest < *nominal)) {
                readable = Some((nominal, text));
            }
        }
        Latest { readable: readable.map(|(_, text)| text), first }
    }
}

struct Latest<'a> {
    readable: Option<&'a str>,
    first: Option<&'a str>,
}

fn is_revision(code: &str) -> bool {
    code.trim().eq_ignore_ascii_case("revision")
}

#[cfg(test)]
mod tests {
    use crate::csw::response::{SearchResults, parse};

    const NAMESPACES: &str = "xmlns:csw='http://www.opengis.net/cat/csw/2.0.2' xmlns:dc='http://purl.org/dc/elements/1.1/' \
        xmlns:dct='http://purl.org/dc/terms/' xmlns:gmd='http://www.isotc211.org/2005/gmd' xmlns:gmi='http://www.isotc211.org/2005/gmi' \
        xmlns:gco='http://www.isotc211.org/2005/gco' xmlns:gmx='http://www.isotc211.org/2005/gmx' \
        xmlns:srv='http://www.isotc211.org/2005/srv' \
        xmlns:mdb='http://standards.iso.org/iso/19115/-3/mdb/2.0' xmlns:mcc='http://standards.iso.org/iso/19115/-3/mcc/1.0' \
        xmlns:cit='http://standards.iso.org/iso/19115/-3/cit/2.0' xmlns:mri='http://standards.iso.org/iso/19115/-3/mri/1.0' \
        xmlns:lan='http://standards.iso.org/iso/19115/-3/lan/1.0' xmlns:gcx='http://standards.iso.org/iso/19115/-3/gcx/1.0' \
        xmlns:atom='http://www.w3.org/2005/Atom' xmlns:oai_dc='http://www.openarchives.org/OAI/2.0/oai_dc/'";

    fn page(record: &str) -> SearchResults {
        let text = format!(
            "<csw:GetRecordsResponse {NAMESPACES}><csw:SearchResults>{record}</csw:SearchResults></csw:GetRecordsResponse>"
        );
        parse(text.as_bytes(), None).unwrap()
    }

    /// Identifier, title and stamp of one record; `-` for none.
    fn found(record: &str) -> [String; 3] {
        let results = page(record);
        let record = results.records.iter().next().unwrap();
        assert_eq!(record.flaw, None);
        [record.identifier, record.title, record.modified].map(|text| text.unwrap_or("-").to_owned())
    }

    fn stamp(record: &str) -> String {
        let [_, _, stamp] = found(record);
        stamp
    }

    #[test]
    fn names_as_long_as_those_that_are_looked_for_are_not_taken_for_them() {
        let long = "x".repeat(64 + "title".len());
        let record = format!(
            "<csw:Record><dc:titel>no</dc:titel><dc:{long}>no</dc:{long}><dct:modifies>no</dct:modifies><dc:rights/>\
             <dc:title>t</dc:title><dct:identifier>no</dct:identifier><dc:identifies>no</dc:identifies></csw:Record>"
        );
        assert_eq!(found(&record), ["-", "t", "-"]);
    }

    #[test]
    fn blanks_between_the_parts_of_a_text_belong_to_it() {
        let record = "<csw:Record>\n <dc:title>\n a<!-- x --> <?p?>\t<![CDATA[b]]>\n&amp; &lt; <x> no <y/> </x> c </dc:title>\n\
                      </csw:Record>";
        assert_eq!(found(record), ["-", "a \tb\n& <  c", "-"]);
    }

    #[test]
    fn csw_records_of_every_element_set_are_read() {
        for local in ["Record", "SummaryRecord", "BriefRecord"] {
            let record = format!(
                "<csw:{local}><dc:identifier> </dc:identifier><dc:identifier>\n a <!-- x --></dc:identifier>\
                 <dc:identifier>b</dc:identifier>\
                 <dc:title/><dc:title>t<?p?>u</dc:title><dc:title>v</dc:title><dct:modified> 2020 </dct:modified></csw:{local}>"
            );
            assert_eq!(found(&record), ["a", "tu", "2020"]);
        }
    }

    #[test]
    fn only_children_of_the_record_are_looked_at_and_only_their_own_text() {
        let record = "<csw:Record><x><dc:identifier>no</dc:identifier></x><dc:identifier>a<b>no</b>c</dc:identifier>\
                      <dct:title>no</dct:title></csw:Record>";
        assert_eq!(found(record), ["ac", "-", "-"]);
    }

    #[test]
    fn references_and_cdata_are_part_of_a_text() {
        let record = "<csw:Record><dc:title>A &amp; B &#233;&#xE9; <![CDATA[<C> & D]]>\r\n&lt;\r&gt;&#13;e</dc:title></csw:Record>";
        assert_eq!(found(record)[1], "A & B \u{e9}\u{e9} <C> & D\n<\n>\re");
    }

    #[test]
    fn s4_of_several_stamps_the_latest_that_can_be_read_is_taken() {
        let modified = |stamps: &[&str]| {
            let stamps: String = stamps.iter().map(|stamp| format!("<dct:modified>{stamp}</dct:modified>")).collect();
            stamp(&format!("<csw:Record>{stamps}</csw:Record>"))
        };
        assert_eq!(modified(&["2020-01-01", "2024-05-01T00:00:00Z", "2022-01-01"]), "2024-05-01T00:00:00Z");
        assert_eq!(modified(&["", "WED JUN 28 00:00:00 CES", "2022-01-01", "soon"]), "2022-01-01");
        assert_eq!(modified(&["", "WED JUN 28 00:00:00 CES", "soon"]), "WED JUN 28 00:00:00 CES");
        assert_eq!(modified(&["soon"]), "soon");
        assert_eq!(
            modified(&["2025-03-01T01:00:00+02:00", "2025-03-01T00:00:00.5Z", "2025-03-01T00:00:00Z"]),
            "2025-03-01T00:00:00.5Z",
            "S2"
        );
        assert_eq!(modified(&[" ", ""]), "-");
    }

    fn gmd(root: &str, stamp: &str) -> String {
        format!(
            "<{root}><gmd:fileIdentifier><gco:CharacterString> a </gco:CharacterString></gmd:fileIdentifier>\
             <gmd:dateStamp>{stamp}</gmd:dateStamp>\
             <gmd:identificationInfo><srv:SV_ServiceIdentification><gmd:citation><gmd:CI_Citation><gmd:title>\
             <gmx:Anchor>t</gmx:Anchor></gmd:title>\
             </gmd:CI_Citation></gmd:citation></srv:SV_ServiceIdentification></gmd:identificationInfo></{root}>"
        )
    }

    #[test]
    fn s5_both_date_and_date_time_are_read() {
        for root in ["gmd:MD_Metadata", "gmi:MI_Metadata"] {
            assert_eq!(found(&gmd(root, "<gco:Date>2011-04-19</gco:Date>")), ["a", "t", "2011-04-19"]);
            assert_eq!(found(&gmd(root, "<gco:DateTime>2011-04-19T10:00:00</gco:DateTime>")), ["a", "t", "2011-04-19T10:00:00"]);
        }
    }

    #[test]
    fn b8_a_stamp_that_holds_an_element_is_none() {
        for held in
            ["<gco:Date><gmd:x>2011</gmd:x></gco:Date>", "<gmd:x><gco:Date>2011</gco:Date></gmd:x>", "<gco:Date/>", "", "<x/>"]
        {
            assert_eq!(found(&gmd("gmd:MD_Metadata", held)), ["a", "t", "-"], "{held}");
        }
    }

    #[test]
    fn a_record_within_a_record_is_not_mistaken_for_it() {
        let inner = gmd("gmd:MD_Metadata", "<gco:Date>1999</gco:Date>").replace("> a <", ">inner<").replace(">t<", ">inner<");
        let outer = gmd("gmd:MD_Metadata", "<gco:Date>2011</gco:Date>");
        let (head, tail) = outer.split_at("<gmd:MD_Metadata>".len());
        assert_eq!(found(&format!("{head}<gmd:series>{inner}</gmd:series>{inner}{tail}")), ["a", "t", "2011"]);
        assert_eq!(found(&format!("<wrap>{outer}</wrap>")), ["-", "-", "-"]);
    }

    #[test]
    fn a_title_in_translation_serves_for_want_of_another() {
        let title = |title: &str| {
            let record = gmd("gmd:MD_Metadata", "").replace("<gmx:Anchor>t</gmx:Anchor>", title);
            let [_, title, _] = found(&record);
            title
        };
        let free = "<gmd:PT_FreeText><gmd:textGroup>\
                    <gmd:LocalisedCharacterString locale='#de'>d</gmd:LocalisedCharacterString></gmd:textGroup>\
            <gmd:textGroup><gmd:LocalisedCharacterString>f</gmd:LocalisedCharacterString></gmd:textGroup></gmd:PT_FreeText>";
        assert_eq!(title(free), "d");
        assert_eq!(title(&format!("{free}<gco:CharacterString>c</gco:CharacterString>")), "c");
        assert_eq!(title(&format!("<gco:CharacterString> </gco:CharacterString>{free}")), "d");
        assert_eq!(title("u"), "-");
    }

    fn date(date: &str, role: &str) -> String {
        format!(
            "<mdb:dateInfo><cit:CI_Date><cit:date><gco:DateTime>{date}</gco:DateTime></cit:date>\
             <cit:dateType>{role}</cit:dateType></cit:CI_Date></mdb:dateInfo>"
        )
    }

    fn mdb(dates: &[String]) -> String {
        format!(
            "<mdb:MD_Metadata><mdb:metadataIdentifier><mcc:MD_Identifier><mcc:authority><cit:CI_Citation><cit:title><gco:CharacterString>no\
             </gco:CharacterString></cit:title></cit:CI_Citation></mcc:authority><mcc:code><gcx:Anchor>a</gcx:Anchor>\
             </mcc:code></mcc:MD_Identifier>\
             </mdb:metadataIdentifier>{}<mdb:identificationInfo><mri:MD_DataIdentification><mri:citation><cit:CI_Citation><cit:title>\
             <gco:CharacterString>t</gco:CharacterString><lan:PT_FreeText/></cit:title></cit:CI_Citation></mri:citation>\
             </mri:MD_DataIdentification>\
             </mdb:identificationInfo></mdb:MD_Metadata>",
            dates.concat()
        )
    }

    #[test]
    fn iso_19115_3_keeps_the_latest_revision_else_the_latest_date() {
        let code = |role: &str| format!("<cit:CI_DateTypeCode codeList='x' codeListValue='{role}'/>");
        let (creation, revision) = (code("creation"), code("revision"));
        let dates = [
            date("2030-01-01", &creation),
            date("2020-01-01", &revision),
            date("2021-01-01", &revision),
            date("2031-01-01", &creation),
        ];
        assert_eq!(found(&mdb(&dates)), ["a", "t", "2021-01-01"]);
        let within = "<cit:CI_DateTypeCode><x codeListValue='revision'/></cit:CI_DateTypeCode>";
        assert_eq!(found(&mdb(&[date("2030-01-01", within), date("2031-01-01", &creation)])), ["a", "t", "2030-01-01"]);
        assert_eq!(
            found(&mdb(&[date("2020-01-01", &creation), date("2021-01-01", &code("publication"))])),
            ["a", "t", "2021-01-01"]
        );
        let text = "<cit:CI_DateTypeCode>revision</cit:CI_DateTypeCode>";
        assert_eq!(stamp(&mdb(&[date("2020-01-01", text), date("2021-01-01", &creation)])), "2020-01-01");
        assert_eq!(stamp(&mdb(&[date("soon", &revision), date("2021-01-01", &creation)])), "2021-01-01");
        assert_eq!(stamp(&mdb(&[date("soon", &revision), date("then", &creation)])), "soon");
        assert_eq!(stamp(&mdb(&[date("", &revision), date("2021-01-01", "")])), "2021-01-01");
        assert_eq!(stamp(&mdb(&[])), "-");
    }

    #[test]
    fn other_kinds_are_read_by_their_local_names() {
        let oai = "<oai_dc:dc><dc:title>t</dc:title><dc:identifier>a</dc:identifier><dc:identifier>b</dc:identifier>\
                   <dct:modified>2020</dct:modified></oai_dc:dc>";
        assert_eq!(found(oai), ["a", "t", "2020"]);
        let dif =
            "<DIF xmlns='http://gcmd.gsfc.nasa.gov/Aboutus/xml/dif/'><Entry_ID>a</Entry_ID><Entry_Title>t</Entry_Title></DIF>";
        assert_eq!(found(dif), ["a", "t", "-"]);
        let atom = "<atom:entry><atom:id>a</atom:id><atom:title>t</atom:title><atom:updated>2020</atom:updated></atom:entry>";
        assert_eq!(found(atom), ["a", "t", "2020"]);
        assert_eq!(found("<metadata><idinfo><citation/></idinfo></metadata>"), ["-", "-", "-"], "FGDC");
    }

    #[test]
    fn an_identifier_that_is_no_key_is_a_flaw() {
        let record = |length: usize| format!("<csw:Record><dc:identifier>{}</dc:identifier></csw:Record>", "a".repeat(length));
        assert_eq!(found(&record(4_000))[0].len(), 4_000);
        let results = page(&record(4_001));
        let record = results.records.iter().next().unwrap();
        assert_eq!((record.identifier, record.flaw), (None, Some(super::FLAW_IDENTIFIER)));
    }
}
