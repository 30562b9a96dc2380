//! `list` and `remove`: what is installed, and no more.

use clap::Args;
use serde_json::json;

use crate::environment::Environment;
use crate::failure::{Exit, Failure};
use crate::installed::StoreFlags;
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    store: StoreFlags,
}

impl List {
    pub(crate) fn run(
        &self,
        environment: &Environment,
        output: &mut Output,
    ) -> Result<Exit, Failure> {
        let Some(store) = self.store.existing(environment)? else {
            output.note("nothing is installed");
            return Ok(Exit::Fine);
        };
        let pending = store.pending()?;
        for installed in store.list()? {
            let held = pending.iter().find(|(held, _)| held.id == installed.id);
            if output.json() {
                output.value(&json!({
                    "id": installed.id, "version": installed.version.to_string(),
                    "sequence": installed.sequence, "publisher": installed.publisher,
                    "digest": installed.digest, "surface": installed.surface,
                    "source": installed.source, "installed": installed.at.to_string(),
                    "held": held.map(|(held, _)| held.version.to_string()),
                    "held_surface": held.map(|(held, _)| held.surface),
                }))?;
                continue;
            }
            output.line(format!(
                "{} {} (sequence {}) by {}",
                installed.id, installed.version, installed.sequence, installed.publisher
            ))?;
            if let Some((held, _)) = held {
                output.line(format!(
                    "  {} is held; surface {}",
                    held.version, held.surface
                ))?;
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

#[derive(Debug, Args)]
pub(crate) struct Remove {
    /// The bundle's id
    id: String,

    #[command(flatten)]
    store: StoreFlags,
}

impl Remove {
    pub(crate) fn run(
        &self,
        environment: &Environment,
        output: &mut Output,
    ) -> Result<Exit, Failure> {
        let not_installed = || toolward_store::Error::NotInstalled {
            id: self.id.clone(),
        };
        let store = self
            .store
            .existing(environment)?
            .ok_or_else(not_installed)?;
        store.remove(&self.id, std::time::SystemTime::now())?;
        let collected = store.gc()?;
        if output.json() {
            output.value(&json!({ "ok": true, "removed": self.id, "files": collected.objects }))?;
        } else {
            output.line(format!("{}: removed", self.id))?;
        }
        Ok(Exit::Fine)
    }
}
