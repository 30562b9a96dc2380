//! `list` and `remove`: what is installed, and whether it would be loaded now.

use clap::Args;
use serde_json::{Value, json};
use toolward_bundle::text::visible_line;
use toolward_operator::installed::{self, Examined, StoreLocation, next_step};
use toolward_operator::trust::Trust;
use toolward_store::Held;

use crate::environment::Environment;
use crate::failure::Result;
use crate::flags::Flagged;
use crate::output::Output;

/// Longest reason why a bundle is not loaded, in characters.
const MAX_REASON_CHARS: usize = 400;

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    trust: Flagged<Trust>,

    #[command(flatten)]
    store: Flagged<StoreLocation>,
}

impl List {
    pub(crate) fn run(&self, environment: &Environment, output: &mut Output) -> Result {
        let Some(store) = self.store.shown(environment, output)? else {
            output.note("nothing is installed");
            return Ok(());
        };
        let pending = store.pending()?;
        for one in installed::examined(&store, &self.trust, environment, output)? {
            let mut held = pending.iter().map(|(held, _)| held);
            let held = held.find(|held| held.id == one.installed.id);
            output.result(&as_json(&one, held), lines(&one, held))?;
        }
        // What waits for a first yes, with nothing installed.
        for (held, _) in &pending {
            if store.installed(&held.id)?.is_some() {
                continue;
            }
            let (id, version, surface) = (&held.id, held.version.to_string(), &held.surface);
            let value = json!({
                "id": id, "version": null, "sequence": null,
                "publisher": held.publisher, "digest": null, "surface": null,
                "source": held.source, "installed": null,
                "held": version, "held_surface": surface,
                "state": "held", "error": null,
            });
            output.result(
                &value,
                format_args!("{id} {version} is held; surface {surface}"),
            )?;
        }
        Ok(())
    }
}

fn as_json(one: &Examined, held: Option<&Held>) -> Value {
    let installed = &one.installed;
    let error = one.refusal().map(|failure| {
        let mut hints = failure.hints.clone();
        hints.push(next_step(&installed.id));
        json!({
            "code": failure.code, "message": failure.message, "hint": hints.join("\n"),
        })
    });
    json!({
        "id": installed.id, "version": installed.version.to_string(),
        "sequence": installed.sequence, "publisher": installed.publisher,
        "digest": installed.digest, "surface": installed.surface,
        "source": installed.source, "installed": installed.at.to_string(),
        "held": held.map(|held| held.version.to_string()),
        "held_surface": held.map(|held| held.surface),
        "state": one.word(), "error": error,
    })
}

fn lines(one: &Examined, held: Option<&Held>) -> String {
    let installed = &one.installed;
    let mut lines = format!(
        "{} {} (sequence {}) by {}",
        installed.id, installed.version, installed.sequence, installed.publisher
    );
    if let Some(failure) = one.refusal() {
        let (message, code) = (&failure.message, &failure.code);
        let message = visible_line(message, MAX_REASON_CHARS);
        let hint = next_step(&installed.id);
        lines += &format!("\n  NOT LOADED: {message} ({code})\n  hint: {hint}");
    }
    if let Some(held) = held {
        let (version, surface) = (&held.version, &held.surface);
        lines += &format!("\n  {version} is held; surface {surface}");
    }
    lines
}

#[derive(Debug, Args)]
pub(crate) struct Remove {
    /// The bundle's id
    id: String,

    #[command(flatten)]
    store: Flagged<StoreLocation>,
}

impl Remove {
    pub(crate) fn run(&self, environment: &Environment, output: &mut Output) -> Result {
        let now = std::time::SystemTime::now();
        let files = self.store.remove(&self.id, now, environment)?;
        let value = json!({ "ok": true, "removed": self.id, "files": files });
        output.result(&value, format_args!("{}: removed", self.id))
    }
}
