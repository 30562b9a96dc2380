//! The record of decisions about trust: their time, subject, verdict and reason. Its size is
//! limited: the oldest decisions are removed first.

use rusqlite::{Transaction, params};
use toolward_signing::Digest;
use toolward_signing::timestamp::Timestamp;

use crate::error::Error;
use crate::model::{self, StoredRelease};
use crate::state;

/// How many decisions are stored.
pub const MAX_DECISIONS: i64 = 10_000;
/// How many characters of a text are stored. A text may come from a hostile bundle.
const MAX_TEXT_CHARS: usize = 2_000;

toolward_support::words! {
    /// The result of a decision.
    TrustVerdict {
        /// The operation was done, or its subject is valid.
        Accepted = "accepted",
        /// The operation waits for a person.
        Held = "held",
        /// The operation was not done, or its subject is not valid.
        Refused = "refused",
    }
}

/// A decision to be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDecision {
    /// The operation, such as `install`, `load` or `reset`, or a caller's word, such as
    /// `trust-add`.
    pub action: String,
    /// The bundle's id, the publisher's or channel's name, or the source if nothing else is known;
    /// `all` for a decision about all bundles.
    pub subject: String,
    /// The publisher, if known.
    pub publisher: Option<String>,
    /// The digest of the manifest or document, if known.
    pub digest: Option<Digest>,
    /// The result.
    pub verdict: TrustVerdict,
    /// The code of a refusal.
    pub code: Option<String>,
    /// Why, in a sentence.
    pub reason: String,
}

/// A recorded decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedDecision {
    /// Rises with every decision, and is never reused.
    pub number: u64,
    /// When it was made.
    pub at: Timestamp,
    /// The decision.
    pub decision: NewDecision,
}

/// The selection of decisions to list.
#[derive(Clone, Debug, Default)]
pub struct DecisionFilter {
    /// Only decisions about this subject.
    pub subject: Option<String>,
    /// Only decisions with this verdict.
    pub verdict: Option<TrustVerdict>,
    /// Only decisions with a lower number, to continue a list.
    pub before: Option<u64>,
    /// How many at most; 0 means 100.
    pub limit: u32,
}

impl NewDecision {
    /// A decision without publisher and digest.
    pub fn new(action: &str, subject: &str, verdict: TrustVerdict, reason: String) -> Self {
        Self {
            action: action.to_owned(),
            subject: subject.to_owned(),
            publisher: None,
            digest: None,
            verdict,
            code: None,
            reason,
        }
    }

    /// The decision to refuse an operation because of an error.
    #[must_use]
    pub fn refused(action: &str, subject: &str, error: &Error) -> Self {
        Self {
            code: Some(error.code().to_owned()),
            ..Self::new(action, subject, TrustVerdict::Refused, error.to_string())
        }
    }

    /// The decision with a publisher and a digest.
    #[must_use]
    pub fn about(self, publisher: &str, digest: Option<Digest>) -> Self {
        Self {
            publisher: Some(publisher.to_owned()),
            digest,
            ..self
        }
    }

    /// The decision with publisher and digest of a release.
    pub(crate) fn of_release(self, release: &StoredRelease) -> Self {
        self.about(&release.publisher, Some(release.digest))
    }
}

pub(crate) fn record(sql: &Transaction<'_>, new: &NewDecision, now: i64) -> Result<(), Error> {
    let short = |text: &str| -> String { text.chars().take(MAX_TEXT_CHARS).collect() };
    sql.prepare_cached(
        "INSERT INTO decision (at, action, subject, publisher, digest, verdict, code, reason)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?
    .execute(params![
        now,
        short(&new.action),
        short(&new.subject),
        new.publisher.as_deref().map(short),
        new.digest.map(|digest| digest.to_string()),
        new.verdict.as_str(),
        new.code.as_deref().map(short),
        short(&new.reason),
    ])?;
    sql.prepare_cached("DELETE FROM decision WHERE number <= ?1")?
        .execute([sql.last_insert_rowid().saturating_sub(MAX_DECISIONS)])?;
    Ok(())
}

/// Lists decisions, the newest first.
pub(crate) fn list(
    sql: &Transaction<'_>,
    filter: &DecisionFilter,
) -> Result<Vec<RecordedDecision>, Error> {
    let mut statement = sql.prepare_cached(
        "SELECT number, at, action, subject, publisher, digest, verdict, code, reason FROM decision
         WHERE (?1 IS NULL OR subject = ?1) AND (?2 IS NULL OR verdict = ?2) AND number < ?3
         ORDER BY number DESC LIMIT ?4",
    )?;
    let before = filter.before.and_then(|before| i64::try_from(before).ok());
    let limit = if filter.limit == 0 { 100 } else { filter.limit };
    let parameters = params![
        filter.subject,
        filter.verdict.map(TrustVerdict::as_str),
        before.unwrap_or(i64::MAX),
        limit
    ];
    let rows = statement.query_map(parameters, |row| {
        let digest: Option<String> = row.get("digest")?;
        let number: i64 = row.get("number")?;
        Ok(RecordedDecision {
            number: u64::try_from(number).map_err(|_| model::wrong("number"))?,
            at: state::timestamp(row.get("at")?).map_err(|_| model::wrong("at"))?,
            decision: NewDecision {
                action: row.get("action")?,
                subject: row.get("subject")?,
                publisher: row.get("publisher")?,
                digest: digest
                    .map(|digest| digest.parse())
                    .transpose()
                    .map_err(|_| model::wrong("digest"))?,
                verdict: model::word(row, "verdict", TrustVerdict::ALL, TrustVerdict::as_str)?,
                code: row.get("code")?,
                reason: row.get("reason")?,
            },
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
