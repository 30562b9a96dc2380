//! Ranking of tools for a query: a pure function over whatever list, installed bundles or a channel's index.

use serde::Serialize;

use crate::tools::InstalledTool;

/// What is searched. All of it is somebody else's text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SearchEntry {
    /// The id.
    pub id: String,
    /// The name for people; may be empty.
    pub title: String,
    /// What it says of itself.
    pub description: String,
    /// Tags.
    pub tags: Vec<String>,
    /// The publisher.
    pub publisher: String,
}

/// A match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranked {
    /// Which entry, counted from 0.
    pub index: usize,
    /// How well it matches; higher is better, and comparable within one query only.
    pub score: u32,
}

/// A tool of an installed bundle that matches.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Found {
    /// The tool.
    pub tool: InstalledTool,
    /// How well it matches.
    pub score: u32,
}

/// How many words of a query count, and how many characters of it: more says no more.
const WORDS: usize = 16;
const LONGEST: usize = 500;

/// The entries in which each word of the query occurs, the best first, equals by id. A query without words
/// matches everything. Case doesn't count; a word matches a whole word best, then a beginning, then a part.
#[must_use]
pub fn rank<'a>(query: &str, entries: impl IntoIterator<Item = &'a SearchEntry>) -> Vec<Ranked> {
    let query: String = query
        .chars()
        .take(LONGEST)
        .collect::<String>()
        .to_lowercase();
    let words: Vec<&str> = words(&query).take(WORDS).collect();
    let whole = query.trim();
    let mut ranked: Vec<(Ranked, &str)> = entries
        .into_iter()
        .enumerate()
        .filter_map(|(index, entry)| {
            let score = score(whole, &words, entry)?;
            Some((Ranked { index, score }, entry.id.as_str()))
        })
        .collect();
    ranked.sort_by(|(a, first), (b, second)| b.score.cmp(&a.score).then(first.cmp(second)));
    ranked.into_iter().map(|(ranked, _)| ranked).collect()
}

/// The sum over the words, or nothing if one of them doesn't occur.
fn score(whole: &str, words: &[&str], entry: &SearchEntry) -> Option<u32> {
    // What a match is worth: a whole word, a beginning, a part.
    let fields = [
        (entry.id.to_lowercase(), [60, 40, 12]),
        (entry.title.to_lowercase(), [50, 30, 10]),
        (entry.tags.join(" ").to_lowercase(), [45, 20, 6]),
        (entry.publisher.to_lowercase(), [25, 10, 3]),
        (entry.description.to_lowercase(), [10, 6, 2]),
    ];
    let mut total = 0_u32;
    for word in words {
        let values = fields.iter().map(|(text, worth)| value(word, text, worth));
        let found: u32 = values.fold(0, u32::saturating_add);
        if found == 0 {
            return None;
        }
        total = total.saturating_add(found);
    }
    let exact = fields.first().is_some_and(|(id, _)| id == whole);
    Some(total.saturating_add(if exact { 200 } else { 0 }))
}

fn value(word: &str, text: &str, worth: &[u32; 3]) -> u32 {
    let [whole, beginning, part] = *worth;
    if !text.contains(word) {
        0
    } else if words(text).any(|found| found == word) {
        whole
    } else if words(text).any(|found| found.starts_with(word)) {
        beginning
    } else {
        part
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|character: char| !character.is_alphanumeric());
    words.filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str, title: &str, description: &str, tags: &[&str]) -> SearchEntry {
        SearchEntry {
            id: id.to_owned(),
            title: title.to_owned(),
            description: description.to_owned(),
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            publisher: "acme".to_owned(),
        }
    }

    fn found(query: &str) -> Vec<&'static str> {
        let entries = [
            entry("mail.send", "Send mail", "Sends a letter.", &["smtp"]),
            entry("mailbox.list", "List", "Lists what came in.", &[]),
            entry(
                "text.stats",
                "Text statistics",
                "Counts words, also in a MAIL.",
                &["Words"],
            ),
        ];
        let ids = ["mail.send", "mailbox.list", "text.stats"];
        rank(query, &entries)
            .iter()
            .map(|ranked| ids[ranked.index])
            .collect()
    }

    #[test]
    fn a_whole_word_of_an_id_beats_a_beginning_and_that_beats_the_description() {
        assert_eq!(found("mail"), ["mail.send", "mailbox.list", "text.stats"]);
    }

    #[test]
    fn case_does_not_count() {
        assert_eq!(found("WORDS"), ["text.stats"]);
        assert_eq!(found("SmTp"), ["mail.send"]);
    }

    #[test]
    fn each_word_must_occur_somewhere() {
        assert_eq!(found("mail words"), ["text.stats"]);
        assert!(found("mail nowhere").is_empty());
    }

    #[test]
    fn the_publisher_and_a_part_of_a_word_are_found() {
        assert_eq!(found("acme").len(), 3);
        assert_eq!(found("tistic"), ["text.stats"]);
    }

    #[test]
    fn a_query_without_words_matches_everything_by_id() {
        assert_eq!(found(" . "), ["mail.send", "mailbox.list", "text.stats"]);
    }

    #[test]
    fn the_exact_id_comes_first() {
        assert_eq!(found("mailbox.list").first(), Some(&"mailbox.list"));
    }
}
