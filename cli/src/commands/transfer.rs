//! `push` and `pull`: bundles to registries and back.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use toolward_registry::{Details, Outgoing, Reference, Source};

use crate::environment::Environment;
use crate::failure::{Exit, Failure};
use crate::files;
use crate::output::Output;
use crate::progress::Bar;
use crate::sources::{NetworkFlags, followed, run};
use crate::trust::Trust;

#[derive(Debug, Args)]
pub(crate) struct Push {
    /// A signed bundle: a directory or an archive
    bundle: PathBuf,

    /// Where to: oci://REGISTRY/REPOSITORY:TAG
    reference: String,

    /// A sentence about the bundle, for the registry
    #[arg(long)]
    description: Option<String>,

    #[command(flatten)]
    trust: Trust,

    #[command(flatten)]
    network: NetworkFlags,
}

impl Push {
    pub(crate) fn run(
        &self,
        environment: &Environment,
        output: &mut Output,
    ) -> Result<Exit, Failure> {
        let reference: Reference = self.reference.parse()?;
        // What nobody would accept is not pushed.
        let bundle = self.trust.open(&self.bundle, environment, output)?;
        let details = Details {
            description: self.description.clone(),
            ..Details::default()
        };
        let outgoing = Outgoing::new(&bundle.contents(), &details)?;
        let client = self.network.client()?;
        let bar = Bar::new(format!("pushing {reference}"), output);
        let (show, seen) = followed();
        let pushed = run(&bar, &seen, client.push(&outgoing, &reference, Some(&show)))??;
        drop(bar);
        if output.json() {
            output.value(&json!({
                "ok": true, "id": bundle.manifest.id, "version": bundle.manifest.version.to_string(),
                "reference": pushed.reference.to_string(), "digest": pushed.digest.to_string(),
            }))?;
        } else {
            output.line(pushed.reference)?;
        }
        Ok(Exit::Fine)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Pull {
    /// Where from: oci://REGISTRY/REPOSITORY:TAG, or an https address
    source: String,

    /// Where the archive goes; nothing is overwritten
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,

    #[command(flatten)]
    trust: Trust,

    #[command(flatten)]
    network: NetworkFlags,
}

impl Pull {
    pub(crate) fn run(
        &self,
        environment: &Environment,
        output: &mut Output,
    ) -> Result<Exit, Failure> {
        if self.output.symlink_metadata().is_ok() {
            return Err(files::exists(&self.output));
        }
        let source = Source::parse(&self.source)?;
        let standing = self.trust.standing(environment, output)?;
        let bundle = self
            .network
            .bundle(&source, &standing, environment, output)?;
        let bytes = toolward_signing::archive::write(&bundle.contents(), Vec::new())
            .map_err(|refusal| Failure::refused(&refusal))?;
        files::write_new(&self.output, &bytes)?;
        if output.json() {
            output.value(&json!({
                "ok": true, "output": self.output, "id": bundle.manifest.id,
                "version": bundle.manifest.version.to_string(),
                "manifest_digest": bundle.manifest_digest,
            }))?;
        } else {
            output.line(self.output.display())?;
        }
        Ok(Exit::Fine)
    }
}
