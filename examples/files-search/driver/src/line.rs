//! Matching lines of one file.

use regex::Regex;
use serde::Serialize;

/// Longest piece of a line that is shown, in characters.
const MAX_SHOWN: usize = 500;

#[derive(Serialize)]
pub(crate) struct Match {
    pub(crate) path: String,
    pub(crate) line: usize,
    column: usize,
    text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    before: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    after: Vec<String>,
}

pub(crate) struct Found {
    pub(crate) matches: Vec<Match>,
    /// Whether there is a match more than there was room for.
    pub(crate) more: bool,
}

/// The first `room` lines that match, each with its neighbours.
pub(crate) fn find(path: &str, text: &str, pattern: &Regex, context: usize, room: usize) -> Found {
    let lines: Vec<&str> = text.lines().collect();
    let mut matches = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let Some(found) = pattern.find(line) else {
            continue;
        };
        if matches.len() == room {
            return Found {
                matches,
                more: true,
            };
        }
        let neighbours = |from: usize, to: usize| {
            let lines = lines.get(from..to.min(lines.len())).unwrap_or_default();
            lines.iter().map(|line| shown(line)).collect()
        };
        let column = line.get(..found.start()).unwrap_or_default();
        matches.push(Match {
            path: path.to_owned(),
            line: index + 1,
            column: column.chars().count() + 1,
            text: shown(line),
            before: neighbours(index.saturating_sub(context), index),
            after: neighbours(index + 1, index + 1 + context),
        });
    }
    Found {
        matches,
        more: false,
    }
}

fn shown(line: &str) -> String {
    match line.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_match_has_its_place_and_its_neighbours() {
        let pattern = Regex::new("x+").unwrap();
        let found = find("p", "a\nb\nüxx\nc\nd", &pattern, 1, 10);
        let found = &found.matches[0];
        assert_eq!((found.line, found.column), (3, 2));
        assert_eq!(found.before, ["b"]);
        assert_eq!(found.after, ["c"]);
        let wide = find("p", "x", &pattern, 5, 10);
        assert!(wide.matches[0].before.is_empty() && wide.matches[0].after.is_empty());
    }

    #[test]
    fn long_lines_are_cut_between_characters() {
        let pattern = Regex::new("é").unwrap();
        let found = find("p", &"é".repeat(1000), &pattern, 0, 10);
        assert_eq!(found.matches[0].text.chars().count(), MAX_SHOWN + 1);
    }
}
