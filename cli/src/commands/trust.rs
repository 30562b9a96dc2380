//! `trust`: publishers by their documents, with first use, rotation and revocation, and by bare keys.

mod add;
mod bare_key;

use clap::{Args, Subcommand};
use serde_json::json;
use toolward_bundle::text::visible_line;
use toolward_operator::installed::StoreLocation;
use toolward_operator::lasting_changes::{LastingChange, LastingChanges};
use toolward_operator::network::Network;
use toolward_operator::recorder::RecorderCommand;
use toolward_operator::trust::Trust;
use toolward_operator::trust::changes::{TrustChanges, TrustRows, unknown};
use toolward_operator::trust::publishers::{KnownPublisher, PublisherRecord};
use toolward_operator::trust::update::PublisherUpdate;
use toolward_store::audit_log::DecisionFilter;

use super::recorder;
use crate::approve;
use crate::environment::{Environment, has_terminal};
use crate::failure::{Code, Failure, Kind, Result};
use crate::flags::Flagged;
use crate::output::{Output, counted};

use add::{AddFlags, FreshnessFlags, MAX_PREFIXES_CHARS};

/// What all of these have in common.
#[derive(Debug, Args)]
pub(crate) struct CommonFlags {
    #[command(flatten)]
    trust: Flagged<Trust>,

    #[command(flatten)]
    store: Flagged<StoreLocation>,

    #[command(flatten)]
    network: Flagged<Network>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Trust a publisher, by document or bare key, for the ids below some prefixes
    Add {
        #[command(flatten)]
        given: AddFlags,
        #[command(flatten)]
        common: CommonFlags,
    },
    /// List the publishers that are trusted by document or by a bare key
    List {
        #[command(flatten)]
        common: CommonFlags,
    },
    /// Show one publisher, and the latest decisions about it
    Show {
        /// Its name
        name: String,
        #[command(flatten)]
        common: CommonFlags,
    },
    /// Take in newer documents of a publisher, or what it revokes, or change which
    /// ids it may publish and which actions its libraries may have
    Update {
        /// Its name
        name: String,
        /// The next documents, in order [default: where the first came from]
        source: Vec<String>,
        /// A list of what the publisher revokes
        #[arg(long, value_name = "SOURCE")]
        revocations: Option<String>,
        /// Another prefix of ids that it may publish
        ///
        /// Shows what changes and asks on the terminal. May be given again.
        #[arg(long, value_name = "PREFIX")]
        prefix: Vec<String>,
        /// A prefix of the action ids that its libraries may have, too
        ///
        /// In place of the present ones. May be given again.
        #[arg(long, value_name = "PREFIX")]
        actions: Vec<String>,
        /// Take all prefixes of actions from it
        #[arg(long, conflicts_with = "actions")]
        no_actions: bool,
        #[command(flatten)]
        freshness: FreshnessFlags,
        #[command(flatten)]
        common: CommonFlags,
    },
    /// Stop trusting a publisher
    Remove {
        /// Its name
        name: String,
        /// Also forget what it revoked, which stays revoked otherwise
        ///
        /// The publisher may have been removed before.
        #[arg(long)]
        forget_revocations: bool,
        #[command(flatten)]
        common: CommonFlags,
    },
}

impl Command {
    pub(crate) fn run(&self, environment: &Environment, output: &mut Output) -> Result {
        let subject = |common| Subject {
            common,
            recorder: recorder::command().ok(),
            environment,
        };
        match self {
            Self::Add { given, common } => subject(common).add(given, output),
            Self::List { common } => subject(common).list(output),
            Self::Show { name, common } => subject(common).show(name, output),
            Self::Update {
                name,
                source,
                revocations,
                prefix,
                actions,
                no_actions,
                freshness,
                common,
            } => {
                let subject = subject(common);
                if !prefix.is_empty() {
                    subject.confirm_prefixes(name, prefix)?;
                }
                let update = PublisherUpdate {
                    sources: source,
                    revocations: revocations.as_deref(),
                    actions: (*no_actions || !actions.is_empty()).then_some(actions),
                    prefixes: prefix,
                };
                let rule = |settings: &_| freshness.given(settings);
                let known = subject.changes(output).update(name, &update, rule)?;
                print(&known, output)
            }
            Self::Remove {
                name,
                forget_revocations,
                common,
            } => subject(common).remove(name, *forget_revocations, output),
        }
    }
}

struct Subject<'a> {
    common: &'a CommonFlags,
    /// Records which bundles are revoked. Without this program's own file nothing is.
    recorder: Option<RecorderCommand>,
    environment: &'a Environment,
}

impl Subject<'_> {
    fn list(&self, output: &mut Output) -> Result {
        let all = self.common.trust.trusted(self.environment)?;
        if !output.json() && all.is_empty() {
            output.note(
                "no publisher is trusted by its document or key; `toolward trust add` adds one",
            );
        }
        for known in &all.known {
            print(known, output)?;
        }
        for key in &all.keys {
            bare_key::print(key, output)?;
        }
        Ok(())
    }

    fn show(&self, name: &str, output: &mut Output) -> Result {
        let publishers = self.common.trust.publishers(self.environment)?;
        match publishers.get(name)? {
            Some(PublisherRecord::Document(known)) => print(&known, output)?,
            Some(PublisherRecord::Key(key)) => bare_key::print(&key, output)?,
            _ => return Err(unknown(name)),
        }
        let Some(store) = self.common.store.existing(self.environment)? else {
            return Ok(());
        };
        let filter = DecisionFilter {
            subject: Some(name.to_owned()),
            limit: 20,
            ..DecisionFilter::default()
        };
        for decision in store.decisions(&filter)? {
            let (at, of) = (decision.at, &decision.decision);
            let (action, verdict) = (&of.action, of.verdict.as_str());
            let value = json!({
                "at": at.to_string(), "action": action, "verdict": verdict,
                "code": of.code, "reason": of.reason,
            });
            let reason = visible_line(&of.reason, 300);
            output.result(&value, format_args!("  {at}  {action} {verdict}: {reason}"))?;
        }
        Ok(())
    }

    /// Shows which ids a publisher may publish, and asks if these shall be added.
    fn confirm_prefixes(&self, name: &str, added: &[String]) -> Result {
        let publishers = self.common.trust.publishers(self.environment)?;
        // `update` refuses others.
        let Some(PublisherRecord::Document(known)) = publishers.get(name)? else {
            return Ok(());
        };
        let unconfirmed = |message: &str| {
            let shown = visible_line(name, 100);
            Failure::new(
                Kind::Denied,
                Code::ChangeUnconfirmed,
                format!("{shown}: {message}"),
            )
            .hint("give the command on a terminal, where it shows what changes and asks")
        };
        if !has_terminal() {
            return Err(unconfirmed("there is no terminal to ask on"));
        }
        let text = format!(
            "publisher    {}\nfingerprint  {}\nfor          {}\nadded        {}",
            visible_line(name, 100),
            known.document.fingerprint(),
            visible_line(&known.grant.prefixes.join(", "), MAX_PREFIXES_CHARS),
            visible_line(&added.join(", "), MAX_PREFIXES_CHARS),
        );
        match approve::confirmed(&text, "Trust it for the added ids, too?") {
            Ok(true) => {}
            _ => return Err(unconfirmed("the change was not confirmed")),
        }
        let what = format!("trusts {name} for {}", added.join(", "));
        let folder = publishers.folder().join(name);
        let change = LastingChange::new("trust update --prefix", what, &folder);
        LastingChanges::of(self.environment)?.add(change)
    }

    fn remove(&self, name: &str, forget: bool, output: &mut Output) -> Result {
        let revoked = self.changes(output).remove(name, forget)?.revoked;
        let value = json!({ "ok": true, "removed": name, "revoked": revoked });
        output.result(&value, format_args!("{name} is no longer trusted"))?;
        if revoked > 0 {
            output.note(format!(
                "{revoked} keys and bundles that it revoked stay so; \
                 to forget them: toolward trust remove {name} --forget-revocations"
            ));
        }
        Ok(())
    }

    fn changes<'a>(&'a self, report: &'a Output) -> TrustChanges<'a> {
        let rows = self.recorder.as_ref().map(|command| TrustRows {
            command,
            trust: &self.common.trust,
            environment: self.environment,
            report,
        });
        TrustChanges {
            rows,
            trust: &self.common.trust,
            store: &self.common.store,
            network: &self.common.network,
            environment: self.environment,
            report,
        }
    }
}

fn print(known: &KnownPublisher, output: &mut Output) -> Result {
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
            "kind": "document",
            "name": document.name,
            "version": document.version,
            "threshold": document.threshold,
            "keys": document.keys.iter().map(|key| key.key_id()).collect::<Vec<_>>(),
            "fingerprint": fingerprint,
            "prefixes": known.grant.prefixes,
            "actions": known.grant.actions,
            "source": known.grant.source,
            "max_age_days": known.grant.freshness.max_age_days,
            "channel": known.grant.freshness.channel,
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
    if !known.grant.actions.is_empty() {
        let actions = visible_line(&known.grant.actions.join(", "), 400);
        output.line(format!("  actions      {actions}"))?;
    }
    output.line(format!("  fingerprint  {fingerprint}"))?;
    if !known.grant.freshness.is_empty() {
        output.line(format!("  freshness    {}", known.grant.freshness))?;
    }
    if bundles > 0 {
        output.line(format!("  revoked      {}", counted(bundles, "bundle")))?;
    }
    Ok(())
}
