//! Typed reading of a TOML table under an environment and flags, which note
//! what is wrong and go on.
//!
//! Promises: a flag stands before the environment, the environment before the
//! file; every key that nothing asked for is a problem. Doesn't know: what
//! the keys mean.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problems::{Problem, nearest};

/// What names of the environment start with.
pub(super) const ENV_PREFIX: &str = "TOLLGATE_";

/// Millionths in one.
const MILLION: u64 = 1_000_000;
/// Greatest amount of money, in millionths.
const MOST_MICROS: u64 = 1_000_000 * MILLION;

/// Where a value was found.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    line: Option<usize>,
    key: String,
    /// Set where the value came from the file, whose folder relative paths mean.
    in_file: bool,
}

/// A value with where it was found.
#[derive(Debug, Clone)]
pub(super) struct Found<T> {
    pub(super) value: T,
    pub(super) at: Origin,
}

/// The three sources and what was found wrong with them.
pub(super) struct Source<'a> {
    pub(super) text: &'a str,
    /// The file itself; its folder is what relative paths mean.
    pub(super) file: PathBuf,
    pub(super) env: &'a BTreeMap<String, String>,
    pub(super) flags: &'a [(&'static str, String)],
    problems: RefCell<Vec<Problem>>,
    env_known: RefCell<BTreeSet<String>>,
}

enum Raw<'a> {
    Text(&'a str),
    Toml(&'a Spanned<DeValue<'a>>),
}

impl<'a> Source<'a> {
    pub(super) fn new(
        text: &'a str,
        file: PathBuf,
        env: &'a BTreeMap<String, String>,
        flags: &'a [(&'static str, String)],
    ) -> Source<'a> {
        Source { text, file, env, flags, problems: RefCell::default(), env_known: RefCell::default() }
    }

    pub(super) fn line(&self, offset: usize) -> usize {
        self.text.as_bytes().iter().take(offset).filter(|b| **b == b'\n').count() + 1
    }

    pub(super) fn problem(&self, at: &Origin, message: impl Into<String>) {
        self.note(at.line, &at.key, message);
    }

    pub(super) fn note(&self, line: Option<usize>, key: &str, message: impl Into<String>) {
        self.problems.borrow_mut().push(Problem { line, key: key.to_owned(), message: message.into() });
    }

    /// Ends reading: variables of ours that nothing asked for are problems.
    pub(super) fn into_problems(self, spared: impl Fn(&str) -> bool) -> Vec<Problem> {
        let known = self.env_known.into_inner();
        let mut problems = self.problems.into_inner();
        for name in self.env.keys().filter(|n| n.starts_with(ENV_PREFIX) && !known.contains(*n) && !spared(n)) {
            let near = nearest(name, known.iter().map(String::as_str)).unwrap_or_default();
            let message = format!("unknown variable; the nearest known one is {near}");
            problems.push(Problem { line: None, key: name.clone(), message });
        }
        problems.sort_by_key(|p| p.line.unwrap_or(usize::MAX));
        problems
    }
}

/// One table being read.
pub(super) struct Section<'s, 'a> {
    source: &'s Source<'a>,
    table: Option<&'a DeTable<'a>>,
    /// `listen`, `account[2]`, or empty at the top.
    path: String,
    /// False inside lists of tables, which have no names in the environment.
    env: bool,
    line: Option<usize>,
    asked: Vec<&'static str>,
}

impl<'s, 'a> Section<'s, 'a> {
    pub(super) fn top(source: &'s Source<'a>, table: &'a DeTable<'a>) -> Section<'s, 'a> {
        Section { source, table: Some(table), path: String::new(), env: true, line: None, asked: Vec::new() }
    }

    /// The table `key`; an absent one reads as empty.
    pub(super) fn section(&mut self, key: &'static str) -> Section<'s, 'a> {
        let entry = self.entry(key);
        let table = entry.and_then(|v| v.get_ref().as_table());
        if let (Some(value), None) = (entry, table) {
            self.source.problem(&self.origin(key, Some(value)), "this is a table: write it as [section]");
        }
        Section {
            source: self.source,
            table,
            path: self.path_of(key),
            env: self.env,
            line: entry.map(|v| self.source.line(v.span().start)),
            asked: Vec::new(),
        }
    }

    /// The tables of the list `key`.
    pub(super) fn sections(&mut self, key: &'static str) -> Vec<Section<'s, 'a>> {
        let Some(value) = self.entry(key) else { return Vec::new() };
        let Some(list) = value.get_ref().as_array() else {
            self.source.problem(&self.origin(key, Some(value)), format!("write each one as [[{key}]]"));
            return Vec::new();
        };
        let mut sections = Vec::new();
        for (index, item) in list.iter().enumerate() {
            let line = Some(self.source.line(item.span().start));
            let path = format!("{}[{}]", self.path_of(key), index + 1);
            match item.get_ref().as_table() {
                Some(table) => sections.push(Section {
                    source: self.source,
                    table: Some(table),
                    path,
                    env: false,
                    line,
                    asked: Vec::new(),
                }),
                None => self.source.note(line, &path, format!("write each one as [[{key}]]")),
            }
        }
        sections
    }

    /// True where the file has the table.
    pub(super) fn present(&self) -> bool {
        self.table.is_some()
    }

    /// The source, for problems of values.
    pub(super) fn source(&self) -> &'s Source<'a> {
        self.source
    }

    /// The table itself, for problems of what is missing in it.
    pub(super) fn here(&self) -> Origin {
        Origin { line: self.line, key: self.path.clone(), in_file: true }
    }

    /// True where a source has `key`.
    pub(super) fn has(&mut self, key: &'static str) -> bool {
        self.raw(key).is_some()
    }

    /// Where `key` stands, for problems of its absence or of its use.
    pub(super) fn at(&mut self, key: &'static str) -> Origin {
        match self.raw(key) {
            Some((_, at)) => at,
            None => Origin { line: self.line, key: self.path_of(key), in_file: true },
        }
    }

    /// A text.
    pub(super) fn text(&mut self, key: &'static str) -> Option<Found<String>> {
        self.read(key, "a text in quotes", |raw| match raw {
            Raw::Text(text) => Some((*text).to_owned()),
            Raw::Toml(value) => value.get_ref().as_str().map(str::to_owned),
        })
    }

    /// A text that is not empty, or a problem.
    pub(super) fn required(&mut self, key: &'static str) -> Option<Found<String>> {
        if !self.has(key) {
            self.source.note(self.line, &self.path_of(key), "is missing");
        }
        self.filled(key)
    }

    /// A text that is not empty.
    pub(super) fn filled(&mut self, key: &'static str) -> Option<Found<String>> {
        let found = self.text(key)?;
        if found.value.trim().is_empty() {
            self.source.problem(&found.at, "is empty");
            return None;
        }
        Some(found)
    }

    /// A path: relative ones mean the file's folder, or the current one for
    /// flags and variables.
    pub(super) fn path(&mut self, key: &'static str) -> Option<Found<PathBuf>> {
        let Found { value, at } = self.filled(key)?;
        let path = Path::new(&value);
        let value = match self.source.file.parent() {
            Some(folder) if at.in_file => folder.join(path),
            Some(_) | None => path.to_owned(),
        };
        Some(Found { value, at })
    }

    /// A whole number within `range`.
    pub(super) fn whole(&mut self, key: &'static str, range: std::ops::RangeInclusive<u64>) -> Option<Found<u64>> {
        let what = format!("a whole number from {} to {}", range.start(), range.end());
        self.read(key, &what, |raw| {
            let number = match raw {
                Raw::Text(text) => text.trim().parse().ok()?,
                Raw::Toml(value) => {
                    let integer = value.get_ref().as_integer()?;
                    u64::from_str_radix(integer.as_str(), integer.radix()).ok()?
                }
            };
            range.contains(&number).then_some(number)
        })
    }

    /// A number in `0..=1`.
    pub(super) fn share(&mut self, key: &'static str) -> Option<Found<f64>> {
        self.read(key, "a number from 0 to 1", |raw| {
            let number: f64 = match raw {
                Raw::Text(text) => text.trim().parse().ok()?,
                Raw::Toml(value) => match value.get_ref() {
                    DeValue::Float(float) => float.as_str().parse().ok()?,
                    DeValue::Integer(integer) => integer.as_str().parse().ok()?,
                    _ => return None,
                },
            };
            (0.0..=1.0).contains(&number).then_some(number)
        })
    }

    /// An amount of money, in millionths.
    pub(super) fn micros(&mut self, key: &'static str) -> Option<Found<u64>> {
        let most = MOST_MICROS / MILLION;
        self.read(key, &format!("an amount from 0 to {most}"), |raw| {
            let amount: f64 = match raw {
                Raw::Text(text) => text.trim().parse().ok()?,
                Raw::Toml(value) => match value.get_ref() {
                    DeValue::Float(float) => float.as_str().parse().ok()?,
                    DeValue::Integer(integer) => integer.as_str().parse().ok()?,
                    _ => return None,
                },
            };
            let micros = (amount * MILLION as f64).round();
            // NaN is in no range; a number in this one is exact as an integer.
            (0.0..=MOST_MICROS as f64).contains(&micros).then_some(micros as u64)
        })
    }

    /// Yes or no.
    pub(super) fn flag(&mut self, key: &'static str) -> Option<Found<bool>> {
        self.read(key, "true or false", |raw| match raw {
            Raw::Text(text) => text.trim().parse().ok(),
            Raw::Toml(value) => value.get_ref().as_bool(),
        })
    }

    /// A list of texts; in the environment, parts between commas.
    pub(super) fn list(&mut self, key: &'static str) -> Option<Found<Vec<String>>> {
        self.read(key, "a list of texts, [\"…\", \"…\"]", |raw| match raw {
            Raw::Text(text) => {
                Some(text.split(',').map(str::trim).filter(|p| !p.is_empty()).map(str::to_owned).collect())
            }
            Raw::Toml(value) => {
                let list = value.get_ref().as_array()?;
                list.iter().map(|item| item.get_ref().as_str().map(str::to_owned)).collect()
            }
        })
    }

    /// One of a few words.
    pub(super) fn word<T: Copy>(&mut self, key: &'static str, words: &[(&str, T)]) -> Option<Found<T>> {
        let Found { value, at } = self.text(key)?;
        match words.iter().find(|(word, _)| *word == value) {
            Some((_, meant)) => Some(Found { value: *meant, at }),
            None => {
                let known: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
                self.source.problem(&at, format!("\"{value}\" is none of {}", known.join(", ")));
                None
            }
        }
    }

    /// Ends the table: keys that nothing asked for are problems.
    pub(super) fn finish(self) {
        let Some(table) = self.table else { return };
        for key in table.keys() {
            let name: &str = key.get_ref();
            if self.asked.contains(&name) {
                continue;
            }
            let near = nearest(name, self.asked.iter().copied()).unwrap_or_default();
            let line = self.source.line(key.span().start);
            let message = format!("unknown key; the nearest known one is `{near}`");
            self.source.note(Some(line), &self.path_of(name), message);
        }
    }

    fn read<T>(&mut self, key: &'static str, what: &str, parse: impl Fn(&Raw<'a>) -> Option<T>) -> Option<Found<T>> {
        let (raw, at) = self.raw(key)?;
        match parse(&raw) {
            Some(value) => Some(Found { value, at }),
            None => {
                self.source.problem(&at, format!("must be {what}"));
                None
            }
        }
    }

    fn raw(&mut self, key: &'static str) -> Option<(Raw<'a>, Origin)> {
        let entry = self.entry(key);
        let path = self.path_of(key);
        let name = self.env.then(|| format!("{ENV_PREFIX}{}", path.replace('.', "_").to_ascii_uppercase()));
        if let Some(name) = &name {
            self.source.env_known.borrow_mut().insert(name.clone());
        }
        if let Some((_, text)) = self.source.flags.iter().find(|(flag, _)| *flag == path) {
            let key = format!("--{}", path.replace(['.', '_'], "-"));
            return Some((Raw::Text(text), Origin { line: None, key, in_file: false }));
        }
        if let Some((key, text)) = name.and_then(|name| self.source.env.get_key_value(&name)) {
            return Some((Raw::Text(text), Origin { line: None, key: key.clone(), in_file: false }));
        }
        entry.map(|value| (Raw::Toml(value), self.origin(key, Some(value))))
    }

    fn entry(&mut self, key: &'static str) -> Option<&'a Spanned<DeValue<'a>>> {
        if !self.asked.contains(&key) {
            self.asked.push(key);
        }
        self.table.and_then(|t| t.get(key))
    }

    fn origin(&self, key: &str, value: Option<&Spanned<DeValue<'_>>>) -> Origin {
        let line = value.map(|v| self.source.line(v.span().start)).or(self.line);
        Origin { line, key: self.path_of(key), in_file: true }
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}
