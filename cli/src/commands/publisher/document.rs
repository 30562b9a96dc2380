//! Publisher documents: the first, and the next after one.

use std::path::PathBuf;

use clap::Args;
use toolward_author::documents::{self, Document};
use toolward_operator::config::read_text;
use toolward_signing::key::{KeyId, PublicKey};
use toolward_signing::publisher::{PublisherDocument, Reset};
use toolward_signing::timestamp::Timestamp;

use super::signing::{Writing, created, is_name, pair, parsed, read_earlier};
use crate::environment::Environment;
use crate::failure::{Code, Failure, OperatorCode, Result, invalid, invalid_file};
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct New {
    /// The publisher's name, as its bundles have it
    name: String,

    /// A public key of the publisher's (PEM file; may be given again)
    #[arg(long, value_name = "PEM", required = true)]
    public_key: Vec<PathBuf>,

    /// How many distinct keys must sign
    #[arg(long, default_value_t = 1)]
    threshold: usize,

    /// When the document stops being valid, such as 2027-06-30T00:00:00Z
    #[arg(long, value_name = "TIME")]
    expires: Option<String>,

    #[command(flatten)]
    writing: Writing,
}

impl New {
    pub(super) fn run(&self, environment: &Environment, output: &mut Output) -> Result {
        is_name(&self.name)?;
        let document = PublisherDocument {
            name: self.name.clone(),
            version: 1,
            created: created(environment)?,
            expires: time(self.expires.as_deref())?,
            threshold: self.threshold,
            keys: keys(&self.public_key)?,
            revoked_keys: Vec::new(),
            resets: Vec::new(),
        };
        write(&document, &self.writing, output)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Next {
    /// The document that counts now
    current: PathBuf,

    /// Add this public key (PEM file; may be given again)
    #[arg(long, value_name = "PEM")]
    add: Vec<PathBuf>,

    /// Drop the key with this id: what it signed counts no more (may be given
    /// again)
    #[arg(long, value_name = "KEYID")]
    drop: Vec<String>,

    /// Drop and revoke the key with this id, or revoke one that was dropped
    /// before (may be given again)
    #[arg(long, value_name = "KEYID=WHY")]
    revoke: Vec<String>,

    /// After a theft: the last release that was yours, as id, sequence and
    /// manifest digest (may be given again)
    #[arg(long, value_name = "ID=SEQUENCE:DIGEST")]
    reset: Vec<String>,

    /// How many distinct keys must sign from now on [default: as before]
    #[arg(long)]
    threshold: Option<usize>,

    /// When the document stops being valid, such as 2027-06-30T00:00:00Z
    #[arg(long, value_name = "TIME")]
    expires: Option<String>,

    #[command(flatten)]
    writing: Writing,
}

impl Next {
    pub(super) fn run(&self, environment: &Environment, output: &mut Output) -> Result {
        let pick = |document| match document {
            Document::Publisher(current) => Some(current),
            _ => None,
        };
        let hint = "name the document that `publisher new` or `publisher next` made";
        let current = read_earlier(&self.current, pick, "a publisher document", hint)?;
        let mut document = documents::next(current, created(environment)?);
        document.expires = time(self.expires.as_deref())?;
        document.threshold = self.threshold.unwrap_or(document.threshold);
        for text in &self.drop {
            let id: KeyId = parsed(text)?;
            if !documents::drop_key(&mut document, id) {
                let message = format!("the document has no key {id}");
                return Err(Failure::usage(Code::KeyMissing, message)
                    .hint("`toolward publisher show` lists its keys"));
            }
        }
        for text in &self.revoke {
            let (key, reason) = pair("--revoke", text)?;
            documents::revoke_key(&mut document, parsed(key)?, reason);
        }
        document.keys.extend(keys(&self.add)?);
        for text in &self.reset {
            document.resets.push(reset(text)?);
        }
        write(&document, &self.writing, output)?;
        output.note("must be signed by the threshold of the earlier document and by its own: `toolward publisher sign` adds a signature");
        Ok(())
    }
}

fn write(document: &PublisherDocument, writing: &Writing, output: &mut Output) -> Result {
    let envelope = document.to_envelope().map_err(invalid)?;
    writing.write(envelope, output)?;
    output.note(format!("fingerprint {}", document.fingerprint()));
    Ok(())
}

fn keys(paths: &[PathBuf]) -> Result<Vec<PublicKey>> {
    let keys = paths.iter().map(|path| {
        PublicKey::from_pem(&read_text(path)?).map_err(|refusal| invalid_file(path, refusal))
    });
    keys.collect()
}

fn reset(text: &str) -> Result<Reset> {
    let (id, rest) = pair("--reset", text)?;
    let wrong = || {
        Failure::usage(OperatorCode::SettingInvalid, format!("--reset {text:?}"))
            .hint("write --reset ID=SEQUENCE:DIGEST, as `toolward inspect` shows them")
    };
    let (sequence, digest) = rest.split_once(':').ok_or_else(wrong)?;
    Ok(Reset {
        id: id.to_owned(),
        sequence: sequence.parse().map_err(|_| wrong())?,
        digest: parsed(digest)?,
    })
}

pub(super) fn time(text: Option<&str>) -> Result<Option<Timestamp>> {
    let parsed = text.map(Timestamp::parse).transpose();
    parsed.map_err(|refusal| Failure::usage(refusal.kind(), refusal))
}
