//! AML's recommended lints: valid, and probably not meant.

use toolward_support::fields::Content;

use super::codes;
use super::fields::{Findings, Node, is_empty, present};
use super::rules::{Behaviour, Definition, Status};

/// Applies the lints.
pub(super) fn check(definition: Definition<'_>, findings: &mut Findings<'_>) {
    if let Some((Status::Deprecated, at)) = definition.status
        && !definition.is_dated
    {
        let message = "expected `meta.last_updated` of a deprecated tool, found nothing";
        findings.add(&codes::DEPRECATED_UNDATED, at, message);
    }
    let Some((mut guidance, at)) = definition.guidance else {
        return;
    };
    for key in ["use_when", "avoid_when"] {
        if present(&mut guidance, key).is_none_or(|field| is_empty(&field)) {
            findings.missing(&codes::USE_UNGUIDED, &guidance.name_of(key), at);
        }
    }
    if !matches!(definition.behaviour, Some((Behaviour::Action, _))) {
        return;
    }
    match present(&mut guidance, "side_effects").filter(|field| !is_empty(field)) {
        None => {
            let name = guidance.name_of("side_effects");
            findings.missing(&codes::SIDE_EFFECTS_MISSING, &name, at);
        }
        Some(field) if says_none(&field) => {
            let message = format!(
                "expected `{}` to say what a tool of type action changes, found none",
                field.name
            );
            findings.add(&codes::SIDE_EFFECTS_NONE, field.at, message);
        }
        Some(_) => {}
    }
}

/// Whether the first sentence of each text is "None".
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
