//! Signatures on bundles and on documents. Documents are read, shown and written in their
//! envelopes.

use std::io::Read as _;

use toolward_author::Sealed;
use toolward_author::documents::Document;
use toolward_signing::envelope::Envelope;
use toolward_signing::publisher::RevokedKey;
use toolward_signing::timestamp::Timestamp;
use toolward_signing::{Refusal, channel};

use super::keys::{self, Passphrase};
use crate::commands::pack::is_archive;
use crate::prelude::*;

/// Where a new document goes, and who signs it.
#[derive(Debug, Args)]
pub(super) struct Writing {
    /// Where the document goes; nothing is overwritten
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,

    /// Sign the document with this private key (PEM file; may be given again)
    ///
    /// Others add their signatures with `publisher sign`.
    #[arg(long, value_name = "PEM", required = true)]
    key: Vec<PathBuf>,

    #[command(flatten)]
    passphrase: Passphrase,
}

impl Writing {
    /// Signs and writes the document.
    pub(super) fn write(&self, mut envelope: Envelope, context: &Context) -> Result {
        if self.output.symlink_metadata().is_ok() {
            return Err(file::exists(&self.output));
        }
        let bytes = sign(&mut envelope, &self.key, &self.passphrase, context)?;
        file::write_new(&self.output, &bytes)?;
        told(&self.output, &envelope, context)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Sign {
    /// A packed bundle (a directory or an archive), or a document that `toolward publisher` made
    file: PathBuf,

    /// The private key to sign with (PEM file; may be given again)
    #[arg(long, value_name = "PEM", required = true)]
    key: Vec<PathBuf>,

    /// Write the signed bundle or document to OUT, instead of changing FILE
    ///
    /// A bundle becomes an archive if OUT ends in .toolbundle, and otherwise a directory.
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,

    #[command(flatten)]
    passphrase: Passphrase,
}

impl Sign {
    pub(super) fn run(&self, context: &Context) -> Result {
        match is_document(&self.file) {
            true => self.document(context),
            false => self.bundle(context),
        }
    }

    fn document(&self, context: &Context) -> Result {
        // Only a document that hosts can read is signed.
        let (_, mut envelope) = read(&self.file)?;
        let bytes = sign(&mut envelope, &self.key, &self.passphrase, context)?;
        let place = self.output.as_ref().unwrap_or(&self.file);
        match &self.output {
            Some(place) => file::write_new(place, &bytes)?,
            None => file::replace(place, &bytes)?,
        }
        told(place, &envelope, context)
    }

    fn bundle(&self, context: &Context) -> Result {
        let mut sealed = Sealed::read(&self.file).map_err(packed)?;
        let manifest = sealed.manifest().map_err(authored)?;
        let mut signers = Vec::new();
        for path in &self.key {
            let key = keys::read(path, &self.passphrase, context)?;
            signers.push(sealed.sign(&key).map_err(packed)?);
        }
        let place = self.output.as_ref().unwrap_or(&self.file);
        let written = match &self.output {
            None if self.file.is_dir() => sealed.write_envelope(&self.file),
            Some(place) if !is_archive(place) => sealed.write_directory(place),
            _ => sealed.write_archive(place),
        };
        written.map_err(authored)?;
        let (id, version) = (&manifest.id, &manifest.version);
        let value = json!({
            "ok": true,
            "output": place.display().to_string(),
            "id": id,
            "version": version.to_string(),
            "signers": signers,
            "signatures": sealed.signatures(),
        });
        context.result(&value, place.display())?;
        for signer in &signers {
            context.note(format!("{id} {version} signed with key {signer}"));
        }
        Ok(())
    }
}

/// Whether a file is a document, or meant to be one. A document is JSON, and a bundle is not.
pub(super) fn is_document(path: &Path) -> bool {
    let named_so = path.extension().is_some_and(|ending| ending == "json");
    let starts_so = || {
        let mut first = [0];
        let opened = toolward_support::files::open_regular(path);
        opened.is_ok_and(|mut file| file.read_exact(&mut first).is_ok()) && first == *b"{"
    };
    path.is_file() && (named_so || starts_so())
}

/// Reads the envelope in a file, and returns the bytes of the file as well.
pub(super) fn read_envelope(path: &Path) -> Result<(Result<Envelope, Refusal>, Vec<u8>)> {
    let bytes = file::read(path, channel::MAX_ENVELOPE_BYTES)?;
    let envelope = Envelope::parse_up_to(&bytes, channel::MAX_ENVELOPE_BYTES);
    Ok((envelope, bytes))
}

/// Reads a document of any kind, and its envelope. Does not check the signatures.
fn read(path: &Path) -> Result<(Document, Envelope)> {
    let (envelope, _) = read_envelope(path)?;
    let envelope = envelope.map_err(|refusal| invalid_file(path, refusal))?;
    let Some(document) = Document::read(&envelope).map_err(invalid)? else {
        let other = visible_line(envelope.payload_type(), 100);
        let message = format!("expected a publisher's document, found {other}");
        return Err(Failure::failed(Code::DocumentUnknown, message)
            .hint("name a file that `toolward publisher` made"));
    };
    Ok((document, envelope))
}

/// Shows the content of a document. Its signatures are not verified.
pub(super) fn show(path: &Path, context: &Context) -> Result {
    let (document, envelope) = read(path)?;
    let revoked = |keys: &[RevokedKey]| {
        let keys = keys.iter();
        let keys = keys.map(|revoked| json!({ "key": revoked.key_id, "reason": revoked.reason }));
        keys.collect::<Vec<_>>()
    };
    let (verifying, mut shown) = match document {
        Document::Publisher(document) => (
            "`toolward trust add`",
            json!({
                "kind": "publisher document",
                "name": document.name,
                "version": document.version,
                "created": document.created.to_string(),
                "expires": document.expires.map(|time| time.to_string()),
                "threshold": document.threshold,
                "keys": document.keys.iter().map(|key| key.key_id().to_string()).collect::<Vec<_>>(),
                "revoked_keys": revoked(&document.revoked_keys),
                "resets": document.resets.iter().map(|reset| json!({
                    "id": reset.id, "sequence": reset.sequence, "digest": reset.digest,
                })).collect::<Vec<_>>(),
                "fingerprint": document.fingerprint().to_string(),
            }),
        ),
        Document::Revocations(list) => (
            "`toolward trust update NAME --revocations`",
            json!({
                "kind": "revocation list",
                "name": list.publisher,
                "version": list.version,
                "created": list.created.to_string(),
                "expires": list.expires.map(|time| time.to_string()),
                "revoked_keys": revoked(&list.keys),
                "revoked_bundles": list.bundles.iter().map(|revoked| json!({
                    "digest": revoked.digest, "id": revoked.id, "reason": revoked.reason,
                })).collect::<Vec<_>>(),
            }),
        ),
        Document::Channel(index) => (
            "each command that uses the channel",
            json!({
                "kind": "channel index",
                "name": index.name,
                "version": index.version,
                "created": index.created.to_string(),
                "expires": index.expires.to_string(),
                "bundles": index.bundles.iter().map(|listed| json!({
                    "id": listed.id, "version": listed.version.to_string(), "sequence": listed.sequence,
                    "publisher": listed.publisher, "digest": listed.digest,
                })).collect::<Vec<_>>(),
            }),
        ),
    };
    if let Value::Object(fields) = &mut shown {
        fields.insert("claimed_signers".to_owned(), json!(signers(&envelope)));
    }
    if context.json() {
        return context.value(&shown);
    }
    for (name, value) in shown.as_object().into_iter().flatten() {
        let name = name.replace('_', " ");
        match value {
            Value::Null => {}
            Value::Array(values) if values.is_empty() => context.line(format!("{name:16} none"))?,
            Value::Array(values) => {
                for value in values {
                    context.line(format!("{name:16} {}", words(value)))?;
                }
            }
            value => context.line(format!("{name:16} {}", words(value)))?,
        }
    }
    context.note(format!(
        "who signed this was not verified: {verifying} does so"
    ));
    Ok(())
}

fn words(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Object(fields) => {
            let parts = fields.values().filter(|value| !value.is_null());
            parts.map(words).collect::<Vec<_>>().join("  ")
        }
        other => other.to_string(),
    };
    visible_line(&text, 400)
}

/// Reads the document that a new document will follow. `pick` returns `None` for any other
/// document.
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

/// Signs an envelope, and returns its bytes.
fn sign(
    envelope: &mut Envelope,
    keys: &[PathBuf],
    passphrase: &Passphrase,
    context: &Context,
) -> Result<Vec<u8>> {
    for path in keys {
        envelope.sign(&keys::read(path, passphrase, context)?);
    }
    envelope.to_bytes().map_err(invalid)
}

fn told(path: &Path, envelope: &Envelope, context: &Context) -> Result {
    let value =
        json!({ "ok": true, "output": path.display().to_string(), "signers": signers(envelope) });
    context.result(&value, path.display())
}

/// The ids of the keys that are claimed to have signed. They are not verified.
fn signers(envelope: &Envelope) -> Vec<&Option<String>> {
    let signatures = envelope.signatures().iter();
    signatures.map(|signature| &signature.keyid).collect()
}

/// Refuses a file's name in place of a publisher's name, since the document would be signed for a
/// publisher with the file's name.
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
    let name = visible_line(name, 200);
    let message = format!("expected a publisher's name, found the file {name}");
    Err(Failure::usage(OperatorCode::SettingInvalid, message).hint(hint))
}

/// Returns the time of creation for a document.
pub(super) fn created(context: &Context) -> Result<Timestamp> {
    Timestamp::from_unix(context.created()?).map_err(invalid)
}

/// Parses `KEY=WORDS`. Neither may be empty.
pub(super) fn pair<'a>(flag: &str, text: &'a str) -> Result<(&'a str, &'a str)> {
    match text.split_once('=') {
        Some((key, words)) if !key.is_empty() && !words.is_empty() => Ok((key, words)),
        _ => {
            let message = format!("{flag} {text:?}: expected two parts with `=` between them");
            Err(Failure::usage(OperatorCode::SettingInvalid, message)
                .hint(format!("write for instance {flag} DIGEST=\"why\"")))
        }
    }
}

/// Parses a key id or digest in a flag.
pub(super) fn parsed<T>(text: &str) -> Result<T>
where
    T: std::str::FromStr<Err = Refusal>,
{
    text.parse().map_err(invalid)
}
