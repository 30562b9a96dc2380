//! Documents in their envelopes: read, signed, written.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use toolward_author::documents::Document;
use toolward_bundle::text::visible_line;
use toolward_operator::file;
use toolward_signing::channel;
use toolward_signing::envelope::Envelope;
use toolward_signing::timestamp::Timestamp;

use crate::environment::Environment;
use crate::failure::{Code, Failure, Kind, OperatorCode, Result, invalid, invalid_file};
use crate::keyfile::{self, Passphrase};
use crate::output::Output;

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
    pub(super) fn write(&self, mut envelope: Envelope, output: &mut Output) -> Result {
        if self.output.symlink_metadata().is_ok() {
            return Err(file::exists(&self.output));
        }
        let bytes = sign(&mut envelope, &self.key, &self.passphrase, output)?;
        file::write_new(&self.output, &bytes)?;
        told(&self.output, &envelope, output)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Sign {
    /// A publisher document, a list of revocations or the index of a channel
    file: PathBuf,

    /// The private key to sign with (PEM file; may be given again)
    #[arg(long, value_name = "PEM", required = true)]
    key: Vec<PathBuf>,

    #[command(flatten)]
    passphrase: Passphrase,
}

impl Sign {
    pub(super) fn run(&self, output: &mut Output) -> Result {
        // What is signed is a document that hosts can read.
        let (_, mut envelope) = read(&self.file)?;
        let bytes = sign(&mut envelope, &self.key, &self.passphrase, output)?;
        file::replace(&self.file, &bytes)?;
        told(&self.file, &envelope, output)
    }
}

/// Reads any of the documents with its envelope, without checking its signatures.
pub(super) fn read(path: &Path) -> Result<(Document, Envelope)> {
    let bytes = file::read(path, channel::MAX_ENVELOPE_BYTES)?;
    let envelope = Envelope::parse_up_to(&bytes, channel::MAX_ENVELOPE_BYTES)
        .map_err(|refusal| invalid_file(path, refusal))?;
    match Document::read(&envelope).map_err(invalid)? {
        Some(document) => Ok((document, envelope)),
        None => {
            let other = visible_line(envelope.payload_type(), 100);
            let message = format!("expected a publisher's document, found {other}");
            Err(Failure::new(Kind::Failed, Code::DocumentUnknown, message).hint(
                "name a file that `toolward publisher` made; bundles are signed by `toolward sign`",
            ))
        }
    }
}

/// Reads the document that comes before a new one. `pick` takes the one that is expected.
pub(super) fn read_earlier<T>(
    path: &Path,
    pick: impl FnOnce(Document) -> Option<T>,
    expected: &str,
    hint: &str,
) -> Result<T> {
    pick(read(path)?.0).ok_or_else(|| {
        let message = format!("{}: expected {expected}", path.display());
        Failure::usage(Code::DocumentUnknown, message).hint(hint)
    })
}

/// Signs an envelope, and gives its bytes.
fn sign(
    envelope: &mut Envelope,
    keys: &[PathBuf],
    passphrase: &Passphrase,
    output: &Output,
) -> Result<Vec<u8>> {
    for path in keys {
        envelope.sign(&keyfile::read(path, passphrase, output)?);
    }
    envelope.to_bytes().map_err(invalid)
}

fn told(path: &Path, envelope: &Envelope, output: &mut Output) -> Result {
    let signatures = envelope.signatures().iter();
    let signers: Vec<_> = signatures.map(|signature| &signature.keyid).collect();
    output.result(
        &json!({ "ok": true, "output": path.display().to_string(), "signers": signers }),
        path.display(),
    )
}

/// Refuses a file in place of a publisher's name: a document would be signed for a publisher of the file's name.
pub(super) fn is_name(name: &str) -> Result {
    let path = Path::new(name);
    let is_file = path.is_file() && path.extension().is_some();
    if !is_file && !name.contains('/') {
        return Ok(());
    }
    let named = match read(path) {
        Ok((Document::Publisher(document), _)) => Some(document.name),
        Ok((Document::Revocations(list), _)) => Some(list.publisher),
        _ => None,
    };
    let hint = match named {
        Some(named) => format!("its publisher is {}", visible_line(&named, 200)),
        None => "give the name that the publisher's document and bundles have".to_owned(),
    };
    let message = format!(
        "expected a publisher's name, found the file {}",
        visible_line(name, 200)
    );
    Err(Failure::usage(OperatorCode::SettingInvalid, message).hint(hint))
}

/// The time that a document says it was made at.
pub(super) fn created(environment: &Environment) -> Result<Timestamp> {
    Timestamp::from_unix(environment.created()?).map_err(invalid)
}

/// `KEY=WORDS`, of which both are there.
pub(super) fn pair<'a>(flag: &str, text: &'a str) -> Result<(&'a str, &'a str)> {
    match text.split_once('=') {
        Some((key, words)) if !key.is_empty() && !words.is_empty() => Ok((key, words)),
        _ => Err(Failure::usage(
            OperatorCode::SettingInvalid,
            format!("{flag} {text:?}: expected two parts with `=` between them"),
        )
        .hint(format!("write for instance {flag} DIGEST=\"why\""))),
    }
}

/// A key id or digest in a flag.
pub(super) fn parsed<T>(text: &str) -> Result<T>
where
    T: std::str::FromStr<Err = toolward_signing::Refusal>,
{
    text.parse().map_err(invalid)
}
