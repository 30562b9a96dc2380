//! Sessions: each writer has a session, and holds a lock on the session's file as long as the
//! writer lives. If the writer's process dies, the system releases the lock. The next process that
//! opens the ledger finds the unlocked file, and ends the unfinished calls of the dead session.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;
use toolward_support::files::{Folder, Lock, Protection};

use crate::append::Appending;
use crate::error::Error;
use crate::payload::random;
use crate::record::{Abandoned, Event, Hex, Invocation, Session};

/// A session of this process: its id, and the locked file.
pub(crate) struct Own {
    pub(crate) id: Session,
    path: PathBuf,
    _lock: File,
}

/// The session of a process that is gone. While this process holds the lock on the session's file,
/// no other process ends the session. The lock is `None` if the file is missing.
pub(crate) struct Dead {
    id: Session,
    path: PathBuf,
    _lock: Option<File>,
}

impl Own {
    pub(crate) fn begin(folder: &Path) -> Result<Self, Error> {
        Folder::make(folder, Protection::Private)?;
        loop {
            let id: Session = Hex(random()?);
            let path = folder.join(id.to_string());
            let file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)
                .map_err(fail)?;
            toolward_support::files::lock(&file, Lock::Exclusive, Duration::from_secs(5))
                .map_err(fail)?;
            // Another process may have found the file before it was locked, and ended the session.
            if file.metadata().map_err(fail)?.nlink() > 0 {
                return Ok(Self {
                    id,
                    path,
                    _lock: file,
                });
            }
        }
    }

    /// Ends the session in good order, by removing its file. The next session abandons calls that
    /// are still unfinished.
    pub(crate) fn end(self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The sessions of processes that are gone. `known` are the sessions with unfinished calls in the
/// ledger.
pub(crate) fn dead(folder: &Path, own: &Own, known: Vec<Session>) -> Result<Vec<Dead>, Error> {
    let mut found = known;
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let name = entry.map_err(fail)?.file_name();
        found.extend(name.to_str().and_then(Session::parse));
    }
    found.sort_unstable();
    found.dedup();
    let others = found.into_iter().filter(|id| *id != own.id);
    others
        .filter_map(|id| lock(folder, id).transpose())
        .collect()
}

/// Locks the file of a dead session; `None` if the session lives.
fn lock(folder: &Path, id: Session) -> Result<Option<Dead>, Error> {
    let path = folder.join(id.to_string());
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(&path);
    let lock = match opened {
        Ok(file) => match toolward_support::files::lock(&file, Lock::Exclusive, Duration::ZERO) {
            Ok(()) => Some(file),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(fail(error)),
        },
        // A living session has a file, so this session is dead.
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(fail(error)),
    };
    Ok(Some(Dead {
        id,
        path,
        _lock: lock,
    }))
}

impl Dead {
    /// Ends the session's unfinished calls. If two processes do this at once, only the first finds
    /// the calls: its transaction ends before the second process starts its own.
    pub(crate) fn abandon(&self, own: Session, rows: &mut Appending<'_>) -> Result<(), Error> {
        let unfinished: Vec<[u8; 16]> = {
            let mut found = rows
                .tx
                .prepare_cached("SELECT invocation FROM unfinished WHERE session = ?1")?;
            let found = found.query_map([self.id.0], |row| row.get(0))?;
            found.collect::<Result<_, _>>()?
        };
        for id in unfinished {
            let invocation = Invocation::from_bytes(id);
            let abandoned = Abandoned {
                invocation,
                of: self.id,
                why: None,
            };
            rows.add(own, Event::Abandoned(abandoned))?;
            finished(rows, self.id, invocation)?;
        }
        Ok(())
    }

    /// Removes the session's file. Call this only once the ends of the session's calls are on the
    /// disk.
    pub(crate) fn forget(self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Tracks the unfinished calls of a session.
pub(crate) fn note(rows: &Appending<'_>, session: Session, event: &Event) -> Result<(), Error> {
    match event {
        Event::Started(body) => {
            rows.tx
                .prepare_cached("INSERT OR IGNORE INTO unfinished VALUES (?1, ?2)")?
                .execute((body.invocation.0.as_bytes(), session.0))?;
            Ok(())
        }
        // An end with the facts of the call is the end of a call without a recorded start.
        Event::Ended(body) if body.call.is_none() => finished(rows, session, body.invocation),
        Event::Abandoned(body) => finished(rows, session, body.invocation),
        _ => Ok(()),
    }
}

/// Notes that a call has ended, in the session that started it.
fn finished(rows: &Appending<'_>, of: Session, id: Invocation) -> Result<(), Error> {
    rows.tx
        .prepare_cached("DELETE FROM unfinished WHERE invocation = ?1 AND session = ?2")?
        .execute((id.0.as_bytes(), of.0))?;
    Ok(())
}

/// The sessions that have unfinished calls.
pub(crate) fn unfinished(sql: &rusqlite::Connection) -> Result<Vec<Session>, Error> {
    let mut found = sql.prepare_cached("SELECT DISTINCT session FROM unfinished")?;
    let found = found.query_map([], |row| row.get(0).map(Hex))?;
    Ok(found.collect::<Result<_, _>>()?)
}

fn fail(error: std::io::Error) -> Error {
    Error::io("the ledger's sessions", error)
}
