//! AML's subset of JSON Schema ("JSON Schema in YAML"): an object at the top, and everything written out in place.

use toolward_contract::diagnostic::Position;
use toolward_support::fields::Content;

use super::fields::Node;

/// Keywords whose values are data and not schemas.
const DATA: [&str; 4] = ["const", "default", "enum", "examples"];

/// The first part that AML's compiler refuses, and why; the reason follows the field's name.
pub(super) fn breach(schema: &Node) -> Option<(Position, String)> {
    let Content::Mapping(_) = &schema.content else {
        return None;
    };
    match schema.get("type").map(|kind| (kind.at, &kind.content)) {
        Some((_, Content::Text(kind))) if kind == "object" => reference(schema, false),
        Some((at, _)) => Some((
            at,
            "does not describe an object: `type` is another".to_owned(),
        )),
        None => Some((
            schema.at,
            "does not describe an object: it has no `type: object`".to_owned(),
        )),
    }
}

/// The first `$ref` or `$id`. `names`: whether the keys are names of properties.
fn reference(node: &Node, names: bool) -> Option<(Position, String)> {
    match &node.content {
        Content::List(items) => items.iter().find_map(|item| reference(item, false)),
        Content::Mapping(entries) => entries.iter().find_map(|entry| match entry.key.as_str() {
            key @ ("$ref" | "$id") if !names => {
                let found = format!("has `{key}`, which AML does not know: write the schema out");
                Some((entry.key_at, found))
            }
            key if !names && DATA.contains(&key) => None,
            key => reference(&entry.value, !names && key == "properties"),
        }),
        _ => None,
    }
}
