//! Changes of trust: new publishers and removals. The store records each change. Decisions about
//! bundles are also rows of the ledger of calls. The store's own log is authoritative, so a failure
//! of the ledger is only a warning.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::SystemTime;

use toolward_bundle::text::visible_line;
use toolward_ledger::record::{
    Event, Hex, Id, Number, RecordError, Trust as TrustRecord, TrustAction, Version,
};
use toolward_ledger::{Durability, Entry, Recorder as _};
use toolward_registry::{DocumentArtifact, Source};
use toolward_signing::trust::TrustSettings;
use toolward_signing::{Digest, Refusal, publisher};
use toolward_store::audit_log::{NewDecision, TrustVerdict};
use toolward_store::rollback;
use toolward_store::{HeldUpdate, Store, StoredRelease};

use super::bare_key_rules::{self, hold_none_of};
use super::publishers::{FreshnessRule, KnownPublisher, PublisherGrant, TrustedPublishers};
use super::{Trust, TrustContext};
use crate::installed::StoreLocation;
use crate::network::{Fetcher, Network, recorded};
use crate::recorder::{RecordedConfinement, RecorderCommand, StartedRecorder};
use crate::{Code, Environment, Error, Result};

/// Changes the trusted publishers. Fetching blocks; see [`network`](crate::network).
///
/// ```no_run
/// use toolward_operator::installed::StoreLocation;
/// use toolward_operator::network::Network;
/// use toolward_operator::trust::{Trust, changes::TrustChanges};
/// use toolward_operator::Environment;
///
/// # fn main() -> Result<(), toolward_operator::Error> {
/// let changes = TrustChanges {
///     trust: &Trust::default(),
///     store: &StoreLocation::default(),
///     network: &Network::default(),
///     environment: &Environment::of_process(),
///     rows: None,
/// };
/// let revoked = changes.remove("acme", false)?;
/// println!("{revoked} keys and bundles stay revoked");
/// # Ok(())
/// # }
/// ```
pub struct TrustChanges<'a> {
    /// The operator's trust configuration.
    pub trust: &'a Trust,
    /// The store that records changes.
    pub store: &'a StoreLocation,
    /// The settings for fetching.
    pub network: &'a Network,
    /// The operator's directories.
    pub environment: &'a Environment,
    /// Records in the ledger which bundles of the store are revoked or held, in addition to the
    /// store's own log.
    pub rows: Option<TrustRows<'a>>,
}

/// A publisher that is not trusted yet. Its document is verified and has no conflicts.
#[derive(Debug)]
pub struct PublisherCandidate {
    bytes: Vec<u8>,
    /// The record of the publisher.
    pub known: KnownPublisher,
    /// The operator's settings.
    pub settings: TrustSettings,
}

impl TrustChanges<'_> {
    /// Fetches the document of a new publisher. Refuses a name or key that is in use.
    ///
    /// # Errors
    /// `publisher-known`, or if the document can't be fetched or is refused.
    pub fn candidate(
        &self,
        source: &str,
        prefixes: &[String],
        actions: &[String],
    ) -> Result<PublisherCandidate> {
        let publishers = self.trust.publishers(self.environment)?;
        // The store must record the change, so it is opened before fetching.
        self.store.open(self.environment)?;
        let grant = PublisherGrant {
            prefixes: prefixes.to_vec(),
            actions: actions.to_vec(),
            source: recorded(&Source::parse(source)?, source)?,
            revocation_signers: Vec::new(),
            freshness: FreshnessRule::default(),
        };
        let bytes = self
            .fetcher()?
            .document(source, DocumentArtifact::Publisher)?;
        if bytes.trim_ascii_start().starts_with(b"-----BEGIN ") {
            return Err(bare_key_rules::fetched(source));
        }
        let (context, known) = self.verify_first(&bytes, &grant, &publishers.all()?)?;
        Ok(PublisherCandidate {
            bytes,
            known,
            settings: context.settings,
        })
    }

    /// Returns a fetcher for documents.
    pub(super) fn fetcher(&self) -> Result<Fetcher> {
        self.network.clone().fetcher(self.trust, self.environment)
    }

    /// Trusts a publisher with this freshness rule, after a person has compared its fingerprint.
    /// `announce` is called after all checks and before the publisher is recorded. If it fails, the
    /// publisher is not trusted.
    ///
    /// # Errors
    /// As [`TrustChanges::candidate`], since other changes may have happened in the meantime; the
    /// errors of `announce`.
    pub fn add(
        &self,
        candidate: &PublisherCandidate,
        rule: FreshnessRule,
        announce: impl FnOnce() -> Result<()>,
    ) -> Result<KnownPublisher> {
        let publishers = self.trust.publishers(self.environment)?;
        let store = self.store.open(self.environment)?;
        let grant = PublisherGrant {
            freshness: rule,
            ..candidate.known.grant.clone()
        };
        let transaction = publishers.exclusive()?;
        let (context, known) = self.verify_first(&candidate.bytes, &grant, &transaction.all()?)?;
        let document = &known.document;
        let kind = rollback::VersionedDocument::Publisher;
        let (name, digest) = (&document.name, document.digest);
        store.see_document(kind, name, document.version, digest, context.now)?;
        announce()?;
        transaction.add(&known)?;
        drop(transaction);
        let reason = "its fingerprint was compared";
        record(&store, "trust-add", name, Some(digest), reason, context.now)?;
        Ok(known)
    }

    /// Returns the record of the publisher, verified and checked for conflicts.
    fn verify_first(
        &self,
        bytes: &[u8],
        grant: &PublisherGrant,
        trusted: &TrustedPublishers,
    ) -> Result<(TrustContext, KnownPublisher)> {
        let trust = self.trust;
        let context = trust.context_of(trusted, self.environment)?;
        let document = publisher::first_use(bytes, &context.terms())?;
        let name = &document.name;
        let refused = |how: &str, hint: String| {
            let message = format!("{name} is trusted already{how}");
            Err(Error::usage(Code::PublisherKnown, message).hint(hint))
        };
        if trusted.key(name).is_some() {
            let hint = format!(
                "the document takes the key's place once that is taken out: `toolward trust remove {name}`, then the same \
                 command again"
            );
            return refused(", by a bare key", hint);
        }
        if trusted.get(name).is_some() {
            let hint = format!(
                "`toolward trust update {name} --prefix PREFIX` trusts it for more ids, and `toolward trust update {name}` \
                 takes in its next document"
            );
            return refused("", hint);
        }
        let known = KnownPublisher {
            document,
            grant: grant.clone(),
            revocations: None,
        };
        let mut with = trust.store_of(trusted, self.environment)?;
        let all = [known.prefixes()?, known.actions()?].concat();
        hold_none_of(&with, &known.document.name, &all)?;
        with.add_document(&known.document, known.prefixes()?)?;
        with.give_actions(&known.document.name, known.actions()?);
        Ok((context, known))
    }

    /// Removes a publisher. Its revocations stay in effect unless `forget` is set. Returns the
    /// number of keys and bundles that stay revoked.
    ///
    /// # Errors
    /// `publisher-unknown`, or if its folder can't be changed.
    pub fn remove(&self, name: &str, forget: bool) -> Result<usize> {
        let publishers = self.trust.publishers(self.environment)?;
        if !forget && !publishers.has(name) {
            return Err(unknown(name));
        }
        let transaction = publishers.exclusive()?;
        let gone = transaction.remove(name)?;
        let forgotten = forget && transaction.forget(name)?;
        drop(transaction);
        if gone.is_none() && !forgotten {
            return Err(unknown(name));
        }
        let mut revoked = 0;
        if let Some((left, lost)) = gone {
            self.record_removal(name, "trust-remove", "the operator removed it");
            revoked = left;
            for lost in lost.iter().filter(|_| !forget) {
                self.environment.report.warning(&format!(
                    "what {name} revoked can't be read and is forgotten: {}",
                    lost.message
                ));
            }
        }
        if forgotten {
            revoked = 0;
            self.record_removal(name, "trust-forget", "with what it revoked");
        }
        Ok(revoked)
    }

    /// Records a removal. If that fails, the publisher stays removed.
    fn record_removal(&self, name: &str, action: &str, reason: &str) {
        let now = SystemTime::now();
        let store = self.store.open(self.environment);
        if let Err(error) = store.and_then(|store| record(&store, action, name, None, reason, now))
        {
            let message = format!("this is not recorded: {}", error.message);
            self.environment.report.warning(&message);
        }
    }
}

/// The error for an unknown publisher.
pub fn unknown(name: &str) -> Error {
    let name = visible_line(name, 100);
    let message = format!("no publisher {name} is trusted by `toolward trust`");
    Error::usage(Code::PublisherUnknown, message).hint("`toolward trust list` shows those that are")
}

/// Records a change in the store.
pub(super) fn record(
    store: &Store,
    action: &str,
    name: &str,
    digest: Option<Digest>,
    reason: &str,
    now: SystemTime,
) -> Result<()> {
    let decision = NewDecision::new(action, name, TrustVerdict::Accepted, reason.to_owned());
    Ok(store.record(&decision.about(name, digest), now)?)
}

/// Records a refusal. The refusal holds even if it can't be recorded.
pub(super) fn refused(store: &Store, name: &str, refusal: Refusal, now: SystemTime) -> Error {
    let error = toolward_store::Error::from(refusal);
    let decision = NewDecision::refused("trust-update", name, &error).about(name, None);
    let _ = store.record(&decision, now);
    error.into()
}

/// Records decisions about bundles in the ledger, if `[ledger]` is on. For each decision a recorder
/// process is started, which ends when the rows are on the disk.
pub struct TrustRows<'a> {
    /// The command that starts a recorder.
    pub command: RecorderCommand,
    /// The configuration that has `[ledger]`.
    pub trust: &'a Trust,
    /// The operator's directories.
    pub environment: &'a Environment,
}

fn row(of: &StoredRelease, action: TrustAction) -> Result<TrustRecord, RecordError> {
    Ok(TrustRecord {
        action,
        bundle: Some(Hex(*of.digest.as_bytes())),
        id: Id::parse(&of.id)?,
        // The name of a bare key has a colon, which no id may contain. Rows about calls replace it,
        // too.
        publisher: Id::parse(&of.publisher.replace(':', "_")).ok(),
        sequence: Some(Number::from(of.sequence)),
        version: Version::parse(&of.version.to_string()).ok(),
    })
}

impl TrustRows<'_> {
    /// Records an action on each of these releases. The action stays in effect if this fails.
    pub(crate) fn record(&self, action: TrustAction, about: &[StoredRelease]) {
        if about.is_empty() {
            return;
        }
        if let Err(error) = self.write(action, about) {
            let what = "what was decided here is not in the ledger";
            self.environment.report.warning_of(what, &error);
        }
    }

    fn write(&self, action: TrustAction, about: &[StoredRelease]) -> Result<()> {
        let settings = self.trust.ledger(self.environment)?;
        let stderr = Stdio::null();
        let started = StartedRecorder::start(&self.command, &settings, self.environment, stderr)?;
        let Some(started) = started else {
            return Ok(());
        };
        let recorder = started.begin(&[], None, RecordedConfinement::Off)?;
        for release in about {
            let record = row(release, action).map_err(toolward_ledger::Error::Record)?;
            let entry = Entry::new(Event::Trust(record));
            recorder.remote().append(entry, Durability::Disk).wait()?;
        }
        recorder.close()
    }
}

/// Returns the updates that wait until a person accepts them, each as bundle, release and surface.
pub(crate) fn waiting(store: &Store) -> Result<BTreeSet<(String, Digest, Digest)>> {
    let pending = store.pending()?.into_iter();
    Ok(pending.map(|(held, _)| key(&held)).collect())
}

/// Records the updates that wait now but did not wait when `before` was read.
pub(crate) fn record_held(
    rows: Option<&TrustRows<'_>>,
    store: &Store,
    before: &BTreeSet<(String, Digest, Digest)>,
) -> Result<()> {
    let Some(rows) = rows else {
        return Ok(());
    };
    let held = store.pending()?.into_iter().map(|(held, _)| held);
    let new = held.filter(|held| !before.contains(&key(held)));
    let new: Vec<StoredRelease> = new.map(|held| held.release).collect();
    rows.record(TrustAction::Held, &new);
    Ok(())
}

fn key(held: &HeldUpdate) -> (String, Digest, Digest) {
    (held.id.clone(), held.digest, held.surface)
}
