//! The documents around the files: envelope, manifest, provenance. What comes out of here is signed; the
//! files are still to be compared with it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::announced::Announced;
use super::{Bundle, MAX_BYTES, Mode, Verified, VerifyOptions, VerifyProgress, signers};
use crate::age::{is_from_the_future, is_over};
use crate::digest::Digest;
use crate::document::expired;
use crate::envelope::Envelope;
use crate::error::{ErrorKind, Refusal};
use crate::freshness;
use crate::key::KeyId;
use crate::manifest::{ENVELOPE_FILE, FILE, MANIFEST_TYPE, Manifest};
use crate::path::BundlePath;
use crate::provenance::{self, Provenance};
use crate::trust::{EXAMPLE_WARNING, Publisher, TrustStore};

/// The files of a bundle, by path.
pub(super) type Files = BTreeMap<BundlePath, Arc<[u8]>>;

/// The documents before the files, accepted: what a reader needs of them while it reads the files.
pub(super) trait Head {
    /// What the manifest lists is what is read.
    fn manifest(&self) -> &Manifest;
    /// Takes the bytes of `provenance.dsse.json`, or refuses them.
    fn provenance(&mut self, bytes: &[u8]) -> Result<(), Refusal>;
    /// Tells that `count` more bytes were hashed.
    fn progress(&mut self, count: usize);
}

/// Reads an envelope over a bundle's manifest. Its signatures are not looked at.
pub(super) fn parse_envelope(bytes: &[u8]) -> Result<Envelope, Refusal> {
    let envelope = Envelope::parse(bytes).map_err(|refusal| refusal.at(ENVELOPE_FILE))?;
    if envelope.payload_type() == MANIFEST_TYPE {
        return Ok(envelope);
    }
    Err(Refusal::new(ErrorKind::PayloadType)
        .at(ENVELOPE_FILE)
        .expected(MANIFEST_TYPE)
        .found(crate::text::quoted(envelope.payload_type())))
}

/// Refuses a `manifest.toml` that is not the envelope's.
pub(super) fn check_loose(envelope: &Envelope, loose: &[u8]) -> Result<(), Refusal> {
    if envelope.payload() == loose {
        return Ok(());
    }
    Err(Refusal::new(ErrorKind::ManifestMismatch)
        .at(FILE)
        .expected(format!("digest {}", Digest::of(envelope.payload())))
        .found(format!("digest {}", Digest::of(loose))))
}

/// Reads a manifest, and refuses one whose files are too large together.
pub(super) fn parse_manifest(bytes: &[u8]) -> Result<Manifest, Refusal> {
    let manifest = Manifest::parse(bytes)?;
    let total = manifest.total_size();
    if total > MAX_BYTES {
        return Err(Refusal::new(ErrorKind::TooLarge)
            .at(FILE)
            .expected("files of at most 536870912 bytes together")
            .found(crate::text::bytes(total)));
    }
    Ok(manifest)
}

pub(super) fn envelope_missing() -> Refusal {
    Refusal::new(ErrorKind::EnvelopeMissing).at(ENVELOPE_FILE)
}

pub(super) fn provenance_missing() -> Refusal {
    Refusal::new(ErrorKind::ProvenanceMissing)
        .at(provenance::FILE)
        .expected("the file, which the signed manifest announces")
        .found("none")
        .hinted("the bundle was changed after it was signed: get it again from its publisher")
}

pub(super) fn manifest_missing() -> Refusal {
    Refusal::new(ErrorKind::ManifestMissing).at(FILE)
}

/// A manifest that somebody trusted signed, and who.
pub(super) struct Signed<'a> {
    manifest: Manifest,
    manifest_bytes: Arc<[u8]>,
    envelope_bytes: Arc<[u8]>,
    publisher: Arc<Publisher>,
    signers: Vec<KeyId>,
    provenance: Option<(Provenance, Arc<[u8]>)>,
    warnings: Vec<String>,
    trust: &'a TrustStore,
    options: &'a VerifyOptions<'a>,
    done: u64,
    total: u64,
}

impl<'a> Signed<'a> {
    /// Checks the envelope's signatures, then parses the payload, in that order: nothing of a manifest is
    /// looked at before somebody trusted has signed it.
    pub(super) fn new(
        envelope_bytes: Option<&[u8]>,
        loose_manifest: Option<&[u8]>,
        trust: &'a TrustStore,
        options: &'a VerifyOptions<'a>,
    ) -> Result<Self, Refusal> {
        let envelope_bytes = envelope_bytes.ok_or_else(envelope_missing)?;
        let loose_manifest = loose_manifest.ok_or_else(manifest_missing)?;
        let envelope = parse_envelope(envelope_bytes)?;
        let signed_by = signers::trusted_signers(&envelope, trust)
            .map_err(|refusal| refusal.at(ENVELOPE_FILE))?;
        check_loose(&envelope, loose_manifest)?;
        let manifest = parse_manifest(envelope.payload())?;
        let (publisher, signers) =
            signers::publisher(&manifest, &signed_by, trust, options.revocations)
                .map_err(|refusal| refusal.at(FILE))?;
        if let Some(revocations) = options.revocations {
            revocations.refuse_bundle(publisher.name(), &Digest::of(envelope.payload()))?;
        }
        let total = manifest.total_size();
        let mut warnings = Vec::new();
        if publisher.is_ad_hoc() && publisher.keys().iter().any(|key| key.is_example()) {
            warnings.push(EXAMPLE_WARNING.to_owned());
        }
        check_host(&manifest, options)?;
        if options.require_provenance && !manifest.provenance {
            return Err(Refusal::new(ErrorKind::ProvenanceMissing)
                .at(FILE)
                .expected("`provenance = true`, which `[trust]` requires")
                .found("no such key"));
        }
        for refusal in check_age(&manifest, &publisher, options) {
            match options.mode {
                Mode::Enforce => return Err(refusal),
                Mode::Audit => warnings.push(refusal.to_string()),
            }
        }
        Ok(Self {
            manifest,
            manifest_bytes: envelope.into_payload().into(),
            envelope_bytes: envelope_bytes.into(),
            publisher,
            signers,
            provenance: None,
            warnings,
            trust,
            options,
            done: 0,
            total,
        })
    }

    /// What is known before the files are.
    pub(super) fn announced(self) -> Announced {
        Announced {
            manifest_digest: Digest::of(&self.manifest_bytes),
            manifest: self.manifest,
            publisher: self.publisher,
            signers: self.signers,
            warnings: self.warnings,
        }
    }

    /// The bundle, from files that were compared with the manifest, all of them.
    pub(super) fn with_files(self, files: Files) -> Result<Verified<Bundle>, Refusal> {
        if self.manifest.provenance && self.provenance.is_none() {
            return Err(provenance_missing());
        }
        let (provenance, provenance_bytes) = self.provenance.unzip();
        Ok(Verified::new(Bundle {
            manifest_digest: Digest::of(&self.manifest_bytes),
            manifest: self.manifest,
            manifest_bytes: self.manifest_bytes,
            envelope_bytes: self.envelope_bytes,
            files,
            publisher: self.publisher,
            signers: self.signers,
            provenance,
            provenance_bytes,
            warnings: self.warnings,
            trust: self.trust.clone(),
        }))
    }
}

impl Head for Signed<'_> {
    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn provenance(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        let at_provenance = |refusal: Refusal| refusal.at(provenance::FILE);
        let envelope = Envelope::parse(bytes).map_err(at_provenance)?;
        if envelope.payload_type() != provenance::PAYLOAD_TYPE {
            return Err(Refusal::new(ErrorKind::PayloadType)
                .at(provenance::FILE)
                .expected(provenance::PAYLOAD_TYPE)
                .found(crate::text::quoted(envelope.payload_type())));
        }
        signers::signed_by(&envelope, &self.publisher, self.options.revocations)
            .map_err(at_provenance)?;
        let provenance =
            Provenance::parse(envelope.payload(), &self.manifest_bytes).map_err(at_provenance)?;
        self.provenance = Some((provenance, bytes.into()));
        Ok(())
    }

    fn progress(&mut self, count: usize) {
        self.done += count as u64;
        if let Some(progress) = self.options.progress {
            progress(VerifyProgress {
                done: self.done,
                total: self.total,
            });
        }
    }
}

fn check_host(manifest: &Manifest, options: &VerifyOptions<'_>) -> Result<(), Refusal> {
    match (&manifest.min_host, &options.host_version) {
        (Some(wanted), Some(host)) if host < wanted => Err(Refusal::new(ErrorKind::HostTooOld)
            .at(FILE)
            .expected(format!("toolward {wanted} or newer"))
            .found(format!("toolward {host}"))),
        _ => Ok(()),
    }
}

/// The next step for who gets a bundle that is too old by the publisher's own maximum.
fn own_max_age_hint(publisher: &Publisher) -> String {
    let name = publisher.name();
    let change = match publisher.is_bare() {
        true => "`toolward trust add KEY.pub.pem --prefix PREFIX --max-age-days DAYS`".to_owned(),
        false => format!("`toolward trust update {name} --max-age-days DAYS`"),
    };
    format!("get the publisher's current release, or allow older ones of {name}: {change}")
}

fn check_age(
    manifest: &Manifest,
    publisher: &Publisher,
    options: &VerifyOptions<'_>,
) -> Vec<Refusal> {
    let Some(now) = options.now else {
        return Vec::new();
    };
    let mut refusals = Vec::new();
    if is_from_the_future(manifest.created, now) {
        refusals.push(
            Refusal::new(ErrorKind::NotYetValid)
                .at(FILE)
                .expected("`created` in the past")
                .found(manifest.created.to_string()),
        );
    }
    if let Some(expires) = manifest.expires
        && is_over(expires, now)
    {
        refusals.push(
            Refusal::new(ErrorKind::Expired)
                .at(FILE)
                .expected("`expires` in the future")
                .found(expires.to_string()),
        );
    }
    if let Some(max_age) = freshness::shorter(options.max_age, publisher.max_age()) {
        let refusal = freshness::check_age(manifest.created, max_age, now).err();
        refusals.extend(
            refusal.map(|refusal| match publisher.max_age() == Some(max_age) {
                true => refusal.hinted(own_max_age_hint(publisher)),
                false => refusal,
            }),
        );
    }
    if let Some(expires) = publisher.expires()
        && is_over(expires, now)
    {
        refusals.push(expired(
            format!("document of publisher {}", publisher.name()),
            expires,
        ));
    }
    refusals
}
