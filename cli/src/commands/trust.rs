//! `trust`: trusts publishers by their documents, which allow rotation and revocation, or by bare
//! keys.

mod add;

use toolward_operator::trust::changes::{TrustChanges, unknown};
use toolward_operator::trust::publishers::{KnownPublisher, PublisherRecord};
use toolward_operator::trust::update::PublisherUpdate;
use toolward_store::audit_log::DecisionFilter;

use crate::prelude::*;
use crate::{approve, helper};

use add::{AddFlags, FreshnessFlags, MAX_PREFIXES_CHARS, print_key};

/// The flags that all these commands have.
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
    Add(AddFlags),
    /// List the publishers that are trusted by document or by a bare key
    List(CommonFlags),
    /// Show one publisher, and the latest decisions about it
    Show {
        /// The publisher's name
        name: String,
        #[command(flatten)]
        common: CommonFlags,
    },
    /// Read a publisher's newer documents or revocations, or change which ids it may publish
    Update(UpdateFlags),
    /// Stop trusting a publisher
    Remove {
        /// The publisher's name
        name: String,
        /// Also forget what the publisher revoked, which otherwise stays revoked
        ///
        /// Also works if the publisher was removed before.
        #[arg(long)]
        forget_revocations: bool,
        #[command(flatten)]
        common: CommonFlags,
    },
}

impl Command {
    pub(crate) fn run(&self, context: &Context) -> Result {
        match self {
            Self::Add(given) => given.common.add(given, context),
            Self::List(common) => common.list(context),
            Self::Show { name, common } => common.show(name, context),
            Self::Update(given) => given.common.update(given, context),
            Self::Remove {
                name,
                forget_revocations,
                common,
            } => common.remove(name, *forget_revocations, context),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct UpdateFlags {
    /// The publisher's name
    name: String,
    /// The next documents, in order [default: from the place of the first document]
    source: Vec<String>,
    /// The publisher's list of revoked keys and bundles
    #[arg(long, value_name = "SOURCE")]
    revocations: Option<String>,
    /// Another prefix of ids that the publisher may publish
    ///
    /// Shows what changes and asks on the terminal. May be given again.
    #[arg(long, value_name = "PREFIX")]
    prefix: Vec<String>,
    /// A prefix only for the ids of actions of the publisher's libraries
    ///
    /// The prefixes that are given replace all present prefixes of actions. May be given again.
    #[arg(long, value_name = "PREFIX")]
    actions: Vec<String>,
    /// Remove all prefixes of the publisher's actions
    #[arg(long, conflicts_with = "actions")]
    no_actions: bool,
    #[command(flatten)]
    freshness: FreshnessFlags,
    #[command(flatten)]
    common: CommonFlags,
}

impl CommonFlags {
    fn list(&self, context: &Context) -> Result {
        let all = self.trust.trusted(context)?;
        if !context.json() && all.is_empty() {
            context.note(
                "no publisher is trusted by its document or key; `toolward trust add` adds one",
            );
        }
        for known in &all.known {
            print(known, context)?;
        }
        for key in &all.keys {
            print_key(key, context)?;
        }
        Ok(())
    }

    fn show(&self, name: &str, context: &Context) -> Result {
        let publishers = self.trust.publishers(context)?;
        match publishers.get(name)? {
            Some(PublisherRecord::Document(known)) => print(&known, context)?,
            Some(PublisherRecord::Key(key)) => print_key(&key, context)?,
            _ => return Err(unknown(name)),
        }
        let Some(store) = self.store.existing(context)? else {
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
            context.result(&value, format_args!("  {at}  {action} {verdict}: {reason}"))?;
        }
        Ok(())
    }

    fn update(&self, given: &UpdateFlags, context: &Context) -> Result {
        let (name, prefixes, actions) = (&given.name, &given.prefix, &given.actions);
        if !prefixes.is_empty() {
            self.confirm_prefixes(name, prefixes, context)?;
        }
        let update = PublisherUpdate {
            sources: &given.source,
            revocations: given.revocations.as_deref(),
            actions: (given.no_actions || !actions.is_empty()).then_some(actions),
            prefixes,
        };
        let rule = |settings: &_| given.freshness.given(settings);
        print(&self.changes(context).update(name, &update, rule)?, context)
    }

    /// Shows which ids a publisher may publish, and asks whether these prefixes shall be added.
    fn confirm_prefixes(&self, name: &str, added: &[String], context: &Context) -> Result {
        let publishers = self.trust.publishers(context)?;
        // `update` refuses other publishers.
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
        LastingChanges::of(context)?.add(change)
    }

    fn remove(&self, name: &str, forget: bool, context: &Context) -> Result {
        let revoked = self.changes(context).remove(name, forget)?;
        let value = json!({ "ok": true, "removed": name, "revoked": revoked });
        context.result(&value, format_args!("{name} is no longer trusted"))?;
        if revoked > 0 {
            context.note(format!(
                "{revoked} keys and bundles that it revoked stay so; \
                 to forget them: toolward trust remove {name} --forget-revocations"
            ));
        }
        Ok(())
    }

    fn changes<'a>(&'a self, context: &'a Context) -> TrustChanges<'a> {
        TrustChanges {
            // If this program's own file is not found, nothing is recorded in the ledger.
            rows: helper::trust_rows(&self.trust, context).ok(),
            trust: &self.trust,
            store: &self.store,
            network: &self.network,
            environment: context,
        }
    }
}

fn print(known: &KnownPublisher, context: &Context) -> Result {
    let document = &known.document;
    for warning in &document.warnings {
        context.warning(warning);
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
    context.result(&value, lines)
}
