//! The store: its directories, its state, and the operations on them.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use toolward_bundle::surface::BundleSurface;
use toolward_signing::Digest;
use toolward_support::files::{self, Folder, Lock as LockKind, Protection, private_file};
use toolward_support::sqlite::{self, Unwritable, open_untouched, open_unwritable};

use crate::audit_log::{self, DecisionFilter, NewDecision, RecordedDecision, TrustVerdict};
use crate::error::Error;
use crate::model::{HeldUpdate, InstalledBundle, StoredRow as _};
use crate::objects::{BUSY_TIMEOUT, Objects, ObjectsLock, lock_objects};
use crate::rollback::{self, NextDocument, VersionedDocument};
use crate::search::{self, InstalledTool};
use crate::state::{self, StateDatabase};

/// Bundles, each with its surface.
type WithSurface<B> = Vec<(B, BundleSurface)>;

/// The store's folder, and the folders of its objects.
fn folders(
    directory: &Path,
    open: fn(&Path, Protection) -> Result<Folder, files::Error>,
) -> Result<(Folder, Objects), files::Error> {
    let opened = open(directory, Protection::Private)?;
    let objects: OwnedFd = open(&directory.join("objects"), Protection::Private)?.into();
    let temporary = open(&directory.join("tmp"), Protection::Private)?.into();
    let objects = Arc::new(objects);
    Ok((opened, Objects { objects, temporary }))
}

/// The installed bundles and the state of trust. Several processes may open the same store. The
/// store must be on a local file system.
pub struct Store {
    pub(crate) directory: OwnedFd,
    pub(crate) objects: Objects,
    pub(crate) state: StateDatabase,
    log_unread: bool,
    /// The code of the first error that kept a decision from being recorded, if any.
    unrecorded: OnceLock<&'static str>,
}

impl Store {
    pub(crate) fn share_objects(&self) -> Result<ObjectsLock, Error> {
        lock_objects(&self.directory, LockKind::Shared)
    }

    /// Opens the store in `directory` with its state in the file `state`. Missing directories are
    /// created with mode 0700, a missing file with mode 0600.
    ///
    /// # Errors
    /// [`Error::Unusable`] if a directory or the file belongs to another user, or if others have access to
    /// it; [`Error::Corrupt`] or [`Error::Version`] for a file that is not this version's state.
    pub fn open(directory: &Path, state: &Path) -> Result<Self, Error> {
        let folders = folders(directory, Folder::make)?;
        let state = private_file(state)?;
        Ok(Self::of(
            folders,
            StateDatabase::new(state::open(&state)?, None),
        ))
    }

    fn of((directory, objects): (Folder, Objects), state: StateDatabase) -> Self {
        Self {
            directory: directory.into(),
            objects,
            state,
            log_unread: false,
            unrecorded: OnceLock::new(),
        }
    }

    /// Opens a store as [`Store::open`] does. If its disk is full or read-only, the store is opened
    /// read-only: decisions are not recorded ([`Store::unrecorded`]), and every change fails with
    /// [`Error::Full`] or [`Error::ReadOnly`].
    ///
    /// # Errors
    /// The errors of [`Store::open`].
    pub fn open_to_read(directory: &Path, state: &Path) -> Result<Self, Error> {
        let failed = match Self::open(directory, state) {
            Err(
                error @ (Error::Full | Error::ReadOnly | Error::Io(_) | Error::Unusable { .. }),
            ) => error,
            opened => return opened,
        };
        let unwritable: fn() -> Error = match failed {
            Error::Full => || Error::Full,
            _ => || Error::ReadOnly,
        };
        // If the store is missing or belongs to another user, the first error is returned.
        let read = |state: &Path| open_unwritable(state, &state::SCHEMA, BUSY_TIMEOUT);
        Self::unwritable(directory, state, unwritable, read)?.ok_or(failed)
    }

    /// Opens an existing store for reading, without changing it, and waits for other processes for
    /// at most `wait`. Returns `None` if the store does not exist, or this user can't open its
    /// directories. For display only: the newest changes may be missing ([`Store::log_unread`]).
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Version`]; [`Error::Busy`] if another process kept it locked.
    pub fn open_untouched(
        directory: &Path,
        state: &Path,
        wait: Duration,
    ) -> Result<Option<Self>, Error> {
        let read = |state: &Path| open_untouched(state, &state::SCHEMA, wait);
        Self::unwritable(directory, state, || Error::ReadOnly, read)
    }

    fn unwritable(
        directory: &Path,
        state: &Path,
        error: fn() -> Error,
        read: impl FnOnce(&Path) -> Result<Unwritable, sqlite::Error>,
    ) -> Result<Option<Self>, Error> {
        let (Ok(folders), true) = (folders(directory, Folder::open), state.is_file()) else {
            return Ok(None);
        };
        let unwritable = read(&private_file(state)?)?;
        let database = StateDatabase::new(unwritable.connection, Some(error));
        Ok(Some(Self {
            log_unread: unwritable.log_unread,
            ..Self::of(folders, database)
        }))
    }

    /// Whether the newest changes could not be read. Bundles may have been revoked, replaced or
    /// removed since, so the store is for display only.
    pub fn log_unread(&self) -> bool {
        self.log_unread
    }

    /// The code of the error that prevented recording decisions, if any.
    pub fn unrecorded(&self) -> Option<&'static str> {
        self.unrecorded.get().copied()
    }

    /// Accepts that a decision could not be recorded because the disk is full or read-only.
    pub(crate) fn recorded(&self, result: Result<(), Error>) -> Result<(), Error> {
        match result {
            Err(error @ (Error::Full | Error::ReadOnly)) => {
                self.unrecorded.get_or_init(|| error.code());
                Ok(())
            }
            other => other,
        }
    }

    /// The installed bundles, by id.
    ///
    /// # Errors
    /// When the state can't be read.
    pub fn list(&self) -> Result<Vec<InstalledBundle>, Error> {
        self.state.read(InstalledBundle::all)
    }

    /// The installed bundles that take actions from other bundles, by id, according to their
    /// accepted surfaces. A damaged surface of another bundle is not noticed here.
    ///
    /// # Errors
    /// When the state can't be read.
    pub fn action_takers(&self) -> Result<Vec<InstalledBundle>, Error> {
        self.state.read(|sql| {
            // Only such a surface has the field `library`, so that the others need no parsing.
            let mut statement = sql.prepare_cached(
                "SELECT installed.* FROM installed JOIN surface ON surface.digest = installed.surface
                 WHERE instr(surface.bytes, CAST('\"library\":' AS BLOB)) > 0 ORDER BY id",
            )?;
            let rows = statement.query_map([], InstalledBundle::read)?;
            let with_field = rows.map(|row| row?.with_surface(sql));
            let with_field: Vec<_> = with_field.collect::<Result<_, Error>>()?;
            let takers = with_field.into_iter().filter(|(_, surface)| surface.takes_actions());
            Ok(takers.map(|(installed, _)| installed).collect())
        })
    }

    /// The installed bundles with these ids, and the held updates, each with its surface. For
    /// display only: no bundle is read or verified here.
    ///
    /// # Errors
    /// When the state can't be read.
    pub fn surfaces(
        &self,
        installed: &[&str],
    ) -> Result<(WithSurface<InstalledBundle>, WithSurface<HeldUpdate>), Error> {
        self.state.read(|sql| {
            let shown = installed.iter();
            let shown = shown.filter_map(|id| InstalledBundle::of(sql, id).transpose());
            let shown = shown.map(|one| one?.with_surface(sql));
            let held = HeldUpdate::all(sql)?.into_iter();
            let held = held.map(|held| held.with_surface(sql));
            Ok((
                shown.collect::<Result<_, Error>>()?,
                held.collect::<Result<_, Error>>()?,
            ))
        })
    }

    /// The searchable facts of all installed tools, by bundle and id, without parsing a bundle.
    ///
    /// # Errors
    /// When the state can't be read.
    pub fn tools(&self) -> Result<Vec<InstalledTool>, Error> {
        self.state.read(search::all_tools)
    }

    /// The publisher and `id@major` of all installed tools, in order of installation. A tool keeps
    /// its position when its bundle is updated.
    ///
    /// # Errors
    /// When the state can't be read.
    pub fn arrivals(&self) -> Result<Vec<(String, String)>, Error> {
        self.state.read(search::arrivals)
    }

    /// The installed bundle of an id.
    ///
    /// # Errors
    /// When the state can't be read.
    pub fn installed(&self, id: &str) -> Result<Option<InstalledBundle>, Error> {
        self.state.read(|sql| InstalledBundle::of(sql, id))
    }

    /// The installed tools that match a query, the best first.
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
        self.record_all(std::slice::from_ref(decision), now, true)
    }

    /// Records decisions; `wait` decides whether to wait for the disk.
    pub(crate) fn record_all(
        &self,
        all: &[NewDecision],
        now: SystemTime,
        wait: bool,
    ) -> Result<(), Error> {
        if all.is_empty() {
            return Ok(());
        }
        let at = state::seconds(now);
        self.state.write_and_wait(wait, |sql| {
            all.iter()
                .try_for_each(|one| audit_log::record(sql, one, at))
        })
    }

    /// Returns recorded decisions, the newest first.
    ///
    /// # Errors
    /// When the state can't be read.
    pub fn decisions(&self, filter: &DecisionFilter) -> Result<Vec<RecordedDecision>, Error> {
        self.state.read(|sql| audit_log::list(sql, filter))
    }

    /// The highest sequence of a bundle that counts, or 0 if no release is recorded.
    ///
    /// # Errors
    /// When the state can't be read.
    pub fn highest_sequence(&self, publisher: &str, id: &str) -> Result<u64, Error> {
        let highest = self
            .state
            .read(|sql| rollback::highest(sql, publisher, id))?;
        Ok(highest.map_or(0, |(sequence, _)| sequence))
    }

    /// Takes consecutive documents of a publisher, the newest last. Applies the resets of the
    /// documents that are newer than the last recorded one, so that a thief of a key can't block
    /// the publisher's next release with a high sequence. Records the newest document in the same
    /// transaction, so that each reset is applied once. Call this before the newest document is
    /// stored, and again if storing it failed. Returns the bundles whose mark changed, with the
    /// sequence and digest that no longer count.
    ///
    /// # Errors
    /// The errors of [`Store::see_document`], for the newest document.
    pub fn follow(
        &self,
        publisher: &str,
        documents: &[NextDocument<'_>],
        now: SystemTime,
    ) -> Result<Vec<(String, u64, Digest)>, Error> {
        let Some(newest) = documents.last() else {
            return Ok(Vec::new());
        };
        let at = state::seconds(now);
        let kind = VersionedDocument::Publisher;
        let followed = self.state.write(|sql| {
            let seen = rollback::document(sql, kind, publisher)?.map_or(0, |(version, _)| version);
            let mut changed = Vec::new();
            for document in documents.iter().filter(|next| next.version > seen) {
                changed.extend(rollback::reset(sql, publisher, document.resets, at)?);
            }
            rollback::see_document(sql, kind, publisher, newest.version, newest.digest, at)?;
            for (id, sequence, digest) in &changed {
                let reason = format!(
                    "the publisher's document takes the release with sequence {sequence} back"
                );
                let decision = NewDecision::new("reset", id, TrustVerdict::Accepted, reason);
                let decision = decision.about(publisher, Some(*digest));
                audit_log::record(sql, &decision, at)?;
            }
            Ok(changed)
        });
        self.record_refusal(kind, publisher, newest.digest, followed, now)
    }

    /// Records a document's version.
    ///
    /// # Errors
    /// [`Error::Refused`]: `rollback` if a higher version is known, `equivocation` if this one is
    /// known with another digest. Both refusals are recorded.
    pub fn see_document(
        &self,
        kind: VersionedDocument,
        name: &str,
        version: u64,
        digest: Digest,
        now: SystemTime,
    ) -> Result<(), Error> {
        let at = state::seconds(now);
        let seen = self
            .state
            .write(|sql| rollback::see_document(sql, kind, name, version, digest, at));
        self.record_refusal(kind, name, digest, seen, now)
    }

    /// Records the refusal of a document, if it was refused.
    fn record_refusal<R>(
        &self,
        kind: VersionedDocument,
        name: &str,
        digest: Digest,
        seen: Result<R, Error>,
        now: SystemTime,
    ) -> Result<R, Error> {
        seen.inspect_err(|error| {
            let refused = NewDecision {
                digest: Some(digest),
                ..NewDecision::refused(kind.as_str(), name, error)
            };
            // The refusal stands, whether or not it can be recorded.
            let _ = self.record(&refused, now);
        })
    }

    /// The version and digest of the document that was last recorded.
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

toolward_support::opaque!(Store);
