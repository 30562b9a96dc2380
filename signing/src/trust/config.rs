//! The `[[publisher]]` tables of `toolward.toml`.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::Deserialize;

use super::{MAX_PUBLISHERS, Publisher, checked_publisher};
use crate::id::{self, Prefix};
use crate::key::PublicKey;
use crate::refusal::{Reason, Refusal};
use crate::text::visible;

#[derive(Deserialize)]
struct Raw {
    #[serde(default)]
    publisher: Vec<RawPublisher>,
    /// A slip that would otherwise trust nobody, in silence.
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
}

fn one() -> usize {
    1
}

pub(super) fn publishers(
    text: &str,
    read_file: &mut dyn FnMut(&str) -> std::io::Result<String>,
) -> Result<BTreeMap<String, Arc<Publisher>>, Refusal> {
    let raw: Raw = toml::from_str(text).map_err(|error| {
        let refusal = Refusal::new(Reason::TrustInvalid).found(visible(error.message()));
        match error.span() {
            Some(span) => {
                let (line, column) = crate::text::position(text.as_bytes(), span.start);
                refusal.at(format!("line {line}, column {column}"))
            }
            None => refusal,
        }
    })?;
    if raw.publishers.is_some() {
        return Err(Refusal::new(Reason::TrustInvalid)
            .expected("one `[[publisher]]` table for each publisher")
            .found("`publishers`"));
    }
    if raw.publisher.len() > MAX_PUBLISHERS {
        return Err(Refusal::new(Reason::TrustInvalid)
            .expected("at most 256 publishers")
            .found(raw.publisher.len().to_string()));
    }
    let mut publishers = BTreeMap::new();
    let mut owners: HashMap<_, String> = HashMap::new();
    for raw in raw.publisher {
        let publisher = publisher(raw, read_file)?;
        let place = || format!("publisher {}", publisher.name());
        for key in publisher.keys() {
            if let Some(owner) = owners.insert(key.key_id(), publisher.name().to_owned()) {
                return Err(Refusal::new(Reason::TrustInvalid)
                    .at(place())
                    .expected("keys that belong to one publisher each")
                    .found(format!(
                        "key {}, which publisher {owner} has, too",
                        key.key_id()
                    )));
            }
        }
        if publishers.contains_key(publisher.name()) {
            return Err(Refusal::new(Reason::TrustInvalid)
                .at(place())
                .expected("each publisher once")
                .found("the name twice"));
        }
        publishers.insert(publisher.name().to_owned(), Arc::new(publisher));
    }
    Ok(publishers)
}

fn publisher(
    raw: RawPublisher,
    read_file: &mut dyn FnMut(&str) -> std::io::Result<String>,
) -> Result<Publisher, Refusal> {
    id::check(&raw.name).map_err(|refusal| refusal.at("publisher name"))?;
    let place = || format!("publisher {}", raw.name);
    let mut keys = Vec::new();
    for pem in &raw.keys {
        keys.push(PublicKey::from_pem(pem.trim()).map_err(|refusal| refusal.at(place()))?);
    }
    for name in &raw.key_files {
        let file = format!("publisher {}, key file {}", raw.name, visible(name));
        let pem = read_file(name).map_err(|error| Refusal::io(file.clone(), &error))?;
        keys.push(PublicKey::from_pem(pem.trim()).map_err(|refusal| refusal.at(file))?);
    }
    let prefixes = raw
        .prefixes
        .iter()
        .map(|prefix| Prefix::parse(prefix).map_err(|refusal| refusal.at(place())))
        .collect::<Result<_, _>>()?;
    checked_publisher(raw.name, keys, raw.threshold, prefixes)
}
