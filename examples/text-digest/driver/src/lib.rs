//! `text.digest`: the sentences that say most of a text. What the text is made of
//! it lets another tool count.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::json;
use toolward_guest::{Call, Error, driver, tools};
use unicode_segmentation::UnicodeSegmentation;

/// The tool that counts words.
const STATS: &str = "text.stats";

/// Words that carry a text: how many, and how long they have to be.
const KEY_WORDS: usize = 25;
const MIN_LETTERS: usize = 5;

#[derive(Deserialize)]
struct Input {
    text: String,
    #[serde(default = "default_sentences")]
    sentences: usize,
}

fn default_sentences() -> usize {
    3
}

#[derive(Serialize)]
struct Output {
    sentences: Vec<String>,
    key_words: Vec<String>,
    words: u64,
    sentences_in_all: u64,
    reading_seconds: u64,
}

/// What is used of the other tool's output.
#[derive(Deserialize)]
struct Stats {
    words: u64,
    sentences: u64,
    reading_seconds: u64,
    most_frequent: Vec<Frequency>,
}

#[derive(Deserialize)]
struct Frequency {
    word: String,
    count: u64,
}

fn digest(call: Call<Input>) -> Result<Output, Error> {
    let Input { text, sentences } = call.input;
    let stats: Stats = tools::call(
        STATS,
        &json!({"text": text, "top": KEY_WORDS, "min_word_length": MIN_LETTERS}),
    )?;
    let weights: HashMap<&str, u64> = stats
        .most_frequent
        .iter()
        .map(|frequent| (frequent.word.as_str(), frequent.count))
        .collect();
    Ok(Output {
        sentences: most_telling(&text, &weights, sentences),
        key_words: stats
            .most_frequent
            .iter()
            .take(10)
            .map(|frequent| frequent.word.clone())
            .collect(),
        words: stats.words,
        sentences_in_all: stats.sentences,
        reading_seconds: stats.reading_seconds,
    })
}

/// The sentences with most weight for their length, in the order of the text.
fn most_telling(text: &str, weights: &HashMap<&str, u64>, most: usize) -> Vec<String> {
    let sentences: Vec<String> = text
        .unicode_sentences()
        .map(|sentence| sentence.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    let mut order: Vec<(usize, u64)> = sentences
        .iter()
        .map(|sentence| score(sentence, weights))
        .enumerate()
        .collect();
    // Stable: of equal sentences the first one counts.
    order.sort_by_key(|(_, score)| std::cmp::Reverse(*score));
    order.truncate(most);
    order.sort_unstable();
    order
        .into_iter()
        .filter_map(|(index, _)| sentences.get(index).cloned())
        .collect()
}

/// The weights of a sentence's different words, in thousandths per word. Ten
/// words are divided by at least, or a sentence of one word would win.
fn score(sentence: &str, weights: &HashMap<&str, u64>) -> u64 {
    let words: Vec<String> = sentence.unicode_words().map(str::to_lowercase).collect();
    let different: HashSet<&str> = words.iter().map(String::as_str).collect();
    let weight: u64 = different.iter().filter_map(|word| weights.get(word)).sum();
    weight.saturating_mul(1000) / (words.len() as u64).max(10)
}

driver! { "text.digest" => digest }

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use toolward_guest::testing::{Grants, invoke};

    use super::*;

    const TEXT: &str = "It rained. Sandboxes hold drivers, and sandboxes hold drivers well. \
                        We had lunch. A sandbox that leaks is no sandbox. Drivers come and go.";

    /// What `text.stats` says of it.
    fn stats(input: Value) -> Result<Value, Error> {
        assert_eq!(input["text"], TEXT);
        assert_eq!(input["min_word_length"], 5);
        Ok(json!({
            "words": 29, "sentences": 5, "reading_seconds": 8, "bytes": 0,
            "most_frequent": [
                {"word": "drivers", "count": 3},
                {"word": "sandbox", "count": 2},
                {"word": "sandboxes", "count": 2},
                {"word": "leaks", "count": 1},
            ],
        }))
    }

    #[test]
    fn the_sentences_with_the_frequent_words_are_kept_in_order() {
        let grants = Grants::new().tool(STATS, stats);
        let input = json!({"text": TEXT, "sentences": 2});
        let output = grants.during(|| invoke(digest, input)).unwrap();
        let output = output.structured();
        assert_eq!(
            output["sentences"],
            json!([
                "Sandboxes hold drivers, and sandboxes hold drivers well.",
                "A sandbox that leaks is no sandbox.",
            ])
        );
        assert_eq!(output["key_words"][0], "drivers");
        assert_eq!(output["words"], 29);
    }

    #[test]
    fn a_text_without_sentences_has_an_empty_digest() {
        assert!(most_telling("", &HashMap::new(), 3).is_empty());
        assert_eq!(most_telling("One.", &HashMap::new(), 3), ["One."]);
    }

    #[test]
    fn the_other_tools_refusal_is_passed_on() {
        let grants = Grants::new().tool(STATS, |_| Err(Error::new("input_invalid", "too long")));
        let error = grants.during(|| invoke(digest, json!({"text": "a"})));
        assert_eq!(error.unwrap_err().code(), "input_invalid");
        let error = invoke(digest, json!({"text": "a"})).unwrap_err();
        assert_eq!(error.code(), "not_found");
    }
}
