//! Lines of prose that fit a terminal. Commands, digests and data are not wrapped: they are
//! copied whole.

/// Narrowest line that is filled, in columns: a narrower terminal wraps by itself.
const MIN_WIDTH: usize = 20;

/// Text for standard output, its lines ended by `end`, which indents the next one. On a terminal
/// they are broken between words so that they fit; elsewhere they stay as they are.
pub(crate) fn wrapped(text: &str, end: &str) -> String {
    // Fails where it is no terminal.
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
    let columns = size.map(|size| usize::from(size.ws_col));
    let indent = end.trim_start_matches('\n').len();
    match columns.map(|columns| columns.saturating_sub(indent)) {
        Some(width) if width >= MIN_WIDTH => fill(text, width).join(end),
        _ => text.replace('\n', end),
    }
}

/// Breaks a text into lines of at most `width` columns: between words, or within a word that is wider than a line. Each
/// break takes the place of one space; all other spaces stay.
fn fill(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        let mut line = String::new();
        let mut used = 0;
        for part in paragraph.split_inclusive(' ') {
            let word = part.strip_suffix(' ').unwrap_or(part);
            let length: usize = word.chars().map(columns).sum();
            if used > 0 && used + length > width {
                if line.ends_with(' ') {
                    line.pop();
                }
                lines.push(std::mem::take(&mut line));
                used = 0;
            }
            for character in part.chars() {
                if used + columns(character) > width {
                    lines.push(std::mem::take(&mut line));
                    used = 0;
                    if character == ' ' {
                        continue;
                    }
                }
                line.push(character);
                used += columns(character);
            }
        }
        lines.push(line);
    }
    lines
}

/// Cuts a line into pieces of at most `width` columns.
pub(crate) fn pieces(line: &str, width: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut used = 0;
    for character in line.chars() {
        if used + columns(character) > width {
            pieces.push(String::new());
            used = 0;
        }
        used += columns(character);
        if let Some(piece) = pieces.last_mut() {
            piece.push(character);
        }
    }
    pieces
}

/// The most columns that a character can take. All beyond ASCII count as two. A line that is too long would continue in
/// the terminal's first column, where it could pass for a line of this command.
fn columns(character: char) -> usize {
    match character {
        '\t' => 8,
        character if character.is_ascii() => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::{columns, fill};

    #[test]
    fn lines_break_between_words() {
        assert_eq!(fill("one two three", 7), ["one two", "three"]);
        assert_eq!(fill("one\n\ntwo", 7), ["one", "", "two"]);
        assert_eq!(
            fill("a longerthanthat b", 7),
            ["a", "longert", "hanthat", "b"]
        );
        assert_eq!(fill("", 7), [""]);
    }

    #[test]
    fn spaces_stay_but_one_at_each_break() {
        assert_eq!(fill("  - nested list", 10), ["  - nested", "list"]);
        assert_eq!(fill("one   two", 5), ["one  ", "two"]);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for text in [
            "\u{5b57}".repeat(50),
            "x".repeat(99),
            " ".repeat(99),
            "a\tb ".repeat(9),
        ] {
            for line in fill(&text, 20) {
                assert!(line.chars().map(columns).sum::<usize>() <= 20, "{line:?}");
            }
        }
    }
}
