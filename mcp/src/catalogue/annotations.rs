//! Annotations: hints that a client may show before a tool is called.

use rmcp::model::ToolAnnotations;
use toolward_contract::tool::Tool;
use toolward_policy::{Confirmed, Effects, Hints};

/// The annotations of a tool. All four are always given, since clients differ in their
/// defaults.
pub(super) fn of(contract: &Tool, effects: Effects, confirmed: Confirmed) -> ToolAnnotations {
    let hints = Hints::of(contract, effects, confirmed);
    ToolAnnotations::new()
        .read_only(hints.read_only)
        .destructive(hints.destructive)
        .idempotent(hints.idempotent)
        .open_world(hints.open_world)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contract(more: &str) -> Tool {
        let source = format!(
            "---\nname: T\nid: a.tool\ndescription: Does it.\nversion: 1.0.0\n\
             inputs: {{type: object}}\noutputs: {{type: object}}\n{more}\n---\n"
        );
        let parsed = Tool::parse("TOOL.md", &source, &toolward_contract::NoScope);
        parsed.into_result().unwrap()
    }

    /// Read-only, destructive, idempotent, open world.
    fn hints(more: &str, effects: Effects) -> [bool; 4] {
        confirmed(more, effects, Confirmed::default())
    }

    fn confirmed(more: &str, effects: Effects, confirmed: Confirmed) -> [bool; 4] {
        let hints = of(&contract(more), effects, confirmed);
        [
            hints.read_only_hint.unwrap(),
            hints.destructive_hint.unwrap(),
            hints.idempotent_hint.unwrap(),
            hints.open_world_hint.unwrap(),
        ]
    }

    const NOTHING: Effects = Effects {
        writes: false,
        network: false,
        secrets: false,
        risk: 0,
        approval: toolward_policy::ApprovalClass::Auto,
    };

    #[test]
    fn a_tool_that_only_computes_is_read_only_and_closed() {
        assert_eq!(hints("", NOTHING), [true, false, false, false]);
        assert_eq!(
            hints("idempotent: true", NOTHING),
            [true, false, true, false]
        );
    }

    #[test]
    fn network_opens_the_world_and_secrets_are_more_than_reading() {
        let network = Effects {
            network: true,
            ..NOTHING
        };
        assert_eq!(hints("", network), [false, false, false, true]);
        let secrets = Effects {
            secrets: true,
            ..NOTHING
        };
        assert_eq!(hints("", secrets), [false, false, false, false]);
    }

    #[test]
    fn any_write_is_destructive_and_not_idempotent_whatever_the_bundle_says() {
        let claims = "idempotent: true\nmetadata: {mcp: {annotations: {readOnlyHint: true, \
                      destructiveHint: false, idempotentHint: true, openWorldHint: false}}}";
        let writes = Effects {
            writes: true,
            network: true,
            ..NOTHING
        };
        assert_eq!(hints(claims, writes), [false, true, false, true]);
    }

    #[test]
    fn what_a_bundle_says_of_itself_can_only_make_it_more_cautious() {
        let claims = "idempotent: true\nmetadata: {mcp: {annotations: {readOnlyHint: false, \
                      destructiveHint: true, idempotentHint: false, openWorldHint: true}}}";
        assert_eq!(hints(claims, NOTHING), [false, true, false, true]);
    }

    #[test]
    fn a_risk_level_counts_as_what_it_stands_for() {
        let risk = |risk| hints("", Effects { risk, ..NOTHING });
        assert_eq!(risk(1), [false, true, false, false]);
        assert_eq!(risk(2), [false, true, false, true]);
    }

    #[test]
    fn an_operator_confirms_what_a_bundle_says_and_nothing_else() {
        let writes = Effects {
            writes: true,
            ..NOTHING
        };
        let all = Confirmed {
            idempotent: true,
            additive: true,
        };
        let claims = "idempotent: true\nmetadata: {mcp: {annotations: {destructiveHint: false}}}";
        let of = |claims, effects, what| confirmed(claims, effects, what);
        assert_eq!(of(claims, writes, all), [false, false, true, false]);
        assert_eq!(of("", writes, all), [false, true, false, false]);
        let one = Confirmed {
            idempotent: true,
            additive: false,
        };
        assert_eq!(of(claims, writes, one), [false, true, true, false]);
        let irreversible = Effects { risk: 3, ..writes };
        assert_eq!(of(claims, irreversible, all), [false, true, true, true]);
    }
}
