//! The file of payloads and names.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension as _, Transaction};
use toolward_support::files::{Links, Lock, Protection};

use crate::append::{integer, write};
use crate::directory::{self, BUSY_TIMEOUT, PAYLOADS, with_log};
use crate::error::Error;
use crate::payload::room::{BY_PERSON, add, delete, shrink};
use crate::payload::{Keep, PayloadKind, PayloadLimits, commitment};
use crate::record::{Event, Hex, Invocation, Number, Person};
use crate::recorder::{Entry, content_mut, micros, now};

/// The names of principals in a batch, each with its id.
type Persons = HashMap<Arc<str>, Person>;

/// The payloads to erase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Erase {
    /// All payloads of a principal, and its name.
    Principal(String),
    /// All payloads of a call.
    Invocation(Invocation),
    /// All payloads that were stored before this time, in microseconds since 1970.
    Before(Number),
}

/// The file of payloads and names.
pub(crate) struct Payloads {
    sql: Connection,
    path: PathBuf,
    file: Option<FileId>,
    keep: Keep,
    limits: PayloadLimits,
}

impl Payloads {
    fn open(path: &Path, keep: Keep, limits: PayloadLimits) -> Result<Self, Error> {
        let sql = directory::open_to_write(path, &PAYLOADS)?;
        // Does not wait for the disk, since a ledger stays valid without this file.
        toolward_support::sqlite::wait_for_disk(&sql, false)?;
        sql.execute_batch(BY_PERSON)?;
        Ok(Self {
            sql,
            path: path.to_owned(),
            file: FileId::of(path),
            keep,
            limits,
        })
    }

    /// Opens the file. If it is damaged, renames it and creates a new file. Also returns whether it
    /// was damaged.
    pub(crate) fn open_whole(
        path: &Path,
        keep: Keep,
        limits: PayloadLimits,
    ) -> Result<(Self, bool), Error> {
        match Self::open(path, keep, limits) {
            Err(Error::Corrupt(_)) => {
                set_aside(path, None)?;
                Ok((Self::open(path, keep, limits)?, true))
            }
            opened => Ok((opened?, false)),
        }
    }

    /// Renames the damaged file, and creates a new file.
    pub(crate) fn replace(&mut self) -> Result<(), Error> {
        set_aside(&self.path, self.file)?;
        *self = Self::open(&self.path, self.keep, self.limits)?;
        Ok(())
    }

    /// Sets how long to wait for other processes.
    pub(crate) fn busy_timeout(&self, timeout: Duration) -> Result<(), Error> {
        Ok(self.sql.busy_timeout(timeout)?)
    }

    /// Fills in the person and the commitments of each entry, and stores the payloads that the
    /// settings keep.
    pub(crate) fn prepare(&mut self, entries: &mut [&mut Entry]) -> Result<(), Error> {
        let new = || entries.iter().filter(|entry| !entry.prepared);
        let kept = |entry: &Entry| {
            let mut all = entry.payloads.iter();
            all.any(|payload| is_kept(self.keep, &self.limits, entry.matters, payload))
        };
        let writes = new().any(|entry| kept(entry));
        let persons = match writes {
            true => None,
            // Most batches have only known principals, and no payloads to store. They need no
            // transaction that writes.
            false => look_up(
                &self.sql,
                new().filter_map(|entry| entry.principal.as_ref()),
            )?,
        };
        match persons {
            Some(persons) => entries.iter_mut().for_each(|entry| name(entry, &persons)),
            None => self.store(entries)?,
        }
        for entry in entries {
            entry.prepared = true;
            entry.payloads = Vec::new();
        }
        Ok(())
    }

    fn store(&mut self, entries: &mut [&mut Entry]) -> Result<(), Error> {
        let (keep, limits) = (self.keep, self.limits);
        let tx = write(&mut self.sql)?;
        let mut persons = Persons::new();
        let at = now();
        let until = at.get().saturating_add(micros(limits.age));
        let mut added = 0;
        for entry in entries.iter_mut().filter(|entry| !entry.prepared) {
            if let Some(principal) = &entry.principal
                && !persons.contains_key(principal)
            {
                persons.insert(principal.clone(), person_or_new(&tx, principal)?);
            }
            name(entry, &persons);
            let person = entry.principal.as_ref().and_then(|name| persons.get(name));
            let Entry {
                event,
                payloads,
                matters,
                ..
            } = &mut **entry;
            let invocation = event.of_call();
            let kept = |payload: &&_| is_kept(keep, &limits, *matters, payload);
            for (kind, bytes) in payloads.iter().filter(kept) {
                let salt: [u8; 32] = random()?;
                let hash = commitment(&salt, kind.as_str(), bytes);
                tx.prepare_cached("INSERT INTO payload VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?
                    .execute((
                        hash.0,
                        salt,
                        kind.as_str(),
                        person.map(|person| person.0),
                        invocation.map(|id| *id.0.as_bytes()),
                        integer(at.get()),
                        integer(until),
                        bytes,
                    ))?;
                added += bytes.len() as u64;
                if let Some(Some(content)) = content_mut(event, *kind) {
                    content.commitment = Some(hash);
                }
            }
        }
        if added > 0 {
            let total = add(&tx, integer(added))?;
            shrink(&tx, total, limits.total, at)?;
        }
        Ok(tx.commit()?)
    }

    /// Deletes expired payloads, payloads beyond the limit, and damaged files that were renamed and
    /// have expired.
    pub(crate) fn sweep(&mut self) -> Result<(), Error> {
        let tx = write(&mut self.sql)?;
        let total = add(&tx, 0)?;
        shrink(&tx, total, self.limits.total, now())?;
        tx.commit()?;
        remove_aside(&self.path, self.limits.age)
    }

    /// Deletes payloads by their commitments.
    pub(crate) fn delete(&mut self, commitments: &[crate::record::Hash]) -> Result<(), Error> {
        let tx = write(&mut self.sql)?;
        for commitment in commitments {
            delete(&tx, "commitment = ?1", &commitment.0)?;
        }
        Ok(tx.commit()?)
    }

    /// Deletes the chosen payloads, and all damaged files that were renamed. Returns the number of
    /// deleted payloads, and the id of the person whose name was deleted. Copies in the write-ahead
    /// log stay until [`Self::truncate_log`].
    pub(crate) fn erase(&mut self, what: &Erase) -> Result<(u64, Option<Person>), Error> {
        let tx = write(&mut self.sql)?;
        let (deleted, person) = match what {
            Erase::Principal(name) => match person(&tx, name)? {
                Some(person) => {
                    tx.execute("DELETE FROM person WHERE id = ?1", [person.0])?;
                    (delete(&tx, "person = ?1", &person.0)?, Some(person))
                }
                None => (0, None),
            },
            Erase::Invocation(id) => (delete(&tx, "invocation = ?1", id.0.as_bytes())?, None),
            Erase::Before(at) => (delete(&tx, "at < ?1", &integer(at.get()))?, None),
        };
        tx.commit()?;
        remove_aside(&self.path, Duration::ZERO)?;
        Ok((deleted, person))
    }

    /// Empties the write-ahead log, which may still contain deleted data. Waits for readers, at
    /// most [`BUSY_TIMEOUT`].
    pub(crate) fn truncate_log(&self) -> Result<(), Error> {
        let deadline = Instant::now() + BUSY_TIMEOUT;
        loop {
            let busy: i64 = self
                .sql
                .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
            if busy == 0 {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(Error::Busy);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn is_kept(
    keep: Keep,
    limits: &PayloadLimits,
    matters: bool,
    (kind, bytes): &(PayloadKind, Vec<u8>),
) -> bool {
    keep.keeps(*kind, matters) && bytes.len() <= limits.each
}

/// Sets the event's person, and removes commitments that the event already has.
fn name(entry: &mut Entry, persons: &Persons) {
    let principal = entry.principal.as_ref();
    let found = principal.and_then(|name| persons.get(name)).copied();
    match &mut entry.event {
        Event::RefusedMore(body) => body.person = found,
        Event::Approval(body) => body.person = found,
        event => {
            if let (Some(call), _) = event.parts_mut() {
                call.person = found;
            }
            for kind in PayloadKind::ALL {
                if let Some(Some(content)) = content_mut(event, *kind) {
                    content.commitment = None;
                }
            }
        }
    }
}

/// The ids of all these names; `None` if a name has no id yet.
fn look_up<'n>(
    sql: &Connection,
    names: impl Iterator<Item = &'n Arc<str>>,
) -> Result<Option<Persons>, Error> {
    let mut persons = Persons::new();
    for name in names {
        if !persons.contains_key(name) {
            match person(sql, name)? {
                Some(person) => persons.insert(name.clone(), person),
                None => return Ok(None),
            };
        }
    }
    Ok(Some(persons))
}

/// The id that stands for a principal.
pub(crate) fn person(sql: &Connection, name: &str) -> Result<Option<Person>, Error> {
    let id = sql
        .prepare_cached("SELECT id FROM person WHERE name = ?1")?
        .query_row([name], |row| row.get(0))
        .optional()?;
    Ok(id.map(Hex))
}

fn person_or_new(tx: &Transaction<'_>, name: &str) -> Result<Person, Error> {
    if let Some(person) = person(tx, name)? {
        return Ok(person);
    }
    let id: [u8; 16] = random()?;
    tx.prepare_cached("INSERT INTO person VALUES (?1, ?2)")?
        .execute((id, name))?;
    Ok(Hex(id))
}

/// Bytes from the system's random numbers.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::io("random numbers", std::io::Error::other(error)))?;
    Ok(bytes)
}

/// The identity of a file, independent of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileId(u64, u64);

impl FileId {
    fn of(path: &Path) -> Option<Self> {
        let metadata = path.symlink_metadata().ok()?;
        Some(Self(metadata.dev(), metadata.ino()))
    }
}

/// Renames a damaged file of payloads, unless another process has replaced it in the meantime.
/// Recording continues with a new file. People may inspect the renamed file until its payloads have
/// expired. It is also deleted when anything is erased, since single payloads can't be erased from
/// it.
fn set_aside(path: &Path, damaged: Option<FileId>) -> Result<(), Error> {
    let file = match toolward_support::files::open(path, Protection::Private, Links::Refuse) {
        Err(error) if error.is_missing() => return Ok(()),
        opened => opened?,
    };
    toolward_support::files::lock(&file, Lock::Exclusive, BUSY_TIMEOUT).map_err(fail)?;
    let metadata = file.metadata().map_err(fail)?;
    let opened = Some(FileId(metadata.dev(), metadata.ino()));
    if opened != FileId::of(path) || damaged.is_some_and(|damaged| Some(damaged) != opened) {
        return Ok(());
    }
    let aside = format!("{}.damaged-{}", path.display(), now().get());
    for (from, to) in with_log(path).into_iter().zip(with_log(Path::new(&aside))) {
        match fs::rename(from, to) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(fail(error)),
            _ => {}
        }
    }
    tracing::error!(
        file = aside,
        "the ledger's payloads are damaged: the file is set aside, and what it kept is lost to the ledger"
    );
    Ok(())
}

/// Removes damaged files that were renamed at least `age` ago. Their names contain the time.
fn remove_aside(path: &Path, age: Duration) -> Result<(), Error> {
    let before = now().get().saturating_sub(micros(age));
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(());
    };
    let prefix = format!("{}.damaged-", name.to_string_lossy());
    for entry in fs::read_dir(folder).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name();
        let at = name.to_str().and_then(|name| name.strip_prefix(&prefix));
        let at = at.and_then(|at| at.split('-').next()?.parse().ok());
        if at.is_some_and(|at: u64| at <= before) {
            fs::remove_file(entry.path()).map_err(fail)?;
        }
    }
    Ok(())
}

fn fail(error: std::io::Error) -> Error {
    Error::io("the ledger's payloads", error)
}
