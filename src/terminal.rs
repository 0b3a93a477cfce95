//! Whether stdout is a terminal that wants colours.
//!
//! Colours are for people: never into a pipe or a file, not where `NO_COLOR` is set to anything (no-color.org), and not on a terminal
//! that knows none.

use std::io::IsTerminal;

use crate::findings::Paint;

/// How what goes to stdout is painted.
#[must_use]
pub fn paint_of_stdout() -> Paint {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let is_dumb = set("TERM").is_none_or(|term| term == "dumb");
    if std::io::stdout().is_terminal() && set("NO_COLOR").is_none() && !is_dumb { Paint::Coloured } else { Paint::Plain }
}
