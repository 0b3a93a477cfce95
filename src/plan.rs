//! The paging state machine: the facts of the last page in, the next query out.
//!
//! Pure: it knows no socket, store or clock, so that a test can run it through millions of histories. It decides what is asked for, when a
//! list is at its end and how sure that is; it never stores, waits or retries (`harvest.rs` performs the effects, `watermark.rs` draws
//! the conclusions).
//!
//! ```text
//!                 +------------------ next pass ------------------+
//!                 v                                               |
//!  new --> Reading (offsets that overlap, or keys) --end of list--+--> Done(Sure | Told)
//!            |  ^      ^                                          |
//!   ceiling  |  |      +-- next part <-- Splitting (hits) <-------+ parts left
//!            v  |                            ^
//!        NeedsClock --record: go on by keys  |
//!               +-----server: halve by time -+         any state --> Failed
//! ```
//!
//! An answer that says that the list ends, where the pages said that it goes on, leads to Doubting: the head of the list tells whether it
//! has become shorter, or whether nothing comes beyond a ceiling.
//!
//! Between the first page of a filtered window and its second, where the clock is the server's, stands Closing: it asks whether any
//! stamp runs ahead, and if none does the rest is read up to the beginning of the run.
//!
//! # Why nothing is lost while the catalogue changes
//!
//! A list sorted by stamp is a queue: what is edited leaves its place and goes to the end, what is deleted leaves, and the rest
//! moves up. An offset therefore skips records. Two ways past that:
//!
//! - *Keys* (clock record, stamps of one shape, ascending): the next query starts at the last stamp seen, inclusive, so that
//!   nothing before it matters any more. The records of that very stamp are known by count; one of them must come back first (the
//!   *landing*), which also shows that the catalogue reads the literal as it wrote the stamp.
//! - *Overlap* (everything else): the next page starts a few records before the end of the last one. A record of this pass with its
//!   stamp unchanged must come back among those: what lies before it was read when it was read, what follows is contiguous. If none
//!   does, the list has moved further than that, and the step back is doubled.
//!
//! Where a record can move without showing it (clock server, no upper bound sent) the overlap is no proof when the list was seen to
//! move. Then distinct identifiers are held against what matched, and the pass is repeated until one is quiet, a bounded number of
//! times.

mod ceiling;
mod cursor;

use ceiling::Silence;

use crate::csw::{ElementSet, Lower, Query, ResultType, Window};
use crate::dialect::Clock;
use crate::timestamp::{self, Interval, Micros, SECOND, Shapes};
use crate::watermark;

/// Requests for one window, whatever the catalogue claims: a list that grows as fast as it is read has no end of its own.
const REQUESTS_MAX: u64 = 10_000_000;
/// Passes over one window before the run ends with what it has, and says so.
const PASSES_MAX: u32 = 4;
/// Pages in a row that bring nothing but what the page before them brought.
const STALE_PAGES_MAX: u32 = 12;
/// Pages in a row that go further and bring nothing new, beside as many as the window has: a catalogue that sends just anything.
const BARREN_PAGES_MAX: u64 = 100;
/// Elements by which a page is recognised as the one before it.
const BEYOND_MAX: usize = 4;
/// Failing positions in a row that mean the service is unwell, or a ceiling.
const BAD_POSITIONS_MAX: u32 = 3;
/// Pages of records edited since the run began that are still read, before they are left to the next run.
const CHASE_PAGES_MAX: u32 = 8;
/// Most records of an overlap, before any step back.
const OVERLAP_MAX: u64 = 5;
/// Identifiers kept in the cursor, to find the place again after a crash.
const ANCHORS_MAX: usize = 16;
/// Keys tried, newest first, before keys are given up.
const KEYS_MAX: usize = 3;
/// Lists that do not begin with their key while no newer key is reached, before keys are given up.
const STRAYS_MAX: u32 = 6;
/// How far the stamps of a clock that is UTC may be ahead of the catalogue's time.
const AHEAD_MAX: Micros = 15 * 60 * SECOND;

/// What the harvester knew of an identifier before this page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Not delivered in this run.
    New,
    /// Delivered in an earlier pass of this run, not yet in this one.
    Earlier,
    /// Delivered in this pass with the same stamp.
    Here,
    /// Delivered in this pass with another stamp.
    Restamped,
    /// The element has no identifier.
    Anonymous,
}

/// What a page says of one element.
#[derive(Clone, Copy, Debug)]
pub struct ElementFacts<'a> {
    /// The identifier.
    pub identifier: Option<&'a str>,
    /// The stamp as delivered.
    pub modified: Option<&'a str>,
    /// What the stamp names, where it can be read.
    pub interval: Option<Interval>,
    /// Whether this run had it before.
    pub seen: Seen,
}

/// What a page says.
#[derive(Clone, Copy, Debug)]
pub struct PageFacts<'a> {
    /// The element children, in order.
    pub elements: &'a [ElementFacts<'a>],
    /// `numberOfRecordsMatched`, when usable.
    pub matched: Option<u64>,
    /// `nextRecord`, when a number.
    pub next_record: Option<i64>,
    /// The catalogue's time at this answer.
    pub server_now: Micros,
}

/// A page that could not be had, after all attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageFailure {
    /// An exception, a 5xx, a time-out or broken XML, for this window.
    Page,
    /// The body is larger than allowed.
    TooLarge,
    /// A report about startPosition.
    PastTheEnd,
    /// A report that the offset is too deep.
    Ceiling,
}

/// What is to be done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Ask for records.
    Ask(Query),
    /// Ask how many there are, and answer with [`Plan::on_count`].
    Count(Query),
    /// Find out the clock from what is stored by now, and answer with [`Plan::on_clock`].
    Calibrate,
    /// The window has been read.
    Done(Certainty),
    /// It cannot be read.
    Failed(Cause),
}

/// How sure it is that everything in the window came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// Everything came.
    Sure,
    /// The list kept moving, or its counters do not fit what came: told, and the watermark is held.
    Told,
}

/// Why a window cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Several positions in a row fail whatever the page size.
    Unwell,
    /// The catalogue sends the same over and over, or without end.
    Endless,
}

/// A position that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPosition {
    /// The lower edge of the list it stands in, empty for none.
    pub lower: String,
    /// 1-based position in that list.
    pub position: u64,
}

/// What is read, and what is known of the catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The window.
    pub window: Window,
    /// How much of each record.
    pub element_set: ElementSet,
    /// `maxRecords`, at least 1.
    pub page_size: u32,
    /// The clock, when calibrated.
    pub clock: Option<Clock>,
    /// Whether an upper bound was seen to be obeyed.
    pub upper_obeyed: bool,
    /// Whether literals are plain days.
    pub days_only: bool,
    /// The clock was told without a doubt, so that a stamp that stayed proves a place that stayed.
    pub clock_sure: bool,
    /// Whether the catalogue was seen to obey the sort.
    pub sorted: bool,
    /// `numberOfRecordsMatched` was seen to be more than what came: it counts the whole list, not the page.
    pub matched_is_total: bool,
    /// The shapes of the stamps that the source is known to have.
    pub shapes: Shapes,
    /// The catalogue's time when the run began, or ours until it has answered.
    pub started: Micros,
}

/// The list being read: one window, sorted as the catalogue sorts it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct List {
    window: Window,
    /// Positions read without a gap, from 1.
    boundary: u64,
    /// Records before the boundary that the next page starts with.
    step_back: u64,
    /// An overlap was as much as the catalogue sends at a time: ask beyond the boundary without one.
    bare: bool,
    /// Such a page brought only what was known, or nothing, and the boundary is looked at before anything is made of that.
    looked_again: bool,
    /// What such a page brought. It counts once the boundary was seen to have stayed where it was.
    tentative: Vec<(String, String)>,
    /// Records of the key's own stamp at the head of a list entered by key.
    landing: Option<u64>,
    /// Position of the last bad record or gap: no overlap reaches before it.
    hole: u64,
    furthest: u64,
    /// Pages in a row that went further and brought nothing new.
    barren: u64,
    matched_first: Option<u64>,
    matched_last: Option<u64>,
    /// `matched` of the last page that had records.
    matched_shown: Option<u64>,
    silence: Option<Silence>,
    /// Whether the head of the list says that it goes on, where an answer without records said that it ends.
    goes_on: Option<bool>,
    /// This is the list of what follows a key whose own list fell silent; whether the pass was short before.
    after_key: Option<bool>,
    /// The last stamp before the boundary that could be read.
    last: Option<Micros>,
}

/// A request under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Asked {
    start: u64,
    size: u32,
    overlap: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Reading,
    /// Asking how many lie in the part on top of the stack.
    Splitting,
    /// Asking whether any stamp runs ahead of the catalogue's time, before the window is closed at it.
    Closing,
    /// An answer without records says that the list ends before this position, where the pages said that it goes on. Asking for the head
    /// of the list, which says how long it is now.
    Doubting(Asked),
    NeedsClock(Want),
    Done(Certainty),
    Failed(Cause),
}

/// Why the clock is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Want {
    PassCeiling,
    EndList,
    EndPass,
}

/// A part of a window that was too large for the catalogue's ceiling: after `from`, up to `to`; `None` is the window's own edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    from: Option<Micros>,
    to: Option<Micros>,
}

/// The machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    order: Order,
    state: State,
    list: List,
    parts: Vec<Part>,
    part: Part,
    asked: Asked,
    size: u32,
    size_max: u32,
    cap: Option<u32>,
    keys: Keys,
    /// The newest key whose list began elsewhere, and how many have since it was met.
    strayed: Option<Micros>,
    strays: u32,
    shapes: Shapes,
    ascending: bool,
    ceiling: Option<u64>,
    ceiling_tried: bool,
    clock_asked: bool,
    suspects: Vec<BadPosition>,
    bad: Vec<BadPosition>,
    pass: u32,
    evidence: Evidence,
    distinct: u64,
    distinct_known: bool,
    anonymous: u64,
    contradicted: bool,
    stale: u32,
    /// The first identifiers and stamps beyond the overlap of the last page that had any.
    last_beyond: Vec<(Option<String>, Option<String>)>,
    chase: u32,
    requests: u64,
    pages: u64,
    contiguous: bool,
    matched: Option<u64>,
    matched_most: u64,
    matched_lies: bool,
    tail: Vec<Key>,
    anchors: Vec<(String, String)>,
    confirmed: Vec<(String, String)>,
}

/// A stamp to go on from, and how many records of that stamp are known to stand at the head of the list that it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    text: String,
    known: u64,
}

/// How far keys may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keys {
    /// In windows that begin at a stamp; a whole catalogue is read without a filter, so that undated records come.
    Filtered,
    /// Also there, since it has a ceiling.
    Always,
    /// Not any more: the catalogue reads a literal otherwise than it writes the stamp.
    Never,
}

/// What speaks against this pass having seen everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Evidence {
    /// A record was not where it had been.
    moved: bool,
    /// `matched` fell.
    shrunk: bool,
    /// The end came before what matched was reached.
    short: bool,
    /// A page was asked for without overlap, and only the next request showed that it followed: two changes in between can hide each other.
    bare: bool,
    /// A position could not be read, or was empty.
    hole: bool,
    /// What follows was edited since the run began, and was left to the next one.
    left: bool,
    /// Identifiers that no earlier pass had.
    new: u64,
}

impl Plan {
    /// Begins a window.
    #[must_use]
    pub fn new(order: Order) -> Self {
        let size = order.page_size.max(1);
        let list = List { window: order.window.clone(), ..List::default() };
        let shapes = order.shapes;
        Plan {
            order,
            state: State::Reading,
            list,
            parts: Vec::new(),
            part: Part { from: None, to: None },
            asked: Asked::default(),
            size,
            size_max: size,
            cap: None,
            keys: Keys::Filtered,
            strayed: None,
            strays: 0,
            shapes,
            ascending: true,
            ceiling: None,
            ceiling_tried: false,
            clock_asked: false,
            suspects: Vec::new(),
            bad: Vec::new(),
            pass: 1,
            evidence: Evidence::default(),
            distinct: 0,
            distinct_known: true,
            anonymous: 0,
            contradicted: false,
            stale: 0,
            last_beyond: Vec::new(),
            chase: 0,
            requests: 0,
            pages: 0,
            contiguous: true,
            matched: None,
            matched_most: 0,
            matched_lies: false,
            tail: Vec::new(),
            anchors: Vec::new(),
            confirmed: Vec::new(),
        }
    }

    /// What is to be done next; the same until an answer is handed in.
    pub fn step(&mut self) -> Step {
        if self.requests > self.requests_max() {
            self.state = State::Failed(Cause::Endless);
        }
        match self.state {
            State::Done(certainty) => Step::Done(certainty),
            State::Failed(cause) => Step::Failed(cause),
            State::NeedsClock(_) => Step::Calibrate,
            State::Closing => Step::Count(Query::hits(Window {
                lower: Some(Lower::After(timestamp::format_utc(self.order.started + AHEAD_MAX))),
                upper: None,
            })),
            State::Splitting => Step::Count(Query::hits(self.part_window(self.part))),
            State::Doubting(_) => self.ask(Asked { start: 1, size: 1, overlap: 0 }),
            State::Reading => {
                let overlap = self.overlap();
                self.ask(Asked { start: self.list.boundary + 1 - overlap, size: self.size, overlap })
            }
        }
    }

    fn ask(&mut self, asked: Asked) -> Step {
        self.asked = asked;
        Step::Ask(Query {
            window: self.list.window.clone(),
            start_position: asked.start,
            max_records: asked.size,
            result_type: ResultType::Results,
            element_set: self.order.element_set,
            ..Query::default()
        })
    }

    /// The number of the pass over the window, from 1. Identifiers seen count as seen *here* only within a pass.
    #[must_use]
    pub const fn pass(&self) -> u32 {
        self.pass
    }

    /// Whether the last page follows on what was read before. The records of one that does not are worth having, but no later
    /// overlap may be recognised by them: what lies before them was not read.
    #[must_use]
    pub const fn is_contiguous(&self) -> bool {
        self.contiguous
    }

    /// Identifiers and stamps of an earlier page that has turned out to be contiguous: they count as met in this pass.
    pub fn take_confirmed(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.confirmed)
    }

    /// `matched` of the whole window, as first told.
    #[must_use]
    pub const fn matched(&self) -> Option<u64> {
        self.matched
    }

    /// How many elements the window has by its own count, where that is known to be too few for what matched: (came, matched).
    #[must_use]
    pub fn shortfall(&self) -> Option<(u64, u64)> {
        let came = self.came()?;
        let matched = self.list.matched_last.filter(|_| !self.matched_lies && self.list.window == self.order.window)?;
        (came < matched).then_some((came, matched))
    }

    /// Whether a record came that is certainly older than the bound asked for, although the clock was taken to be *record*.
    #[must_use]
    pub const fn contradicted(&self) -> bool {
        self.contradicted
    }

    /// Positions that are known to be unreadable since the last call.
    pub fn take_bad_positions(&mut self) -> Vec<BadPosition> {
        std::mem::take(&mut self.bad)
    }

    /// Positions read that brought no record of their own: without identifier, of one identifier with another, or not to be had.
    #[must_use]
    pub const fn unheld(&self) -> u64 {
        self.list.boundary.saturating_sub(self.distinct)
    }

    /// Whether nothing was seen to move while the window was read.
    #[must_use]
    pub const fn is_quiet(&self) -> bool {
        let Evidence { moved, shrunk, short, .. } = self.evidence;
        !moved && !shrunk && !short
    }

    /// What is read.
    #[must_use]
    pub const fn window(&self) -> &Window {
        &self.order.window
    }

    /// Whether the last pass read one list without any filter, from its first record to its last, and nothing moved meanwhile. Only then is
    /// everything that did not come not there: a record may have gone back in the list behind what was read, and one without a stamp
    /// is in no list that is entered by a stamp.
    #[must_use]
    pub fn saw_the_whole_list(&self) -> bool {
        let Evidence { hole, left, .. } = self.evidence;
        self.is_quiet() && !hole && !left && !self.is_filtered() && self.list.window == self.order.window
    }

    /// How many records of the window came, where that is known.
    #[must_use]
    pub fn came(&self) -> Option<u64> {
        self.distinct_known.then_some(self.distinct + self.anonymous)
    }

    /// Whether only a part of the catalogue is read.
    #[must_use]
    pub const fn is_filtered(&self) -> bool {
        self.order.window.lower.is_some()
    }

    /// Whether `matched` was seen to count the whole list.
    #[must_use]
    pub const fn matched_is_total(&self) -> bool {
        !self.matched_lies && self.order.matched_is_total
    }

    /// The shapes of the source's stamps, those of this run included. Stamps of the far future do not count: no literal meets them.
    #[must_use]
    pub const fn shapes(&self) -> Shapes {
        self.shapes
    }

    /// The catalogue's time when the run began: the first part of it, when it was resumed.
    #[must_use]
    pub const fn started(&self) -> Micros {
        self.order.started
    }

    /// Tells the catalogue's time when the run began, once its first answer is there.
    pub fn begin_at(&mut self, started: Micros) {
        self.order.started = started;
    }

    /// The identifiers and stamps last read, newest last: what the next page's overlap is recognised by.
    #[must_use]
    pub fn anchors(&self) -> &[(String, String)] {
        &self.anchors
    }

    /// The facts of the page that was asked for.
    pub fn on_page(&mut self, page: &PageFacts<'_>) {
        self.requests += 1;
        self.pages += 1;
        self.bad.append(&mut self.suspects);
        let asked = self.asked;
        if page.elements.is_empty() {
            self.begin_silence();
        }
        self.note_counters(page, asked);
        self.note_elements(page, asked);
        if let State::Doubting(silent) = self.state {
            // Wherever its record stands now, no overlap may be recognised by it.
            self.contiguous = false;
            return self.end_doubt(page.matched.filter(|_| !page.elements.is_empty()), silent);
        }
        self.size = self.size.saturating_mul(2).min(self.size_max);
        if self.contradicted && self.list.landing.is_some() {
            return self.leave_keys();
        }
        if page.elements.is_empty() {
            return self.on_empty(page.matched, asked);
        }
        let verdict = self.verify(page, asked);
        self.contiguous = verdict == Verdict::Contiguous;
        match verdict {
            Verdict::Contiguous => self.advance(page, asked),
            Verdict::Unproven => self.hold_back(page),
            Verdict::MovedFurther => self.step_back(asked),
            Verdict::LandedElsewhere => self.try_older_key(),
        }
    }

    /// How many records the part asked about holds.
    pub fn on_count(&mut self, matched: Option<u64>) {
        self.requests += 1;
        if self.state == State::Closing {
            return self.close_window(matched);
        }
        match matched {
            Some(0) => self.next_part(),
            Some(count) if self.ceiling.is_some_and(|ceiling| count >= ceiling) && self.split() => {}
            _ => self.read_part(),
        }
    }

    /// What the calibration found; `None` when it could not tell.
    pub fn on_clock(&mut self, clock: Option<Clock>, clock_sure: bool, upper_obeyed: bool) {
        self.clock_asked = true;
        self.order.clock = clock;
        self.order.clock_sure = clock_sure;
        self.order.upper_obeyed = upper_obeyed;
        let State::NeedsClock(want) = self.state else { return };
        self.state = State::Reading;
        match want {
            Want::EndPass => self.end_pass(),
            Want::PassCeiling => self.pass_ceiling(),
            Want::EndList => self.end_list(),
        }
    }

    /// The page that was asked for could not be had.
    pub fn on_failure(&mut self, failure: PageFailure) {
        self.requests += 1;
        let asked = self.asked;
        if let State::Doubting(silent) = self.state {
            return self.end_doubt(None, silent);
        }
        match failure {
            // Up to the ceiling a smaller page comes.
            PageFailure::Ceiling if asked.size > 1 => self.size = asked.size / 2,
            PageFailure::Ceiling => self.hit_ceiling(),
            PageFailure::PastTheEnd => {
                self.begin_silence();
                self.on_empty(None, asked);
            }
            PageFailure::TooLarge if asked.size > 1 => {
                self.size_max = (asked.size / 2).max(1);
                self.size = self.size_max;
            }
            // Nothing came yet: a single record tells whether anything will.
            PageFailure::Page if asked.size > 1 => self.size = if self.pages == 0 { 1 } else { asked.size / 2 },
            PageFailure::TooLarge | PageFailure::Page if asked.overlap > 0 => {
                // A record that was read before cannot be read now: go on without looking back.
                self.evidence.moved = true;
                self.list.bare = true;
                self.list.step_back = 0;
            }
            PageFailure::TooLarge | PageFailure::Page => self.on_bad_position(asked),
        }
    }

    fn on_bad_position(&mut self, asked: Asked) {
        let lower = self.list.window.lower.as_ref().map_or(String::new(), |lower| lower.literal().to_owned());
        self.suspects.push(BadPosition { lower, position: asked.start });
        self.list.boundary = asked.start;
        self.list.hole = asked.start;
        self.evidence.hole = true;
        if self.suspects.len() < BAD_POSITIONS_MAX as usize {
            return;
        }
        let first = self.suspects.first().map_or(1, |bad| bad.position);
        if self.ceiling_tried || first == 1 {
            self.state = State::Failed(Cause::Unwell);
            return;
        }
        self.suspects.clear();
        self.list.boundary = first - 1;
        self.list.hole = 0;
        self.hit_ceiling();
        if self.list.boundary == first - 1 && self.evidence.short {
            self.state = State::Failed(Cause::Unwell);
        }
    }

    fn requests_max(&self) -> u64 {
        let step = u64::from(self.cap.unwrap_or(self.size_max).min(self.size_max).max(1));
        let in_proportion =
            (16 * u64::from(PASSES_MAX)).saturating_mul((self.matched_most / step).saturating_add(1)).saturating_add(1_000);
        in_proportion.min(REQUESTS_MAX)
    }

    /// How many records a page brings.
    fn served(&self) -> u64 {
        u64::from(self.cap.unwrap_or(self.size).min(self.size))
    }

    fn overlap(&self) -> u64 {
        let list = &self.list;
        if list.boundary == 0 || list.bare {
            return 0;
        }
        if list.step_back > 0 {
            return list.step_back.min(list.boundary);
        }
        let wanted = (self.served() / 20).clamp(1, OVERLAP_MAX);
        wanted.min(list.boundary - list.hole.min(list.boundary))
    }

    fn note_counters(&mut self, page: &PageFacts<'_>, asked: Asked) {
        let Some(matched) = page.matched else { return };
        let count = page.elements.len() as u64;
        if count > 0 && matched < asked.start - 1 + count {
            self.matched_lies = true;
        }
        let more = count > 0 && matched > asked.start - 1 + count;
        self.order.matched_is_total |= more;
        // A count that was never more than what came goes up and down with the position that is asked for.
        self.evidence.shrunk |= self.matched_is_total() && self.list.matched_last.is_some_and(|last| matched < last);
        self.list.matched_first.get_or_insert(matched);
        self.list.matched_last = Some(matched);
        if count > 0 {
            self.list.matched_shown = Some(matched);
        }
        self.matched.get_or_insert(matched);
        self.matched_most = self.matched_most.max(matched);
    }

    fn note_elements(&mut self, page: &PageFacts<'_>, asked: Asked) {
        let lower = self.list.window.lower.as_ref().and_then(|lower| timestamp::parse(lower.literal()));
        let mut last: Option<Micros> = None;
        for (index, element) in page.elements.iter().enumerate() {
            if index as u64 == asked.overlap && asked.start + asked.overlap == self.list.boundary + 1 {
                last = last.max(self.list.last);
            }
            match element.seen {
                Seen::New => {
                    self.distinct += 1;
                    self.evidence.new += 1;
                }
                Seen::Anonymous if index as u64 >= asked.overlap && self.pass == 1 => self.anonymous += 1,
                _ => {}
            }
            let Some(interval) = element.interval else { continue };
            self.ascending &= last.is_none_or(|last| last <= interval.nominal);
            last = Some(interval.nominal);
            if interval.start <= page.server_now + 86_400 * SECOND {
                self.shapes.observe(interval.shape);
            }
            let older = lower.is_some_and(|lower| interval.end <= lower.start);
            self.contradicted |= older && self.order.clock == Some(Clock::Record);
        }
    }

    fn verify(&mut self, page: &PageFacts<'_>, asked: Asked) -> Verdict {
        if asked.overlap == 0 {
            let fresh = page.elements.iter().any(|element| matches!(element.seen, Seen::New | Seen::Earlier | Seen::Restamped));
            return if self.list.bare && fresh { Verdict::Unproven } else { Verdict::Contiguous };
        }
        let overlap = usize::try_from(asked.overlap).unwrap_or(usize::MAX);
        let region = || page.elements.iter().take(overlap);
        let here = region().filter(|element| element.seen == Seen::Here).count();
        let anonymous = region().filter(|element| element.seen == Seen::Anonymous).count();
        self.evidence.moved |= here + anonymous < overlap || !self.is_where_it_was(page, overlap);
        if self.list.landing.is_some_and(|known| asked.start <= known) {
            let key = self.list.window.lower.as_ref().map(Lower::literal);
            return match region().any(|element| element.seen == Seen::Here && element.modified == key) {
                true => Verdict::Contiguous,
                false if asked.start == 1 => Verdict::LandedElsewhere,
                false => Verdict::MovedFurther,
            };
        }
        let nameless = anonymous == page.elements.len().min(overlap);
        if here > 0 || nameless || asked.start == 1 { Verdict::Contiguous } else { Verdict::MovedFurther }
    }

    /// Whether the overlap shows the very records that were read last, in their order.
    fn is_where_it_was(&self, page: &PageFacts<'_>, overlap: usize) -> bool {
        let shown = page.elements.iter().take(overlap).rev().filter_map(|element| element.identifier);
        shown.zip(self.anchors.iter().rev()).all(|(shown, (identifier, _))| shown == identifier)
    }

    fn hold_back(&mut self, page: &PageFacts<'_>) {
        let known =
            |element: &ElementFacts<'_>| Some((element.identifier?.to_owned(), element.modified.unwrap_or_default().to_owned()));
        self.list.tentative = page.elements.iter().map(|element| known(element).unwrap_or_default()).collect();
        self.list.bare = false;
        self.evidence.bare = true;
    }

    fn step_back(&mut self, asked: Asked) {
        self.evidence.moved = true;
        self.list.step_back = (asked.overlap * 2).max(2);
        self.list.bare = false;
        self.list.tentative.clear();
    }

    fn advance(&mut self, page: &PageFacts<'_>, asked: Asked) {
        let count = page.elements.len() as u64;
        let mut end = asked.start - 1 + count;
        let mut fresh = page.elements.iter().any(|element| matches!(element.seen, Seen::New | Seen::Earlier));
        if self.list.bare && !fresh && !self.evidence.moved && !self.list.looked_again {
            // What came beyond the end was known: has the list moved, or is this its end? The boundary tells.
            self.list.bare = false;
            self.list.looked_again = true;
            self.note_beyond(page, asked, fresh);
            return;
        } else if end <= self.list.boundary && self.list.step_back == 0 {
            if self.list.tentative.is_empty() {
                self.list.bare = true;
            } else {
                self.confirm();
                end = self.list.boundary;
                fresh = true;
            }
        } else {
            self.list.bare = false;
            self.list.looked_again = false;
            self.list.tentative.clear();
            self.list.boundary = end;
            self.note_anchors(page);
        }
        self.list.step_back = 0;
        self.list.silence = None;
        if fresh {
            self.list.goes_on = None;
        }
        self.ceiling_tried &= !fresh;
        self.note_beyond(page, asked, fresh);
        if fresh {
            self.list.barren = 0;
            self.matched_most = self.matched_most.max(end);
        } else if end > self.list.furthest.max(self.known_ground()) {
            self.list.barren += 1;
        }
        self.list.furthest = self.list.furthest.max(end);
        if count < u64::from(asked.size) && page.matched.is_some_and(|matched| matched > end) {
            self.cap = Some(self.cap.unwrap_or(0).max(u32::try_from(count).unwrap_or(u32::MAX)));
        }
        self.list.last =
            page.elements.iter().rev().find_map(|element| element.interval).map(|interval| interval.nominal).or(self.list.last);
        self.tail = tail_keys(page.elements);
        if self.at_end(page, asked, end, fresh) || self.is_chasing(page, asked) {
            return self.end_list();
        }
        let barren_max = BARREN_PAGES_MAX + self.distinct / self.served().max(1);
        if self.stale >= STALE_PAGES_MAX || self.list.barren > barren_max {
            self.state = State::Failed(Cause::Endless);
            return;
        }
        if !self.go_on_by_key() && self.wants_closing() {
            self.state = State::Closing;
        }
    }

    /// Where no stamp can be watched and an upper bound is obeyed, the list is read up to the beginning of this run: what is edited
    /// meanwhile leaves it for good, so that an overlap cannot be mistaken. The page that showed that there is more is read again.
    fn wants_closing(&self) -> bool {
        let open = self.order.window.upper.is_none() && self.order.window.lower.is_some();
        open && self.order.clock == Some(Clock::Server) && self.order.upper_obeyed && !self.order.days_only
    }

    /// `ahead`: how many stamps lie after the catalogue's time. Where there are any (a clock in a zone east of UTC that does not
    /// say so), an upper bound would leave out what changed before this run.
    fn close_window(&mut self, ahead: Option<u64>) {
        self.state = State::Reading;
        if ahead != Some(0) {
            self.order.upper_obeyed = false;
            return;
        }
        self.order.window.upper = Some(timestamp::format_utc(self.order.started));
        self.next_pass();
    }

    /// Counts the answers in a row that bring, beyond the overlap, nothing new and what the one before them brought.
    fn note_beyond(&mut self, page: &PageFacts<'_>, asked: Asked, fresh: bool) {
        let beyond = page.elements.get(usize::try_from(asked.overlap).unwrap_or(usize::MAX)..).unwrap_or_default();
        if beyond.is_empty() {
            return;
        }
        // Elements without identifier are told apart by their stamps, as far as that goes: a page of them may be the same for ever too.
        let named = |element: &ElementFacts<'_>| (element.identifier.map(str::to_owned), element.modified.map(str::to_owned));
        let first: Vec<_> = beyond.iter().take(BEYOND_MAX).map(named).collect();
        self.stale = if fresh || first != self.last_beyond { 0 } else { self.stale + 1 };
        self.last_beyond = first;
    }

    /// The boundary is where it was, so what was read beyond it follows on it.
    fn confirm(&mut self) {
        let tentative = std::mem::take(&mut self.list.tentative);
        self.list.boundary += tentative.len() as u64;
        self.confirmed.extend(tentative.into_iter().filter(|(identifier, _)| !identifier.is_empty()));
        self.anchors.extend(self.confirmed.iter().cloned());
        let excess = self.anchors.len().saturating_sub(ANCHORS_MAX);
        self.anchors.drain(..excess);
    }

    fn note_anchors(&mut self, page: &PageFacts<'_>) {
        for element in page.elements.iter().rev().take(ANCHORS_MAX).rev() {
            let Some(identifier) = element.identifier else { continue };
            self.anchors.push((identifier.to_owned(), element.modified.unwrap_or_default().to_owned()));
        }
        let excess = self.anchors.len().saturating_sub(ANCHORS_MAX);
        self.anchors.drain(..excess);
    }

    /// As far may the records of a part be known from the list that met the ceiling.
    fn known_ground(&self) -> u64 {
        let is_part = self.list.landing.is_none() && self.list.after_key.is_none() && self.list.window != self.order.window;
        self.ceiling.filter(|_| is_part).unwrap_or(0)
    }

    /// Rule 2 of paging: counters are hints, and when in doubt it is asked once more.
    fn at_end(&self, page: &PageFacts<'_>, asked: Asked, end: u64, fresh: bool) -> bool {
        let count = page.elements.len() as u64;
        if page.matched.is_some_and(|matched| matched > end) {
            return false;
        }
        if !fresh && end >= self.list.furthest {
            // Only what overlaps came: whether more follows shows only an answer that could hold it. Where the list moves, what was read
            // may have been pushed here from before: then it takes the same records twice.
            let could_show = asked.overlap == 0 || count > asked.overlap;
            if end > self.known_ground() {
                return could_show && self.stale >= if self.evidence.moved { STALE_PAGES_MAX / 2 } else { 1 };
            }
            if could_show && self.stale >= STALE_PAGES_MAX - 1 {
                return true;
            }
        }
        if page.next_record.is_some_and(|next| u64::try_from(next).is_ok_and(|next| next > end)) {
            return false;
        }
        match page.matched {
            // A round number may be where a search engine stops counting; one that was never more than what came may count the page.
            Some(matched) => self.matched_is_total() && matched % 5_000 != 0,
            None => false,
        }
    }

    /// Whether only records are left that were edited since the run began; the next run reads those.
    fn is_chasing(&mut self, page: &PageFacts<'_>, asked: Asked) -> bool {
        let beyond = page.elements.get(usize::try_from(asked.overlap).unwrap_or(usize::MAX)..).unwrap_or_default();
        if let Some(first) = beyond.first() {
            let edited = |at: Micros| at > self.order.started && at <= page.server_now + 86_400 * SECOND;
            let after_start = self.list.landing.is_some() && first.interval.is_some_and(|interval| edited(interval.start));
            self.chase = if after_start { self.chase + 1 } else { 0 };
        }
        let allowance = u64::from(CHASE_PAGES_MAX) * u64::from(self.size_max);
        let overgrown = self.list.landing.is_none()
            && self.matched_is_total()
            && self.list.matched_first.is_some_and(|first| self.list.boundary > first.saturating_mul(2).saturating_add(allowance));
        // What follows may be older than the run: nothing shows that the next one would read it.
        self.evidence.short |= overgrown;
        let left = self.chase >= CHASE_PAGES_MAX;
        self.evidence.left |= left;
        left || overgrown
    }

    /// Whether a record cannot leave its place in the list without showing another stamp.
    fn follows_stamps(&self) -> bool {
        let record = self.order.clock == Some(Clock::Record) && self.order.clock_sure;
        record && self.order.sorted && self.ascending && !self.contradicted
    }

    fn keys_usable(&self) -> bool {
        let allowed = match self.keys {
            Keys::Filtered => self.list.window.lower.is_some(),
            Keys::Always => true,
            Keys::Never => false,
        };
        let sayable = !self.order.days_only;
        allowed && sayable && self.follows_stamps() && self.shapes.uniform()
    }

    fn go_on_by_key(&mut self) -> bool {
        if !self.keys_usable() {
            return false;
        }
        let Some(key) = self.tail.first() else { return false };
        let at = |text: &str| timestamp::parse(text).map(|interval| interval.nominal);
        let present = self.list.window.lower.as_ref().and_then(|lower| at(lower.literal()));
        if at(&key.text) <= present {
            return false;
        }
        self.enter_key();
        true
    }

    /// Makes the newest key of the tail the lower bound of the list.
    fn enter_key(&mut self) {
        if self.tail.is_empty() {
            return;
        }
        let key = self.tail.remove(0);
        let window = Window { lower: Some(Lower::From(key.text)), upper: self.list.window.upper.clone() };
        self.list = List { window, boundary: key.known, landing: Some(key.known), ..List::default() };
    }

    /// The list that the key begins does not begin with it. Once that is a change in between; where the older keys always lead back to it,
    /// the catalogue reads it otherwise.
    fn try_older_key(&mut self) {
        let key = self.list.window.lower.as_ref().and_then(|lower| timestamp::parse(lower.literal())).map(|key| key.nominal);
        self.strays = if key > self.strayed { 1 } else { self.strays + 1 };
        self.strayed = self.strayed.max(key);
        if self.tail.is_empty() || self.strays >= STRAYS_MAX {
            return self.leave_keys();
        }
        self.enter_key();
    }

    fn leave_keys(&mut self) {
        self.keys = Keys::Never;
        self.next_pass();
    }

    fn end_list(&mut self) {
        if self.may_be_pinned() && self.look_beyond() {
            return;
        }
        self.bad.append(&mut self.suspects);
        self.next_part();
    }

    /// Decides how sure it is that this pass saw everything; see the header.
    fn end_pass(&mut self) {
        let Evidence { shrunk, short, bare, new, .. } = self.evidence;
        let proven = !bare && (self.follows_stamps() || self.order.window.upper.is_some());
        if self.is_quiet() || (proven && !short) {
            self.state = State::Done(Certainty::Sure);
            return;
        }
        if self.order.clock.is_none() && !self.clock_asked {
            self.state = State::NeedsClock(Want::EndPass);
            return;
        }
        let total = self.list.matched_last.filter(|_| self.matched_is_total() && self.list.window == self.order.window);
        let counted = self.distinct_known && total.is_some_and(|total| self.distinct + self.anonymous >= total);
        let nothing_new = self.pass > 1 && new == 0;
        let accounted = if shrunk { nothing_new && total.is_some() } else { counted };
        if !short && accounted {
            self.state = State::Done(Certainty::Sure);
        } else if self.pass >= PASSES_MAX || (short && nothing_new) {
            self.state = State::Done(Certainty::Told);
        } else {
            self.next_pass();
        }
    }

    fn next_pass(&mut self) {
        self.pass += 1;
        if self.pass > PASSES_MAX {
            self.state = State::Done(Certainty::Told);
            return;
        }
        self.list = List { window: self.order.window.clone(), ..List::default() };
        self.evidence = Evidence::default();
        self.parts.clear();
        self.part = Part { from: None, to: None };
        self.stale = 0;
        self.chase = 0;
        self.anchors.clear();
        self.state = State::Reading;
    }
}

/// Whether a page follows on what was read before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Contiguous,
    /// It was asked for without overlap: the boundary must be looked at once more.
    Unproven,
    MovedFurther,
    LandedElsewhere,
}

/// The last stamps of a page, newest first, with how many records of each are known; empty when the last element has none that can be read.
/// What a catalogue cannot be expected to take as a literal is no key.
fn tail_keys(elements: &[ElementFacts<'_>]) -> Vec<Key> {
    let mut keys: Vec<Key> = Vec::new();
    for element in elements.iter().rev() {
        let Some(text) = element.modified.filter(|_| element.interval.is_some()) else { break };
        if let Some(key) = keys.last_mut().filter(|key| key.text == text) {
            key.known += 1;
        } else if keys.len() < KEYS_MAX {
            keys.push(Key { text: text.to_owned(), known: 1 });
        } else {
            break;
        }
    }
    keys.retain(|key| watermark::is_common(&key.text));
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order() -> Order {
        Order {
            window: Window::default(),
            element_set: ElementSet::Full,
            page_size: 100,
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

    /// A catalogue that ignores the position and sends the same page for ever; how many requests until the plan has had enough.
    fn requests_for_the_same_page(names: &[Option<String>]) -> u32 {
        let mut plan = Plan::new(order());
        let mut passes_seen = 0;
        for request in 1..2_000 {
            match plan.step() {
                Step::Ask(_) => {
                    let seen = match (passes_seen, plan.pass()) {
                        (0, _) => Seen::New,
                        (seen, pass) if seen < pass => Seen::Earlier,
                        _ => Seen::Here,
                    };
                    passes_seen = plan.pass();
                    let facts = |name| ElementFacts {
                        identifier: name,
                        modified: None,
                        interval: None,
                        seen: if name.is_some() { seen } else { Seen::Anonymous },
                    };
                    let elements: Vec<_> = names.iter().map(|name| facts(name.as_deref())).collect();
                    plan.on_page(&PageFacts { elements: &elements, matched: Some(11), next_record: None, server_now: 0 });
                }
                Step::Calibrate => plan.on_clock(None, false, false),
                Step::Count(_) => plan.on_count(Some(11)),
                Step::Done(_) | Step::Failed(_) => return request,
            }
        }
        u32::MAX
    }

    #[test]
    fn the_same_page_for_ever_ends_the_window_wherever_its_nameless_record_stands() {
        for nameless in 0..11 {
            let names: Vec<_> = (0..11).map(|place| (place != nameless).then(|| format!("r{place}"))).collect();
            let requests = requests_for_the_same_page(&names);
            assert!(requests < 200, "nameless at {nameless}: {requests}");
        }
    }

    /// Whatever the position, some of twelve records come, in an order of their own, and nobody counts or somebody counts ahead.
    #[test]
    fn records_in_no_order_for_ever_end_the_window() {
        for ahead in [None, Some(5), Some(100)] {
            let mut plan = Plan::new(order());
            let mut met: std::collections::BTreeMap<u64, u32> = std::collections::BTreeMap::new();
            let (mut state, mut requests) = (1_u64, 0);
            loop {
                requests += 1;
                assert!(requests < 600, "{ahead:?}: it goes on for ever");
                let query = match plan.step() {
                    Step::Ask(query) => query,
                    Step::Calibrate => {
                        plan.on_clock(Some(Clock::None), false, false);
                        continue;
                    }
                    Step::Count(_) => {
                        plan.on_count(None);
                        continue;
                    }
                    Step::Done(certainty) => {
                        assert_eq!(certainty, Certainty::Told, "{ahead:?}");
                        break;
                    }
                    Step::Failed(_) => break,
                };
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let names: Vec<(u64, String)> =
                    (0..5).map(|nth| (state >> 33) + nth * 5).map(|n| (n % 12, format!("r{}", n % 12))).collect();
                let elements: Vec<_> = names
                    .iter()
                    .map(|(number, name)| {
                        let seen = match met.get(number) {
                            None => Seen::New,
                            Some(pass) if *pass == plan.pass() => Seen::Here,
                            Some(_) => Seen::Earlier,
                        };
                        ElementFacts { identifier: Some(name), modified: None, interval: None, seen }
                    })
                    .collect();
                met.extend(names.iter().map(|(number, _)| (*number, plan.pass())));
                let matched = ahead.map(|ahead| query.start_position + 5 + ahead);
                plan.on_page(&PageFacts { elements: &elements, matched, next_record: None, server_now: 0 });
            }
        }
    }

    /// The filter follows another clock than the stamps: the list of the newest key begins elsewhere, that of the key before leads back.
    #[test]
    fn keys_that_lead_in_a_circle_are_given_up() {
        let window = Window { lower: Some(Lower::After("2025-01-01".to_owned())), upper: None };
        let sure = Order { clock: Some(Clock::Record), clock_sure: true, sorted: true, page_size: 2, window, ..order() };
        let mut plan = Plan::new(sure);
        let mut met: std::collections::BTreeMap<&str, u32> = std::collections::BTreeMap::new();
        for _ in 0..100 {
            let query = match plan.step() {
                Step::Ask(query) => query,
                Step::Done(_) => return assert_eq!(met.len(), 4),
                other => panic!("{other:?}"),
            };
            let from = match &query.window.lower {
                Some(Lower::From(from)) => from.as_str(),
                _ => "",
            };
            let all = [("r1", "2025-01-02"), ("r2", "2025-01-03"), ("r3", "2025-01-04"), ("r4", "2025-01-05")];
            let list = if from == "2025-01-03" { &all[2..] } else { &all };
            let before = usize::try_from(query.start_position).unwrap() - 1;
            let shown: Vec<_> = list.iter().skip(before).take(2).copied().collect();
            let facts = |(identifier, modified): &(&'static str, &'static str)| {
                let seen = match met.get(identifier) {
                    None => Seen::New,
                    Some(pass) if *pass == plan.pass() => Seen::Here,
                    Some(_) => Seen::Earlier,
                };
                let interval = timestamp::parse(modified);
                ElementFacts { identifier: Some(identifier), modified: Some(modified), interval, seen }
            };
            let elements: Vec<_> = shown.iter().map(facts).collect();
            met.extend(shown.iter().map(|(identifier, _)| (*identifier, plan.pass())));
            plan.on_page(&PageFacts { elements: &elements, matched: Some(4), next_record: None, server_now: 0 });
        }
        panic!("it goes on for ever");
    }
}
