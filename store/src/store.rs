//! The store: its directories, its state, and the operations on them.

use std::fmt;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use toolward_bundle::surface::BundleSurface;
use toolward_files::{Folder, Protection, private_file};
use toolward_signing::Digest;
use toolward_sqlite::{open_untouched, open_unwritable};

use crate::arrivals;
use crate::audit_log::{self, Decision, Filter, NewDecision, Verdict};
use crate::decide;
use crate::error::Error;
use crate::lock::BUSY_TIMEOUT;
use crate::model::{self, Held, Installed};
use crate::object::Objects;
use crate::rollback::{self, Following, Mark, VersionedDocument};
use crate::search;
use crate::state::{StateDatabase, Unwritable};
use crate::tools::{self, InstalledTool};
use crate::{schema, times};

/// Bundles, each with what is seen of it.
type Seen<B> = Vec<(B, BundleSurface)>;

/// Installed bundles and the state of trust. Several processes may have one open; it has to lie on a file
/// system of the machine itself.
pub struct Store {
    pub(crate) directory: OwnedFd,
    pub(crate) objects: Objects,
    pub(crate) state: StateDatabase,
    log_unread: bool,
    /// Why decisions could not be written down, if so.
    unrecorded: Mutex<Option<&'static str>>,
}

impl Store {
    /// Opens the store in `directory` with its state in the file `state`, making what isn't there: directories
    /// with mode 0700, the file with 0600.
    ///
    /// # Errors
    /// [`Error::Unusable`] if a directory or the file belongs to another user or others have access to it;
    /// [`Error::Corrupt`] or [`Error::Version`] for a file that is not this version's state.
    pub fn open(directory: &Path, state: &Path) -> Result<Self, Error> {
        let make = |path: &Path| Folder::make(path, Protection::Private);
        let opened = make(directory)?;
        let objects = make(&directory.join("objects"))?;
        let temporary = make(&directory.join("tmp"))?;
        let state = private_file(state)?;
        Ok(Self {
            directory: opened.into(),
            objects: Objects::new(objects.into(), temporary.into()),
            state: StateDatabase::new(schema::open(&state)?),
            log_unread: false,
            unrecorded: Mutex::default(),
        })
    }

    /// Opens a store as [`Store::open`] does, or, where its disk is full or read-only, a
    /// read-only one: decisions are then not recorded ([`Store::unrecorded`]), and every change fails with [`Error::Full`] or [`Error::ReadOnly`].
    ///
    /// # Errors
    /// Those of [`Store::open`].
    pub fn open_to_read(directory: &Path, state: &Path) -> Result<Self, Error> {
        let failed = match Self::open(directory, state) {
            Err(
                error @ (Error::Full | Error::ReadOnly | Error::Io(_) | Error::Unusable { .. }),
            ) => error,
            opened => return opened,
        };
        let why = match failed {
            Error::Full => Unwritable::Full,
            _ => Unwritable::ReadOnly,
        };
        // A missing store, or one of another user, keeps its own error.
        let read = |state: &Path| open_unwritable(state, &schema::SCHEMA, BUSY_TIMEOUT);
        Self::unwritable(directory, state, why, read)?.ok_or(failed)
    }

    /// Opens an existing store for reading and changes nothing in it, waiting for other processes at most this
    /// long; `None` without one that is this user's. For showing only: the newest changes may be missing
    /// ([`Store::log_unread`]).
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Version`]; [`Error::Busy`] if another process kept it locked.
    pub fn open_untouched(
        directory: &Path,
        state: &Path,
        wait: Duration,
    ) -> Result<Option<Self>, Error> {
        let read = |state: &Path| open_untouched(state, &schema::SCHEMA, wait);
        Self::unwritable(directory, state, Unwritable::ReadOnly, read)
    }

    fn unwritable(
        directory: &Path,
        state: &Path,
        why: Unwritable,
        read: impl FnOnce(&Path) -> Result<toolward_sqlite::Unwritable, toolward_sqlite::Error>,
    ) -> Result<Option<Self>, Error> {
        let open = |path: &Path| Folder::open(path, Protection::Private);
        let folders = || {
            let opened = open(directory)?;
            let objects = open(&directory.join("objects"))?;
            let temporary = open(&directory.join("tmp"))?;
            Ok::<_, toolward_files::Error>((opened, objects, temporary))
        };
        let (Ok((opened, objects, temporary)), true) = (folders(), state.is_file()) else {
            return Ok(None);
        };
        let state = private_file(state)?;
        let unwritable = read(&state)?;
        Ok(Some(Self {
            directory: opened.into(),
            objects: Objects::new(objects.into(), temporary.into()),
            state: StateDatabase::read_only(unwritable.connection, why),
            log_unread: unwritable.log_unread,
            unrecorded: Mutex::default(),
        }))
    }

    /// Whether the newest changes could not be read: what comes from here may have been revoked, replaced or
    /// removed since. For showing only.
    #[must_use]
    pub fn log_unread(&self) -> bool {
        self.log_unread
    }

    /// The code of the error for which decisions were not written down, if any was not.
    #[must_use]
    pub fn unrecorded(&self) -> Option<&'static str> {
        *self
            .unrecorded
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a decision could not be recorded because the disk is full or read-only.
    ///
    /// # Errors
    /// Any other reason for which it could not be.
    pub(crate) fn recorded(&self, result: Result<(), Error>) -> Result<(), Error> {
        match result {
            Err(error) if error.is_of_disk() => {
                let mut unrecorded = self
                    .unrecorded
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                unrecorded.get_or_insert(error.code());
                Ok(())
            }
            other => other,
        }
    }

    /// What is installed, by id.
    ///
    /// # Errors
    /// When the state can't be read.
    pub fn list(&self) -> Result<Vec<Installed>, Error> {
        self.state.read(model::all_installed)
    }

    /// What is installed, by id, each with what is seen of it. No bundle is read or parsed: what comes from
    /// here is for showing; what runs is loaded and verified.
    ///
    /// # Errors
    /// When the state can't be read.
    pub fn catalogue(&self) -> Result<Vec<(Installed, BundleSurface)>, Error> {
        self.state.read(|sql| {
            let installed = model::all_installed(sql)?.into_iter();
            installed
                .map(|installed| {
                    let surface = model::surface(sql, &installed.surface)?;
                    Ok((installed, surface))
                })
                .collect()
        })
    }

    /// The installed bundles with these ids, and the updates that wait, each with what is seen of it. For showing,
    /// like [`Store::catalogue`].
    ///
    /// # Errors
    /// When the state can't be read.
    pub fn surfaces(&self, installed: &[&str]) -> Result<(Seen<Installed>, Seen<Held>), Error> {
        self.state.read(|sql| {
            let mut shown = Vec::new();
            for id in installed {
                if let Some(installed) = model::one_installed(sql, id)? {
                    let surface = model::surface(sql, &installed.surface)?;
                    shown.push((installed, surface));
                }
            }
            let held = model::all_held(sql)?.into_iter();
            let held = held.map(|held| {
                let surface = model::surface(sql, &held.surface)?;
                Ok((held, surface))
            });
            Ok((shown, held.collect::<Result<_, Error>>()?))
        })
    }

    /// The tools of what is installed, by bundle and id, in short. Nothing is parsed for it.
    ///
    /// # Errors
    /// When the state can't be read.
    pub fn tools(&self) -> Result<Vec<InstalledTool>, Error> {
        self.state.read(tools::all)
    }

    /// The tools that are installed, by publisher and `id@major`, in order of arrival. An update of its bundle
    /// keeps a tool's place.
    ///
    /// # Errors
    /// When the state can't be read.
    pub fn arrivals(&self) -> Result<Vec<(String, String)>, Error> {
        self.state.read(arrivals::all)
    }

    /// The installed bundle of an id.
    ///
    /// # Errors
    /// When the state can't be read.
    pub fn installed(&self, id: &str) -> Result<Option<Installed>, Error> {
        self.state.read(|sql| model::one_installed(sql, id))
    }

    /// Removes a bundle, and an update of it that is held. Its marks stay, and its file until garbage is
    /// collected.
    ///
    /// # Errors
    /// [`Error::NotInstalled`] if neither is there.
    pub fn remove(&self, id: &str, now: SystemTime) -> Result<Option<Installed>, Error> {
        let at = times::seconds(now);
        self.state.write(|sql| {
            let installed = model::one_installed(sql, id)?;
            let removed = sql.execute("DELETE FROM installed WHERE id = ?1", [id])?;
            let dropped = sql.execute("DELETE FROM held WHERE id = ?1", [id])?;
            if removed == 0 && dropped == 0 {
                return Err(Error::NotInstalled { id: id.to_owned() });
            }
            decide::forget_surfaces(sql)?;
            let decision = NewDecision {
                action: "remove".to_owned(),
                subject: id.to_owned(),
                publisher: installed.as_ref().map(|one| one.publisher.clone()),
                digest: installed.as_ref().map(|one| one.digest),
                verdict: Verdict::Accepted,
                code: None,
                reason: "removed".to_owned(),
            };
            audit_log::record(sql, &decision, at)?;
            Ok(installed)
        })
    }

    /// The tools of installed bundles that match a query, the best first.
    ///
    /// # Errors
    /// When the state can't be read.
    pub fn search(&self, query: &str, limit: usize) -> Result<Vec<InstalledTool>, Error> {
        let tools = self.tools()?;
        let ranked = search::rank(query, tools.iter().map(|tool| &tool.entry));
        let found = ranked.into_iter().take(limit);
        Ok(found
            .filter_map(|position| tools.get(position).cloned())
            .collect())
    }

    /// Records a decision that was made elsewhere.
    ///
    /// # Errors
    /// When the state can't be written.
    pub fn record(&self, decision: &NewDecision, now: SystemTime) -> Result<(), Error> {
        self.record_all(std::slice::from_ref(decision), now)
    }

    pub(crate) fn record_all(&self, all: &[NewDecision], now: SystemTime) -> Result<(), Error> {
        if all.is_empty() {
            return Ok(());
        }
        self.state
            .write(|sql| audit_log::record_each(sql, all, now))
    }

    /// Records these as [`Store::record_all`] does, without waiting for the disk.
    pub(crate) fn record_soon(&self, all: &[NewDecision], now: SystemTime) -> Result<(), Error> {
        if all.is_empty() {
            return Ok(());
        }
        self.state
            .write_soon(|sql| audit_log::record_each(sql, all, now))
    }

    /// Recorded decisions, the newest first.
    ///
    /// # Errors
    /// When the state can't be read.
    pub fn decisions(&self, filter: &Filter) -> Result<Vec<Decision>, Error> {
        self.state.read(|sql| audit_log::list(sql, filter))
    }

    /// The releases that were installed, the highest of a bundle first.
    ///
    /// # Errors
    /// When the state can't be read.
    pub fn marks(&self) -> Result<Vec<Mark>, Error> {
        self.state.read(rollback::all)
    }

    /// Takes note of documents of a publisher that follow each other, the newest last, and applies the resets of
    /// those that are newer than the one seen last: a thief of a key can't block the publisher's next release
    /// with a high sequence. All of it happens, or nothing, so that each reset is applied once: call it before
    /// the newest document is kept, and again if keeping it failed. The bundles whose mark changed come back,
    /// with the sequence and digest that no longer count.
    ///
    /// # Errors
    /// Those of [`Store::see_document`], for the newest.
    pub fn follow(
        &self,
        publisher: &str,
        documents: &[Following<'_>],
        now: SystemTime,
    ) -> Result<Vec<(String, u64, Digest)>, Error> {
        let Some(newest) = documents.last() else {
            return Ok(Vec::new());
        };
        let at = times::seconds(now);
        let kind = VersionedDocument::Publisher;
        let followed = self.state.write(|sql| {
            let seen = rollback::document(sql, kind, publisher)?.map_or(0, |(version, _)| version);
            let mut changed = Vec::new();
            for document in documents.iter().filter(|next| next.version > seen) {
                changed.extend(rollback::reset(sql, publisher, document.resets, at)?);
            }
            rollback::see_document(sql, kind, publisher, newest.version, newest.digest, at)?;
            for (id, sequence, digest) in &changed {
                let decision = NewDecision {
                    action: "reset".to_owned(),
                    subject: id.clone(),
                    publisher: Some(publisher.to_owned()),
                    digest: Some(*digest),
                    verdict: Verdict::Accepted,
                    code: None,
                    reason: format!(
                        "the publisher's document takes the release with sequence {sequence} back"
                    ),
                };
                audit_log::record(sql, &decision, at)?;
            }
            Ok(changed)
        });
        self.seen(kind, publisher, newest.digest, followed, now)
    }

    /// Takes note of a document's version.
    ///
    /// # Errors
    /// [`Error::Refused`]: `rollback` if a higher version is known, `equivocation` if this one is known with
    /// another digest. Both are recorded.
    pub fn see_document(
        &self,
        kind: VersionedDocument,
        name: &str,
        version: u64,
        digest: Digest,
        now: SystemTime,
    ) -> Result<(), Error> {
        let at = times::seconds(now);
        let seen = self
            .state
            .write(|sql| rollback::see_document(sql, kind, name, version, digest, at));
        self.seen(kind, name, digest, seen, now)
    }

    /// Records that a document was refused, if it was.
    fn seen<R>(
        &self,
        kind: VersionedDocument,
        name: &str,
        digest: Digest,
        seen: Result<R, Error>,
        now: SystemTime,
    ) -> Result<R, Error> {
        if let Err(error) = &seen {
            let refused = NewDecision {
                digest: Some(digest),
                ..NewDecision::refused(kind.as_str(), name, error)
            };
            // The refusal stands, whether or not it can be written down.
            let _ = self.record(&refused, now);
        }
        seen
    }

    /// The version and digest of a document that was seen last.
    ///
    /// # Errors
    /// When the state can't be read.
    pub fn document(
        &self,
        kind: VersionedDocument,
        name: &str,
    ) -> Result<Option<(u64, Digest)>, Error> {
        self.state.read(|sql| rollback::document(sql, kind, name))
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}
