//! Text from outside, made fit to be shown.

/// How much of a hostile text is shown, in characters.
const SHOWN: usize = 200;

/// The text in quotes, hidden characters escaped, cut where it is long.
pub(crate) fn quoted(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .take(SHOWN)
        .map(|character| {
            if toolward_signing::text::is_hidden(character) || character.is_control() {
                '\u{fffd}'
            } else {
                character
            }
        })
        .collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    format!("`{shown}`")
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
        assert_eq!(
            quoted("a\u{1b}[2J\u{202e}b\n"),
            "`a\u{fffd}[2J\u{fffd}b\u{fffd}`"
        );
        assert!(quoted(&"x".repeat(10_000)).chars().count() < 210);
    }
}
