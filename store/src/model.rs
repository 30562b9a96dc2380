//! Rows of the state as values.

use rusqlite::types::Type;
use rusqlite::{OptionalExtension, Row, Transaction};
use semver::Version;
use toolward_bundle::Content;
use toolward_bundle::surface::BundleSurface;
use toolward_signing::Digest;
use toolward_signing::key::KeyId;
use toolward_signing::timestamp::Timestamp;

use crate::error::Error;
use crate::times;

/// An installed bundle, as the state knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Installed {
    /// Its id.
    pub id: String,
    /// The digest of its manifest.
    pub digest: Digest,
    /// Its version.
    pub version: Version,
    /// Its sequence.
    pub sequence: u64,
    /// The publisher, as the trust store knew it.
    pub publisher: String,
    /// The keys that signed, when it was installed.
    pub signers: Vec<KeyId>,
    /// The digest of its surface.
    pub surface: Digest,
    /// Where it came from, in the caller's words.
    pub source: String,
    /// When it was installed.
    pub at: Timestamp,
    /// Why it was installed and not held.
    pub acceptance: Acceptance,
}

impl Installed {
    /// Refuses what is no longer what was accepted, because the actions that the bundle takes from others changed.
    /// `content`: the bundle, read with the libraries of now.
    ///
    /// # Errors
    /// [`Error::ActionsChanged`].
    pub fn check_actions(&self, content: &Content) -> Result<(), Error> {
        if !content.takes_actions() {
            return Ok(());
        }
        if BundleSurface::is_of(content, &self.surface) {
            return Ok(());
        }
        Err(Error::ActionsChanged {
            id: self.id.clone(),
            accepted: self.surface,
            found: BundleSurface::of(content).digest(),
        })
    }
}

/// Why a bundle was installed and not held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Acceptance {
    /// Nothing with its id was installed: installing it was the consent.
    First,
    /// Its surface is that of the bundle that it replaced.
    SameSurface,
    /// Its surface was accepted by digest.
    Accepted,
}

impl Acceptance {
    /// The word for it in the state and in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::SameSurface => "same-surface",
            Self::Accepted => "accepted",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let all = [Self::First, Self::SameSurface, Self::Accepted];
        all.into_iter().find(|one| one.as_str() == text)
    }
}

/// An update that waits for somebody to accept its surface.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Held {
    /// The bundle's id.
    pub id: String,
    /// The digest of its manifest.
    pub digest: Digest,
    /// Its version.
    pub version: Version,
    /// Its sequence.
    pub sequence: u64,
    /// The publisher, as the trust store knew it.
    pub publisher: String,
    /// The keys that signed.
    pub signers: Vec<KeyId>,
    /// The digest of its surface: what is to be accepted.
    pub surface: Digest,
    /// Where it came from, in the caller's words.
    pub source: String,
    /// When it came.
    pub at: Timestamp,
    /// Why going back was allowed, if it was.
    pub allow_rollback: Option<String>,
}

const COLUMNS: &str = "id, digest, version, sequence, publisher, signers, surface, source, at";

pub(crate) fn installed(row: &Row<'_>) -> rusqlite::Result<Installed> {
    let held = common(row, None)?;
    let acceptance: String = row.get("acceptance")?;
    Ok(Installed {
        id: held.id,
        digest: held.digest,
        version: held.version,
        sequence: held.sequence,
        publisher: held.publisher,
        signers: held.signers,
        surface: held.surface,
        source: held.source,
        at: held.at,
        acceptance: Acceptance::parse(&acceptance).ok_or_else(|| wrong("acceptance"))?,
    })
}

pub(crate) fn held(row: &Row<'_>) -> rusqlite::Result<Held> {
    let back = row.get("back")?;
    common(row, back)
}

fn common(row: &Row<'_>, allow_rollback: Option<String>) -> rusqlite::Result<Held> {
    Ok(Held {
        id: row.get("id")?,
        digest: digest(row, "digest")?,
        version: text(row, "version")?,
        sequence: sequence(row)?,
        publisher: row.get("publisher")?,
        signers: signers(row)?,
        surface: digest(row, "surface")?,
        source: row.get("source")?,
        at: times::timestamp(row.get("at")?).map_err(|_| wrong("at"))?,
        allow_rollback,
    })
}

pub(crate) fn digest(row: &Row<'_>, column: &str) -> rusqlite::Result<Digest> {
    text(row, column)
}

pub(crate) fn sequence(row: &Row<'_>) -> rusqlite::Result<u64> {
    u64::try_from(row.get::<_, i64>("sequence")?).map_err(|_| wrong("sequence"))
}

fn text<T: std::str::FromStr>(row: &Row<'_>, column: &str) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    text.parse().map_err(|_| wrong(column))
}

pub(crate) fn signers(row: &Row<'_>) -> rusqlite::Result<Vec<KeyId>> {
    let text: String = row.get("signers")?;
    let keys = text.split_whitespace().map(str::parse);
    keys.collect::<Result<_, _>>().map_err(|_| wrong("signers"))
}

pub(crate) fn signers_text(signers: &[KeyId]) -> String {
    let keys: Vec<_> = signers.iter().map(ToString::to_string).collect();
    keys.join(" ")
}

pub(crate) fn wrong(column: &str) -> rusqlite::Error {
    let message = format!("a wrong value in the column `{column}`");
    rusqlite::Error::FromSqlConversionFailure(0, Type::Text, message.into())
}

pub(crate) fn all_installed(sql: &Transaction<'_>) -> Result<Vec<Installed>, Error> {
    let query = format!("SELECT {COLUMNS}, acceptance FROM installed ORDER BY id");
    let mut statement = sql.prepare_cached(&query)?;
    let rows = statement.query_map([], installed)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(crate) fn one_installed(sql: &Transaction<'_>, id: &str) -> Result<Option<Installed>, Error> {
    let query = format!("SELECT {COLUMNS}, acceptance FROM installed WHERE id = ?1");
    let mut statement = sql.prepare_cached(&query)?;
    Ok(statement.query_row([id], installed).optional()?)
}

pub(crate) fn all_held(sql: &Transaction<'_>) -> Result<Vec<Held>, Error> {
    let query = format!("SELECT {COLUMNS}, back FROM held ORDER BY id");
    let mut statement = sql.prepare_cached(&query)?;
    let rows = statement.query_map([], held)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(crate) fn one_held(sql: &Transaction<'_>, id: &str) -> Result<Option<Held>, Error> {
    let query = format!("SELECT {COLUMNS}, back FROM held WHERE id = ?1");
    let mut statement = sql.prepare_cached(&query)?;
    Ok(statement.query_row([id], held).optional()?)
}

/// The surface with a digest. Its bytes are compared with it.
pub(crate) fn surface(sql: &Transaction<'_>, digest: &Digest) -> Result<BundleSurface, Error> {
    let mut statement = sql.prepare_cached("SELECT bytes FROM surface WHERE digest = ?1")?;
    let bytes: Option<Vec<u8>> = statement
        .query_row([digest.to_string()], |row| row.get(0))
        .optional()?;
    bytes
        .and_then(|bytes| BundleSurface::from_digested(bytes, digest))
        .ok_or_else(|| Error::Corrupt(format!("expected the surface {digest}").into()))
}

pub(crate) fn number(sequence: u64) -> Result<i64, Error> {
    i64::try_from(sequence)
        .map_err(|_| Error::Corrupt(format!("the sequence {sequence} is too large").into()))
}
