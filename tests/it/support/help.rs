//! The texts that `--help` prints, taken apart.
//!
//! They are laid out by argh 0.1.19: a usage line, what it is for, and sections whose entries are a name, blanks and a text that goes on in
//! deeper lines. Nothing is known here of which commands and options there are.

/// An entry of a section: its name as written, and its text in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// The entries of a section, such as `Options:`; none when there is no such section.
pub(crate) fn entries(help: &str, section: &str) -> Vec<Entry> {
    let below = help.lines().skip_while(|line| *line != section).skip(1);
    let mut entries: Vec<Entry> = Vec::new();
    for line in below.take_while(|line| line.starts_with("  ")) {
        match entries.last_mut() {
            Some(entry) if line.starts_with("   ") => {
                entry.text = format!("{} {}", entry.text, line.trim()).trim_start().to_owned();
            }
            _ => {
                let (name, text) = line.trim().split_once("  ").unwrap_or((line.trim(), ""));
                entries.push(Entry { name: name.to_owned(), text: text.trim().to_owned() });
            }
        }
    }
    entries
}

/// What the command is for, in one line.
pub(crate) fn purpose(help: &str) -> String {
    let text = help.lines().skip_while(|line| !line.is_empty()).skip(1);
    text.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The usage line without its first word.
pub(crate) fn usage(help: &str) -> &str {
    let line = help.lines().next().unwrap_or_default();
    line.strip_prefix("Usage: ").unwrap_or(line)
}

/// What the usage line calls the value of an option; none for a switch.
pub(crate) fn value_of<'a>(help: &'a str, option: &str) -> Option<&'a str> {
    let (_, after) = usage(help).split_once(&format!("{option} <"))?;
    after.split_once('>').map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "Usage: x y [--db <db>] [--full] [--a-long-name-of-an-option <n...>] [--] <url>\n\nDo it,\nthen exit.\n\n\
        Positional Arguments:\n  url               the address\n\nOptions:\n  --db              the store\n                    \
        (default: a  b)\n  --full            y\n  --a-long-name-of-an-option\n                    z\n  \
        --help, help      display usage information\n\nNotes:\n  --z (default: 1)\n";

    fn entry(name: &str, text: &str) -> Entry {
        Entry { name: name.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_section_is_taken_apart() {
        let options = [
            entry("--db", "the store (default: a  b)"),
            entry("--full", "y"),
            entry("--a-long-name-of-an-option", "z"),
            entry("--help, help", "display usage information"),
        ];
        assert_eq!(entries(HELP, "Options:"), options);
        assert_eq!(entries(HELP, "Positional Arguments:"), [entry("url", "the address")]);
        assert_eq!(entries(HELP, "Commands:"), Vec::new());
    }

    #[test]
    fn purpose_usage_and_values_are_read() {
        assert_eq!(purpose(HELP), "Do it, then exit.");
        assert!(usage(HELP).starts_with("x y [--db"));
        assert_eq!(value_of(HELP, "--db"), Some("db"));
        assert_eq!(value_of(HELP, "--full"), None);
        assert_eq!(value_of(HELP, "--a-long-name-of-an-option"), Some("n..."));
    }
}
