//! `trust add`: a new publisher, once a person has compared its fingerprint.

use std::io::IsTerminal as _;

use toolward_registry::{DocumentKind, Source};
use toolward_signing::fingerprint::Fingerprint;
use toolward_signing::publisher::{self, VerifiedPublisher};
use toolward_store::marks;

use super::{FreshnessFlags, Subject, print, record};
use crate::failure::{Failure, Kind};
use crate::output::Output;
use toolward_operator::network::recorded;
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
        let publishers = self.common.trust.publishers(self.environment)?;
        let store = self.common.store.open(self.environment)?;
        let mut grant = Grant {
            prefixes: prefixes.to_vec(),
            source: recorded(&Source::parse(source)?, source)?,
            revocation_signers: Vec::new(),
            freshness: FreshnessRule::default(),
        };
        let network = &self.common.network;
        let bytes = network.document(source, DocumentKind::Publisher)?;
        // A name or key that is taken is refused before a person is asked.
        let (context, known) = self.candidate(&bytes, &grant, &publishers.all()?, output)?;
        // An invalid rule is refused before a person is asked.
        freshness.given(&context.settings)?;
        compared(&known.document, fingerprint, output)?;
        let name = &known.document.name;
        grant.freshness = freshness.given_or_asked(name, &context.settings, output)?;
        // Checked again: the folder may have changed while a person was asked.
        let transaction = publishers.exclusive()?;
        let (context, known) = self.candidate(&bytes, &grant, &transaction.all()?, output)?;
        let document = &known.document;
        let kind = marks::DocumentKind::Publisher;
        let (name, digest) = (&document.name, document.digest);
        store.see_document(kind, name, document.version, digest, context.now)?;
        transaction.add(&known)?;
        drop(transaction);
        let reason = "its fingerprint was compared";
        record(&store, "trust-add", name, Some(digest), reason, context.now)?;
        print(&known, output)
    }

    /// The publisher as it would be recorded: verified, and without a conflict.
    fn candidate(
        &self,
        bytes: &[u8],
        grant: &Grant,
        trusted: &Trusted,
        output: &Output,
    ) -> Result<(TrustContext, Known), Failure> {
        let trust = &self.common.trust;
        let context = trust.context_or_empty(trusted, self.environment, output)?;
        let refused = |refusal| Failure::refused(&refusal);
        let document = publisher::first_use(bytes, &context.terms()).map_err(refused)?;
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
        Ok((context, known))
    }
}

/// Makes sure that a person compared the fingerprint with the publisher's own statement.
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
