//! Copies code into the book's pages, so that a code host shows it as well. A comment above a block
//! names its source: `<!-- from: FILE -->`, `FILE:ANCHOR`, or `FILE:FIRST:LAST` with line numbers.

use std::path::{Path, PathBuf};

use crate::Outcome;

const SOURCE: (&str, &str) = ("<!-- from: ", " -->");

/// The marks around a part of a source. Each is followed by the part's name, at the end of a line.
const ANCHOR: [&str; 2] = ["ANCHOR: ", "ANCHOR_END: "];

/// Returns the book's pages, each with the text that it should have.
pub(super) fn pages(root: &Path) -> Outcome<Vec<(String, String)>> {
    let mut files = Vec::new();
    collect(&root.join("docs/src"), &mut files)?;
    files.sort();
    let mut pages = Vec::new();
    for file in files {
        let text = read(&file)?;
        let name = file.strip_prefix(root).unwrap_or(&file).display();
        let filled = filled(root, &text).map_err(|error| format!("{name}: {error}"))?;
        if let Some(filled) = filled {
            pages.push((name.to_string(), filled));
        }
    }
    Ok(pages)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Outcome {
    let describe = |error| format!("{}: {error}", folder.display());
    for entry in std::fs::read_dir(folder).map_err(describe)? {
        let path = entry.map_err(describe)?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            files.push(path);
        }
    }
    Ok(())
}

fn read(file: &Path) -> Outcome<String> {
    std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

/// Returns the page with the code of its sources; `None` if it names no source.
fn filled(root: &Path, page: &str) -> Outcome<Option<String>> {
    let mut filled = String::new();
    let mut named = false;
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        push(&mut filled, line);
        let source = line
            .strip_prefix(SOURCE.0)
            .and_then(|rest| rest.strip_suffix(SOURCE.1));
        let Some(source) = source else {
            continue;
        };
        named = true;
        let open = lines.next().unwrap_or_default();
        let ticks = open.len() - open.trim_start_matches('`').len();
        let (fence, _) = open.split_at(ticks);
        if fence.len() < 3 {
            return Err(format!("no block of code is below {line:?}"));
        }
        if !lines.by_ref().any(|line| line == fence) {
            return Err(format!("the block below {line:?} has no end"));
        }
        let code = excerpt(root, source).map_err(|error| format!("{source}: {error}"))?;
        if code
            .lines()
            .any(|line| line.trim_start().starts_with(fence))
        {
            return Err(format!("{source}: needs a longer fence than {fence}"));
        }
        push(&mut filled, open);
        filled.push_str(&code);
        push(&mut filled, fence);
    }
    Ok(named.then_some(filled))
}

fn push(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// Returns the lines that a source names, without their common indentation.
fn excerpt(root: &Path, source: &str) -> Outcome<String> {
    let (file, part) = source.split_once(':').unwrap_or((source, ""));
    let text = read(&root.join(file))?;
    let lines: Vec<&str> = text.lines().collect();
    let lines = match part.split_once(':') {
        _ if part.is_empty() => &lines[..],
        Some((first, last)) => numbered(&lines, first, last)?,
        None => anchored(&lines, part)?,
    };
    let marks = |line: &&&str| ANCHOR.iter().any(|mark| line.contains(mark));
    let code = || lines.iter().filter(|line| !marks(line));
    let indentation = |line: &&str| line.len() - line.trim_start_matches(' ').len();
    let written = code().filter(|line| !line.trim().is_empty());
    let indent = written.map(indentation).min().ok_or("there is no code")?;
    let mut excerpt = String::new();
    for line in code() {
        push(&mut excerpt, line.get(indent..).unwrap_or_default());
    }
    Ok(format!("{}\n", excerpt.trim_matches('\n')))
}

/// Returns the lines from `first` to `last`, or to the end if `last` is empty.
fn numbered<'a>(lines: &'a [&'a str], first: &str, last: &str) -> Outcome<&'a [&'a str]> {
    let number = |text: &str| text.parse::<usize>().map_err(|error| error.to_string());
    let last = match last {
        "" => lines.len(),
        last => number(last)?,
    };
    let range = number(first)?
        .checked_sub(1)
        .and_then(|first| lines.get(first..last));
    range.ok_or_else(|| format!("it has {} lines", lines.len()))
}

/// Returns the lines between the two marks of an anchor.
fn anchored<'a>(lines: &'a [&'a str], name: &str) -> Outcome<&'a [&'a str]> {
    let [start, end] = ANCHOR.map(|mark| {
        let mark = format!("{mark}{name}");
        lines.iter().position(|line| line.ends_with(&mark))
    });
    let range = start
        .zip(end)
        .and_then(|(start, end)| lines.get(start + 1..end));
    range.ok_or_else(|| "it has no such anchor".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled_from(source: &str, page: &str) -> Outcome<Option<String>> {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("a.rs"), source).unwrap();
        filled(root.path(), page)
    }

    #[test]
    fn a_block_gets_the_code_of_its_source_and_the_rest_stays() {
        let source = "//! A.\n\nfn a() {\n    // ANCHOR: b\n    b();\n\n        c();\n    // ANCHOR_END: b\n}\n";
        for (part, code) in [
            ("", "//! A.\n\nfn a() {\n    b();\n\n        c();\n}\n"),
            (":b", "b();\n\n    c();\n"),
            (":3:", "fn a() {\n    b();\n\n        c();\n}\n"),
            (":5:5", "b();\n"),
        ] {
            let page = |code: &str| {
                format!("# A\n\n<!-- from: a.rs{part} -->\n```rust\n{code}```\n\n```text\nb\n```\n")
            };
            let filled = filled_from(source, &page("old\n")).unwrap();
            assert_eq!(filled, Some(page(code)), "{part}");
        }
        assert_eq!(filled_from(source, "# A\n\n```rust\n```\n"), Ok(None));
    }

    #[test]
    fn a_source_without_a_block_and_a_part_that_is_missing_are_errors() {
        let block = |part: &str| format!("<!-- from: a.rs{part} -->\n```rust\n```\n");
        for page in [
            "<!-- from: b.rs -->\n```rust\n```\n".to_owned(),
            "<!-- from: a.rs -->\n\n```rust\n```\n".to_owned(),
            "<!-- from: a.rs -->\n```rust\n".to_owned(),
            block(":b"),
            block(":0:1"),
            block(":2:9"),
            block(":2:1"),
        ] {
            filled_from("a();\nb();\n", &page).unwrap_err();
        }
        filled_from("```\n", &block("")).unwrap_err();
        filled_from("\n", &block("")).unwrap_err();
    }
}
