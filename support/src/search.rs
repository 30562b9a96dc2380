//! Finds tools by a few words. The same index serves for the tools that a server offers, for
//! installed tools, and for the tools in a channel.
//!
//! ```
//! use toolward_support::search::{SearchDocument, SearchIndex};
//!
//! let index = SearchIndex::build([
//!     SearchDocument { name: "mail.send", title: "Send mail", ..SearchDocument::default() },
//!     SearchDocument { name: "files.search", title: "Search files", ..SearchDocument::default() },
//! ]);
//! let hits = index.search_among("sending mails", |_| true);
//! assert_eq!(hits[0].position, 0);
//! ```

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The searchable texts of a tool.
#[derive(Debug, Clone, Default)]
pub struct SearchDocument<'a> {
    /// The name under which it is called.
    pub name: &'a str,
    /// Its contract's id.
    pub id: &'a str,
    /// Its former names.
    pub aliases: &'a [String],
    /// Its name for people.
    pub title: &'a str,
    /// Additional words by which it is found.
    pub hint: &'a str,
    /// The namespace of its name.
    pub namespace: &'a str,
    /// Tags.
    pub tags: &'a [String],
    /// Its publisher; empty if publishers are not searched.
    pub publisher: &'a str,
    /// Its description.
    pub description: &'a str,
}

/// A tool that matches a query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SearchHit {
    /// Its position in the documents from which the index was built.
    pub position: usize,
    /// How well it matches; comparable only within one search.
    pub score: f32,
    /// Whether the whole query is its name, its id or an alias.
    pub exact: bool,
}

/// The words of tools, and the tools in which they occur.
#[derive(Debug, Default)]
pub struct SearchIndex {
    /// In the order of their bytes, so that words with the same prefix are neighbours.
    words: Vec<(String, Vec<Posting>)>,
    /// Names, ids and aliases in lower case.
    names: HashMap<String, Vec<u32>>,
    /// For each tool, how much the number of its words reduces their weights.
    norms: Vec<f32>,
}

/// The occurrence of a word in a tool, with its weight.
#[derive(Debug, Clone, Copy)]
struct Posting {
    document: u32,
    weight: f32,
}

/// How many words of a query are used.
const MAX_QUERY_WORDS: usize = 12;
/// How many characters of a query are used.
const MAX_QUERY_CHARS: usize = 400;
/// How many words a query's word may match as their prefix, and how many with a slip, one wrong
/// character.
const MAX_PREFIX_MATCHES: usize = 16;
/// How many characters a prefix must have at least.
const MIN_PREFIX_CHARS: usize = 3;
/// The weight of a word of which the query's word is only a prefix.
const PREFIX_WEIGHT: f32 = 0.5;
/// The weight of a word that is one slip away from the query's word.
const TYPO_WEIGHT: f32 = 0.35;
/// The weight of a word in one tool beyond which more weight has little effect.
const SATURATION: f32 = 2.0;

impl SearchIndex {
    /// Builds the index. The positions of hits refer to `documents`.
    pub fn build<'a>(documents: impl IntoIterator<Item = SearchDocument<'a>>) -> Self {
        let mut words: BTreeMap<String, Vec<Posting>> = BTreeMap::new();
        let mut names: HashMap<String, Vec<u32>> = HashMap::new();
        let mut lengths = Vec::new();
        for (document, number) in documents.into_iter().zip(0u32..) {
            let own = [document.name, document.id].into_iter();
            for name in own.chain(document.aliases.iter().map(String::as_str)) {
                let known = names.entry(name.to_lowercase()).or_default();
                if known.last() != Some(&number) {
                    known.push(number);
                }
            }
            let weights = weights(&document);
            lengths.push(weights.len());
            for (word, weight) in weights {
                let posting = Posting {
                    document: number,
                    weight,
                };
                words.entry(word).or_default().push(posting);
            }
        }
        #[expect(clippy::cast_precision_loss, reason = "counts of words")]
        let norms = {
            let total: usize = lengths.iter().sum();
            let mean = total as f32 / lengths.len().max(1) as f32;
            let norm = |length: &usize| 0.5 + 0.5 * *length as f32 / mean.max(1.0);
            lengths.iter().map(norm).collect()
        };
        Self {
            words: words.into_iter().collect(),
            names,
            norms,
        }
    }

    /// The tools with this name, id or alias, in any case.
    pub fn named(&self, name: &str) -> impl Iterator<Item = usize> + '_ {
        let found = self.names.get(&name.to_lowercase());
        let found = found.map(Vec::as_slice).unwrap_or_default();
        found
            .iter()
            .filter_map(|number| usize::try_from(*number).ok())
    }

    /// All matching tools for which `among` returns true, the best first. Equal matches stay in
    /// their order.
    pub fn search_among(&self, query: &str, among: impl Fn(usize) -> bool) -> Vec<SearchHit> {
        let query = query.trim();
        let query = match query.char_indices().nth(MAX_QUERY_CHARS) {
            Some((end, _)) => query.get(..end).unwrap_or_default(),
            None => query,
        };
        let scores = self.scores(query);
        let exact: BTreeSet<usize> = self.named(query).collect();
        let places = scores.iter().enumerate();
        let mut hits: Vec<SearchHit> = places
            .map(|(position, score)| SearchHit {
                position,
                score: *score,
                exact: exact.contains(&position),
            })
            .filter(|hit| (hit.score > 0.0 || hit.exact) && among(hit.position))
            .collect();
        hits.sort_by(|a, b| {
            let exact = b.exact.cmp(&a.exact);
            let score = b.score.total_cmp(&a.score);
            exact.then(score).then(a.position.cmp(&b.position))
        });
        hits
    }

    /// How well each tool matches.
    fn scores(&self, query: &str) -> Vec<f32> {
        let mut asked: Vec<String> = Vec::new();
        for word in words(query) {
            if !asked.contains(&word) && asked.len() < MAX_QUERY_WORDS {
                asked.push(word);
            }
        }
        let mut scores = vec![0.0f32; self.norms.len()];
        let mut matched = vec![0u8; self.norms.len()];
        let mut best = vec![0.0f32; self.norms.len()];
        for word in &asked {
            best.fill(0.0);
            for (postings, worth) in self.meant(word) {
                let rarity = self.rarity(postings.len());
                for posting in postings {
                    let place = usize::try_from(posting.document).unwrap_or(usize::MAX);
                    let (Some(best), Some(norm)) = (best.get_mut(place), self.norms.get(place))
                    else {
                        continue;
                    };
                    let weight = posting.weight / (posting.weight + SATURATION * norm);
                    *best = best.max(worth * rarity * weight);
                }
            }
            for ((score, matched), best) in scores.iter_mut().zip(&mut matched).zip(&best) {
                if *best > 0.0 {
                    *score += best;
                    *matched = matched.saturating_add(1);
                }
            }
        }
        // A tool that matches all words should come before a tool that matches one word well.
        let all = f32::from(u8::try_from(asked.len()).unwrap_or(u8::MAX)).max(1.0);
        for (score, matched) in scores.iter_mut().zip(&matched) {
            *score *= f32::from(*matched) / all;
        }
        scores
    }

    /// The words that a query's word may mean, each with its weight.
    fn meant(&self, word: &str) -> Vec<(&[Posting], f32)> {
        let start = self
            .words
            .partition_point(|(known, _)| known.as_str() < word);
        let from = self.words.get(start..).unwrap_or_default();
        let same = from.iter().take_while(|(known, _)| known == word);
        let mut meant: Vec<(&[Posting], f32)> = same
            .map(|(_, postings)| (postings.as_slice(), 1.0))
            .collect();
        if word
            .chars()
            .nth(MIN_PREFIX_CHARS.saturating_sub(1))
            .is_some()
        {
            let longer = from
                .iter()
                .take_while(|(known, _)| known.starts_with(word))
                .filter(|(known, _)| known != word);
            meant.extend(
                longer
                    .take(MAX_PREFIX_MATCHES)
                    .map(|(_, postings)| (postings.as_slice(), PREFIX_WEIGHT)),
            );
        }
        if meant.is_empty() {
            let near = self.near(word).filter(|(known, _)| is_slip(known, word));
            meant.extend(
                near.take(MAX_PREFIX_MATCHES)
                    .map(|(_, postings)| (postings.as_slice(), TYPO_WEIGHT)),
            );
        }
        meant
    }

    /// The words that start with the same character, which are few enough to compare all of them.
    fn near(&self, word: &str) -> impl Iterator<Item = &(String, Vec<Posting>)> {
        let first = word.chars().next();
        let start = first.map_or(self.words.len(), |first| {
            self.words
                .partition_point(|(known, _)| known.chars().next() < Some(first))
        });
        let from = self.words.get(start..).unwrap_or_default();
        from.iter()
            .take_while(move |(known, _)| known.chars().next() == first)
    }

    fn rarity(&self, documents: usize) -> f32 {
        #[expect(clippy::cast_precision_loss, reason = "counts of tools")]
        let (all, with) = (self.norms.len() as f32, documents as f32);
        (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
    }
}

/// The words of a tool, each with its weight.
fn weights(document: &SearchDocument<'_>) -> BTreeMap<String, f32> {
    let listed = |list: &[String]| list.join(" ");
    let parts = [
        (words(document.name), 4.0),
        (words(document.id), 2.0),
        (words(&listed(document.aliases)), 2.0),
        (words(document.title), 3.0),
        (words(document.hint), 3.0),
        (words(document.namespace), 1.0),
        (words(&listed(document.tags)), 2.0),
        (words(document.publisher), 1.0),
        (words(document.description), 1.0),
    ];
    let mut weights: BTreeMap<String, f32> = BTreeMap::new();
    for (words, weight) in parts {
        for word in words.into_iter().collect::<BTreeSet<_>>() {
            *weights.entry(word).or_default() += weight;
        }
    }
    weights
}

/// How many characters a query's word must have to match with a slip. In a shorter word, a slip
/// often gives another word.
const MIN_TYPO_CHARS: usize = 5;
/// Bytes of the largest character.
const MAX_CHAR_BYTES: usize = 4;

/// Whether two words differ by one different, additional or missing character, or by two swapped
/// neighbours.
fn is_slip(known: &str, word: &str) -> bool {
    known.len().abs_diff(word.len()) <= MAX_CHAR_BYTES
        && word.chars().nth(MIN_TYPO_CHARS - 1).is_some()
        && strsim::osa_distance(known, word) == 1
}

/// How many characters a word may have. Longer words are ignored.
const MAX_WORD_CHARS: usize = 40;

/// The words of a text in their order, in lower case and without English endings such as the
/// plural. Names are split at `.`, `_`, `-` and between a lower-case and a capital letter. A run of
/// characters of a script without spaces gives its first character and each pair of neighbours.
fn words(text: &str) -> Vec<String> {
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

/// Chinese, Japanese and Thai characters, which are written without spaces.
fn is_spaceless(character: char) -> bool {
    matches!(character, '\u{0e00}'..='\u{0e7f}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3134f}')
}

/// Removes the most common endings if enough of the word is left. The result is wrong for some
/// words, but in the same way in queries and tools.
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
mod tests;
