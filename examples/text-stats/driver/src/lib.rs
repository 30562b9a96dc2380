//! `text.stats`: what a text is made of.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::Number;
use toolward_guest::{Call, Error, driver};
use unicode_segmentation::UnicodeSegmentation;

#[derive(Deserialize)]
struct Input {
    text: String,
    #[serde(default = "Input::default_top")]
    top: usize,
    #[serde(default = "Input::default_speed")]
    words_per_minute: u32,
    #[serde(default)]
    min_word_length: usize,
}

impl Input {
    fn default_top() -> usize {
        10
    }

    fn default_speed() -> u32 {
        238
    }
}

#[derive(Serialize)]
struct Output {
    bytes: usize,
    characters: usize,
    characters_without_spaces: usize,
    words: usize,
    unique_words: usize,
    sentences: usize,
    paragraphs: usize,
    lines: usize,
    longest_line: usize,
    longest_word: String,
    average_word_length: Number,
    average_sentence_length: Number,
    reading_seconds: u64,
    most_frequent: Vec<Frequency>,
}

#[derive(Serialize)]
struct Frequency {
    word: String,
    count: usize,
}

fn stats(call: Call<Input>) -> Result<Output, Error> {
    let Input {
        text,
        top,
        words_per_minute,
        min_word_length,
    } = call.input;

    let mut counts: HashMap<String, usize> = HashMap::new();
    let mut words = 0;
    let mut letters = 0;
    let mut longest = ("", 0);
    for word in text.unicode_words() {
        let length = word.graphemes(true).count();
        words += 1;
        letters += length;
        if length > longest.1 {
            longest = (word, length);
        }
        *counts.entry(word.to_lowercase()).or_default() += 1;
    }

    let unique_words = counts.len();
    let mut frequent: Vec<Frequency> = counts
        .into_iter()
        .filter(|(word, _)| word.graphemes(true).count() >= min_word_length)
        .map(|(word, count)| Frequency { word, count })
        .collect();
    // The word decides between equal counts, so that the order is always the same.
    frequent.sort_unstable_by(|a, b| b.count.cmp(&a.count).then_with(|| a.word.cmp(&b.word)));
    frequent.truncate(top);

    let sentences = text.unicode_sentences().count();
    Ok(Output {
        bytes: text.len(),
        characters: text.graphemes(true).count(),
        characters_without_spaces: text
            .graphemes(true)
            .filter(|grapheme| !grapheme.chars().all(char::is_whitespace))
            .count(),
        words,
        unique_words,
        sentences,
        paragraphs: paragraphs(&text),
        lines: text.lines().count(),
        longest_line: text
            .lines()
            .map(|line| line.graphemes(true).count())
            .max()
            .unwrap_or(0),
        longest_word: longest.0.to_owned(),
        average_word_length: ratio(letters, words),
        average_sentence_length: ratio(words, sentences),
        reading_seconds: (words as u64 * 60).div_ceil(u64::from(words_per_minute.max(1))),
        most_frequent: frequent,
    })
}

/// Runs of lines that are not blank.
fn paragraphs(text: &str) -> usize {
    let mut inside = false;
    let mut count = 0;
    for line in text.lines() {
        let blank = line.trim().is_empty();
        count += usize::from(!blank && !inside);
        inside = !blank;
    }
    count
}

/// At most two decimals; 0 where there is nothing to divide by.
fn ratio(sum: usize, count: usize) -> Number {
    let hundredths = (sum * 100 + count / 2).checked_div(count).unwrap_or(0);
    if hundredths % 100 == 0 {
        return Number::from(hundredths / 100);
    }
    Number::from_f64(hundredths as f64 / 100.0).unwrap_or(0.into())
}

driver! { "text.stats" => stats }
