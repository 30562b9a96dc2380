//! `trust update`: the next documents of a publisher, and what it revokes.

use toolward_registry::DocumentKind;
use toolward_signing::publisher;
use toolward_signing::revocation;
use toolward_store::Store;
use toolward_store::decisions::{NewDecision, Verdict};
use toolward_store::marks::{self, Following};

use super::{FreshnessFlags, Subject, print, record, unknown};
use crate::failure::Failure;
use crate::output::Output;
use toolward_operator::trust::publishers::{Known, Transaction};

impl Subject<'_> {
    pub(super) fn update(
        &self,
        name: &str,
        sources: &[String],
        revocations: Option<&str>,
        freshness: &FreshnessFlags,
        output: &mut Output,
    ) -> Result<(), Failure> {
        let publishers = self.common.trust.publishers(self.environment)?;
        let store = self.common.store.open(self.environment)?;
        let own = [self.known(name)?.grant.source];
        let trust = &self.common.trust;
        let settings = trust.context_or_empty(&publishers.all()?, self.environment, output)?;
        let freshness = freshness.given(&settings.settings)?;
        let sources = match (sources, revocations.is_some() || freshness.is_some()) {
            ([], true) => &[][..],
            ([], false) => &own[..],
            (sources, _) => sources,
        };
        // All of the network first: meanwhile others may change whom they trust.
        let network = &self.common.network;
        let chain = sources.iter();
        let chain = chain.map(|source| network.document(source, DocumentKind::Publisher));
        let chain: Vec<Vec<u8>> = chain.collect::<Result<_, _>>()?;
        let list = revocations
            .map(|source| network.document(source, DocumentKind::Revocations))
            .transpose()?;

        let transaction = publishers.exclusive()?;
        let mut known = self.rotated(name, &chain, &transaction, &store, output)?;
        if let Some(list) = list {
            known = self.revoked(known, &list, &transaction, &store, output)?;
        }
        if let Some(rule) = freshness {
            known.grant.freshness = rule;
            transaction.write(&known)?;
            let reason = format!("freshness: {}", known.grant.freshness);
            let now = std::time::SystemTime::now();
            record(&store, "trust-update", name, None, &reason, now)?;
        }
        drop(transaction);
        print(&known, output)
    }

    /// Goes on to the newest of these documents.
    fn rotated(
        &self,
        name: &str,
        chain: &[Vec<u8>],
        transaction: &Transaction,
        store: &Store,
        output: &Output,
    ) -> Result<Known, Failure> {
        let trust = &self.common.trust;
        let trusted = transaction.all()?;
        let current = trusted.get(name).ok_or_else(|| unknown(name))?.clone();
        let context = trust.context_of(&trusted, self.environment, output)?;
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
        let following: Vec<Following<'_>> = accepted
            .iter()
            .map(|next| Following {
                version: next.version,
                digest: next.digest,
                resets: &next.resets,
            })
            .collect();
        // First: what a thief used up is given back once, however often this is tried.
        store.follow(name, &following, now)?;
        transaction.write(&known)?;
        for next in &accepted {
            let reason = format!("version {} follows", next.version);
            record(store, "trust-update", name, Some(next.digest), &reason, now)?;
        }
        Ok(known)
    }

    /// Takes in what the publisher revokes, by the keys of its newest document.
    fn revoked(
        &self,
        known: Known,
        list: &[u8],
        transaction: &Transaction,
        store: &Store,
        output: &Output,
    ) -> Result<Known, Failure> {
        let trust = &self.common.trust;
        let trusted = transaction.all()?;
        let context = trust.context_of(&trusted, self.environment, output)?;
        let now = context.now;
        let name = &known.document.name;
        let all = trust.store_of(&trusted, self.environment)?;
        let publisher = all.publisher(name).ok_or_else(|| unknown(name))?;
        let previous = known.revocations.as_ref();
        let list = revocation::accept(list, publisher, &all, previous, &context.terms())
            .map_err(|refusal| refused(store, name, &refusal, now))?;
        for warning in &list.warnings {
            output.warning(warning);
        }
        // By the keys: versions that a thief used up mean nothing once they are others.
        let kind = marks::DocumentKind::Revocations;
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
}

/// A refusal, written down.
fn refused(
    store: &Store,
    name: &str,
    refusal: &toolward_signing::Refusal,
    now: std::time::SystemTime,
) -> Failure {
    let decision = NewDecision {
        action: "trust-update".to_owned(),
        subject: name.to_owned(),
        publisher: Some(name.to_owned()),
        digest: None,
        verdict: Verdict::Refused,
        code: Some(refusal.code().to_owned()),
        reason: refusal.to_string(),
    };
    // The refusal stands, whether or not it can be written down.
    let _ = store.record(&decision, now);
    Failure::refused(refusal)
}
