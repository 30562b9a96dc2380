//! Changes of trust: new publishers, their next documents, revocations, removal. The
//! store records each change.

mod errors;

use std::time::SystemTime;

use toolward_bundle::text::visible_line;
use toolward_ledger::record::TrustAction;
use toolward_registry::{DocumentArtifact, Source};
use toolward_signing::trust::TrustSettings;
use toolward_signing::{Digest, publisher, revocation};
use toolward_store::Store;
use toolward_store::audit_log::{NewDecision, TrustVerdict};
use toolward_store::rollback::{self, NextDocument};

use super::publishers::{FreshnessRule, Grant, Known, Record, Transaction, Trusted, parsed};
use super::rows::{self, Release, TrustRows};
use super::{Trust, TrustContext, bare_keys, key_place};
use crate::environment::Environment;
use crate::error::{Code, Error};
use crate::installed::{self, StoreLocation};
use crate::network::{Fetcher, Network, recorded};
use crate::report::{Report, Silent};

use errors::{bare, bare_key_known};

pub use errors::unknown;

/// Changes the trusted publishers. Fetching blocks, see [`network`](crate::network).
///
/// ```no_run
/// use toolward_operator::installed::StoreLocation;
/// use toolward_operator::network::Network;
/// use toolward_operator::trust::{Trust, changes::Changes};
/// use toolward_operator::{Environment, Silent};
///
/// # fn main() -> Result<(), toolward_operator::Error> {
/// let changes = Changes {
///     trust: &Trust::default(),
///     store: &StoreLocation::default(),
///     network: &Network::default(),
///     environment: &Environment::of_process(),
///     rows: None,
///     report: &Silent,
/// };
/// let removed = changes.remove("acme", false)?;
/// println!("{} keys and bundles stay revoked", removed.revoked);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct Changes<'a> {
    /// The operator's trust configuration.
    pub trust: &'a Trust,
    /// The store that records changes.
    pub store: &'a StoreLocation,
    /// The settings for fetching.
    pub network: &'a Network,
    /// The operator's directories.
    pub environment: &'a Environment,
    /// Records in the ledger which bundles of the store are revoked or held, beside the store's own log.
    pub rows: Option<TrustRows<'a>>,
    /// Receives warnings.
    pub report: &'a dyn Report,
}

/// A publisher that is not trusted yet. Its document is verified and has no conflicts.
#[derive(Debug)]
pub struct Candidate {
    bytes: Vec<u8>,
    /// The record of the publisher.
    pub known: Known,
    /// The operator's settings.
    pub settings: TrustSettings,
}

/// What is to change about a known publisher.
#[derive(Debug, Clone, Copy, Default)]
pub struct Update<'u> {
    /// The next documents, in order.
    pub sources: &'u [String],
    /// A list of what the publisher revokes.
    pub revocations: Option<&'u str>,
    /// The prefixes of the action ids that its libraries may have besides, in place of those that it has.
    pub actions: Option<&'u [String]>,
    /// Prefixes of ids that it may publish, beside those that it may already.
    pub prefixes: &'u [String],
}

/// The outcome of a removal.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Removed {
    /// The number of keys and bundles that stay revoked.
    pub revoked: usize,
}

impl Changes<'_> {
    /// Fetches the document of a new publisher. Refuses a name or key that is in use.
    ///
    /// # Errors
    /// `publisher-known`, or if the document can't be fetched or is refused.
    pub fn candidate(
        &self,
        source: &str,
        prefixes: &[String],
        actions: &[String],
    ) -> Result<Candidate, Error> {
        let publishers = self.trust.publishers(self.environment)?;
        // Open before fetching: changes must be recorded.
        self.store.open(self.environment)?;
        let grant = Grant {
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
            return Err(key_place::fetched(source));
        }
        let (context, known) = self.verify_first(&bytes, &grant, &publishers.all()?)?;
        Ok(Candidate {
            bytes,
            known,
            settings: context.settings,
        })
    }

    /// What fetches; a removal never needs it.
    fn fetcher(&self) -> Result<Fetcher, Error> {
        self.network.clone().fetcher(self.trust, self.environment)
    }

    /// Trusts a publisher with this freshness rule, after its fingerprint was compared. `announce` is called after all
    /// checks and before the publisher is recorded: if it fails, the publisher is not trusted.
    ///
    /// # Errors
    /// As [`Changes::candidate`]: other changes may have been made since. Those of `announce`.
    pub fn add(
        &self,
        candidate: &Candidate,
        rule: FreshnessRule,
        announce: impl FnOnce() -> Result<(), Error>,
    ) -> Result<Known, Error> {
        let publishers = self.trust.publishers(self.environment)?;
        let store = self.store.open(self.environment)?;
        let grant = Grant {
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

    /// The record of the publisher, verified and without conflicts.
    fn verify_first(
        &self,
        bytes: &[u8],
        grant: &Grant,
        trusted: &Trusted,
    ) -> Result<(TrustContext, Known), Error> {
        let trust = self.trust;
        let context = trust.context_or_empty(trusted, self.environment, self.report)?;
        let document = publisher::first_use(bytes, &context.terms()).map_err(Error::refused)?;
        if trusted.key(&document.name).is_some() {
            return Err(bare_key_known(&document.name));
        }
        if trusted.get(&document.name).is_some() {
            return Err(Error::usage(
                Code::PublisherKnown,
                format!("{} is trusted already", document.name),
            )
            .hint(format!(
                "`toolward trust update {0} --prefix PREFIX` trusts it for more ids, and `toolward trust update {0}` takes \
                 in its next document",
                document.name
            )));
        }
        let known = Known {
            document,
            grant: grant.clone(),
            revocations: None,
        };
        let mut with = trust.store_of(trusted, self.environment)?;
        let all = [known.prefixes()?, known.actions()?].concat();
        bare_keys::hold_none_of(&with, &known.document.name, &all)?;
        with.add_document(&known.document, known.prefixes()?)
            .map_err(Error::refused)?;
        with.give_actions(&known.document.name, known.actions()?);
        Ok((context, known))
    }

    /// Applies the next documents of a publisher, its list of revocations, another
    /// freshness rule, or other actions. Without any of them, fetches the next document
    /// from the source of the first.
    ///
    /// # Errors
    /// `publisher-unknown`, or if a document can't be fetched or is refused.
    pub fn update(
        &self,
        name: &str,
        update: &Update<'_>,
        rule: impl FnOnce(&TrustSettings) -> Result<Option<FreshnessRule>, Error>,
    ) -> Result<Known, Error> {
        let publishers = self.trust.publishers(self.environment)?;
        let store = self.store.open(self.environment)?;
        let own = match publishers.get(name)?.ok_or_else(|| unknown(name))? {
            Record::Document(known) => *known,
            Record::Key(_) => return Err(bare(name)),
        };
        let revoked: Vec<Digest> = digests(&own).collect();
        let own = [own.grant.source];
        let trust = self.trust;
        let settings = trust.context_or_empty(&publishers.all()?, self.environment, self.report)?;
        let freshness = rule(&settings.settings)?;
        let Update {
            sources,
            revocations,
            actions,
            prefixes,
        } = *update;
        // Before anything else changes: one that is not valid would make all trust unreadable.
        parsed(actions.unwrap_or_default())?;
        parsed(prefixes)?;
        let more = revocations.is_some()
            || freshness.is_some()
            || actions.is_some()
            || !prefixes.is_empty();
        let sources = match (sources, more) {
            ([], true) => &[][..],
            ([], false) => &own[..],
            (sources, _) => sources,
        };
        // Fetch first, without holding the lock.
        let network = self.fetcher()?;
        let chain = sources.iter();
        let chain = chain.map(|source| network.document(source, DocumentArtifact::Publisher));
        let chain: Vec<Vec<u8>> = chain.collect::<Result<_, _>>()?;
        let list = revocations
            .map(|source| network.document(source, DocumentArtifact::Revocations))
            .transpose()?;

        let transaction = publishers.exclusive()?;
        if let Some(actions) = actions {
            // Before anything is written.
            let store = trust.store_of(&transaction.all()?, self.environment)?;
            bare_keys::hold_none_of(&store, name, &parsed(actions)?)?;
        }
        if !prefixes.is_empty() {
            // Before anything is written.
            self.can_have(name, prefixes, &transaction)?;
        }
        let mut known = self.rotated(name, &chain, &transaction, &store)?;
        if let Some(list) = list {
            known = self.revoked(known, &list, &transaction, &store)?;
        }
        if let Some(rule) = freshness {
            known.grant.freshness = rule;
            transaction.write(&known)?;
            let reason = format!("freshness: {}", known.grant.freshness);
            let now = SystemTime::now();
            record(&store, "trust-update", name, None, &reason, now)?;
        }
        if !prefixes.is_empty() {
            let known_prefixes = &mut known.grant.prefixes;
            let new = prefixes.iter().filter(|one| !known_prefixes.contains(one));
            let new: Vec<String> = new.cloned().collect();
            known_prefixes.extend(new);
            transaction.write(&known)?;
            let reason = format!("prefixes: {}", visible_line(&prefixes.join(", "), 400));
            let now = SystemTime::now();
            record(&store, "trust-update", name, None, &reason, now)?;
        }
        if let Some(actions) = actions {
            known.grant.actions = actions.to_vec();
            transaction.write(&known)?;
            let reason = format!("actions: {}", visible_line(&actions.join(", "), 400));
            let now = SystemTime::now();
            record(&store, "trust-update", name, None, &reason, now)?;
        }
        drop(transaction);
        self.record_revoked(&store, &known, &revoked)?;
        if actions.is_some() {
            let waiting = rows::waiting(&store)?;
            self.settle_actions(name, &store)?;
            rows::record_held(self.rows, &store, &waiting)?;
        }
        Ok(known)
    }

    /// Refuses prefixes that a publisher can't have beside its own.
    fn can_have(
        &self,
        name: &str,
        prefixes: &[String],
        transaction: &Transaction,
    ) -> Result<(), Error> {
        let trusted = transaction.all()?;
        let own = trusted.get(name).ok_or_else(|| unknown(name))?.clone();
        let mut others = self
            .trust
            .store_of(&trusted.without(name), self.environment)?;
        bare_keys::hold_none_of(&others, name, &parsed(prefixes)?)?;
        let all = [own.grant.prefixes.as_slice(), prefixes].concat();
        others
            .add_document(&own.document, parsed(&all)?)
            .map_err(Error::refused)?;
        Ok(())
    }

    /// Records which releases in the store the publisher's list revokes, without those that it did `before`.
    fn record_revoked(&self, store: &Store, known: &Known, before: &[Digest]) -> Result<(), Error> {
        let Some(rows) = &self.rows else {
            return Ok(());
        };
        let revoked: Vec<Digest> = digests(known)
            .filter(|digest| !before.contains(digest))
            .collect();
        if revoked.is_empty() {
            return Ok(());
        }
        let (installed, held) = (store.list()?, store.pending()?);
        let installed = installed
            .iter()
            .filter(|one| revoked.contains(&one.digest))
            .map(Release::from);
        let held = held
            .iter()
            .map(|(held, _)| held)
            .filter(|one| revoked.contains(&one.digest))
            .map(Release::from);
        let releases: Vec<Release<'_>> = installed.chain(held).collect();
        rows.record(TrustAction::Revoked, &releases);
        Ok(())
    }

    /// Holds the installed bundles that take other actions by now, and says which bundles of the publisher are no longer
    /// loaded.
    fn settle_actions(&self, name: &str, store: &Store) -> Result<(), Error> {
        let context = self.trust.context(self.environment, self.report)?;
        installed::hold_changed(store, &context, self.report)?;
        for one in installed::examined(store, self.trust, self.environment, &Silent)? {
            if let Some(refusal) = one.refusal()
                && one.installed.publisher == name
            {
                self.report.warning(&format!(
                    "{} is no longer loaded: {} ({})",
                    one.installed.id, refusal.message, refusal.code
                ));
            }
        }
        Ok(())
    }

    /// Rotates to the newest of these documents.
    fn rotated(
        &self,
        name: &str,
        chain: &[Vec<u8>],
        transaction: &Transaction,
        store: &Store,
    ) -> Result<Known, Error> {
        let trust = self.trust;
        let trusted = transaction.all()?;
        let current = trusted.get(name).ok_or_else(|| unknown(name))?.clone();
        let context = trust.context_of(&trusted, self.environment, self.report)?;
        let now = context.now;
        let chain: Vec<&[u8]> = chain.iter().map(Vec::as_slice).collect();
        let accepted = publisher::rotate_through(&current.document, &chain, &context.terms())
            .map_err(|refusal| refused(store, name, &refusal, now))?;
        let Some(newest) = accepted.last() else {
            return Ok(current);
        };
        let known = Known {
            document: newest.clone(),
            ..current
        };
        // A key of another publisher would make the whole trust store invalid.
        trust
            .store_of(&trusted.without(name), self.environment)?
            .add_document(newest, known.prefixes()?)
            .map_err(|refusal| refused(store, name, &refusal, now))?;
        let following: Vec<NextDocument<'_>> = accepted
            .iter()
            .map(|next| NextDocument {
                version: next.version,
                digest: next.digest,
                resets: &next.resets,
            })
            .collect();
        // Do this first: sequences that a thief used up are reset only once, even after
        // retries.
        store.follow(name, &following, now)?;
        transaction.write(&known)?;
        for next in &accepted {
            let reason = format!("version {} follows", next.version);
            record(store, "trust-update", name, Some(next.digest), &reason, now)?;
        }
        Ok(known)
    }

    /// Applies the publisher's revocations, verified with the keys of its newest
    /// document.
    fn revoked(
        &self,
        known: Known,
        list: &[u8],
        transaction: &Transaction,
        store: &Store,
    ) -> Result<Known, Error> {
        let trust = self.trust;
        let trusted = transaction.all()?;
        let context = trust.context_of(&trusted, self.environment, self.report)?;
        let now = context.now;
        let name = &known.document.name;
        let all = trust.store_of(&trusted, self.environment)?;
        let publisher = all.publisher(name).ok_or_else(|| unknown(name))?;
        let previous = known.revocations.as_ref();
        let list = revocation::accept(list, publisher, &all, previous, &context.terms())
            .map_err(|refusal| refused(store, name, &refusal, now))?;
        for warning in &list.warnings {
            self.report.warning(warning);
        }
        // Recorded by keys: versions that a thief used up don't count for new keys.
        let kind = rollback::VersionedDocument::Revocations;
        let under = publisher.fingerprint().digest().to_string();
        store.see_document(kind, &under, list.version, list.digest, now)?;
        let mut grant = known.grant.clone();
        grant.revocation_signers = list.signers.iter().map(ToString::to_string).collect();
        let known = Known {
            grant,
            revocations: Some(list.into_inner()),
            ..known
        };
        transaction.write(&known)?;
        let (name, digest) = (&known.document.name, known.document.digest);
        let reason = "its list was taken in";
        record(store, "trust-revoke", name, Some(digest), reason, now)?;
        Ok(known)
    }

    /// Removes a publisher. Its revocations stay in effect unless `forget` is set.
    ///
    /// # Errors
    /// `publisher-unknown`, or if its folder can't be changed.
    pub fn remove(&self, name: &str, forget: bool) -> Result<Removed, Error> {
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
        let mut removed = Removed::default();
        if let Some(gone) = gone {
            self.record_removal(name, "trust-remove", "the operator removed it");
            removed.revoked = gone.revoked;
            for lost in gone.lost.iter().filter(|_| !forget) {
                self.report.warning(&format!(
                    "what {name} revoked can't be read and is forgotten: {}",
                    lost.message
                ));
            }
        }
        if forgotten {
            removed.revoked = 0;
            self.record_removal(name, "trust-forget", "with what it revoked");
        }
        Ok(removed)
    }

    /// Records a removal. The publisher stays removed if that fails.
    fn record_removal(&self, name: &str, action: &str, reason: &str) {
        let now = SystemTime::now();
        let store = self.store.open(self.environment);
        if let Err(error) = store.and_then(|store| record(&store, action, name, None, reason, now))
        {
            let message = format!("this is not recorded: {}", error.message);
            self.report.warning(&message);
        }
    }
}

/// The bundles that a publisher's list revokes.
fn digests(known: &Known) -> impl Iterator<Item = Digest> {
    let list = known.revocations.iter();
    list.flat_map(|list| list.bundles.iter().map(|bundle| bundle.digest))
}

/// Records a refusal.
fn refused(
    store: &Store,
    name: &str,
    refusal: &toolward_signing::Refusal,
    now: SystemTime,
) -> Error {
    let decision = NewDecision {
        action: "trust-update".to_owned(),
        subject: name.to_owned(),
        publisher: Some(name.to_owned()),
        digest: None,
        verdict: TrustVerdict::Refused,
        code: Some(refusal.code().to_owned()),
        reason: refusal.to_string(),
    };
    // The refusal holds even if it can't be recorded.
    let _ = store.record(&decision, now);
    Error::refused(refusal.clone())
}

pub(super) fn record(
    store: &Store,
    action: &str,
    name: &str,
    digest: Option<Digest>,
    reason: &str,
    now: SystemTime,
) -> Result<(), Error> {
    let decision = NewDecision {
        action: action.to_owned(),
        subject: name.to_owned(),
        publisher: Some(name.to_owned()),
        digest,
        verdict: TrustVerdict::Accepted,
        code: None,
        reason: reason.to_owned(),
    };
    Ok(store.record(&decision, now)?)
}
