//! What must hold for any input at all: random ones, and every small damage to one good answer of each kind.
//!
//! The properties are those of the fuzz targets (`tests/fuzz/bodies.rs`), here for a few thousand inputs in each test run.

use csw_harvester::csw::response::parse;
use proptest::prelude::*;

use crate::support::canned::{dc_of, env, iso};
use crate::support::model::Report;
use crate::support::quirks::Quirks;
use crate::support::xml::{CapabilitiesFace, ReportFace, capabilities, exception_report};

#[path = "../fuzz/bodies.rs"]
mod bodies;

/// What a byte is turned into: forbidden, no UTF-8, and the two that begin something.
const DAMAGES: [u8; 4] = [0, 0xff, b'<', b'&'];

/// One answer of each kind, by name.
fn answers() -> Vec<(String, Vec<u8>)> {
    let records = [dc_of("a&amp;b", "T\u{e9}", &["2020-01-01", "2020-02-01T10:00:00.5Z"]), "<csw:Record/>".to_owned()];
    let csw = env(Some(7), Some(2), Some(3), &records);
    let gmd = env(Some(1), Some(1), Some(0), &[iso("i", "T <![CDATA[& <]]>", "2020-01-01")]);
    let latin = gmd.replacen("UTF-8", "ISO-8859-1", 1);
    let report = Report {
        code: "InvalidParameterValue".to_owned(),
        locator: "startPosition".to_owned(),
        text: "No <such> position".to_owned(),
        status: 400,
    };
    let faces = [ReportFace::Ows, ReportFace::Ows11, ReportFace::Ows20, ReportFace::Service, ReportFace::Soap];
    let reports = faces.into_iter().map(|face| (format!("{face:?}"), exception_report(face, &report)));
    let (_, _, described) = capabilities(&CapabilitiesFace::Right, "http://127.0.0.1/csw", &Quirks::default());
    let (_, _, page) = capabilities(&CapabilitiesFace::Html, "", &Quirks::default());
    let others = [("csw", csw), ("gmd", gmd), ("latin", latin), ("capabilities", described), ("html", page)];
    let all = others.into_iter().map(|(name, text)| (name.to_owned(), text)).chain(reports);
    all.map(|(name, text)| (name, text.into_bytes())).collect()
}

/// Everything that reads what a catalogue sends.
fn read(body: &[u8]) {
    bodies::answer(&[&[0], body].concat());
    bodies::capabilities(body);
}

#[test]
fn each_sample_is_read_as_what_it_is() {
    for (name, body) in answers() {
        assert_eq!(parse(&body, None).is_ok(), ["csw", "gmd", "latin"].contains(&name.as_str()), "{name}");
    }
}

#[test]
fn no_prefix_of_an_answer_is_taken_for_a_page_or_does_harm() {
    for (name, body) in answers() {
        for length in 0..body.trim_ascii_end().len() {
            read(&body[..length]);
            assert!(parse(&body[..length], None).is_err(), "{name}: {length} bytes");
        }
    }
}

#[test]
fn no_single_byte_of_an_answer_does_harm() {
    for (_, mut body) in answers() {
        for at in 0..body.len() {
            let right = body[at];
            for damage in DAMAGES {
                body[at] = damage;
                read(&body);
            }
            body[at] = right;
        }
    }
}

/// A page with this in its root element's tag, and these records.
fn page(root: &str, records: &str) -> Vec<u8> {
    format!(
        "<csw:GetRecordsResponse xmlns:csw='http://www.opengis.net/cat/csw/2.0.2' {root}><csw:SearchResults>{records}\
         </csw:SearchResults></csw:GetRecordsResponse>"
    )
    .into_bytes()
}

#[test]
fn no_shape_of_a_large_answer_makes_much_more_of_it() {
    let depth = 200_000;
    let namespaces: String = (0..200).map(|number| format!(" xmlns:p{number}='urn:{number}'")).collect();
    let uses: String = (0..200).map(|number| format!("<p{number}:a/>")).collect();
    let long = "u".repeat(1 << 19);
    let bodies = [
        page("", &format!("{}{}", "<a>".repeat(depth), "</a>".repeat(depth))),
        page("", &"<a xmlns:b='u'>".repeat(depth)),
        page("", &format!("<a>{}</a>", "&amp;".repeat(depth))),
        page("", &format!("<a b='{long}'/>").repeat(4)),
        page(
            "",
            &format!(
                "<csw:Record xmlns:dc='http://purl.org/dc/elements/1.1/'>{}</csw:Record>",
                "<dc:title>t</dc:title>".repeat(depth)
            ),
        ),
        page(&namespaces, &format!("<r>{uses}</r>").repeat(500)),
        page(&format!("xmlns:p='{long}'"), &"<p:a/>".repeat(depth)),
        "<".repeat(depth).into_bytes(),
        page("", &"<![CDATA[".repeat(depth)),
        page("", &"<!--".repeat(depth)),
        page("", &"<a".repeat(depth)),
    ];
    for body in bodies {
        bodies::answer(&[&[0], body.as_slice()].concat());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read(input in prop::collection::vec(any::<u8>(), 0..400)) {
        bodies::answer(&input);
        bodies::capabilities(&input);
        bodies::stamps(&input);
        bodies::url(&input);
    }

    #[test]
    fn any_markup_is_read(parts in prop::collection::vec(0..PARTS.len(), 0..40), charset in any::<u8>()) {
        let text: String = parts.iter().map(|part| PARTS[*part]).collect();
        bodies::answer(&[&[charset], text.as_bytes()].concat());
        bodies::answer(&[&[charset][..], &page("xmlns:dc='http://purl.org/dc/elements/1.1/'", &text)].concat());
        bodies::capabilities(text.as_bytes());
    }

    #[test]
    fn any_stamp_means_what_it_says(text in STAMPS) {
        bodies::stamps(text.as_bytes());
    }

    #[test]
    fn any_url_is_cleaned_once(text in URLS) {
        bodies::url(text.as_bytes());
    }

    #[test]
    fn any_plan_comes_to_its_end(input in prop::collection::vec(any::<u8>(), 0..600)) {
        bodies::cursor(&[&[0], input.as_slice()].concat());
    }

    #[test]
    fn any_cursor_is_taken_up_or_not(
        lines in prop::collection::vec((0..LINES.len(), any::<u64>(), 0..NUMBERS.len()), 0..20),
        input in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut text = String::from("cursor 2");
        for (line, number, kind) in lines {
            let number = NUMBERS[kind].map_or(number.to_string(), str::to_owned);
            text.push_str(&format!("\n{} {number}", LINES[line]));
        }
        bodies::cursor(&[text.as_bytes(), &[0], input.as_slice()].concat());
    }
}

const STAMPS: &str = concat!(
    "[0-9]{4}(-?[01][0-9](-?[0-3][0-9]",
    "([T ][0-2][0-9]:?[0-6][0-9]",
    "(:?[0-6][0-9]([.,][0-9]{1,19})?)?)?)?)?(Z|[+-][01][0-9](:?[0-9]{2})?)?"
);

const URLS: &str = concat!(
    "https?://([a-z]{0,3}(:[a-z%0-9]{0,3})?@)?",
    "([a-zA-Z0-9.-]{1,8}|\\[[0-9a-f:]{2,8}\\])(:[0-9]{0,6})?[!-~\u{e9}]{0,40}"
);

const PARTS: [&str; 24] = [
    "<",
    ">",
    "/",
    "'",
    "\"",
    "=",
    "&",
    ";",
    " ",
    "<a>",
    "</a>",
    "<a/>",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "<?",
    "?>",
    "xmlns:p='u'",
    "<p:a",
    "&amp;",
    "&#x41;",
    "<!DOCTYPE",
    "<csw:Record><dc:identifier>i</dc:identifier></csw:Record>",
];

const LINES: [&str; 20] = [
    "boundary",
    "step_back",
    "landing",
    "hole",
    "furthest",
    "last",
    "matched_first",
    "matched_last",
    "size_max",
    "cap",
    "ceiling",
    "pass",
    "anonymous",
    "matched",
    "started",
    "part -",
    "later -",
    "anchor",
    "stamp",
    "list from",
];

const NUMBERS: [Option<&str>; 8] = [
    None,
    Some("0"),
    Some("1"),
    Some("40"),
    Some("18446744073709551615"),
    Some("9223372036854775807"),
    Some("4294967295"),
    Some("-9223372036854775808"),
];
