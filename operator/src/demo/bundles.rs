//! The demo's bundles: those of the repository, part of this library, signed again by a key that is dropped.

use std::time::{SystemTime, UNIX_EPOCH};

use toolward_signing::Refusal;
use toolward_signing::archive::{self, Contents};
use toolward_signing::envelope::Envelope;
use toolward_signing::key::{PublicKey, SigningKey};
use toolward_signing::manifest::MANIFEST_TYPE;
use toolward_signing::timestamp::Timestamp;
use toolward_signing::trust::TrustStore;
use toolward_signing::verify::{self, VerifyOptions};

use super::{PUBLISHER, VALID_SECONDS};
use crate::error::Error;

const EMBEDDED: [(&str, &[u8]); 2] = [
    (
        "demo-tools",
        include_bytes!("../../demo/demo-tools.toolbundle"),
    ),
    (
        "demo-thief",
        include_bytes!("../../demo/demo-thief.toolbundle"),
    ),
];

/// The key that signed them in the repository.
const EXAMPLE_KEY: &str = include_str!("../../demo/example.pub.pem");

/// Bundles of one throw-away publisher.
pub(super) struct Signed {
    /// Name and archive of each.
    pub(super) archives: Vec<(&'static str, Vec<u8>)>,
    /// The key that verifies them, as PEM. The private half is gone.
    pub(super) public_key: String,
    /// When they stop being valid.
    pub(super) expires: Timestamp,
}

/// Signs the embedded bundles with a new key, valid from `now` on.
pub(super) fn sign(now: SystemTime) -> Result<Signed, Error> {
    let refused = |refusal: Refusal| Error::refused(refusal);
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    let created = Timestamp::from_unix(seconds).map_err(refused)?;
    let expires = Timestamp::from_unix(seconds.saturating_add(VALID_SECONDS)).map_err(refused)?;
    let key = SigningKey::generate().map_err(refused)?;
    let mut archives = Vec::with_capacity(EMBEDDED.len());
    for (name, bytes) in EMBEDDED {
        let archive = sign_one(bytes, &key, created, expires).map_err(refused)?;
        archives.push((name, archive));
    }
    Ok(Signed {
        archives,
        public_key: key.public().to_pem().map_err(refused)?,
        expires,
    })
}

fn sign_one(
    archive: &[u8],
    key: &SigningKey,
    created: Timestamp,
    expires: Timestamp,
) -> Result<Vec<u8>, Refusal> {
    let trust = TrustStore::for_key(PublicKey::from_pem(EXAMPLE_KEY)?);
    let bundle = verify::archive_bytes(archive, &trust, &VerifyOptions::default())?;
    let mut manifest = bundle.manifest.clone();
    PUBLISHER.clone_into(&mut manifest.publisher);
    manifest.created = created;
    manifest.expires = Some(expires);
    // Its statement is about the manifest of the repository.
    manifest.provenance = false;
    let manifest = manifest.to_bytes()?;
    let mut envelope = Envelope::new(MANIFEST_TYPE, manifest.clone());
    envelope.sign(key);
    let files = bundle.files.iter();
    archive::to_bytes(&Contents {
        envelope: &envelope.to_bytes()?,
        manifest: &manifest,
        provenance: None,
        files: files
            .map(|(path, bytes)| (path.clone(), &**bytes))
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use toolward_signing::ErrorKind;

    use super::*;

    #[test]
    fn each_verifies_by_the_new_key_alone_and_for_seven_days() {
        let now = SystemTime::now();
        let signed = sign(now).unwrap();
        let key = PublicKey::from_pem(&signed.public_key).unwrap();
        let trust = TrustStore::for_key(key);
        let at = |after: Duration| VerifyOptions {
            now: Some(now + after),
            ..VerifyOptions::default()
        };
        let day = Duration::from_secs(24 * 3600);
        for (name, archive) in &signed.archives {
            let verify = |after| verify::archive_bytes(archive, &trust, &at(after));
            let bundle = verify(6 * day).unwrap();
            assert_eq!(bundle.manifest.publisher, PUBLISHER, "{name}");
            let late = verify(8 * day).unwrap_err();
            assert_eq!(late.kind(), ErrorKind::Expired, "{name}");
        }
        let other = sign(now).unwrap();
        assert_ne!(other.public_key, signed.public_key);
        for (name, archive) in &other.archives {
            assert!(
                verify::archive_bytes(archive, &trust, &at(Duration::ZERO)).is_err(),
                "{name}"
            );
        }
    }
}
