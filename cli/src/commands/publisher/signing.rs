//! Documents in their envelopes: read, signed, written.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use serde_json::json;
use toolward_bundle::text::visible_line;
use toolward_signing::envelope::Envelope;
use toolward_signing::timestamp::Timestamp;
use toolward_signing::{channel, publisher, revocation};

use crate::commands::pack::source_date_epoch;
use crate::environment::Environment;
use crate::failure::{Failure, Kind};
use crate::keyfile::{self, Passphrase};
use crate::output::Output;
use toolward_operator::file;

/// Where a new document goes, and who signs it.
#[derive(Debug, Args)]
pub(super) struct Writing {
    /// Where the document goes; nothing is overwritten
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,

    /// Sign it with this private key (PEM file; may be given again). Others add
    /// theirs with `publisher sign`
    #[arg(long, value_name = "PEM", required = true)]
    key: Vec<PathBuf>,

    #[command(flatten)]
    passphrase: Passphrase,
}

impl Writing {
    /// Signs and writes.
    pub(super) fn write(&self, mut envelope: Envelope, output: &mut Output) -> Result<(), Failure> {
        if self.output.symlink_metadata().is_ok() {
            return Err(file::exists(&self.output));
        }
        sign(&mut envelope, &self.key, &self.passphrase, output)?;
        let bytes = envelope.to_bytes().map_err(|refusal| failed(&refusal))?;
        file::write_new(&self.output, &bytes)?;
        told(&self.output, &envelope, output)
    }
}

#[derive(Debug, Args)]
pub(super) struct Sign {
    /// A publisher document, a list of revocations or the index of a channel
    file: PathBuf,

    /// The private key to sign with (PEM file; may be given again)
    #[arg(long, value_name = "PEM", required = true)]
    key: Vec<PathBuf>,

    #[command(flatten)]
    passphrase: Passphrase,
}

impl Sign {
    pub(super) fn run(&self, output: &mut Output) -> Result<(), Failure> {
        let mut envelope = read(&self.file)?;
        // What is signed is a document that hosts can read.
        parsed(&envelope)?;
        sign(&mut envelope, &self.key, &self.passphrase, output)?;
        let bytes = envelope.to_bytes().map_err(|refusal| failed(&refusal))?;
        file::replace(&self.file, &bytes)?;
        told(&self.file, &envelope, output)
    }
}

/// Any of the documents.
pub(super) enum Document {
    Publisher(publisher::PublisherDocument),
    Revocations(revocation::RevocationList),
    Channel(channel::ChannelIndex),
}

/// Reads the document in an envelope without checking its signatures.
pub(super) fn parsed(envelope: &Envelope) -> Result<Document, Failure> {
    let bytes = envelope.payload();
    match envelope.payload_type() {
        publisher::PAYLOAD_TYPE => {
            publisher::PublisherDocument::parse(bytes).map(Document::Publisher)
        }
        revocation::PAYLOAD_TYPE => {
            revocation::RevocationList::parse(bytes).map(Document::Revocations)
        }
        channel::PAYLOAD_TYPE => channel::ChannelIndex::parse(bytes).map(Document::Channel),
        other => {
            return Err(Failure::new(
                Kind::Failed,
                "document-unknown",
                format!(
                    "expected a publisher's document, found {}",
                    visible_line(other, 100)
                ),
            )
            .hint(
                "name a file that `toolward publisher` made; bundles are signed by `toolward sign`",
            ));
        }
    }
    .map_err(|refusal| failed(&refusal))
}

/// Reads an envelope of any of the documents.
pub(super) fn read(path: &Path) -> Result<Envelope, Failure> {
    let bytes = file::read(path, channel::MAX_ENVELOPE_BYTES)?;
    Envelope::parse_up_to(&bytes, channel::MAX_ENVELOPE_BYTES).map_err(|refusal| {
        let failure = failed(&refusal);
        let message = format!("{}: {}", path.display(), failure.message);
        failure.saying(message)
    })
}

fn sign(
    envelope: &mut Envelope,
    keys: &[PathBuf],
    passphrase: &Passphrase,
    output: &Output,
) -> Result<(), Failure> {
    for path in keys {
        envelope.sign(&keyfile::read(path, passphrase, output)?);
    }
    Ok(())
}

fn told(path: &Path, envelope: &Envelope, output: &mut Output) -> Result<(), Failure> {
    let signatures = envelope.signatures();
    if output.json() {
        let signers: Vec<_> = signatures
            .iter()
            .map(|signature| &signature.keyid)
            .collect();
        return output.value(&json!({ "ok": true, "output": path, "signers": signers }));
    }
    output.line(path.display())
}

/// The time that a document says it was made at.
pub(super) fn created(environment: &Environment) -> Result<Timestamp, Failure> {
    let seconds = match source_date_epoch(environment)? {
        Some(seconds) => seconds,
        None => {
            let since = SystemTime::now().duration_since(UNIX_EPOCH);
            let seconds = since.map(|since| since.as_secs()).unwrap_or_default();
            i64::try_from(seconds).unwrap_or(i64::MAX)
        }
    };
    Timestamp::from_unix(seconds).map_err(|refusal| failed(&refusal))
}

/// `KEY=WORDS`, of which both are there.
pub(super) fn pair<'a>(flag: &str, text: &'a str) -> Result<(&'a str, &'a str), Failure> {
    match text.split_once('=') {
        Some((key, words)) if !key.is_empty() && !words.is_empty() => Ok((key, words)),
        _ => Err(Failure::usage(
            "setting-invalid",
            format!("{flag} {text:?}: expected two parts with `=` between them"),
        )
        .hint(format!("write for instance {flag} DIGEST=\"why\""))),
    }
}

/// A refusal of what the author of a document gave.
pub(super) fn failed(refusal: &toolward_signing::Refusal) -> Failure {
    Failure::refused(refusal).of_kind(Kind::Failed)
}
