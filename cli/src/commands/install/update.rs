//! `update`: new releases of what is installed, and the yes to one that was held.

use clap::Args;
use serde_json::json;

use toolward_store::Store;

use super::{CommonFlags, print, show};
use crate::environment::Environment;
use crate::failure::{Exit, Failure, Result};
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct Update {
    /// The installed bundle's id [default: all]
    id: Option<String>,

    #[command(flatten)]
    common: CommonFlags,
}

impl Update {
    pub(crate) fn run(&self, environment: &Environment, output: &mut Output) -> Result<Exit> {
        let common = &self.common;
        if self.id.is_none() && is_empty(common.store.existing(environment)?.as_ref())? {
            output.note("nothing is installed, so there is nothing to update");
            return Ok(Exit::Fine);
        }
        let context = common.trust.context(environment, output)?;
        let store = common.store.open(environment)?;
        let accept = common.accepted()?;
        let helpers = common.helpers(environment, output)?;
        let network = common.fetcher(environment)?;
        let shared = (&store, &context, &network);
        if let (Some(id), Some(surface)) = (&self.id, &accept) {
            let waiting = store.pending()?.into_iter();
            let waiting = waiting.map(|(held, _)| held).find(|held| held.id == *id);
            if let Some(held) = waiting {
                let installer = common.installer(accept, shared, environment, &helpers, output);
                let installed = installer.accept(&held, surface)?;
                print("installed", &installed, output)?;
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
            let installer = common.installer(accept, shared, environment, &helpers, output);
            let outcome = installer.update(&installed);
            let exit = match outcome.and_then(|outcome| show(outcome, output)) {
                Ok(exit) => exit,
                Err(failure) if self.id.is_some() => return Err(failure),
                Err(failure) => failed(&installed.id, &failure, output)?,
            };
            worst = worst.max(exit);
        }
        Ok(worst)
    }
}

/// Whether a store has neither bundles nor some that wait.
fn is_empty(store: Option<&Store>) -> Result<bool> {
    let Some(store) = store else {
        return Ok(true);
    };
    Ok(store.list()?.is_empty() && store.pending()?.is_empty())
}

/// Says why one of several was not updated: the others are, all the same.
fn failed(id: &str, failure: &Failure, output: &mut Output) -> Result<Exit> {
    if output.json() {
        let mut value = failure.to_json();
        if let Some(value) = value.as_object_mut() {
            value.insert("id".to_owned(), json!(id));
        }
        output.value(&value)?;
    } else {
        output.warning(format!("{id}: {} ({})", failure.message, failure.code));
    }
    Ok(failure.kind.into())
}
