//! Faults that were found and mended, each by what was lost or wrong, sorted by name.

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
