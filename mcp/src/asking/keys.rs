//! What a yes and a no are kept under.

use serde::Serialize;
use toolward_host::ApprovalRequest;

use super::standing::Key;

/// What identifies a call, and what identifies its tool whatever the arguments:
/// all that a person is shown, and the bundles behind it; and the tool by its name,
/// as these tools call it and whoever does. A no to what one tool does with another is
/// none to the other: a driver has questions of its own put, and ends them as it likes.
pub(crate) struct Keys {
    pub(crate) call: Key,
    pub(crate) tool: Key,
    pub(crate) named: Key,
    pub(crate) anyhow: Key,
}

pub(crate) fn keys(request: &ApprovalRequest) -> Keys {
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
    let tool = (
        (&request.principal, &request.tool_id, &request.name),
        (&request.publisher, &request.bundle),
        (
            &request.driver,
            &request.driver_publisher,
            &request.driver_bundle,
        ),
        (&request.effects, request.risk, &request.reasons),
        (chain, &request.apart),
        (&request.called_by, &request.called_by_bundles),
    );
    let call = (&tool, &request.tool, request.input_digest);
    // Every version: a no to the newest is one to those before it.
    let id = request.tool_id.split('@').next().unwrap_or_default();
    let named = |called_by: &[String]| key(b"named", &(&request.publisher, id, called_by));
    Keys {
        call: key(b"call", &call),
        tool: key(b"tool", &tool),
        named: named(&request.called_by),
        anyhow: named(&[]),
    }
}

/// JSON tells where a text ends, so that no two different values are written alike.
fn key(kind: &[u8], value: &impl Serialize) -> Key {
    let mut hasher = blake3::Hasher::new();
    hasher.update(kind);
    hasher.update(&serde_json::to_vec(value).unwrap_or_default());
    *hasher.finalize().as_bytes()
}
