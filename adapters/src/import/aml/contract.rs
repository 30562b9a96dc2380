//! Makes the contract of a definition.

use std::time::Duration;

use serde_json::{Value, json};
use toolward_contract::tool::{Backoff, Retry};

use super::request::{Request, timeout_of};
use super::{Note, Refused};
use crate::aml::{Behaviour, Definition, Lifecycle, Transport};
use crate::import::document::{MAX_DESCRIPTION, clean, cut, line, lines, unhidden};
use crate::records::references::{filled, object};

/// Longest name of a contract, in characters.
const MAX_NAME: usize = 80;
/// Longest tag, in characters, and the most tags.
const MAX_TAG: usize = 80;
const MAX_TAGS: usize = 32;
/// AML's default for the number of attempts.
const ATTEMPTS: u64 = 3;
/// The pause before the second attempt.
const INITIAL_MS: u64 = 500;
/// The longest `timeout_ms` of a contract.
const DAY_MS: u64 = 24 * 60 * 60 * 1000;
/// How long a person may take to answer.
const ANSWER_MS: u64 = 600_000;

/// Returns the fields of the contract. `request` is the request that a call makes, if this host can
/// make one.
pub(super) fn fields(
    definition: &Definition,
    tool: &str,
    request: Option<&Request>,
    notes: &mut Vec<Note>,
) -> Result<Value, Refused> {
    let behaviour = definition.behaviour;
    let only_reads = behaviour == Behaviour::Retrieval;
    let capability = request.map(|request| format!("network:{}", request.host));
    let changes = match request {
        Some(request) if only_reads && !request.method.is_safe() => {
            notes.push(Note::ReadsByChange(request.method.as_str()));
            true
        }
        _ => behaviour == Behaviour::Action,
    };
    let requires = object! {
        network ? request.filter(|_| !changes).map(|request| [&request.host]);
        secrets ? request.and_then(|request| request.secret.as_ref()).map(|slug| [slug]);
        user ? (behaviour == Behaviour::Human).then_some(["form"]);
    };
    let attempts = attempts(definition, notes);
    let tags: Vec<String> = (definition.tags.iter().take(MAX_TAGS))
        .map(|tag| cut(&line(tag), MAX_TAG))
        .collect();
    Ok(object! {
        id = tool;
        name = cut(&line(&definition.name), MAX_NAME);
        description = description(definition, notes);
        version = definition.version;
        idempotent = only_reads;
        approval = if changes { "on-mutate" } else { "auto" };
        risk_level = if behaviour == Behaviour::Action { 2 } else { 0 };
        inputs = schema(&definition.input, "interface.input")?;
        outputs = schema(&definition.output, "interface.output")?;
        requires ? filled(requires);
        mutates ? capability.filter(|_| changes).map(|host| [host]);
        timeout_ms ? timeout(definition, attempts.as_ref());
        retry ? attempts.map(retry);
        tags ? (!tags.is_empty()).then_some(tags);
        metadata = metadata(definition, tool);
    })
}

fn rest(definition: &Definition) -> Option<&Transport> {
    let transport = definition.transport.as_ref();
    transport.filter(|transport| transport.kind == "rest-api")
}

/// Returns the time for all attempts and the pauses between them. AML states only the time of one
/// request.
fn timeout(definition: &Definition, attempts: Option<&Value>) -> Option<Value> {
    if definition.behaviour == Behaviour::Human {
        return Some(ANSWER_MS.into());
    }
    let given = timeout_of(rest(definition)?);
    let Some(each) = given.as_u64() else {
        // Not a whole number: the contract's reader refuses it.
        return Some(given);
    };
    let attempts = attempts.map_or(Some(1), Value::as_u64);
    let attempts = attempts.and_then(|attempts| u32::try_from(attempts).ok());
    let policy = Retry {
        // The contract's reader refuses a larger number.
        max_attempts: attempts.unwrap_or(1).min(100),
        backoff: Backoff::Exponential,
        initial: Duration::from_millis(INITIAL_MS),
    };
    let pauses = (2..=policy.max_attempts).map(|attempt| policy.wait_before(attempt));
    let pauses = pauses.fold(Duration::ZERO, Duration::saturating_add);
    let pauses = u64::try_from(pauses.as_millis()).unwrap_or(u64::MAX);
    let all = each.saturating_mul(policy.max_attempts.into());
    Some(all.saturating_add(pauses).min(DAY_MS.max(each)).into())
}

/// Returns a retry policy whose pauses double. AML states no pauses.
fn retry(attempts: Value) -> Value {
    json!({ "max_attempts": attempts, "backoff": "exponential", "initial_ms": INITIAL_MS })
}

/// Returns the number of attempts of a `retrieval` tool; `None` if the tool is not retried, for
/// example because `on_status` is empty.
fn attempts(definition: &Definition, notes: &mut Vec<Note>) -> Option<Value> {
    let transport = rest(definition).filter(|_| definition.behaviour != Behaviour::Human)?;
    if transport.on_status.as_ref().is_some_and(Vec::is_empty) {
        return None;
    }
    let attempts = transport.max_attempts.clone();
    let attempts = attempts.unwrap_or_else(|| ATTEMPTS.into());
    if attempts == 1 {
        return None;
    }
    if definition.behaviour != Behaviour::Retrieval {
        notes.push(Note::OneAttempt);
        return None;
    }
    Some(attempts)
}

/// Describes the tool's purpose, when to use it, and its effects.
fn description(definition: &Definition, notes: &mut Vec<Note>) -> String {
    let mut parts = Vec::new();
    match definition.status {
        Lifecycle::Deprecated => {
            notes.push(Note::Deprecated);
            parts.push("Deprecated.".to_owned());
        }
        Lifecycle::Draft => parts.push("A draft.".to_owned()),
        Lifecycle::Active | Lifecycle::Disabled => {}
    }
    parts.push(clean(&definition.description));
    for (head, texts) in [
        ("Use when", &definition.use_when),
        ("Don't use when", &definition.avoid_when),
        ("Side effects", &definition.side_effects),
    ] {
        if !texts.is_empty() {
            let texts: Vec<String> = texts.iter().map(|text| line(text)).collect();
            parts.push(format!("{head}: {}", texts.join("; ")));
        }
    }
    let whole = parts.join("\n");
    let kept = cut(&whole, MAX_DESCRIPTION);
    if kept != whole {
        notes.push(Note::Cut);
    }
    kept
}

/// Returns the values for which a contract has no field. `owner` is a team's name, not an identity.
/// The definition's `tool_id` alone can't name the tool, since two publishers may use the same one.
/// `PREFIX.tool_id`, with the bundle's prefix, becomes an alias, unless it equals the tool's id.
fn metadata(definition: &Definition, tool: &str) -> Value {
    let effects = definition.side_effects.iter().map(|text| line(text));
    let effects: Vec<String> = effects.collect();
    // The whole block, since another host may use it to call the tool.
    let transport = definition.transport.as_ref();
    let aml = object! {
        tool_id = definition.tool_id;
        status = definition.status.as_str();
        type = definition.behaviour.as_str();
        owner = line(&definition.owner);
        last_updated ? definition.last_updated.as_deref().map(line);
        transport ? transport.map(|transport| lines(&transport.block));
        side_effects ? (!effects.is_empty()).then_some(effects);
    };
    let prefix = tool.rsplit_once('.').map_or("", |(prefix, _)| prefix);
    let alias = format!("{prefix}.{}", definition.tool_id);
    object! {
        aml = aml;
        toolward ? (alias != tool).then(|| json!({ "aliases": [alias] }));
    }
}

fn schema(schema: &Value, field: &'static str) -> Result<Value, Refused> {
    unhidden(schema, &["title", "description", "$comment"]).ok_or(Refused::Hidden(field))
}
