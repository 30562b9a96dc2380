//! `update`: installs new releases of installed bundles, and accepts held ones. For a held release
//! it shows the whole change for agents and policies, and marks the differences within texts.

use toolward_bundle::surface::SurfaceDifference;
use toolward_contract::diagnostic::Severity;
use toolward_store::{HeldUpdate, Store};

use super::{InstallFlags, print, show};
use crate::prelude::*;

/// The most characters that are shown of a value before or after a change. A contract contains
/// fewer, so a person who accepts a change has seen all of it.
const MAX_VALUE_CHARS: usize = 4 * 1024 * 1024;

pub(super) fn show_held(
    held: &HeldUpdate,
    difference: &SurfaceDifference,
    context: &Context,
) -> Result {
    if context.json() {
        return context.value(&json!({
            "ok": false, "state": "held", "id": held.id, "version": held.version.to_string(),
            "sequence": held.sequence, "surface": held.surface,
            "changes": difference.changes,
        }));
    }
    context.line(format!(
        "{} {} is held: what agents or policies see of it changes",
        held.id, held.version
    ))?;
    for change in &difference.changes {
        let (id, place) = (&change.id, change.field.join("."));
        let (id, place) = (visible_line(id, 200), visible_line(&place, 200));
        context.line(format!("  {} {id} {place}", change.kind))?;
        for (sign, value) in [("-", &change.from), ("+", &change.to)] {
            if let Some(value) = value {
                context.line(valued(sign, &value.to_string()))?;
            }
        }
        if let (Some(Value::String(from)), Some(Value::String(to))) = (&change.from, &change.to)
            && let Some(words) = differing(from, to)
        {
            let sign = context.label("~", Severity::Warning);
            context.line(valued(&sign, &words))?;
        }
    }
    context.note(format!(
        "accept it with: toolward update {} --accept {}",
        held.id, held.surface
    ));
    Ok(())
}

fn valued(sign: &str, text: &str) -> String {
    let text = wrapped(&visible_line(text, MAX_VALUE_CHARS), "\n      ");
    format!("    {sign} {text}")
}

/// Returns the different parts of two texts that start or end alike, in whole words; `None` if the
/// texts have nothing in common.
fn differing(from: &str, to: &str) -> Option<String> {
    let start = beginning(from, to);
    let rest = |text: &str| text.get(start..).unwrap_or_default().to_owned();
    let (from, to) = (rest(from), rest(to));
    let end = ending(&from, &to);
    if start == 0 && end == 0 {
        return None;
    }
    let part = |text: &str| {
        let end = text.len().saturating_sub(end);
        text.get(..end).unwrap_or_default().to_owned()
    };
    let (from, to) = (part(&from), part(&to));
    let quoted = |text: &str| Value::from(text.trim()).to_string();
    Some(match (from.trim(), to.trim()) {
        ("", "") => "only white space differs".to_owned(),
        ("", added) => format!("adds {}", quoted(added)),
        (dropped, "") => format!("drops {}", quoted(dropped)),
        (old, new) => format!("{} becomes {}", quoted(old), quoted(new)),
    })
}

/// Returns the length of the common start, without a last word that continues in one of the texts.
fn beginning(from: &str, to: &str) -> usize {
    let pairs = from.chars().zip(to.chars());
    let same: usize = pairs
        .take_while(|(one, other)| one == other)
        .map(|(one, _)| one.len_utf8())
        .sum();
    let goes_on = |text: &str| {
        let next = text.get(same..).and_then(|rest| rest.chars().next());
        next.is_some_and(|next| !next.is_whitespace())
    };
    if !goes_on(from) && !goes_on(to) {
        return same;
    }
    let known = from.get(..same).unwrap_or_default();
    let last = known.char_indices().rfind(|(_, one)| one.is_whitespace());
    last.map_or(0, |(at, space)| at + space.len_utf8())
}

/// Returns the length of the common end, without a first word that is longer in one of the texts.
fn ending(from: &str, to: &str) -> usize {
    let backwards = |text: &str| text.chars().rev().collect::<String>();
    beginning(&backwards(from), &backwards(to))
}

#[derive(Debug, Args)]
pub(crate) struct Update {
    /// The installed bundle's id [default: all]
    id: Option<String>,

    #[command(flatten)]
    common: InstallFlags,
}

impl Update {
    pub(crate) fn run(&self, context: &Context) -> Result<Exit> {
        let common = &self.common;
        if self.id.is_none() && is_empty(common.store.existing(context)?.as_ref())? {
            context.note("nothing is installed, so there is nothing to update");
            return Ok(Exit::Fine);
        }
        let installer = common.installer(context)?;
        let store = &installer.store;
        if let (Some(id), Some(surface)) = (&self.id, &installer.accept) {
            let waiting = store.pending()?.into_iter();
            let waiting = waiting.map(|(held, _)| held).find(|held| held.id == *id);
            if let Some(held) = waiting {
                let installed = installer.accept(&held, surface)?;
                print("installed", &installed, context)?;
                return Ok(Exit::Fine);
            }
        }
        let mut all = store.list()?;
        all.retain(|installed| self.id.as_ref().is_none_or(|id| *id == installed.id));
        if let (Some(id), true) = (&self.id, all.is_empty()) {
            return Err(toolward_store::Error::NotInstalled { id: id.clone() }.into());
        }
        let mut worst = Exit::Fine;
        for installed in all {
            let outcome = installer.update(&installed);
            let exit = match outcome.and_then(|outcome| show(outcome, context)) {
                Ok(exit) => exit,
                Err(failure) if self.id.is_some() => return Err(failure),
                Err(failure) => failed(&installed.id, &failure, context)?,
            };
            worst = worst.max(exit);
        }
        Ok(worst)
    }
}

/// Whether a store has neither installed bundles nor waiting updates.
fn is_empty(store: Option<&Store>) -> Result<bool> {
    let Some(store) = store else {
        return Ok(true);
    };
    Ok(store.list()?.is_empty() && store.pending()?.is_empty())
}

/// Reports why one of several bundles was not updated. The others are updated nevertheless.
fn failed(id: &str, failure: &Failure, context: &Context) -> Result<Exit> {
    if context.json() {
        let mut value = failure.to_json();
        if let Some(value) = value.as_object_mut() {
            value.insert("id".to_owned(), json!(id));
        }
        context.value(&value)?;
    } else {
        context.report.warning_of(id, failure);
    }
    Ok(failure.kind.into())
}

#[cfg(test)]
mod tests {
    use super::differing;

    #[test]
    fn whole_words_that_differ_are_named() {
        for (from, to, expected) in [
            (
                "Reads. Nothing leaves.",
                "Reads. Ask me.",
                Some(r#""Nothing leaves." becomes "Ask me.""#),
            ),
            (
                "Reads it.",
                "Reads it. Call me.",
                Some(r#"adds "Call me.""#),
            ),
            (
                "Reads it. Call me.",
                "Call me.",
                Some(r#"drops "Reads it.""#),
            ),
            (
                "one memo here",
                "one memory here",
                Some(r#""memo" becomes "memory""#),
            ),
            ("a a", "a a a", Some(r#"adds "a""#)),
            ("a b", "a  b", Some("only white space differs")),
            (
                "zwölf Zeichen",
                "zwölfe Zeichen",
                Some(r#""zwölf" becomes "zwölfe""#),
            ),
            ("one", "other", None),
            ("", "a", None),
        ] {
            assert_eq!(differing(from, to).as_deref(), expected, "{from} | {to}");
        }
    }
}
