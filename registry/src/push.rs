//! Pushing a bundle: the blobs that the registry lacks, then the manifest that names them.

use bytes::Bytes;

use crate::artifact::Outgoing;
use crate::client::Client;
use crate::digest::BlobDigest;
use crate::failure::{Failure, Reason};
use crate::media;
use crate::progress::{ProgressFn, Step, Teller};
use crate::reference::Reference;

/// What was pushed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pushed {
    /// The OCI manifest's digest.
    pub digest: BlobDigest,
    /// The reference with this digest.
    pub reference: Reference,
}

impl Client {
    /// Pushes a bundle. A tag that is there already is moved.
    ///
    /// # Errors
    /// [`Reason::ReferenceIncomplete`]; [`Reason::NotPublishable`] if the reference has the digest of
    /// something else; the reason for which it failed.
    pub async fn push(
        &self,
        bundle: &Outgoing,
        reference: &Reference,
        progress: Option<&ProgressFn>,
    ) -> Result<Pushed, Failure> {
        // For its check that there is a version.
        reference.version()?;
        let digest = bundle.digest();
        if let Some(wanted) = reference.digest()
            && wanted != digest
        {
            return Err(Failure::new(Reason::NotPublishable)
                .at(reference.to_string())
                .expected(wanted.to_string())
                .found(digest.to_string()));
        }
        let deadline = self.transport.deadline();
        let teller = Teller {
            whom: progress,
            step: Step::Upload,
        };
        let empty = Bytes::from_static(media::EMPTY_BYTES);
        let nobody = Teller {
            whom: None,
            ..teller
        };
        self.upload(reference, &empty, nobody, deadline).await?;
        self.upload(reference, &bundle.envelope, nobody, deadline)
            .await?;
        self.upload(reference, &bundle.content, teller, deadline)
            .await?;
        self.put_manifest(
            reference,
            media::MANIFEST,
            bundle.manifest.clone(),
            deadline,
        )
        .await?;
        Ok(Pushed {
            digest,
            reference: reference.with_digest(digest),
        })
    }
}
