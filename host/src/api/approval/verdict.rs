//! The verdict of an approver, the reports of an approver before the verdict, and the keys under
//! which decisions are kept.

use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use serde::Serialize;
use tokio::sync::watch;
use toolward_state::ApprovalKey;

use super::ApprovalRequest;

/// The answer to an [`ApprovalRequest`](super::ApprovalRequest), and how it was obtained. Events
/// and the ledger record whether a person was asked about this call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// A person was asked now, and approved this call.
    Approved,
    /// A person was asked now, and approved this call and later ones like it.
    ApprovedFor(Remembered),
    /// A person approved the call earlier; no one was asked now.
    Remembered(Remembered),
    /// A person was asked by an earlier call, which ended with [`Verdict::Later`], and this call
    /// brings that person's answer.
    Answered {
        /// Whether the person approved it.
        approved: bool,
        /// What the person approved beyond this call.
        remembered: Option<Remembered>,
    },
    /// A person was asked now and denied the call, perhaps with a reason for the caller.
    Denied(Option<String>),
    /// A person was asked now, and did not answer in time.
    Unanswered,
    /// A person was asked now, and the question was withdrawn because the person denied another
    /// question about the same tool.
    Withdrawn,
    /// No person could be asked.
    Unavailable,
    /// A person has been asked and has not answered yet: the call ends with
    /// [`ErrorCode::APPROVAL_PENDING`](crate::ErrorCode::APPROVAL_PENDING), and the caller makes it
    /// again with the answer. A nested call ends as if no one could be asked.
    Later,
}

impl Verdict {
    /// Whether a person was asked during the call that the verdict is for.
    pub(crate) fn is_asked_now(&self) -> bool {
        match self {
            Self::Approved
            | Self::ApprovedFor(_)
            | Self::Denied(_)
            | Self::Unanswered
            | Self::Withdrawn
            | Self::Later => true,
            Self::Remembered(_) | Self::Answered { .. } | Self::Unavailable => false,
        }
    }
}

/// A person's approval that was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remembered {
    /// What it covers.
    pub scope: ApprovalScope,
    /// When it ends, by the system's clock. `None` if it ends with the call or session that it
    /// covers.
    pub until: Option<SystemTime>,
}

toolward_support::words! {
    /// What a person's approval covers.
    #[derive(Hash)]
    ApprovalScope {
        /// One call, also when it resumes after its driver's questions.
        Call = "call",
        /// Calls of the tool as it was shown, with any input.
        Session = "session",
    }
}

/// What an approver reports of a request before its verdict. Clones share the reports.
#[derive(Debug, Clone, Default)]
pub(crate) struct Marks {
    pub(super) asked: Arc<watch::Sender<bool>>,
    pub(super) expired: Arc<OnceLock<Remembered>>,
}

impl Marks {
    /// Waits until a person is asked.
    pub(crate) async fn asked(&self) {
        // The wait can't fail: `self` holds the sender.
        let _ = self.asked.subscribe().wait_for(|asked| *asked).await;
    }

    pub(crate) fn is_asked(&self) -> bool {
        *self.asked.borrow()
    }

    pub(crate) fn expired(&self) -> Option<Remembered> {
        self.expired.get().copied()
    }
}

/// The keys of one approval question.
///
/// An approval is bound to everything that the person was shown, and to the bundles of the tools
/// and drivers. If it covers later calls, it is not bound to the input. A denial is bound to the
/// tool's name and its callers: denying a tool's call to another tool does not deny the other tool
/// itself. Otherwise a driver could provoke the denial of a tool that it merely calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApprovalKeys {
    /// The key of the call with its arguments.
    pub call: ApprovalKey,
    /// The key of the tool with any arguments.
    pub tool: ApprovalKey,
    /// The key of the tool's name together with its callers (`called_by`).
    pub named: ApprovalKey,
    /// The key of the tool's name alone; a denial under this key applies to every caller.
    pub any_caller: ApprovalKey,
}

impl ApprovalRequest {
    /// The keys under which decisions about this request are kept
    /// ([`Approvals`](toolward_state::Approvals)).
    pub fn keys(&self) -> ApprovalKeys {
        let request = self;
        let chain = request.chain.iter().map(|chained| {
            let from = (
                &chained.publisher,
                &chained.driver_publishers,
                &chained.bundles,
            );
            (&chained.tool, from, &chained.effects, chained.risk)
        });
        let chain: Vec<_> = chain.collect();
        let fallbacks = request.fallbacks.iter().map(|next| {
            let reach = (&next.hosts, &next.regions);
            (&next.id, &next.publisher, &next.bundle, reach)
        });
        let fallbacks: Vec<_> = fallbacks.collect();
        let tool = (
            (&request.principal, &request.tool_id, &request.name),
            (&request.publisher, &request.bundle),
            (
                &request.driver,
                &request.driver_publisher,
                &request.driver_bundle,
                (&request.driver_hosts, &request.driver_regions),
                fallbacks,
            ),
            (
                &request.effects,
                request.risk,
                &request.reasons,
                &request.cost,
            ),
            (chain, &request.apart),
            (&request.called_by, &request.called_by_bundles),
        );
        let call = (&tool, &request.tool, request.input_digest);
        // Without the version: a denial covers all versions.
        let id = request.tool_id.split('@').next().unwrap_or_default();
        let named = |called_by: &[String]| key(b"named", &(&request.publisher, id, called_by));
        ApprovalKeys {
            call: key(b"call", &call),
            tool: key(b"tool", &tool),
            named: named(&request.called_by),
            any_caller: named(&[]),
        }
    }
}

/// Hashes a value as JSON. JSON marks the end of each text, so two different values have different
/// encodings.
fn key(kind: &[u8], value: &impl Serialize) -> ApprovalKey {
    let mut hasher = blake3::Hasher::new();
    hasher.update(kind);
    hasher.update(&serde_json::to_vec(value).unwrap_or_default());
    *hasher.finalize().as_bytes()
}
