//! Faults that were found and mended, each by what was lost or wrong, sorted by name.

use csw_harvester::csw::{ElementSet, Window};
use csw_harvester::plan::{self, ElementFacts, PageFacts, Plan, Seen, Step};
use csw_harvester::timestamp::Shapes;

use crate::cases::stage;
use crate::support::quirks::{Clock, EditedStamp, Names, Order, Quirks, UnknownSort};
use crate::support::stamps::{DAY, HOUR, StampShape};

/// A page that did not follow on the one before was taken for known when the step back met its records again: what lay between was
/// lost.
#[test]
fn a_list_that_moves_further_than_the_overlap_leaves_no_gap() {
    let hidden = Clock::Hidden(StampShape::Seconds);
    let kinds = [
        Quirks::default(),
        Quirks { clock: hidden, edited_stamp: EditedStamp::Kept, ..Quirks::default() },
        Quirks { sort_names: Names::none(), unknown_sort: UnknownSort::Exception, order: Order::EditedLast, ..Quirks::default() },
    ];
    for (quirks, at) in kinds.iter().flat_map(|quirks| [1, 2, 3].map(|at| (quirks, at))) {
        let (server, harness) = stage(quirks.clone(), 60);
        let mut page = 0;
        server.after_request(move |catalogue, entry| {
            page += usize::from(entry.page().is_some_and(|page| page.max_records == 10));
            if page == at && entry.page().is_some_and(|page| page.max_records == 10) {
                catalogue.advance(HOUR);
                for number in 1..=8 {
                    catalogue.edit(&format!("r-{number:06}"));
                }
            }
        });
        harness.harvest_quickly(&server, &["--page-size", "10"]).expect_code(0);
        server.catalogue().advance(DAY);
        harness.harvest_quickly(&server, &["--page-size", "10"]).expect_code(0);
        harness.expect_mirror(&server.catalogue());
    }
}

fn order(page_size: u32) -> plan::Order {
    plan::Order {
        window: Window::default(),
        element_set: ElementSet::Full,
        page_size,
        clock: None,
        upper_obeyed: false,
        days_only: false,
        clock_sure: false,
        sorted: false,
        matched_is_total: false,
        shapes: Shapes::default(),
        started: 0,
    }
}

/// The bound on requests is made from what matched: it was too large for its type, so that a run in pages of one ended in a panic.
#[test]
fn matched_may_be_the_largest_number_there_is() {
    let mut plan = Plan::new(order(1));
    assert!(matches!(plan.step(), Step::Ask(_)));
    let element = ElementFacts { identifier: Some("a"), modified: None, interval: None, seen: Seen::New };
    plan.on_page(&PageFacts { elements: &[element], matched: Some(u64::MAX), next_record: None, server_now: 0 });
    assert!(matches!(plan.step(), Step::Ask(_)));
}

/// Numbers of a cursor were taken as they stood: one that a damaged store made of them was too large to be added to.
#[test]
fn a_cursor_with_a_number_beyond_all_measure_is_not_taken_up() {
    let whole = Plan::new(order(10)).cursor();
    assert!(Plan::resume(&order(10), &whole).is_some());
    for line in ["boundary 18446744073709551615", "step_back 9223372036854775808", "started 9223372036854775807", "pass 4294967295"]
    {
        assert_eq!(Plan::resume(&order(10), &format!("{whole}\n{line}")), None, "{line}");
    }
}
