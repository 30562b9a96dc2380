//! `pull`: a bundle from a registry or an `https` address to a file.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use toolward_registry::Source;

use crate::environment::Environment;
use crate::failure::{Failure, Result};
use crate::flags::Flagged;
use crate::output::Output;
use toolward_operator::file;
use toolward_operator::network::Network;
use toolward_operator::trust::Trust;

#[derive(Debug, Args)]
pub(crate) struct Pull {
    /// Where from: oci://REGISTRY/REPOSITORY:TAG, or an https address
    source: String,

    /// Where the archive goes; nothing is overwritten
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,

    #[command(flatten)]
    trust: Flagged<Trust>,

    #[command(flatten)]
    network: Flagged<Network>,
}

impl Pull {
    pub(crate) fn run(&self, environment: &Environment, output: &mut Output) -> Result {
        if self.output.symlink_metadata().is_ok() {
            return Err(file::exists(&self.output));
        }
        let source = Source::parse(&self.source)?;
        let standing = self.trust.context(environment, output)?;
        let network = self.network.clone().fetcher(&self.trust, environment)?;
        let bundle = network.bundle(&source, None, &standing, output)?;
        let bytes = toolward_signing::archive::write(&bundle.contents(), Vec::new())
            .map_err(Failure::refused)?;
        file::write_new(&self.output, &bytes)?;
        let value = json!({
            "ok": true, "output": self.output.display().to_string(), "id": bundle.manifest.id,
            "version": bundle.manifest.version.to_string(),
            "manifest_digest": bundle.manifest_digest,
        });
        output.result(&value, self.output.display())
    }
}
