//! The contract of a definition.

use serde_json::{Map, Value, json};

use super::codes::{Note, Refused};
use super::request::Request;
use crate::aml::{Behaviour, Definition, Status, Transport};
use crate::import::document::{MAX_DESCRIPTION, clean, cut, line, unhidden, with};

/// Longest name of a contract, in characters.
const MAX_NAME: usize = 80;
/// Longest tag, in characters, and how many there are.
const MAX_TAG: usize = 80;
const MAX_TAGS: usize = 32;
/// What AML says where a definition says nothing.
const TIMEOUT_MS: u64 = 5000;
const ATTEMPTS: u64 = 3;
/// How long a person may take.
const ANSWER_MS: u64 = 600_000;

/// The fields of the contract; `request` is what carries it out, if this host can.
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
    let mut requires = Map::new();
    if let Some(request) = request {
        if !changes {
            requires.insert("network".to_owned(), json!([request.host]));
        }
        if let Some((slug, _)) = &request.secret {
            requires.insert("secrets".to_owned(), json!([slug]));
        }
    }
    if behaviour == Behaviour::Human {
        requires.insert("user".to_owned(), json!(["form"]));
    }
    let contract = json!({
        "id": tool,
        "name": cut(&line(&definition.name), MAX_NAME),
        "description": description(definition, notes),
        "version": definition.version,
        "idempotent": only_reads,
        "approval": if changes { "on-mutate" } else { "auto" },
        "risk_level": if behaviour == Behaviour::Action { 2 } else { 0 },
        "inputs": schema(&definition.input, "interface.input")?,
        "outputs": schema(&definition.output, "interface.output")?,
    });
    let mutates = capability.filter(|_| changes).map(|host| json!([host]));
    let requires = (!requires.is_empty()).then(|| Value::Object(requires));
    let tags: Vec<String> = (definition.tags.iter().take(MAX_TAGS))
        .map(|tag| cut(&line(tag), MAX_TAG))
        .collect();
    Ok(with(
        contract,
        [
            ("requires", requires),
            ("mutates", mutates),
            ("timeout_ms", timeout(definition)),
            ("retry", retry(definition, notes)),
            ("tags", (!tags.is_empty()).then(|| json!(tags))),
            ("metadata", Some(metadata(definition, tool))),
        ],
    ))
}

fn rest(definition: &Definition) -> Option<&Transport> {
    definition
        .transport
        .as_ref()
        .filter(|transport| transport.kind == "rest-api")
}

fn timeout(definition: &Definition) -> Option<Value> {
    if definition.behaviour == Behaviour::Human {
        return Some(ANSWER_MS.into());
    }
    let given = rest(definition)?.timeout_ms.clone();
    Some(given.unwrap_or_else(|| TIMEOUT_MS.into()))
}

/// Attempts of what only reads. An empty `on_status` disables retries.
fn retry(definition: &Definition, notes: &mut Vec<Note>) -> Option<Value> {
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
    Some(json!({ "max_attempts": attempts, "backoff": "exponential", "initial_ms": 500 }))
}

/// What it does, when to use it, what it changes.
fn description(definition: &Definition, notes: &mut Vec<Note>) -> String {
    let mut parts = Vec::new();
    match definition.status {
        Status::Deprecated => {
            notes.push(Note::Deprecated);
            parts.push("Deprecated.".to_owned());
        }
        Status::Draft => parts.push("A draft.".to_owned()),
        Status::Active | Status::Disabled => {}
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

/// What no field of a contract says. `owner` is a team's name, and no identity here. The definition's own id is no name
/// of the tool, since nothing keeps two publishers from the same one; below the prefix it is an alias.
fn metadata(definition: &Definition, tool: &str) -> Value {
    let status = match definition.status {
        Status::Draft => "draft",
        Status::Active => "active",
        Status::Deprecated => "deprecated",
        Status::Disabled => "disabled",
    };
    let kind = match definition.behaviour {
        Behaviour::Retrieval => "retrieval",
        Behaviour::Action => "action",
        Behaviour::Function => "function",
        Behaviour::Human => "human",
    };
    let effects = definition.side_effects.iter().map(|text| line(text));
    let effects: Vec<String> = effects.collect();
    let transport = definition.transport.as_ref();
    let aml = with(
        json!({ "tool_id": definition.tool_id, "status": status, "type": kind, "owner": line(&definition.owner) }),
        [
            (
                "last_updated",
                definition
                    .last_updated
                    .as_deref()
                    .map(|text| line(text).into()),
            ),
            (
                "transport",
                transport.map(|transport| transport.kind.clone().into()),
            ),
            (
                "side_effects",
                (!effects.is_empty()).then(|| json!(effects)),
            ),
        ],
    );
    let prefix = tool.rsplit_once('.').map_or("", |(prefix, _)| prefix);
    let alias = format!("{prefix}.{}", definition.tool_id);
    let alias = (alias != tool).then(|| json!({ "aliases": [alias] }));
    with(json!({ "aml": aml }), [("toolward", alias)])
}

fn schema(schema: &Value, field: &'static str) -> Result<Value, Refused> {
    unhidden(schema, &["title", "description", "$comment"]).ok_or(Refused::Hidden(field))
}
