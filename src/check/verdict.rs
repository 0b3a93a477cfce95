//! The verdict of `check` as text and as JSON: findings, marks, the command that is recommended, the exit code.
//!
//! Text only; where it goes is for `main.rs`, and what is found for `check.rs`.

use crate::error::Error;
use crate::exit::ExitStatus;
use crate::findings::{Finding, Paint, table};
use crate::report::{push_raw, push_text};

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
    pub fn text(&self, paint: Paint) -> String {
        let mut out = table(&self.findings, paint);
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
        let findings: Vec<String> = self.findings.iter().map(json_of).collect();
        let mut out = String::from("{");
        push_raw(&mut out, "findings", format!("[{}]", findings.join(",")));
        push_text(&mut out, "recommended", self.recommended.as_deref());
        push_raw(&mut out, "exit_code", self.status().code());
        push_text(&mut out, "error", self.error.as_ref().map(Error::to_string).as_deref());
        out.push('}');
        out
    }
}

fn json_of(Finding { finding, mark, text }: &Finding) -> String {
    let mut out = String::from("{");
    push_text(&mut out, "finding", Some(finding));
    push_text(&mut out, "mark", Some(mark.as_str()));
    push_text(&mut out, "text", Some(text));
    out.push('}');
    out
}

/// A word of a command line as a POSIX shell takes it for one.
#[must_use]
pub(super) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::Mark;

    fn verdict() -> Verdict {
        let findings = vec![
            Finding { finding: "clock difference", mark: Mark::Ok, text: "0 s".to_owned() },
            Finding { finding: "property", mark: Mark::Odd, text: "none".to_owned() },
        ];
        Verdict { findings, recommended: Some("csw-harvester harvest 'http://a/csw'".to_owned()), error: None }
    }

    #[test]
    fn the_command_stands_below_the_findings() {
        let text = verdict().text(Paint::Plain);
        assert!(text.starts_with("clock difference ok  0 s\nproperty         odd "), "{text}");
        assert!(text.ends_with("\n\ncsw-harvester harvest 'http://a/csw'\n"), "{text}");
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
