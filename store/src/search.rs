//! The tools of installed bundles, and searches among them or in a channel's index. The searchable
//! facts of tools are stored separately, so that no bundle or surface is parsed for them. If two
//! tools request the same name, servers give it to the tool that was installed first. So the store
//! knows each tool's position in the order of installation. An update of a bundle keeps the
//! positions of its tools, and new tools come last.

use std::cmp::Reverse;
use std::collections::HashSet;

use rusqlite::{Transaction, params};
use semver::Version;
use toolward_bundle::surface::BundleSurface;
use toolward_support::search::{SearchDocument, SearchIndex};

use crate::error::Error;
use crate::model;

/// A searchable tool. All of its text is untrusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchEntry {
    /// The id.
    pub id: String,
    /// The name for people; may be empty.
    pub title: String,
    /// The description.
    pub description: String,
    /// Tags.
    pub tags: Vec<String>,
    /// The publisher.
    pub publisher: String,
}

/// The places in `entries` of the entries that match a query, ranked by [`SearchIndex`] with the
/// best first. Equal matches are ordered by id. A query without letters and digits matches all
/// entries.
pub fn rank<'a>(query: &str, entries: impl IntoIterator<Item = &'a SearchEntry>) -> Vec<usize> {
    let mut entries: Vec<(usize, &SearchEntry)> = entries.into_iter().enumerate().collect();
    // The index returns equal matches in the order of insertion.
    entries.sort_by_key(|(_, entry)| entry.id.as_str());
    if !query.contains(char::is_alphanumeric) {
        return entries.into_iter().map(|(position, _)| position).collect();
    }
    let index = SearchIndex::build(entries.iter().map(|(_, entry)| SearchDocument {
        name: &entry.id,
        id: &entry.id,
        title: &entry.title,
        tags: &entry.tags,
        publisher: &entry.publisher,
        description: &entry.description,
        ..SearchDocument::default()
    }));
    let hits = index.search_among(query, |_| true).into_iter();
    hits.filter_map(|hit| entries.get(hit.position).map(|(position, _)| *position))
        .collect()
}

/// The separator between stored tags. Tags can't contain it.
const SEPARATOR: &str = "\n";

/// A tool of an installed bundle, with the facts recorded at its installation. For display only:
/// before a tool runs, its bundle is loaded and verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledTool {
    /// The tool's id with the major version, such as `text.stats@1`.
    pub major_id: String,
    /// The facts to show and search.
    pub entry: SearchEntry,
    /// The id of its bundle.
    pub bundle: String,
    /// The bundle's version.
    pub version: Version,
}

pub(crate) fn write_tools(
    sql: &Transaction<'_>,
    bundle: &str,
    surface: &BundleSurface,
) -> Result<(), Error> {
    let mut statement = sql.prepare_cached(
        "INSERT INTO tool (bundle, major_id, id, title, description, tags)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    for tool in surface.tools() {
        statement.execute(params![
            bundle,
            tool.major_id,
            tool.id,
            tool.name,
            tool.description,
            tool.tags.join(SEPARATOR)
        ])?;
    }
    Ok(())
}

/// All tools, by bundle and id.
pub(crate) fn all_tools(sql: &Transaction<'_>) -> Result<Vec<InstalledTool>, Error> {
    let mut statement = sql.prepare_cached(
        "SELECT t.bundle, t.major_id, t.id, t.title, t.description, t.tags, i.publisher, i.version
         FROM tool AS t JOIN installed AS i ON i.id = t.bundle ORDER BY t.bundle, t.major_id",
    )?;
    let rows = statement.query_map([], |row| {
        let tags: String = row.get("tags")?;
        Ok(InstalledTool {
            major_id: row.get("major_id")?,
            entry: SearchEntry {
                id: row.get("id")?,
                title: row.get("title")?,
                description: row.get("description")?,
                tags: tags
                    .split(SEPARATOR)
                    .filter(|tag| !tag.is_empty())
                    .map(str::to_owned)
                    .collect(),
                publisher: row.get("publisher")?,
            },
            bundle: row.get("bundle")?,
            version: model::text(row, "version")?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// A tool by its publisher and its id with the major version.
type ToolKey = (String, String);

/// The positions of tools in the order of installation, in a table that a state file may lack. A
/// version of Toolward that does not know the table installs tools without positions. These tools
/// count as the newest.
const ARRIVAL_TABLE: &str = "
CREATE TABLE IF NOT EXISTS arrival (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,
    publisher TEXT NOT NULL,
    major_id  TEXT NOT NULL,
    UNIQUE (publisher, major_id)
) STRICT;
";

/// Prepares the positions before a bundle is installed: removed tools lose their positions, and
/// tools without a position get one before the new tools.
pub(crate) fn settle_arrivals(sql: &Transaction<'_>) -> Result<(), Error> {
    sql.execute_batch(ARRIVAL_TABLE)?;
    sql.execute(
        "DELETE FROM arrival WHERE NOT EXISTS
             (SELECT 1 FROM provides AS p JOIN installed AS i ON i.id = p.bundle
              WHERE p.kind = 'tool' AND p.name = major_id AND i.publisher = arrival.publisher)",
        [],
    )?;
    add_arrivals(sql)
}

/// Gives installed tools that have no position the last positions.
pub(crate) fn add_arrivals(sql: &Transaction<'_>) -> Result<(), Error> {
    let mut insert =
        sql.prepare_cached("INSERT OR IGNORE INTO arrival (publisher, major_id) VALUES (?1, ?2)")?;
    for (publisher, major_id) in installed(sql)? {
        insert.execute(params![publisher, major_id])?;
    }
    Ok(())
}

/// All installed tools, the earliest first.
pub(crate) fn arrivals(sql: &Transaction<'_>) -> Result<Vec<ToolKey>, Error> {
    let installed = installed(sql)?;
    let known: i64 = sql.query_row(
        "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'arrival'",
        [],
        |row| row.get(0),
    )?;
    if known == 0 {
        return Ok(installed);
    }
    let mut statement =
        sql.prepare_cached("SELECT publisher, major_id FROM arrival ORDER BY number")?;
    let noted = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut all: Vec<ToolKey> = noted.collect::<Result<_, _>>()?;
    let current: HashSet<&ToolKey> = installed.iter().collect();
    all.retain(|tool| current.contains(tool));
    let noted: HashSet<ToolKey> = all.iter().cloned().collect();
    all.extend(installed.into_iter().filter(|tool| !noted.contains(tool)));
    Ok(all)
}

/// The tools in the order in which their bundles were last written. In a bundle, the newest major
/// version of an id comes first, since the id alone means that version.
fn installed(sql: &Transaction<'_>) -> Result<Vec<ToolKey>, Error> {
    let mut statement = sql.prepare_cached(
        "SELECT i.rowid, i.publisher, p.name FROM provides AS p JOIN installed AS i ON i.id = p.bundle
         WHERE p.kind = 'tool'",
    )?;
    let rows = statement.query_map([], |row| {
        let name: String = row.get(2)?;
        let (id, major) = name.rsplit_once('@').unwrap_or((&name, ""));
        let major: u64 = major.parse().unwrap_or_default();
        let key: (i64, String, Reverse<u64>) = (row.get(0)?, id.to_owned(), Reverse(major));
        Ok((key, (row.get(1)?, name)))
    })?;
    let mut tools: Vec<_> = rows.collect::<Result<_, _>>()?;
    tools.sort();
    Ok(tools.into_iter().map(|(_, tool)| tool).collect())
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
