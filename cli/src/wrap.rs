//! Wraps lines of prose to the width of a terminal. Commands, digests and data are not wrapped,
//! since people copy them whole.

/// Narrowest line that is filled, in columns. A narrower terminal wraps by itself.
const MIN_WIDTH: usize = 20;

/// Wraps text for standard output. Lines are separated by `end`, which indents the next line. On a
/// terminal they are broken between words to fit; elsewhere they stay unchanged.
pub(crate) fn wrapped(text: &str, end: &str) -> String {
    match width(std::io::stdout(), end) {
        Some(width) => fill(text, width).join(end),
        None => text.replace('\n', end),
    }
}

/// Wraps one line with commands between backticks. A command stays whole even if it is wider than
/// the terminal, so that people can copy it.
pub(crate) fn wrapped_around_code(text: &str, end: &str) -> String {
    match width(std::io::stdout(), end) {
        Some(width) => fill_around_code(text, width).join(end),
        None => text.to_owned(),
    }
}

/// Wraps text for standard error. The first line follows `label`, and each later line is indented
/// by `end`. On a terminal the lines are broken between words; elsewhere they stay unchanged.
pub(crate) fn wrapped_behind(label: &str, text: &str, end: &str) -> String {
    match width(std::io::stderr(), end) {
        Some(width) => fill_behind(label, text, width).join(end),
        None => text.replace('\n', end),
    }
}

/// Returns the columns of a line if the stream is a terminal.
fn width(stream: impl std::os::fd::AsFd, end: &str) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    let indent = end.trim_start_matches('\n').len();
    let width = usize::from(size.ws_col).saturating_sub(indent);
    (width >= MIN_WIDTH).then_some(width)
}

/// Breaks a line between words, but never within a word or between backticks.
fn fill_around_code(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut word = String::new();
    let mut is_code = false;
    let mut place = |word: &mut String| {
        let length = |text: &str| text.chars().map(columns).sum::<usize>();
        if let Some(line) = lines.last_mut()
            && (line.is_empty() || length(line) + 1 + length(word) <= width)
        {
            let space = if line.is_empty() { "" } else { " " };
            line.push_str(space);
            line.push_str(word);
            word.clear();
        } else {
            lines.push(std::mem::take(word));
        }
    };
    for character in text.chars() {
        is_code ^= character == '`';
        match character == ' ' && !is_code {
            true => place(&mut word),
            false => word.push(character),
        }
    }
    place(&mut word);
    lines
}

/// Breaks the lines of a text. The first line follows a label, which must be ASCII.
fn fill_behind(label: &str, text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, line) in text.split('\n').enumerate() {
        // As many `x` as the label has characters precede the text, without a space. They form one
        // word with the text's first word, so no line breaks between label and text.
        let place = if number == 0 { label.len() } else { 0 };
        let filled = fill_around_code(&format!("{}{line}", "x".repeat(place)), width);
        for (part, line) in filled.into_iter().enumerate() {
            let hidden = if part == 0 { place } else { 0 };
            lines.push(line.chars().skip(hidden).collect());
        }
    }
    lines
}

/// Breaks a text into lines of at most `width` columns: between words, or within a word that is
/// wider than a line. Each break replaces one space; all other spaces stay.
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

/// Returns the most columns that a character can take: two for any character beyond ASCII. With too
/// small a count, a line would continue in the terminal's first column, and could look like a line
/// of this command.
fn columns(character: char) -> usize {
    match character {
        '\t' => 8,
        character if character.is_ascii() => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::{columns, fill, fill_around_code, fill_behind};

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
    fn commands_between_backticks_stay_whole() {
        let text = "this lacks a target: `rustup target add wasm`, or name another";
        let lines = fill_around_code(text, 21);
        let whole = [
            "this lacks a target:",
            "`rustup target add wasm`,",
            "or name another",
        ];
        assert_eq!(lines, whole);
        assert_eq!(fill_around_code("a `b c", 3), ["a", "`b c"]);
        assert_eq!(fill_around_code("", 3), [""]);
    }

    #[test]
    fn the_first_line_has_room_for_its_label() {
        let lines = fill_behind("error: ", "no such file `a b c d`\nor folder", 14);
        assert_eq!(lines, ["no such", "file `a b c d`", "or folder"]);
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
