//! Bundles and documents to registries, and bundles from them.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use toolward_operator::file;
use toolward_operator::network::{Network, run, track_progress};
use toolward_operator::runtime;
use toolward_operator::trust::Trust;
use toolward_registry::{Details, DocumentArtifact, OutgoingBundle, Reference, Source};
use toolward_signing::channel;
use toolward_signing::envelope::Envelope;

use super::signing::is_document;
use crate::environment::Environment;
use crate::failure::{Code, Failure, Kind, OperatorCode, Result};
use crate::flags::Flagged;
use crate::output::Output;
use crate::progress::Bar;

#[derive(Debug, Args)]
pub(crate) struct Push {
    /// A signed bundle, a directory or an archive; or a document of `publisher`
    bundle: PathBuf,

    /// Where to: oci://REGISTRY/REPOSITORY:TAG
    reference: String,

    /// Push no bundle, but attach its signatures to the one in the registry
    ///
    /// Both must be the same bundle.
    #[arg(long)]
    signatures: bool,

    /// A sentence about the bundle, for the registry
    #[arg(long)]
    description: Option<String>,

    #[command(flatten)]
    trust: Flagged<Trust>,

    #[command(flatten)]
    network: Flagged<Network>,
}

impl Push {
    pub(super) fn run(&self, environment: &Environment, output: &mut Output) -> Result {
        let reference: Reference = self.reference.parse()?;
        let network = self.network.clone().fetcher(&self.trust, environment)?;
        let client = || network.client(&Source::Registry(reference.clone()));
        if let Some((kind, envelope)) = document(&self.bundle)? {
            let client = client()?;
            let work = client.push_document(kind, &envelope, &reference);
            let digest = runtime()?.block_on(work)?;
            return pushed(&reference.with_digest(digest), output);
        }
        // A bundle that does not verify is not pushed.
        let opened = self.trust.open(&self.bundle, environment, output);
        let bundle = opened.map_err(|mut failure| {
            // Who pushes is mostly who signed.
            if failure.code == OperatorCode::NobodyTrusted.code() {
                let hint = "what is pushed is verified first, against a key that you trust; for \
                            your own bundle give your own public key: --trust-key YOU.pub.pem";
                failure.hints = vec![hint.to_owned()];
            }
            failure
        })?;
        if self.signatures {
            let client = client()?;
            let kind = DocumentArtifact::Signatures;
            let work = async {
                let there = client.resolve(&reference).await?;
                let fixed = reference.with_digest(there.digest);
                client.attach(&fixed, kind, &bundle.envelope_bytes).await
            };
            runtime()?.block_on(work)?;
            return pushed(&reference, output);
        }
        let details = Details {
            description: self.description.clone(),
            ..Details::default()
        };
        let outgoing = OutgoingBundle::new(&bundle.contents(), &details)?;
        let client = client()?;
        let bar = Bar::new(format!("pushing {reference}"), output.tells());
        let (track, latest) = track_progress();
        let pushed = run(
            &bar,
            &latest,
            client.push(&outgoing, &reference, Some(&track)),
        )??;
        drop(bar);
        let value = json!({
            "ok": true, "id": bundle.manifest.id, "version": bundle.manifest.version.to_string(),
            "reference": pushed.reference.to_string(), "digest": pushed.digest.to_string(),
        });
        output.result(&value, pushed.reference)
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
    trust: Flagged<Trust>,

    #[command(flatten)]
    network: Flagged<Network>,
}

impl Pull {
    pub(super) fn run(&self, environment: &Environment, output: &mut Output) -> Result {
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

/// The document in a file, by the type in its envelope.
fn document(path: &Path) -> Result<Option<(DocumentArtifact, Vec<u8>)>> {
    if !is_document(path) {
        return Ok(None);
    }
    let bytes = file::read(path, channel::MAX_ENVELOPE_BYTES)?;
    let envelope =
        Envelope::parse_up_to(&bytes, channel::MAX_ENVELOPE_BYTES).map_err(Failure::refused)?;
    let mut kinds = DocumentArtifact::ALL.iter().copied();
    let kind = kinds
        .find(|kind| kind.repository().is_some() && kind.payload_type() == envelope.payload_type());
    match kind {
        Some(kind) => Ok(Some((kind, bytes))),
        None => Err(Failure::new(
            Kind::Failed,
            Code::DocumentUnknown,
            format!("{}: no document that registries take", path.display()),
        )
        .hint("name a bundle, or a file that `toolward publisher` made")),
    }
}

fn pushed(reference: &Reference, output: &mut Output) -> Result {
    let value = json!({ "ok": true, "reference": reference.to_string() });
    output.result(&value, reference)
}
