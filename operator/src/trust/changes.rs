//! Changes of whom the operator trusts: a new publisher, its next documents, what it
//! revokes, its removal. Each is recorded in the store.

use std::time::SystemTime;

use toolward_bundle::text::visible_line;
use toolward_registry::{DocumentKind, Source};
use toolward_signing::trust::TrustSettings;
use toolward_signing::{Digest, publisher, revocation};
use toolward_store::Store;
use toolward_store::audit_log::{NewDecision, Verdict};
use toolward_store::rollback::{self, Following};

use super::publishers::{FreshnessRule, Grant, Known, Transaction, Trusted};
use super::{Trust, TrustContext};
use crate::environment::Environment;
use crate::error::Error;
use crate::installed::StoreLocation;
use crate::network::{Network, recorded};
use crate::report::Report;

/// What changes of trust need. Fetching blocks, see [`network`](crate::network).
#[derive(Clone, Copy)]
pub struct Changes<'a> {
    /// Whom the operator trusts.
    pub trust: &'a Trust,
    /// Where changes are recorded.
    pub store: &'a StoreLocation,
    /// How documents are fetched.
    pub network: &'a Network,
    /// Where the operator's files are.
    pub environment: &'a Environment,
    /// Receives warnings.
    pub report: &'a dyn Report,
}

/// A publisher that is not trusted yet: verified, and without a conflict.
#[derive(Debug)]
pub struct Candidate {
    bytes: Vec<u8>,
    /// The publisher, as it would be recorded.
    pub known: Known,
    /// The operator's settings.
    pub settings: TrustSettings,
}

/// What a removal did.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Removed {
    /// Keys and bundles that stay revoked.
    pub revoked: usize,
}

impl Changes<'_> {
    /// Fetches the document of a new publisher. A name or key that is taken is refused.
    ///
    /// # Errors
    ///
    /// Where the document can't be fetched or is refused, and `publisher-known`.
    pub fn candidate(&self, source: &str, prefixes: &[String]) -> Result<Candidate, Error> {
        let publishers = self.trust.publishers(self.environment)?;
        // Before anything is fetched: without it nothing can be recorded.
        self.store.open(self.environment)?;
        let grant = Grant {
            prefixes: prefixes.to_vec(),
            source: recorded(&Source::parse(source)?, source)?,
            revocation_signers: Vec::new(),
            freshness: FreshnessRule::default(),
        };
        let bytes = self.network.document(source, DocumentKind::Publisher)?;
        let (context, known) = self.verify_first(&bytes, &grant, &publishers.all()?)?;
        Ok(Candidate {
            bytes,
            known,
            settings: context.settings,
        })
    }

    /// Trusts a publisher whose fingerprint was compared, with this freshness rule.
    ///
    /// # Errors
    ///
    /// As [`Changes::candidate`]: other changes may have come first.
    pub fn add(&self, candidate: &Candidate, rule: FreshnessRule) -> Result<Known, Error> {
        let publishers = self.trust.publishers(self.environment)?;
        let store = self.store.open(self.environment)?;
        let grant = Grant {
            freshness: rule,
            ..candidate.known.grant.clone()
        };
        let transaction = publishers.exclusive()?;
        let (context, known) = self.verify_first(&candidate.bytes, &grant, &transaction.all()?)?;
        let document = &known.document;
        let kind = rollback::DocumentKind::Publisher;
        let (name, digest) = (&document.name, document.digest);
        store.see_document(kind, name, document.version, digest, context.now)?;
        transaction.add(&known)?;
        drop(transaction);
        let reason = "its fingerprint was compared";
        record(&store, "trust-add", name, Some(digest), reason, context.now)?;
        Ok(known)
    }

    /// The publisher as it would be recorded: verified, and without a conflict.
    fn verify_first(
        &self,
        bytes: &[u8],
        grant: &Grant,
        trusted: &Trusted,
    ) -> Result<(TrustContext, Known), Error> {
        let trust = self.trust;
        let context = trust.context_or_empty(trusted, self.environment, self.report)?;
        let refused = |refusal| Error::refused(&refusal);
        let document = publisher::first_use(bytes, &context.terms()).map_err(refused)?;
        if trusted.get(&document.name).is_some() {
            return Err(Error::usage(
                "publisher-known",
                format!("{} is trusted already", document.name),
            )
            .hint("`toolward trust update` takes in its next document"));
        }
        let known = Known {
            document,
            grant: grant.clone(),
            revocations: None,
        };
        let mut with = trust.store_of(trusted, self.environment)?;
        with.add_document(&known.document, known.prefixes()?)
            .map_err(refused)?;
        Ok((context, known))
    }

    /// Takes in the next documents of a publisher, a list of what it revokes, or another
    /// freshness rule. Without any of them the next document is fetched from where the
    /// first came.
    ///
    /// # Errors
    ///
    /// Where a document can't be fetched or is refused, and `publisher-unknown`.
    pub fn update(
        &self,
        name: &str,
        sources: &[String],
        revocations: Option<&str>,
        rule: impl FnOnce(&TrustSettings) -> Result<Option<FreshnessRule>, Error>,
    ) -> Result<Known, Error> {
        let publishers = self.trust.publishers(self.environment)?;
        let store = self.store.open(self.environment)?;
        let own = publishers.get(name)?.ok_or_else(|| unknown(name))?;
        let own = [own.grant.source];
        let trust = self.trust;
        let settings = trust.context_or_empty(&publishers.all()?, self.environment, self.report)?;
        let freshness = rule(&settings.settings)?;
        let sources = match (sources, revocations.is_some() || freshness.is_some()) {
            ([], true) => &[][..],
            ([], false) => &own[..],
            (sources, _) => sources,
        };
        // The network first: the folder is not locked meanwhile.
        let network = self.network;
        let chain = sources.iter();
        let chain = chain.map(|source| network.document(source, DocumentKind::Publisher));
        let chain: Vec<Vec<u8>> = chain.collect::<Result<_, _>>()?;
        let list = revocations
            .map(|source| network.document(source, DocumentKind::Revocations))
            .transpose()?;

        let transaction = publishers.exclusive()?;
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
        drop(transaction);
        Ok(known)
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
        let following: Vec<Following<'_>> = accepted
            .iter()
            .map(|next| Following {
                version: next.version,
                digest: next.digest,
                resets: &next.resets,
            })
            .collect();
        // First: marks that a thief used up are reset once, however often this is retried.
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
        // By the keys: versions that a thief used up mean nothing once they are others.
        let kind = rollback::DocumentKind::Revocations;
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

    /// Trusts a publisher no longer. What it revoked stays revoked, unless that is to be
    /// forgotten, too.
    ///
    /// # Errors
    ///
    /// `publisher-unknown`, and where its folder can't be changed.
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
        verdict: Verdict::Refused,
        code: Some(refusal.code().to_owned()),
        reason: refusal.to_string(),
    };
    // The refusal holds whether or not it is recorded.
    let _ = store.record(&decision, now);
    Error::refused(refusal)
}

fn record(
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
        verdict: Verdict::Accepted,
        code: None,
        reason: reason.to_owned(),
    };
    Ok(store.record(&decision, now)?)
}

/// There is no such publisher.
pub fn unknown(name: &str) -> Error {
    Error::usage(
        "publisher-unknown",
        format!(
            "no publisher {} is trusted by its document",
            visible_line(name, 100)
        ),
    )
    .hint("`toolward trust list` shows those that are")
}
