//! Numbers that may not fall: the sequences of releases by publisher and id, and the versions of
//! documents. A recorded sequence (a mark) stays after its bundle is removed.

use rusqlite::{OptionalExtension, Row, Transaction, params};
use toolward_signing::publisher::Reset;
use toolward_signing::{Digest, sequence};

use crate::error::Error;
use crate::model::{self, StoredRelease, number};

/// How many of the highest marks of a bundle are stored. If a publisher's document removes higher
/// marks (a reset), the lower marks count again.
const MAX_MARKS: i64 = 16;

/// The facts of a publisher's document that the state stores, and its resets.
#[derive(Clone, Copy, Debug)]
pub struct NextDocument<'a> {
    /// The document's version.
    pub version: u64,
    /// The document's digest.
    pub digest: Digest,
    /// The last genuine releases that it names.
    pub resets: &'a [Reset],
}

toolward_support::words! {
    /// Which kind of document a version belongs to.
    VersionedDocument {
        /// A publisher's document.
        Publisher = "publisher",
        /// A publisher's revocations.
        Revocations = "revocations",
        /// A channel's index.
        Channel = "channel",
    }
}

pub(crate) fn highest(
    sql: &Transaction<'_>,
    publisher: &str,
    id: &str,
) -> Result<Option<(u64, Digest)>, Error> {
    let mut statement = sql.prepare_cached(
        "SELECT sequence, digest FROM mark WHERE publisher = ?1 AND id = ?2
         ORDER BY sequence DESC LIMIT 1",
    )?;
    Ok(statement.query_row([publisher, id], numbered).optional()?)
}

fn numbered(row: &Row<'_>) -> rusqlite::Result<(u64, Digest)> {
    Ok((model::sequence(row)?, model::text(row, "digest")?))
}

/// The digest of the release with exactly this sequence.
pub(crate) fn at(
    sql: &Transaction<'_>,
    publisher: &str,
    id: &str,
    sequence: u64,
) -> Result<Option<Digest>, Error> {
    let mut statement = sql.prepare_cached(
        "SELECT digest FROM mark WHERE publisher = ?1 AND id = ?2 AND sequence = ?3",
    )?;
    let found = statement.query_row(params![publisher, id, number(sequence)?], |row| {
        model::text(row, "digest")
    });
    Ok(found.optional()?)
}

pub(crate) fn raise(sql: &Transaction<'_>, new: &StoredRelease, now: i64) -> Result<(), Error> {
    sql.execute(
        "INSERT OR REPLACE INTO mark (publisher, id, sequence, digest, signers, at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![
            new.publisher,
            new.id,
            number(new.sequence)?,
            new.digest.to_string(),
            model::signers_text(&new.signers),
            now
        ],
    )?;
    sql.execute(
        "DELETE FROM mark WHERE publisher = ?1 AND id = ?2 AND sequence NOT IN
             (SELECT sequence FROM mark WHERE publisher = ?1 AND id = ?2
              ORDER BY sequence DESC LIMIT ?3)",
        params![new.publisher, new.id, MAX_MARKS],
    )?;
    Ok(())
}

/// Applies the resets of a publisher's document, which lower marks above the last genuine release.
/// Returns the former values of the changed marks.
pub(crate) fn reset(
    sql: &Transaction<'_>,
    publisher: &str,
    resets: &[Reset],
    now: i64,
) -> Result<Vec<(String, u64, Digest)>, Error> {
    let mut changed = Vec::new();
    for reset in resets {
        let Some(known) = highest(sql, publisher, &reset.id)? else {
            continue;
        };
        let kept = sequence::reset(known, reset);
        if kept == known {
            continue;
        }
        sql.execute(
            "DELETE FROM mark WHERE publisher = ?1 AND id = ?2 AND sequence >= ?3",
            params![publisher, reset.id, number(kept.0)?],
        )?;
        sql.execute(
            "INSERT INTO mark (publisher, id, sequence, digest, signers, at)
             VALUES (?1, ?2, ?3, ?4, '', ?5)",
            params![
                publisher,
                reset.id,
                number(kept.0)?,
                kept.1.to_string(),
                now
            ],
        )?;
        changed.push((reset.id.clone(), known.0, known.1));
    }
    Ok(changed)
}

pub(crate) fn document(
    sql: &Transaction<'_>,
    kind: VersionedDocument,
    name: &str,
) -> Result<Option<(u64, Digest)>, Error> {
    let mut statement = sql.prepare_cached(
        "SELECT version AS sequence, digest FROM document WHERE kind = ?1 AND name = ?2",
    )?;
    let found = statement.query_row([kind.as_str(), name], numbered);
    Ok(found.optional()?)
}

/// Refuses a document that is older than the last recorded one, or has the same version and another
/// digest. Otherwise records it.
pub(crate) fn see_document(
    sql: &Transaction<'_>,
    kind: VersionedDocument,
    name: &str,
    version: u64,
    digest: Digest,
    now: i64,
) -> Result<(), Error> {
    sequence::check(document(sql, kind, name)?, (version, digest))
        .map_err(|refusal| refusal.at(format!("{} document {name}", kind.as_str())))?;
    sql.execute(
        "INSERT OR REPLACE INTO document (kind, name, version, digest, at) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![kind.as_str(), name, number(version)?, digest.to_string(), now],
    )?;
    Ok(())
}
