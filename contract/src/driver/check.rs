//! Checks a driver against one contract that it implements: a driver may narrow the contract, but
//! never widen it.

use serde_json::Value;
use toolward_support::fields::NearNames;

use super::{Driver, DriverKind, HttpCall, Implements, InputMapping, SlotSource};
use crate::capability::{Capability, Class};
use crate::codes;
use crate::diagnostic::{Diagnostic, FileReport};
use crate::form::Form;
use crate::schema::Shape;
use crate::tool::Tool;

/// The hint with the known name that was probably meant. `near` limits the work, since a hostile
/// driver may misspell thousands of names.
fn hint(near: &mut NearNames, name: &str, shape: &Shape) -> Option<String> {
    // A known name is refused for another reason, so it needs no such hint.
    if shape.names.contains(name) {
        return None;
    }
    let near = near.find(name, shape.names.iter().map(String::as_str))?;
    Some(format!("did you mean `{near}`?"))
}

impl Driver {
    /// Checks the driver against a contract that it names: version, dropped and mapped fields,
    /// timeout, kind, request or form. `file` is the name of DRIVER.md in the diagnostics. Returns
    /// no diagnostics if the driver does not name the contract.
    pub fn check_against(&self, tool: &Tool, file: &str) -> Vec<Diagnostic> {
        let report = FileReport::new(file);
        let entries = self.implements.iter();
        let named: Vec<&Implements> = entries
            .filter(|entry| entry.is_of(tool.id.as_str()))
            .collect();
        let Some(first) = named.first() else {
            return Vec::new();
        };
        match self.implements_tool(tool.id.as_str(), &tool.version) {
            Some(entry) => check_entry(self, entry, tool, &report),
            None => {
                let ranges: Vec<&str> = named.iter().map(|entry| &*entry.version_text).collect();
                let message = format!(
                    "expected a range that takes in {} {}, found {}",
                    tool.id,
                    tool.version,
                    ranges.join(" and ")
                );
                report.add(&codes::DRIVER_VERSION_MISMATCH, first.at, message);
            }
        }
        report.finish(Some(())).diagnostics
    }

    /// For a driver of [`DriverKind::Form`]: the form that a person fills in for a call of `tool`
    /// through `entry`. It is the contract's `outputs` without the outputs that the driver does not
    /// give.
    ///
    /// # Errors
    /// The reason why `outputs` is not a form, for people.
    pub fn form(&self, tool: &Tool, entry: &Implements) -> Result<Value, String> {
        let mut schema = tool.outputs.value().clone();
        if let Some(fields) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            fields.retain(|name, _| !entry.drop_outputs.contains(name));
            if fields.is_empty() {
                return Err("the form has no fields".to_owned());
            }
        }
        Form::read(&schema).map(|_| schema)
    }
}

fn check_entry(driver: &Driver, entry: &Implements, tool: &Tool, report: &FileReport<'_>) {
    let (at, id) = (entry.at, &tool.id);
    if !tool.driver_constraints.permits(driver.kind.as_str()) {
        let message = format!(
            "expected a kind that the driver_constraints of {id} permit, found {}",
            driver.kind
        );
        report.add(&codes::DRIVER_KIND_FORBIDDEN, at, message);
    }
    let (inputs, outputs) = (tool.inputs.shape(), tool.outputs.shape());
    let mut near = NearNames::default();
    let inputs_code = &codes::DRIVER_DROPS_INPUT;
    let outputs_code = &codes::DRIVER_DROPS_OUTPUT;
    for (part, names, shape, code) in [
        ("inputs", &entry.drop_inputs, &inputs, inputs_code),
        ("outputs", &entry.drop_outputs, &outputs, outputs_code),
    ] {
        for name in names {
            if let Some(expected) = shape.refuses_drop(name) {
                let message = format!(
                    "expected `drop_{part}` to name {expected} {part} of {id}, found `{name}`"
                );
                report.add_with_hint(code, at, message, hint(&mut near, name, shape));
            }
        }
    }
    for (field, source) in entry.mapping.iter() {
        let from = &source.from;
        if inputs.lacks(from) {
            let message =
                format!("expected `mapping.{field}` to come from an input of {id}, found `{from}`");
            let hint = hint(&mut near, from, &inputs);
            report.add_with_hint(&codes::DRIVER_MAPS_UNKNOWN_INPUT, at, message, hint);
        }
    }
    for (field, _) in entry.mapping.iter() {
        let mut sources = entry.mapping.iter();
        if inputs.names.contains(field) && !sources.any(|(_, source)| source.from == field) {
            let message = format!(
                "expected `mapping.{field}` not to hide the input `{field}` of {id}, found it hidden"
            );
            report.add(&codes::MAPPING_INVALID, at, message);
        }
    }
    let overrides = [driver.timeout_override, entry.timeout];
    let widest = overrides.into_iter().flatten().max();
    if let Some(wide) = widest.filter(|wide| *wide > tool.timeout) {
        let (limit, found) = (tool.timeout.as_millis(), wide.as_millis());
        let message = format!("expected at most the {limit} ms of {id}, found {found} ms");
        report.add(&codes::DRIVER_TIMEOUT_WIDENED, at, message);
    }
    check_request(driver, entry, tool, &mut near, report);
    // Skipped after other errors, since a misspelt placeholder also leaves its input without a
    // place.
    if let Some(call) = entry.http.as_ref().filter(|_| !report.has_errors()) {
        check_places(call, entry, tool, report);
    }
    if driver.kind == DriverKind::Form {
        check_form(driver, entry, tool, report);
    }
}

/// Warns of the first input that the request would drop.
fn check_places(call: &HttpCall, entry: &Implements, tool: &Tool, report: &FileReport<'_>) {
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

/// The first input that would be lost silently: no placeholder uses it, the body does not send it,
/// and the driver does not list it as dropped. The rule is the same for DRIVER.md and for the
/// transports of tools.json.
pub(crate) fn unplaced<'s>(
    call: &HttpCall,
    mapping: &InputMapping,
    dropped: &[String],
    inputs: &'s Shape,
) -> Option<&'s str> {
    if call.sends_whole_input() {
        return None;
    }
    let used = call.inputs();
    let placed = |name: &str| {
        let mut renamed = mapping
            .iter()
            .filter(|(_, source)| source.from == name)
            .peekable();
        match renamed.peek() {
            Some(_) => renamed.any(|(own, _)| used.contains(own)),
            None => used.contains(name),
        }
    };
    let mut names = inputs.names.iter().map(String::as_str);
    names.find(|name| !placed(name) && !dropped.iter().any(|own| own == name))
}

/// Checks a driver that asks a person. Reports each problem for which every call would be refused.
fn check_form(driver: &Driver, entry: &Implements, tool: &Tool, report: &FileReport<'_>) {
    if let Err(problem) = driver.form(tool, entry) {
        let message = format!(
            "expected `outputs` of {} to be a form, found that {problem}",
            tool.id
        );
        report.add(&codes::FORM_INVALID, entry.at, message);
    }
    let asks = |one: &Capability| one.to_string() == "user:form";
    if !required(driver, tool).any(asks) {
        let message = format!(
            "expected {} or the driver to declare that it asks a person, found no such declaration",
            tool.id
        );
        let hint = "add `requires: { user: [form] }` to the contract".to_owned();
        report.add_with_hint(&codes::FORM_UNDECLARED, entry.at, message, hint);
    }
}

/// The requirements of the driver and of the contract.
fn required<'r>(driver: &'r Driver, tool: &'r Tool) -> impl Iterator<Item = &'r Capability> {
    let own = driver.requires.capabilities.iter();
    own.chain(&tool.requires.capabilities)
}

/// Checks the request of a declarative driver (`kind: http`). Reports each problem for which every
/// call would be refused.
fn check_request(
    driver: &Driver,
    entry: &Implements,
    tool: &Tool,
    near: &mut NearNames,
    report: &FileReport<'_>,
) {
    let (Some(call), Some(origin)) = (&entry.http, driver.origin()) else {
        return;
    };
    let inputs = tool.inputs.shape();
    // A placeholder in `default_headers` is not in the entry, so it is reported at the start of the
    // entry.
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
            report.add_with_hint(&codes::HTTP_INPUT_UNKNOWN, at, message, hint);
        }
    }
    let context = call.context();
    if tool.context_schema.is_none() && !context.is_empty() {
        let message = format!(
            "expected {} to have a `contextSchema`, found none: its calls have no context",
            tool.id
        );
        let first = context.first();
        let at = first.map_or(entry.at, |name| placed(SlotSource::Context, name));
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
            report.add_with_hint(&codes::HTTP_INPUT_UNKNOWN, at, message, hint);
        }
    }
    let host = |one: &Capability| {
        *one.class() == Class::External || one.host().is_some_and(|host| host.covers(origin))
    };
    let (may_read, id) = (call.method.is_safe(), &tool.id);
    let declared = tool.mutates.iter().any(host) || may_read && required(driver, tool).any(host);
    if !declared {
        let (requests, line) = match may_read {
            true => (
                "requests",
                format!("requires: {{ network: [\"{origin}\"] }}"),
            ),
            false => (
                "requests that change something",
                format!("mutates: [\"network:{origin}\"]"),
            ),
        };
        let message =
            format!("expected {id} to declare {requests} to {origin}, found no such declaration");
        let hint = format!("add `{line}` to the contract");
        report.add_with_hint(&codes::HTTP_UNDECLARED, entry.at, message, hint);
    }
    for slug in call.secrets() {
        let is_slug = |one: &Capability| *one.class() == Class::Secret && one.scope() == slug;
        if !required(driver, tool).any(is_slug) {
            let message = format!(
                "expected {id} or the driver to declare the secret `{slug}`, found no such declaration"
            );
            let hint = format!("add `requires: {{ secrets: [\"{slug}\"] }}` to the contract");
            report.add_with_hint(&codes::HTTP_UNDECLARED, entry.at, message, hint);
        }
    }
}
