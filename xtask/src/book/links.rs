//! The book's pages, its summary and the links between them. Parses only the Markdown that this
//! needs: fences, code spans, and `](target)`.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use crate::{Outcome, repository};

const SUMMARY: &str = "SUMMARY.md";

/// Returns the problems, one for each line. It is empty if the book has none.
pub(crate) fn problems(source: &Path) -> Outcome<Vec<String>> {
    let pages = pages(source)?;
    let mut problems = Vec::new();
    let mut listed = BTreeSet::new();
    for page in &pages {
        let text = repository::read(&source.join(page))?;
        for (line, target) in targets(&text) {
            let file = target.split('#').next().unwrap_or_default();
            if file.is_empty() || file.contains("://") || file.starts_with("mailto:") {
                continue;
            }
            let folder = page.parent().unwrap_or(Path::new(""));
            let led_to = normal(&folder.join(file));
            if page == Path::new(SUMMARY) {
                listed.insert(led_to.clone());
            }
            if !source.join(&led_to).exists() {
                problems.push(format!("{}:{line}: nothing is at {target}", page.display()));
            }
        }
    }
    for page in pages {
        if page != Path::new(SUMMARY) && !listed.contains(&page) {
            problems.push(format!("{}: not in {SUMMARY}", page.display()));
        }
    }
    Ok(problems)
}

/// Returns the book's pages, as paths below its source.
pub(super) fn pages(source: &Path) -> Outcome<BTreeSet<PathBuf>> {
    let mut pages = BTreeSet::new();
    collect(source, source, &mut pages)?;
    Ok(pages)
}

fn collect(source: &Path, folder: &Path, pages: &mut BTreeSet<PathBuf>) -> Outcome {
    for entry in repository::entries(folder)? {
        if entry.is_dir() {
            collect(source, &entry, pages)?;
        } else if entry.extension().is_some_and(|extension| extension == "md") {
            pages.insert(entry.strip_prefix(source).unwrap_or(&entry).to_owned());
        }
    }
    Ok(())
}

/// Returns the path without `.` and `..`, if it stays valid without them.
pub(super) fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if normal.file_name().is_some_and(|name| name != "..") => {
                normal.pop();
            }
            other => normal.push(other),
        }
    }
    normal
}

/// Returns every text outside of code, with its line.
pub(super) fn prose(markdown: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (index, line) in markdown.lines().enumerate() {
        if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            fenced = !fenced;
            continue;
        }
        if fenced {
            continue;
        }
        // Every second piece is within a code span.
        found.extend(line.split('`').step_by(2).map(|text| (index + 1, text)));
    }
    found
}

/// Returns the target of every link outside of code, with its line.
fn targets(markdown: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (number, text) in prose(markdown) {
        for (_, rest) in text
            .match_indices("](")
            .filter_map(|(at, _)| text.split_at_checked(at + 2))
        {
            if let Some((target, _)) = rest.split_once(')') {
                found.push((number, target.split_whitespace().next().unwrap_or_default()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_outside_of_code_only() {
        let text = "[a](b.md) and ![c](d.png \"title\")\n```\n[no](no.md)\n```\n`[no](no.md)` [e](f.md#g)\n";
        assert_eq!(targets(text), [(1, "b.md"), (1, "d.png"), (5, "f.md#g")]);
    }

    #[test]
    fn paths_are_compared_without_dots() {
        assert_eq!(normal(Path::new("a/./b/../c.md")), Path::new("a/c.md"));
        assert_eq!(normal(Path::new("../README.md")), Path::new("../README.md"));
    }
}
