//! The model catalogue by itself.

use crate::support::model::{Catalogue, Compare, Condition, Kind, ModelAnswer, ModelRecord, ModelRequest, Poison, Report};
use crate::support::profiles;
use crate::support::quirks::{
    CSW, CeilingFace, Clock, Comparison, Conversion, CswStamp, DateTimes, DayLiterals, EditedStamp, GMD, Greater, Hits, Matched,
    NextRecord, NoMatch, Order, PastEnd, Quirks, SortObedience, Ties, Undated, UnknownName, UnknownSort,
};
use crate::support::stamps::{DAY, HOUR, MINUTE, Micros, SECOND, StampShape, day, has_time, http_date, read, seconds_z};

const NOW: Micros = 1_748_779_200_000_000; // 2025-06-01T12:00:00Z

fn catalogue(quirks: Quirks, count: usize) -> Catalogue {
    let mut catalogue = Catalogue::new(NOW, quirks);
    catalogue.fill("r", count, |number| day(2025, 1, 1) + number as Micros * HOUR);
    catalogue
}

struct Page {
    matched: Option<String>,
    returned: Option<u64>,
    next: Option<i64>,
    identifiers: Vec<String>,
}

#[track_caller]
fn page(catalogue: &mut Catalogue, request: &ModelRequest) -> Page {
    match catalogue.answer(request) {
        ModelAnswer::Results { matched, returned, next, records, .. } => {
            let identifiers = records.iter().map(|record| record.identifier.clone().unwrap_or_default()).collect();
            Page { matched, returned, next, identifiers }
        }
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn report(catalogue: &mut Catalogue, request: &ModelRequest) -> Report {
    match catalogue.answer(request) {
        ModelAnswer::Report(report) => report,
        other => panic!("{other:?}"),
    }
}

fn matched(catalogue: &mut Catalogue, request: &ModelRequest) -> String {
    page(catalogue, &request.clone().counting()).matched.unwrap()
}

fn with(set: impl FnOnce(&mut Quirks)) -> Quirks {
    let mut quirks = Quirks::default();
    set(&mut quirks);
    quirks
}

#[test]
fn stamps_are_written_and_read_in_every_shape() {
    let at = day(2024, 2, 29) + 10 * HOUR + 5 * MINUTE + 7 * SECOND + 123_456;
    let written = |shape: StampShape| shape.write(at, 0).unwrap();
    assert_eq!(written(StampShape::Seconds), "2024-02-29T10:05:07Z");
    assert_eq!(written(StampShape::Day), "2024-02-29");
    assert_eq!(written(StampShape::Fraction(3)), "2024-02-29T10:05:07.123Z");
    assert_eq!(written(StampShape::NoZone), "2024-02-29T10:05:07");
    assert_eq!(written(StampShape::Offset(120)), "2024-02-29T12:05:07+02:00");
    assert_eq!(written(StampShape::Offset(-90)), "2024-02-29T08:35:07-01:30");
    assert_eq!(written(StampShape::JavaText), "Thu Feb 29 10:05:07 UTC 2024");
    assert_eq!(StampShape::Absent.write(at, 0), None);
    assert_eq!(read("2024-02-29T12:05:07.123456+02:00"), Some(at));
    assert_eq!(read("2024-02-29T10:05:07,5Z"), None);
    assert_eq!(read("2024"), Some(day(2024, 1, 1)));
    assert_eq!(read("2024-03"), Some(day(2024, 3, 1)));
    assert_eq!(read("20240229"), Some(day(2024, 2, 29)));
    assert_eq!(read("2023-02-29"), None);
    assert_eq!(read("Thu Feb 29 10:05:07 UTC 2024"), None);
    assert_eq!(http_date(at), "Thu, 29 Feb 2024 10:05:07 GMT");
    assert!(has_time("2024-02-29T10") && !has_time("2024-02-29"));
    assert_eq!(seconds_z(NOW), "2025-06-01T12:00:00Z");
}

#[test]
fn days_of_four_centuries_survive_the_calendar() {
    for number in (day(1800, 1, 1) / DAY)..(day(2200, 1, 1) / DAY) {
        let text = StampShape::Day.write(number * DAY, 0).unwrap();
        assert_eq!(read(&text), Some(number * DAY), "{text}");
    }
}

#[test]
fn pages_follow_one_another_and_next_is_0_at_the_end() {
    let mut catalogue = catalogue(Quirks::default(), 5);
    let first = page(&mut catalogue, &ModelRequest::page(1, 2));
    let last = page(&mut catalogue, &ModelRequest::page(5, 2));
    assert_eq!(first.identifiers, ["r-000001", "r-000002"]);
    assert_eq!((first.matched.as_deref(), first.returned, first.next), (Some("5"), Some(2), Some(3)));
    assert_eq!((last.identifiers.len(), last.returned, last.next), (1, Some(1), Some(0)));
}

#[test]
fn the_cap_is_silent() {
    let mut catalogue = catalogue(profiles::pycsw(), 25);
    let first = page(&mut catalogue, &ModelRequest::page(1, 1_000));
    assert_eq!((first.identifiers.len(), first.next), (10, Some(11)));
}

#[test]
fn text_comparison_sorts_shapes_as_text() {
    let mut catalogue = Catalogue::new(NOW, with(|quirks| quirks.comparison = Comparison::Text));
    for stamp in
        ["2024-05-01T10:00:00", "2024-05-01T10:00:00.500Z", "2024-05-01T12:00:00+02:00", "2024-05-01", "2024-05-01T10:00:00Z"]
    {
        catalogue.insert_record(ModelRecord::showing(stamp, &[stamp]));
    }
    let after = |literal: &str| ModelRequest::page(1, 9).after("dct:modified", literal).sorted("dct:modified");
    assert_eq!(page(&mut catalogue, &after("2024-05-01T10:00:00Z")).identifiers, ["2024-05-01T12:00:00+02:00"]);
    assert_eq!(page(&mut catalogue, &after("2024-05-01")).identifiers.len(), 4);
    catalogue.quirks_mut().comparison = Comparison::Time;
    assert_eq!(page(&mut catalogue, &after("2024-05-01T10:00:00Z")).identifiers, ["2024-05-01T10:00:00.500Z"]);
}

#[test]
fn bounds_are_strict_or_not_as_written_and_the_upper_includes() {
    let mut catalogue = catalogue(Quirks::default(), 10);
    let request = ModelRequest::page(1, 100);
    let third = "2025-01-01T02:00:00Z";
    assert_eq!(matched(&mut catalogue, &request.clone().after("dct:modified", third)), "7");
    assert_eq!(matched(&mut catalogue, &request.clone().from("dct:modified", third)), "8");
    assert_eq!(matched(&mut catalogue, &request.clone().until("dct:modified", third)), "3");
    assert_eq!(matched(&mut catalogue, &request.clone().from("dct:modified", third).until("dct:modified", third)), "1");
    catalogue.quirks_mut().greater = Greater::Inclusive;
    assert_eq!(matched(&mut catalogue, &request.after("dct:modified", third)), "8");
}

// The sorted view answers by binary search, every other order by looking at each record.
#[test]
fn the_sorted_view_and_the_plain_look_agree() {
    let shapes = [StampShape::Seconds, StampShape::Mixed, StampShape::Day, StampShape::Offset(120), StampShape::Absent];
    for seed in 0..200_u64 {
        let quirks = with(|quirks| {
            quirks.comparison = if seed % 2 == 0 { Comparison::Text } else { Comparison::Time };
            quirks.undated = if seed % 3 == 0 { Undated::First } else { Undated::Last };
            quirks.ties = [Ties::Rowid, Ties::RandomStable, Ties::RandomEachTime][(seed % 3) as usize];
        });
        let mut catalogue = Catalogue::new(NOW, quirks).with_seed(seed);
        for number in 0..30 {
            catalogue.quirks_mut().shape = shapes[((seed + number) % 5) as usize];
            catalogue.insert_at(&format!("r{number}"), day(2025, 1, 1) + (number * seed % 7) as Micros * 9 * HOUR);
        }
        let literal = StampShape::Mixed.write(day(2025, 1, 2), seed).unwrap();
        for request in [
            ModelRequest::page(1, 100).after("dct:modified", &literal),
            ModelRequest::page(1, 100).from("dct:modified", &literal).until("dct:modified", "2025-01-03"),
            ModelRequest::page(1, 100).until("dct:modified", &literal),
            ModelRequest::page(1, 100),
        ] {
            let mut plain = page(&mut catalogue, &request).identifiers;
            let mut sorted = page(&mut catalogue, &request.sorted("dct:modified")).identifiers;
            plain.sort();
            sorted.sort();
            assert_eq!(plain, sorted, "seed {seed}");
        }
    }
}

#[test]
fn undated_records_match_no_range_and_come_first_or_last() {
    let mut catalogue = catalogue(Quirks::default(), 2);
    catalogue.insert_record(ModelRecord::new("undated"));
    let sorted = ModelRequest::page(1, 9).sorted("dct:modified");
    assert_eq!(page(&mut catalogue, &sorted).identifiers, ["undated", "r-000001", "r-000002"]);
    assert_eq!(matched(&mut catalogue, &sorted.clone().from("dct:modified", "1970-01-01")), "2");
    catalogue.quirks_mut().undated = Undated::Last;
    assert_eq!(page(&mut catalogue, &sorted).identifiers, ["r-000001", "r-000002", "undated"]);
    assert_eq!(matched(&mut catalogue, &sorted.clone().until("dct:modified", "2999-01-01")), "2");
}

#[test]
fn an_edit_takes_its_place_by_the_new_stamp() {
    let mut catalogue = catalogue(Quirks::default(), 3);
    assert!(catalogue.edit("r-000001"));
    let sorted = ModelRequest::page(1, 9).sorted("dct:modified");
    assert_eq!(page(&mut catalogue, &sorted).identifiers, ["r-000002", "r-000003", "r-000001"]);
    assert_eq!(catalogue.visible()["r-000001"], (Some("2025-06-01T12:00:00Z".to_owned()), 2));
    assert!(!catalogue.edit("nobody"));
    assert!(catalogue.delete("r-000002"));
    assert_eq!(page(&mut catalogue, &sorted).identifiers, ["r-000003", "r-000001"]);
}

#[test]
fn a_record_of_later_visibility_appears_when_its_time_has_come() {
    let mut catalogue = catalogue(Quirks::default(), 1);
    let mut late = ModelRecord::showing("late", &["2025-01-01T00:00:00Z"]);
    late.visible_from = NOW + HOUR;
    catalogue.insert_record(late);
    let request = ModelRequest::page(1, 9);
    assert_eq!(page(&mut catalogue, &request).identifiers, ["r-000001"]);
    assert_eq!(catalogue.visible().len(), 1);
    catalogue.advance(HOUR);
    assert_eq!(page(&mut catalogue, &request).identifiers, ["r-000001", "late"]);
    assert_eq!(catalogue.visible().len(), 2);
}

#[test]
fn a_hidden_clock_filters_on_what_is_not_shown() {
    let mut catalogue = Catalogue::new(
        NOW,
        with(|quirks| {
            quirks.clock = Clock::Hidden(StampShape::Seconds);
            quirks.edited_stamp = EditedStamp::Kept;
        }),
    );
    catalogue.insert_at("old", day(2011, 1, 1));
    let recent = ModelRequest::page(1, 9).from("dct:modified", "2025-01-01");
    assert_eq!(page(&mut catalogue, &recent).identifiers, ["old"]);
    catalogue.advance(DAY);
    let newer = ModelRequest::page(1, 9).after("dct:modified", "2025-06-02");
    assert_eq!(matched(&mut catalogue, &newer), "0");
    catalogue.touch("old");
    assert_eq!(page(&mut catalogue, &newer).identifiers, ["old"]);
    assert_eq!(catalogue.visible()["old"], (Some("2011-01-01T00:00:00Z".to_owned()), 1));
    catalogue.edit("old");
    assert_eq!(catalogue.visible()["old"], (Some("2011-01-01T00:00:00Z".to_owned()), 2));
}

#[test]
fn an_unknown_property_has_three_faces() {
    let mut catalogue = catalogue(Quirks::default(), 3);
    let request = ModelRequest::page(1, 9).after("dc:modified", "1970-01-01");
    assert_eq!(report(&mut catalogue, &request).locator, "PropertyName");
    catalogue.quirks_mut().unknown_property = UnknownName::NoHits;
    assert_eq!(matched(&mut catalogue, &request), "0");
    catalogue.quirks_mut().unknown_property = UnknownName::Ignored;
    assert_eq!(matched(&mut catalogue, &request), "3");
    catalogue.quirks_mut().filter_ignored = true;
    assert_eq!(matched(&mut catalogue, &request.after("dct:modified", "2999-01-01")), "3");
}

#[test]
fn date_times_may_be_refused_or_degrade_to_their_month() {
    let mut catalogue = catalogue(with(|quirks| quirks.date_times = DateTimes::MonthStart), 3);
    let request = |literal: &str| ModelRequest::page(1, 9).after("dct:modified", literal);
    assert_eq!(matched(&mut catalogue, &request("2025-01-31T00:00:00Z")), "2");
    assert_eq!(matched(&mut catalogue, &request("2025-01-31")), "0");
    catalogue.quirks_mut().date_times = DateTimes::Refused;
    assert_eq!(report(&mut catalogue, &request("2025-01-31T00:00:00Z")).code, "InvalidParameterValue");
    assert_eq!(matched(&mut catalogue, &request("2025-01-31")), "0");
    catalogue.quirks_mut().date_times = DateTimes::EveryDateRefused;
    assert!(report(&mut catalogue, &request("2025-01-31")).text.contains("JsonParseException"));
}

#[test]
fn a_plain_day_may_mean_its_end() {
    let mut catalogue = catalogue(with(|quirks| quirks.day_literals = DayLiterals::End), 30);
    let request = ModelRequest::page(1, 9);
    assert_eq!(matched(&mut catalogue, &request.clone().after("dct:modified", "2025-01-01")), "6");
    assert_eq!(matched(&mut catalogue, &request.clone().after("dct:modified", "2025-01-01T00:00:00Z")), "29");
    assert_eq!(matched(&mut catalogue, &request.clone().from("dct:modified", "2025-01-01")), "30");
    assert_eq!(matched(&mut catalogue, &request.until("dct:modified", "2025-01-01")), "24");
}

#[test]
fn a_sort_is_refused_ignored_or_not_obeyed() {
    let mut catalogue = catalogue(with(|quirks| quirks.order = Order::Insertion), 2);
    catalogue.edit("r-000001");
    let sorted = ModelRequest::page(1, 9).sorted("dct:modified");
    assert_eq!(page(&mut catalogue, &sorted).identifiers, ["r-000002", "r-000001"]);
    let descending = ModelRequest { descending: true, ..sorted.clone() };
    assert_eq!(page(&mut catalogue, &descending).identifiers, ["r-000001", "r-000002"]);
    let unknown = ModelRequest::page(1, 9).sorted("modified");
    assert_eq!(report(&mut catalogue, &unknown).locator, "sortby");
    catalogue.quirks_mut().unknown_sort = UnknownSort::Ignored;
    assert_eq!(page(&mut catalogue, &unknown).identifiers, ["r-000001", "r-000002"]);
    catalogue.quirks_mut().sort = SortObedience::NotObeyed;
    assert_eq!(page(&mut catalogue, &sorted).identifiers, ["r-000001", "r-000002"]);
}

#[test]
fn without_a_sort_the_order_is_as_the_server_keeps_it() {
    let mut catalogue = catalogue(with(|quirks| quirks.order = Order::EditedLast), 20);
    catalogue.edit("r-000001");
    let request = ModelRequest::page(1, 20);
    assert_eq!(page(&mut catalogue, &request).identifiers.last().unwrap(), "r-000001");
    catalogue.quirks_mut().order = Order::RandomEachTime;
    let (one, other) = (page(&mut catalogue, &request).identifiers, page(&mut catalogue, &request).identifiers);
    assert_ne!(one, other);
    catalogue.quirks_mut().order = Order::Identifier;
    assert_eq!(page(&mut catalogue, &request).identifiers.first().unwrap(), "r-000001");
    catalogue.quirks_mut().order = Order::NewestFirst;
    assert_eq!(page(&mut catalogue, &request).identifiers.first().unwrap(), "r-000001");
}

#[test]
fn ties_keep_their_place_or_are_shuffled_each_time() {
    let mut catalogue = Catalogue::new(NOW, with(|quirks| quirks.ties = Ties::RandomStable));
    catalogue.fill("r", 30, |_| day(2025, 1, 1));
    let sorted = ModelRequest::page(1, 30).sorted("dct:modified");
    let stable = page(&mut catalogue, &sorted).identifiers;
    assert_eq!(stable, page(&mut catalogue, &sorted).identifiers);
    assert!(!stable.is_sorted());
    catalogue.quirks_mut().ties = Ties::RandomEachTime;
    assert_ne!(page(&mut catalogue, &sorted).identifiers, page(&mut catalogue, &sorted).identifiers);
    let pinned = ModelRequest { sort_then: Some("dc:identifier".to_owned()), ..sorted };
    assert!(page(&mut catalogue, &pinned).identifiers.is_sorted());
}

#[test]
fn a_ceiling_has_six_faces() {
    let mut catalogue = catalogue(with(|quirks| quirks.ceiling = Some((100, CeilingFace::Exception))), 230);
    assert_eq!(page(&mut catalogue, &ModelRequest::page(51, 50)).identifiers.len(), 50);
    assert!(report(&mut catalogue, &ModelRequest::page(52, 50)).text.starts_with("Result window is too large"));
    assert_eq!(matched(&mut catalogue, &ModelRequest::page(1, 1)), "230");
    catalogue.quirks_mut().ceiling = Some((100, CeilingFace::Http500));
    let answer = catalogue.answer(&ModelRequest::page(101, 1));
    assert_eq!(answer, ModelAnswer::Http { status: 500, body: String::new() });
    catalogue.quirks_mut().ceiling = Some((100, CeilingFace::MatchedPinned));
    let last = page(&mut catalogue, &ModelRequest::page(91, 50));
    assert_eq!((last.matched.as_deref(), last.identifiers.len(), last.next), (Some("100"), 10, Some(0)));
    for (face, matched, count) in
        [(CeilingFace::Silence, "230", 10), (CeilingFace::EmptyPage, "230", 50), (CeilingFace::NoneMatch, "0", 50)]
    {
        catalogue.quirks_mut().ceiling = Some((100, face));
        let crossing = page(&mut catalogue, &ModelRequest::page(91, 50));
        assert_eq!((crossing.matched.as_deref(), crossing.identifiers.len()), (Some("230"), count), "{face:?}");
        let beyond = page(&mut catalogue, &ModelRequest::page(101, 50));
        assert_eq!((beyond.matched.as_deref(), beyond.identifiers.len()), (Some(matched), 0), "{face:?}");
    }
}

#[test]
fn matched_is_written_in_every_way_of_the_field() {
    let mut catalogue = catalogue(Quirks::default(), 30);
    let mut second = |matched: Matched| {
        catalogue.quirks_mut().matched = matched;
        page(&mut catalogue, &ModelRequest::page(11, 10)).matched
    };
    assert_eq!(second(Matched::Absent), None);
    assert_eq!(second(Matched::PageSize).as_deref(), Some("10"));
    assert_eq!(second(Matched::Garbage("[object Object]".to_owned())).as_deref(), Some("[object Object]"));
    assert_eq!(second(Matched::GarbageForNone("x".to_owned())).as_deref(), Some("30"));
    assert_eq!(second(Matched::Pinned(25)).as_deref(), Some("25"));
    assert_eq!(second(Matched::GrowsWithPage).as_deref(), Some("20"));
}

#[test]
fn next_record_is_written_in_every_way_of_the_field() {
    let mut catalogue = catalogue(Quirks::default(), 5);
    let mut all = |next: NextRecord| {
        catalogue.quirks_mut().next = next;
        [1, 3, 5].map(|start| page(&mut catalogue, &ModelRequest::page(start, 2)).next)
    };
    assert_eq!(all(NextRecord::Right), [Some(3), Some(5), Some(0)]);
    assert_eq!(all(NextRecord::Absent), [None, None, None]);
    assert_eq!(all(NextRecord::ZeroTooEarly), [Some(3), Some(0), Some(0)]);
    assert_eq!(all(NextRecord::ZeroOnFullPage), [Some(0), Some(0), Some(0)]);
    assert_eq!(all(NextRecord::MinusOneAtEnd), [Some(3), Some(5), Some(-1)]);
    assert_eq!(all(NextRecord::MatchedPlusOne), [Some(3), Some(5), Some(6)]);
    assert_eq!(all(NextRecord::OneMore), [Some(3), Some(5), Some(6)]);
}

#[test]
fn past_the_end_every_server_says_something_else() {
    let mut catalogue = catalogue(Quirks::default(), 2);
    let beyond = ModelRequest::page(3, 2);
    catalogue.quirks_mut().past_end = PastEnd::EmptyNextOne;
    let empty = page(&mut catalogue, &beyond);
    assert_eq!((empty.matched.as_deref(), empty.returned, empty.next), (Some("2"), Some(0), Some(1)));
    catalogue.quirks_mut().past_end = PastEnd::Exception;
    assert_eq!(report(&mut catalogue, &beyond).locator, "startPosition");
    catalogue.quirks_mut().past_end = PastEnd::Buried;
    let buried = report(&mut catalogue, &beyond);
    assert_eq!((buried.code.as_str(), buried.locator.as_str()), ("NoApplicableCode", ""));
    assert!(buried.text.contains("locator=startPosition"));
    catalogue.clear();
    assert_eq!(page(&mut catalogue, &ModelRequest::page(1, 2)).next, Some(0));
    catalogue.quirks_mut().no_match = NoMatch::AsPastEnd;
    assert!(report(&mut catalogue, &ModelRequest::page(1, 2)).text.contains("startPosition"));
}

#[test]
fn one_record_may_come_again_for_ever() {
    let mut catalogue = catalogue(
        with(|quirks| {
            quirks.past_end = PastEnd::LastAgain;
            quirks.next = NextRecord::OneMore;
            quirks.matched = Matched::Absent;
        }),
        1,
    );
    for start in 1..20 {
        let again = page(&mut catalogue, &ModelRequest::page(start, 1));
        assert_eq!((again.identifiers, again.next), (vec!["r-000001".to_owned()], Some(start + 1)));
    }
}

#[test]
fn counting_has_four_faces() {
    let mut catalogue = catalogue(Quirks::default(), 3);
    let request = ModelRequest::page(1, 2).counting();
    let right = page(&mut catalogue, &request);
    assert_eq!((right.matched.as_deref(), right.returned, right.identifiers.len()), (Some("3"), Some(0), 0));
    catalogue.quirks_mut().hits = Hits::MatchedOnly;
    assert_eq!(page(&mut catalogue, &request).returned, None);
    catalogue.quirks_mut().hits = Hits::ClaimsPage;
    let claims = page(&mut catalogue, &request);
    assert_eq!((claims.returned, claims.next, claims.identifiers.len()), (Some(2), Some(3), 0));
    catalogue.quirks_mut().hits = Hits::SendsRecords;
    assert_eq!(page(&mut catalogue, &request).identifiers.len(), 2);
}

#[test]
fn a_poisoned_record_spoils_its_page_only() {
    let mut catalogue = catalogue(Quirks::default(), 8);
    catalogue.change("r-000003", |record| record.poison = Some(Poison::Exception("RuntimeException".to_owned())));
    assert_eq!(report(&mut catalogue, &ModelRequest::page(1, 8)).text, "RuntimeException");
    assert_eq!(report(&mut catalogue, &ModelRequest::page(3, 1)).code, "NoApplicableCode");
    assert_eq!(page(&mut catalogue, &ModelRequest::page(4, 5)).identifiers.len(), 5);
    catalogue.change("r-000003", |record| record.poison = Some(Poison::Http(500)));
    assert_eq!(catalogue.answer(&ModelRequest::page(3, 1)), ModelAnswer::Http { status: 500, body: String::new() });
}

#[test]
fn schemas_are_refused_or_fail_for_one_record() {
    let mut catalogue = catalogue(with(|quirks| quirks.conversion = Conversion::PageFails), 2);
    catalogue.change("r-000002", |record| record.kind = Kind::Csw);
    let request = ModelRequest::page(1, 2);
    assert_eq!(page(&mut catalogue, &request).identifiers.len(), 2);
    assert!(report(&mut catalogue, &request.clone().in_schema(GMD)).text.contains("not supported for metadata"));
    assert_eq!(page(&mut catalogue, &ModelRequest::page(1, 1).in_schema(GMD)).identifiers.len(), 1);
    assert_eq!(report(&mut catalogue, &request.in_schema("urn:x")).locator, "outputSchema");
}

#[test]
fn the_users_own_filter_is_obeyed_beside_the_window() {
    let mut catalogue = catalogue(Quirks::default(), 12);
    let like = Condition::Term { property: "dc:title".to_owned(), compare: Compare::Like, literal: "%00000_".to_owned() };
    let request = ModelRequest { also: Some(like.clone()), ..ModelRequest::page(1, 99) };
    assert_eq!(matched(&mut catalogue, &request), "9");
    assert_eq!(matched(&mut catalogue, &request.clone().after("dct:modified", "2025-01-01T03:00:00Z")), "5");
    let not = ModelRequest { also: Some(Condition::Not(Box::new(like))), ..request };
    assert_eq!(matched(&mut catalogue, &not), "3");
}

#[test]
fn the_truth_names_the_stamp_that_the_schema_shows() {
    let mut catalogue = Catalogue::new(NOW, with(|quirks| quirks.csw_stamp = CswStamp::Revision));
    let mut record = ModelRecord::showing("a", &["2025-01-01", "2025-02-01", "soon"]);
    record.revision = Some("1999-01-01".to_owned());
    catalogue.insert_record(record);
    assert_eq!(catalogue.visible()["a"].0.as_deref(), Some("1999-01-01"));
    assert_eq!(catalogue.visible_in(GMD)["a"].0.as_deref(), Some("2025-02-01"));
    catalogue.quirks_mut().csw_stamp = CswStamp::JavaText;
    let stamps = catalogue.stamps_in(&catalogue.records()[0], CSW);
    assert_eq!(stamps, ["Wed Jan 01 00:00:00 UTC 2025", "Sat Feb 01 00:00:00 UTC 2025", "soon"]);
}

#[test]
fn of_two_records_with_one_identifier_the_newer_counts_and_none_counts_for_nobody() {
    let mut catalogue = Catalogue::new(NOW, Quirks::default());
    catalogue.insert_record(ModelRecord::showing("a", &["2024-01-01"]));
    catalogue.insert_record(ModelRecord::showing("a", &["2020-01-01"]));
    let mut nameless = ModelRecord::showing("x", &["2020-01-01"]);
    nameless.identifier = None;
    catalogue.insert_record(nameless);
    assert_eq!(catalogue.visible().len(), 1);
    assert_eq!(catalogue.visible()["a"].0.as_deref(), Some("2024-01-01"));
}

// Whatever the server, paging to the end by one's own count, sorted by what it calls modified, brings every record once.
#[test]
fn every_profile_gives_all_of_a_quiet_catalogue() {
    for (name, quirks) in profiles::all() {
        let sort = ["dct:modified", "apiso:Modified", "modified"].into_iter().find(|sort| quirks.sort_names.accepts(sort));
        let random = quirks.ties == Ties::RandomEachTime || sort.is_none() && quirks.order == Order::RandomEachTime;
        let mut catalogue = catalogue(quirks, 37);
        let mut identifiers = Vec::new();
        while identifiers.len() < 37 {
            let mut request = ModelRequest::page(identifiers.len() as i64 + 1, 20);
            request.sort = sort.map(str::to_owned);
            let came = page(&mut catalogue, &request).identifiers;
            assert!(!came.is_empty(), "{name}");
            identifiers.extend(came);
        }
        identifiers.sort();
        identifiers.dedup();
        assert!(random || identifiers.len() == 37, "{name}");
    }
}

#[test]
fn every_profile_that_has_a_property_filters_by_one_of_the_usual_names() {
    let names = ["dct:modified", "apiso:Modified", "Modified", "apiso:modified", "dct:Modified", "modified", "dc:modified"];
    for (name, quirks) in profiles::all() {
        let property = names.into_iter().find(|property| quirks.properties.accepts(property));
        assert_eq!(property.is_none(), name == "geoserver", "{name}");
        let Some(property) = property else { continue };
        let mut catalogue = catalogue(quirks, 5);
        assert_eq!(matched(&mut catalogue, &ModelRequest::page(1, 1).after(property, "1970-01-01")), "5", "{name}");
        catalogue.quirks_mut().no_match = NoMatch::Empty;
        let none = page(&mut catalogue, &ModelRequest::page(1, 1).after(property, "2999-01-01"));
        assert!(none.identifiers.is_empty(), "{name}");
    }
}

#[test]
fn a_hundred_thousand_records_are_paged_by_key_and_by_position() {
    let mut catalogue = catalogue(with(|quirks| quirks.comparison = Comparison::Text), 100_000);
    let (mut seen, mut literal) = (0, "1970-01-01".to_owned());
    loop {
        let request = ModelRequest::page(1, 500).after("dct:modified", &literal).sorted("dct:modified");
        let ModelAnswer::Results { records, .. } = catalogue.answer(&request) else { panic!("a page") };
        let Some(last) = records.last() else { break };
        seen += records.len();
        literal = last.shown[0].clone();
    }
    assert_eq!(seen, 100_000);
    let by_position: usize =
        (0..200).map(|number| page(&mut catalogue, &ModelRequest::page(number * 500 + 1, 500)).identifiers.len()).sum();
    assert_eq!(by_position, 100_000);
}
