//! Lines of prose that fit a terminal. Commands, digests and data are not wrapped: they are
//! copied whole.

use std::io::IsTerminal as _;

/// Narrowest line that is filled, in characters: a narrower terminal wraps by itself.
const MIN_WIDTH: usize = 20;

/// Text for standard output, its lines ended by `end`, which indents the next one. On a terminal
/// they are broken between words so that they fit; elsewhere they stay as they are.
pub(crate) fn wrapped(text: &str, end: &str) -> String {
    let stdout = std::io::stdout();
    let columns = stdout
        .is_terminal()
        .then(|| rustix::termios::tcgetwinsize(&stdout).ok())
        .flatten()
        .map(|size| usize::from(size.ws_col));
    let indent = end.trim_start_matches('\n').len();
    match columns.map(|columns| columns.saturating_sub(indent)) {
        Some(width) if width >= MIN_WIDTH => fill(text, width).join(end),
        _ => text.replace('\n', end),
    }
}

/// The lines of a text, each at most this many characters where its words are not longer.
fn fill(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        let mut line = String::new();
        let mut filled: usize = 0;
        for word in paragraph.split(' ') {
            let length = word.chars().count();
            let next = filled.saturating_add(length).saturating_add(1);
            if filled > 0 && next > width {
                lines.push(std::mem::take(&mut line));
                filled = 0;
            }
            if filled > 0 {
                line.push(' ');
                filled = filled.saturating_add(1);
            }
            line.push_str(word);
            filled = filled.saturating_add(length);
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::fill;

    #[test]
    fn lines_break_between_words() {
        assert_eq!(fill("one two three", 7), ["one two", "three"]);
        assert_eq!(fill("one\n\ntwo", 7), ["one", "", "two"]);
        assert_eq!(fill("a longerthanthat b", 7), ["a", "longerthanthat", "b"]);
        assert_eq!(fill("\u{e4}\u{e4}\u{e4} b", 5), ["\u{e4}\u{e4}\u{e4} b"]);
        assert_eq!(fill("", 7), [""]);
    }
}
