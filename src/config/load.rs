//! Finding, layering and checking `gateway.toml`.
//!
//! Promises: file, then environment, then flags, the later one standing; all
//! problems at once. Doesn't know: anything about the network.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use toml::de::DeTable;

use super::problems::{Problem, Problems};
use super::table::{Section, Source};
use super::{Config, sections};

/// The file's name.
pub const FILE_NAME: &str = "gateway.toml";
/// Largest file that is read, in octets.
const MAX_FILE_OCTETS: u64 = 1024 * 1024;
/// Variables of ours that name no key: the file, the log filter, and where a
/// build for tests stops.
const SPARED: [&str; 3] = ["TOLLGATE_CONFIG", "TOLLGATE_LOG", "TOLLGATE_FAILPOINT"];
/// Variables with this start are for tests.
const SPARED_PREFIX: &str = "TOLLGATE_TEST_";

/// Settings from the command line; they stand before everything else.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `--state-dir`.
    pub state_dir: Option<PathBuf>,
    /// `--certs-dir`.
    pub certs_dir: Option<PathBuf>,
}

/// The environment as the configuration sees it.
pub type Env = BTreeMap<String, String>;

/// The environment of this process, as far as it is UTF-8.
pub fn process_env() -> Env {
    std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?))).collect()
}

/// The file that [`load`] reads: the one that is named, or the one that
/// `TOLLGATE_CONFIG` names, or `./gateway.toml`, or
/// `$XDG_CONFIG_HOME/tollgate/gateway.toml`; `None` when none is there.
pub fn locate(named: Option<&Path>, env: &Env) -> Option<PathBuf> {
    if let Some(path) = named {
        return Some(path.to_owned());
    }
    if let Some(path) = env.get("TOLLGATE_CONFIG").filter(|p| !p.is_empty()) {
        return Some(path.into());
    }
    let here = PathBuf::from(FILE_NAME);
    if here.is_file() {
        return Some(here);
    }
    user_file(env).filter(|path| path.is_file())
}

/// `$XDG_CONFIG_HOME/tollgate/gateway.toml`.
pub fn user_file(env: &Env) -> Option<PathBuf> {
    xdg(env, "XDG_CONFIG_HOME", ".config").map(|folder| folder.join(FILE_NAME))
}

/// `$XDG_STATE_HOME/tollgate`.
pub fn user_state(env: &Env) -> Option<PathBuf> {
    xdg(env, "XDG_STATE_HOME", ".local/state")
}

/// The XDG base directories: a relative value counts as unset.
fn xdg(env: &Env, variable: &str, under_home: &str) -> Option<PathBuf> {
    let absolute = |name: &str| env.get(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let base = absolute(variable).or_else(|| Some(absolute("HOME")?.join(under_home)))?;
    Some(base.join("tollgate"))
}

/// Reads the configuration.
pub fn load(named: Option<&Path>, env: &Env, flags: &Overrides) -> Result<Config, Problems> {
    let Some(file) = locate(named, env) else {
        let elsewhere = user_file(env).map_or_else(String::new, |p| format!(" and no {}", p.display()));
        let message = format!("no ./{FILE_NAME}{elsewhere}; `tollgate init` writes one, --config names one");
        return Err(Problems { file: None, list: vec![Problem { line: None, key: String::new(), message }] });
    };
    let text = read(&file).map_err(|message| Problems {
        file: Some(file.clone()),
        list: vec![Problem { line: None, key: String::new(), message }],
    })?;
    parse(&text, &file, env, flags)
}

fn read(file: &Path) -> Result<String, String> {
    let mut octets = Vec::new();
    std::fs::File::open(file)
        .and_then(|f| f.take(MAX_FILE_OCTETS + 1).read_to_end(&mut octets))
        .map_err(|e| format!("can't be read: {e}"))?;
    if octets.len() as u64 > MAX_FILE_OCTETS {
        return Err(format!("is larger than {MAX_FILE_OCTETS} octets"));
    }
    String::from_utf8(octets).map_err(|e| format!("is not UTF-8: {e}"))
}

/// Reads the text of a file that stands, or will stand, at `file`.
pub fn parse(text: &str, file: &Path, env: &Env, flags: &Overrides) -> Result<Config, Problems> {
    problems_of(text, file, env, flags).map_err(|list| Problems { file: Some(file.to_owned()), list })
}

pub(super) fn problems_of(text: &str, file: &Path, env: &Env, flags: &Overrides) -> Result<Config, Vec<Problem>> {
    let path_text = |path: &PathBuf| path.to_string_lossy().into_owned();
    let flags: Vec<(&'static str, String)> = [("state_dir", &flags.state_dir), ("certs_dir", &flags.certs_dir)]
        .into_iter()
        .filter_map(|(key, path)| Some((key, path.as_ref().map(path_text)?)))
        .collect();
    let source = Source::new(text, file.to_owned(), env, &flags);
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        // What the recovery guessed would only add problems that aren't there.
        for error in errors {
            let line = error.span().map(|span| source.line(span.start));
            source.note(line, "", error.message());
        }
        return Err(source.into_problems(|_| true));
    }
    let config = sections::config(Section::top(&source, table.get_ref()), env);
    let problems = source.into_problems(|name| SPARED.contains(&name) || name.starts_with(SPARED_PREFIX));
    match config {
        Some(config) if problems.is_empty() => Ok(config),
        // A value is missing only beside a problem that says why.
        _ => Err(problems),
    }
}
