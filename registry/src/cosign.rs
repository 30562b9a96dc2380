//! Co-signatures: further signatures over the same manifest, attached to the bundle by whoever may write to
//! the repository. They are added to the envelope; which of them count is for the trust store to say.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;
use toolward_signing::envelope::{Envelope, MAX_BYTES, MAX_SIGNATURES, Signature};

use crate::artifact::Artifact;
use crate::client::Client;
use crate::failure::{Failure, Reason};
use crate::media::DocumentKind;
use crate::reference::Reference;
use crate::retry::Deadline;

/// The envelope as signing writes it: these keys in this order, indented, a line feed at the end.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    payload_type: &'a str,
    payload: String,
    signatures: Vec<SignatureDocument>,
}

#[derive(Serialize)]
struct SignatureDocument {
    #[serde(skip_serializing_if = "Option::is_none")]
    keyid: Option<String>,
    sig: String,
}

/// Adds the signatures of other envelopes to `base`: those of envelopes over the same payload of the same
/// type, each once, in the order of their key ids, at most [`MAX_SIGNATURES`] in all, `base`'s own first of
/// all. An envelope to which nothing is added keeps its bytes. No signature is verified.
///
/// # Errors
/// [`Failure::refusal`] if `base` is no envelope. Others that are none are passed over.
pub fn merge_signatures<B: AsRef<[u8]>>(base: &[u8], others: &[B]) -> Result<Vec<u8>, Failure> {
    let envelope = Envelope::parse(base)?;
    let mut signatures: Vec<Signature> = envelope.signatures().to_vec();
    let own = signatures.len();
    for other in others {
        let Ok(other) = Envelope::parse(other.as_ref()) else {
            continue;
        };
        if other.payload_type() != envelope.payload_type() || other.payload() != envelope.payload()
        {
            continue;
        }
        for signature in other.signatures() {
            if signatures.len() < MAX_SIGNATURES && !signatures.contains(signature) {
                signatures.push(signature.clone());
            }
        }
    }
    if signatures.len() == own {
        return Ok(base.to_vec());
    }
    signatures.sort_by(|a, b| a.keyid.cmp(&b.keyid));
    let document = Document {
        payload_type: envelope.payload_type(),
        payload: BASE64_STANDARD.encode(envelope.payload()),
        signatures: signatures
            .into_iter()
            .map(|signature| SignatureDocument {
                keyid: signature.keyid,
                sig: BASE64_STANDARD.encode(&signature.sig),
            })
            .collect(),
    };
    let mut bytes = serde_json::to_vec_pretty(&document)
        .map_err(|error| Failure::new(Reason::AttachmentInvalid).found(error.to_string()))?;
    bytes.push(b'\n');
    // What others add must not make an envelope one that nobody reads.
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
        let kind = DocumentKind::Signatures;
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

/// Whether an attachment is to blame, and not the network or the registry.
fn is_its_own_fault(failure: &Failure) -> bool {
    !matches!(
        failure.reason(),
        Some(
            Reason::Unreachable
                | Reason::Timeout
                | Reason::Busy
                | Reason::Failed
                | Reason::CredentialsNeeded
                | Reason::CredentialsRefused
        )
    )
}
