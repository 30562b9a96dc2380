//! Finds the known word that a misspelt word may mean. Only this module decides how near two words
//! are.

/// How many characters of the word are compared. Longer known words are not compared at all.
const MAX_CHARS: usize = 64;

/// How many known words a search looks at. They may come from a document of any size.
const MAX_KNOWN: usize = 512;

/// How many pairs of letters a search compares. That takes some tenths of a millisecond, and a
/// document may have thousands of wrong words.
const MAX_PAIRS: usize = 100_000;

/// Finds the known word that `word` probably means: the known word that differs from it by the
/// fewest slips. A slip is an additional, missing or wrong letter, or two swapped neighbours. A
/// known word may differ by at most one slip for each three of its letters. A known word of two
/// letters also matches a word with one more letter, and the word with its letters swapped. Of
/// equally near words, the alphabetically first is returned.
///
/// The search is bounded: it looks at the first 512 known words, ignores known words of more than
/// 64 characters, and compares only the first 64 characters of `word`. It compares at most 100,000
/// pairs of letters in all, and skips a known word that needs more pairs than are left.
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let word: String = word.chars().take(MAX_CHARS).collect();
    let mut left = MAX_PAIRS;
    known
        .into_iter()
        .take(MAX_KNOWN)
        .filter_map(|candidate| Some((slips(&word, candidate, &mut left)?, candidate)))
        .min()
        .map(|(_, candidate)| candidate)
}

/// The hint for an unknown word: the known word that was probably meant, or otherwise a list of all
/// known words (`the WHAT are: …`).
pub fn did_you_mean<'k>(
    word: &str,
    known: impl Iterator<Item = &'k str> + Clone,
    what: &str,
) -> String {
    match nearest(word, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the {what} are: {}", known.collect::<Vec<_>>().join(", ")),
    }
}

/// Limits a series of searches to 64; later wrong names get no hint. A bundle may have hundreds of
/// thousands of wrong names, which would keep a host busy.
#[derive(Debug)]
pub struct NearNames {
    left: usize,
}

impl Default for NearNames {
    fn default() -> Self {
        Self { left: 64 }
    }
}

impl NearNames {
    /// As [`nearest`]; also `None` if no search is left.
    pub fn find<'k>(
        &mut self,
        word: &str,
        known: impl IntoIterator<Item = &'k str>,
    ) -> Option<&'k str> {
        self.left = self.left.checked_sub(1)?;
        nearest(word, known)
    }
}

/// The number of slips from `candidate` to `word`. `None` if there are too many slips, if
/// `candidate` is too long, or if fewer pairs are left than this comparison needs.
fn slips(word: &str, candidate: &str, left: &mut usize) -> Option<usize> {
    let length = |text: &str| text.chars().take(MAX_CHARS + 1).count();
    let (letters, others) = (length(candidate), length(word));
    let allowed = match (letters, others) {
        (2, 3) => 1,
        (2, 2) if candidate.chars().eq(word.chars().rev()) => 1,
        _ => letters / 3,
    };
    if letters > MAX_CHARS || letters.abs_diff(others) > allowed {
        return None;
    }
    *left = left.checked_sub(letters * others)?;
    Some(strsim::osa_distance(candidate, word)).filter(|slips| *slips <= allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_found_and_a_far_one_is_not() {
        let known = ["requires", "mutates", "tool", "fuel"];
        let near = |word| nearest(word, known);
        assert_eq!(near("require"), Some("requires"));
        assert_eq!(near("mutate"), Some("mutates"));
        assert_eq!(near("tools"), Some("tool"));
        assert_eq!(near("fule"), Some("fuel"));
        assert_eq!(near("colour"), None);
        assert_eq!(nearest("idd", ["id"]), Some("id"));
        assert_eq!(nearest("di", ["id"]), Some("id"));
        for far in ["i", "ix", "ide1", "dxi"] {
            assert_eq!(nearest(far, ["id"]), None, "{far}");
        }
        assert_eq!(near(""), None);
        assert_eq!(nearest("driven", ["drives", "driver"]), Some("driver"));
        assert_eq!(nearest("kitten", ["sitting"]), None);
    }

    #[test]
    fn a_slip_is_a_letter_too_many_too_few_or_wrong_or_two_that_changed_places() {
        let slips = |word, known| slips(word, known, &mut MAX_PAIRS.clone());
        assert_eq!(slips("abcdef", "abcdef"), Some(0));
        for word in ["abcdeef", "abcde", "abcdxf", "abcdfe", "bacdef"] {
            assert_eq!(slips(word, "abcdef"), Some(1), "{word}");
        }
        assert_eq!(slips("badcef", "abcdef"), Some(2));
        assert_eq!(slips("badcfe", "abcdef"), None);
    }

    #[test]
    fn searches_end() {
        let mut near = NearNames::default();
        let found = (0..100).filter_map(|_| near.find("fule", ["fuel"]));
        assert_eq!(found.count(), 64);
    }

    #[test]
    fn words_of_any_length_are_compared_in_bounded_time() {
        let long = "a".repeat(1 << 20);
        assert_eq!(nearest(&long, [long.as_str(), "a"]), None);
        let many: Vec<String> = (0..100_000).map(|number| format!("name{number}")).collect();
        assert_eq!(nearest("name99999x", many.iter().map(String::as_str)), None);
        // One search compares exactly up to its limit.
        let word = "ab".repeat(32);
        let unlike = "ba".repeat(32);
        let fit = MAX_PAIRS / (64 * 64);
        let search = |before: usize| {
            let known = std::iter::repeat_n(unlike.as_str(), before);
            nearest(&word, known.chain([word.as_str()])).is_some_and(|found| found == word)
        };
        assert!(search(fit - 1) && !search(fit));
    }
}
