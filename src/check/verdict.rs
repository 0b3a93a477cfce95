//! The verdict of `check` as text and as JSON: findings, marks, the command that is recommended, the exit code.
//!
//! Text only; where it goes is for `main.rs`, and what is found for `check.rs`.

use crate::error::Error;
use crate::exit::ExitStatus;
use crate::report::push_json_text;

/// Columns of a terminal.
const COLUMNS: usize = 80;
/// Columns before the text of a finding: the longest name, the mark, a blank after each.
const MARGIN: usize = 21;

/// How a finding is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// As it should be.
    Ok,
    /// Not as it should be; a harvest copes.
    Odd,
    /// A harvest fails on it.
    Bad,
}

impl Mark {
    /// As it stands in the verdict.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Mark::Ok => "ok",
            Mark::Odd => "odd",
            Mark::Bad => "bad",
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

/// All that was found out.
#[derive(Debug, Default)]
pub struct Verdict {
    /// The findings, in the order in which they are told.
    pub findings: Vec<Finding>,
    /// The command that is recommended, where a harvest would work.
    pub recommended: Option<String>,
    /// What a harvest would end with.
    pub error: Option<Error>,
}

impl Verdict {
    /// The exit status that a harvest would have.
    #[must_use]
    pub fn status(&self) -> ExitStatus {
        self.error.as_ref().map_or(ExitStatus::Ok, Error::exit_status)
    }

    /// A finding a line, wrapped at 80 columns, and the recommended command or the exit code at the end, with the line end.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::new();
        for Finding { finding, mark, text } in &self.findings {
            push_wrapped(&mut out, &format!("{finding:<16} {:<3}", mark.as_str()), text);
        }
        if !out.is_empty() {
            out.push('\n');
        }
        match (&self.recommended, &self.error) {
            (Some(command), _) => out.push_str(&format!("{command}\n")),
            (None, Some(error)) => {
                let status = error.exit_status();
                out.push_str(&format!("A harvest would end with {} ({}).\n", status.code(), status.name()));
            }
            (None, None) => {}
        }
        out
    }

    /// One JSON object on one line, without the line end.
    #[must_use]
    pub fn json(&self) -> String {
        let mut out = String::from("{\"findings\":[");
        for (number, Finding { finding, mark, text }) in self.findings.iter().enumerate() {
            out.push_str(if number == 0 { "{\"finding\":" } else { ",{\"finding\":" });
            push_json_text(&mut out, finding);
            out.push_str(",\"mark\":");
            push_json_text(&mut out, mark.as_str());
            out.push_str(",\"text\":");
            push_json_text(&mut out, text);
            out.push('}');
        }
        out.push_str("],\"recommended\":");
        push_text_or_null(&mut out, self.recommended.as_deref());
        out.push_str(&format!(",\"exit_code\":{},\"error\":", self.status().code()));
        push_text_or_null(&mut out, self.error.as_ref().map(Error::to_string).as_deref());
        out.push('}');
        out
    }
}

fn push_text_or_null(out: &mut String, text: Option<&str>) {
    match text {
        Some(text) => push_json_text(out, text),
        None => out.push_str("null"),
    }
}

/// Breaks between words; a word that is wider than the screen stands whole, so that an address can be copied.
fn push_wrapped(out: &mut String, head: &str, text: &str) {
    let mut line = format!("{head:<MARGIN$}");
    let mut is_fresh = true;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let blank = usize::from(!is_fresh);
        if !is_fresh && line.chars().count() + blank + word.chars().count() > COLUMNS {
            out.push_str(line.trim_end());
            out.push('\n');
            line = " ".repeat(MARGIN);
            is_fresh = true;
        }
        if !is_fresh {
            line.push(' ');
        }
        line.push_str(word);
        is_fresh = false;
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

/// A word of a command line as a POSIX shell takes it for one.
#[must_use]
pub(super) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict() -> Verdict {
        let long = "one two three four ".repeat(8);
        let findings = vec![
            Finding { finding: "clock difference", mark: Mark::Ok, text: "0 s".to_owned() },
            Finding { finding: "property", mark: Mark::Odd, text: long },
        ];
        Verdict { findings, recommended: Some("csw-harvester harvest 'http://a/csw'".to_owned()), error: None }
    }

    #[test]
    fn findings_are_aligned_and_wrapped_at_80_columns() {
        let text = verdict().text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "clock difference ok  0 s");
        assert!(lines[1].starts_with("property         odd one two"));
        assert!(lines[2].starts_with("                     ") && lines[2].trim_start().starts_with(|c: char| c.is_alphabetic()));
        assert!(lines.iter().all(|line| line.len() <= 80), "{text}");
        assert_eq!(lines.last(), Some(&"csw-harvester harvest 'http://a/csw'"));
    }

    #[test]
    fn the_json_holds_all_of_it_on_one_line() {
        let failed = Verdict { error: Some(Error::Config("a \"b\"".to_owned())), recommended: None, ..verdict() };
        let json = failed.json();
        assert!(json.starts_with(r#"{"findings":[{"finding":"clock difference","mark":"ok","text":"0 s"},{"#), "{json}");
        assert!(json.ends_with(r#"],"recommended":null,"exit_code":78,"error":"a \"b\""}"#), "{json}");
    }

    #[test]
    fn a_word_is_quoted_for_the_shell() {
        assert_eq!(quoted("http://a/?b='c'&d"), r"'http://a/?b='\''c'\''&d'");
    }
}
