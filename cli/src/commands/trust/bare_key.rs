//! `trust add` of a bare public key: lasting trust for some prefixes, after a person has typed its fingerprint.

use std::fmt::Write as _;

use toolward_operator::lasting_changes::{LastingChange, LastingChanges};
use toolward_operator::trust::bare_keys::{KeyCandidate, KeyRequest};
use toolward_operator::trust::publishers::BareKey;

use super::Subject;
use super::add::{AddFlags, MAX_PREFIXES_CHARS};
use crate::approve;
use crate::prelude::*;

/// What a bare key lacks, for who is about to trust one.
const LACKS: &str = "A bare key can't be rotated, and its publisher can't revoke it or a release.\n\
                     If it is stolen, you have to hear of that yourself. A publisher's\n\
                     document has both.";

impl Subject<'_> {
    pub(super) fn add_key(&self, given: &AddFlags, output: &mut Output) -> Result {
        refuse_flags(given)?;
        let request = KeyRequest {
            file: Path::new(&given.source),
            name: given.name.as_deref(),
            prefixes: &given.prefix,
            max_age_days: given.freshness.max_age_days,
            channel: given.freshness.channel.as_deref(),
            takes_from: &given.takes_from,
        };
        let candidate = self.changes(output).key_candidate(&request)?;
        if candidate.is_unchanged() {
            output.note("this key is trusted like that already");
            return print(&candidate.after, output);
        }
        confirm(&candidate)?;
        let publishers = self.common.trust.publishers(self.environment)?;
        let folder = publishers.folder().join(&candidate.after.name);
        let change = LastingChange::new("trust add", described(&candidate), &folder);
        let changes = LastingChanges::of(self.environment)?;
        let announce = || changes.add(change);
        let changed = self.changes(output);
        print(&changed.add_key(&candidate, &request, announce)?, output)
    }
}

/// Refuses the flags that a bare key does not take.
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

/// Asks the person for the fingerprint of a new key, and for a yes to what changes about a known one.
fn confirm(candidate: &KeyCandidate) -> Result {
    let key = &candidate.after;
    if !has_terminal() {
        return Err(unconfirmed(key, "there is no terminal to ask on").hint(
            "give the command on a terminal. Where there is none, name the key in a `[[publisher]]` of toolward.toml",
        ));
    }
    let text = difference(candidate);
    if text.chars().count() > MAX_PREFIXES_CHARS {
        return Err(unconfirmed(
            key,
            "what it would be trusted for is too long to be shown",
        ));
    }
    let name = &key.name;
    if candidate.before.is_some() {
        let why = ("", "the change was not confirmed");
        return approve::require(
            || text,
            "Trust it like this?",
            why,
            |why| Failure::denied(Code::ChangeUnconfirmed, format_args!("{name}: {why}")),
        );
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

/// What a person sees of the change: lines with a sign are new or gone.
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

/// The change in words, for `doctor` and `serve`.
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

pub(super) fn print(key: &BareKey, output: &mut Output) -> Result {
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
    output.result(&value, lines)
}
