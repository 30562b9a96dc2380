//! Publisher documents: the first, and the next after one.

use std::path::PathBuf;

use clap::Args;
use toolward_signing::key::{KeyId, PublicKey};
use toolward_signing::publisher::{PublisherDocument, Reset, RevokedKey};
use toolward_signing::timestamp::Timestamp;

use super::signing::{Document, Writing, created, failed, pair, parsed, read};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::output::Output;
use toolward_operator::config::read_text;

#[derive(Debug, Args)]
pub(super) struct New {
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
    pub(super) fn run(
        &self,
        environment: &Environment,
        output: &mut Output,
    ) -> Result<(), Failure> {
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
pub(super) struct Next {
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
    pub(super) fn run(
        &self,
        environment: &Environment,
        output: &mut Output,
    ) -> Result<(), Failure> {
        let Document::Publisher(current) = parsed(&read(&self.current)?)? else {
            return Err(Failure::usage(
                "document-unknown",
                format!("{}: expected a publisher document", self.current.display()),
            )
            .hint("name the document that `publisher new` or `publisher next` made"));
        };
        let mut document = PublisherDocument {
            version: current.version.saturating_add(1),
            created: created(environment)?,
            expires: time(self.expires.as_deref())?,
            threshold: self.threshold.unwrap_or(current.threshold),
            resets: Vec::new(),
            ..current
        };
        for text in &self.drop {
            drop_key(&mut document, text)?;
        }
        for text in &self.revoke {
            let (key, reason) = pair("--revoke", text)?;
            // It may have been dropped before: who has no other key to sign with
            // drops it first, and revokes it in the document after.
            let key_id: KeyId = key.parse().map_err(|refusal| failed(&refusal))?;
            document.keys.retain(|key| key.key_id() != key_id);
            document.revoked_keys.push(RevokedKey {
                key_id,
                since: None,
                reason: reason.to_owned(),
            });
        }
        document.keys.extend(keys(&self.add)?);
        for text in &self.reset {
            document.resets.push(reset(text)?);
        }
        write(&document, &self.writing, output)?;
        output.note("the thresholds of the document before and of this one must sign it");
        Ok(())
    }
}

fn write(
    document: &PublisherDocument,
    writing: &Writing,
    output: &mut Output,
) -> Result<(), Failure> {
    let envelope = document.to_envelope().map_err(|refusal| failed(&refusal))?;
    writing.write(envelope, output)?;
    output.note(format!("fingerprint {}", document.fingerprint()));
    Ok(())
}

fn drop_key(document: &mut PublisherDocument, text: &str) -> Result<(), Failure> {
    let id: KeyId = text.parse().map_err(|refusal| failed(&refusal))?;
    let before = document.keys.len();
    document.keys.retain(|key| key.key_id() != id);
    if document.keys.len() == before {
        return Err(
            Failure::usage("key-missing", format!("the document has no key {id}"))
                .hint("`toolward publisher show` lists its keys"),
        );
    }
    Ok(())
}

fn keys(paths: &[PathBuf]) -> Result<Vec<PublicKey>, Failure> {
    paths
        .iter()
        .map(|path| {
            PublicKey::from_pem(&read_text(path)?).map_err(|refusal| {
                let failure = failed(&refusal);
                let message = format!("{}: {}", path.display(), failure.message);
                failure.saying(message)
            })
        })
        .collect()
}

fn reset(text: &str) -> Result<Reset, Failure> {
    let (id, rest) = pair("--reset", text)?;
    let wrong = || {
        Failure::usage("setting-invalid", format!("--reset {text:?}"))
            .hint("write --reset ID=SEQUENCE:DIGEST, as `toolward inspect` shows them")
    };
    let (sequence, digest) = rest.split_once(':').ok_or_else(wrong)?;
    Ok(Reset {
        id: id.to_owned(),
        sequence: sequence.parse().map_err(|_| wrong())?,
        digest: digest.parse().map_err(|refusal| failed(&refusal))?,
    })
}

pub(super) fn time(text: Option<&str>) -> Result<Option<Timestamp>, Failure> {
    let parsed = text.map(Timestamp::parse).transpose();
    parsed.map_err(|refusal| Failure::usage(refusal.code(), &refusal))
}
