//! Makes untrusted text safe to show to a person, prints the excerpt of a finding as compilers do
//! (the line number, the line, and a caret below the column), and gives hints for unknown tool
//! names.

use toolward_contract::diagnostic::{Diagnostic, Excerpt};
use toolward_support::fields::nearest;

pub use toolward_support::text::{is_hidden, is_plain, visible, visible_json, visible_line};

/// Names in a sentence, at most eight of them.
///
/// ```
/// let names = ["text.stats", "notes.append"];
/// assert_eq!(toolward_bundle::text::list(&names), "text.stats, notes.append");
/// ```
pub fn list(names: &[&str]) -> String {
    let mut text = names.iter().take(8).copied().collect::<Vec<_>>().join(", ");
    if let Some(more) = names.len().checked_sub(8).filter(|more| *more > 0) {
        text.push_str(&format!(" and {more} more"));
    }
    text
}

/// How many tools a hint lists.
const MAX_NAMED: usize = 10;

/// A hint for a wrong name: the tool that it may mean, otherwise some of the known tools; `None` if
/// no tool is known. If the name has no major version, it is compared with ids without their major
/// versions.
///
/// ```
/// use toolward_bundle::text::tool_hint;
///
/// let known = ["text.stats@1", "notes.append@2"];
/// assert_eq!(tool_hint("text.stat", known).unwrap(), "did you mean `text.stats`?");
/// assert_eq!(tool_hint("weather", known).unwrap(), "the tools are: text.stats@1, notes.append@2");
/// assert_eq!(tool_hint("weather", []), None);
/// ```
pub fn tool_hint<'i>(name: &str, major_ids: impl IntoIterator<Item = &'i str>) -> Option<String> {
    let ids: Vec<&str> = major_ids.into_iter().collect();
    if let Some(near) = near_tool(name, ids.iter().copied()) {
        return Some(format!("did you mean `{near}`?"));
    }
    let listed = ids.get(..MAX_NAMED).unwrap_or(&ids).join(", ");
    match ids.len() {
        0 => None,
        count if count <= MAX_NAMED => Some(format!("the tools are: {listed}")),
        _ => Some(format!("some of the tools are: {listed}")),
    }
}

/// The known name that a wrong name may mean.
pub fn near_tool<'i>(name: &str, known: impl IntoIterator<Item = &'i str>) -> Option<&'i str> {
    let plain = |id: &'i str| match name.contains('@') {
        true => id,
        false => id.split_once('@').map_or(id, |(id, _major)| id),
    };
    nearest(name, known.into_iter().map(plain))
}

/// How many columns of a line are shown.
const MAX_COLUMNS: usize = 100;

/// How many columns before the caret are kept if a line is cut.
const COLUMNS_BEFORE: usize = 60;

/// The display of a tab.
const TAB: &str = "    ";

/// The line of a finding, and a second line with the caret; `None` if the finding has no excerpt.
///
/// A line that is too long is cut around the finding's column. Tabs become spaces, and characters
/// are replaced as [`visible_line`] does.
pub fn excerpt(finding: &Diagnostic) -> Option<String> {
    let excerpt = finding.excerpt.as_ref()?;
    let number = finding.line.to_string();
    let gutter = " ".repeat(number.len());
    let (line, caret) = shown(excerpt);
    Some(format!(
        "  {number} | {line}\n  {gutter} | {}^",
        " ".repeat(caret)
    ))
}

/// The displayed line, and how many columns are before the caret.
fn shown(excerpt: &Excerpt) -> (String, usize) {
    let cells: Vec<String> = excerpt.text.chars().map(cell).collect();
    let widths: Vec<usize> = cells.iter().map(|cell| cell.chars().count()).collect();
    let whole = !excerpt.starts_earlier && !excerpt.goes_on;
    let from = match whole && widths.iter().sum::<usize>() <= MAX_COLUMNS {
        true => 0,
        false => first_kept(&widths, excerpt.before),
    };
    let mut line = match from > 0 || excerpt.starts_earlier {
        true => "…".to_owned(),
        false => String::new(),
    };
    let mut columns = line.chars().count();
    let mut caret = columns;
    let mut goes_on = excerpt.goes_on;
    for (index, (cell, width)) in cells.iter().zip(&widths).enumerate().skip(from) {
        if columns + width > MAX_COLUMNS {
            goes_on = true;
            break;
        }
        line.push_str(cell);
        columns += width;
        if index < excerpt.before {
            caret = columns;
        }
    }
    if goes_on {
        line.push('…');
    }
    (line.trim_end().to_owned(), caret)
}

/// The index of the first displayed character if a line is cut.
fn first_kept(widths: &[usize], before: usize) -> usize {
    let mut columns = 0;
    let mut from = before.min(widths.len());
    for width in widths.iter().take(before).rev() {
        columns += width;
        if columns > COLUMNS_BEFORE {
            break;
        }
        from -= 1;
    }
    from
}

/// The display of a character.
fn cell(character: char) -> String {
    match character {
        '\t' => TAB.to_owned(),
        _ => visible_line(character.encode_utf8(&mut [0; 4]), 1),
    }
}

#[cfg(test)]
mod tests {
    use toolward_contract::diagnostic::{Position, attach};

    use super::*;
    use crate::codes;

    fn of(text: &str, line: u32, column: u32) -> String {
        let at = Position { line, column };
        let mut found = [Diagnostic::new(&codes::FILE_NAME, "a", at, "")];
        attach(&mut found, |_| Some(text.as_bytes()));
        excerpt(&found[0]).unwrap_or_default()
    }

    /// The character above the caret.
    fn pointed(shown: &str) -> char {
        let (line, caret) = shown.split_once('\n').unwrap();
        line.chars().nth(caret.chars().count() - 1).unwrap()
    }

    #[test]
    fn the_caret_stands_below_the_column() {
        assert_eq!(of("---\nid: X\n", 2, 5), "  2 | id: X\n    |     ^");
        let shown = of(&format!("{}\nid: X\n", "\n".repeat(98)), 100, 1);
        assert_eq!(shown, "  100 | id: X\n      | ^");
    }

    #[test]
    fn the_caret_may_stand_behind_the_end_of_a_line() {
        assert_eq!(of("a\nid:\n", 2, 4), "  2 | id:\n    |    ^");
    }

    #[test]
    fn tabs_and_what_is_not_seen_move_the_caret_along() {
        assert_eq!(pointed(&of("a\n\tx: 1\n", 2, 2)), 'x');
        let shown = of("a\nname: \u{1b}[2J\u{202e}x\n", 2, 12);
        assert_eq!(pointed(&shown), 'x');
        assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown}");
    }

    #[test]
    fn a_long_line_is_cut_around_the_column() {
        let line = format!("{}x{}", "a".repeat(5000), "b".repeat(5000));
        for (column, text) in [(1, 'a'), (101, 'a'), (5001, 'x'), (10_001, 'b')] {
            let shown = of(&format!("\n{line}"), 2, column);
            assert_eq!(pointed(&shown), text, "{column}: {shown}");
            let longest = shown.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(MAX_COLUMNS + 8), "{column}: {shown}");
            assert_eq!(shown.contains("| …"), column > 61, "{column}: {shown}");
        }
        let tabs = "\t".repeat(500);
        let shown = of(&format!("\n{tabs}x{tabs}"), 2, 501);
        assert_eq!(pointed(&shown), 'x');
    }

    #[test]
    fn a_finding_that_points_nowhere_shows_no_line() {
        assert_eq!(of("---\n", 1, 1), "");
    }
}
