//! How the tour looks: lines of at most 100 columns on stdout, and a count of what was claimed and of what did not hold.
//!
//! Bold and dim on a terminal only, and not where NO_COLOR is set.

use std::io::{IsTerminal, Write};

const COLUMNS: usize = 100;
const MARGIN: &str = "   ";
/// Before what a command printed.
const INSET: &str = "     ";
const LOG_LINES_MAX: usize = 8;

/// How a line is set off on a terminal, as the number that stands in the escape sequence (ECMA-48, 8.3.117).
#[derive(Clone, Copy)]
enum Style {
    Plain = 0,
    Bold = 1,
    Dim = 2,
}

pub(crate) struct Page {
    styled: bool,
    claims: usize,
    failed: usize,
}

impl Page {
    pub(crate) fn new() -> Self {
        let styled = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Page { styled, claims: 0, failed: 0 }
    }

    pub(crate) fn heading(&mut self, text: &str) {
        self.gap();
        self.put("", Style::Bold, text);
        self.gap();
    }

    /// A rule and, unless there is none, a heading below it.
    pub(crate) fn chapter(&mut self, heading: &str) {
        self.gap();
        self.put("", Style::Dim, &"-".repeat(COLUMNS));
        self.gap();
        if !heading.is_empty() {
            self.put("", Style::Bold, heading);
            self.gap();
        }
    }

    pub(crate) fn gap(&mut self) {
        self.put("", Style::Plain, "");
    }

    pub(crate) fn text(&mut self, text: &str) {
        for line in wrapped(text, COLUMNS - MARGIN.len(), "") {
            self.put(MARGIN, Style::Plain, &line);
        }
    }

    /// A command as it is typed; further lines of it stand a little further in.
    pub(crate) fn command(&mut self, command: &str) {
        self.gap();
        for (number, line) in command.lines().enumerate() {
            let lead = if number == 0 { "$ " } else { "      " };
            self.put(MARGIN, Style::Bold, &format!("{lead}{line}"));
        }
    }

    /// What a command printed.
    pub(crate) fn output(&mut self, text: &str) {
        for line in text.lines() {
            for part in wrapped(line, COLUMNS - INSET.len(), "    ") {
                self.put(INSET, Style::Dim, &part);
            }
        }
    }

    /// What a command logged; the middle of a long log is left out, and said to be.
    pub(crate) fn log(&mut self, text: &str) {
        let lines: Vec<&str> = text.lines().collect();
        if lines.len() <= LOG_LINES_MAX {
            return self.output(text);
        }
        let (first, last) = (LOG_LINES_MAX - 2, lines.len() - 2);
        self.output(&lines[..first].join("\n"));
        self.put(INSET, Style::Plain, &format!("... {} more lines like these ...", last - first));
        self.output(&lines[last..].join("\n"));
    }

    /// How the command ended.
    pub(crate) fn ending(&mut self, text: &str) {
        self.put(MARGIN, Style::Bold, text);
    }

    /// Says whether what is claimed holds, and when it does not, what was found.
    pub(crate) fn claim(&mut self, claim: &str, holds: bool, found: &str) {
        self.claims += 1;
        if holds {
            return self.put(MARGIN, Style::Plain, &format!("ok  {claim}"));
        }
        self.failed += 1;
        self.put(MARGIN, Style::Bold, &format!("NOT SO: {claim}"));
        self.output(found);
    }

    /// (what was claimed, what of it did not hold)
    pub(crate) fn score(&self) -> (usize, usize) {
        (self.claims, self.failed)
    }

    fn put(&self, margin: &str, style: Style, line: &str) {
        let line = match style {
            Style::Bold | Style::Dim if self.styled => format!("\x1b[{}m{line}\x1b[0m", style as u8),
            _ => line.to_owned(),
        };
        // A reader that went away is no reason to stop: the claims are checked all the same.
        let _ = writeln!(std::io::stdout(), "{}", format!("{margin}{line}").trim_end());
    }
}

/// Broken at blanks, and within words that are wider than a line; every line but the first begins with `lead`.
fn wrapped(text: &str, width: usize, lead: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = text.trim_end().to_owned();
    while rest.chars().count() > width {
        let indent = rest.len() - rest.trim_start().len();
        let blanks = rest.char_indices().take(width + 1).filter(|(at, c)| *c == ' ' && *at > indent);
        let word_end = rest.char_indices().nth(width).map_or(rest.len(), |(at, _)| at);
        let at = blanks.last().map_or(word_end, |(at, _)| at);
        lines.push(rest[..at].trim_end().to_owned());
        rest = format!("{lead}{}", rest[at..].trim_start());
    }
    lines.push(rest);
    lines
}
