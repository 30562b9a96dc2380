//! Documents attached to a bundle, which the distribution specification calls referrers. They are
//! found by the specification's API, or by an index under the tag `sha256-HEX` if a registry has no
//! such API. Co-signatures are attached documents: signatures over the same manifest, which anyone
//! who may write to the repository can add. They are added to the envelope, and the trust store
//! decides which of them count.

use bytes::Bytes;
use reqwest::StatusCode;
use reqwest::header::ACCEPT;
use toolward_signing::envelope::{Envelope, MAX_BYTES};
use toolward_signing::{ErrorKind, Refusal};

use crate::address::shown;
use crate::artifact::{Artifact, descriptor};
use crate::client::RegistryClient;
use crate::digest::BlobDigest;
use crate::document::{check_document, document_manifest};
use crate::failure::{Cause, Failure, FailureReason, refused};
use crate::media::{
    self, Descriptor, DocumentArtifact, ImageIndex, SCHEMA_VERSION, readable_entries,
};
use crate::reference::Reference;
use crate::response::{next_page, read, unexpected};
use crate::transport::{AccessScope, Operation, RegistryRequest};

/// How often an index is written, if other clients write it at the same time.
const MAX_ATTEMPTS: usize = 4;
/// How many pages of referrers are read.
const MAX_PAGES: usize = 8;

impl RegistryClient {
    /// Attaches a document to the current target of `subject`, and returns the digest of the
    /// document's OCI manifest. Attaching the document again changes nothing.
    ///
    /// # Errors
    /// [`FailureReason::AttachmentInvalid`] if `envelope` is not of this kind; the errors of the
    /// transfer.
    pub async fn attach(
        &self,
        subject: &Reference,
        kind: DocumentArtifact,
        envelope: &[u8],
    ) -> Result<BlobDigest, Failure> {
        check_document(kind, envelope)?;
        let operation = self.operation();
        let (subject_digest, subject_bytes) =
            operation.artifact_manifest(subject, media::BUNDLE).await?;
        let subject_descriptor = descriptor(media::MANIFEST, &subject_bytes);
        let manifest = document_manifest(kind, envelope, Some(subject_descriptor))?;
        let digest = BlobDigest::of(&manifest);
        let repository = subject.without_version();
        let envelope = Bytes::copy_from_slice(envelope);
        operation.upload_small(&repository, &envelope).await?;
        let is_indexed = operation
            .put_manifest(&repository, media::MANIFEST, manifest.clone())
            .await?;
        if !is_indexed {
            let entry = Descriptor {
                artifact_type: Some(kind.artifact_type().to_owned()),
                ..descriptor(media::MANIFEST, &manifest)
            };
            operation
                .add_to_index(&repository, subject_digest, entry)
                .await?;
        }
        Ok(digest)
    }

    /// The digests of the OCI manifests of the documents of a kind that are attached to the current
    /// target of `subject`, as many as the limits allow. The documents are not verified.
    ///
    /// # Errors
    /// The failure to list the documents. The list is empty if the bundle has no referrers, or if
    /// the registry has neither the referrers API nor an index under the fallback tag.
    pub async fn referrers(
        &self,
        subject: &Reference,
        kind: DocumentArtifact,
    ) -> Result<Vec<BlobDigest>, Failure> {
        let operation = self.operation();
        let digest = match subject.digest() {
            Some(digest) => digest,
            None => operation.artifact_manifest(subject, media::BUNDLE).await?.0,
        };
        operation.referrers_of(subject, digest, kind).await
    }
}

impl Operation {
    pub(crate) async fn referrers_of(
        &self,
        reference: &Reference,
        subject: BlobDigest,
        kind: DocumentArtifact,
    ) -> Result<Vec<BlobDigest>, Failure> {
        let place = reference.to_string();
        let listed = self.listed(reference, subject, kind);
        let entries = match self.deadline.within(&place, listed).await {
            Ok(Some(entries)) => entries,
            without_api => match self.fallback(reference, subject).await? {
                Some((tagged, bytes)) => {
                    readable_entries(&bytes).ok_or_else(|| not_an_index(&tagged))?
                }
                None => without_api?.unwrap_or_default(),
            },
        };
        // A registry may ignore the filter in the request.
        let of_kind = entries
            .iter()
            .filter(|entry| entry.artifact_type.as_deref() == Some(kind.artifact_type()));
        let mut referrers = Vec::new();
        // An entry without a valid digest, or with the digest of an earlier entry, does not count
        // towards the limit.
        for digest in of_kind.filter_map(|entry| entry.digest.parse().ok()) {
            if referrers.len() < self.transport.limits.referrers && !referrers.contains(&digest) {
                referrers.push(digest);
            }
        }
        Ok(referrers)
    }

    /// Lists the referrers by the API; `None` if the registry has no such API.
    async fn listed(
        &self,
        reference: &Reference,
        subject: BlobDigest,
        kind: DocumentArtifact,
    ) -> Result<Option<Vec<Descriptor>>, Failure> {
        let mut url = self.url(reference, &format!("referrers/{subject}"))?;
        url.query_pairs_mut()
            .append_pair("artifactType", kind.artifact_type());
        let mut entries = Vec::new();
        let mut next = Some(url);
        for _ in 0..MAX_PAGES {
            let Some(url) = next else { break };
            let ask = RegistryRequest::get(url, AccessScope::pull(reference))
                .header(ACCEPT, media::INDEX)?;
            let response = self.send(&ask).await?;
            match response.status() {
                StatusCode::OK => {}
                StatusCode::NOT_FOUND
                | StatusCode::METHOD_NOT_ALLOWED
                | StatusCode::NOT_IMPLEMENTED => return Ok(None),
                _ => return Err(unexpected(response).await),
            }
            next = next_page(&ask.url, response.headers())?;
            let body = read(response, self.transport.limits.manifest).await?;
            // Some registries answer unknown paths with status 200 and an HTML page.
            let page = readable_entries(&body).ok_or_else(|| {
                Failure::new(FailureReason::ResponseInvalid)
                    .at(shown(&ask.url))
                    .expected("an image index")
            })?;
            entries.extend(page);
        }
        Ok(Some(entries))
    }

    /// The index under the fallback tag, if it exists. Some registries without the API resolve the
    /// tag to the subject itself; such a registry has no index either.
    async fn fallback(
        &self,
        reference: &Reference,
        subject: BlobDigest,
    ) -> Result<Option<(Reference, Bytes)>, Failure> {
        let tagged = fallback_tag(reference, subject)?;
        match self.manifest(&tagged).await {
            Ok((found, _)) if found == subject => Ok(None),
            Ok((_, bytes)) => Ok(Some((tagged, bytes))),
            Err(failure) if failure.kind() == FailureReason::NotFound.into() => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Adds an entry to the index under the fallback tag. The read and the write can race with
    /// another client, so both are repeated until the index has the entry, at most [`MAX_ATTEMPTS`]
    /// times.
    async fn add_to_index(
        &self,
        repository: &Reference,
        subject: BlobDigest,
        entry: Descriptor,
    ) -> Result<(), Failure> {
        let tagged = fallback_tag(repository, subject)?;
        for _ in 0..MAX_ATTEMPTS {
            let mut index = match self.fallback(repository, subject).await? {
                // The whole index must be readable: it is written again, so unreadable entries
                // would be lost.
                Some((_, bytes)) => {
                    ImageIndex::parse(&bytes).ok_or_else(|| not_an_index(&tagged))?
                }
                None => ImageIndex {
                    schema_version: SCHEMA_VERSION,
                    media_type: Some(media::INDEX.to_owned()),
                    ..ImageIndex::default()
                },
            };
            if index
                .manifests
                .iter()
                .any(|other| other.digest == entry.digest)
            {
                return Ok(());
            }
            index.manifests.push(entry.clone());
            let bytes = serde_json::to_vec(&index)
                .map_err(|error| Failure::new(FailureReason::ManifestInvalid).caused_by(error))?;
            self.put_manifest(&tagged, media::INDEX, bytes.into())
                .await?;
        }
        Err(Failure::new(FailureReason::Busy)
            .at(tagged.to_string())
            .expected("an index that keeps what is written to it"))
    }
}

fn not_an_index(tagged: &Reference) -> Failure {
    Failure::new(FailureReason::ManifestInvalid)
        .at(tagged.to_string())
        .expected("an image index")
}

/// The tag of the index of referrers for registries without the API (the distribution
/// specification, "Referrers Tag Schema").
fn fallback_tag(reference: &Reference, subject: BlobDigest) -> Result<Reference, Failure> {
    reference.with_tag(&format!("sha256-{}", subject.hex()))
}

/// Adds to the envelope `base` the signatures of other envelopes with the same payload and type,
/// each once. If no signature is added, or if the result would be larger than readers accept, the
/// bytes stay the same. Signatures are not verified.
///
/// # Errors
/// [`Cause::Signing`] if `base` is not an envelope. Invalid envelopes among `others` are skipped.
pub fn merge_signatures<B: AsRef<[u8]>>(base: &[u8], others: &[B]) -> Result<Vec<u8>, Failure> {
    let mut envelope = Envelope::parse(base).map_err(refused)?;
    let mut added = 0;
    for other in others {
        if let Ok(other) = Envelope::parse(other.as_ref()) {
            // Signatures over another manifest, and signatures above the maximum number, are
            // skipped.
            added += envelope.merge(&other).unwrap_or(0);
        }
    }
    if added == 0 {
        return Ok(base.to_vec());
    }
    let bytes = envelope.to_bytes().map_err(refused)?;
    // Signatures of others must not make the envelope larger than readers accept.
    if bytes.len() > MAX_BYTES {
        return Ok(base.to_vec());
    }
    Ok(bytes)
}

/// An envelope with its co-signatures.
pub(crate) struct CosignedEnvelope {
    pub(crate) bytes: Vec<u8>,
    /// The failure to look up some or all co-signatures.
    pub(crate) missing: Option<Failure>,
}

impl CosignedEnvelope {
    /// The failure for an envelope that was refused. If a signature is missing, the hint states why
    /// co-signatures could not be looked up.
    pub(crate) fn refused(&self, refusal: Refusal) -> Failure {
        let lacks_signatures = refusal.kind() == ErrorKind::ThresholdNotMet;
        let failure = refused(refusal);
        match &self.missing {
            Some(missing) if lacks_signatures => failure.hinted(format!(
                "co-signatures could not be looked up, try again when the registry has them: {missing}"
            )),
            _ => failure,
        }
    }
}

impl Operation {
    /// The envelope with the co-signatures that are attached to the artifact. The look-up is
    /// optional: if a registry can't list them, or the list is invalid, none are added. The trust
    /// store decides whether signatures are missing.
    pub(crate) async fn with_signatures(
        &self,
        reference: &Reference,
        artifact: &Artifact,
        envelope: Vec<u8>,
    ) -> Result<CosignedEnvelope, Failure> {
        let kind = DocumentArtifact::Signatures;
        let listed = self.referrers_of(reference, artifact.digest, kind).await;
        let (referrers, mut missing) = match listed {
            Ok(referrers) => (referrers, None),
            Err(failure) => (Vec::new(), Some(failure)),
        };
        let mut others = Vec::new();
        for digest in referrers {
            let attached = reference.with_digest(digest);
            match self.document(&attached, kind, kind.max_bytes()).await {
                Ok(envelope) => others.push(envelope),
                // An invalid attachment is skipped, since anyone who may write to the repository
                // can attach one.
                Err(failure) if is_its_own_fault(&failure) => {}
                Err(failure) => missing = Some(failure),
            }
        }
        Ok(CosignedEnvelope {
            bytes: merge_signatures(&envelope, &others)?,
            missing,
        })
    }
}

/// Whether the attachment itself caused the failure, and not the network or the registry.
fn is_its_own_fault(failure: &Failure) -> bool {
    !matches!(
        failure.kind(),
        Cause::Registry(
            FailureReason::Unreachable
                | FailureReason::Timeout
                | FailureReason::Busy
                | FailureReason::Failed
                | FailureReason::CredentialsNeeded
                | FailureReason::CredentialsRefused
        )
    )
}
