//! The files that one call uses, as the architecture page lists them.

use super::markdown::Page;
use crate::support::root;

/// The largest number of files that a newcomer can read in one sitting.
const MOST: usize = 40;

#[test]
fn the_files_of_one_call_exist_and_are_forty_at_most() {
    let page = Page::read(&root().join("docs/src/architecture.md")).text();
    let (_, list) = page.split_once("\n### The files of one call\n").unwrap();
    let (list, _) = list.split_once("\n### ").unwrap();
    let files: Vec<&str> = list
        .lines()
        .filter_map(|line| line.split_once(". `")?.1.strip_suffix('`'))
        .collect();
    assert!((1..=MOST).contains(&files.len()), "{files:?}");
    for file in files {
        assert!(root().join(file).is_file(), "{file} is missing");
    }
}
