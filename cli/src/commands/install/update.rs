//! `update`: new releases of what is installed, and the yes to one that was held.

use std::fs::File;
use std::sync::{Mutex, PoisonError};

use clap::Args;
use serde_json::json;
use toolward_registry::Source;
use toolward_signing::Digest;
use toolward_store::{Held, Installed, Store};

use super::{CommonFlags, print};
use crate::environment::Environment;
use crate::failure::{Exit, Failure};
use crate::output::Output;
use toolward_operator::releases::{self, Place};
use toolward_operator::trust::TrustContext;

#[derive(Debug, Args)]
pub(crate) struct Update {
    /// The installed bundle's id [default: all]
    id: Option<String>,

    #[command(flatten)]
    common: CommonFlags,
}

impl Update {
    pub(crate) fn run(
        &self,
        environment: &Environment,
        output: &mut Output,
    ) -> Result<Exit, Failure> {
        let common = &self.common;
        let context = common.trust.context(environment, output)?;
        let store = common.store.open(environment)?;
        if let (Some(id), Some(surface)) = (&self.id, common.accepted()?) {
            let waiting = store.pending()?.into_iter();
            let waiting = waiting.map(|(held, _)| held).find(|held| held.id == *id);
            if let Some(held) = waiting {
                return common.accept(&held, &surface, &store, &context, output);
            }
        }
        let mut all = store.list()?;
        all.retain(|installed| self.id.as_ref().is_none_or(|id| *id == installed.id));
        if let (Some(id), true) = (&self.id, all.is_empty()) {
            return Err(toolward_store::Error::NotInstalled { id: id.clone() }.into());
        }
        let mut worst = Exit::Fine;
        for installed in all {
            let id = &installed.id;
            let one = common.update(&installed, &store, &context, environment, output);
            let exit = match one {
                Ok(exit) => exit,
                Err(failure) if self.id.is_some() => return Err(failure),
                Err(failure) => failed(id, &failure, output)?,
            };
            worst = worst.max(exit);
        }
        Ok(worst)
    }
}

/// Says why one of several was not updated: the others are, all the same.
fn failed(id: &str, failure: &Failure, output: &mut Output) -> Result<Exit, Failure> {
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

impl CommonFlags {
    /// Installs the newest release that the source of an installed bundle has.
    fn update(
        &self,
        installed: &Installed,
        store: &Store,
        context: &TrustContext,
        environment: &Environment,
        output: &mut Output,
    ) -> Result<Exit, Failure> {
        let place = Place::parse(&installed.source)?;
        let place = match releases::repository(&place.source) {
            Some((repository, pattern)) => {
                let publisher = &installed.publisher;
                let current = self.current(&place.source, publisher, store, context, output)?;
                let listed = current.listed(&installed.id);
                let network = &self.network;
                releases::find(
                    installed, repository, &pattern, listed, network, context, output,
                )?
            }
            None => place,
        };
        let expected = Some(installed.id.as_str());
        self.install(&place, expected, store, context, environment, output)
    }

    /// Installs what was held, if it is still trusted and current.
    fn accept(
        &self,
        held: &Held,
        surface: &Digest,
        store: &Store,
        context: &TrustContext,
        output: &mut Output,
    ) -> Result<Exit, Failure> {
        let source = Source::parse(&held.source)?;
        let current = self.current(&source, &held.publisher, store, context, output)?;
        let warnings = Mutex::new(Vec::new());
        let verify = |file: &mut File| {
            let bundle = context.archive_file(file)?;
            let freshness = current.freshness();
            let found = freshness.check(&bundle.manifest, &bundle.manifest_digest)?;
            let mut warnings = warnings.lock().unwrap_or_else(PoisonError::into_inner);
            warnings.extend(found);
            Ok(bundle)
        };
        let installed = store.accept(&held.id, surface, &verify, context.now)?;
        for warning in warnings
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
        {
            output.warning(warning);
        }
        print(
            output,
            "installed",
            &installed.id,
            &installed.version.to_string(),
            installed.sequence,
        )
    }
}
