//! The documents that a publisher signs in addition to bundles: its keys (the first document, and
//! each next one), its revocations, and the index of a channel.

use std::time::Duration;

use toolward_author::documents::{self, Document};
use toolward_operator::config::read_text;
use toolward_signing::channel::{self, ChannelIndex};
use toolward_signing::key::{KeyId, PublicKey};
use toolward_signing::publisher::{PublisherDocument, Reset};
use toolward_signing::revocation::{RevocationList, RevokedBundle};
use toolward_signing::timestamp::Timestamp;

use super::signing::{Writing, created, is_name, pair, parsed, read_earlier};
use crate::prelude::*;

const SECONDS_PER_DAY: u64 = 24 * 60 * 60;

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
    pub(super) fn run(&self, context: &Context) -> Result {
        is_name(&self.name)?;
        let document = PublisherDocument {
            name: self.name.clone(),
            version: 1,
            created: created(context)?,
            expires: time(self.expires.as_deref())?,
            threshold: self.threshold,
            keys: keys(&self.public_key)?,
            revoked_keys: Vec::new(),
            resets: Vec::new(),
        };
        write(&document, &self.writing, context)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Next {
    /// The publisher's current document
    current: PathBuf,

    /// Add this public key (PEM file; may be given again)
    #[arg(long, value_name = "PEM")]
    add: Vec<PathBuf>,

    /// Drop the key with this id: its signatures no longer count
    ///
    /// May be given again.
    #[arg(long, value_name = "KEYID")]
    drop: Vec<String>,

    /// Drop and revoke the key with this id
    ///
    /// Also revokes a key that was dropped earlier. May be given again.
    #[arg(long, value_name = "KEYID=WHY")]
    revoke: Vec<String>,

    /// After the theft of a key, return to this release, the last one that you signed yourself
    ///
    /// The id, sequence and manifest digest of the release. May be given again.
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
    pub(super) fn run(&self, context: &Context) -> Result {
        let pick = |document| match document {
            Document::Publisher(current) => Some(current),
            _ => None,
        };
        let hint = "name the document that `publisher new` or `publisher next` made";
        let current = read_earlier(&self.current, pick, "a publisher document", hint)?;
        let mut document = documents::next(current, created(context)?);
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
        write(&document, &self.writing, context)?;
        context.note("must be signed by the threshold of the earlier document and by its own: `toolward publisher sign` adds a signature");
        Ok(())
    }
}

#[derive(Debug, Args)]
pub(crate) struct Revoke {
    /// The publisher's name
    name: String,

    /// The previous list: all that it revokes stays revoked
    #[arg(long, value_name = "FILE")]
    after: Option<PathBuf>,

    /// Revoke the bundle with this manifest digest (may be given again)
    #[arg(long, value_name = "DIGEST=WHY")]
    bundle: Vec<String>,

    /// Revoke the key with this id (may be given again)
    #[arg(long, value_name = "KEYID=WHY")]
    revoke_key: Vec<String>,

    /// When a newer list is due, such as 2027-06-30T00:00:00Z
    #[arg(long, value_name = "TIME")]
    expires: Option<String>,

    #[command(flatten)]
    writing: Writing,
}

impl Revoke {
    pub(super) fn run(&self, context: &Context) -> Result {
        is_name(&self.name)?;
        let mut list = RevocationList {
            publisher: self.name.clone(),
            version: 1,
            created: created(context)?,
            expires: time(self.expires.as_deref())?,
            keys: Vec::new(),
            bundles: Vec::new(),
        };
        if let Some(path) = &self.after {
            let pick = |document| match document {
                Document::Revocations(list) if list.publisher == self.name => Some(list),
                _ => None,
            };
            let expected = format!("a list of {}", self.name);
            let hint = "name the list that `publisher revoke` made last";
            let before = read_earlier(path, pick, &expected, hint)?;
            list.version = before.version.saturating_add(1);
            list.keys = before.keys;
            list.bundles = before.bundles;
        }
        for text in &self.bundle {
            let (digest, reason) = pair("--bundle", text)?;
            list.bundles.push(RevokedBundle {
                digest: parsed(digest)?,
                id: None,
                reason: reason.to_owned(),
            });
        }
        for text in &self.revoke_key {
            let (key, reason) = pair("--revoke-key", text)?;
            list.keys.push(documents::revoked(parsed(key)?, reason));
        }
        let envelope = list.to_envelope().map_err(invalid)?;
        self.writing.write(envelope, context)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Index {
    /// The channel's name
    name: String,

    /// A signed bundle that is current (may be given again)
    #[arg(long, value_name = "PATH", required = true)]
    bundle: Vec<PathBuf>,

    /// The previous index: its bundles that are not named again stay unchanged
    #[arg(long, value_name = "FILE")]
    after: Option<PathBuf>,

    /// For how many days the index is valid, at most 90
    #[arg(long, default_value_t = 7)]
    days: u64,

    #[command(flatten)]
    trust: Flagged<Trust>,

    #[command(flatten)]
    writing: Writing,
}

impl Index {
    pub(super) fn run(&self, context: &Context) -> Result {
        let created = created(context)?;
        let validity = Duration::from_secs(self.days.saturating_mul(SECONDS_PER_DAY));
        if validity.is_zero() || validity > channel::MAX_VALIDITY {
            let message = format!("--days {}: expected 1 to 90", self.days);
            return Err(Failure::usage(OperatorCode::SettingInvalid, message)
                .hint("sign a new index more often instead"));
        }
        let expires = created.unix().saturating_add_unsigned(validity.as_secs());
        let mut index = ChannelIndex {
            name: self.name.clone(),
            version: 1,
            created,
            expires: Timestamp::from_unix(expires).map_err(invalid)?,
            bundles: Vec::new(),
        };
        if let Some(path) = &self.after {
            let pick = |document| match document {
                Document::Channel(index) if index.name == self.name => Some(index),
                _ => None,
            };
            let expected = format!("an index of {}", self.name);
            let hint = "name the index that `publisher channel` made last";
            let before = read_earlier(path, pick, &expected, hint)?;
            index.version = before.version.saturating_add(1);
            index.bundles = before.bundles;
        }
        for path in &self.bundle {
            let store = StoreLocation::default();
            let content = self.trust.content(path, &store, context)?;
            documents::list(&mut index, &content);
        }
        let envelope = index.to_envelope().map_err(invalid)?;
        self.writing.write(envelope, context)
    }
}

fn write(document: &PublisherDocument, writing: &Writing, context: &Context) -> Result {
    let envelope = document.to_envelope().map_err(invalid)?;
    writing.write(envelope, context)?;
    context.note(format!("fingerprint {}", document.fingerprint()));
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

fn time(text: Option<&str>) -> Result<Option<Timestamp>> {
    let parsed = text.map(Timestamp::parse).transpose();
    parsed.map_err(|refusal| Failure::usage(refusal.kind(), refusal))
}
