//! Co-signatures: further signatures over the same manifest, attached to the bundle by anybody who may write to
//! the repository. They are added to the envelope; which of them count is for the trust store to say.

use toolward_signing::envelope::{Envelope, MAX_BYTES};
use toolward_signing::{ErrorKind, Refusal};

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

/// An envelope with the co-signatures that were found.
pub(crate) struct CosignedEnvelope {
    pub(crate) bytes: Vec<u8>,
    /// Why some, or all, could not be looked up.
    pub(crate) missing: Option<Failure>,
}

impl CosignedEnvelope {
    /// An envelope to which nothing is to be added.
    pub(crate) fn alone(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            missing: None,
        }
    }

    /// The failure for an envelope that was refused. If a signature is missing, the hint states why co-signatures
    /// could not be looked up.
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

impl Client {
    /// The envelope with the co-signatures that are attached to the artifact. Looking them up is optional: a
    /// registry that can't list them, or lists what is wrong, adds none, and the trust store decides whether
    /// signatures are missing.
    pub(crate) async fn with_signatures(
        &self,
        reference: &Reference,
        artifact: &Artifact,
        envelope: Vec<u8>,
        deadline: Deadline,
    ) -> Result<CosignedEnvelope, Failure> {
        let kind = DocumentArtifact::Signatures;
        let listed = self
            .referrers_of(reference, artifact.digest, kind, deadline)
            .await;
        let (referrers, mut missing) = match listed {
            Ok(referrers) => (referrers, None),
            Err(failure) => (Vec::new(), Some(failure)),
        };
        let mut others = Vec::new();
        for referrer in referrers {
            let attached = reference.with_digest(referrer.digest);
            match self
                .document(&attached, kind, kind.max_bytes(), deadline)
                .await
            {
                Ok(document) => others.push(document.bytes),
                // Anyone who may write to the repository could have attached it.
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

/// Whether an attachment is to blame, and not the network or the registry.
fn is_its_own_fault(failure: &Failure) -> bool {
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
