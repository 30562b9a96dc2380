//! Finding tools for a query among those of installed bundles, or of a channel's index.

use toolward_search::{Document, Index};

/// What is searched. All of it is somebody else's text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

/// The positions of the entries that fit a query, the best first, as [`Index`] ranks them; equals by id. A query
/// without letters and digits fits everything.
#[must_use]
pub fn rank<'a>(query: &str, entries: impl IntoIterator<Item = &'a SearchEntry>) -> Vec<usize> {
    let mut entries: Vec<(usize, &SearchEntry)> = entries.into_iter().enumerate().collect();
    // Of those that fit equally, the index gives the first first.
    entries.sort_by_key(|(_, entry)| entry.id.as_str());
    if !query.contains(char::is_alphanumeric) {
        return entries.into_iter().map(|(position, _)| position).collect();
    }
    let index = Index::build(entries.iter().map(|(_, entry)| Document {
        name: &entry.id,
        id: &entry.id,
        title: &entry.title,
        tags: &entry.tags,
        publisher: &entry.publisher,
        description: &entry.description,
        ..Document::default()
    }));
    let hits = index.search_among(query, |_| true).into_iter();
    hits.filter_map(|hit| entries.get(hit.position).map(|(position, _)| *position))
        .collect()
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
            entry("mailbox.list", "List", "Lists what came in.", &[]),
            entry("mail.send", "Send mail", "Sends a letter.", &["smtp"]),
            entry(
                "text.stats",
                "Text statistics",
                "Counts words, also in a MAIL.",
                &["Words"],
            ),
        ];
        let ids = ["mailbox.list", "mail.send", "text.stats"];
        rank(query, &entries)
            .into_iter()
            .map(|position| ids[position])
            .collect()
    }

    #[test]
    fn a_word_of_an_id_beats_one_of_the_description() {
        assert_eq!(found("mail").first(), Some(&"mail.send"));
        assert_eq!(found("mail").len(), 3);
    }

    #[test]
    fn tags_and_the_publisher_are_found_whatever_the_case() {
        assert_eq!(found("WORDS"), ["text.stats"]);
        assert_eq!(found("SMTP"), ["mail.send"]);
        assert_eq!(found("acme"), ["mail.send", "mailbox.list", "text.stats"]);
    }

    #[test]
    fn what_fits_all_words_comes_before_what_fits_one() {
        assert_eq!(found("mail words").first(), Some(&"text.stats"));
        assert!(found("nowhere").is_empty());
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
