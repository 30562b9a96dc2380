//! The tables of `toolward.toml` about trust: `[[publisher]]`, `[trust]`, `[trust.deny]` and
//! `[[channel]]`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use toolward_support::fields::Position;

use super::publisher::{MAX_PUBLISHERS, Publisher, check_keys, insert};
use crate::channel::Channel;
use crate::error::{ErrorKind, Refusal, io_failed};
use crate::id::{self, Prefix};
use crate::key::PublicKey;
use crate::revocation::known::Revocations;
use crate::signers::MAX_KEYS;
use crate::text::{quoted, visible};
use crate::timestamp::Mode;

/// The tables of `toolward.toml` about trust, which other readers of the file ignore.
pub const TABLES: &[&str] = &["publisher", "trust", "channel"];
/// How many channels there may be, and how many entries a deny list may have.
const MAX_CHANNELS: usize = 256;
const MAX_DENIED: usize = 65_536;
/// The longest maximum age, in days: about a hundred years.
const MAX_DAYS: u64 = 36_500;
const SECONDS_PER_DAY: u64 = 86_400;
const HINT: &str = "`[trust]` has `mode`, `max_age_days`, `require_provenance` and `[trust.deny]` with `keys` and `bundles`; \
    each `[[channel]]` has `name`, `source`, `keys` or `key_files`, and optionally `threshold`";

/// Reads a file that `key_files` names.
pub(super) type ReadFile<'f> = dyn FnMut(&str) -> std::io::Result<String> + 'f;

#[derive(Deserialize)]
struct RawPublishers {
    #[serde(default)]
    publisher: Vec<RawPublisher>,
    /// Catches a misspelt `publisher` table, which would otherwise silently trust no publisher.
    publishers: Option<toml::Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPublisher {
    name: String,
    #[serde(default)]
    keys: Vec<String>,
    #[serde(default)]
    key_files: Vec<String>,
    #[serde(default = "one")]
    threshold: usize,
    prefixes: Vec<String>,
    #[serde(default)]
    actions: Vec<String>,
}

fn one() -> usize {
    1
}

pub(super) fn publishers(
    text: &str,
    read_file: &mut ReadFile<'_>,
) -> Result<BTreeMap<String, Arc<Publisher>>, Refusal> {
    let raw: RawPublishers = toml::from_str(text).map_err(|error| syntax(text, &error))?;
    if raw.publishers.is_some() {
        return Err(Refusal::new(ErrorKind::TrustInvalid)
            .expected("one `[[publisher]]` table for each publisher")
            .found("`publishers`"));
    }
    if raw.publisher.len() > MAX_PUBLISHERS {
        return Err(Refusal::new(ErrorKind::TrustInvalid)
            .expected("at most 256 publishers")
            .found(raw.publisher.len().to_string()));
    }
    let mut publishers = BTreeMap::new();
    for raw in raw.publisher {
        insert(&mut publishers, publisher(raw, read_file)?)?;
    }
    Ok(publishers)
}

fn publisher(raw: RawPublisher, read_file: &mut ReadFile<'_>) -> Result<Publisher, Refusal> {
    id::check(&raw.name).map_err(|refusal| refusal.at("publisher name"))?;
    let place = format!("publisher {}", raw.name);
    let keys = read_keys(&place, &raw.keys, &raw.key_files, read_file)?;
    let parse = |prefixes: &[String]| -> Result<Vec<Prefix>, Refusal> {
        let prefixes = prefixes.iter().map(|prefix| Prefix::parse(prefix));
        let prefixes: Result<_, Refusal> = prefixes.collect();
        prefixes.map_err(|refusal| refusal.at(&*place))
    };
    let (prefixes, actions) = (parse(&raw.prefixes)?, parse(&raw.actions)?);
    let mut publisher = Publisher::checked(raw.name, keys, raw.threshold, prefixes)?;
    publisher.actions = actions;
    Ok(publisher)
}

/// The keys in the table, then the keys in the files, in order.
fn read_keys(
    place: &str,
    pems: &[String],
    files: &[String],
    read_file: &mut ReadFile<'_>,
) -> Result<Vec<PublicKey>, Refusal> {
    let mut keys = Vec::new();
    for pem in pems {
        keys.push(PublicKey::from_pem(pem.trim()).map_err(|refusal| refusal.at(place))?);
    }
    for name in files {
        let file = format!("{place}, key file {}", visible(name));
        let pem = read_file(name).map_err(|error| io_failed(file.clone(), error))?;
        keys.push(PublicKey::from_pem(pem.trim()).map_err(|refusal| refusal.at(file))?);
    }
    Ok(keys)
}

/// The refusal of a configuration that is not valid TOML, with the place.
fn syntax(text: &str, error: &toml::de::Error) -> Refusal {
    let refusal = Refusal::new(ErrorKind::TrustInvalid).found(visible(error.message()));
    match error.span() {
        Some(span) => {
            let Position { line, column } = Position::of_offset(text, span.start);
            refusal.at(format!("line {line}, column {column}"))
        }
        None => refusal,
    }
}

#[derive(Deserialize)]
struct Raw {
    #[serde(default)]
    trust: RawTrust,
    #[serde(default)]
    channel: Vec<RawChannel>,
    /// Catches a misspelt `channel` table, which would otherwise silently pin no key.
    channels: Option<toml::Value>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RawTrust {
    mode: Mode,
    max_age_days: Option<u64>,
    require_provenance: bool,
    deny: RawDeny,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RawDeny {
    keys: Vec<String>,
    bundles: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawChannel {
    name: String,
    source: String,
    #[serde(default)]
    keys: Vec<String>,
    #[serde(default)]
    key_files: Vec<String>,
    #[serde(default = "one")]
    threshold: usize,
}

/// How strict the operator is. By default, a bundle that has expired is refused, and there is no
/// maximum age, no demand for provenance, no denial and no channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TrustSettings {
    /// Whether a wrong age is refused or gives a warning.
    pub mode: Mode,
    /// How old a bundle may be.
    pub max_age: Option<Duration>,
    /// Whether a bundle must have provenance.
    pub require_provenance: bool,
    /// The keys and bundles that the operator denies. The caller adds the revocations of
    /// publishers.
    pub denied: Revocations,
    /// The channels, each name once.
    pub channels: Vec<Channel>,
}

impl TrustSettings {
    /// Reads `[trust]`, `[trust.deny]` and the `[[channel]]` tables of a `toolward.toml`; other
    /// tables are ignored. `read_file` reads the files that `key_files` names; the caller decides
    /// which paths it allows.
    ///
    /// ```toml
    /// [trust]
    /// mode = "enforce"            # or "audit": age and expiry only warn
    /// max_age_days = 90           # no limit if left out
    /// require_provenance = true   # false if left out
    ///
    /// [trust.deny]
    /// keys = ["cd841c22…"]        # key ids
    /// bundles = ["af1349b9…"]     # manifest digests
    ///
    /// [[channel]]
    /// name = "acme-stable"
    /// source = "https://example.com/acme-stable.channel.json"
    /// key_files = ["acme.pub.pem"]
    /// threshold = 1               # optional, 1 if left out
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::TrustInvalid`], [`ErrorKind::TrustExampleKey`], [`ErrorKind::Io`] if
    /// `read_file` fails, or the error of an invalid key or digest.
    pub fn from_toml_with(text: &str, read_file: &mut ReadFile<'_>) -> Result<Self, Refusal> {
        let raw: Raw = toml::from_str(text).map_err(|error| syntax(text, &error).hinted(HINT))?;
        if raw.channels.is_some() {
            return Err(invalid("channels").expected("one `[[channel]]` table for each channel"));
        }
        if raw.channel.len() > MAX_CHANNELS {
            return Err(invalid("channel")
                .expected(format!("at most {MAX_CHANNELS} channels"))
                .found(raw.channel.len().to_string()));
        }
        let mut channels: Vec<Channel> = Vec::with_capacity(raw.channel.len());
        for raw in raw.channel {
            let channel = channel(raw, read_file)?;
            if channels.iter().any(|other| other.name == channel.name) {
                return Err(invalid(&format!("channel {}", channel.name))
                    .expected("each channel once")
                    .found("the name twice"));
            }
            channels.push(channel);
        }
        let max_age = raw.trust.max_age_days.map(max_age).transpose();
        let max_age = max_age.map_err(|refusal| refusal.at("trust.max_age_days").hinted(HINT))?;
        Ok(Self {
            mode: raw.trust.mode,
            max_age,
            require_provenance: raw.trust.require_provenance,
            denied: denied(&raw.trust.deny)?,
            channels,
        })
    }

    /// The channel of this name.
    #[must_use]
    pub fn channel(&self, name: &str) -> Option<&Channel> {
        self.channels.iter().find(|channel| channel.name == name)
    }

    /// Warnings about these settings for people, one sentence each.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        match self.mode {
            Mode::Enforce => Vec::new(),
            Mode::Audit => vec![AUDIT_WARNING.to_owned()],
        }
    }
}

fn invalid(place: &str) -> Refusal {
    Refusal::new(ErrorKind::TrustInvalid).at(place).hinted(HINT)
}

/// A maximum age in days.
///
/// # Errors
/// [`ErrorKind::TrustInvalid`] for less than a day or more than a hundred years.
pub fn max_age(days: u64) -> Result<Duration, Refusal> {
    if (1..=MAX_DAYS).contains(&days) {
        return Ok(Duration::from_secs(days.saturating_mul(SECONDS_PER_DAY)));
    }
    Err(Refusal::new(ErrorKind::TrustInvalid)
        .expected(format!("a maximum age of 1 to {MAX_DAYS} days"))
        .found(days.to_string()))
}

/// The warning about `mode = "audit"`.
const AUDIT_WARNING: &str =
    "`mode = \"audit\"` in `[trust]`: what has expired or is too old is used, with a warning";

fn denied(raw: &RawDeny) -> Result<Revocations, Refusal> {
    for (place, entries) in [("keys", &raw.keys), ("bundles", &raw.bundles)] {
        if entries.len() > MAX_DENIED {
            return Err(Refusal::new(ErrorKind::TrustInvalid)
                .at(format!("trust.deny.{place}"))
                .expected(format!("at most {MAX_DENIED} entries"))
                .found(entries.len().to_string()));
        }
    }
    let at = |place: &'static str| move |refusal: Refusal| refusal.at(place);
    let mut denied = Revocations::none();
    for key in &raw.keys {
        denied.deny_key(key.parse().map_err(at("trust.deny.keys"))?);
    }
    for digest in &raw.bundles {
        denied.deny_bundle(digest.parse().map_err(at("trust.deny.bundles"))?);
    }
    Ok(denied)
}

fn channel(raw: RawChannel, read_file: &mut ReadFile<'_>) -> Result<Channel, Refusal> {
    id::check(&raw.name).map_err(|refusal| refusal.at("channel name"))?;
    let place = format!("channel {}", raw.name);
    if raw.source.is_empty() || raw.source.chars().any(crate::text::is_hidden) {
        return Err(invalid(&place)
            .expected("where its index is")
            .found(quoted(&raw.source)));
    }
    if raw.keys.len().saturating_add(raw.key_files.len()) > MAX_KEYS {
        return Err(invalid(&place).expected(format!("at most {MAX_KEYS} keys")));
    }
    let keys = read_keys(&place, &raw.keys, &raw.key_files, read_file)?;
    check_keys(&place, &keys, raw.threshold)?;
    Ok(Channel {
        name: raw.name,
        source: raw.source,
        keys,
        threshold: raw.threshold,
    })
}
