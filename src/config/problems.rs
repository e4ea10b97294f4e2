//! What is wrong with a configuration, all of it at once.

use std::fmt;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The line of the file, where the file is the source.
    pub line: Option<usize>,
    /// The key (`listen.web`), variable (`TOLLGATE_LISTEN_WEB`) or flag.
    pub key: String,
    /// What is wrong with it and, where known, what would be right.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

/// Everything that is wrong; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems {
    /// The file, where one was read.
    pub file: Option<std::path::PathBuf>,
    /// In the order of the file; those without a line last.
    pub list: Vec<Problem>,
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.list.len() == 1 { "problem" } else { "problems" };
        match &self.file {
            Some(file) => write!(f, "{}: {} {plural}", file.display(), self.list.len())?,
            None => write!(f, "configuration: {} {plural}", self.list.len())?,
        }
        self.list.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
    }
}

impl std::error::Error for Problems {}

/// The known name that `unknown` most likely stands for.
pub(super) fn nearest<'a>(unknown: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known.into_iter().min_by_key(|name| distance(unknown, name))
}

/// Fewest single-character insertions, deletions, replacements and swaps of
/// neighbours that turn `a` into `b`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0usize; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    rows[0] = (0..=b.len()).collect();
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_the_one_with_the_fewest_edits() {
        let known = ["imaps", "submissions", "imap_plain", "smtp_plain", "web"];
        assert_eq!(nearest("imap", known), Some("imaps"));
        assert_eq!(nearest("wbe", known), Some("web"));
        assert_eq!(nearest("submission", known), Some("submissions"));
        assert_eq!(nearest("imapplain", known), Some("imap_plain"));
        assert_eq!(nearest("x", []), None);
    }

    #[test]
    fn each_problem_stands_on_a_line_of_its_own() {
        let problem = |line, key: &str| Problem { line, key: key.into(), message: "no".into() };
        let all = Problems { file: None, list: vec![problem(Some(3), "a.b"), problem(None, "TOLLGATE_X")] };
        assert_eq!(all.to_string(), "configuration: 2 problems\n  line 3: a.b: no\n  TOLLGATE_X: no");
    }
}
