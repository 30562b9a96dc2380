//! `list` and `remove`: what is installed, and whether it would be loaded now.

use crate::flags::Flagged;
use clap::Args;
use serde_json::{Value, json};
use toolward_bundle::text::visible_line;
use toolward_store::Held;

use crate::environment::Environment;
use crate::failure::{Exit, Failure};
use crate::output::Output;
use toolward_operator::installed::{self, Examined, StoreLocation, next_step};
use toolward_operator::trust::Trust;

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
    pub(crate) fn run(
        &self,
        environment: &Environment,
        output: &mut Output,
    ) -> Result<Exit, Failure> {
        let Some(store) = self.store.shown(environment, output)? else {
            output.note("nothing is installed");
            return Ok(Exit::Fine);
        };
        let pending = store.pending()?;
        for one in installed::examined(&store, &self.trust, environment, output)? {
            let mut held = pending.iter().map(|(held, _)| held);
            let held = held.find(|held| held.id == one.installed.id);
            match output.json() {
                true => output.value(&as_json(&one, held))?,
                false => show(&one, held, output)?,
            }
        }
        // What waits for a first yes, with nothing installed.
        for (held, _) in &pending {
            if store.installed(&held.id)?.is_some() {
                continue;
            }
            if output.json() {
                output.value(&json!({
                    "id": held.id, "version": null, "sequence": null,
                    "publisher": held.publisher, "digest": null, "surface": null,
                    "source": held.source, "installed": null,
                    "held": held.version.to_string(), "held_surface": held.surface,
                    "state": "held", "error": null,
                }))?;
                continue;
            }
            output.line(format!(
                "{} {} is held; surface {}",
                held.id, held.version, held.surface
            ))?;
        }
        Ok(Exit::Fine)
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

fn show(one: &Examined, held: Option<&Held>, output: &mut Output) -> Result<(), Failure> {
    let installed = &one.installed;
    output.line(format!(
        "{} {} (sequence {}) by {}",
        installed.id, installed.version, installed.sequence, installed.publisher
    ))?;
    if let Some(failure) = one.refusal() {
        output.line(format!(
            "  NOT LOADED: {} ({})",
            visible_line(&failure.message, MAX_REASON_CHARS),
            failure.code
        ))?;
        output.line(format!("  hint: {}", next_step(&installed.id)))?;
    }
    match held {
        Some(held) => output.line(format!(
            "  {} is held; surface {}",
            held.version, held.surface
        )),
        None => Ok(()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct Remove {
    /// The bundle's id
    id: String,

    #[command(flatten)]
    store: Flagged<StoreLocation>,
}

impl Remove {
    pub(crate) fn run(
        &self,
        environment: &Environment,
        output: &mut Output,
    ) -> Result<Exit, Failure> {
        let now = std::time::SystemTime::now();
        let files = self.store.remove(&self.id, now, environment)?;
        if output.json() {
            output.value(&json!({ "ok": true, "removed": self.id, "files": files }))?;
        } else {
            output.line(format!("{}: removed", self.id))?;
        }
        Ok(Exit::Fine)
    }
}
