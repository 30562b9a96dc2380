//! The keys under which approvals and denials are recorded.

use serde::Serialize;
use toolward_state::ApprovalKey;

use super::ApprovalRequest;

/// The keys of one approval question.
///
/// An approval is bound to everything that a person was shown and to the bundles behind
/// it. A denial is bound to the tool's name and its callers: denying what one tool does
/// with another does not deny the other itself, else a driver could provoke a denial of
/// a tool that it merely calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApprovalKeys {
    /// The call with its arguments.
    pub call: ApprovalKey,
    /// The tool with any arguments.
    pub tool: ApprovalKey,
    /// The tool's name, called by these tools.
    pub named: ApprovalKey,
    /// The tool's name alone: its denial applies to every caller.
    pub any_caller: ApprovalKey,
}

impl ApprovalRequest {
    /// The keys under which decisions about it are kept ([`Approvals`](toolward_state::Approvals)).
    #[must_use]
    pub fn keys(&self) -> ApprovalKeys {
        let request = self;
        let chain: Vec<_> = request
            .chain
            .iter()
            .map(|chained| {
                let from = (
                    &chained.publisher,
                    &chained.driver_publishers,
                    &chained.bundles,
                );
                (&chained.tool, from, &chained.effects, chained.risk)
            })
            .collect();
        let fallbacks: Vec<_> = request
            .fallbacks
            .iter()
            .map(|next| {
                let reach = (&next.hosts, &next.regions);
                (&next.id, &next.publisher, &next.bundle, reach)
            })
            .collect();
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
        // Without the version: a denial covers all of them.
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

/// JSON delimits texts, so two different values have different encodings.
fn key(kind: &[u8], value: &impl Serialize) -> ApprovalKey {
    let mut hasher = blake3::Hasher::new();
    hasher.update(kind);
    hasher.update(&serde_json::to_vec(value).unwrap_or_default());
    *hasher.finalize().as_bytes()
}
