//! The page on where to change what: each file that it names exists, and no change needs more than
//! four files.

use super::markdown::Page;
use crate::support::root;

/// Returns the page's sections, each with the files of its list.
fn sections(page: &str) -> Vec<(&str, Vec<&str>)> {
    page.split("\n## ")
        .skip(1)
        .map(|section| {
            let files = section
                .lines()
                .filter_map(|line| line.strip_prefix("* `")?.split('`').next());
            (section.lines().next().unwrap_or_default(), files.collect())
        })
        .collect()
}

/// Returns the texts between backticks that have the form of a path.
fn paths(page: &str) -> impl Iterator<Item = &str> {
    page.split('`')
        .skip(1)
        .step_by(2)
        .filter(|code| code.contains('/'))
}

#[test]
fn each_change_takes_four_files_at_most_and_each_file_exists() {
    let page = Page::read(&root().join("docs/src/where-to-change.md")).text();
    let sections = sections(&page);
    assert!(!sections.is_empty(), "the page has no sections");
    for (change, files) in sections {
        assert!((1..=4).contains(&files.len()), "{change}: {files:?}");
        for file in files {
            assert!(root().join(file).is_file(), "{change}: there is no {file}");
        }
    }
    for path in paths(&page) {
        assert!(root().join(path).exists(), "there is no {path}");
    }
}
