//! `verify`: verifies signatures, trust, and every byte.

use std::fs::File;

use toolward_bundle::content::ContentOrigin;
use toolward_operator::installed;

use crate::prelude::*;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A bundle: a directory or an archive
    #[arg(required_unless_present = "all")]
    bundle: Option<PathBuf>,

    /// Verify all that is installed, as thoroughly as `install` does
    #[arg(long, conflicts_with = "bundle")]
    all: bool,

    #[command(flatten)]
    trust: Flagged<Trust>,

    #[command(flatten)]
    store: Flagged<StoreLocation>,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context) -> Result<Exit> {
        let Some(bundle) = &self.bundle else {
            return all(self, context);
        };
        let content = self.trust.content(bundle, &self.store, context)?;
        report(&content, context).map(|()| Exit::Fine)
    }
}

fn all(arguments: &Arguments, context: &Context) -> Result<Exit> {
    let Some(store) = arguments.store.existing(context)? else {
        context.note("nothing is installed");
        return Ok(Exit::Fine);
    };
    let standing = arguments.trust.context(context)?;
    let verify = |file: &mut File| standing.archive_file(file);
    let mut written = Ok(());
    let libraries = installed::libraries(&store, &standing, None)?;
    let refused = store.verify_all(&verify, &libraries, standing.now, &mut |checked| {
        let (state, code) = match &checked.result {
            Ok(()) => ("verified".to_owned(), None),
            Err(error) => (error.to_string(), Some(error.code())),
        };
        let (id, version) = (&checked.id, &checked.version);
        let value = json!({
            "ok": code.is_none(), "id": id, "version": version.to_string(),
            "held": checked.held, "code": code,
        });
        let state = visible_line(&state, 400);
        let code = code.map(|code| format!(" [{code}]")).unwrap_or_default();
        let line = context.result(&value, format_args!("{id} {version}: {state}{code}"));
        if line.is_err() {
            written = line;
        }
    })?;
    written?;
    installed::unrecorded(&store, context);
    Ok(match refused {
        0 => Exit::Fine,
        _ => Exit::Refused,
    })
}

fn report(content: &Content, context: &Context) -> Result {
    let manifest = &content.manifest;
    let (id, version, sequence) = (&manifest.id, &manifest.version, manifest.sequence);
    let publisher = content.origin.publisher();
    let signers: Vec<String> = match &content.origin {
        ContentOrigin::Signed { signers, .. } => signers.iter().map(ToString::to_string).collect(),
        _ => Vec::new(),
    };
    let warnings = content.warnings.iter();
    let warnings: Vec<&str> = warnings.map(|warning| warning.message.as_str()).collect();
    if context.json() {
        return context.value(&json!({
            "ok": true,
            "id": id,
            "version": version.to_string(),
            "sequence": sequence,
            "publisher": publisher,
            "signers": signers,
            "manifest_digest": content.manifest_digest,
            "files": content.files.len(),
            "provenance": content.provenance.is_some(),
            "warnings": warnings,
        }));
    }
    for warning in warnings {
        context.warning(warning);
    }
    let publisher = visible_line(&publisher, 100);
    let heading = format!("{id} {version} (sequence {sequence}) by {publisher}: verified");
    let mut lines = TextLines::new(heading);
    for signer in &signers {
        lines.row("signed by", signer);
    }
    lines.row("manifest", content.manifest_digest);
    let provenance = content.provenance.as_ref().map(|_| "provenance".to_owned());
    let holds = [
        counted(content.files.len(), "file"),
        counted(content.tools.len(), "contract"),
        counted(content.drivers.len(), "driver"),
    ];
    let holds: Vec<String> = holds.into_iter().chain(provenance).collect();
    lines.row("holds", holds.join(", "));
    context.line(lines)
}
