//! Trust in bare public keys: for some prefixes, up to a maximum age of the bundles, and only after
//! a person has typed the key's fingerprint. Unlike a publisher's document, a bare key can't be
//! rotated, and no list revokes it.

use std::path::Path;
use std::time::SystemTime;

use toolward_bundle::text::visible_line;
use toolward_signing::id;
use toolward_signing::key::{KeyId, PublicKey};
use toolward_signing::trust::TrustStore;
use toolward_signing::{ErrorKind, Refusal};
use toolward_store::Store;
use toolward_store::rollback::VersionedDocument;

use super::bare_key_rules::{are_given_up, check_place, overlaps};
use super::changes::{TrustChanges, record};
use super::publishers::{BareKey, KeyGrant, MAX_KEY_BYTES, TrustedPublishers, parse_prefixes};
use super::{Trust, TrustContext};
use crate::file;
use crate::{Code, Error, Kind, Result, Silent};

/// The suffixes of key files, the longest first.
const SUFFIXES: &[&str] = &[".pub.pem", ".pem", ".pub"];

/// The operator's request to trust a bare key.
#[derive(Debug, Clone, Copy)]
pub struct KeyRequest<'r> {
    /// The file with the key.
    pub file: &'r Path,
    /// The publisher's name, as in its manifests. By default it is the name under which the key is
    /// trusted already, or the name of the file without its suffix.
    pub name: Option<&'r str>,
    /// More prefixes of ids that the key may publish.
    pub prefixes: &'r [String],
    /// The maximum age of its bundles. By default the age stays unchanged, or is
    /// [`BareKey::DEFAULT_MAX_AGE_DAYS`] for a new key.
    pub max_age_days: Option<u64>,
    /// The channel that must list its releases. By default the channel stays unchanged.
    pub channel: Option<&'r str>,
    /// The publishers with whose ids the key's prefixes may overlap.
    pub takes_from: &'r [String],
}

/// A bare key that may be trusted as requested, after a person has confirmed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyCandidate {
    /// The present record, if the key is trusted already.
    pub before: Option<BareKey>,
    /// The new record.
    pub after: BareKey,
    /// The publishers whose prefixes overlap with a new prefix, each with the new prefix.
    pub overlaps: Vec<(String, String)>,
    /// The version of the publisher's last document, if the publisher was once trusted by a
    /// document.
    pub document: Option<u64>,
}

impl KeyCandidate {
    /// Whether nothing changes.
    pub fn is_unchanged(&self) -> bool {
        self.before.as_ref() == Some(&self.after)
    }

    /// Whether a text is the key's fingerprint: 64 hexadecimal digits in either case, with optional
    /// spaces, dashes or colons between them.
    pub fn is_fingerprint(&self, typed: &str) -> bool {
        let digits = typed.chars().filter(|c| !" -:\t".contains(*c));
        let digits: String = digits.map(|c| c.to_ascii_lowercase()).collect();
        let typed: Result<KeyId, Refusal> = digits.parse();
        typed.is_ok_and(|typed| typed == self.after.key.key_id())
    }
}

impl TrustChanges<'_> {
    /// Reads a bare key, and checks the request to trust it.
    ///
    /// # Errors
    /// `key-misplaced`, `key-invalid`, `publisher-known`, `prefix-taken`, `key-revoked`, or if a
    /// value of the request is not valid.
    pub fn key_candidate(&self, request: &KeyRequest<'_>) -> Result<KeyCandidate> {
        let path = request.file;
        check_place(path)?;
        let bytes = file::read(path, MAX_KEY_BYTES)?;
        let text = String::from_utf8(bytes).map_err(|error| Error::unreadable(path, error))?;
        let key = PublicKey::from_pem(&text)
            .map_err(|refusal| Error::of(Kind::Usage, refusal).in_file(path))?;
        // The store must record the change, so it is opened before a person is asked.
        let store = self.store.open(self.environment)?;
        let trusted = self.trust.publishers(self.environment)?.all()?;
        self.planned(self.trust, &key, request, (&trusted, &store))
    }

    /// Trusts a bare key as a person confirmed it. `announce` is called after all checks and before
    /// anything is recorded. If it fails, nothing changes.
    ///
    /// # Errors
    /// As [`TrustChanges::key_candidate`]; `file-changed` if the change would differ from the
    /// confirmed one; the errors of `announce`.
    pub fn add_key(
        &self,
        candidate: &KeyCandidate,
        request: &KeyRequest<'_>,
        announce: impl FnOnce() -> Result<()>,
    ) -> Result<BareKey> {
        let publishers = self.trust.publishers(self.environment)?;
        let place = publishers.folder().to_owned();
        let store = self.store.open(self.environment)?;
        let transaction = publishers.exclusive()?;
        // The configuration may also have changed since the person was asked.
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
                transaction.write(after)?;
                format!(
                    "bare key, for {} ({})",
                    visible_line(&after.grant.prefixes.join(", "), 400),
                    after.freshness()
                )
            }
            None => {
                transaction.add(after)?;
                format!("bare key {}, its fingerprint was typed", key.key_id())
            }
        };
        drop(transaction);
        let now = SystemTime::now();
        record(&store, "trust-add", &after.name, None, &reason, now)?;
        Ok(after.clone())
    }

    /// Returns the change that would be recorded, after checking for conflicts.
    fn planned(
        &self,
        trust: &Trust,
        key: &PublicKey,
        request: &KeyRequest<'_>,
        (trusted, store): (&TrustedPublishers, &Store),
    ) -> Result<KeyCandidate> {
        let context = trust.context_of(trusted, &self.environment.reporting(Silent))?;
        let before = trusted.keys.iter().find(|known| known.key == *key).cloned();
        let name = match (request.name, &before) {
            (Some(name), _) => name.to_owned(),
            (None, Some(before)) => before.name.clone(),
            (None, None) => named_by(request.file)?,
        };
        id::check(&name).map_err(|refusal| {
            Error::of(Kind::Usage, refusal)
                .hint("give the name that its bundles have with --name NAME")
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
                source: std::path::absolute(request.file)
                    .map_err(|error| Error::unreadable(request.file, error))?
                    .display()
                    .to_string(),
            },
        };
        // `acme.` means the same as `acme`: the id `acme` and the ids below it.
        let prefixes = request.prefixes.iter();
        let prefixes = prefixes.map(|prefix| prefix.strip_suffix('.').unwrap_or(prefix).to_owned());
        let requested: Vec<String> = prefixes.collect();
        let known = grant.prefixes.len();
        for prefix in &requested {
            if !grant.prefixes.contains(prefix) {
                grant.prefixes.push(prefix.clone());
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
        // The trust store checks the rules that concern all bare keys.
        let mut others = all.clone();
        others.remove(&after.name);
        after.add_to(&mut others.clone())?;
        let added = parse_prefixes(after.grant.prefixes.get(known..).unwrap_or_default())?;
        let possible = overlaps(&others, &parse_prefixes(&requested)?);
        let overlaps = overlaps(&others, &added);
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

/// Returns the publisher's name for a key in this file.
fn named_by(path: &Path) -> Result<String> {
    let file = path.file_name().and_then(|name| name.to_str());
    let name = file.map(|file| {
        let mut suffixes = SUFFIXES.iter();
        suffixes
            .find_map(|suffix| file.strip_suffix(suffix))
            .unwrap_or(file)
    });
    let name = name.filter(|name| id::check(name).is_ok());
    name.map(str::to_owned).ok_or_else(|| {
        let path = visible_line(&path.display().to_string(), 1000);
        let message = format!("{path}: the file's name does not name the publisher");
        Error::usage(ErrorKind::IdInvalid, message)
            .hint("give the name that its bundles have with --name NAME")
    })
}

/// Refuses a name or a key that is used by another publisher. A publisher's document is never
/// replaced by a key.
fn is_free(
    name: &str,
    key: &PublicKey,
    before: Option<&BareKey>,
    trusted: &TrustedPublishers,
    all: &TrustStore,
) -> Result<()> {
    if before.is_some_and(|before| before.name == name) {
        return Ok(());
    }
    let known =
        |message: String, next: String| Err(Error::usage(Code::PublisherKnown, message).hint(next));
    if let Some(holder) = all.publishers().find(|one| one.keys.contains(key)) {
        let holder = holder.name();
        let message = format!("this key is trusted already, as one of {holder}'s");
        return known(message, next_step(holder, trusted));
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
            next_step(name, trusted),
        ),
        None => Ok(()),
    }
}

/// Returns the next step for a publisher that is trusted already.
fn next_step(name: &str, trusted: &TrustedPublishers) -> String {
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

/// Refuses a key that the operator denies, or that a current or earlier owner revoked.
fn is_not_revoked(
    name: &str,
    key: &PublicKey,
    trusted: &TrustedPublishers,
    context: &TrustContext,
) -> Result<()> {
    let id = key.key_id();
    let owners = trusted.owners(&id);
    let mut names = owners.iter().copied().chain([name]);
    if !names.any(|name| context.revocations.key(name, &id).is_some()) {
        return Ok(());
    }
    let message = format!("key {id} is revoked, by `[trust.deny]` or by a publisher that had it");
    Err(Error::new(Kind::Refused, ErrorKind::KeyRevoked, message)
        .hint("ask the publisher for its current key, or better for its document"))
}

#[cfg(test)]
mod tests;
