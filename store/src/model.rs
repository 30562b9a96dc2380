//! The typed rows of the state.

use std::ops::Deref;

use rusqlite::types::Type;
use rusqlite::{OptionalExtension, Row, Transaction};
use semver::Version;
use toolward_bundle::Content;
use toolward_bundle::surface::BundleSurface;
use toolward_signing::Digest;
use toolward_signing::key::KeyId;
use toolward_signing::timestamp::Timestamp;

use crate::error::Error;
use crate::state;

/// A release of a bundle in the store, installed or held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRelease {
    /// The bundle's id.
    pub id: String,
    /// The digest of its manifest.
    pub digest: Digest,
    /// The bundle's version.
    pub version: Version,
    /// The bundle's sequence.
    pub sequence: u64,
    /// The publisher's name in the trust store when it was verified.
    pub publisher: String,
    /// The keys that signed.
    pub signers: Vec<KeyId>,
    /// The digest of its surface.
    pub surface: Digest,
    /// The source, in the caller's words.
    pub source: String,
    /// When it was installed or held.
    pub at: Timestamp,
}

impl StoredRelease {
    /// Refuses a bundle whose surface is no longer the accepted one, because the actions that it
    /// takes from other bundles changed. `content` is the bundle, read with the current libraries.
    ///
    /// # Errors
    /// [`Error::ActionsChanged`].
    pub fn check_actions(&self, content: &Content) -> Result<(), Error> {
        if !content.takes_actions() || BundleSurface::is_of(content, &self.surface) {
            return Ok(());
        }
        Err(Error::ActionsChanged {
            id: self.id.clone(),
            accepted: self.surface,
            found: BundleSurface::of(content).digest(),
        })
    }
}

/// An installed bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledBundle {
    /// The installed release.
    pub release: StoredRelease,
    /// The reason for which it was installed and not held.
    pub acceptance: Acceptance,
}

impl Deref for InstalledBundle {
    type Target = StoredRelease;

    fn deref(&self) -> &StoredRelease {
        &self.release
    }
}

/// An update whose surface must be accepted before it is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldUpdate {
    /// The held release.
    pub release: StoredRelease,
    /// The reason for which a lower sequence was allowed, if it was.
    pub allow_rollback: Option<String>,
}

impl Deref for HeldUpdate {
    type Target = StoredRelease;

    fn deref(&self) -> &StoredRelease {
        &self.release
    }
}

toolward_support::words! {
    /// Why a bundle was installed and not held.
    Acceptance {
        /// Nothing with its id was installed: installing it was the consent.
        First = "first",
        /// The replaced bundle had the same surface.
        SameSurface = "same-surface",
        /// Its surface was accepted by digest.
        Accepted = "accepted",
    }
}

/// A release in a table of the state.
pub(crate) trait StoredRow: Deref<Target = StoredRelease> + Sized {
    const TABLE: &'static str;

    fn read(row: &Row<'_>) -> rusqlite::Result<Self>;

    /// All rows, by id.
    fn all(sql: &Transaction<'_>) -> Result<Vec<Self>, Error> {
        let mut statement =
            sql.prepare_cached(&format!("SELECT * FROM {} ORDER BY id", Self::TABLE))?;
        let rows = statement.query_map([], Self::read)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The row of a bundle.
    fn of(sql: &Transaction<'_>, id: &str) -> Result<Option<Self>, Error> {
        let mut statement =
            sql.prepare_cached(&format!("SELECT * FROM {} WHERE id = ?1", Self::TABLE))?;
        Ok(statement.query_row([id], Self::read).optional()?)
    }

    /// The row together with its surface.
    fn with_surface(self, sql: &Transaction<'_>) -> Result<(Self, BundleSurface), Error> {
        let surface = surface(sql, &self.surface)?;
        Ok((self, surface))
    }
}
fn release(row: &Row<'_>) -> rusqlite::Result<StoredRelease> {
    Ok(StoredRelease {
        id: row.get("id")?,
        digest: text(row, "digest")?,
        version: text(row, "version")?,
        sequence: sequence(row)?,
        publisher: row.get("publisher")?,
        signers: signers(row)?,
        surface: text(row, "surface")?,
        source: row.get("source")?,
        at: state::timestamp(row.get("at")?).map_err(|_| wrong("at"))?,
    })
}

impl StoredRow for InstalledBundle {
    const TABLE: &'static str = "installed";

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            release: release(row)?,
            acceptance: word(row, "acceptance", Acceptance::ALL, Acceptance::as_str)?,
        })
    }
}

impl StoredRow for HeldUpdate {
    const TABLE: &'static str = "held";

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            release: release(row)?,
            allow_rollback: row.get("back")?,
        })
    }
}

pub(crate) fn sequence(row: &Row<'_>) -> rusqlite::Result<u64> {
    u64::try_from(row.get::<_, i64>("sequence")?).map_err(|_| wrong("sequence"))
}

pub(crate) fn text<T: std::str::FromStr>(row: &Row<'_>, column: &str) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    text.parse().map_err(|_| wrong(column))
}

/// Returns the value whose word is in this column of a row.
pub(crate) fn word<T: Copy>(
    row: &Row<'_>,
    column: &str,
    all: &[T],
    word: fn(T) -> &'static str,
) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    let found = all.iter().copied().find(|one| word(*one) == text);
    found.ok_or_else(|| wrong(column))
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

/// Reads the surface with this digest, and checks the digest.
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
