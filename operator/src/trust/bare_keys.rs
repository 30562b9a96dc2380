//! Trust in bare public keys: for some prefixes, until a maximum age, and only after a person has typed the key's
//! fingerprint. A bare key lacks what a publisher's document has: nothing rotates it, and no list revokes it.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::SystemTime;

use toolward_bundle::text::visible_line;
use toolward_signing::id::{self, Prefix};
use toolward_signing::key::{KeyId, PublicKey};
use toolward_signing::trust::TrustStore;
use toolward_signing::{ErrorKind, Refusal};
use toolward_store::Store;
use toolward_store::rollback::VersionedDocument;

use super::changes::{Changes, record};
use super::publishers::{BareKey, KeyGrant, MAX_KEY_BYTES, Trusted, parsed};
use super::{Trust, TrustContext, key_place};
use crate::error::{Code, Error, Kind};
use crate::file;
use crate::report::Silent;

/// How a file of a key ends, the longest first.
const SUFFIXES: &[&str] = &[".pub.pem", ".pem", ".pub"];

/// What the operator wants a bare key to be trusted for.
#[derive(Debug, Clone, Copy)]
pub struct KeyRequest<'r> {
    /// The file with the key.
    pub file: &'r Path,
    /// The publisher's name, as its manifests have it; by default the name that the key has already, or that of the
    /// file without its ending.
    pub name: Option<&'r str>,
    /// The prefixes of the ids that it may publish, besides those that it has.
    pub prefixes: &'r [String],
    /// The maximum age of its bundles; by default the one that it has, or
    /// [`BareKey::DEFAULT_MAX_AGE_DAYS`].
    pub max_age_days: Option<u64>,
    /// The channel that must list its releases; by default the one that it has.
    pub channel: Option<&'r str>,
    /// The publishers whose ids, or ids around or inside theirs, it may have.
    pub takes_from: &'r [String],
}

/// A bare key that may be trusted as it was asked, once a person has confirmed it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyCandidate {
    /// What is recorded of it by now, if it is trusted already.
    pub before: Option<BareKey>,
    /// What will be.
    pub after: BareKey,
    /// The publishers whose prefixes overlap with a new one, and these prefixes.
    pub overlaps: Vec<(String, String)>,
    /// The version of the publisher's document that was taken in last, if it was trusted by one before.
    pub document: Option<u64>,
}

impl KeyCandidate {
    /// Whether nothing changes.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        self.before.as_ref() == Some(&self.after)
    }

    /// Whether this is the key's fingerprint, as people write it down: 64 hexadecimal digits in either case, with
    /// spaces, dashes or colons between them.
    #[must_use]
    pub fn is_fingerprint(&self, typed: &str) -> bool {
        let digits = typed
            .chars()
            .filter(|c| !matches!(c, ' ' | '-' | ':' | '\t'));
        let digits: String = digits.map(|c| c.to_ascii_lowercase()).collect();
        let typed: Result<KeyId, Refusal> = digits.parse();
        typed.is_ok_and(|typed| typed == self.after.key.key_id())
    }
}

impl Changes<'_> {
    /// Reads a bare key, and checks what it is to be trusted for.
    ///
    /// # Errors
    /// `key-misplaced`, `key-invalid`, `publisher-known`, `prefix-taken`, `key-revoked`, or if a value of the request is
    /// not valid.
    pub fn key_candidate(&self, request: &KeyRequest<'_>) -> Result<KeyCandidate, Error> {
        let path = request.file;
        key_place::check(path)?;
        let bytes = file::read(path, MAX_KEY_BYTES)?;
        let text = String::from_utf8(bytes).map_err(|error| Error::unreadable(path, error))?;
        let key = PublicKey::from_pem(&text)
            .map_err(|refusal| Error::of(Kind::Usage, refusal).in_file(path))?;
        // Open before anybody is asked: changes must be recorded.
        let store = self.store.open(self.environment)?;
        let trusted = self.trust.publishers(self.environment)?.all()?;
        self.planned(self.trust, &key, request, (&trusted, &store))
    }

    /// Trusts a bare key as it was confirmed. `announce` is called after all checks and before anything is recorded: if
    /// it fails, nothing changes.
    ///
    /// # Errors
    /// As [`Changes::key_candidate`]; `file-changed` if what was confirmed is not what would change by now; those of
    /// `announce`.
    pub fn add_key(
        &self,
        candidate: &KeyCandidate,
        request: &KeyRequest<'_>,
        announce: impl FnOnce() -> Result<(), Error>,
    ) -> Result<BareKey, Error> {
        let publishers = self.trust.publishers(self.environment)?;
        let place = publishers.folder().to_owned();
        let store = self.store.open(self.environment)?;
        let transaction = publishers.exclusive()?;
        // The configuration, too, may be another one since the person was asked.
        let trust = self.trust.unread();
        let key = &candidate.after.key;
        let planned = self.planned(&trust, key, request, (&transaction.all()?, &store))?;
        if planned != *candidate {
            let message = format!(
                "{}: trust was changed by another program while the question was open",
                place.display()
            );
            return Err(Error::failed(Code::FileChanged, message)
                .hint("give the command again, and look at what it shows by then"));
        }
        announce()?;
        let after = &candidate.after;
        let reason = match candidate.before {
            Some(_) => {
                transaction.write_key(after)?;
                format!(
                    "bare key, for {} ({})",
                    visible_line(&after.grant.prefixes.join(", "), 400),
                    after.freshness()
                )
            }
            None => {
                transaction.add_key(after)?;
                format!("bare key {}, its fingerprint was typed", key.key_id())
            }
        };
        drop(transaction);
        let now = SystemTime::now();
        record(&store, "trust-add", &after.name, None, &reason, now)?;
        Ok(after.clone())
    }

    /// What would be recorded, without conflicts.
    fn planned(
        &self,
        trust: &Trust,
        key: &PublicKey,
        request: &KeyRequest<'_>,
        (trusted, store): (&Trusted, &Store),
    ) -> Result<KeyCandidate, Error> {
        let context = trust.context_or_empty(trusted, self.environment, &Silent)?;
        let before = trusted.keys.iter().find(|known| known.key == *key).cloned();
        let name = match (request.name, &before) {
            (Some(name), _) => name.to_owned(),
            (None, Some(before)) => before.name.clone(),
            (None, None) => named_by(request.file)?,
        };
        id::check(&name)
            .map_err(|refusal| Error::of(Kind::Usage, refusal))
            .map_err(|failure| {
                failure.hint("give the name that its bundles have with --name NAME")
            })?;
        let all = trust.store_of(trusted, self.environment)?;
        is_free(&name, key, before.as_ref(), trusted, &all)?;
        is_not_revoked(&name, key, trusted, &context)?;

        let mut grant = match &before {
            Some(before) => before.grant.clone(),
            None => KeyGrant {
                prefixes: Vec::new(),
                max_age_days: BareKey::DEFAULT_MAX_AGE_DAYS,
                channel: None,
                source: absolute(request.file)?,
            },
        };
        let asked = request.prefixes.iter().map(|prefix| below(prefix));
        let asked: Vec<String> = asked.collect();
        let mut added = Vec::new();
        for prefix in &asked {
            if !grant.prefixes.contains(prefix) {
                grant.prefixes.push(prefix.clone());
                added.push(prefix.clone());
            }
        }
        grant.max_age_days = request.max_age_days.unwrap_or(grant.max_age_days);
        if let Some(channel) = request.channel {
            context.channel(channel)?;
            grant.channel = Some(channel.to_owned());
        }
        let after = BareKey {
            name,
            key: key.clone(),
            grant,
        };
        after.max_age()?;
        // The rules of all bare keys are the trust store's.
        let mut others = all.clone();
        others.remove(&after.name);
        after.add_to(&mut others.clone())?;
        let overlaps = overlaps(&others, &parsed(&added)?);
        let possible = self::overlaps(&others, &parsed(&asked)?);
        are_given_up(&overlaps, &possible, request.takes_from)?;
        let document = store.document(VersionedDocument::Publisher, &after.name)?;
        Ok(KeyCandidate {
            before,
            after,
            overlaps,
            document: document.map(|(version, _)| version),
        })
    }
}

/// `acme.` means the ids below `acme`, as `acme` does.
fn below(prefix: &str) -> String {
    prefix.strip_suffix('.').unwrap_or(prefix).to_owned()
}

/// The name of a publisher whose key is in this file.
fn named_by(path: &Path) -> Result<String, Error> {
    let file = path.file_name().and_then(|name| name.to_str());
    let name = file.and_then(|file| {
        let mut endings = SUFFIXES.iter();
        endings
            .find_map(|ending| file.strip_suffix(ending))
            .or(Some(file))
    });
    let name = name.filter(|name| id::check(name).is_ok());
    name.map(str::to_owned).ok_or_else(|| {
        let path = visible_line(&path.display().to_string(), 1000);
        let message = format!("{path}: the file's name does not name the publisher");
        Error::usage(ErrorKind::IdInvalid, message)
            .hint("give the name that its bundles have with --name NAME")
    })
}

fn absolute(path: &Path) -> Result<String, Error> {
    let path = std::path::absolute(path).map_err(|error| Error::unreadable(path, error))?;
    Ok(path.display().to_string())
}

/// Refuses a name or a key that is in use otherwise. A publisher's document is never replaced by a key.
fn is_free(
    name: &str,
    key: &PublicKey,
    before: Option<&BareKey>,
    trusted: &Trusted,
    all: &TrustStore,
) -> Result<(), Error> {
    if before.is_some_and(|before| before.name == name) {
        return Ok(());
    }
    let known =
        |message: String, next: String| Err(Error::usage(Code::PublisherKnown, message).hint(next));
    if let Some(holder) = all.publishers().find(|one| one.keys().contains(key)) {
        let holder = holder.name();
        let message = format!("this key is trusted already, as one of {holder}'s");
        return known(message, what_exists(holder, trusted));
    }
    if trusted.key(name).is_some() {
        let message = format!("{name} is trusted already, by another bare key");
        let next = format!(
            "a bare key has no successor: ask {name} why it has another key, and take out the old one first: \
             toolward trust remove {name}"
        );
        return known(message, next);
    }
    match all.publisher(name) {
        Some(_) => known(
            format!("{name} is trusted already"),
            what_exists(name, trusted),
        ),
        None => Ok(()),
    }
}

/// What there is instead of a bare key.
fn what_exists(name: &str, trusted: &Trusted) -> String {
    if trusted.get(name).is_some() {
        format!(
            "{name} is trusted by its document, which can also rotate and revoke keys: `toolward trust show {name}` \
             shows it"
        )
    } else if trusted.key(name).is_some() {
        format!(
            "give it prefixes under that name, without --name: `toolward trust show {name}` shows it"
        )
    } else {
        format!("{name} is a `[[publisher]]` of toolward.toml: add the prefixes there")
    }
}

/// Refuses a key that the operator denies, or that a publisher revoked whose it is or was.
fn is_not_revoked(
    name: &str,
    key: &PublicKey,
    trusted: &Trusted,
    context: &TrustContext,
) -> Result<(), Error> {
    let id = key.key_id();
    let owners = trusted.owners(&id);
    let mut names = owners.iter().copied().chain([name]);
    match names.find_map(|name| context.revocations.key(name, &id)) {
        Some(_) => Err(Error::new(
            Kind::Refused,
            ErrorKind::KeyRevoked,
            format!("key {id} is revoked, by `[trust.deny]` or by a publisher that had it"),
        )
        .hint("ask the publisher for its current key, or better for its document")),
        None => Ok(()),
    }
}

/// The publishers whose prefixes overlap with these, each with the prefix that does.
fn overlaps(store: &TrustStore, prefixes: &[Prefix]) -> Vec<(String, String)> {
    let overlaps = prefixes.iter().flat_map(|prefix| {
        let publishers = store.overlapping(prefix);
        publishers.map(move |one| (one.name().to_owned(), prefix.to_string()))
    });
    overlaps.collect()
}

/// Refuses prefixes for the document of `own` that a bare key overlaps with: the operator has not said that the key
/// may keep them.
///
/// # Errors
/// `prefix-taken`
pub(super) fn hold_none_of(
    store: &TrustStore,
    own: &str,
    prefixes: &[Prefix],
) -> Result<(), Error> {
    let held = prefixes.iter().find_map(|prefix| {
        let mut bare = store.overlapping(prefix).filter(|one| one.is_bare());
        Some((bare.find(|one| one.name() != own)?.name(), prefix))
    });
    let Some((holder, prefix)) = held else {
        return Ok(());
    };
    let message = format!(
        "the prefix {prefix} is inside, equal to or around one of {holder}'s, which is trusted by a bare key"
    );
    Err(Error::new(Kind::Denied, Code::PrefixTaken, message).hint(format!(
        "take the key out first: toolward trust remove {holder}. If it shall publish such ids as well, add it again afterwards, with \
         --takes-from {own}"
    )))
}

/// Makes sure that the operator named exactly the publishers whose ids are affected.
fn are_given_up(
    overlaps: &[(String, String)],
    possible: &[(String, String)],
    named: &[String],
) -> Result<(), Error> {
    let taken = |message: String| Error::new(Kind::Denied, Code::PrefixTaken, message);
    let missing = overlaps.iter().find(|(name, _)| !named.contains(name));
    if let Some((name, prefix)) = missing {
        let names: BTreeSet<&str> = overlaps.iter().map(|(name, _)| name.as_str()).collect();
        let flags: Vec<String> = names
            .iter()
            .map(|name| format!("--takes-from {name}"))
            .collect();
        return Err(taken(format!(
            "the prefix {prefix} is inside, equal to or around one of {name}'s"
        ))
        .hint(format!(
            "if this key shall publish ids that are {name}'s otherwise, say so: {}",
            flags.join(" ")
        )));
    }
    let other = named
        .iter()
        .find(|named| !possible.iter().any(|(name, _)| name == *named));
    match other {
        Some(other) => Err(taken(format!(
            "--takes-from {}: no prefix that was given overlaps with one of theirs",
            visible_line(other, 100)
        ))
        .hint("name the publishers whose prefixes overlap, and no others; `toolward trust list` shows them")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
