//! What must hold for any input at all, a function an entrance of the library: bytes in, a panic where it does not hold.
//!
//! The fuzz targets beside this file and `tests/it/properties.rs` both run these. Nothing here makes inputs, and nothing looks at a clock:
//! that there is an end is the caller's to see.

#![allow(dead_code, reason = "each target runs one of these")]

use std::collections::BTreeSet;

use csw_harvester::csw::capabilities::{self, modified_candidates};
use csw_harvester::csw::exception::{AnswerError, REPORT_CHARS_MAX};
use csw_harvester::csw::record::IDENTIFIER_BYTES_MAX;
use csw_harvester::csw::request::clean_url;
use csw_harvester::csw::response::{Record, SearchResults, parse};
use csw_harvester::csw::xml::decode;
use csw_harvester::csw::{CSW_202, ElementSet, Lower, Window};
use csw_harvester::dialect::{Clock, clock_probe};
use csw_harvester::plan::{ElementFacts, Order, PageFacts, PageFailure, Plan, Seen, Step};
use csw_harvester::timestamp::{self, Interval, Micros, SECOND, Shapes};

const DAY: Micros = 86_400 * SECOND;
/// The first and the last day that four digits of a year can say.
const FIRST_DAY: &str = "0001-01-01";
const LAST_YEAR: &str = "9999";
/// As `response` allows its records to be longer than their page.
const GROWTH_MAX: usize = 8;
const GROWTH_BYTES_MAX: usize = 16 << 20;
/// Charsets of the HTTP header, those that are none too.
const CHARSETS: [Option<&str>; 8] = [
    None,
    Some("utf-8"),
    Some("ISO-8859-1"),
    Some("windows-1252"),
    Some("utf-16"),
    Some("shift_jis"),
    Some("\"UTF-8\""),
    Some("nonsense"),
];
/// Elements of one page that the plan is told of.
const ELEMENTS_MAX: u8 = 12;
/// Steps that a plan may take once the catalogue says nothing but that it is empty.
const STEPS_AT_REST_MAX: usize = 500;

/// The first byte chooses the charset, the rest is a body.
pub(crate) fn answer(input: &[u8]) {
    let Some((choice, body)) = input.split_first() else { return };
    let charset = CHARSETS[usize::from(*choice) % CHARSETS.len()];
    match parse(body, charset) {
        Ok(results) => expect_sound(&results, body.len()),
        Err(error) => expect_told(&error),
    }
    if let Ok(text) = decode(body, charset) {
        let _ = capabilities::parse(&text);
    }
}

fn expect_sound(results: &SearchResults, body_bytes: usize) {
    let mut total = 0;
    for record in results.records.iter() {
        let texts = [record.identifier, record.title, record.modified];
        total += record.xml.len() + texts.into_iter().flatten().map(str::len).sum::<usize>();
        for text in texts.into_iter().flatten() {
            assert_eq!(text, text.trim(), "not trimmed");
        }
        assert_ne!(record.identifier, Some(""), "an identifier that is blank");
        if record.flaw.is_none() {
            assert!(record.identifier.is_none_or(|identifier| identifier.len() <= IDENTIFIER_BYTES_MAX));
            expect_alone(record);
        }
    }
    // A text in another encoding has up to three bytes of UTF-8 for one of its own.
    let most = (3 * body_bytes).saturating_mul(GROWTH_MAX + 1) + 2 * GROWTH_BYTES_MAX;
    assert!(total <= most, "{total} bytes of records from {body_bytes}");
}

/// What is stored of a record says by itself what it said in its page.
fn expect_alone(record: Record<'_>) {
    let page = format!(
        "<a:GetRecordsResponse xmlns:a='{CSW_202}'><a:SearchResults>{}</a:SearchResults></a:GetRecordsResponse>",
        record.xml
    );
    let results = parse(page.as_bytes(), None).unwrap_or_else(|error| panic!("{error}: {}", record.xml));
    assert_eq!(results.records.len(), 1, "{}", record.xml);
    let Some(alone) = results.records.iter().next() else { return };
    assert_eq!((alone.identifier, alone.title), (record.identifier, record.title), "{}", record.xml);
    assert_eq!((alone.modified, alone.flaw), (record.modified, None), "{}", record.xml);
}

fn expect_told(error: &AnswerError) {
    let told = error.to_string();
    assert!(told.chars().count() <= 4 * REPORT_CHARS_MAX, "an error of {} bytes", told.len());
    assert!(!told.chars().any(char::is_control), "control characters in {told:?}");
}

/// A text, and all that follows from its being a stamp.
pub(crate) fn stamps(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let _ = Shapes::from_text(text);
    let Some(interval) = timestamp::parse(text) else { return };
    assert!(interval.start <= interval.nominal && interval.nominal < interval.end, "{text:?}: {interval:?}");
    let shapes = Shapes::One(interval.shape);
    assert_eq!(Shapes::from_text(&shapes.to_text()), shapes, "{text:?}: {}", shapes.to_text());
    let formatted = timestamp::format_utc(interval.nominal);
    let again = timestamp::parse(&formatted).expect("a stamp of ours");
    let cut = interval.nominal.div_euclid(SECOND) * SECOND;
    assert!(again.nominal == cut || is_at_an_edge(&formatted), "{text:?}: {formatted}");
    expect_day_before(text, &interval);
    for shapes in [shapes, Shapes::Mixed, Shapes::Unseen] {
        for days_only in [false, true] {
            expect_probe(text, &interval, shapes, days_only);
        }
    }
}

fn is_at_an_edge(text: &str) -> bool {
    text.starts_with(FIRST_DAY) || text.starts_with(LAST_YEAR)
}

fn expect_day_before(text: &str, interval: &Interval) {
    let before = timestamp::day_before(interval);
    let day = timestamp::parse(&before).expect("a day of ours");
    let written = interval.nominal + Micros::from(interval.offset_minutes) * 60 * SECOND;
    let earlier = day.nominal + DAY <= interval.nominal.min(written);
    assert!(earlier || before == FIRST_DAY || before.starts_with(LAST_YEAR), "{text:?}: {before}");
}

fn expect_probe(text: &str, interval: &Interval, shapes: Shapes, days_only: bool) {
    let probe = clock_probe(interval, shapes, days_only);
    let literal = timestamp::parse(&probe.literal).unwrap_or_else(|| panic!("{text:?}: {probe:?}"));
    assert!(probe.below <= probe.above, "{text:?}: {probe:?}");
    assert!(literal.nominal > interval.nominal || is_at_an_edge(&probe.literal), "{text:?}: {probe:?}");
}

/// A document that may be capabilities.
pub(crate) fn capabilities(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let found = capabilities::parse(text);
    let names = modified_candidates(found.as_ref());
    assert!((7..=12).contains(&names.len()), "{names:?}");
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
    let Some(found) = found else { return };
    for list in [&found.versions, &found.post_urls, &found.get_urls, &found.queryables, &found.output_schemas] {
        assert!(list.len() <= 256, "{} entries", list.len());
        assert!(list.iter().all(|entry| entry == entry.trim() && !entry.is_empty()), "{list:?}");
    }
}

/// A url as somebody types it.
pub(crate) fn url(input: &[u8]) {
    let Ok(typed) = std::str::from_utf8(input) else { return };
    match clean_url(typed) {
        Ok(clean) => {
            assert!(clean.url.starts_with("http://") || clean.url.starts_with("https://"), "{}", clean.url);
            assert!(clean.url.bytes().all(|byte| byte.is_ascii_graphic()), "{:?}", clean.url);
            let again = clean_url(&clean.url).unwrap_or_else(|error| panic!("{}: {error}", clean.url));
            assert_eq!((again.url, again.user), (clean.url, None));
        }
        Err(why) => assert!(!why.is_empty() && why.lines().count() == 1, "{why:?}"),
    }
}

/// Up to the first byte 0 the text of a cursor, then answers to whatever the plan asks. When they are used up the catalogue is empty, and
/// the plan has to come to its end.
pub(crate) fn cursor(input: &[u8]) {
    let split = input.iter().position(|byte| *byte == 0).unwrap_or(input.len());
    let text = String::from_utf8_lossy(&input[..split]);
    let mut answers = Answers(input.get(split + 1..).unwrap_or_default());
    let order = answers.order();
    let mut plan = Plan::resume(&order, &text).unwrap_or_else(|| Plan::new(order.clone()));
    let (mut steps, mut at_rest) = (0_usize, 0);
    while at_rest <= STEPS_AT_REST_MAX {
        at_rest += usize::from(answers.0.is_empty());
        if !answers.answer(&mut plan) {
            return;
        }
        let _ = plan.take_bad_positions();
        let _ = plan.take_confirmed();
        let _ = (plan.unheld(), plan.shortfall(), plan.pass());
        steps += 1;
        // Not after each: a cursor takes longer than the step that it stands for.
        if steps.is_power_of_two() {
            let _ = Plan::resume(&order, &plan.cursor());
        }
    }
    panic!("no end after {STEPS_AT_REST_MAX} answers of an empty catalogue: {:?}, {}", plan.step(), plan.cursor());
}

/// What the catalogue will say, a few bytes an answer; zeros when there are no more.
struct Answers<'a>(&'a [u8]);

impl Answers<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    fn clock(&mut self) -> Option<Clock> {
        [None, Some(Clock::Record), Some(Clock::Server), Some(Clock::None)][usize::from(self.byte() % 4)]
    }

    fn order(&mut self) -> Order {
        let lower = match self.byte() % 4 {
            0 | 1 => None,
            2 => Some(Lower::After("2025-01-01T00:00:00Z".to_owned())),
            _ => Some(Lower::From("2025-01-02".to_owned())),
        };
        Order {
            window: Window { lower, upper: None },
            element_set: ElementSet::Full,
            page_size: u32::from(self.byte() % 32),
            clock: self.clock(),
            upper_obeyed: self.flag(),
            days_only: self.flag(),
            clock_sure: self.flag(),
            sorted: self.flag(),
            matched_is_total: self.flag(),
            shapes: Shapes::default(),
            started: 1_750_000_000 * SECOND,
        }
    }

    /// A number that a catalogue may name: small, huge or none.
    fn number(&mut self) -> Option<u64> {
        match self.byte() {
            0 => Some(0),
            251 => Some(u64::MAX),
            252 => Some(u64::MAX - u64::from(self.byte())),
            253 => Some(1 << (self.byte() % 64)),
            254 => Some(u64::from(self.byte()) * 256 + u64::from(self.byte())),
            255 => None,
            small => Some(u64::from(small)),
        }
    }

    /// False when the plan has come to its end.
    fn answer(&mut self, plan: &mut Plan) -> bool {
        match plan.step() {
            Step::Done(_) | Step::Failed(_) => return false,
            Step::Count(_) => plan.on_count(self.number()),
            Step::Calibrate => plan.on_clock(self.clock(), self.flag(), self.flag()),
            Step::Ask(query) => {
                assert!(query.start_position >= 1 && query.max_records >= 1, "{query:?}");
                match self.byte() {
                    200..=209 => plan.on_failure(PageFailure::Page),
                    210..=219 => plan.on_failure(PageFailure::TooLarge),
                    220..=229 => plan.on_failure(PageFailure::PastTheEnd),
                    230..=239 => plan.on_failure(PageFailure::Ceiling),
                    count => self.page(plan, count % ELEMENTS_MAX),
                }
            }
        }
        true
    }

    fn page(&mut self, plan: &mut Plan, count: u8) {
        let matched = self.number();
        let next_record = self.number().map(|next| next as i64);
        let drawn: Vec<(String, String, Seen)> = (0..count).map(|_| self.element()).collect();
        let elements: Vec<ElementFacts<'_>> = drawn
            .iter()
            .map(|(identifier, modified, seen)| ElementFacts {
                identifier: (*seen != Seen::Anonymous).then_some(identifier.as_str()),
                modified: (!modified.is_empty()).then_some(modified.as_str()),
                interval: timestamp::parse(modified),
                seen: *seen,
            })
            .collect();
        let server_now = (1_750_000_000 + i64::from(self.byte())) * SECOND;
        plan.on_page(&PageFacts { elements: &elements, matched, next_record, server_now });
    }

    fn element(&mut self) -> (String, String, Seen) {
        let (name, stamp) = (self.byte(), self.byte());
        let seen = [Seen::New, Seen::New, Seen::Here, Seen::Here, Seen::Earlier, Seen::Restamped, Seen::Anonymous, Seen::New]
            [usize::from(name >> 5)];
        let modified = match stamp {
            0 => String::new(),
            1 => "9999-12-31T23:59:59Z".to_owned(),
            2 => "0001-01-01".to_owned(),
            3 => "odd".to_owned(),
            4..=99 => format!("2025-01-{:02}", stamp % 28 + 1),
            _ => format!("2025-01-01T00:{:02}:{:02}Z", stamp / 60, stamp % 60),
        };
        (format!("r{}\n", name & 31), modified, seen)
    }
}
