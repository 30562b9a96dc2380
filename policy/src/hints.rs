//! What a call of a tool may do, as four hints. They follow from the grants of the tool
//! and of all tools that it reaches. Claims of its bundle can only make them more
//! cautious, unless the operator confirms them.

use toolward_contract::tool::Tool;

use crate::decision::Effects;
use crate::rule::Confirmed;

/// AIP-14 `risk_level` from which a contract claims to write.
const WRITES_RISK: u8 = 1;
/// AIP-14 `risk_level` from which it claims effects outside.
const EXTERNAL_RISK: u8 = 2;
/// AIP-14 `risk_level` of what can't be undone.
const IRREVERSIBLE_RISK: u8 = 3;

/// What a call of a tool may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hints {
    /// It changes nothing.
    pub read_only: bool,
    /// It may overwrite or delete.
    pub destructive: bool,
    /// Calling it twice has the effect of calling it once.
    pub idempotent: bool,
    /// It reaches what is outside of this machine.
    pub open_world: bool,
}

impl Hints {
    /// For a tool of which nothing is known.
    pub const CAUTIOUS: Self = Self {
        read_only: false,
        destructive: true,
        idempotent: false,
        open_world: true,
    };

    /// For a contract whose calls have these effects.
    #[must_use]
    pub fn of(contract: &Tool, effects: Effects, confirmed: Confirmed) -> Self {
        let writes = effects.writes || effects.risk >= WRITES_RISK;
        let outside = effects.network || effects.risk >= EXTERNAL_RISK;
        let reads_only = !writes && !outside && !effects.secrets;
        // Idempotence is a claim, too.
        let idempotent = contract.idempotent && (!writes || confirmed.idempotent);
        let additive = confirmed.additive
            && effects.risk < IRREVERSIBLE_RISK
            && claims(contract, "destructiveHint", false);
        let destructive = writes && !additive;
        Self {
            read_only: reads_only && !claims(contract, "readOnlyHint", false),
            destructive: destructive || claims(contract, "destructiveHint", true),
            idempotent: idempotent && !claims(contract, "idempotentHint", false),
            open_world: outside || claims(contract, "openWorldHint", true),
        }
    }
}

/// Whether the contract claims it in `metadata.mcp.annotations`.
fn claims(contract: &Tool, hint: &str, value: bool) -> bool {
    let claimed = contract
        .metadata
        .get("mcp")
        .and_then(|mcp| mcp.get("annotations"))
        .and_then(|annotations| annotations.get(hint));
    claimed.and_then(serde_json::Value::as_bool) == Some(value)
}
