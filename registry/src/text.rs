//! Text from outside, made fit to be shown.

/// How much of a hostile text is shown, in characters.
const MAX_CHARS: usize = 200;

/// The text in quotes, hidden characters escaped, cut where it is long.
pub(crate) fn quoted(text: &str) -> String {
    format!("`{}`", toolward_text::visible_line(text, MAX_CHARS))
}

/// A number of bytes in words.
pub(crate) fn bytes(count: u64) -> String {
    match count {
        1 => "1 byte".to_owned(),
        count => format!("{count} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn hostile_text_is_shown_without_its_tricks() {
        assert_eq!(quoted("a\u{1b}[2J\u{202e}b\n"), r"`a\e[2J\u{202e}b\n`");
        assert!(quoted(&"x".repeat(10_000)).chars().count() < 240);
    }
}
