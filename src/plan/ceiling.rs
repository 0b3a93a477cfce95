//! What lies beyond a ceiling: positions that a catalogue does not serve, whether it says so, fails there, stops counting there, or just
//! sends nothing any more. It is passed by keys, or by halving the window in time; asks nothing itself.

use super::{Asked, Evidence, Keys, List, Part, Plan, State, Want};
use crate::csw::{Lower, Window};
use crate::timestamp::{self, Micros, SECOND};

/// Empty pages in a row that are stepped over; more are a ceiling.
const GAPS_MAX: u32 = 3;
/// Parts that a window may be halved into.
const PARTS_MAX: usize = 4096;

/// Answers without records since the last one that had some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Silence {
    pages: u32,
    /// The boundary before it, and what was held against the pass.
    boundary: u64,
    evidence: Evidence,
}

impl Plan {
    /// An answer without records, or a report that the position lies past the end.
    pub(super) fn on_empty(&mut self, matched: Option<u64>, asked: Asked) {
        let ends = asked.start > 1 && matched.is_none_or(|matched| matched < asked.start);
        let went_on = self.matched_is_total() && self.list.matched_shown.is_some_and(|shown| shown > self.list.boundary);
        match self.list.goes_on {
            None if ends && went_on => self.state = State::Doubting(asked),
            Some(true) if ends && went_on => self.meet_silence(),
            _ => self.take_empty(matched, asked),
        }
    }

    /// What the head of the list says now: it has become shorter, or it goes on. Then it is asked again whether it ends here: it may have
    /// grown in between.
    pub(super) fn end_doubt(&mut self, matched: Option<u64>, silent: Asked) {
        self.state = State::Reading;
        let goes_on = matched.is_some_and(|matched| matched > self.list.boundary);
        self.list.goes_on = Some(goes_on);
        if !goes_on {
            self.take_empty(matched, silent);
        }
    }

    fn take_empty(&mut self, matched: Option<u64>, asked: Asked) {
        if asked.overlap == 0 {
            if asked.start == 1 && self.ceiling.is_some() && matched.is_some_and(|matched| matched > 0) {
                // No ceiling lies below the first position: the count is too high.
                self.matched_lies = true;
                self.evidence.short = self.list.after_key.unwrap_or(self.evidence.short);
                return self.end_list();
            }
            let reached = matched.or(self.list.matched_last).is_none_or(|matched| matched < asked.start) || self.matched_lies;
            if reached || (asked.start == 1 && matched.is_none()) {
                if self.list.bare && self.served() == 1 && !self.evidence.moved && !self.list.looked_again {
                    // No overlap had room for what follows. The end, or has that moved up in the meantime? The boundary tells.
                    self.list.bare = false;
                    self.list.looked_again = true;
                    return;
                }
                // Empty pages up to where the count ends are no end that anything was seen of.
                let stepped_over = self.list.silence.is_some_and(|silence| silence.pages > 0);
                return if stepped_over { self.meet_silence() } else { self.end_list() };
            }
            if self.is_silent() {
                return self.meet_silence();
            }
            self.list.boundary += u64::from(asked.size);
            self.list.hole = self.list.boundary;
            self.evidence.hole = true;
            return;
        }
        // What counts the page only says nothing of the list.
        if (matched == Some(0) && self.matched_is_total()) || asked.start == 1 {
            self.evidence.shrunk |= matched != Some(0);
            return self.end_list();
        }
        if self.is_silent() {
            return self.meet_silence();
        }
        if let Some(matched) = matched {
            self.list.boundary = self.list.boundary.min(matched);
        }
        self.step_back(asked);
    }

    pub(super) fn begin_silence(&mut self) {
        let Plan { list, evidence, .. } = self;
        list.silence.get_or_insert(Silence { pages: 0, boundary: list.boundary, evidence: *evidence });
    }

    /// Counts an empty page that may be one among others, and says whether they are too many.
    fn is_silent(&mut self) -> bool {
        let Some(silence) = &mut self.list.silence else { return false };
        silence.pages += 1;
        silence.pages > GAPS_MAX
    }

    /// The count goes on, and nothing comes any more: a ceiling that is not told. What the empty pages looked like is nothing against
    /// the pass then.
    fn meet_silence(&mut self) {
        if let Some(silence) = self.list.silence.take() {
            self.list.boundary = silence.boundary;
            self.evidence = silence.evidence;
        }
        if self.ceiling_tried || self.list.boundary == 0 {
            return self.go_past_key();
        }
        self.list.hole = 0;
        self.hit_ceiling();
    }

    pub(super) fn hit_ceiling(&mut self) {
        self.ceiling = Some(self.ceiling.unwrap_or(u64::MAX).min(self.list.boundary.max(1)));
        if self.order.clock.is_none() && !self.clock_asked {
            self.state = State::NeedsClock(Want::PassCeiling);
            return;
        }
        self.pass_ceiling();
    }

    pub(super) fn pass_ceiling(&mut self) {
        if !self.ceiling_tried {
            self.ceiling_tried = true;
            if self.keys != Keys::Never {
                self.keys = Keys::Always;
            }
            if self.go_on_by_key() {
                self.size = 1;
                return;
            }
        }
        if self.order.upper_obeyed && self.split() {
            return;
        }
        self.go_past_key();
    }

    /// The list that a key begins cannot be read to its end: records of that very stamp may be beyond it, or the count is too high. What
    /// follows the stamp comes in any case, and tells.
    fn go_past_key(&mut self) {
        let short_before = std::mem::replace(&mut self.evidence.short, true);
        let (Some(Lower::From(key)), Some(_)) = (&self.list.window.lower, self.list.landing) else {
            return self.end_list();
        };
        let window = Window { lower: Some(Lower::After(key.clone())), upper: self.list.window.upper.clone() };
        self.list = List { window, after_key: Some(short_before), ..List::default() };
    }

    /// Whether the list ends at a number so round that a search engine may have stopped counting there. Keys tell cheaply; halving reads
    /// everything once more, so it is kept for the numbers that are in use (10,000 and 15,000).
    pub(super) fn may_be_pinned(&self) -> bool {
        let cheap = self.keys != Keys::Never && (self.follows_stamps() || (self.order.clock.is_none() && !self.clock_asked));
        let (least, round) = if cheap { (1_000, 1_000) } else { (10_000, 5_000) };
        let pinned = |matched: u64| matched >= least && matched.is_multiple_of(round) && self.list.boundary >= matched;
        !self.ceiling_tried && !self.evidence.short && self.list.matched_last.is_some_and(pinned)
    }

    /// Goes on past such a number, if there is a way; false when the list is to be taken as it is.
    pub(super) fn look_beyond(&mut self) -> bool {
        if self.order.clock.is_none() && !self.clock_asked {
            self.state = State::NeedsClock(Want::EndList);
            return true;
        }
        self.ceiling_tried = true;
        self.ceiling = Some(self.ceiling.unwrap_or(u64::MAX).min(self.list.boundary));
        if self.keys != Keys::Never {
            self.keys = Keys::Always;
        }
        self.go_on_by_key() || (self.order.upper_obeyed && self.split())
    }

    /// Halves the part being read; false when it cannot be halved any more.
    pub(super) fn split(&mut self) -> bool {
        let unit = if self.order.days_only { 86_400 * SECOND } else { SECOND };
        let lower = self.order.window.lower.as_ref().and_then(|lower| timestamp::parse(lower.literal()));
        let from = self.part.from.or(lower.map(|lower| lower.nominal)).unwrap_or(0);
        let to = self.part.to.unwrap_or(self.order.started + 86_400 * SECOND);
        let middle = (from / 2 + to / 2).div_euclid(unit) * unit;
        if middle <= from || middle >= to || self.parts.len() >= PARTS_MAX {
            return false;
        }
        self.parts.push(Part { from: Some(middle), to: self.part.to });
        self.part = Part { from: self.part.from, to: Some(middle) };
        self.state = State::Splitting;
        true
    }

    pub(super) fn part_window(&self, part: Part) -> Window {
        let literal = |at: Micros| if self.order.days_only { timestamp::format_day(at) } else { timestamp::format_utc(at) };
        Window {
            lower: part.from.map(|from| Lower::After(literal(from))).or_else(|| self.order.window.lower.clone()),
            upper: part.to.map(literal).or_else(|| self.order.window.upper.clone()),
        }
    }

    pub(super) fn read_part(&mut self) {
        self.list = List { window: self.part_window(self.part), ..List::default() };
        self.ceiling_tried = false;
        // What it brings may be known from the list that met the ceiling.
        self.stale = 0;
        self.last_beyond.clear();
        self.state = State::Reading;
    }

    pub(super) fn next_part(&mut self) {
        match self.parts.pop() {
            Some(part) => {
                self.part = part;
                self.state = State::Splitting;
            }
            None => self.end_pass(),
        }
    }
}
