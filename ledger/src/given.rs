//! Ids that callers gave their calls. A call is refused if its principal has used the id for the
//! same tool before. The transaction of a call's `started` row also stores the id.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _};
use sha2::{Digest as _, Sha256};
use toolward_signing::key::SigningKey;

use crate::append::integer;
use crate::error::Error;
use crate::record::{Invocation, Record};
use crate::recorder::{Given, micros, now};

/// How long an id is known. An id contains the time of its creation (UUIDv7), and a host accepts
/// only ids that are at most a day old and at most 5 minutes ahead. So an id is refused for its age
/// before it is forgotten.
const KNOWN: Duration = Duration::from_hours(25);
/// The text that the ledger's key signs to derive a [`GivenSecret`]. It can't be confused with a
/// checkpoint, which the key also signs, since a checkpoint starts with an origin.
const DERIVATION: &[u8] = b"toolward ledger v1: the secret of given ids";

/// Hashes principals and inputs, so that the file does not reveal them without the ledger's key.
pub(crate) struct GivenSecret([u8; 32]);

impl GivenSecret {
    pub(crate) fn of(key: &SigningKey) -> Self {
        // Ed25519 signatures are deterministic, and only the key's owner can make this one.
        Self(Sha256::digest(key.sign(DERIVATION)).into())
    }

    fn hash(&self, kind: u8, bytes: &[u8]) -> [u8; 32] {
        // The input of the outer hash has a fixed length, which rules out length extension.
        let inner: [u8; 32] = Sha256::digest(bytes).into();
        let mut hasher = Sha256::new();
        hasher.update(self.0);
        hasher.update([kind]);
        hasher.update(inner);
        hasher.finalize().into()
    }

    /// The key under which an id is stored.
    fn key<'g>(&self, given: &'g Given) -> ([u8; 32], &'g str, &'g [u8; 16]) {
        let principal = self.hash(1, given.principal.as_bytes());
        (principal, given.tool.as_str(), given.id.0.as_bytes())
    }

    fn input(&self, given: &Given) -> [u8; 32] {
        self.hash(2, &given.input.0)
    }
}

/// Fails with [`Error::Given`] if the id was given before.
pub(crate) fn check(sql: &Connection, secret: &GivenSecret, given: &Given) -> Result<(), Error> {
    let input: Option<[u8; 32]> = sql
        .prepare_cached("SELECT input FROM given WHERE principal = ?1 AND tool = ?2 AND id = ?3")?
        .query_row(secret.key(given), |row| row.get(0))
        .optional()?;
    match input {
        Some(input) => Err(Error::Given {
            same_input: input == secret.input(given),
        }),
        None => Ok(()),
    }
}

/// Remembers the id for the row `seq`. The id must not have been given before.
pub(crate) fn insert(
    sql: &Connection,
    secret: &GivenSecret,
    given: &Given,
    seq: u64,
) -> Result<(), Error> {
    let (principal, tool, id) = secret.key(given);
    let (input, at) = (secret.input(given), integer(now().get()));
    sql.prepare_cached("INSERT INTO given VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?
        .execute((principal, tool, id, input, integer(seq), at))?;
    Ok(())
}

/// Forgets the id, if it was given for this call.
pub(crate) fn free(
    sql: &Connection,
    secret: &GivenSecret,
    given: &Given,
    call: Invocation,
) -> Result<(), Error> {
    let key = secret.key(given);
    let record: Option<Option<Vec<u8>>> = sql
        .prepare_cached(
            "SELECT record FROM entry JOIN given USING (seq) WHERE principal = ?1 AND tool = ?2 AND id = ?3",
        )?
        .query_row(key, |row| row.get(0))
        .optional()?;
    let record = record.flatten().map(|record| Record::of_row(&record));
    if record.transpose()?.and_then(|record| record.invocation()) == Some(call) {
        sql.prepare_cached("DELETE FROM given WHERE principal = ?1 AND tool = ?2 AND id = ?3")?
            .execute(key)?;
    }
    Ok(())
}

/// Forgets old ids.
pub(crate) fn sweep(sql: &Connection) -> Result<(), Error> {
    let before = now().get().saturating_sub(micros(KNOWN));
    sql.prepare_cached("DELETE FROM given WHERE at < ?1")?
        .execute([integer(before)])?;
    Ok(())
}
