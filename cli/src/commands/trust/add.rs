//! `trust add`: a new publisher, once a person has compared its fingerprint.

use toolward_signing::fingerprint::Fingerprint;
use toolward_signing::publisher::VerifiedPublisher;

use super::{FreshnessFlags, Subject, print};
use crate::environment::has_terminal;
use crate::failure::{Code, Failure, Kind, Result};
use crate::output::Output;

impl Subject<'_> {
    pub(super) fn add(
        &self,
        source: &str,
        (prefixes, actions): (&[String], &[String]),
        fingerprint: Option<&str>,
        freshness: &FreshnessFlags,
        output: &mut Output,
    ) -> Result {
        let candidate = self.changes(output).candidate(source, prefixes, actions)?;
        let (document, settings) = (&candidate.known.document, &candidate.settings);
        // An invalid rule is refused before a person is asked.
        freshness.given(settings)?;
        compared(document, fingerprint, output)?;
        let rule = freshness.given_or_asked(&document.name, settings, output)?;
        let known = self.changes(output).add(&candidate, rule)?;
        print(&known, output)
    }
}

/// Makes sure that a person compared the fingerprint with the publisher's own statement.
fn compared(document: &VerifiedPublisher, given: Option<&str>, output: &Output) -> Result {
    let fingerprint = document.fingerprint();
    if let Some(given) = given {
        let given: Fingerprint = given
            .parse()
            .map_err(|refusal: toolward_signing::Refusal| {
                Failure::usage(refusal.kind(), &refusal)
            })?;
        if given == fingerprint {
            return Ok(());
        }
        return Err(Failure::new(
            Kind::Refused,
            Code::FingerprintMismatch,
            format!("the document's fingerprint is {fingerprint}, not {given}"),
        )
        .hint("this is not the publisher's document, or not its first: ask the publisher"));
    }
    let unconfirmed = || {
        Failure::new(
            Kind::Refused,
            Code::FingerprintUnconfirmed,
            format!("the fingerprint was not compared: {fingerprint}"),
        )
        .hint("ask the publisher for it, by another way than the document came, and give it with --fingerprint")
    };
    if !has_terminal() {
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
