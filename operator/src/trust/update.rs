//! Updates of known publishers: next documents, revocations, and other settings.

use std::time::SystemTime;

use toolward_bundle::text::visible_line;
use toolward_ledger::record::TrustAction;
use toolward_registry::DocumentArtifact;
use toolward_signing::trust::TrustSettings;
use toolward_signing::{Digest, publisher, revocation};
use toolward_store::rollback::{self, NextDocument};
use toolward_store::{Store, StoredRelease};

use super::bare_key_rules::hold_none_of;
use super::changes::{TrustChanges, record, record_held, refused, unknown, waiting};
use super::publishers::{
    FreshnessRule, KnownPublisher, PublisherRecord, Transaction, parse_prefixes,
};
use crate::installed;
use crate::{Code, Error, Result, Silent};

/// Changes of a known publisher.
#[derive(Debug, Clone, Copy, Default)]
pub struct PublisherUpdate<'u> {
    /// The next documents, in order.
    pub sources: &'u [String],
    /// The publisher's list of revocations.
    pub revocations: Option<&'u str>,
    /// The prefixes of the action ids that it may also publish. They replace the present prefixes
    /// of action ids.
    pub actions: Option<&'u [String]>,
    /// More prefixes of ids that it may publish.
    pub prefixes: &'u [String],
}

impl TrustChanges<'_> {
    /// Applies the next documents of a publisher, its list of revocations, another freshness rule
    /// (a maximum age or a channel), other actions, or more prefixes. Without any of these, fetches
    /// the next document from the source of the first document.
    ///
    /// # Errors
    /// `publisher-unknown`, or if a document can't be fetched or is refused.
    pub fn update(
        &self,
        name: &str,
        update: &PublisherUpdate<'_>,
        rule: impl FnOnce(&TrustSettings) -> Result<Option<FreshnessRule>>,
    ) -> Result<KnownPublisher> {
        let publishers = self.trust.publishers(self.environment)?;
        let store = self.store.open(self.environment)?;
        let own = match publishers.get(name)?.ok_or_else(|| unknown(name))? {
            PublisherRecord::Document(known) => *known,
            PublisherRecord::Key(_) => {
                let message = format!(
                    "{name} is trusted by a bare key, which has no documents, revocations or actions"
                );
                return Err(Error::usage(Code::PublisherBare, message).hint(
                    "`toolward trust add KEY.pub.pem` changes its prefixes, maximum age and channel. To revoke what it \
                     signed, add the digest or the key id to `[trust.deny]` of toolward.toml, or take the key out: \
                     `toolward trust remove`",
                ));
            }
        };
        let revoked: Vec<Digest> = digests(&own).collect();
        let own = [own.grant.source];
        let trust = self.trust;
        let settings = trust.context_of(&publishers.all()?, self.environment)?;
        let freshness = rule(&settings.settings)?;
        let (actions, prefixes) = (update.actions, update.prefixes);
        let revocations = update.revocations;
        // Checked before anything changes, since an invalid prefix would make all trust unreadable.
        parse_prefixes(actions.unwrap_or_default())?;
        parse_prefixes(prefixes)?;
        let more = revocations.is_some()
            || freshness.is_some()
            || actions.is_some()
            || !prefixes.is_empty();
        let sources = match (update.sources, more) {
            ([], true) => &[][..],
            ([], false) => &own[..],
            (sources, _) => sources,
        };
        // Fetches first, without holding the lock.
        let network = self.fetcher()?;
        let chain = sources.iter();
        let chain = chain.map(|source| network.document(source, DocumentArtifact::Publisher));
        let chain: Vec<Vec<u8>> = chain.collect::<Result<_, _>>()?;
        let list = revocations
            .map(|source| network.document(source, DocumentArtifact::Revocations))
            .transpose()?;

        let transaction = publishers.exclusive()?;
        // Checked before anything is written.
        if let Some(actions) = actions {
            let store = trust.store_of(&transaction.all()?, self.environment)?;
            hold_none_of(&store, name, &parse_prefixes(actions)?)?;
        }
        if !prefixes.is_empty() {
            self.can_have(name, prefixes, &transaction)?;
        }
        let mut known = self.rotated(name, &chain, &transaction, &store)?;
        if let Some(list) = list {
            known = self.revoked(known, &list, &transaction, &store)?;
        }
        let write = |known: &KnownPublisher, reason: String| {
            transaction.write(known)?;
            let now = SystemTime::now();
            record(&store, "trust-update", name, None, &reason, now)
        };
        if let Some(rule) = freshness {
            known.grant.freshness = rule;
            let reason = format!("freshness: {}", known.grant.freshness);
            write(&known, reason)?;
        }
        if !prefixes.is_empty() {
            for prefix in prefixes {
                if !known.grant.prefixes.contains(prefix) {
                    known.grant.prefixes.push(prefix.clone());
                }
            }
            let shown = visible_line(&prefixes.join(", "), 400);
            write(&known, format!("prefixes: {shown}"))?;
        }
        if let Some(actions) = actions {
            known.grant.actions = actions.to_vec();
            let shown = visible_line(&actions.join(", "), 400);
            write(&known, format!("actions: {shown}"))?;
        }
        drop(transaction);
        self.record_revoked(&store, &known, &revoked)?;
        if actions.is_some() {
            let waiting = waiting(&store)?;
            self.settle_actions(name, &store)?;
            record_held(self.rows.as_ref(), &store, &waiting)?;
        }
        Ok(known)
    }

    /// Refuses prefixes that the publisher can't have in addition to its present ones.
    fn can_have(&self, name: &str, prefixes: &[String], transaction: &Transaction) -> Result<()> {
        let trusted = transaction.all()?;
        let own = trusted.get(name).ok_or_else(|| unknown(name))?.clone();
        let mut others = self
            .trust
            .store_of(&trusted.without(name), self.environment)?;
        hold_none_of(&others, name, &parse_prefixes(prefixes)?)?;
        let all = [own.grant.prefixes.as_slice(), prefixes].concat();
        others.add_document(&own.document, parse_prefixes(&all)?)?;
        Ok(())
    }

    /// Records which releases in the store the publisher's list revokes now, but did not revoke
    /// `before`.
    fn record_revoked(
        &self,
        store: &Store,
        known: &KnownPublisher,
        before: &[Digest],
    ) -> Result<()> {
        let Some(rows) = &self.rows else {
            return Ok(());
        };
        let revoked: Vec<Digest> = digests(known)
            .filter(|digest| !before.contains(digest))
            .collect();
        if revoked.is_empty() {
            return Ok(());
        }
        let all = store.all_releases()?.into_iter().map(|(one, _)| one);
        let releases = all.filter(|one| revoked.contains(&one.digest));
        let releases: Vec<StoredRelease> = releases.collect();
        rows.record(TrustAction::Revoked, &releases);
        Ok(())
    }

    /// Holds the installed bundles that now use other actions, and reports which bundles of the
    /// publisher are no longer loaded.
    fn settle_actions(&self, name: &str, store: &Store) -> Result<()> {
        let context = self.trust.context(self.environment)?;
        installed::hold_changed(store, &context)?;
        let silent = self.environment.reporting(Silent);
        for one in installed::examined(store, self.trust, &silent)? {
            if let Some(refusal) = one.refusal()
                && one.installed.publisher == name
            {
                let what = format!("{} is no longer loaded", one.installed.id);
                self.environment.report.warning_of(&what, refusal);
            }
        }
        Ok(())
    }

    /// Rotates to the newest of these documents, after verifying each.
    fn rotated(
        &self,
        name: &str,
        chain: &[Vec<u8>],
        transaction: &Transaction,
        store: &Store,
    ) -> Result<KnownPublisher> {
        let trust = self.trust;
        let trusted = transaction.all()?;
        let current = trusted.get(name).ok_or_else(|| unknown(name))?.clone();
        let context = trust.context_of(&trusted, self.environment)?;
        let now = context.now;
        let chain: Vec<&[u8]> = chain.iter().map(Vec::as_slice).collect();
        let accepted = publisher::rotate_through(&current.document, &chain, &context.terms())
            .map_err(|refusal| refused(store, name, refusal, now))?;
        let Some(newest) = accepted.last() else {
            return Ok(current);
        };
        let known = KnownPublisher {
            document: newest.clone(),
            ..current
        };
        // A document with a key of another publisher would make the whole trust store invalid.
        trust
            .store_of(&trusted.without(name), self.environment)?
            .add_document(newest, known.prefixes()?)
            .map_err(|refusal| refused(store, name, refusal, now))?;
        let following = accepted.iter().map(|next| NextDocument {
            version: next.version,
            digest: next.digest,
            resets: &next.resets,
        });
        let following: Vec<NextDocument<'_>> = following.collect();
        // Records the documents, and resets the sequences that a thief of a key used up. Done
        // before the write, so that they are reset only once, even if the write fails and is
        // retried.
        store.follow(name, &following, now)?;
        transaction.write(&known)?;
        for next in &accepted {
            let reason = format!("version {} follows", next.version);
            record(store, "trust-update", name, Some(next.digest), &reason, now)?;
        }
        Ok(known)
    }

    /// Applies the publisher's revocations, verified with the keys of its newest document.
    fn revoked(
        &self,
        known: KnownPublisher,
        list: &[u8],
        transaction: &Transaction,
        store: &Store,
    ) -> Result<KnownPublisher> {
        let trust = self.trust;
        let trusted = transaction.all()?;
        let context = trust.context_of(&trusted, self.environment)?;
        let now = context.now;
        let name = &known.document.name;
        let all = trust.store_of(&trusted, self.environment)?;
        let publisher = all.publisher(name).ok_or_else(|| unknown(name))?;
        let previous = known.revocations.as_ref();
        let list = revocation::accept(list, publisher, &all, previous, &context.terms())
            .map_err(|refusal| refused(store, name, refusal, now))?;
        for warning in &list.warnings {
            self.environment.report.warning(warning);
        }
        // Recorded under the current keys, so that versions that a thief of the earlier keys used
        // up do not count for new keys.
        let kind = rollback::VersionedDocument::Revocations;
        let under = publisher.fingerprint().digest().to_string();
        store.see_document(kind, &under, list.version, list.digest, now)?;
        let mut grant = known.grant.clone();
        grant.revocation_signers = list.signers.iter().map(ToString::to_string).collect();
        let known = KnownPublisher {
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
}

/// The bundles that a publisher's list revokes.
fn digests(known: &KnownPublisher) -> impl Iterator<Item = Digest> {
    let list = known.revocations.iter();
    list.flat_map(|list| list.bundles.iter().map(|bundle| bundle.digest))
}
