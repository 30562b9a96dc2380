//! Pictures in README and in the book: each must have a text for people who can't see it, and each
//! file must be shown.

use std::collections::BTreeSet;
use std::path::Path;

use super::links::{normal, pages, prose};
use crate::{Outcome, repository};

/// The folder of the pictures, within the book's source.
const FOLDER: &str = "pictures";

/// Returns the problems, one for each line.
pub(crate) fn problems(root: &Path, source: &Path) -> Outcome<Vec<String>> {
    let mut problems = Vec::new();
    let mut shown = BTreeSet::new();
    let pages = pages(source)?.into_iter().map(|page| source.join(page));
    for page in pages.chain([root.join("README.md")]) {
        let text = repository::read(&page)?;
        for (line, alternative, target) in pictures(&text) {
            if alternative.trim().is_empty() {
                problems.push(format!("{}:{line}: no text for {target}", page.display()));
            }
            let folder = page.parent().unwrap_or(Path::new(""));
            shown.insert(normal(&folder.join(target)));
        }
    }
    for file in repository::entries(&source.join(FOLDER))? {
        if !shown.contains(&normal(&file)) {
            problems.push(format!("{}: no page shows it", file.display()));
        }
    }
    Ok(problems)
}

/// Returns every picture outside of code: its line, its text and its file.
fn pictures(markdown: &str) -> Vec<(usize, &str, &str)> {
    let mut found = Vec::new();
    for (number, text) in prose(markdown) {
        for part in text.split("![").skip(1) {
            let picture = part.split_once("](");
            if let Some((alternative, (target, _))) =
                picture.and_then(|(text, rest)| Some((text, rest.split_once(')')?)))
            {
                found.push((number, alternative, target));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_told_from_a_link() {
        let text = "[a](b.md) ![A screen](c/d.svg)\n`![no](no.svg)` ![](e.svg)\n";
        let expected = [(1, "A screen", "c/d.svg"), (2, "", "e.svg")];
        assert_eq!(pictures(text), expected);
    }
}
