//! What was found out, as a table for people: a finding a line, with its mark, wrapped at 80 columns.
//!
//! `check` and `status` speak through it. Text only; whether it may be coloured is for whoever knows the terminal.

/// Columns of a terminal.
pub const COLUMNS: usize = 80;
/// Columns of the longest name, and the blank after it.
const NAME: usize = 17;
/// Columns before the text of a finding: the name, the mark, the blank after it.
const MARGIN: usize = NAME + 4;
/// Columns that are left free before a word that stands whole.
const INDENT_MIN: usize = 2;

/// Seconds of each unit that spans of time are told in, by rising length.
const UNITS: [(u64, &str); 5] = [(1, "second"), (60, "minute"), (3_600, "hour"), (86_400, "day"), (365 * 86_400, "year")];

const RESET: &str = "\u{1b}[0m";
const BOLD: &str = "\u{1b}[1m";

/// How a finding is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// As it should be.
    Ok,
    /// Not as it should be; a harvest copes.
    Odd,
    /// A harvest fails on it, or failed.
    Bad,
}

impl Mark {
    /// As it stands in the table.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Mark::Ok => "ok",
            Mark::Odd => "odd",
            Mark::Bad => "bad",
        }
    }

    /// Green, yellow, red, as ECMA-48 has them (8.3.117).
    const fn colour(self) -> &'static str {
        match self {
            Mark::Ok => "\u{1b}[32m",
            Mark::Odd => "\u{1b}[33m",
            Mark::Bad => "\u{1b}[31m",
        }
    }
}

/// One thing that was found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is about, a word or two.
    pub finding: &'static str,
    /// How it is to be taken.
    pub mark: Mark,
    /// What was found, one line. Text from outside is escaped.
    pub text: String,
}

/// Whether a text is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// It is not.
    Plain,
    /// It is, by control sequences of a terminal.
    Coloured,
}

impl Paint {
    fn around(self, text: &str, colour: &str) -> String {
        match self {
            Paint::Plain => text.to_owned(),
            Paint::Coloured => format!("{colour}{text}{RESET}"),
        }
    }

    /// A heading.
    #[must_use]
    pub fn heading(self, text: &str) -> String {
        self.around(text, BOLD)
    }

    /// A text in the colour of a mark.
    #[must_use]
    pub fn marked(self, text: &str, mark: Mark) -> String {
        self.around(text, mark.colour())
    }
}

/// A span of time in words, such as `3 hours`: in the longest unit of which there are two, so that at most a third is passed over.
#[must_use]
pub fn lasting(seconds: u64) -> String {
    let unit = UNITS.iter().rev().find(|(length, _)| seconds >= 2 * length);
    let (length, name) = unit.unwrap_or(&(1, "second"));
    let count = seconds / length;
    format!("{count} {name}{}", if count == 1 { "" } else { "s" })
}

/// The findings, each with its line end.
#[must_use]
pub fn table(findings: &[Finding], paint: Paint) -> String {
    let mut out = String::new();
    for Finding { finding, mark, text } in findings {
        let name = format!("{finding:<NAME$}");
        let padding = " ".repeat(MARGIN.saturating_sub(NAME + mark.as_str().len()));
        out.push_str(&format!("{name}{}{padding}", paint.marked(mark.as_str(), *mark)));
        push_wrapped(&mut out, text);
    }
    out
}

/// Breaks between words, from the margin on. A word that is wider than what is left of the screen stands whole on a line of its own, as far
/// to the left as it needs, so that an address can be copied; one that no line holds is taken apart.
fn push_wrapped(out: &mut String, text: &str) {
    let mut column = MARGIN;
    for word in text.split(' ').filter(|word| !word.is_empty()).flat_map(pieces) {
        let width = word.chars().count();
        let is_fresh = column == MARGIN;
        if column + usize::from(!is_fresh) + width > COLUMNS {
            column = MARGIN.min(COLUMNS.saturating_sub(width));
            out.truncate(out.trim_end_matches(' ').len());
            out.push('\n');
            out.push_str(&" ".repeat(column));
        } else if !is_fresh {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += width;
    }
    out.truncate(out.trim_end_matches(' ').len());
    out.push('\n');
}

/// A word as it is, or in pieces that fit from the margin on, cut behind what parts an address.
fn pieces(word: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = word;
    while rest.chars().count() > if pieces.is_empty() { COLUMNS - INDENT_MIN } else { COLUMNS - MARGIN } {
        let end = rest.char_indices().nth(COLUMNS - MARGIN).map_or(rest.len(), |(at, _)| at);
        let (room, _) = rest.split_at(end);
        let cut = room.rfind(['/', '?', '&', ';', ',']).map_or(end, |at| at + 1);
        let (piece, after) = rest.split_at(cut);
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(finding: &'static str, mark: Mark, text: &str) -> Finding {
        Finding { finding, mark, text: text.to_owned() }
    }

    #[test]
    fn findings_are_aligned_and_wrapped_at_80_columns() {
        let long = "one two three four ".repeat(8);
        let text = table(&[found("clock difference", Mark::Ok, "0 s"), found("property", Mark::Odd, &long)], Paint::Plain);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "clock difference ok  0 s");
        assert!(lines[1].starts_with("property         odd one two"));
        assert!(lines[2].starts_with("                     ") && lines[2].trim_start().starts_with(|c: char| c.is_alphabetic()));
        assert!(lines.iter().all(|line| line.len() <= 80 && *line == line.trim_end()), "{text}");
    }

    #[test]
    fn a_wide_word_stands_whole_on_its_own_line_and_what_follows_goes_back_to_the_margin() {
        let (wide, wider) = ("w".repeat(70), "v".repeat(100));
        let text = table(&[found("address", Mark::Ok, &format!("see {wide} or"))], Paint::Plain);
        let margin = " ".repeat(21);
        assert_eq!(text, format!("address          ok  see\n          {wide}\n{margin}or\n"));
        let text = table(&[found("address", Mark::Bad, &format!("{wider} x"))], Paint::Plain);
        assert_eq!(text, format!("address          bad {}\n{margin}{} x\n", "v".repeat(59), "v".repeat(41)));
        let query = format!("at http://a.example/csw?{}&{}&c=1: gone", "a".repeat(30), "b".repeat(40));
        let text = table(&[found("address", Mark::Bad, &query)], Paint::Plain);
        let (first, second) = ("a".repeat(30), "b".repeat(40));
        assert_eq!(text, format!("address          bad at http://a.example/csw?{first}&\n{margin}{second}&c=1: gone\n"));
    }

    #[test]
    fn colours_change_no_column() {
        let findings = [found("gzip", Mark::Ok, "a"), found("sort", Mark::Odd, "b"), found("cap", Mark::Bad, "c")];
        let coloured = table(&findings, Paint::Coloured);
        assert_eq!(coloured.lines().next(), Some("gzip             \u{1b}[32mok\u{1b}[0m  a"));
        let bare = ["\u{1b}[32m", "\u{1b}[33m", "\u{1b}[31m", RESET].iter().fold(coloured, |text, code| text.replace(code, ""));
        assert_eq!(bare, table(&findings, Paint::Plain));
    }
}
