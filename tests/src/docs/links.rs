//! Links in README, the pages next to it and the book: their files and headings must exist.
//! Addresses of other hosts are not checked.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::markdown::Page;
use super::{beside_readme, book};
use crate::support::root;

/// Returns the targets of links in a text, except in code.
fn targets(page: &Page) -> Vec<String> {
    let mut targets = Vec::new();
    for paragraph in prose(page) {
        let plain: String = paragraph.split('`').step_by(2).collect::<Vec<_>>().join("");
        for rest in plain.split("](").skip(1) {
            targets.extend(rest.split_once(')').map(|(target, _)| target.to_owned()));
        }
    }
    targets
}

/// Returns the paragraphs outside of fenced blocks. A code span may end on a later line.
fn prose(page: &Page) -> Vec<String> {
    let text = page.text();
    let mut paragraphs = vec![String::new()];
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        let trimmed = line.trim();
        let (ticks, _) = trimmed.split_at(trimmed.len() - trimmed.trim_start_matches('`').len());
        match fence {
            Some(open) if trimmed == open => fence = None,
            Some(_) => {}
            None if ticks.len() >= 3 => fence = Some(ticks),
            None if trimmed.is_empty() => paragraphs.push(String::new()),
            None => {
                let paragraph = paragraphs.last_mut().unwrap();
                paragraph.push_str(line);
                paragraph.push('\n');
            }
        }
    }
    paragraphs
}

/// The anchors of a page's headings, as mdBook and GitHub make them.
fn anchors(page: &Page) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let lines = prose(page);
    for heading in lines.iter().flat_map(|paragraph| paragraph.lines()) {
        let title = heading.trim_start_matches('#');
        if title.len() == heading.len() || !title.starts_with(' ') {
            continue;
        }
        if let Some((_, named)) = title.split_once("{#") {
            anchors.insert(named.trim_end().trim_end_matches('}').to_owned());
            continue;
        }
        // Only the text of a link counts.
        let title = title.split("](").next().unwrap().replace('[', "");
        let slug: String = title
            .trim()
            .to_lowercase()
            .chars()
            .filter_map(|c| match c {
                ' ' => Some('-'),
                '-' | '_' => Some(c),
                c if c.is_alphanumeric() => Some(c),
                _ => None,
            })
            .collect();
        let again = (1..).map(|number| format!("{slug}-{number}"));
        let mut names = std::iter::once(slug.clone()).chain(again);
        let free = names.find(|name| !anchors.contains(name)).unwrap();
        anchors.insert(free);
    }
    anchors
}

/// Returns the path without `..`.
fn normal(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn broken(pages: &[Page]) -> Vec<String> {
    let known: BTreeMap<PathBuf, BTreeSet<String>> = pages
        .iter()
        .map(|page| (normal(&page.path), anchors(page)))
        .collect();
    let mut broken = Vec::new();
    for page in pages {
        for target in targets(page) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let path = match file {
                "" => page.path.clone(),
                file => page.path.parent().unwrap().join(file),
            };
            let headings = known.get(&normal(&path));
            let there = path.exists()
                && (anchor.is_empty() || headings.is_none_or(|all| all.contains(anchor)));
            if !there {
                broken.push(format!("{}: {target}", page.path.display()));
            }
        }
    }
    broken
}

#[test]
fn every_link_leads_to_a_file_and_a_heading_that_are_there() {
    let pages: Vec<Page> = book().into_iter().chain(beside_readme()).collect();
    let links: usize = pages.iter().map(|page| targets(page).len()).sum();
    assert!(links > 200, "only {links} links were found");
    let broken = broken(&pages);
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn a_link_to_a_missing_file_or_heading_is_found() {
    let path = root().join("README.md");
    let page = |text: &str| Page::new(&path, text);
    for text in [
        "[a](missing.md)",
        "[a](#missing)",
        "# Here\n\n[a\nb](#there)",
        "`code` [a](README.md#missing)",
    ] {
        assert_eq!(broken(&[page(text)]).len(), 1, "{text}");
    }
    for text in [
        "# It's `here`, too\n\n[a](#its-here-too)",
        "`[a](missing.md)`",
        "```text\n[a](missing.md)\n```",
        "[a](https://example.org/missing)",
        "# A\n# A\n\n[a](#a-1)",
        "# A {#named}\n\n[a](#named)",
    ] {
        assert_eq!(broken(&[page(text)]), [""; 0], "{text}");
    }
}
