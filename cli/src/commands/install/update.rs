//! `update`: new releases of what is installed, and the yes to one that was held.

use clap::Args;

use super::{Means, told};
use crate::environment::Environment;
use crate::failure::{Exit, Failure};
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct Update {
    /// The installed bundle's id [default: all]
    id: Option<String>,

    #[command(flatten)]
    means: Means,
}

impl Update {
    pub(crate) fn run(
        &self,
        environment: &Environment,
        output: &mut Output,
    ) -> Result<Exit, Failure> {
        let means = &self.means;
        let standing = means.trust.standing(environment, output)?;
        let store = means.store.open(environment)?;
        if let (Some(id), Some(surface)) = (&self.id, means.accepted()?) {
            let waits = store.pending()?.into_iter().any(|(held, _)| held.id == *id);
            if waits {
                let verify = |bytes: &[u8]| standing.archive(bytes);
                let installed = store.accept(id, &surface, &verify, standing.now)?;
                return told(
                    output,
                    "installed",
                    &installed.id,
                    &installed.version.to_string(),
                    installed.sequence,
                );
            }
        }
        let mut sources = Vec::new();
        for installed in store.list()? {
            if self.id.as_ref().is_none_or(|id| *id == installed.id) {
                sources.push((installed.id, installed.source));
            }
        }
        if let (Some(id), true) = (&self.id, sources.is_empty()) {
            return Err(toolward_store::Error::NotInstalled { id: id.clone() }.into());
        }
        let mut worst = Exit::Fine;
        for (id, source) in sources {
            match means.install(&source, Some(&id), &store, &standing, environment, output) {
                Ok(Exit::Fine) => {}
                Ok(exit) => worst = exit,
                Err(failure) if self.id.is_some() => return Err(failure),
                Err(failure) => {
                    output.warning(format!("{id}: {} ({})", failure.message, failure.code));
                    worst = failure.exit;
                }
            }
        }
        Ok(worst)
    }
}
