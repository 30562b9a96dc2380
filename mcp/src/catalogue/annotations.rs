//! Annotations: what a client may tell a person about a tool before it is
//! called. They follow from what the tool was granted over all that it reaches;
//! what its bundle says of itself can only make them more cautious.

use rmcp::model::ToolAnnotations;
use toolward_contract::tool::Tool;
use toolward_policy::Effects;

/// AIP-14 `risk_level` from which a contract says of itself that it writes.
const WRITES: u8 = 1;
/// AIP-14 `risk_level` from which it has effects outside.
const OUTSIDE: u8 = 2;

/// The annotations of a tool. All four are always given: what a client assumes
/// of one that is missing differs.
pub(super) fn of(contract: &Tool, effects: Effects) -> ToolAnnotations {
    let writes = effects.writes || effects.risk >= WRITES;
    let outside = effects.network || effects.risk >= OUTSIDE;
    let reads_only = !writes && !outside && !effects.secrets;
    // A repetition without effect is a claim, too; that of a tool that writes
    // counts for nothing.
    let idempotent = !writes && contract.idempotent;
    ToolAnnotations::new()
        .read_only(reads_only && !claims(contract, "readOnlyHint", false))
        .destructive(writes || claims(contract, "destructiveHint", true))
        .idempotent(idempotent && !claims(contract, "idempotentHint", false))
        .open_world(outside || claims(contract, "openWorldHint", true))
}

/// Whether the contract says so in `metadata.mcp.annotations`.
fn claims(contract: &Tool, hint: &str, value: bool) -> bool {
    let claimed = contract
        .metadata
        .get("mcp")
        .and_then(|mcp| mcp.get("annotations"))
        .and_then(|annotations| annotations.get(hint));
    claimed.and_then(serde_json::Value::as_bool) == Some(value)
}
