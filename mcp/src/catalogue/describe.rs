//! Describes one tool as MCP's `Tool`. Texts of publishers are escaped, bounded, and labelled with
//! the publisher. Icons are inline: clients fetch nothing, and no server learns who looks at an
//! icon.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{Icon, ToolAnnotations};
use serde_json::{Value, json};
use toolward_bundle::text::{visible, visible_line};
use toolward_contract::tool::{CostClass, McpResult, Tool};
use toolward_host::{DriverFacts, ToolFacts};
use toolward_policy::{Confirmed, Effects, Hints, Withheld};

use super::{ListedTool, schemas};
use crate::result::{Structure, meta};

/// Characters of a title. A contract's name has at most 80, but escapes can make it longer.
const MAX_TITLE_CHARS: usize = 120;
/// Characters of a description.
const MAX_DESCRIPTION_CHARS: usize = 4000;
/// Characters of a publisher's name.
const MAX_PUBLISHER_CHARS: usize = 120;
/// The most capabilities that a description lists as not given, or that a driver lists as missing.
const MAX_WITHOUT_SHOWN: usize = 5;
/// Characters of one of these capabilities.
const MAX_CAPABILITY_CHARS: usize = 240;
/// `_meta` of a tool: its id, version, publisher, costs and drivers.
const META_KEY: &str = "toolward/tool";

pub(super) fn listed(
    name: String,
    info: &ToolFacts,
    effects: Effects,
    result: McpResult,
    icon_bytes: &mut usize,
) -> ListedTool {
    let not_given = not_given(&info.without());
    let contract = info.contract.clone();
    let publisher = visible_line(&info.publisher, MAX_PUBLISHER_CHARS);
    let input = schemas::of_input(&contract.inputs, contract.mcp_schemas);
    let output = match result {
        McpResult::Structured => schemas::of_output(&contract.outputs, contract.mcp_schemas),
        McpResult::Content => None,
    };
    // The label comes first, since the publisher chooses the text after it.
    let description = format!(
        "[{publisher}{}{not_given}] {}",
        carried_out_by(&info.drivers, &info.publisher),
        visible(&contract.description, MAX_DESCRIPTION_CHARS)
    );

    let mut tool = rmcp::model::Tool::new(name.clone(), description, input.schema)
        .with_title(visible_line(&contract.name, MAX_TITLE_CHARS))
        .with_annotations(annotations(&contract, effects, info.confirmed()));
    let structure = match &output {
        None => Structure::None,
        Some(output) if output.wrapped => Structure::Wrapped,
        Some(_) => Structure::Value,
    };
    tool.output_schema = output.map(|output| output.schema);
    if let Some(icon) = info.icon.as_ref().and_then(|icon| inline(icon, icon_bytes)) {
        tool = tool.with_icons(vec![icon]);
    }
    let mut about = json!({
        "id": contract.id.as_str(),
        "version": contract.version.to_string(),
        "publisher": publisher,
        "cost_class": contract.cost_class,
        "drivers": open(&info.drivers).map(|one| driver(one)).collect::<Vec<_>>(),
    });
    let budget = contract.budget();
    if let (false, Some(about)) = (budget.is_empty(), about.as_object_mut()) {
        about.insert("budget".to_owned(), Value::Object(budget));
    }
    ListedTool {
        name,
        target: contract.major_id(),
        publisher: info.publisher.to_string(),
        bundle: info.bundle.to_string(),
        tool: tool.with_meta(meta(META_KEY, about)),
        wrapped_input: input.wrapped,
        structure,
        contract,
    }
}

/// A driver, with its cost if it declares one, and the capabilities that it runs without.
fn driver(driver: &DriverFacts) -> Value {
    let says = driver.cost.class != CostClass::Trivial || driver.cost.units_per_call.is_some();
    let publisher = visible_line(&driver.publisher, MAX_PUBLISHER_CHARS);
    let mut value = match says {
        true => json!({ "id": driver.id, "publisher": publisher, "cost": driver.cost }),
        false => json!({ "id": driver.id, "publisher": publisher }),
    };
    let without = driver.without().iter().map(declared);
    let without: Vec<String> = without.take(MAX_WITHOUT_SHOWN).collect();
    if let (false, Some(members)) = (without.is_empty(), value.as_object_mut()) {
        members.insert("without".to_owned(), json!(without));
    }
    value
}

/// A capability that the tool declares and does not get, with the smaller part that the policy
/// still gives, if any.
fn declared(one: &Withheld) -> String {
    visible_line(&one.to_string(), MAX_CAPABILITY_CHARS)
}

/// Lists the capabilities that the tool declares and does not get, or gets only in part.
fn not_given(all: &[&Withheld]) -> String {
    let mut shown = unique(all.iter().map(|one| declared(one)));
    let more = shown.len().saturating_sub(MAX_WITHOUT_SHOWN);
    shown.truncate(MAX_WITHOUT_SHOWN);
    match (shown.as_slice(), more) {
        ([], _) => String::new(),
        (shown, 0) => format!(", not given: {}", shown.join(", ")),
        (shown, more) => format!(", not given: {} and {more} more", shown.join(", ")),
    }
}

/// The drivers that may serve a call, in order of preference.
fn open(drivers: &[Arc<DriverFacts>]) -> impl Iterator<Item = &Arc<DriverFacts>> {
    drivers.iter().filter(|driver| driver.is_open())
}

/// Names the publishers of the drivers that may serve a call, except the contract's own publisher.
fn carried_out_by(drivers: &[Arc<DriverFacts>], publisher: &str) -> String {
    let foreign = open(drivers).filter(|driver| *driver.publisher != *publisher);
    let foreign = foreign.map(|driver| visible_line(&driver.publisher, MAX_PUBLISHER_CHARS));
    match unique(foreign).as_slice() {
        [] => String::new(),
        names => format!(", carried out by {}", names.join(" or ")),
    }
}

fn unique(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = Vec::new();
    for text in texts {
        if !seen.contains(&text) {
            seen.push(text);
        }
    }
    seen
}

/// Bytes of all icons of a catalogue together, so that the list of tools stays small.
pub(super) const MAX_ICON_BYTES: usize = 1 << 20;

/// The icon as a `data:` URI; `None` if it does not fit into the bytes that are left for icons.
fn inline(icon: &toolward_host::Icon, left: &mut usize) -> Option<Icon> {
    *left = left.checked_sub(icon.bytes.len())?;
    let data = STANDARD.encode(&icon.bytes);
    let source = format!("data:{};base64,{data}", icon.mime_type);
    Some(Icon::new(source).with_mime_type(icon.mime_type))
}

/// The annotations of a tool. All four are always given, since clients differ in their
/// defaults.
pub(super) fn annotations(
    contract: &Tool,
    effects: Effects,
    confirmed: Confirmed,
) -> ToolAnnotations {
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
        let hints = annotations(&contract(more), effects, confirmed);
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
