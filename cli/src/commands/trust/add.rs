//! `trust add`: trusts a new publisher, after a person has compared its fingerprint. The trust
//! comes with a rule that shows whether a remote release is current. Also trusts a bare public key
//! for some prefixes, after a person has typed its fingerprint.

use std::fmt::Write as _;
use std::io::Read as _;

use toolward_operator::trust::bare_keys::{KeyCandidate, KeyRequest};
use toolward_operator::trust::publishers::{BareKey, FreshnessRule, KnownPublisher};
use toolward_signing::trust::{TrustSettings, max_age};
use toolward_signing::verify::unsigned;
use toolward_signing::{ErrorKind, Fingerprint, Refusal};

use super::{CommonFlags, print};
use crate::approve;
use crate::prelude::*;

/// Longest list of prefixes that is shown, in characters.
pub(super) const MAX_PREFIXES_CHARS: usize = 64 * 1024;

/// Whom to trust, and for what.
#[derive(Debug, Args)]
pub(crate) struct AddFlags {
    /// The publisher's document, or a file with its bare public key
    ///
    /// A document is a file, an https address or oci://…. Bundles that a bare key signed may be at
    /// most 90 days old, unless another maximum age is given.
    pub(super) source: String,
    /// A prefix of the ids that the publisher may publish, in whole segments (may be given again)
    #[arg(long, required = true)]
    pub(super) prefix: Vec<String>,
    /// Another prefix, only for the ids of actions of the publisher's libraries
    ///
    /// It covers no tool, driver or bundle. May be given again.
    #[arg(long, value_name = "PREFIX")]
    pub(super) actions: Vec<String>,
    /// The fingerprint that the publisher gave you, by another way than the document
    ///
    /// For a bare key, type the fingerprint on the terminal instead.
    #[arg(long)]
    pub(super) fingerprint: Option<String>,
    /// For a bare key: the publisher's name, as its bundles have it
    ///
    /// [default: the name of the key's file]
    #[arg(long)]
    pub(super) name: Option<String>,
    /// For a bare key: a publisher whose prefixes may overlap with the key's prefixes
    ///
    /// The key's prefixes may then equal that publisher's prefixes, or be inside or around them.
    /// May be given again.
    #[arg(long, value_name = "NAME")]
    pub(super) takes_from: Vec<String>,
    #[command(flatten)]
    pub(super) freshness: FreshnessFlags,
    #[command(flatten)]
    pub(super) common: CommonFlags,
}

impl CommonFlags {
    pub(super) fn add(&self, given: &AddFlags, context: &Context) -> Result {
        let source = given.source.as_str();
        if beginning(Path::new(source)).contains("-----BEGIN ") {
            return self.add_key(given, context);
        }
        if given.name.is_some() || !given.takes_from.is_empty() {
            let message = "--name and --takes-from are for a file with a bare public key";
            return Err(Failure::usage(OperatorCode::SettingInvalid, message)
                .hint("a publisher's document has its own name; leave them out"));
        }
        let (prefixes, actions) = (given.prefix.as_slice(), given.actions.as_slice());
        let (fingerprint, freshness) = (given.fingerprint.as_deref(), &given.freshness);
        let candidate = self.changes(context).candidate(source, prefixes, actions);
        let candidate = candidate.map_err(|failure| explained(failure, source))?;
        let (document, settings) = (&candidate.known.document, &candidate.settings);
        // An invalid rule is refused before a person is asked.
        freshness.given(settings)?;
        compared(&candidate.known, fingerprint)?;
        let rule = freshness.given_or_asked(&document.name, settings, context)?;
        let folder = self.trust.publishers(context)?;
        let folder = folder.folder().join(&document.name);
        let mut what = format!("trusts {} for {}", document.name, prefixes.join(", "));
        if !actions.is_empty() {
            what.push_str(" and the actions ");
            what.push_str(&actions.join(", "));
        }
        let change = LastingChange::new("trust add", what, &folder);
        let changes = LastingChanges::of(context)?;
        let changed = self.changes(context);
        let known = changed.add(&candidate, rule, || changes.add(change))?;
        print(&known, context)
    }

    pub(super) fn add_key(&self, given: &AddFlags, context: &Context) -> Result {
        refuse_flags(given)?;
        let request = KeyRequest {
            file: Path::new(&given.source),
            name: given.name.as_deref(),
            prefixes: &given.prefix,
            max_age_days: given.freshness.max_age_days,
            channel: given.freshness.channel.as_deref(),
            takes_from: &given.takes_from,
        };
        let candidate = self.changes(context).key_candidate(&request)?;
        if candidate.is_unchanged() {
            context.note("this key is trusted like that already");
            return print_key(&candidate.after, context);
        }
        confirm(&candidate)?;
        let publishers = self.trust.publishers(context)?;
        let folder = publishers.folder().join(&candidate.after.name);
        let change = LastingChange::new("trust add", described(&candidate), &folder);
        let changes = LastingChanges::of(context)?;
        let announce = || changes.add(change);
        let changed = self.changes(context);
        print_key(&changed.add_key(&candidate, &request, announce)?, context)
    }
}

/// Returns the failure with a hint, if the source is a bundle or another file that is not a
/// document.
fn explained(failure: Failure, source: &str) -> Failure {
    let path = Path::new(source);
    let instead = if unsigned(path).is_ok() {
        "this is a bundle: `toolward verify BUNDLE --trust-key KEY` checks it, `toolward install \
         BUNDLE` installs it. Publishers are trusted by their documents: ask for NAME.publisher.json"
    } else if failure.code == ErrorKind::EnvelopeInvalid.code() {
        "a publisher's document is a file that `toolward publisher new` made, NAME.publisher.json"
    } else {
        return failure;
    };
    let mut failure = match failure.code == ErrorKind::EnvelopeInvalid.code() {
        true => failure.saying(format!("{source}: this is not a publisher's document")),
        false => failure,
    };
    failure.hints = vec![instead.to_owned()];
    failure
}

/// Reads the start of a file that may be a key.
fn beginning(path: &Path) -> String {
    const MAX_KEY_BYTES: u64 = 16 * 1024;
    let Ok(file) = toolward_support::files::open_regular(path) else {
        return String::new();
    };
    std::io::read_to_string(file.take(MAX_KEY_BYTES)).unwrap_or_default()
}

/// Checks that a person has compared the fingerprint with the publisher's own statement.
fn compared(known: &KnownPublisher, given: Option<&str>) -> Result {
    let document = &known.document;
    let fingerprint = document.fingerprint();
    if let Some(given) = given {
        let given: Result<Fingerprint, Refusal> = given.parse();
        let given = given.map_err(|refusal| Failure::usage(refusal.kind(), &refusal))?;
        if given == fingerprint {
            return Ok(());
        }
        let message = format!("the document's fingerprint is {fingerprint}, not {given}");
        return Err(
            Failure::new(Kind::Refused, Code::FingerprintMismatch, message)
                .hint("this is not the publisher's document, or not its first: ask the publisher"),
        );
    }
    let list = |prefixes: &[String]| visible_line(&prefixes.join(", "), MAX_PREFIXES_CHARS);
    let text = || {
        let (name, keys, threshold) = (&document.name, document.keys.len(), document.threshold);
        let mut text = format!(
            "publisher    {name}\nkeys         {keys}, of which {threshold} must sign\nfor          {}\n",
            list(&known.grant.prefixes)
        );
        if !known.grant.actions.is_empty() {
            text.push_str(&format!("actions      {}\n", list(&known.grant.actions)));
        }
        text + &format!("fingerprint  {fingerprint}")
    };
    let question = "Is this the fingerprint that the publisher told you, by another way?";
    approve::require(text, question, ("", ""), |_| {
        let message = format!("the fingerprint was not compared: {fingerprint}");
        Failure::new(Kind::Refused, Code::FingerprintUnconfirmed, message)
            .hint("ask the publisher for it, by another way than the document came, and give it with --fingerprint")
    })
}

/// The maximum age that is suggested, in days.
const DEFAULT_MAX_AGE_DAYS: u64 = 90;

/// The rule that shows whether a remote release is current.
#[derive(Debug, Args)]
pub(crate) struct FreshnessFlags {
    /// Refuse releases of this publisher that are older than this
    #[arg(long, value_name = "DAYS", conflicts_with = "channel")]
    pub(super) max_age_days: Option<u64>,

    /// Take a release of this publisher from the network only if this channel lists it
    ///
    /// A `[[channel]]` of toolward.toml.
    #[arg(long, value_name = "NAME")]
    pub(super) channel: Option<String>,
}

impl FreshnessFlags {
    /// Returns the rule that the flags give, if they give one.
    pub(super) fn given(&self, settings: &TrustSettings) -> Result<Option<FreshnessRule>> {
        let rule = FreshnessRule {
            max_age_days: self.max_age_days,
            channel: self.channel.clone(),
        };
        if rule.is_empty() {
            return Ok(None);
        }
        checked(rule, settings).map(Some)
    }

    /// Returns the rule that the flags give, or a person's answer on the terminal. No person is
    /// asked if the configuration has a maximum age or a channel.
    pub(super) fn given_or_asked(
        &self,
        name: &str,
        settings: &TrustSettings,
        context: &Context,
    ) -> Result<FreshnessRule> {
        if let Some(rule) = self.given(settings)? {
            return Ok(rule);
        }
        if settings.max_age.is_some() || !settings.channels.is_empty() {
            return Ok(FreshnessRule::default());
        }
        if has_terminal() {
            return asked(name);
        }
        context.say(format!(
            "releases of {name} that come over the network are refused until a maximum age is set: \
             toolward trust update {name} --max-age-days {DEFAULT_MAX_AGE_DAYS}"
        ));
        Ok(FreshnessRule::default())
    }
}

/// Asks how old releases may be.
fn asked(name: &str) -> Result<FreshnessRule> {
    let question = "How many days old may a release of";
    let text = |refusal: Refusal| refusal.to_string();
    let valid = |days: &u64| max_age(*days).map(drop).map_err(text);
    let days = dialoguer::Input::<u64>::new()
        .with_prompt(format!("{question} {name} be that comes over the network?"))
        .default(DEFAULT_MAX_AGE_DAYS)
        .validate_with(valid)
        .interact_text();
    let days = days.map_err(|error| {
        let message = format!("nobody said how old a release may be: {error}");
        Failure::usage(Code::FreshnessUnanswered, message)
            .hint("give it with --max-age-days DAYS, or name a channel with --channel NAME")
    })?;
    Ok(FreshnessRule {
        max_age_days: Some(days),
        channel: None,
    })
}

fn checked(rule: FreshnessRule, settings: &TrustSettings) -> Result<FreshnessRule> {
    rule.max_age()
        .map_err(|failure| failure.hint("give --max-age-days a number of days, such as 90"))?;
    match &rule.channel {
        Some(name) if settings.channel(name).is_none() => {
            let message = format!("no channel {name} is configured");
            Err(Failure::usage(OperatorCode::ChannelUnknown, message)
                .hint("add a `[[channel]]` to toolward.toml"))
        }
        _ => Ok(rule),
    }
}

/// The features that a bare key lacks, for a person who is about to trust one.
const LACKS: &str = "A bare key can't be rotated, and its publisher can't revoke it or a release.\n\
                     If it is stolen, you have to hear of that yourself. A publisher's\n\
                     document has both.";

/// Refuses the flags that can't be used with a bare key.
fn refuse_flags(given: &AddFlags) -> Result {
    let refused = |message: &str, hint: &str| {
        Err(Failure::usage(OperatorCode::SettingInvalid, message).hint(hint))
    };
    if given.fingerprint.is_some() {
        return refused(
            "--fingerprint is for a publisher's document",
            "leave it out: the fingerprint of a bare key is typed on the terminal, after what the key will be trusted for \
             was shown",
        );
    }
    if !given.actions.is_empty() {
        return refused(
            "--actions is for a publisher's document",
            "leave it out: a bare key may have actions below its prefixes only",
        );
    }
    Ok(())
}

/// Asks the person for the fingerprint of a new key, and for a yes to the changes of a known key.
fn confirm(candidate: &KeyCandidate) -> Result {
    let key = &candidate.after;
    if !has_terminal() {
        return Err(unconfirmed(key, "there is no terminal to ask on").hint(
            "give the command on a terminal. Where there is none, name the key in a `[[publisher]]` of toolward.toml",
        ));
    }
    let text = difference(candidate);
    if text.chars().count() > MAX_PREFIXES_CHARS {
        let why = "what it would be trusted for is too long to be shown";
        return Err(unconfirmed(key, why));
    }
    let name = &key.name;
    if candidate.before.is_some() {
        let why = ("", "the change was not confirmed");
        let denied =
            |why: &str| Failure::denied(Code::ChangeUnconfirmed, format_args!("{name}: {why}"));
        return approve::require(|| text, "Trust it like this?", why, denied);
    }
    let question = "Type the fingerprint that the publisher told you, by another way than the key\n\
                    came: the key id that `toolward publisher keys show` prints there. One that is read\n\
                    from the file given here compares nothing.";
    let ask = "ask the publisher for it, by another way than the key came";
    match approve::typed(&text, question) {
        Ok(Some(typed)) if !typed.trim().is_empty() => match candidate.is_fingerprint(&typed) {
            true => Ok(()),
            false => {
                let message =
                    format!("{name}: this key has another fingerprint than the one typed");
                Err(Failure::new(Kind::Refused, Code::FingerprintMismatch, message)
            .hint("type all 64 digits. If they are as the publisher told you, this is not its key: ask the publisher"))
            }
        },
        _ => Err(unconfirmed(key, "no fingerprint was typed").hint(ask)),
    }
}

fn unconfirmed(key: &BareKey, why: &str) -> Failure {
    let message = format!("{}: this bare key is not trusted, because {why}", key.name);
    Failure::new(Kind::Refused, Code::FingerprintUnconfirmed, message)
}

/// Formats the change for a person: `+` marks new lines, and `-` removed lines.
fn difference(candidate: &KeyCandidate) -> String {
    let (before, after) = (candidate.before.as_ref(), &candidate.after);
    let mut text = format!("publisher    {}, by a bare key\n", after.name);
    let source = visible_line(&after.grant.source, 1000);
    let _ = writeln!(text, "key file     {source}");
    let had = |prefix: &String| before.is_some_and(|one| one.grant.prefixes.contains(prefix));
    for prefix in &after.grant.prefixes {
        let sign = if had(prefix) { ' ' } else { '+' };
        let _ = writeln!(text, "for        {sign} {}", visible_line(prefix, 100));
    }
    let (gone, now) = (before.map(BareKey::freshness), after.freshness());
    let is_same = gone.as_ref() == Some(&now);
    if let Some(gone) = gone.filter(|_| !is_same) {
        let _ = writeln!(text, "bundles    - {gone}");
    }
    let sign = if is_same { ' ' } else { '+' };
    let _ = writeln!(text, "bundles    {sign} {now}");
    for (name, prefix) in &candidate.overlaps {
        let _ = writeln!(
            text,
            "takes from + {name}, whose prefixes overlap with {prefix}"
        );
    }
    if let (Some(version), None) = (candidate.document, before) {
        let _ = writeln!(
            text,
            "before     + by its document, version {version}: it may have given up this key since. Ask for the document"
        );
    }
    text.push('\n');
    text.push_str(LACKS);
    text
}

/// Describes the change for `doctor` and `serve`.
fn described(candidate: &KeyCandidate) -> String {
    let key = &candidate.after;
    let mut what = format!(
        "trusts the bare key of {} for {} ({})",
        key.name,
        key.grant.prefixes.join(", "),
        key.freshness()
    );
    for (name, prefix) in &candidate.overlaps {
        let _ = write!(what, ", {prefix} beside {name}");
    }
    what
}

pub(super) fn print_key(key: &BareKey, context: &Context) -> Result {
    let (id, grant) = (key.key.key_id(), &key.grant);
    let value = json!({
        "ok": true,
        "kind": "key",
        "name": key.name,
        "threshold": 1,
        "keys": [id],
        "fingerprint": id,
        "prefixes": grant.prefixes,
        "source": grant.source,
        "max_age_days": grant.max_age_days,
        "channel": grant.channel,
        "lacks": BareKey::LACKS,
    });
    let prefixes = visible_line(&grant.prefixes.join(", "), 400);
    let heading = format!("{} by a bare key, for {prefixes}", key.name);
    let mut lines = TextLines::new(heading).wide();
    lines.row("fingerprint", id);
    lines.row("freshness", key.freshness());
    lines.row("lacks", BareKey::LACKS.join(", "));
    context.result(&value, lines)
}
