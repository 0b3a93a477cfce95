//! The tables of README.md as rows, and the options that a help text names.

use crate::support::help::{self, Entry};

/// An option and its default, `off` for a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CommandOption {
    pub(super) name: String,
    pub(super) default: String,
}

/// The rows of the first table below a heading, without its own header; backticks are dropped.
pub(super) fn rows_below(markdown: &str, heading: &str) -> Vec<Vec<String>> {
    let below = markdown.lines().skip_while(|line| *line != heading).skip(1);
    let section = below.take_while(|line| !line.starts_with('#'));
    let table = section.skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    table.skip(2).map(cells).collect()
}

fn cells(line: &str) -> Vec<String> {
    let inner = line.trim().trim_start_matches('|').trim_end_matches('|');
    inner.split(" | ").map(|cell| cell.replace('`', "").trim().to_owned()).collect()
}

/// The options of a table whose first column holds an option with the name of its value, and whose second its default.
pub(super) fn options_of_table(rows: &[Vec<String>]) -> Vec<CommandOption> {
    let option = |row: &Vec<String>| CommandOption {
        name: row.first().and_then(|cell| cell.split_whitespace().next()).unwrap_or_default().to_owned(),
        default: row.get(1).cloned().unwrap_or_default(),
    };
    rows.iter().map(option).collect()
}

/// The options of a help text, `--help` aside.
pub(super) fn options_of_help(help: &str) -> Vec<CommandOption> {
    let option = |entry: Entry| {
        let default = entry.text.split_once("(default: ").map_or("off", |(_, rest)| rest.trim_end_matches(')'));
        CommandOption { name: entry.name, default: default.to_owned() }
    };
    help::entries(help, "Options:").into_iter().map(option).filter(|option| !option.name.starts_with("--help")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARKDOWN: &str = "# A\n\n| no |\n| --- |\n| no |\n\n## B\n\nText.\n\n| option | default | meaning |\n| --- | --- | --- |\n\
        | `--db PATH` | `a.db` | x |\n| `--full` | off | y |\n\nMore.\n\n| other |\n| --- |\n| no |\n";
    const HELP: &str = "Usage: x\n\nOptions:\n  --db              the store\n                    (default: a.db)\n  --full            y\n  \
        --help, help      display usage information\n\nNotes:\n  --z (default: 1)\n";

    fn option(name: &str, default: &str) -> CommandOption {
        CommandOption { name: name.to_owned(), default: default.to_owned() }
    }

    #[test]
    fn the_first_table_below_a_heading_is_read() {
        assert_eq!(rows_below(MARKDOWN, "## B"), [["--db PATH", "a.db", "x"], ["--full", "off", "y"]]);
        assert_eq!(rows_below(MARKDOWN, "## C"), Vec::<Vec<String>>::new());
    }

    #[test]
    fn a_table_and_a_help_text_are_read_alike() {
        let expected = [option("--db", "a.db"), option("--full", "off")];
        assert_eq!(options_of_table(&rows_below(MARKDOWN, "## B")), expected);
        assert_eq!(options_of_help(HELP), expected);
    }

    #[test]
    fn another_default_and_a_missing_option_are_differences() {
        let changed = MARKDOWN.replace("`a.db`", "`b.db`");
        assert_ne!(options_of_table(&rows_below(&changed, "## B")), options_of_help(HELP));
        let missing = MARKDOWN.replace("| `--full` | off | y |\n", "");
        assert_ne!(options_of_table(&rows_below(&missing, "## B")), options_of_help(HELP));
    }
}
