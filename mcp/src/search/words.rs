//! Words: what a text and a question are compared by.

/// Characters of one word. What is longer is no word.
const LONGEST: usize = 40;

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
    if !word.is_empty() && word.chars().count() <= LONGEST {
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
    const ENDINGS: [(&str, usize); 3] = [("ing", 4), ("ed", 4), ("e", 3)];
    let without = ENDINGS.iter().find_map(|(ending, left)| {
        let rest = word.strip_suffix(ending)?;
        (rest.len() >= *left).then_some(rest)
    });
    without.unwrap_or(word)
}
