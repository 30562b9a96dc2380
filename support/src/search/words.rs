//! Words: what a text and a question are compared by.

/// Characters of one word. Longer ones are ignored.
const MAX_WORD_CHARS: usize = 40;

/// The words of a text, in its order, lower case, plural and other endings of
/// English taken off. Names are taken apart at `.`, `_`, `-` and where a capital
/// follows a small letter. Scripts without spaces give each pair of characters.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut word = String::new();
    let mut before = ' ';
    for character in text.chars() {
        let breaks = before.is_lowercase() && character.is_uppercase();
        if breaks || !character.is_alphanumeric() {
            end(&mut word, &mut found);
        }
        if is_spaceless(character) {
            end(&mut word, &mut found);
            if is_spaceless(before) {
                found.push([before, character].iter().collect());
            } else {
                found.push(character.to_string());
            }
        } else if character.is_alphanumeric() {
            word.extend(character.to_lowercase());
        }
        before = character;
    }
    end(&mut word, &mut found);
    found
}

fn end(word: &mut String, found: &mut Vec<String>) {
    if !word.is_empty() && word.chars().count() <= MAX_WORD_CHARS {
        found.push(stem(word).to_owned());
    }
    word.clear();
}

/// Chinese, Japanese and Thai characters, which stand without spaces.
fn is_spaceless(character: char) -> bool {
    matches!(character, '\u{0e00}'..='\u{0e7f}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3134f}')
}

/// Takes off the commonest endings, where enough of the word is left. Wrong for some
/// words, and then on both sides alike.
fn stem(word: &str) -> &str {
    let plural = word.strip_suffix('s');
    let word = match plural {
        Some(rest) if rest.len() >= 3 && !rest.ends_with(['s', 'u', 'i']) => rest,
        _ => word,
    };
    const SUFFIXES: [(&str, usize); 3] = [("ing", 4), ("ed", 4), ("e", 3)];
    let without = SUFFIXES.iter().find_map(|(ending, left)| {
        let rest = word.strip_suffix(ending)?;
        (rest.len() >= *left).then_some(rest)
    });
    without.unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart_where_people_would() {
        assert_eq!(words("text.fileSearch_v2"), ["text", "fil", "search", "v2"]);
        assert_eq!(words("HTTP-Fetch"), ["http", "fetch"]);
    }

    #[test]
    fn forms_of_one_word_are_one_word() {
        for forms in [
            ["file", "files", "File"],
            ["translate", "translating", "translated"],
            ["search", "searches", "searching"],
            ["image", "images", "Images"],
        ] {
            let stems: Vec<_> = forms.iter().map(|form| words(form)).collect();
            assert!(stems.windows(2).all(|pair| pair[0] == pair[1]), "{stems:?}");
        }
        assert_eq!(words("status class string"), ["status", "class", "string"]);
    }

    #[test]
    fn scripts_without_spaces_are_found_by_parts() {
        let text = words("天气预报");
        assert!(words("天气").iter().all(|word| text.contains(word)));
    }

    #[test]
    fn a_word_longer_than_any_is_none() {
        assert_eq!(words(&"x".repeat(41)), [""; 0]);
    }
}
