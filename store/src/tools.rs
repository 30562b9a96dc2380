//! The tools of installed bundles in short, for lists and searches: kept apart, so that neither a bundle nor
//! a surface is parsed for them.

use rusqlite::{Transaction, params};
use semver::Version;
use toolward_bundle::surface::BundleSurface;

use crate::error::Error;
use crate::model;
use crate::search::SearchEntry;

/// Between tags: no contract has one with it.
const SEPARATOR: &str = "\n";

/// A tool of an installed bundle, as of its installation. For showing: what runs is loaded and verified.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InstalledTool {
    /// Its id with the major version, such as `text.stats@1`.
    pub major_id: String,
    /// What is shown and searched.
    pub entry: SearchEntry,
    /// The bundle that brings it.
    pub bundle: String,
    /// The bundle's version.
    pub version: Version,
}

pub(crate) fn write(
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

/// All of them, by bundle and id.
pub(crate) fn all(sql: &Transaction<'_>) -> Result<Vec<InstalledTool>, Error> {
    let mut statement = sql.prepare_cached(
        "SELECT t.bundle, t.major_id, t.id, t.title, t.description, t.tags, i.publisher, i.version
         FROM tool AS t JOIN installed AS i ON i.id = t.bundle ORDER BY t.bundle, t.major_id",
    )?;
    let rows = statement.query_map([], |row| {
        let tags: String = row.get("tags")?;
        let version: String = row.get("version")?;
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
            version: version.parse().map_err(|_| model::wrong("version"))?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
