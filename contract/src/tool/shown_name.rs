//! Names that MCP clients accept. The protocol allows dots; clients refuse a tool, and some the whole chat, for
//! a name that does not match `^[a-zA-Z0-9_-]{1,64}$`.

/// A text in the characters of a name over MCP: letters, digits, `-`, and `_` for everything else. `_` stands
/// alone, never first and never last: clients put `__` between their own prefix and a name. Empty where nothing
/// of the text is left.
#[must_use]
pub fn mapped(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' => name.push(character),
            _ if name.is_empty() || name.ends_with('_') => {}
            _ => name.push('_'),
        }
    }
    if name.ends_with('_') {
        name.pop();
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_letters_digits_dashes_and_single_underscores() {
        for (text, name) in [
            ("text.stats", "text_stats"),
            ("Count-Words", "Count-Words"),
            ("a__b._c", "a_b_c"),
            ("_x_", "x"),
            ("dev:/home/ada", "dev_home_ada"),
            ("naïve", "na_ve"),
            ("...", ""),
        ] {
            assert_eq!(mapped(text), name, "{text}");
            assert_eq!(mapped(name), name);
        }
    }
}
