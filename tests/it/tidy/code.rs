//! Rust source as far as tidy needs it: without comments and texts, and the paths that it names.
//!
//! No parser: it knows comments, literals, `use` trees and paths, and nothing of macros or inline modules.

use std::collections::BTreeMap;

/// A path that a file names, from its root (`std`, `crate`, the name of another crate).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) line: usize,
    pub(super) path: String,
}

/// What stands before the tests of a file.
pub(super) fn before_tests(text: &str) -> &str {
    let mut at = 0;
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        if line.trim() == "#[cfg(test)]" && lines.peek().is_some_and(|next| next.starts_with("mod tests")) {
            return &text[..at];
        }
        at += line.len();
    }
    text
}

/// The text with a blank for every character of comments and of what stands within quotes; lines stay where they are.
pub(super) fn bare(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let skipped = literal_or_comment(rest, &out);
        let length = if skipped > 0 { skipped } else { first.len_utf8() };
        let blank = |c: char| if c == '\n' { '\n' } else { ' ' };
        match skipped {
            0 => out.push(first),
            _ => out.extend(rest[..length].chars().map(blank)),
        }
        rest = &rest[length..];
    }
    out
}

// The bytes of the comment or literal at the beginning; 0 for anything else.
fn literal_or_comment(rest: &str, before: &str) -> usize {
    let end_of = |end: Option<usize>| end.unwrap_or(rest.len());
    if rest.starts_with("//") {
        return end_of(rest.find('\n'));
    }
    if rest.starts_with("/*") {
        return block_comment(rest);
    }
    if rest.starts_with('"') {
        return quoted(rest, '"');
    }
    // 'a' and '\n' are characters, 'a without an end is a lifetime.
    if rest.starts_with("'\\") || (rest.starts_with('\'') && rest.chars().nth(2) == Some('\'')) {
        return quoted(rest, '\'');
    }
    let raw = rest.strip_prefix('r').map(|after| after.trim_start_matches('#'));
    let word_goes_on = before.ends_with(|c: char| c.is_alphanumeric() || c == '_') && !before.ends_with('b');
    if let Some(body) = raw.filter(|body| body.starts_with('"') && !word_goes_on) {
        let hashes = rest.len() - body.len() - 1;
        let end = format!("\"{}", "#".repeat(hashes));
        return end_of(body[1..].find(&end).map(|at| hashes + 2 + at + end.len()));
    }
    0
}

fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while let Some(here) = rest.get(at..) {
        if here.is_empty() {
            break;
        }
        let (change, step) = match here {
            _ if here.starts_with("/*") => (1, 2),
            _ if here.starts_with("*/") => (-1, 2),
            _ => (0, here.chars().next().map_or(1, char::len_utf8)),
        };
        depth += change;
        at += step;
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        if c == quote && !escaped {
            return at + 1;
        }
        escaped = c == '\\' && !escaped;
    }
    rest.len()
}

/// Every path that a file of `src` names in `use` and elsewhere, names that it imported spelled out.
pub(super) fn paths(file: &str, text: &str) -> Vec<Named> {
    let code = bare(text);
    let module = module_of(file);
    let mut named = Vec::new();
    let mut imports: BTreeMap<String, String> = BTreeMap::new();
    for (line, tree) in use_trees(&code) {
        let mut leaves = Vec::new();
        expand("", &tree, &mut leaves);
        for (path, name) in leaves {
            let path = rooted(&path, &module);
            imports.insert(name, path.clone());
            named.push(Named { line, path });
        }
    }
    for (number, line) in code.lines().enumerate() {
        for path in words(line).filter(|path| path.contains("::")) {
            let (first, rest) = path.split_once("::").unwrap_or((path, ""));
            let path = match imports.get(first) {
                Some(import) => format!("{import}::{rest}"),
                None => rooted(path, &module),
            };
            named.push(Named { line: number + 1, path });
        }
    }
    named
}

/// `src/csw/xml/name.rs` is csw::xml::name, `src/csw/mod.rs` is csw, `src/lib.rs` is the root.
fn module_of(file: &str) -> Vec<String> {
    let inner = file.trim_start_matches("src/").trim_end_matches(".rs");
    let inner = inner.strip_suffix("/mod").unwrap_or(inner);
    if matches!(inner, "lib" | "main") { Vec::new() } else { inner.split('/').map(str::to_owned).collect() }
}

fn rooted(path: &str, module: &[String]) -> String {
    let mut segments = path.split("::").peekable();
    let mut at = module.to_vec();
    let mut relative = false;
    while let Some(segment) = segments.peek() {
        match *segment {
            "self" => {}
            "super" => drop(at.pop()),
            "crate" => at.clear(),
            _ => break,
        }
        relative = true;
        segments.next();
    }
    let rest = segments.map(str::to_owned);
    if relative {
        std::iter::once("crate".to_owned()).chain(at).chain(rest).collect::<Vec<_>>().join("::")
    } else {
        path.to_owned()
    }
}

// Runs of letters, digits, underscores and pairs of colons.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'))
        .map(|word| word.trim_matches(':'))
        .filter(|word| !word.is_empty())
}

// The trees of all `use` declarations, blanks left out but around `as`, with the lines that they begin in.
fn use_trees(code: &str) -> Vec<(usize, String)> {
    let mut trees = Vec::new();
    let mut offset = 0;
    for (number, line) in code.split_inclusive('\n').enumerate() {
        let start = line.trim_start();
        let declaration = start.strip_prefix("pub").map_or(start, |rest| {
            rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or(rest, |(_, rest)| rest).trim_start()
        });
        if declaration.starts_with("use ") {
            let from = offset + line.len() - declaration.len() + "use ".len();
            let tree = code[from..].split(';').next().unwrap_or_default();
            let spaced = tree.split_whitespace().collect::<Vec<_>>().join(" ");
            trees.push((number + 1, spaced.replace(" as ", "\u{0}").replace(' ', "").replace('\u{0}', " as ")));
        }
        offset += line.len();
    }
    trees
}

// Each leaf of a tree as (path, the name that it gets here).
fn expand(before: &str, tree: &str, leaves: &mut Vec<(String, String)>) {
    let join = |leaf: &str| if before.is_empty() { leaf.to_owned() } else { format!("{before}::{leaf}") };
    if let Some((front, group)) = tree.split_once('{') {
        let inner = group.strip_suffix('}').unwrap_or(group);
        let before = join(front.trim_end_matches("::"));
        let before = before.trim_end_matches("::");
        return split_group(inner).into_iter().for_each(|part| expand(before, part, leaves));
    }
    let (path, renamed) = tree.split_once(" as ").map_or((tree, None), |(path, name)| (path, Some(name)));
    let path = if path == "self" { before.to_owned() } else { join(path) };
    let name = renamed.or(path.rsplit("::").next()).unwrap_or_default().to_owned();
    leaves.push((path, name));
}

// At the commas that stand in no inner group.
fn split_group(inner: &str) -> Vec<&str> {
    let (mut depth, mut from, mut parts) = (0, 0, Vec::new());
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&inner[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inner[from..]);
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths_in(text: &str) -> Vec<String> {
        paths("src/plan/cursor.rs", text).into_iter().map(|named| named.path).collect()
    }

    #[test]
    fn comments_and_literals_are_blanked_and_code_is_not() {
        let text = "a // std::fs\nb(\"std::net \\\" x\", 'c', '\\'', r#\"y\"z\"#, br\"w\"); /* d /* e */\n */ f::<'a>(g)";
        let bare = bare(text);
        let code: String = bare.split_whitespace().collect();
        assert_eq!(code, "ab(,,,,b);f::<'a>(g)");
        assert_eq!(bare.lines().count(), text.lines().count());
    }

    #[test]
    fn use_trees_are_spelled_out() {
        let text =
            "pub(crate) use std::{\n    fs,\n    io::{self, Read as _},\n    time::*,\n};\nuse super::{Plan, super::http};\n";
        let found = paths_in(text);
        for path in ["std::fs", "std::io", "std::io::Read", "std::time::*", "crate::plan::Plan"] {
            assert!(found.contains(&path.to_owned()), "{path} is not in {found:?}");
        }
    }

    #[test]
    fn a_path_is_followed_through_what_was_imported() {
        let found = paths_in(
            "use std::time as clock;\nfn f() { clock::Instant::now(); log::info!(\"x\"); self::g::h(); super::super::lock::i() }\n",
        );
        for path in ["std::time::Instant::now", "log::info", "crate::plan::cursor::g::h", "crate::lock::i"] {
            assert!(found.contains(&path.to_owned()), "{path} is not in {found:?}");
        }
    }

    #[test]
    fn what_stands_in_the_tests_of_a_file_is_left_out() {
        assert_eq!(before_tests("a\n#[cfg(test)]\nmod tests {\n"), "a\n");
        assert_eq!(before_tests("#[cfg(test)]\nmod fixture;\nb\n"), "#[cfg(test)]\nmod fixture;\nb\n");
    }
}
