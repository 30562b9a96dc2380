//! `trust add`: a publisher whom nobody knew, once somebody compared its
//! fingerprint.

use std::io::IsTerminal as _;

use toolward_registry::{DocumentKind, Source};
use toolward_signing::fingerprint::Fingerprint;
use toolward_signing::publisher::{self, VerifiedPublisher};
use toolward_store::rollback;

use super::{FreshnessFlags, Subject, record, told};
use crate::failure::{Failure, Kind};
use crate::output::Output;
use toolward_operator::network::kept;
use toolward_operator::trust::TrustContext;
use toolward_operator::trust::publishers::{FreshnessRule, Grant, Known, Trusted};

impl Subject<'_> {
    pub(super) fn add(
        &self,
        source: &str,
        prefixes: &[String],
        fingerprint: Option<&str>,
        freshness: &FreshnessFlags,
        output: &mut Output,
    ) -> Result<(), Failure> {
        let publishers = self.means.trust.publishers(self.environment)?;
        let store = self.means.store.open(self.environment)?;
        let mut grant = Grant {
            prefixes: prefixes.to_vec(),
            source: kept(&Source::parse(source)?, source)?,
            revocation_signers: Vec::new(),
            freshness: FreshnessRule::default(),
        };
        let network = &self.means.network;
        let bytes = network.document(source, DocumentKind::Publisher)?;
        // Who has this name, or one of these keys, is told before anybody is asked.
        let (standing, known) = self.candidate(&bytes, &grant, &publishers.all()?, output)?;
        // A rule that can't be one is refused before anybody is asked.
        freshness.given(&standing.settings)?;
        compared(&known.document, fingerprint, output)?;
        let name = &known.document.name;
        grant.freshness = freshness.given_or_asked(name, &standing.settings, output)?;
        // A person was waited for: others may have come first.
        let writing = publishers.exclusive()?;
        let (standing, known) = self.candidate(&bytes, &grant, &writing.all()?, output)?;
        let document = &known.document;
        let kind = rollback::DocumentKind::Publisher;
        let (name, digest) = (&document.name, document.digest);
        store.see_document(kind, name, document.version, digest, standing.now)?;
        writing.add(&known)?;
        drop(writing);
        let reason = "its fingerprint was compared";
        record(
            &store,
            "trust-add",
            name,
            Some(digest),
            reason,
            standing.now,
        )?;
        told(&known, output)
    }

    /// A publisher as it would be kept: verified, and in nobody's way.
    fn candidate(
        &self,
        bytes: &[u8],
        grant: &Grant,
        trusted: &Trusted,
        output: &Output,
    ) -> Result<(TrustContext, Known), Failure> {
        let trust = &self.means.trust;
        let standing = trust.context_or_empty(trusted, self.environment, output)?;
        let refused = |refusal| Failure::refused(&refusal);
        let document = publisher::first_use(bytes, &standing.terms()).map_err(refused)?;
        if trusted.get(&document.name).is_some() {
            return Err(Failure::usage(
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
        Ok((standing, known))
    }
}

/// Somebody compared the fingerprint with what the publisher says it is.
fn compared(
    document: &VerifiedPublisher,
    given: Option<&str>,
    output: &Output,
) -> Result<(), Failure> {
    let fingerprint = document.fingerprint();
    if let Some(given) = given {
        let given: Fingerprint = given
            .parse()
            .map_err(|refusal: toolward_signing::Refusal| {
                Failure::usage(refusal.code(), &refusal)
            })?;
        if given == fingerprint {
            return Ok(());
        }
        return Err(Failure::new(
            Kind::Refused,
            "fingerprint-mismatch",
            format!("the document's fingerprint is {fingerprint}, not {given}"),
        )
        .hint("this is not the publisher's document, or not its first: ask the publisher"));
    }
    let unconfirmed = || {
        Failure::new(
            Kind::Refused,
            "fingerprint-unconfirmed",
            format!("nobody compared the fingerprint: {fingerprint}"),
        )
        .hint("ask the publisher for it, by another way than the document came, and give it with --fingerprint")
    };
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(unconfirmed());
    }
    output.note(format!(
        "publisher    {}\nkeys         {}, of which {} must sign\nfingerprint  {fingerprint}",
        document.name,
        document.keys.len(),
        document.threshold
    ));
    let question = "Is this the fingerprint that the publisher told you, by another way?";
    match dialoguer::Confirm::new()
        .with_prompt(question)
        .default(false)
        .interact()
    {
        Ok(true) => Ok(()),
        _ => Err(unconfirmed()),
    }
}
