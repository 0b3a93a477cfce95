//! What an unfinished run resumes from, as one text for one column.
//!
//! Lines of `name value`, values escaped so that any identifier fits. A text that this version did not write decodes to nothing, and the
//! window is read from its beginning: that loses time, never records.

use super::{Keys, List, Order, PASSES_MAX, Part, Plan, State};
use crate::csw::{Lower, Window};
use crate::timestamp::{Micros, Shapes};

/// First line of every cursor; raised whenever the meaning of a line changes.
const FORMAT: &str = "cursor 2";
/// Lines read at most: parts and anchors are bounded far below.
const LINES_MAX: usize = 20_000;
/// No list is as long, and no sum of positions within it too large to be counted.
const POSITION_MAX: u64 = 1 << 48;
/// The years 0001 to 9999, which is all that a stamp can name.
const INSTANTS: std::ops::RangeInclusive<Micros> = -62_135_596_800_000_000..=253_402_300_799_999_999;

impl Plan {
    /// The state after the pages handed in so far, for [`Plan::resume`].
    #[must_use]
    pub fn cursor(&self) -> String {
        let mut out = Lines(String::from(FORMAT));
        out.window("window", &self.order.window);
        out.window("list", &self.list.window);
        out.number("started", Some(self.order.started));
        out.number("boundary", Some(self.list.boundary));
        out.number("step_back", Some(self.list.step_back));
        out.number("landing", self.list.landing);
        out.number("hole", Some(self.list.hole));
        out.number("furthest", Some(self.list.furthest));
        out.number("last", self.list.last);
        out.number("matched_first", self.list.matched_first);
        out.number("matched_last", self.list.matched_last);
        out.number("matched_shown", self.list.matched_shown);
        out.flag("matched_is_total", self.order.matched_is_total);
        out.flag("splitting", self.state == State::Splitting);
        out.part("part", self.part);
        for part in &self.parts {
            out.part("later", *part);
        }
        out.number("size_max", Some(self.size_max));
        out.number("cap", self.cap);
        out.line("keys", keys_name(self.keys));
        out.line("shapes", &self.shapes.to_text());
        out.flag("ascending", self.ascending);
        out.number("ceiling", self.ceiling);
        out.number("pass", Some(self.pass));
        out.flag("moved", self.evidence.moved);
        out.flag("shrunk", self.evidence.shrunk);
        out.flag("short", self.evidence.short);
        out.flag("bare", self.evidence.bare);
        out.flag("unread", self.evidence.hole);
        out.flag("left", self.evidence.left);
        out.number("anonymous", Some(self.anonymous));
        out.number("matched", self.matched);
        out.flag("matched_lies", self.matched_lies);
        for (identifier, modified) in &self.anchors {
            out.line("anchor", identifier);
            out.line("stamp", modified);
        }
        out.0
    }

    /// Takes up an unfinished run, when it was reading the same window; `None` otherwise.
    ///
    /// The run's own beginning (`started`) is kept: what was edited after it is for the run after this one.
    #[must_use]
    pub fn resume(order: &Order, text: &str) -> Option<Self> {
        let mut lines = text.lines().take(LINES_MAX);
        if lines.next() != Some(FORMAT) {
            return None;
        }
        let mut plan = Plan { list: List::default(), ..Plan::new(order.clone()) };
        let mut window = Window::default();
        for line in lines {
            let (name, value) = line.split_once(' ')?;
            plan.read_line(name, &unescape(value), &mut window)?;
        }
        plan.distinct_known = false;
        plan.size_max = plan.size_max.min(order.page_size.max(1));
        plan.size = plan.size_max;
        (window == order.window).then_some(plan)
    }

    fn read_line(&mut self, name: &str, value: &str, window: &mut Window) -> Option<()> {
        match name {
            "window" => read_edge(window, value)?,
            "list" => read_edge(&mut self.list.window, value)?,
            "started" => self.order.started = read_instant(value)?,
            "boundary" => self.list.boundary = read_position(value)?,
            "step_back" => self.list.step_back = read_position(value)?,
            "landing" => self.list.landing = Some(read_position(value)?),
            "hole" => self.list.hole = read_position(value)?,
            "last" => self.list.last = Some(read_instant(value)?),
            "furthest" => self.list.furthest = read_position(value)?,
            "matched_first" => self.list.matched_first = Some(value.parse().ok()?),
            "matched_last" => self.list.matched_last = Some(value.parse().ok()?),
            "matched_shown" => self.list.matched_shown = Some(value.parse().ok()?),
            "matched_is_total" => self.order.matched_is_total = value == "yes",
            "splitting" if value == "yes" => self.state = State::Splitting,
            "splitting" => {}
            "part" => self.part = read_part(value)?,
            "later" => self.parts.push(read_part(value)?),
            "size_max" => self.size_max = value.parse().ok().filter(|size| *size > 0)?,
            "cap" => self.cap = Some(value.parse().ok()?),
            "keys" => self.keys = keys_named(value)?,
            "shapes" => self.shapes = Shapes::from_text(value),
            "ascending" => self.ascending = value == "yes",
            "ceiling" => self.ceiling = Some(value.parse().ok()?),
            "pass" => self.pass = value.parse().ok().filter(|pass| (1..=PASSES_MAX).contains(pass))?,
            "moved" => self.evidence.moved = value == "yes",
            "shrunk" => self.evidence.shrunk = value == "yes",
            "short" => self.evidence.short = value == "yes",
            "bare" => self.evidence.bare = value == "yes",
            "unread" => self.evidence.hole = value == "yes",
            "left" => self.evidence.left = value == "yes",
            "anonymous" => self.anonymous = read_position(value)?,
            "matched" => self.matched = Some(value.parse().ok()?),
            "matched_lies" => self.matched_lies = value == "yes",
            "anchor" => self.anchors.push((value.to_owned(), String::new())),
            "stamp" => value.clone_into(&mut self.anchors.last_mut()?.1),
            _ => return None,
        }
        Some(())
    }
}

struct Lines(String);

impl Lines {
    fn line(&mut self, name: &str, value: &str) {
        self.0.push('\n');
        self.0.push_str(name);
        self.0.push(' ');
        self.0.push_str(&escape(value));
    }

    fn number(&mut self, name: &str, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.line(name, &value.to_string());
        }
    }

    fn flag(&mut self, name: &str, value: bool) {
        self.line(name, if value { "yes" } else { "no" });
    }

    fn window(&mut self, name: &str, window: &Window) {
        match &window.lower {
            Some(Lower::After(literal)) => self.line(name, &format!("after {literal}")),
            Some(Lower::From(literal)) => self.line(name, &format!("from {literal}")),
            None => {}
        }
        if let Some(upper) = &window.upper {
            self.line(name, &format!("upto {upper}"));
        }
    }

    fn part(&mut self, name: &str, part: Part) {
        let edge = |edge: Option<Micros>| edge.map_or("-".to_owned(), |at| at.to_string());
        self.line(name, &format!("{} {}", edge(part.from), edge(part.to)));
    }
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r")
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some('r') => out.push('\r'),
                Some(other) => out.push(other),
                None => {}
            },
            _ => out.push(c),
        }
    }
    out
}

fn read_edge(window: &mut Window, value: &str) -> Option<()> {
    let (kind, literal) = value.split_once(' ')?;
    match kind {
        "after" => window.lower = Some(Lower::After(literal.to_owned())),
        "from" => window.lower = Some(Lower::From(literal.to_owned())),
        "upto" => window.upper = Some(literal.to_owned()),
        _ => return None,
    }
    Some(())
}

fn read_position(value: &str) -> Option<u64> {
    value.parse().ok().filter(|position| *position <= POSITION_MAX)
}

fn read_instant(value: &str) -> Option<Micros> {
    value.parse().ok().filter(|at| INSTANTS.contains(at))
}

fn read_part(value: &str) -> Option<Part> {
    let (from, to) = value.split_once(' ')?;
    let edge = |text: &str| if text == "-" { Some(None) } else { read_instant(text).map(Some) };
    Some(Part { from: edge(from)?, to: edge(to)? })
}

const fn keys_name(keys: Keys) -> &'static str {
    match keys {
        Keys::Filtered => "filtered",
        Keys::Always => "always",
        Keys::Never => "never",
    }
}

fn keys_named(name: &str) -> Option<Keys> {
    [Keys::Filtered, Keys::Always, Keys::Never].into_iter().find(|keys| keys_name(*keys) == name)
}
