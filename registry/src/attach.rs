//! Documents attached to a bundle, as the distribution specification has referrers: by its API, or by an
//! index under the tag `sha256-HEX` where a registry lacks it.

use std::collections::BTreeMap;

use bytes::Bytes;
use reqwest::StatusCode;
use reqwest::header::ACCEPT;

use crate::address::{below, shown};
use crate::artifact::{descriptor, manifest_of};
use crate::client::Client;
use crate::digest::BlobDigest;
use crate::document::{check_document, envelope_layer};
use crate::failure::{Failure, Reason};
use crate::media::{self, DocumentArtifact};
use crate::oci::{ImageIndex, IndexEntry, SCHEMA_VERSION, readable_entries};
use crate::progress::{Step, Teller};
use crate::reference::Reference;
use crate::response::{read, unexpected};
use crate::retry::Deadline;
use crate::tags::next_page;
use crate::transport::{Ask, Scope};

/// How often an index is written again because somebody else wrote it at the same time.
const MAX_ATTEMPTS: usize = 4;
/// How many pages of referrers are read.
const MAX_PAGES: usize = 8;

/// A document that is attached to something.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Referrer {
    /// The digest of its OCI manifest.
    pub digest: BlobDigest,
    /// What else is said of it. Hostile text.
    pub annotations: BTreeMap<String, String>,
}

impl Client {
    /// Attaches a document to what `subject` stands for now, and gives the digest of its OCI manifest.
    /// Attaching the same again changes nothing.
    ///
    /// # Errors
    /// [`Reason::AttachmentInvalid`] if it is not an envelope of this kind; the reason for which it failed.
    pub async fn attach(
        &self,
        subject: &Reference,
        kind: DocumentArtifact,
        envelope: &[u8],
    ) -> Result<BlobDigest, Failure> {
        check_document(kind, envelope)?;
        let deadline = self.transport.deadline();
        let (subject_digest, subject_bytes) = self
            .artifact_manifest(subject, media::BUNDLE, deadline)
            .await?;
        let subject_descriptor = descriptor(media::MANIFEST, &subject_bytes);
        let layers = vec![envelope_layer(envelope)];
        let manifest = manifest_of(
            kind.artifact_type(),
            layers,
            Some(subject_descriptor),
            BTreeMap::new(),
        )?;
        let digest = BlobDigest::of(&manifest);
        let repository = subject.without_version();
        self.upload_all(&repository, envelope, deadline).await?;
        let size = manifest.len();
        let noted = self
            .put_manifest(&repository, media::MANIFEST, manifest.clone(), deadline)
            .await?;
        if !noted {
            let entry = IndexEntry {
                media_type: media::MANIFEST.to_owned(),
                digest: digest.to_string(),
                size: i64::try_from(size).unwrap_or(i64::MAX),
                platform: None,
                annotations: None,
                artifact_type: Some(kind.artifact_type().to_owned()),
            };
            self.note(&repository, subject_digest, entry, deadline)
                .await?;
        }
        Ok(digest)
    }

    /// The documents of a kind that are attached to what `subject` stands for now: at most as many as the
    /// limits allow. Whether they are any good is not looked at.
    ///
    /// # Errors
    /// The reason for which they can't be listed. A registry that has none, or neither the referrers API nor an
    /// index under the fallback tag, gives an empty list.
    pub async fn referrers(
        &self,
        subject: &Reference,
        kind: DocumentArtifact,
    ) -> Result<Vec<Referrer>, Failure> {
        let deadline = self.transport.deadline();
        let digest = match subject.digest() {
            Some(digest) => digest,
            None => {
                self.artifact_manifest(subject, media::BUNDLE, deadline)
                    .await?
                    .0
            }
        };
        self.referrers_of(subject, digest, kind, deadline).await
    }

    pub(crate) async fn referrers_of(
        &self,
        reference: &Reference,
        subject: BlobDigest,
        kind: DocumentArtifact,
        deadline: Deadline,
    ) -> Result<Vec<Referrer>, Failure> {
        let place = reference.to_string();
        let listed = self.listed(reference, subject, kind, deadline);
        let entries = match deadline.within(&place, listed).await {
            Ok(Some(entries)) => entries,
            without_api => match self.fallback(reference, subject, deadline).await? {
                Some((tagged, bytes)) => {
                    readable_entries(&bytes).ok_or_else(|| not_an_index(&tagged))?
                }
                None => without_api?.unwrap_or_default(),
            },
        };
        // A registry may ignore the filter.
        let of_kind = entries
            .into_iter()
            .filter(|entry| entry.artifact_type.as_deref() == Some(kind.artifact_type()));
        let mut referrers: Vec<Referrer> = Vec::new();
        for entry in of_kind {
            // An entry that names no digest, or a known one, takes the room of no other.
            let Ok(digest) = entry.digest.parse() else {
                continue;
            };
            if referrers.len() < self.transport.limits.referrers
                && referrers.iter().all(|other| other.digest != digest)
            {
                referrers.push(Referrer {
                    digest,
                    annotations: entry.annotations.unwrap_or_default(),
                });
            }
        }
        Ok(referrers)
    }

    /// What the referrers API lists; `None` if there is no such API.
    async fn listed(
        &self,
        reference: &Reference,
        subject: BlobDigest,
        kind: DocumentArtifact,
        deadline: Deadline,
    ) -> Result<Option<Vec<IndexEntry>>, Failure> {
        let path = format!("v2/{}/referrers/{subject}", reference.repository());
        let mut url = below(&self.base(reference)?, &path)?;
        url.query_pairs_mut()
            .append_pair("artifactType", kind.artifact_type());
        let mut entries = Vec::new();
        let mut next = Some(url);
        for _ in 0..MAX_PAGES {
            let Some(url) = next else { break };
            let ask = Ask::get(url, Scope::pull(reference)).header(ACCEPT, media::INDEX)?;
            let response = self.transport.send(&ask, deadline).await?;
            match response.status() {
                StatusCode::OK => {}
                StatusCode::NOT_FOUND
                | StatusCode::METHOD_NOT_ALLOWED
                | StatusCode::NOT_IMPLEMENTED => return Ok(None),
                _ => return Err(unexpected(response).await),
            }
            next = next_page(&ask.url, response.headers())?;
            let body = read(response, self.transport.limits.manifest).await?;
            // Some registries answer unknown paths with 200 and a page for people.
            let page = readable_entries(&body).ok_or_else(|| {
                Failure::new(Reason::ResponseInvalid)
                    .at(shown(&ask.url))
                    .expected("an image index")
            })?;
            entries.extend(page);
        }
        Ok(Some(entries))
    }

    /// What has the fallback tag; `None` if nothing has. Some registries without the API resolve the tag to the
    /// subject itself, which then has no index either.
    async fn fallback(
        &self,
        reference: &Reference,
        subject: BlobDigest,
        deadline: Deadline,
    ) -> Result<Option<(Reference, Bytes)>, Failure> {
        let tagged = fallback_tag(reference, subject)?;
        match self.manifest(&tagged, deadline).await {
            Ok((found, _)) if found == subject => Ok(None),
            Ok((_, bytes)) => Ok(Some((tagged, bytes))),
            Err(failure) if failure.kind() == Reason::NotFound.into() => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Adds an entry to the index under the fallback tag. That takes a read and a write, which can race with
    /// another client: repeated until the entry is there.
    async fn note(
        &self,
        repository: &Reference,
        subject: BlobDigest,
        entry: IndexEntry,
        deadline: Deadline,
    ) -> Result<(), Failure> {
        let tagged = fallback_tag(repository, subject)?;
        for _ in 0..MAX_ATTEMPTS {
            let mut index = match self.fallback(repository, subject, deadline).await? {
                // It is written again: what can't be read would be lost.
                Some((_, bytes)) => {
                    ImageIndex::parse(&bytes).ok_or_else(|| not_an_index(&tagged))?
                }
                None => ImageIndex {
                    schema_version: SCHEMA_VERSION,
                    media_type: Some(media::INDEX.to_owned()),
                    manifests: Vec::new(),
                    artifact_type: None,
                    annotations: None,
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
                .map_err(|error| Failure::new(Reason::ManifestInvalid).caused_by(error))?;
            self.put_manifest(&tagged, media::INDEX, bytes.into(), deadline)
                .await?;
        }
        Err(Failure::new(Reason::Busy)
            .at(tagged.to_string())
            .expected("an index that keeps what is written to it"))
    }

    /// Uploads the empty config and an envelope.
    pub(crate) async fn upload_all(
        &self,
        reference: &Reference,
        envelope: &[u8],
        deadline: Deadline,
    ) -> Result<(), Failure> {
        let nobody = Teller {
            whom: None,
            step: Step::Upload,
        };
        let empty = Bytes::from_static(media::EMPTY_BYTES);
        self.upload(reference, &empty, nobody, deadline).await?;
        let envelope = Bytes::copy_from_slice(envelope);
        self.upload(reference, &envelope, nobody, deadline).await
    }
}

fn not_an_index(tagged: &Reference) -> Failure {
    Failure::new(Reason::ManifestInvalid)
        .at(tagged.to_string())
        .expected("an image index")
}

/// The tag under which referrers are, where there is no API for them (the distribution specification,
/// "Referrers Tag Schema").
fn fallback_tag(reference: &Reference, subject: BlobDigest) -> Result<Reference, Failure> {
    reference.with_tag(&format!("sha256-{}", subject.hex()))
}
