//! The `[[publisher]]` tables of `toolward.toml`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use toolward_fields::Position;

use super::checks::{MAX_PUBLISHERS, checked_publisher, insert};
use super::publisher::Publisher;
use crate::error::{ErrorKind, Refusal, io_failed};
use crate::id::{self, Prefix};
use crate::key::PublicKey;
use crate::text::visible;

#[derive(Deserialize)]
struct Raw {
    #[serde(default)]
    publisher: Vec<RawPublisher>,
    /// A typing error that would otherwise trust no publisher, silently.
    #[serde(default)]
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

pub(super) fn one() -> usize {
    1
}

pub(super) fn publishers(
    text: &str,
    read_file: &mut dyn FnMut(&str) -> std::io::Result<String>,
) -> Result<BTreeMap<String, Arc<Publisher>>, Refusal> {
    let raw: Raw = toml::from_str(text).map_err(|error| syntax(text, &error))?;
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

fn publisher(
    raw: RawPublisher,
    read_file: &mut dyn FnMut(&str) -> std::io::Result<String>,
) -> Result<Publisher, Refusal> {
    id::check(&raw.name).map_err(|refusal| refusal.at("publisher name"))?;
    let place = || format!("publisher {}", raw.name);
    let keys = read_keys(
        &format!("publisher {}", raw.name),
        &raw.keys,
        &raw.key_files,
        read_file,
    )?;
    let parse = |prefixes: &[String]| -> Result<Vec<Prefix>, Refusal> {
        let prefixes = prefixes.iter();
        prefixes
            .map(|prefix| Prefix::parse(prefix).map_err(|refusal| refusal.at(place())))
            .collect()
    };
    let (prefixes, actions) = (parse(&raw.prefixes)?, parse(&raw.actions)?);
    let mut publisher = checked_publisher(raw.name, keys, raw.threshold, prefixes)?;
    publisher.actions = actions;
    Ok(publisher)
}

/// The keys that are written out, then those of the files, in order.
pub(super) fn read_keys(
    place: &str,
    pems: &[String],
    files: &[String],
    read_file: &mut dyn FnMut(&str) -> std::io::Result<String>,
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

/// What is wrong with the text of the configuration, and where.
pub(super) fn syntax(text: &str, error: &toml::de::Error) -> Refusal {
    let refusal = Refusal::new(ErrorKind::TrustInvalid).found(visible(error.message()));
    match error.span() {
        Some(span) => {
            let Position { line, column } = Position::of_offset(text, span.start);
            refusal.at(format!("line {line}, column {column}"))
        }
        None => refusal,
    }
}
