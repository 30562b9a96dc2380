//! The rules that every publisher of a trust store keeps, whether it comes from a table or from a document.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::publisher::Publisher;
use crate::error::{ErrorKind, Refusal};
use crate::id::Prefix;
use crate::key::PublicKey;
use crate::signers::MAX_KEYS;

/// How many publishers a trust store may have: each of their keys may cost a verification per signature.
pub(super) const MAX_PUBLISHERS: usize = 256;

/// Adds a publisher: names are used once, and no key belongs to two.
pub(super) fn insert(
    publishers: &mut BTreeMap<String, Arc<Publisher>>,
    publisher: Publisher,
) -> Result<(), Refusal> {
    let refusal =
        || Refusal::new(ErrorKind::TrustInvalid).at(format!("publisher {}", publisher.name));
    if publishers.len() >= MAX_PUBLISHERS {
        return Err(refusal()
            .expected("at most 256 publishers")
            .found("one more"));
    }
    if publishers.contains_key(&publisher.name) {
        return Err(refusal()
            .expected("each publisher once")
            .found("the name twice"));
    }
    for key in &publisher.keys {
        let owner = publishers
            .values()
            .find(|owner| owner.key(&key.key_id()).is_some());
        if let Some(owner) = owner {
            return Err(refusal()
                .expected("keys that belong to one publisher each")
                .found(format!(
                    "key {}, which publisher {} has, too",
                    key.key_id(),
                    owner.name
                )));
        }
    }
    publishers.insert(publisher.name.clone(), Arc::new(publisher));
    Ok(())
}

/// Checks the keys that somebody signs with, and how many of them must.
pub(super) fn check_keys(place: &str, keys: &[PublicKey], threshold: usize) -> Result<(), Refusal> {
    let refusal = || Refusal::new(ErrorKind::TrustInvalid).at(place);
    if keys.is_empty() || keys.len() > MAX_KEYS {
        return Err(refusal()
            .expected("1 to 16 keys")
            .found(keys.len().to_string()));
    }
    if let Some(key) = keys.iter().find(|key| key.is_example()) {
        return Err(Refusal::new(ErrorKind::TrustExampleKey)
            .at(place)
            .found(format!("key {}", key.key_id())));
    }
    for (position, key) in keys.iter().enumerate() {
        if keys.iter().skip(position + 1).any(|other| other == key) {
            return Err(refusal()
                .expected("each key once")
                .found(format!("key {} twice", key.key_id())));
        }
    }
    if threshold == 0 || threshold > keys.len() {
        return Err(refusal()
            .expected(format!(
                "a threshold from 1 to {}, the number of keys",
                keys.len()
            ))
            .found(threshold.to_string()));
    }
    Ok(())
}

/// Checks a publisher as an operator writes it down.
pub(super) fn checked_publisher(
    name: String,
    keys: Vec<PublicKey>,
    threshold: usize,
    prefixes: Vec<Prefix>,
) -> Result<Publisher, Refusal> {
    let place = format!("publisher {name}");
    check_keys(&place, &keys, threshold)?;
    if prefixes.is_empty() {
        return Err(Refusal::new(ErrorKind::TrustInvalid)
            .at(place)
            .expected("the prefixes that this publisher may publish")
            .found("none: an empty list means nothing"));
    }
    Ok(Publisher {
        name,
        keys,
        threshold,
        prefixes,
        actions: Vec::new(),
        ad_hoc: false,
        bare: false,
        document: None,
        max_age: None,
    })
}
