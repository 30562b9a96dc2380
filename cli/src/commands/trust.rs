//! `trust`: publishers by their documents, with first use, rotation and revocation, and by bare keys.

mod add;
mod bare_key;

use toolward_operator::lasting_changes::{LastingChange, LastingChanges};
use toolward_operator::network::Network;
use toolward_operator::recorder::RecorderCommand;
use toolward_operator::trust::changes::{TrustChanges, TrustRows, unknown};
use toolward_operator::trust::publishers::{KnownPublisher, PublisherRecord};
use toolward_operator::trust::update::PublisherUpdate;
use toolward_store::audit_log::DecisionFilter;

use crate::prelude::*;
use crate::{approve, helper};

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
        #[command(flatten)]
        given: UpdateFlags,
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
            recorder: helper::recorder().ok(),
            environment,
        };
        match self {
            Self::Add { given, common } => subject(common).add(given, output),
            Self::List { common } => subject(common).list(output),
            Self::Show { name, common } => subject(common).show(name, output),
            Self::Update { given, common } => subject(common).update(given, output),
            Self::Remove {
                name,
                forget_revocations,
                common,
            } => subject(common).remove(name, *forget_revocations, output),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct UpdateFlags {
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
            let hint = "`toolward trust add` adds one";
            output.note(format!(
                "no publisher is trusted by its document or key; {hint}"
            ));
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

    fn update(&self, given: &UpdateFlags, output: &mut Output) -> Result {
        let (name, prefixes, actions) = (&given.name, &given.prefix, &given.actions);
        if !prefixes.is_empty() {
            self.confirm_prefixes(name, prefixes)?;
        }
        let update = PublisherUpdate {
            sources: &given.source,
            revocations: given.revocations.as_deref(),
            actions: (given.no_actions || !actions.is_empty()).then_some(actions),
            prefixes,
        };
        let rule = |settings: &_| given.freshness.given(settings);
        print(&self.changes(output).update(name, &update, rule)?, output)
    }

    /// Shows which ids a publisher may publish, and asks if these shall be added.
    fn confirm_prefixes(&self, name: &str, added: &[String]) -> Result {
        let publishers = self.common.trust.publishers(self.environment)?;
        // `update` refuses others.
        let Some(PublisherRecord::Document(known)) = publishers.get(name)? else {
            return Ok(());
        };
        let shown = visible_line(name, 100);
        let list = |prefixes: &[String]| visible_line(&prefixes.join(", "), MAX_PREFIXES_CHARS);
        let text = || {
            format!(
                "publisher    {shown}\nfingerprint  {}\nfor          {}\nadded        {}",
                known.document.fingerprint(),
                list(&known.grant.prefixes),
                list(added),
            )
        };
        let why = (
            "there is no terminal to ask on",
            "the change was not confirmed",
        );
        approve::require(text, "Trust it for the added ids, too?", why, |why| {
            Failure::denied(Code::ChangeUnconfirmed, format_args!("{shown}: {why}"))
                .hint("give the command on a terminal, where it shows what changes and asks")
        })?;
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
    let value = json!({
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
    });
    let (name, version, threshold) = (&document.name, document.version, document.threshold);
    let list = |all: &[String]| visible_line(&all.join(", "), 400);
    let keys = document.keys.len();
    let prefixes = list(&known.grant.prefixes);
    let heading = format!("{name} version {version}, {threshold} of {keys} keys, for {prefixes}");
    let mut lines = TextLines::new(heading).wide();
    if !known.grant.actions.is_empty() {
        lines.row("actions", list(&known.grant.actions));
    }
    lines.row("fingerprint", fingerprint);
    if !known.grant.freshness.is_empty() {
        lines.row("freshness", &known.grant.freshness);
    }
    if bundles > 0 {
        lines.row("revoked", counted(bundles, "bundle"));
    }
    output.result(&value, lines)
}
