//! Rust source with comments and literals blanked, and what can be found in it.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Source of the same length and lines, comments and literals as spaces.
pub(crate) struct Blanked {
    pub(crate) text: String,
    original: String,
}

/// An inline `mod name { … }`.
pub(crate) struct InlineModule {
    pub(crate) body: Range<usize>,
    pub(crate) test: bool,
}

/// Blanks comments, strings and characters.
pub(crate) fn blank(source: &str) -> Blanked {
    let bytes = source.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = skip(bytes, at);
        match end {
            Some(end) => {
                let end = end.min(bytes.len());
                out[at..end].iter_mut().filter(|b| **b != b'\n').for_each(|b| *b = b' ');
                at = end;
            }
            None => at += 1,
        }
    }
    // Whole literals were replaced, so what is left is still UTF-8.
    let text = String::from_utf8(out).expect("blanking keeps UTF-8");
    Blanked { text, original: source.to_owned() }
}

/// Where a comment or literal that begins at `at` ends.
fn skip(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    let before = at.checked_sub(1).map_or(b' ', |i| bytes[i]);
    let word_before = before.is_ascii_alphanumeric() || before == b'_';
    if rest.starts_with(b"//") {
        return Some(at + rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len()));
    }
    if rest.starts_with(b"/*") {
        return Some(at + find(rest, b"*/").map_or(rest.len(), |n| n + 2));
    }
    if !word_before && (rest.starts_with(b"r\"") || rest.starts_with(b"r#") || rest.starts_with(b"br")) {
        let start = rest.iter().position(|b| *b == b'r')? + 1;
        let hashes = rest[start..].iter().take_while(|b| **b == b'#').count();
        if rest.get(start + hashes) == Some(&b'"') {
            let close = [b"\"".to_vec(), vec![b'#'; hashes]].concat();
            let body = start + hashes + 1;
            return Some(at + body + find(&rest[body..], &close).map_or(rest.len(), |n| n + close.len()));
        }
    }
    match rest[0] {
        b'"' => {
            let mut n = 1;
            while n < rest.len() && rest[n] != b'"' {
                n += if rest[n] == b'\\' { 2 } else { 1 };
            }
            Some(at + n + 1)
        }
        // A character, not a lifetime.
        b'\'' if rest.get(1) == Some(&b'\\') => Some(at + 3 + rest.get(3..)?.iter().position(|b| *b == b'\'')? + 1),
        b'\'' => {
            let first = std::str::from_utf8(&rest[1..rest.len().min(5)])
                .map_or_else(|e| std::str::from_utf8(&rest[1..1 + e.valid_up_to()]), Ok)
                .ok()?
                .chars()
                .next()?;
            (rest.get(1 + first.len_utf8()) == Some(&b'\'')).then_some(at + first.len_utf8() + 2)
        }
        _ => None,
    }
}

fn find(hay: &[u8], needle: &[u8]) -> Option<usize> {
    hay.windows(needle.len()).position(|w| w == needle)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

impl Blanked {
    /// The line of an offset, from 1.
    pub(crate) fn line(&self, at: usize) -> usize {
        self.text[..at].matches('\n').count() + 1
    }

    /// Where `name` stands as a whole path.
    pub(crate) fn words<'a>(&'a self, name: &'a str) -> impl Iterator<Item = usize> + 'a {
        self.text.match_indices(name).map(|(at, _)| at).filter(move |at| {
            let before = at.checked_sub(1).map_or(b' ', |i| self.text.as_bytes()[i]);
            let after = self.text.as_bytes().get(at + name.len()).copied().unwrap_or(b' ');
            let ends_in_word = name.as_bytes().last().is_some_and(|b| is_word(*b));
            !is_word(before) && (!ends_in_word || !is_word(after))
        })
    }

    /// Every module that a `crate::` path names first, with its line.
    pub(crate) fn crate_references(&self) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        for root in ["crate::", "tollgate::"] {
            for at in self.words(root) {
                let names = first_names(&self.text[at + root.len()..]);
                found.extend(names.into_iter().map(|name| (self.line(at), name)));
            }
        }
        found
    }

    /// The names of every `std::{…}` group.
    pub(crate) fn std_groups(&self) -> Vec<(usize, String)> {
        let groups = self.words("std::").filter(|at| self.text[at + 5..].starts_with('{'));
        groups.flat_map(|at| first_names(&self.text[at + 5..]).into_iter().map(move |n| (at, n))).collect()
    }

    /// Every chain of `super::`, with its length.
    pub(crate) fn super_chains(&self) -> Vec<(usize, usize)> {
        let starts = self.words("super::").filter(|at| !self.text[..*at].ends_with("super::"));
        let length = |at: usize| {
            let mut count = 0;
            while self.text[at + count * 7..].starts_with("super::") {
                count += 1;
            }
            count
        };
        starts.map(|at| (at, length(at))).collect()
    }

    /// Blanks the bodies of `#[cfg(test)] mod … { … }`.
    pub(crate) fn blank_test_modules(&mut self) {
        for module in inline_modules(self).into_iter().filter(|m| m.test) {
            let body = &self.text[module.body.clone()];
            let spaces: String = body.chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
            // Characters of several octets become one space each.
            let padding = " ".repeat(body.len() - spaces.len());
            self.text.replace_range(module.body, &(spaces + &padding));
        }
    }
}

/// The first name of a path, or those of a group `{a::b, c}`.
fn first_names(rest: &str) -> Vec<String> {
    let name =
        |text: &str| -> String { text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect() };
    let Some(group) = rest.trim_start().strip_prefix('{') else { return vec![name(rest)] };
    let (mut depth, mut names, mut start) = (0, Vec::new(), 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                names.push(name(&group[start..at]));
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                names.push(name(&group[start..at]));
                start = at + 1;
            }
            _ => {}
        }
    }
    names.retain(|n| !n.is_empty());
    names
}

/// The attributes that stand before an item at `at`, as written.
fn attributes(code: &Blanked, at: usize) -> String {
    let before = &code.text[..at];
    let from = before.rfind([';', '}', '{']).map_or(0, |n| n + 1);
    code.original[from..at].to_owned()
}

/// Every `mod name { … }`.
pub(crate) fn inline_modules(code: &Blanked) -> Vec<InlineModule> {
    let mut modules = Vec::new();
    for at in code.words("mod ") {
        let rest = &code.text[at..];
        let Some(open) = rest.find(['{', ';']).filter(|n| rest.as_bytes()[*n] == b'{') else { continue };
        let mut depth = 0;
        let close = rest[open..].char_indices().find_map(|(n, c)| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            (depth == 0).then_some(n)
        });
        let Some(close) = close else { continue };
        let test = attributes(code, at).contains("cfg(test)");
        modules.push(InlineModule { body: at + open + 1..at + open + close, test });
    }
    modules
}

/// The files whose module is declared under `#[cfg(test)]`, and all below them.
pub(crate) fn test_only_files(files: &[PathBuf]) -> BTreeSet<PathBuf> {
    let mut roots = Vec::new();
    for path in files {
        let code = blank(&fs::read_to_string(path).expect("a source file"));
        for at in code.words("mod ") {
            let rest = &code.text[at + 4..];
            let Some(end) = rest.find(['{', ';']).filter(|n| rest.as_bytes()[*n] == b';') else { continue };
            let attributes = attributes(&code, at);
            if attributes.contains("cfg(test)") {
                roots.push(module_file(path, rest[..end].trim(), &attributes));
            }
        }
    }
    let below = |path: &&PathBuf| roots.iter().any(|r| **path == *r || path.starts_with(r.with_extension("")));
    files.iter().filter(below).cloned().collect()
}

fn module_file(declared_in: &Path, name: &str, attributes: &str) -> PathBuf {
    let folder = declared_in.parent().expect("a file stands in a folder");
    if let Some(path) = attributes.split("path = \"").nth(1).and_then(|p| p.split('"').next()) {
        return folder.join(path);
    }
    let stem = declared_in.file_stem().and_then(|s| s.to_str()).unwrap_or_default();
    match stem {
        "mod" | "lib" | "main" => folder.join(name).with_extension("rs"),
        stem => folder.join(stem).join(name).with_extension("rs"),
    }
}

#[test]
fn comments_and_literals_vanish_and_lines_stay() {
    let source = "a // crate::web\n\"crate::web \\\" x\" 'x' '\\'' 'static r#\"crate::\"web\"# /* crate::web\n */ crate::{mail::x, floor::{a, b}};\n";
    let code = blank(source);
    assert_eq!(code.text.len(), source.len());
    assert_eq!(code.text.lines().count(), source.lines().count());
    assert!(code.text.contains("'static") && !code.text.contains("web"));
    assert_eq!(code.crate_references(), [(3, "mail".to_owned()), (3, "floor".to_owned())]);
}

#[test]
fn modules_under_cfg_test_are_found() {
    let mut code =
        blank("use a;\n#[cfg(test)]\nmod tests {\n    use std::fs;\n    fn x() { super::super::y() }\n}\nfn z() {}\n");
    assert_eq!(inline_modules(&code).len(), 1);
    assert_eq!(code.super_chains().first().map(|c| c.1), Some(2));
    code.blank_test_modules();
    assert!(!code.text.contains("std::fs") && code.text.contains("fn z"));
    assert_eq!(module_file(Path::new("src/a/b.rs"), "tests", ""), Path::new("src/a/b/tests.rs"));
    assert_eq!(module_file(Path::new("src/a/b.rs"), "t", "#[path = \"b_tests.rs\"]"), Path::new("src/a/b_tests.rs"));
}
