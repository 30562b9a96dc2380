//! AML's recommended lints, and a lint for unknown fields whose name resembles a field of AML. Such
//! a field is valid, but probably a mistake: AML's compiler ignores it.

use toolward_support::fields::{Content, nearest};

use super::codes;
use super::fields::{Field, Fields, Findings, Node, find, is_empty, present};

/// Applies the lints.
pub(super) fn check(document: &Node, findings: &mut Findings<'_>) {
    let is = |key: &str, word: &str| {
        let found = document.get(key).map(|node| &node.content);
        matches!(found, Some(Content::Text(text)) if text == word)
    };
    if let Some(status) = document.get("status")
        && is("status", "deprecated")
        && find(document, "meta.last_updated").is_none_or(is_empty)
    {
        let message = "expected `meta.last_updated` of a deprecated tool, found nothing";
        findings.add(&codes::DEPRECATED_UNDATED, status.at, message);
    }
    let Ok(mut fields) = Fields::of(&Field::new("", document)) else {
        return;
    };
    let Some(field) = present(&mut fields, "use_guidance") else {
        return;
    };
    let (Ok(mut guidance), at) = (Fields::of(&field), field.key_at) else {
        return;
    };
    for key in ["use_when", "avoid_when"] {
        findings.filled(&mut guidance, key, &codes::USE_UNGUIDED, at);
    }
    let missing = &codes::SIDE_EFFECTS_MISSING;
    if is("type", "action")
        && let Some(field) = findings.filled(&mut guidance, "side_effects", missing, at)
        && says_none(&field)
    {
        let message = format!(
            "expected `{}` to say what a tool of type action changes, found none",
            field.name
        );
        findings.add(&codes::SIDE_EFFECTS_NONE, field.at, message);
    }
}

/// Whether the first sentence of the text, or of each text in the list, is "None".
fn says_none(node: &Node) -> bool {
    match &node.content {
        Content::Text(text) => {
            let first = text.split('.').next().unwrap_or_default();
            first.trim().eq_ignore_ascii_case("none")
        }
        Content::List(items) => items.iter().all(says_none),
        _ => false,
    }
}

/// The mappings of a definition by their paths, each with the fields that AML's "Field reference"
/// lists.
const MAPPINGS: &[(&str, &str)] = &[
    (
        "",
        "spec_version tool_id version status meta type interface transport use_guidance error_codes",
    ),
    ("meta", "name description owner tags last_updated"),
    ("interface", "input output"),
    ("use_guidance", "use_when avoid_when side_effects"),
    (
        "transport",
        "type base_url endpoint timeout_ms retry_policy credentials \
         provider function_id invocation_type payload_format \
         url tool_name protocol_version \
         queue_url message_format response_queue_url \
         engine query_method",
    ),
    ("transport.retry_policy", "max_attempts on_status"),
    (
        "transport.credentials",
        // Includes the fields for connections to databases and clouds.
        "scheme source name secret_id header header_name provider function_id \
         account cluster_arn database dataset host password port project project_id region \
         resource_arn role role_arn schema scope scopes secret_arn secret_name token_url user \
         username vault_url version warehouse",
    ),
];

/// Warns of each unknown field whose name is similar to a known field of the same mapping.
pub(super) fn check_names(document: &Node, findings: &mut Findings<'_>) {
    for (way, known) in MAPPINGS {
        let Some(Content::Mapping(entries)) = find(document, way).map(|node| &node.content) else {
            continue;
        };
        let known: Vec<&str> = known.split(' ').collect();
        for entry in entries {
            if known.contains(&entry.key.as_str()) {
                continue;
            }
            if let Some(near) = nearest(&entry.key, known.iter().copied()) {
                let name = format!("{way}.{}", entry.key);
                let name = name.trim_start_matches('.');
                let message = format!("expected a field of AML, found `{name}`: it is read past");
                let hint = Some(format!("did you mean `{near}`?"));
                findings.add_hinted(&codes::FIELD_UNKNOWN, entry.key_at, message, hint);
            }
        }
    }
}
