//! Co-signatures: further signatures over the same manifest, attached to the bundle by anybody who may write to
//! the repository. They are added to the envelope; which of them count is for the trust store to say.

use toolward_signing::envelope::{Envelope, MAX_BYTES};

use crate::artifact::Artifact;
use crate::client::Client;
use crate::failure::{Cause, Failure, Reason, refused};
use crate::media::DocumentArtifact;
use crate::reference::Reference;
use crate::retry::Deadline;

/// Adds the signatures of other envelopes to `base`: those of envelopes over the same payload of the same
/// type, each once, as many documents as fit. An envelope to which nothing is added keeps its bytes. No
/// signature is verified.
///
/// # Errors
/// [`Cause::Signing`] if `base` is not an envelope. Others that are not are skipped.
pub fn merge_signatures<B: AsRef<[u8]>>(base: &[u8], others: &[B]) -> Result<Vec<u8>, Failure> {
    let mut envelope = Envelope::parse(base).map_err(refused)?;
    let mut added = 0;
    for other in others {
        if let Ok(other) = Envelope::parse(other.as_ref()) {
            // Signatures over another manifest, or too many, are skipped.
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

impl Client {
    /// The envelope with the co-signatures that are attached to the artifact. An attachment that is wrong is
    /// passed over: anybody who may write to the repository could have put it there.
    pub(crate) async fn with_signatures(
        &self,
        reference: &Reference,
        artifact: &Artifact,
        envelope: Vec<u8>,
        deadline: Deadline,
    ) -> Result<Vec<u8>, Failure> {
        let kind = DocumentArtifact::Signatures;
        let referrers = self
            .referrers_of(reference, artifact.digest, kind, deadline)
            .await?;
        let mut others = Vec::new();
        for referrer in referrers {
            let attached = reference.with_digest(referrer.digest);
            match self
                .document(&attached, kind, kind.max_bytes(), deadline)
                .await
            {
                Ok(document) => others.push(document.bytes),
                Err(failure) if is_its_own_fault(&failure) => {}
                Err(failure) => return Err(failure),
            }
        }
        merge_signatures(&envelope, &others)
    }
}

/// Whether an attachment or an artifact is to blame, and not the network or the registry.
pub(crate) fn is_its_own_fault(failure: &Failure) -> bool {
    !matches!(
        failure.kind(),
        Cause::Registry(
            Reason::Unreachable
                | Reason::Timeout
                | Reason::Busy
                | Reason::Failed
                | Reason::CredentialsNeeded
                | Reason::CredentialsRefused
        )
    )
}
