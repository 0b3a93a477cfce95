//! The records of the canned catalogue and its pages: always the same, cheap to make, of exactly the size that is wanted.
//!
//! A record is a template with three gaps (identifier, title, stamp); the rest is filled up with prose. Its shape is taken from real
//! ones: csw:Record as pycsw writes it, gmd:MD_Metadata as GeoNetwork does, indented, some 80 bytes an element. Record n was modified n
//! minutes after the first.

use std::ops::Range;

use time::{Duration, OffsetDateTime};

/// 2020-01-01T00:00:00Z.
const FIRST_STAMP_S: i64 = 1_577_836_800;
const PROSE: &str = "Discharge, water level and temperature measured at gauging stations of rivers &amp; lakes, daily means since 1951. \
                     Relev\u{e9}s hydrom\u{e9}triques, qualit\u{e9} contr\u{f4}l\u{e9}e; see the accompanying report for methods. ";
const CODE_LISTS: &str =
    "http://standards.iso.org/ittf/PubliclyAvailableStandards/ISO_19139_Schemas/resources/codelist/ML_gmxCodelists.xml";

/// What the records are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// csw:Record.
    Dc,
    /// gmd:MD_Metadata.
    Iso,
}

impl Kind {
    pub(crate) fn named(name: &str) -> Option<Kind> {
        [Kind::Dc, Kind::Iso].into_iter().find(|kind| kind.name() == name)
    }

    /// As it stands in urls.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Kind::Dc => "dc",
            Kind::Iso => "iso",
        }
    }

    /// The output schema.
    pub(crate) const fn schema(self) -> &'static str {
        match self {
            Kind::Dc => "http://www.opengis.net/cat/csw/2.0.2",
            Kind::Iso => "http://www.isotc211.org/2005/gmd",
        }
    }
}

/// How a catalogue is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holdings {
    pub(crate) kind: Kind,
    /// Bytes of a record.
    pub(crate) record_bytes: usize,
    pub(crate) records: u64,
}

/// One record in a page.
pub(crate) struct Row {
    pub(crate) identifier: String,
    pub(crate) title: String,
    pub(crate) stamp: String,
    /// Where its XML stands in the page.
    pub(crate) xml: Range<usize>,
}

/// Writes the pages of one catalogue.
pub(crate) struct Pages {
    holdings: Holdings,
    pieces: Vec<Piece>,
}

enum Piece {
    Text(String),
    Identifier,
    Title,
    Stamp,
}

impl Pages {
    pub(crate) fn new(holdings: Holdings) -> Pages {
        let template = match holdings.kind {
            Kind::Dc => dublin_core(),
            Kind::Iso => iso_19139(),
        };
        let gaps = identifier(0).len() + title(0).len() + stamp(0).len();
        let named = "{identifier}{title}{stamp}{prose}".len();
        let wanted = holdings.record_bytes.checked_sub(template.len() - named + gaps).expect("a record that large");
        Pages { holdings, pieces: pieces(&template.replace("{prose}", &prose(wanted))) }
    }

    pub(crate) fn holdings(&self) -> Holdings {
        self.holdings
    }

    /// Writes the answer that holds these records of the `matched`, in this order, and says where each stands.
    pub(crate) fn write(&self, page: &mut String, records: &[u64], start_position: u64, matched: u64) -> Vec<Row> {
        page.clear();
        page.reserve(records.len() * (self.holdings.record_bytes + 1) + 2_000);
        let end = start_position + records.len() as u64;
        let next = if end > matched { 0 } else { end };
        page.push_str(&self.head(matched, records.len(), next));
        let rows = records.iter().map(|record| self.write_record(page, *record)).collect();
        page.push_str("  </csw:SearchResults>\n</csw:GetRecordsResponse>\n");
        rows
    }

    fn write_record(&self, page: &mut String, record: u64) -> Row {
        let start = page.len();
        let mut row = Row { identifier: identifier(record), title: title(record), stamp: stamp(record), xml: start..start };
        for piece in &self.pieces {
            page.push_str(match piece {
                Piece::Text(text) => text,
                Piece::Identifier => &row.identifier,
                Piece::Title => &row.title,
                Piece::Stamp => &row.stamp,
            });
        }
        row.xml = start..page.len();
        page.push('\n');
        row
    }

    fn head(&self, matched: u64, returned: usize, next: u64) -> String {
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?>\n<csw:GetRecordsResponse \
             xmlns:csw=\"http://www.opengis.net/cat/csw/2.0.2\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\" \
             xmlns:dct=\"http://purl.org/dc/terms/\" xmlns:ows=\"http://www.opengis.net/ows\" \
             xmlns:gml=\"http://www.opengis.net/gml\" xmlns:ogc=\"http://www.opengis.net/ogc\" \
             xmlns:xs=\"http://www.w3.org/2001/XMLSchema\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" version=\"2.0.2\" \
             xsi:schemaLocation=\"http://www.opengis.net/cat/csw/2.0.2 \
             http://schemas.opengis.net/csw/2.0.2/CSW-discovery.xsd\">\n  <csw:SearchStatus timestamp=\"2026-01-01T00:00:00Z\"/>\n  \
             <csw:SearchResults numberOfRecordsMatched=\"{matched}\" numberOfRecordsReturned=\"{returned}\" nextRecord=\"{next}\" \
             recordSchema=\"{}\" elementSet=\"full\">\n",
            self.holdings.kind.schema()
        )
    }
}

/// A UUID, so that the keys of a store come in no order.
fn identifier(record: u64) -> String {
    let (high, low) = (mixed(2 * record), mixed(2 * record + 1));
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
}

/// Splitmix64.
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn title(record: u64) -> String {
    format!("Hydrography of sheet {record:07}, levels and flow")
}

/// The stamp of a record, in an order that is that of its text too.
pub(crate) fn stamp(record: u64) -> String {
    let minutes = Duration::minutes(i64::try_from(record).expect("a record"));
    let at = OffsetDateTime::from_unix_timestamp(FIRST_STAMP_S).expect("a time") + minutes;
    format!("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", at.year(), u8::from(at.month()), at.day(), at.hour(), at.minute(), at.second())
}

fn pieces(template: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some((text, after)) = rest.split_once('{') {
        let (gap, after) = after.split_once('}').expect("a gap that ends");
        pieces.push(Piece::Text(text.to_owned()));
        pieces.push(match gap {
            "identifier" => Piece::Identifier,
            "title" => Piece::Title,
            "stamp" => Piece::Stamp,
            other => panic!("nothing fills {other}"),
        });
        rest = after;
    }
    pieces.push(Piece::Text(rest.to_owned()));
    pieces
}

/// So many bytes of prose; no reference and no letter is cut in two.
fn prose(bytes: usize) -> String {
    let whole = bytes / PROSE.len();
    let mut text = PROSE.repeat(whole);
    text.extend(std::iter::repeat_n('.', bytes - text.len()));
    text
}

/// Elements one below the other, indented.
#[derive(Default)]
struct Tree {
    text: String,
    open: Vec<&'static str>,
}

impl Tree {
    fn line(&mut self, line: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.extend(std::iter::repeat_n("  ", self.open.len()));
        self.text.push_str(line);
    }

    fn leaf(&mut self, name: &str, text: &str) {
        self.line(&format!("<{name}>{text}</{name}>"));
    }

    fn within(&mut self, names: &[&'static str], fill: impl FnOnce(&mut Tree)) {
        for name in names {
            self.line(&format!("<{name}>"));
            self.open.push(name);
        }
        fill(self);
        for name in names.iter().rev() {
            self.open.pop();
            self.line(&format!("</{name}>"));
        }
    }

    fn string(&mut self, name: &'static str, text: &str) {
        self.within(&[name], |tree| tree.leaf("gco:CharacterString", text));
    }

    fn code(&mut self, name: &'static str, list: &str, value: &str) {
        let line = format!("<gmd:{list} codeList=\"{CODE_LISTS}#{list}\" codeListValue=\"{value}\" />");
        self.within(&[name], |tree| tree.line(&line));
    }
}

fn dublin_core() -> String {
    let mut tree = Tree::default();
    tree.within(&["csw:Record"], |tree| {
        tree.leaf("dc:identifier", "{identifier}");
        tree.leaf("dc:title", "{title}");
        tree.leaf("dc:type", "dataset");
        for subject in ["hydrography", "inlandWaters", "gauging station", "discharge"] {
            tree.leaf("dc:subject", subject);
        }
        tree.line(
            "<dct:references scheme=\"OGC:WMS\">http://maps.example/ows?service=WMS&amp;request=GetCapabilities</dct:references>",
        );
        tree.leaf("dct:modified", "{stamp}");
        tree.leaf("dct:abstract", "{prose}");
        tree.leaf("dc:date", "2019-05-06");
        tree.leaf("dc:creator", "Office of Hydrology");
        tree.leaf("dc:publisher", "Spatial Data Centre");
        tree.leaf("dc:language", "eng");
        tree.leaf("dc:format", "ESRI Shapefile");
        tree.line("<ows:BoundingBox crs=\"urn:x-ogc:def:crs:EPSG:6.11:4326\" dimensions=\"2\">");
        tree.leaf("ows:LowerCorner", "47.27 5.87");
        tree.leaf("ows:UpperCorner", "55.06 15.04");
        tree.line("</ows:BoundingBox>");
    });
    tree.text
}

fn iso_19139() -> String {
    let mut tree = Tree::default();
    tree.within(&["gmd:MD_Metadata"], |tree| {
        tree.string("gmd:fileIdentifier", "{identifier}");
        tree.code("gmd:language", "LanguageCode", "eng");
        tree.code("gmd:characterSet", "MD_CharacterSetCode", "utf8");
        tree.code("gmd:hierarchyLevel", "MD_ScopeCode", "dataset");
        party(tree, "gmd:contact", "pointOfContact");
        tree.within(&["gmd:dateStamp"], |tree| tree.leaf("gco:DateTime", "{stamp}"));
        tree.string("gmd:metadataStandardName", "ISO 19115:2003/19139");
        tree.string("gmd:metadataStandardVersion", "1.0");
        tree.within(
            &["gmd:referenceSystemInfo", "gmd:MD_ReferenceSystem", "gmd:referenceSystemIdentifier", "gmd:RS_Identifier"],
            |tree| {
                tree.string("gmd:code", "ETRS89 / UTM zone 32N (EPSG:25832)");
                tree.string("gmd:codeSpace", "EPSG");
            },
        );
        tree.within(&["gmd:identificationInfo", "gmd:MD_DataIdentification"], identification);
        tree.within(&["gmd:distributionInfo", "gmd:MD_Distribution"], distribution);
        tree.within(&["gmd:dataQualityInfo", "gmd:DQ_DataQuality"], |tree| {
            tree.within(&["gmd:scope", "gmd:DQ_Scope"], |tree| tree.code("gmd:level", "MD_ScopeCode", "dataset"));
            tree.within(&["gmd:lineage", "gmd:LI_Lineage"], |tree| tree.string("gmd:statement", PROSE.trim_end()));
        });
    });
    let declared = "<gmd:MD_Metadata xmlns:gmd=\"http://www.isotc211.org/2005/gmd\" xmlns:gco=\"http://www.isotc211.org/2005/gco\" \
                    xmlns:srv=\"http://www.isotc211.org/2005/srv\" xmlns:gmx=\"http://www.isotc211.org/2005/gmx\" \
                    xmlns:gts=\"http://www.isotc211.org/2005/gts\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" \
                    xsi:schemaLocation=\"http://www.isotc211.org/2005/gmd \
                    http://schemas.opengis.net/csw/2.0.2/profiles/apiso/1.0.0/apiso.xsd\">";
    tree.text.replacen("<gmd:MD_Metadata>", declared, 1)
}

fn identification(tree: &mut Tree) {
    tree.within(&["gmd:citation", "gmd:CI_Citation"], |tree| {
        tree.string("gmd:title", "{title}");
        date(tree, "2011-03-04", "creation");
        date(tree, "2019-05-06", "publication");
        tree.within(&["gmd:identifier", "gmd:MD_Identifier"], |tree| {
            tree.string("gmd:code", "https://registry.example/so/hydro/44")
        });
    });
    tree.string("gmd:abstract", "{prose}");
    tree.string("gmd:purpose", "Flood forecasting and the planning of water use.");
    tree.code("gmd:status", "MD_ProgressCode", "onGoing");
    party(tree, "gmd:pointOfContact", "owner");
    party(tree, "gmd:pointOfContact", "publisher");
    tree.within(&["gmd:resourceMaintenance", "gmd:MD_MaintenanceInformation"], |tree| {
        tree.code("gmd:maintenanceAndUpdateFrequency", "MD_MaintenanceFrequencyCode", "daily");
    });
    tree.within(&["gmd:graphicOverview", "gmd:MD_BrowseGraphic"], |tree| {
        tree.string("gmd:fileName", "https://maps.example/thumbnails/hydrography.png");
    });
    keywords(tree, "GEMET - INSPIRE themes, version 1.0", &["Hydrography", "Environmental monitoring facilities"]);
    keywords(tree, "GEMET - Concepts, version 4.1.3", &["river", "lake", "gauge", "flood", "water quantity", "low flow"]);
    tree.within(&["gmd:resourceConstraints", "gmd:MD_LegalConstraints"], |tree| {
        tree.string("gmd:useLimitation", "Free of charge, the source must be named.");
        tree.code("gmd:accessConstraints", "MD_RestrictionCode", "otherRestrictions");
        tree.string("gmd:otherConstraints", "no limitations to public access");
    });
    tree.code("gmd:spatialRepresentationType", "MD_SpatialRepresentationTypeCode", "vector");
    tree.code("gmd:language", "LanguageCode", "eng");
    tree.within(&["gmd:topicCategory"], |tree| tree.leaf("gmd:MD_TopicCategoryCode", "inlandWaters"));
    let box_path = ["gmd:extent", "gmd:EX_Extent", "gmd:geographicElement", "gmd:EX_GeographicBoundingBox"];
    tree.within(&box_path, |tree| {
        for (name, degrees) in [
            ("gmd:westBoundLongitude", "5.87"),
            ("gmd:eastBoundLongitude", "15.04"),
            ("gmd:southBoundLatitude", "47.27"),
            ("gmd:northBoundLatitude", "55.06"),
        ] {
            tree.within(&[name], |tree| tree.leaf("gco:Decimal", degrees));
        }
    });
}

fn distribution(tree: &mut Tree) {
    tree.within(&["gmd:distributionFormat", "gmd:MD_Format"], |tree| {
        tree.string("gmd:name", "ESRI Shapefile");
        tree.string("gmd:version", "1.0");
    });
    tree.within(&["gmd:transferOptions", "gmd:MD_DigitalTransferOptions"], |tree| {
        for (address, protocol) in [
            ("https://maps.example/ows?service=WMS&amp;request=GetCapabilities", "OGC:WMS"),
            ("https://maps.example/ows?service=WFS&amp;request=GetCapabilities", "OGC:WFS"),
            ("https://data.example/hydrography.zip", "WWW:DOWNLOAD-1.0-http--download"),
        ] {
            tree.within(&["gmd:onLine", "gmd:CI_OnlineResource"], |tree| {
                tree.within(&["gmd:linkage"], |tree| tree.leaf("gmd:URL", address));
                tree.string("gmd:protocol", protocol);
                tree.string("gmd:name", "hydrography:stations");
            });
        }
    });
}

fn date(tree: &mut Tree, day: &str, role: &str) {
    tree.within(&["gmd:date", "gmd:CI_Date"], |tree| {
        tree.within(&["gmd:date"], |tree| tree.leaf("gco:Date", day));
        tree.code("gmd:dateType", "CI_DateTypeCode", role);
    });
}

fn party(tree: &mut Tree, name: &'static str, role: &str) {
    tree.within(&[name, "gmd:CI_ResponsibleParty"], |tree| {
        tree.string("gmd:individualName", "The geodata desk");
        tree.string("gmd:organisationName", "Office of Hydrology, Spatial Data Centre");
        tree.within(&["gmd:contactInfo", "gmd:CI_Contact", "gmd:address", "gmd:CI_Address"], |tree| {
            tree.string("gmd:city", "Hydropolis");
            tree.string("gmd:electronicMailAddress", "geodata@hydrology.example");
        });
        tree.code("gmd:role", "CI_RoleCode", role);
    });
}

fn keywords(tree: &mut Tree, thesaurus: &str, words: &[&str]) {
    tree.within(&["gmd:descriptiveKeywords", "gmd:MD_Keywords"], |tree| {
        for word in words {
            tree.string("gmd:keyword", word);
        }
        tree.code("gmd:type", "MD_KeywordTypeCode", "theme");
        tree.within(&["gmd:thesaurusName", "gmd:CI_Citation"], |tree| {
            tree.string("gmd:title", thesaurus);
            date(tree, "2008-06-01", "publication");
        });
    });
}
