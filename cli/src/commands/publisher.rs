//! `publisher`: keys, signatures, registries, and the documents that a publisher signs in addition
//! to bundles: its keys, its revocations, and the index of a channel.

mod documents;
pub(super) mod keys;
mod signing;

use toolward_operator::network::run;
use toolward_registry::{Details, DocumentArtifact, OutgoingBundle, Reference, Source};

use crate::prelude::*;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make and look at signing keys
    #[command(subcommand)]
    Keys(keys::Command),
    /// Add signatures to a packed bundle or to a document
    Sign(signing::Sign),
    /// Push a signed bundle or document to a registry
    Push(Push),
    /// Pull a bundle from a registry, and verify it, without installing it
    Pull(Pull),
    /// Make a publisher's first document: its name, its keys, and how many of them must sign
    New(documents::New),
    /// Make the next document: keys added, dropped or revoked
    ///
    /// It needs enough signatures for the thresholds of both documents, the current and the next.
    Next(documents::Next),
    /// Make a list of revoked bundles and keys
    Revoke(documents::Revoke),
    /// Make the index of a channel: which release of each bundle is current
    Channel(documents::Index),
    /// Show what is in a document, and who claims to have signed it
    Show {
        /// The document
        file: PathBuf,
    },
}

impl Command {
    pub(crate) fn run(&self, context: &Context) -> Result {
        match self {
            Self::Keys(command) => command.run(context),
            Self::Sign(sign) => sign.run(context),
            Self::Push(push) => push.run(context),
            Self::Pull(pull) => pull.run(context),
            Self::New(new) => new.run(context),
            Self::Next(next) => next.run(context),
            Self::Revoke(revoke) => revoke.run(context),
            Self::Channel(index) => index.run(context),
            Self::Show { file } => signing::show(file, context),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Push {
    /// A signed bundle (a directory or an archive), or a document that `toolward publisher` made
    bundle: PathBuf,

    /// Where to: oci://REGISTRY/REPOSITORY:TAG
    reference: String,

    /// Push only the bundle's signatures, and attach them to the bundle in the registry
    ///
    /// Both bundles must be the same.
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
    fn run(&self, context: &Context) -> Result {
        let reference: Reference = self.reference.parse()?;
        let network = self.network.clone().fetcher(&self.trust, context)?;
        let client = || network.client(&Source::Registry(reference.clone()));
        if let Some((kind, envelope)) = document(&self.bundle)? {
            let client = client()?;
            let work = client.push_document(kind, &envelope, &reference);
            let digest = runtime()?.block_on(work)?;
            return pushed(&reference.with_digest(digest), context);
        }
        // Only a bundle that verifies is pushed.
        let opened = self.trust.open(&self.bundle, context);
        let bundle = opened.map_err(|mut failure| {
            // The person who pushes a bundle is usually the person who signed it.
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
            return pushed(&reference, context);
        }
        let details = Details {
            description: self.description.clone(),
            ..Details::default()
        };
        let contents = bundle.contents().map_err(Failure::refused)?;
        let outgoing = OutgoingBundle::new(&contents, &details)?;
        let client = client()?;
        let bar = Bar::new(format!("pushing {reference}"), context.tells());
        let digest = run(&bar, async |track| {
            client.push(&outgoing, &reference, Some(track)).await
        })??;
        drop(bar);
        let pushed = reference.with_digest(digest);
        let value = json!({
            "ok": true, "id": bundle.manifest.id, "version": bundle.manifest.version.to_string(),
            "reference": pushed.to_string(), "digest": digest.to_string(),
        });
        context.result(&value, pushed)
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
    fn run(&self, context: &Context) -> Result {
        if self.output.symlink_metadata().is_ok() {
            return Err(file::exists(&self.output));
        }
        let source = Source::parse(&self.source)?;
        let standing = self.trust.context(context)?;
        let network = self.network.clone().fetcher(&self.trust, context)?;
        let bundle = network.bundle(&source, None, &standing)?;
        let contents = bundle.contents();
        let bytes = contents.and_then(|contents| toolward_signing::archive::to_bytes(&contents));
        let bytes = bytes.map_err(Failure::refused)?;
        file::write_new(&self.output, &bytes)?;
        let value = json!({
            "ok": true, "output": self.output.display().to_string(), "id": bundle.manifest.id,
            "version": bundle.manifest.version.to_string(),
            "manifest_digest": bundle.manifest_digest,
        });
        context.result(&value, self.output.display())
    }
}

/// Reads the document in a file, and returns its kind and its bytes. Returns `None` if the file is
/// not a document.
fn document(path: &Path) -> Result<Option<(DocumentArtifact, Vec<u8>)>> {
    if !signing::is_document(path) {
        return Ok(None);
    }
    let (envelope, bytes) = signing::read_envelope(path)?;
    let envelope = envelope.map_err(Failure::refused)?;
    let mut kinds = DocumentArtifact::ALL.iter().copied();
    let kind = kinds
        .find(|kind| kind.repository().is_some() && kind.payload_type() == envelope.payload_type());
    let Some(kind) = kind else {
        let message = format!("{}: no document that registries take", path.display());
        return Err(Failure::failed(Code::DocumentUnknown, message)
            .hint("name a bundle, or a file that `toolward publisher` made"));
    };
    Ok(Some((kind, bytes)))
}

fn pushed(reference: &Reference, context: &Context) -> Result {
    let value = json!({ "ok": true, "reference": reference.to_string() });
    context.result(&value, reference)
}
