//! The order in which tools were installed. Of two tools with one name, servers give it to the one that was
//! installed first: an update of a bundle keeps the places of its tools, and tools that it adds come last.

use std::cmp::Reverse;

use rusqlite::{Transaction, params};

use crate::error::Error;

/// A tool by its publisher and its id with the major version.
type Tool = (String, String);

/// Beside the tables of the first version: a host that does not know it installs without it, and those tools
/// count as the newest.
const TABLE: &str = "
CREATE TABLE IF NOT EXISTS arrival (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,
    publisher TEXT NOT NULL,
    major_id  TEXT NOT NULL,
    UNIQUE (publisher, major_id)
) STRICT;
";

/// Before a bundle is installed: removed tools lose their places, and tools without a place get one before the
/// new ones.
pub(crate) fn settle(sql: &Transaction<'_>) -> Result<(), Error> {
    sql.execute_batch(TABLE)?;
    sql.execute(
        "DELETE FROM arrival WHERE NOT EXISTS
             (SELECT 1 FROM provides AS p JOIN installed AS i ON i.id = p.bundle
              WHERE p.kind = 'tool' AND p.name = major_id AND i.publisher = arrival.publisher)",
        [],
    )?;
    note(sql)
}

/// After a bundle was installed: its new tools come last.
pub(crate) fn note(sql: &Transaction<'_>) -> Result<(), Error> {
    let mut insert =
        sql.prepare_cached("INSERT OR IGNORE INTO arrival (publisher, major_id) VALUES (?1, ?2)")?;
    for (publisher, major_id) in installed(sql)? {
        insert.execute(params![publisher, major_id])?;
    }
    Ok(())
}

/// All tools that are installed, the first first.
pub(crate) fn all(sql: &Transaction<'_>) -> Result<Vec<Tool>, Error> {
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
    let mut all: Vec<Tool> = noted.collect::<Result<_, _>>()?;
    let are: std::collections::HashSet<&Tool> = installed.iter().collect();
    all.retain(|tool| are.contains(tool));
    let noted: std::collections::HashSet<Tool> = all.iter().cloned().collect();
    all.extend(installed.into_iter().filter(|tool| !noted.contains(tool)));
    Ok(all)
}

/// The tools as their bundles were last written; of one bundle's majors of one id the newest first, as the id alone
/// means that one.
fn installed(sql: &Transaction<'_>) -> Result<Vec<Tool>, Error> {
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
