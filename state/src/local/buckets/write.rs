//! Changes of one bucket inside one transaction, which keep its totals correct.

use rusqlite::{OptionalExtension, Transaction};

use crate::buckets::{BucketScope, Limits};
use crate::error::Error;

const FIND: &str = "
SELECT id, entries, bytes, next FROM bucket
WHERE owner = ?1 AND principal = ?2 AND name = ?3";

const BUCKETS: &str = "SELECT count(*) FROM bucket WHERE owner = ?1 AND principal = ?2";

const MAKE: &str = "
INSERT INTO bucket (owner, principal, name, entries, bytes, next) VALUES (?1, ?2, ?3, 0, 0, 1)";

const TOTALS: &str = "UPDATE bucket SET entries = ?2, bytes = ?3, next = ?4 WHERE id = ?1";

const UNMAKE: &str = "DELETE FROM bucket WHERE id = ?1";

const SIZE: &str = "SELECT id, octet_length(value) FROM entry WHERE bucket = ?1 AND key = ?2";

const GET: &str = "SELECT value FROM entry WHERE bucket = ?1 AND key = ?2";

const ADD: &str = "INSERT INTO entry (bucket, position, key, value) VALUES (?1, ?2, ?3, ?4)";

const REPLACE: &str = "UPDATE entry SET value = ?2 WHERE id = ?1";

const REMOVE: &str = "DELETE FROM entry WHERE id = ?1";

/// A bucket that is being changed.
pub(crate) struct Change<'t> {
    sql: &'t Transaction<'t>,
    scope: &'t BucketScope,
    id: Option<i64>,
    before: Totals,
    after: Totals,
}

/// The totals in a bucket's row.
#[derive(Clone, Copy)]
struct Totals {
    entries: u64,
    bytes: u64,
    /// The position of the next new key.
    next: i64,
}

impl<'t> Change<'t> {
    pub(crate) fn begin(sql: &'t Transaction<'t>, scope: &'t BucketScope) -> Result<Self, Error> {
        let found = sql
            .prepare_cached(FIND)?
            .query_row((&scope.owner, &scope.principal, &scope.name), |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
            })
            .optional()?;
        let (id, totals) = match found {
            None => (None, [0, 0, 1]),
            Some((id, entries, bytes, next)) => (Some(id), [entries, bytes, next]),
        };
        let [entries, bytes, next] = totals;
        let totals = Totals {
            entries: count(entries)?,
            bytes: count(bytes)?,
            next,
        };
        Ok(Self {
            sql,
            scope,
            id,
            before: totals,
            after: totals,
        })
    }

    pub(crate) fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Error> {
        let Some(id) = self.id else {
            return Ok(None);
        };
        let mut get = self.sql.prepare_cached(GET)?;
        let value = get.query_row((id, key), |row| row.get(0));
        Ok(value.optional()?)
    }

    pub(crate) fn put(&mut self, key: &str, value: &[u8]) -> Result<(), Error> {
        if let Some((entry, old)) = self.look(key)? {
            self.sql.prepare_cached(REPLACE)?.execute((entry, value))?;
            self.after.bytes = self
                .after
                .bytes
                .saturating_sub(old)
                .saturating_add(value.len() as u64);
            return Ok(());
        }
        let id = match self.id {
            Some(id) => id,
            None => {
                let scope = self.scope;
                self.sql.prepare_cached(MAKE)?.execute((
                    &scope.owner,
                    &scope.principal,
                    &scope.name,
                ))?;
                *self.id.insert(self.sql.last_insert_rowid())
            }
        };
        self.sql
            .prepare_cached(ADD)?
            .execute((id, self.after.next, key, value))?;
        self.after.next = self.after.next.saturating_add(1);
        self.after.entries = self.after.entries.saturating_add(1);
        self.after.bytes = self
            .after
            .bytes
            .saturating_add(size(key, value.len() as u64));
        Ok(())
    }

    pub(crate) fn remove(&mut self, key: &str) -> Result<(), Error> {
        let Some((entry, old)) = self.look(key)? else {
            return Ok(());
        };
        self.sql.prepare_cached(REMOVE)?.execute((entry,))?;
        self.after.entries = self.after.entries.saturating_sub(1);
        self.after.bytes = self.after.bytes.saturating_sub(size(key, old));
        Ok(())
    }

    /// Writes the totals, unless the bucket grew beyond a quota. A bucket that exceeds a lowered
    /// quota may still shrink.
    pub(crate) fn end(self, limits: &Limits) -> Result<(), Error> {
        let Some(id) = self.id else {
            return Ok(());
        };
        let (before, after) = (self.before, self.after);
        let keys = (before.entries, after.entries);
        within("bucket_keys", keys, limits.bucket_keys)?;
        let bytes = (before.bytes, after.bytes);
        within("bucket_bytes", bytes, limits.bucket_bytes)?;
        if after.entries == 0 {
            self.sql.prepare_cached(UNMAKE)?.execute((id,))?;
            return Ok(());
        }
        if before.entries == 0 {
            let scope = self.scope;
            let buckets: i64 = self
                .sql
                .prepare_cached(BUCKETS)?
                .query_row((&scope.owner, &scope.principal), |row| row.get(0))?;
            within("buckets", (0, count(buckets)?), limits.buckets)?;
        }
        self.sql.prepare_cached(TOTALS)?.execute((
            id,
            stored(after.entries),
            stored(after.bytes),
            after.next,
        ))?;
        Ok(())
    }

    /// The key's entry and the size of its value.
    fn look(&self, key: &str) -> Result<Option<(i64, u64)>, Error> {
        let Some(id) = self.id else {
            return Ok(None);
        };
        let found: Option<(i64, i64)> = self
            .sql
            .prepare_cached(SIZE)?
            .query_row((id, key), |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        found
            .map(|(entry, bytes)| Ok((entry, count(bytes)?)))
            .transpose()
    }
}

fn size(key: &str, value: u64) -> u64 {
    (key.len() as u64).saturating_add(value)
}

fn within(limit: &'static str, (before, after): (u64, u64), allowed: u64) -> Result<(), Error> {
    if after <= allowed || after <= before {
        return Ok(());
    }
    Err(Error::Quota {
        limit,
        used: after,
        allowed,
    })
}

/// Converts a stored number; fails if it is negative.
pub(crate) fn count(stored: i64) -> Result<u64, Error> {
    u64::try_from(stored)
        .map_err(|_| Error::Corrupt(format!("expected a count, found {stored}").into()))
}

fn stored(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
