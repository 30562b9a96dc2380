//! The documents around the files: envelope, manifest, provenance. The signatures of a
//! [`VerifiedHead`] are verified; its files must still be compared with its manifest.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Bundle, MAX_BYTES, Verified, VerifyOptions, VerifyProgress, signers};
use crate::digest::Digest;
use crate::envelope::Envelope;
use crate::error::{ErrorKind, Refusal};
use crate::freshness;
use crate::key::KeyId;
use crate::manifest::{ENVELOPE_FILE, FILE, MANIFEST_TYPE, Manifest};
use crate::path::BundlePath;
use crate::provenance::{self, Provenance};
use crate::stored::UnreadFile;
use crate::trust::{EXAMPLE_WARNING, Publisher, TrustStore};

/// The files of a bundle, by path.
pub(super) type Files = BTreeMap<BundlePath, Arc<[u8]>>;
/// The files of a bundle whose content was not read, by path.
pub(super) type Unread = BTreeMap<BundlePath, UnreadFile>;

/// The accepted documents of a bundle, for the reader of its files.
pub(super) trait BundleHead {
    /// Lists the files to read.
    fn manifest(&self) -> &Manifest;
    /// Accepts the bytes of `provenance.dsse.json`, or refuses them.
    fn provenance(&mut self, bytes: &[u8]) -> Result<(), Refusal>;
    /// Reports that `count` more bytes were hashed.
    fn progress(&mut self, _count: usize) {}
}

/// Reads an envelope over a bundle's manifest, without verifying its signatures.
pub(super) fn parse_envelope(bytes: &[u8]) -> Result<Envelope, Refusal> {
    parse_envelope_of(MANIFEST_TYPE, bytes).map_err(|refusal| refusal.at(ENVELOPE_FILE))
}

fn parse_envelope_of(payload_type: &'static str, bytes: &[u8]) -> Result<Envelope, Refusal> {
    let envelope = Envelope::parse(bytes)?;
    if envelope.payload_type() == payload_type {
        return Ok(envelope);
    }
    Err(Refusal::new(ErrorKind::PayloadType)
        .expected(payload_type)
        .found(crate::text::quoted(envelope.payload_type())))
}

/// Refuses a `manifest.toml` that differs from the envelope's payload.
pub(super) fn check_loose(envelope: &Envelope, loose: &[u8]) -> Result<(), Refusal> {
    if envelope.payload() == loose {
        return Ok(());
    }
    Err(Refusal::new(ErrorKind::ManifestMismatch)
        .at(FILE)
        .expected(format!("digest {}", Digest::of(envelope.payload())))
        .found(format!("digest {}", Digest::of(loose))))
}

/// Reads a manifest. Refuses a manifest whose files together are too large.
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

/// A bundle that a trusted publisher signed, without its files, and its signers.
pub(super) struct VerifiedHead<'a> {
    bundle: Bundle,
    options: &'a VerifyOptions<'a>,
    done: u64,
    total: u64,
}

impl<'a> VerifiedHead<'a> {
    /// Checks the envelope's signatures, then parses the payload, in that order: no byte of a
    /// manifest is interpreted before a trusted signature covers it.
    pub(super) fn new(
        envelope_bytes: Option<&[u8]>,
        loose_manifest: Option<&[u8]>,
        trust: &TrustStore,
        options: &'a VerifyOptions<'a>,
    ) -> Result<Self, Refusal> {
        let envelope_bytes = envelope_bytes
            .ok_or_else(|| Refusal::new(ErrorKind::EnvelopeMissing).at(ENVELOPE_FILE))?;
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
        if publisher.is_ad_hoc && publisher.keys.iter().any(|key| key.is_example()) {
            warnings.push(EXAMPLE_WARNING.to_owned());
        }
        check_host(&manifest, options)?;
        if options.require_provenance && !manifest.provenance {
            return Err(Refusal::new(ErrorKind::ProvenanceMissing)
                .at(FILE)
                .expected("`provenance = true`, which `[trust]` requires")
                .found("no such key"));
        }
        check_age(&manifest, &publisher, options, &mut warnings)?;
        Ok(Self {
            bundle: Bundle {
                manifest,
                manifest_digest: Digest::of(envelope.payload()),
                manifest_bytes: envelope.payload().into(),
                envelope_bytes: envelope_bytes.into(),
                files: Files::new(),
                unread: Unread::new(),
                publisher,
                signers,
                provenance: None,
                provenance_bytes: None,
                warnings,
                trust: trust.clone(),
            },
            options,
            done: 0,
            total,
        })
    }

    /// The bundle, with files that were all compared with the manifest.
    pub(super) fn with_files(self, files: Files) -> Result<Verified<Bundle>, Refusal> {
        self.with_unread(files, Unread::new())
    }

    /// The bundle, with files that were all compared with the manifest, and the places of all
    /// others.
    pub(super) fn with_unread(
        self,
        files: Files,
        unread: Unread,
    ) -> Result<Verified<Bundle>, Refusal> {
        let bundle = self.bundle;
        if bundle.manifest.provenance && bundle.provenance.is_none() {
            return Err(provenance_missing());
        }
        Ok(Verified::new(Bundle {
            files,
            unread,
            ..bundle
        }))
    }
}

impl BundleHead for VerifiedHead<'_> {
    fn manifest(&self) -> &Manifest {
        &self.bundle.manifest
    }

    fn provenance(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        let at_provenance = |refusal: Refusal| refusal.at(provenance::FILE);
        let envelope = parse_envelope_of(provenance::PAYLOAD_TYPE, bytes).map_err(at_provenance)?;
        signers::signed_by(&envelope, &self.bundle.publisher, self.options.revocations)
            .map_err(at_provenance)?;
        let provenance = Provenance::parse(envelope.payload(), &self.bundle.manifest_bytes);
        self.bundle.provenance = Some(provenance.map_err(at_provenance)?);
        self.bundle.provenance_bytes = Some(bytes.into());
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

/// The hint for a bundle that is older than its publisher's maximum age.
fn own_max_age_hint(publisher: &Publisher) -> String {
    let name = publisher.name();
    let change = match publisher.is_bare {
        true => "`toolward trust add KEY.pub.pem --prefix PREFIX --max-age-days DAYS`".to_owned(),
        false => format!("`toolward trust update {name} --max-age-days DAYS`"),
    };
    format!("get the publisher's current release, or allow older ones of {name}: {change}")
}

/// Refuses by age and expiry. Under [`Mode::Audit`](super::Mode::Audit), the refusals are added to
/// the warnings.
fn check_age(
    manifest: &Manifest,
    publisher: &Publisher,
    options: &VerifyOptions<'_>,
    warnings: &mut Vec<String>,
) -> Result<(), Refusal> {
    let Some(now) = options.now else {
        return Ok(());
    };
    let mut refuse = |refusal: Refusal| options.mode.apply(refusal, warnings);
    let early = manifest.created.not_yet(ErrorKind::NotYetValid, now);
    let late = (manifest.expires).and_then(|end| end.expired(ErrorKind::Expired, now));
    for refusal in early.into_iter().chain(late) {
        refuse(refusal.at(FILE))?;
    }
    if let Some(max_age) = freshness::shorter(options.max_age, publisher.max_age)
        && let Err(refusal) = freshness::check_age(manifest.created, max_age, now)
    {
        refuse(match publisher.max_age == Some(max_age) {
            true => refusal.hinted(own_max_age_hint(publisher)),
            false => refusal,
        })?;
    }
    let end = publisher.expires;
    if let Some(refusal) = end.and_then(|end| end.expired(ErrorKind::DocumentExpired, now)) {
        refuse(refusal.at(format!("document of publisher {}", publisher.name())))?;
    }
    Ok(())
}

/// A verified manifest, from an envelope without the bundle's files.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SignedManifest {
    /// The manifest, parsed from the signed bytes.
    pub manifest: Manifest,
    /// The digest of the signed bytes: the identity of the bundle.
    pub manifest_digest: Digest,
    /// The publisher, as the trust store knows it.
    pub publisher: Arc<Publisher>,
    /// The publisher's keys that signed and are not revoked: sorted, distinct, at least as many as
    /// the threshold.
    pub signers: Vec<KeyId>,
    /// Warnings for people, one sentence each.
    pub warnings: Vec<String>,
}

/// Verifies `manifest.dsse.json` alone, as strictly as [`open`](super::open) does: signatures,
/// threshold, prefix, age, revocation. For a download that verifies the whole bundle afterwards.
///
/// # Errors
/// The errors of [`open`](super::open) about envelope and manifest.
pub fn envelope(
    bytes: &[u8],
    trust: &TrustStore,
    options: &VerifyOptions<'_>,
) -> Result<Verified<SignedManifest>, Refusal> {
    let envelope = parse_envelope(bytes)?;
    let bundle = VerifiedHead::new(Some(bytes), Some(envelope.payload()), trust, options)?.bundle;
    Ok(Verified::new(SignedManifest {
        manifest_digest: bundle.manifest_digest,
        manifest: bundle.manifest,
        publisher: bundle.publisher,
        signers: bundle.signers,
        warnings: bundle.warnings,
    }))
}
