//! Decisions about bundles, recorded in the ledger of calls. The store's own log is authoritative: a ledger that fails is a
//! warning.

use std::collections::BTreeSet;
use std::process::Stdio;

use toolward_ledger::record::{
    Event, Hex, Id, Number, RecordError, Trust as TrustRecord, TrustAction, Version,
};
use toolward_ledger::{Durability, Entry, Recorder as _};
use toolward_signing::Digest;
use toolward_store::{HeldUpdate, InstalledBundle, Store};

use super::Trust;
use crate::environment::Environment;
use crate::error::Result;
use crate::recorder::{RecorderCommand, StartedRecorder};
use crate::report::Report;

/// Records decisions about bundles in the ledger, if `[ledger]` is on. Each time a recorder is started, which ends
/// when the rows are on the disk.
#[derive(Clone, Copy)]
pub struct TrustRows<'a> {
    /// Starts a recorder.
    pub command: &'a RecorderCommand,
    /// The configuration that has `[ledger]`.
    pub trust: &'a Trust,
    /// The operator's directories.
    pub environment: &'a Environment,
    /// Receives a warning if something is not recorded.
    pub report: &'a dyn Report,
}

/// A release in the store.
pub(crate) struct StoredRelease {
    id: String,
    pub(super) digest: Digest,
    publisher: String,
    sequence: u64,
    version: String,
}

impl From<&InstalledBundle> for StoredRelease {
    fn from(of: &InstalledBundle) -> Self {
        Self {
            id: of.id.clone(),
            digest: of.digest,
            publisher: of.publisher.clone(),
            sequence: of.sequence,
            version: of.version.to_string(),
        }
    }
}

impl From<&HeldUpdate> for StoredRelease {
    fn from(of: &HeldUpdate) -> Self {
        Self {
            id: of.id.clone(),
            digest: of.digest,
            publisher: of.publisher.clone(),
            sequence: of.sequence,
            version: of.version.to_string(),
        }
    }
}

impl StoredRelease {
    fn record(&self, action: TrustAction) -> Result<TrustRecord, RecordError> {
        Ok(TrustRecord {
            action,
            bundle: Some(Hex(*self.digest.as_bytes())),
            id: Id::parse(&self.id)?,
            // As calls name it: a key has a colon, which no id has.
            publisher: Id::parse(&self.publisher.replace(':', "_")).ok(),
            sequence: Some(Number::from(self.sequence)),
            version: Version::parse(&self.version).ok(),
        })
    }
}

impl TrustRows<'_> {
    /// Records an action on each of these releases. The action stays in effect if this fails.
    pub(crate) fn record(&self, action: TrustAction, about: &[StoredRelease]) {
        if about.is_empty() {
            return;
        }
        if let Err(error) = self.write(action, about) {
            self.report.warning(&format!(
                "what was decided here is not in the ledger: {} ({})",
                error.message, error.code
            ));
        }
    }

    fn write(&self, action: TrustAction, about: &[StoredRelease]) -> Result<()> {
        let settings = self.trust.ledger(self.environment)?;
        let stderr = Stdio::null();
        let started = StartedRecorder::start(self.command, &settings, self.environment, stderr)?;
        let Some(started) = started else {
            return Ok(());
        };
        let recorder = started.begin_without_calls()?;
        for release in about {
            let record = release.record(action);
            let record = record.map_err(toolward_ledger::Error::Record)?;
            let entry = Entry::new(Event::Trust(record));
            recorder.remote().append(entry, Durability::Disk).wait()?;
        }
        recorder.close()
    }
}

/// The updates that wait: bundle, release and surface.
pub(crate) fn waiting(store: &Store) -> Result<BTreeSet<(String, String, String)>> {
    let pending = store.pending()?.into_iter();
    Ok(pending.map(|(held, _)| key(&held)).collect())
}

/// Records the updates that wait now and did not when `before` was read.
pub(crate) fn record_held(
    rows: Option<TrustRows<'_>>,
    store: &Store,
    before: &BTreeSet<(String, String, String)>,
) -> Result<()> {
    let Some(rows) = rows else {
        return Ok(());
    };
    let mut held: Vec<HeldUpdate> = store.pending()?.into_iter().map(|(held, _)| held).collect();
    held.retain(|held| !before.contains(&key(held)));
    let held: Vec<StoredRelease> = held.iter().map(StoredRelease::from).collect();
    rows.record(TrustAction::Held, &held);
    Ok(())
}

fn key(held: &HeldUpdate) -> (String, String, String) {
    let (digest, surface) = (held.digest.to_string(), held.surface.to_string());
    (held.id.clone(), digest, surface)
}
