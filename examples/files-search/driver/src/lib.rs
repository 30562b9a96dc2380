//! `files.search`: lines that match a pattern, in the files below `/files`.

mod line;
mod walk;

use std::fs;
use std::path::Path;

use regex::RegexBuilder;
use serde::{Deserialize, Serialize};
use toolward_guest::{Call, Error, driver, progress};

use line::Match;
use walk::Names;

/// Where the contract says that the files are.
const FILES: &str = "/files";

/// Larger files are left out.
const MAX_FILE: u64 = 4 << 20;

/// Files that are looked into.
const MAX_FILES: usize = 20_000;

/// Memory for a compiled pattern. The engine takes time in proportion to the
/// text, whatever the pattern, so its size is all that has to be bounded.
const MAX_PATTERN_BYTES: usize = 4 << 20;

#[derive(Deserialize)]
struct Input {
    pattern: String,
    #[serde(default)]
    folder: String,
    #[serde(default)]
    names: Option<String>,
    #[serde(default)]
    ignore_case: bool,
    #[serde(default)]
    context: usize,
    #[serde(default = "default_results")]
    max_results: usize,
}

fn default_results() -> usize {
    100
}

#[derive(Serialize)]
struct Output {
    matches: Vec<Match>,
    files: usize,
    skipped: usize,
    truncated: bool,
}

fn search(call: Call<Input>) -> Result<Output, Error> {
    search_below(Path::new(FILES), &call.input)
}

fn search_below(root: &Path, input: &Input) -> Result<Output, Error> {
    let pattern = RegexBuilder::new(&input.pattern)
        .case_insensitive(input.ignore_case)
        .size_limit(MAX_PATTERN_BYTES)
        .build()
        .map_err(|error| Error::new("files:bad_pattern", error.to_string()))?;
    let names = input.names.as_deref().map(Names::new);
    let tree = walk::files(root, &input.folder, names.as_ref(), MAX_FILES)?;

    let mut output = Output {
        matches: Vec::new(),
        files: 0,
        skipped: tree.skipped,
        truncated: tree.truncated,
    };
    let total = tree.files.len();
    for (n, file) in tree.files.iter().enumerate() {
        if n % 100 == 0 {
            progress::report(n as f64, Some(total as f64));
        }
        let Some(text) = read(&root.join(file)) else {
            output.skipped += 1;
            continue;
        };
        output.files += 1;
        let room = input.max_results - output.matches.len();
        let found = line::find(file, &text, &pattern, input.context, room);
        output.matches.extend(found.matches);
        if found.more {
            output.truncated = true;
            break;
        }
    }
    Ok(output)
}

/// The file's text; nothing where it is too large, binary or can't be read.
fn read(path: &Path) -> Option<String> {
    if fs::metadata(path).ok()?.len() > MAX_FILE {
        return None;
    }
    let bytes = fs::read(path).ok()?;
    if bytes.contains(&0) {
        return None;
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

driver! { "files.search" => search }

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("a.txt", "one\nTwo\nthree\n"),
            ("b/c.md", "two\r\ntwo two"),
            ("b/d/e.txt", "nothing"),
            ("binary.txt", "two\0two"),
        ] {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    fn input(pattern: &str) -> Input {
        serde_json::from_value(serde_json::json!({"pattern": pattern})).unwrap()
    }

    fn places(output: &Output) -> Vec<(&str, usize)> {
        output
            .matches
            .iter()
            .map(|found| (found.path.as_str(), found.line))
            .collect()
    }

    #[test]
    fn lines_are_found_in_the_order_of_their_files() {
        let tree = tree();
        let output = search_below(tree.path(), &input("two")).unwrap();
        assert_eq!(places(&output), [("b/c.md", 1), ("b/c.md", 2)]);
        assert_eq!((output.files, output.skipped), (3, 1));
        assert!(!output.truncated);

        let any_case = Input {
            ignore_case: true,
            ..input("^two$")
        };
        let output = search_below(tree.path(), &any_case).unwrap();
        assert_eq!(places(&output), [("a.txt", 2), ("b/c.md", 1)]);
    }

    #[test]
    fn folder_and_names_narrow_the_search() {
        let tree = tree();
        let folder = Input {
            folder: "b".to_owned(),
            ..input(".")
        };
        let output = search_below(tree.path(), &folder).unwrap();
        assert_eq!(
            places(&output),
            [("b/c.md", 1), ("b/c.md", 2), ("b/d/e.txt", 1)]
        );
        let names = Input {
            names: Some("*.md".to_owned()),
            ..input(".")
        };
        let output = search_below(tree.path(), &names).unwrap();
        assert_eq!(places(&output), [("b/c.md", 1), ("b/c.md", 2)]);
    }

    #[test]
    fn the_limit_of_results_is_said_where_it_cut() {
        let tree = tree();
        let one = Input {
            max_results: 1,
            ..input("two")
        };
        let output = search_below(tree.path(), &one).unwrap();
        assert_eq!((output.matches.len(), output.truncated), (1, true));
        let exactly = Input {
            max_results: 2,
            ..input("two")
        };
        assert!(!search_below(tree.path(), &exactly).unwrap().truncated);
    }

    #[test]
    fn a_pattern_that_would_backtrack_takes_no_time() {
        let tree = tree();
        fs::write(tree.path().join("long"), "a".repeat(100_000)).unwrap();
        let output = search_below(tree.path(), &input("^(a+)+$b")).unwrap();
        assert!(output.matches.is_empty());
    }

    #[test]
    fn a_pattern_that_is_none_or_too_large_is_refused() {
        let tree = tree();
        for pattern in ["(", "a{1000000000}", r"(\pL{1000}){1000}"] {
            let error = search_below(tree.path(), &input(pattern)).map(|_| ());
            assert_eq!(error.unwrap_err().code(), "files:bad_pattern", "{pattern}");
        }
    }
}
