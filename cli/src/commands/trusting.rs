//! `trust`: publishers by their documents: first use, rotation, revocation.

use std::io::IsTerminal as _;

use clap::{Args, Subcommand};
use serde_json::json;
use toolward_bundle::text::visible_line;
use toolward_registry::{DocumentKind, Source};
use toolward_signing::fingerprint::Fingerprint;
use toolward_signing::publisher::{self, VerifiedPublisher};
use toolward_signing::revocation;
use toolward_store::Store;
use toolward_store::decisions::{Filter, NewDecision, Verdict};
use toolward_store::marks;

use crate::environment::Environment;
use crate::failure::{Exit, Failure};
use crate::installed::StoreFlags;
use crate::output::Output;
use crate::publishers::{Grant, Known};
use crate::sources::{NetworkFlags, kept};
use crate::trust::Trust;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// What all of these have in common.
#[derive(Debug, Args)]
struct Means {
    #[command(flatten)]
    trust: Trust,

    #[command(flatten)]
    store: StoreFlags,

    #[command(flatten)]
    network: NetworkFlags,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Trust a publisher for the ids below some prefixes
    Add {
        /// Its document: a file, an https address or oci://…
        source: String,
        /// An id prefix that it may publish, whole segments (may be given again)
        #[arg(long, required = true)]
        prefix: Vec<String>,
        /// The fingerprint that the publisher told you, by another way than the
        /// document came
        #[arg(long)]
        fingerprint: Option<String>,
        #[command(flatten)]
        means: Means,
    },
    /// List the publishers that are trusted by document
    List {
        #[command(flatten)]
        means: Means,
    },
    /// Show one publisher, and the latest decisions about it
    Show {
        /// Its name
        name: String,
        #[command(flatten)]
        means: Means,
    },
    /// Take in newer documents of a publisher, or what it revokes
    Update {
        /// Its name
        name: String,
        /// The next documents, in order [default: where the first came from]
        source: Vec<String>,
        /// A list of what the publisher revokes
        #[arg(long, value_name = "SOURCE")]
        revocations: Option<String>,
        #[command(flatten)]
        means: Means,
    },
    /// Trust a publisher no more
    Remove {
        /// Its name
        name: String,
        #[command(flatten)]
        means: Means,
    },
}

pub(crate) fn run(
    arguments: &Arguments,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let subject = |means| Subject { means, environment };
    match &arguments.command {
        Command::Add {
            source,
            prefix,
            fingerprint,
            means,
        } => subject(means).add(source, prefix, fingerprint.as_deref(), output),
        Command::List { means } => subject(means).list(output),
        Command::Show { name, means } => subject(means).show(name, output),
        Command::Update {
            name,
            source,
            revocations,
            means,
        } => subject(means).update(name, source, revocations.as_deref(), output),
        Command::Remove { name, means } => subject(means).remove(name, output),
    }?;
    Ok(Exit::Fine)
}

struct Subject<'a> {
    means: &'a Means,
    environment: &'a Environment,
}

impl Subject<'_> {
    fn add(
        &self,
        source: &str,
        prefixes: &[String],
        fingerprint: Option<&str>,
        output: &mut Output,
    ) -> Result<(), Failure> {
        let standing = self
            .means
            .trust
            .standing_or_empty(self.environment, output)?;
        let publishers = self.means.trust.publishers(self.environment)?;
        let store = self.means.store.open(self.environment)?;
        let bytes = self
            .means
            .network
            .document(source, DocumentKind::Publisher)?;
        let document = publisher::first_use(&bytes, &standing.terms())
            .map_err(|refusal| Failure::refused(&refusal))?;
        if publishers.get(&document.name)?.is_some() {
            return Err(Failure::usage(
                "publisher-known",
                format!("{} is trusted already", document.name),
            )
            .hint("`toolward trust update` takes in its next document"));
        }
        let known = Known {
            grant: Grant {
                prefixes: prefixes.to_vec(),
                source: kept(&Source::parse(source)?, source)?,
                revocation_signers: Vec::new(),
            },
            revocations: None,
            document,
        };
        // Who has this name, or one of these keys, is told before anybody is asked.
        let mut with = standing.store.clone();
        with.add_document(&known.document, known.prefixes()?)
            .map_err(|refusal| Failure::refused(&refusal))?;
        compared(&known.document, fingerprint, output)?;
        see(&store, &known.document, standing.now)?;
        publishers.write(&known)?;
        record(
            &store,
            "trust-add",
            &known.document,
            "its fingerprint was compared",
            standing.now,
        )?;
        told(&known, output)
    }

    fn list(&self, output: &mut Output) -> Result<(), Failure> {
        let all = self.means.trust.publishers(self.environment)?.all()?;
        if !output.json() && all.is_empty() {
            output.note("no publisher is trusted by its document; `toolward trust add` adds one");
        }
        for known in all {
            told(&known, output)?;
        }
        Ok(())
    }

    fn show(&self, name: &str, output: &mut Output) -> Result<(), Failure> {
        let known = self.known(name)?;
        told(&known, output)?;
        let Some(store) = self.means.store.existing(self.environment)? else {
            return Ok(());
        };
        let filter = Filter {
            subject: Some(name.to_owned()),
            limit: 20,
            ..Filter::default()
        };
        for decision in store.decisions(&filter)? {
            let of = &decision.decision;
            if output.json() {
                output.value(&json!({
                    "at": decision.at.to_string(), "action": of.action,
                    "verdict": of.verdict.as_str(), "code": of.code, "reason": of.reason,
                }))?;
            } else {
                output.line(format!(
                    "  {}  {} {}: {}",
                    decision.at,
                    of.action,
                    of.verdict.as_str(),
                    visible_line(&of.reason, 300)
                ))?;
            }
        }
        Ok(())
    }

    fn update(
        &self,
        name: &str,
        sources: &[String],
        revocations: Option<&str>,
        output: &mut Output,
    ) -> Result<(), Failure> {
        let standing = self.means.trust.standing(self.environment, output)?;
        let publishers = self.means.trust.publishers(self.environment)?;
        let store = self.means.store.open(self.environment)?;
        let mut known = self.known(name)?;
        let own = [known.grant.source.clone()];
        let sources = match (sources, revocations) {
            ([], Some(_)) => &[][..],
            ([], None) => &own[..],
            (sources, _) => sources,
        };
        let chain: Result<Vec<Vec<u8>>, Failure> = sources
            .iter()
            .map(|source| self.means.network.document(source, DocumentKind::Publisher))
            .collect();
        let chain = chain?;
        let chain: Vec<&[u8]> = chain.iter().map(Vec::as_slice).collect();
        let accepted = publisher::rotate_through(&known.document, &chain, &standing.terms());
        let accepted = accepted.map_err(|refusal| refused(&store, name, &refusal, standing.now))?;
        for next in accepted {
            see(&store, &next, standing.now)?;
            known.document = next;
            publishers.write(&known)?;
            // What is kept is written first: a reset that was not applied can be
            // had again, one that was applied too early can't be taken back.
            store.reset_marks(name, &known.document.resets, standing.now)?;
            let reason = format!("version {} follows", known.document.version);
            record(
                &store,
                "trust-update",
                &known.document,
                &reason,
                standing.now,
            )?;
        }
        if let Some(source) = revocations {
            // With the keys of the newest document.
            let standing = self.means.trust.standing(self.environment, output)?;
            let bytes = self
                .means
                .network
                .document(source, DocumentKind::Revocations)?;
            let publisher = standing
                .store
                .publisher(name)
                .ok_or_else(|| unknown(name))?;
            let list = revocation::accept(
                &bytes,
                publisher,
                &standing.store,
                known.revocations.as_ref(),
                &standing.terms(),
            )
            .map_err(|refusal| refused(&store, name, &refusal, standing.now))?;
            for warning in &list.warnings {
                output.warning(warning);
            }
            known.grant.revocation_signers = list.signers.iter().map(ToString::to_string).collect();
            known.revocations = Some(list.into_inner());
            publishers.write(&known)?;
            record(
                &store,
                "trust-revoke",
                &known.document,
                "its list was taken in",
                standing.now,
            )?;
        }
        told(&known, output)
    }

    fn remove(&self, name: &str, output: &mut Output) -> Result<(), Failure> {
        let publishers = self.means.trust.publishers(self.environment)?;
        let known = self.known(name)?;
        let store = self.means.store.open(self.environment)?;
        publishers.remove(name)?;
        let now = std::time::SystemTime::now();
        record(
            &store,
            "trust-remove",
            &known.document,
            "the operator removed it",
            now,
        )?;
        if output.json() {
            return output.value(&json!({ "ok": true, "removed": name }));
        }
        output.line(format!("{name} is trusted no more"))
    }

    fn known(&self, name: &str) -> Result<Known, Failure> {
        let publishers = self.means.trust.publishers(self.environment)?;
        publishers.get(name)?.ok_or_else(|| unknown(name))
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
            Exit::Refused,
            "fingerprint-mismatch",
            format!("the document's fingerprint is {fingerprint}, not {given}"),
        )
        .hint("this is not the publisher's document, or not its first: ask the publisher"));
    }
    let unconfirmed = || {
        Failure::new(
            Exit::Refused,
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

fn see(
    store: &Store,
    document: &VerifiedPublisher,
    now: std::time::SystemTime,
) -> Result<(), Failure> {
    let kind = marks::DocumentKind::Publisher;
    store.see_document(kind, &document.name, document.version, document.digest, now)?;
    Ok(())
}

fn record(
    store: &Store,
    action: &str,
    document: &VerifiedPublisher,
    reason: &str,
    now: std::time::SystemTime,
) -> Result<(), Failure> {
    let decision = NewDecision {
        action: action.to_owned(),
        subject: document.name.clone(),
        publisher: Some(document.name.clone()),
        digest: Some(document.digest),
        verdict: Verdict::Accepted,
        code: None,
        reason: reason.to_owned(),
    };
    Ok(store.record(&decision, now)?)
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

fn told(known: &Known, output: &mut Output) -> Result<(), Failure> {
    let document = &known.document;
    for warning in &document.warnings {
        output.warning(warning);
    }
    let revoked = known.revocations.as_ref();
    let bundles = revoked.map_or(0, |list| list.bundles.len());
    let fingerprint = document.fingerprint();
    if output.json() {
        return output.value(&json!({
            "ok": true,
            "name": document.name,
            "version": document.version,
            "threshold": document.threshold,
            "keys": document.keys.iter().map(|key| key.key_id()).collect::<Vec<_>>(),
            "fingerprint": fingerprint,
            "prefixes": known.grant.prefixes,
            "source": known.grant.source,
            "revoked_bundles": bundles,
        }));
    }
    output.line(format!(
        "{} version {}, {} of {} keys, for {}",
        document.name,
        document.version,
        document.threshold,
        document.keys.len(),
        visible_line(&known.grant.prefixes.join(", "), 400)
    ))?;
    output.line(format!("  fingerprint  {fingerprint}"))?;
    if bundles > 0 {
        output.line(format!("  revoked      {bundles} bundles"))?;
    }
    Ok(())
}

fn unknown(name: &str) -> Failure {
    Failure::usage(
        "publisher-unknown",
        format!(
            "no publisher {} is trusted by its document",
            visible_line(name, 100)
        ),
    )
    .hint("`toolward trust list` shows those that are")
}
