//! What the source tree promises about itself: arrows between modules run
//! down, pure modules stay pure, files stay readable, and every invariant of
//! `SECURITY.md` names a test that exists.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

mod source;

use source::{Blanked, blank, inline_modules, test_only_files};

/// Modules that know no runtime, file, socket, clock or randomness.
const PURE: [&str; 5] = ["mail", "wire", "lane", "floor", "perceive"];

/// What a pure module must not name.
const IMPURE: [&str; 16] = [
    "tokio",
    "getrandom",
    "std::fs",
    "std::net",
    "std::env",
    "std::process",
    "std::thread",
    "std::io::stdin",
    "std::time::SystemTime",
    "std::time::Instant",
    "SystemTime",
    "Instant::now",
    "Timestamp::now",
    "Zoned::now",
    "rand::",
    "reqwest",
];

/// Files of pure modules that are not pure, with the reason.
const IMPURE_FILES: [(&str, &str); 1] = [("src/perceive/model.rs", "it asks models, over the network")];

/// Address types are numbers with a grammar; they open nothing.
const PURE_ALL_THE_SAME: [&str; 4] =
    ["std::net::Ipv4Addr", "std::net::Ipv6Addr", "std::net::IpAddr", "std::net::{Ipv4Addr, Ipv6Addr}"];

/// Most lines of a source file.
const MAX_LINES: usize = 700;

/// Files that are longer, with the reason.
const LONG: [(&str, &str); 0] = [];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root().join(folder)];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().display().to_string()
}

/// The levels, from the table in `src/lib.rs`: `| 0 | [`mail`] | … |`.
fn levels() -> BTreeMap<String, u32> {
    let text = fs::read_to_string(root().join("src/lib.rs")).unwrap();
    let mut levels = BTreeMap::new();
    for line in text.lines() {
        let cells: Vec<&str> = line.trim_start_matches("//!").split('|').map(str::trim).collect();
        let (Some(level), Some(name)) = (cells.get(1), cells.get(2)) else { continue };
        let (Ok(level), Some(name)) = (level.parse(), name.strip_prefix("[`").and_then(|n| n.strip_suffix("`]")))
        else {
            continue;
        };
        levels.insert(name.to_owned(), level);
    }
    levels
}

/// The top-level module that a file belongs to; `None` for `lib.rs`, `main.rs`.
fn home(path: &Path) -> Option<String> {
    let inside = path.strip_prefix(root().join("src")).unwrap();
    let first = inside.components().next()?.as_os_str().to_str()?;
    match first.strip_suffix(".rs") {
        Some("lib" | "main") => None,
        Some(name) => Some(name.to_owned()),
        None => Some(first.to_owned()),
    }
}

/// How deep a file's module lies under the crate root.
fn depth(path: &Path) -> usize {
    let inside = path.strip_prefix(root().join("src")).unwrap();
    let parts = inside.components().count();
    let is_folder = path.file_stem().is_some_and(|s| s == "mod");
    if is_folder { parts - 1 } else { parts }
}

#[test]
fn the_table_in_lib_names_every_module() {
    let levels = levels();
    let mut homes: BTreeSet<String> = rust_files("src").iter().filter_map(|p| home(p)).collect();
    for name in levels.keys() {
        assert!(homes.remove(name), "src/lib.rs lists `{name}`, which doesn't exist");
    }
    assert!(homes.is_empty(), "src/lib.rs gives no level to {homes:?}");
}

#[test]
fn arrows_between_modules_run_down() {
    let levels = levels();
    let mut wrong = Vec::new();
    for path in rust_files("src") {
        let Some(from) = home(&path) else { continue };
        let code = blank(&fs::read_to_string(&path).unwrap());
        for (line, to) in code.crate_references() {
            let Some(level) = levels.get(&to) else { continue };
            if to != from && *level >= levels[&from] {
                wrong.push(format!("{}:{line}: {from} names {to}", shown(&path)));
            }
        }
        for line in leaves_by_super(&code, depth(&path)) {
            wrong.push(format!("{}:{line}: `super` up to the crate root; say `crate::`", shown(&path)));
        }
    }
    assert!(wrong.is_empty(), "arrows that run up or sideways:\n{}", wrong.join("\n"));
}

/// Lines where a chain of `super::` ends at the crate root.
fn leaves_by_super(code: &Blanked, depth: usize) -> Vec<usize> {
    let modules = inline_modules(code);
    let mut lines = Vec::new();
    for (at, supers) in code.super_chains() {
        let inside = modules.iter().filter(|m| m.body.contains(&at)).count();
        if supers >= depth + inside {
            lines.push(code.line(at));
        }
    }
    lines
}

#[test]
fn pure_modules_know_no_runtime_file_socket_clock_or_randomness() {
    let files = rust_files("src");
    let tests = test_only_files(&files);
    let mut wrong = Vec::new();
    for path in files.iter().filter(|p| !tests.contains(*p)) {
        if !home(path).is_some_and(|m| PURE.contains(&m.as_str())) {
            continue;
        }
        if IMPURE_FILES.iter().any(|(file, _)| *file == shown(path)) {
            continue;
        }
        let mut code = blank(&fs::read_to_string(path).unwrap());
        code.blank_test_modules();
        for allowed in PURE_ALL_THE_SAME {
            code.text = code.text.replace(allowed, &" ".repeat(allowed.len()));
        }
        for name in IMPURE {
            wrong.extend(code.words(name).map(|at| format!("{}:{}: {name}", shown(path), code.line(at))));
        }
        for (at, name) in code.std_groups() {
            if ["fs", "net", "env", "process", "thread"].contains(&name.as_str()) {
                wrong.push(format!("{}:{}: std::{{{name}}}", shown(path), code.line(at)));
            }
        }
    }
    assert!(wrong.is_empty(), "pure modules name:\n{}", wrong.join("\n"));
}

#[test]
fn files_hold_one_idea() {
    let mut wrong = Vec::new();
    for path in rust_files("src").into_iter().chain(rust_files("tests")) {
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        let name = shown(&path);
        match LONG.iter().find(|(listed, _)| *listed == name) {
            Some((_, reason)) if lines > MAX_LINES => assert!(!reason.is_empty(), "{name} is listed without a reason"),
            Some(_) => wrong.push(format!("{name} is listed as long but has {lines} lines")),
            None if lines > MAX_LINES => wrong.push(format!("{name} has {lines} lines, more than {MAX_LINES}")),
            None => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `SECURITY.md` claims an invariant under each numbered heading, and names
/// its tests in lines that begin with `Test:` or `Tests:`, in backticks.
#[test]
fn every_invariant_names_a_test_that_exists() {
    let text = fs::read_to_string(root().join("SECURITY.md")).expect("SECURITY.md is part of the repository");
    let known = test_functions();
    let (mut wrong, mut claims) = (Vec::new(), BTreeMap::<String, usize>::new());
    let mut claim = None;
    for (number, line) in text.lines().enumerate() {
        if let Some(heading) = line.strip_prefix('#') {
            let heading = heading.trim_start_matches('#').trim();
            claim = heading.starts_with(|c: char| c.is_ascii_digit()).then(|| heading.to_owned());
            if let Some(claim) = &claim {
                claims.insert(claim.clone(), 0);
            }
        }
        for name in named_tests(line) {
            if let Some(claim) = &claim {
                *claims.entry(claim.clone()).or_default() += 1;
            }
            let last = name.rsplit("::").next().unwrap_or(name);
            if !known.contains(last) {
                wrong.push(format!("SECURITY.md:{}: there is no test `{name}`", number + 1));
            }
        }
    }
    assert!(!claims.is_empty(), "SECURITY.md has no numbered headings");
    wrong.extend(claims.iter().filter(|(_, n)| **n == 0).map(|(c, _)| format!("no test is named under “{c}”")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The names in backticks of a line that begins with `Test:` or `Tests:`.
fn named_tests(line: &str) -> Vec<&str> {
    let line = line.trim_start_matches(['-', '*', ' ', '>']);
    let Some(rest) = line.strip_prefix("Test").map(|r| r.strip_prefix('s').unwrap_or(r)) else { return Vec::new() };
    let Some(rest) = rest.trim_start_matches('*').strip_prefix(':') else { return Vec::new() };
    rest.split('`').skip(1).step_by(2).map(|name| name.trim_end_matches("()")).collect()
}

/// The names of all functions under a test attribute.
fn test_functions() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for path in rust_files("src").into_iter().chain(rust_files("tests")) {
        let text = fs::read_to_string(&path).unwrap();
        let mut attributed = false;
        for line in text.lines().map(str::trim) {
            // `proptest!` bodies carry the same attribute.
            if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
                attributed = true;
            }
            let Some((_, rest)) = line.split_once("fn ") else { continue };
            if attributed {
                names.insert(rest.split(['(', '<']).next().unwrap_or_default().to_owned());
            }
            attributed = false;
        }
    }
    names
}

#[test]
fn the_reader_of_claims_reads_what_it_should() {
    assert_eq!(named_tests("Test: `a::b::c`"), ["a::b::c"]);
    assert_eq!(named_tests("- Tests: `a`, `b()`"), ["a", "b"]);
    assert_eq!(named_tests("**Tests:** `a`").len(), 1);
    assert!(named_tests("A test: `a`").is_empty() && named_tests("Testing `a`").is_empty());
}
