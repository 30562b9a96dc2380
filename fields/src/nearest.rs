//! The known word that a misspelt one may stand for.

/// The word of `known` that the fewest letters have to be inserted in, removed from or replaced in to get `word`,
/// where they are at most as many as `tolerance` gives for the length of the known word. The first of `known`, if
/// others are as near.
pub fn nearest<'k>(
    word: &str,
    known: impl IntoIterator<Item = &'k str>,
    tolerance: impl Fn(usize) -> usize,
) -> Option<&'k str> {
    const MAX_COMPARED_CHARS: usize = 64;
    let word: Vec<char> = word.chars().take(MAX_COMPARED_CHARS).collect();
    known
        .into_iter()
        .map(|candidate| (distance(&word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= tolerance(candidate.len()))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Levenshtein's.
fn distance(word: &[char], candidate: &str) -> usize {
    let mut row: Vec<usize> = (0..=word.len()).collect();
    for (index, letter) in candidate.chars().enumerate() {
        let mut diagonal = index;
        let mut before = index + 1;
        let mut next = vec![before];
        for (other, above) in word.iter().zip(row.iter().skip(1)) {
            let change = diagonal + usize::from(*other != letter);
            before = change.min(above + 1).min(before + 1);
            diagonal = *above;
            next.push(before);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_found_and_a_far_one_is_not() {
        let known = ["requires", "mutates", "tool"];
        let near = |word| nearest(word, known, |length| 2.min(length / 2));
        assert_eq!(near("require"), Some("requires"));
        assert_eq!(near("mutate"), Some("mutates"));
        assert_eq!(near("tools"), Some("tool"));
        assert_eq!(near("colour"), None);
        let first = nearest("driven", ["drives", "driver"], |_| 1);
        assert_eq!(first, Some("drives"));
        let kitten: Vec<char> = "kitten".chars().collect();
        assert_eq!(distance(&kitten, "sitting"), 3);
    }
}
