//! Describes one tool as MCP's `Tool`. Texts of publishers are escaped, bounded, and
//! labelled with the publisher.

use rmcp::model::MetaObject;
use serde_json::{Value, json};
use toolward_bundle::text::{visible, visible_line};
use toolward_contract::tool::{CostClass, McpResult};
use toolward_host::{DriverFacts, ToolFacts};
use toolward_policy::{Effects, Withheld};

use super::{Listed, annotations, icons, schemas};
use crate::result::Structure;

/// Characters of a title. A contract's name has at most 80; escaped, it may
/// have more.
const MAX_TITLE_CHARS: usize = 120;
/// Characters of a description.
const MAX_DESCRIPTION_CHARS: usize = 4000;
/// Characters of a publisher's name.
const MAX_PUBLISHER_CHARS: usize = 120;
/// Parts of a declaration that are named as not given.
const MAX_WITHOUT_SHOWN: usize = 5;
/// Characters of one of them.
const MAX_CAPABILITY_CHARS: usize = 240;
/// `_meta` of a tool: its id and its publisher.
const META_KEY: &str = "toolward/tool";

pub(super) fn listed(
    name: String,
    info: ToolFacts,
    effects: Effects,
    result: McpResult,
    icons: &mut icons::Room,
) -> Listed {
    let not_given = not_given(&info.without());
    let contract = info.contract;
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
        .with_annotations(annotations::of(&contract, effects, info.confirmed));
    let structure = match &output {
        None => Structure::None,
        Some(output) if output.wrapped => Structure::Wrapped,
        Some(_) => Structure::Value,
    };
    tool.output_schema = output.map(|output| output.schema);
    if let Some(icon) = info.icon.and_then(|icon| icons.take(&icon)) {
        tool = tool.with_icons(vec![icon]);
    }
    let mut about = json!({
        "id": contract.id.as_str(),
        "version": contract.version.to_string(),
        "publisher": publisher,
        "cost_class": contract.cost_class,
        "drivers": open(&info.drivers).map(driver).collect::<Vec<_>>(),
    });
    let budget = contract.budget();
    if let (false, Some(about)) = (budget.is_empty(), about.as_object_mut()) {
        about.insert("budget".to_owned(), Value::Object(budget));
    }
    let mut meta = MetaObject::new();
    meta.insert(META_KEY.to_owned(), about);
    Listed {
        name,
        target: contract.major_id(),
        publisher: info.publisher,
        bundle: info.bundle,
        tool: tool.with_meta(meta),
        wrapped_input: input.wrapped,
        structure,
        contract,
    }
}

/// A driver, with its cost where it says one, and what it is used without.
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

/// A part of a declaration, with what the policy gives of it all the same.
fn declared(one: &Withheld) -> String {
    visible_line(&one.to_string(), MAX_CAPABILITY_CHARS)
}

/// What the tool declares and does not get, or not as a whole.
fn not_given(all: &[&Withheld]) -> String {
    let mut shown: Vec<String> = Vec::new();
    for one in all.iter().map(|one| declared(one)) {
        if !shown.contains(&one) {
            shown.push(one);
        }
    }
    let more = shown.len().saturating_sub(MAX_WITHOUT_SHOWN);
    shown.truncate(MAX_WITHOUT_SHOWN);
    match (shown.as_slice(), more) {
        ([], _) => String::new(),
        (shown, 0) => format!(", not given: {}", shown.join(", ")),
        (shown, more) => format!(", not given: {} and {more} more", shown.join(", ")),
    }
}

/// The drivers that may serve a call, in order of preference.
fn open(drivers: &[DriverFacts]) -> impl Iterator<Item = &DriverFacts> {
    drivers.iter().filter(|driver| driver.is_open())
}

/// The publishers of drivers, without the contract's own.
fn carried_out_by(drivers: &[DriverFacts], publisher: &str) -> String {
    let mut foreign: Vec<String> = Vec::new();
    for driver in open(drivers).filter(|driver| driver.publisher != publisher) {
        let name = visible_line(&driver.publisher, MAX_PUBLISHER_CHARS);
        if !foreign.contains(&name) {
            foreign.push(name);
        }
    }
    match foreign.as_slice() {
        [] => String::new(),
        names => format!(", carried out by {}", names.join(" or ")),
    }
}
