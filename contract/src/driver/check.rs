//! Holds a driver to a contract that it implements: it may narrow, never widen. Looks at one pair.

use toolward_fields::NearNames;

use super::unplaced::unplaced;
use super::{Driver, DriverKind, HttpCall, Implements, SlotSource};
use crate::capability::{Capability, Class};
use crate::codes;
use crate::diagnostic::{Diagnostic, Report};
use crate::schema::Shape;
use crate::tool::Tool;

/// Hints at the name that was meant. Hosts check drivers too, and a driver may misspell thousands of names.
fn hint(near: &mut NearNames, name: &str, shape: &Shape) -> Option<String> {
    // A name that is known is wrong for another reason.
    if shape.names.contains(name) {
        return None;
    }
    let near = near.find(name, shape.names.iter().map(String::as_str))?;
    Some(format!("did you mean `{near}`?"))
}

pub(super) fn against(driver: &Driver, tool: &Tool, file: &str) -> Vec<Diagnostic> {
    let mut report = Report::new(file);
    let named: Vec<&Implements> = driver
        .implements
        .iter()
        .filter(|entry| entry.is_of(tool.id.as_str()))
        .collect();
    let Some(first) = named.first() else {
        return Vec::new();
    };
    let Some(entry) = driver.implements_tool(tool.id.as_str(), &tool.version) else {
        let ranges: Vec<&str> = named
            .iter()
            .map(|entry| entry.version_text.as_str())
            .collect();
        let message = format!(
            "expected a range that takes in {} {}, found {}",
            tool.id,
            tool.version,
            ranges.join(" and ")
        );
        report.add(&codes::DRIVER_VERSION_MISMATCH, first.at, message);
        return report.finish::<()>(Some(())).diagnostics;
    };
    let at = entry.at;
    if !tool.driver_constraints.permits(driver.kind.as_str()) {
        let message = format!(
            "expected a kind that the driver_constraints of {} permit, found {}",
            tool.id, driver.kind
        );
        report.add(&codes::DRIVER_KIND_FORBIDDEN, at, message);
    }
    let (inputs, outputs) = (tool.inputs.shape(), tool.outputs.shape());
    let mut near = NearNames::default();
    for name in &entry.drop_inputs {
        if let Some(expected) = inputs.refuses_drop(name) {
            let message = format!(
                "expected `drop_inputs` to name {expected} inputs of {}, found `{name}`",
                tool.id
            );
            let hint = hint(&mut near, name, &inputs);
            report.add_hinted(&codes::DRIVER_DROPS_INPUT, at, message, hint);
        }
    }
    for name in &entry.drop_outputs {
        if let Some(expected) = outputs.refuses_drop(name) {
            let message = format!(
                "expected `drop_outputs` to name {expected} outputs of {}, found `{name}`",
                tool.id
            );
            let hint = hint(&mut near, name, &outputs);
            report.add_hinted(&codes::DRIVER_DROPS_OUTPUT, at, message, hint);
        }
    }
    for (field, source) in entry.mapping.iter() {
        if inputs.lacks(&source.from) {
            let message = format!(
                "expected `mapping.{field}` to come from an input of {}, found `{}`",
                tool.id, source.from
            );
            let hint = hint(&mut near, &source.from, &inputs);
            report.add_hinted(&codes::DRIVER_MAPS_UNKNOWN_INPUT, at, message, hint);
        }
    }
    for (field, _) in entry.mapping.iter() {
        if inputs.names.contains(field)
            && !entry.mapping.iter().any(|(_, source)| source.from == field)
        {
            let message = format!(
                "expected `mapping.{field}` not to hide the input `{field}` of {}, found it hidden",
                tool.id
            );
            report.add(&codes::MAPPING_INVALID, at, message);
        }
    }
    let overrides = [driver.timeout_override, entry.timeout]
        .into_iter()
        .flatten();
    if let Some(wide) = overrides.max().filter(|wide| *wide > tool.timeout) {
        let (limit, found) = (tool.timeout.as_millis(), wide.as_millis());
        report.add(
            &codes::DRIVER_TIMEOUT_WIDENED,
            at,
            format!(
                "expected at most the {limit} ms of {}, found {found} ms",
                tool.id
            ),
        );
    }
    request(driver, entry, tool, &mut near, &mut report);
    if let Some(call) = entry.http.as_ref().filter(|_| !report.has_errors()) {
        placed(call, entry, tool, &mut report);
    }
    form(driver, entry, tool, &mut report);
    report.finish::<()>(Some(())).diagnostics
}

/// Warns of an input that would be dropped. With other errors this is left out: a misspelt placeholder leaves an input
/// without a place.
fn placed(call: &HttpCall, entry: &Implements, tool: &Tool, report: &mut Report<'_>) {
    let inputs = tool.inputs.shape();
    let unplaced = unplaced(call, &entry.mapping, &entry.drop_inputs, &inputs);
    if let Some(name) = unplaced {
        let message = format!(
            "expected the request to have a place for every input of {}, found none for `{name}`: it would be dropped",
            tool.id
        );
        let hint = match inputs.required.contains(name) {
            true => format!("use `${{input.{name}}}` in the request"),
            false => format!(
                "use `${{input.{name}}}` in the request, or add it to `schema_narrowing.drop_inputs`"
            ),
        };
        report.add_with_hint(&codes::HTTP_INPUT_UNPLACED, entry.at, message, hint);
    }
}

/// Holds a driver that asks a person to the contract: what would be refused at every call.
fn form(driver: &Driver, entry: &Implements, tool: &Tool, report: &mut Report<'_>) {
    if driver.kind != DriverKind::Form {
        return;
    }
    if let Err(problem) = driver.form(tool, entry) {
        let message = format!(
            "expected `outputs` of {} to be a form, found that {problem}",
            tool.id
        );
        report.add(&codes::FORM_INVALID, entry.at, message);
    }
    let asks = |one: &Capability| one.to_string() == "user:form";
    let own = driver.requires.capabilities.iter();
    if !own.chain(&tool.requires.capabilities).any(asks) {
        let message = format!(
            "expected {} or the driver to declare that it asks a person, found no such declaration",
            tool.id
        );
        let hint = "add `requires: { user: [form] }` to the contract".to_owned();
        report.add_with_hint(&codes::FORM_UNDECLARED, entry.at, message, hint);
    }
}

/// Holds the request of a declarative driver to the contract: what it would be refused at every call.
fn request(
    driver: &Driver,
    entry: &Implements,
    tool: &Tool,
    near: &mut NearNames,
    report: &mut Report<'_>,
) {
    let (Some(call), Some(origin)) = (&entry.http, driver.origin()) else {
        return;
    };
    let inputs = tool.inputs.shape();
    // Those of `default_headers` stand elsewhere.
    let placed = |source, name: &str| entry.places.find(source, name).unwrap_or(entry.at);
    for name in call.inputs() {
        let renamed = entry.mapping.iter().any(|(own, _)| own == name);
        let elsewhere = entry.mapping.iter().any(|(_, source)| source.from == name);
        if !renamed && (elsewhere || inputs.lacks(name)) {
            let message = format!(
                "expected placeholders for inputs of {}, found `${{input.{name}}}`",
                tool.id
            );
            let mut own = entry.mapping.iter();
            let hint = match own.find(|(_, source)| source.from == name) {
                Some((own, _)) => Some(format!(
                    "`mapping` renames the input `{name}`: write `${{input.{own}}}`"
                )),
                None => hint(near, name, &inputs),
            };
            let at = placed(SlotSource::Input, name);
            report.add_hinted(&codes::HTTP_INPUT_UNKNOWN, at, message, hint);
        }
    }
    let context = call.context();
    if tool.context_schema.is_none() && !context.is_empty() {
        let message = format!(
            "expected {} to have a `contextSchema`, found none: its calls have no context",
            tool.id
        );
        let first = context
            .first()
            .map(|name| placed(SlotSource::Context, name));
        let at = first.unwrap_or(entry.at);
        report.add(&codes::HTTP_INPUT_UNKNOWN, at, message);
    }
    if let Some(schema) = &tool.context_schema {
        let known = schema.shape();
        for name in context.into_iter().filter(|name| known.lacks(name)) {
            let message = format!(
                "expected placeholders for members of the contextSchema of {}, found `${{context.{name}}}`",
                tool.id
            );
            let hint = hint(near, name, &known);
            let at = placed(SlotSource::Context, name);
            report.add_hinted(&codes::HTTP_INPUT_UNKNOWN, at, message, hint);
        }
    }
    let host = |capability: &Capability| {
        *capability.class() == Class::External
            || capability.host().is_some_and(|host| host.covers(origin))
    };
    let written = tool.mutates.iter().any(host);
    let read = || {
        let own = driver.requires.capabilities.iter();
        own.chain(&tool.requires.capabilities).any(host)
    };
    if !(written || call.method.is_safe() && read()) {
        let message = format!(
            "expected {} to declare {} to {origin}, found no such declaration",
            tool.id,
            if call.method.is_safe() {
                "requests"
            } else {
                "requests that change something"
            }
        );
        let hint = if call.method.is_safe() {
            format!("add `requires: {{ network: [\"{origin}\"] }}` to the contract")
        } else {
            format!("add `mutates: [\"network:{origin}\"]` to the contract")
        };
        report.add_with_hint(&codes::HTTP_UNDECLARED, entry.at, message, hint);
    }
    let declared: Vec<String> = driver
        .requires
        .secrets()
        .chain(tool.requires.secrets())
        .collect();
    for slug in call.secrets() {
        if !declared.iter().any(|own| own == slug) {
            let message = format!(
                "expected {} or the driver to declare the secret `{slug}`, found no such declaration",
                tool.id
            );
            let hint = format!("add `requires: {{ secrets: [\"{slug}\"] }}` to the contract");
            report.add_with_hint(&codes::HTTP_UNDECLARED, entry.at, message, hint);
        }
    }
}
