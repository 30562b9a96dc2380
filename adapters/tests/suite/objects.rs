//! Finds the objects of Agent Tool in records, and checks them against their schemas. The
//! end-to-end tests use it, too.

use std::collections::BTreeSet;

use serde_json::Value;
use toolward_adapters::records::SCHEMAS;
use toolward_contract::NoScope;
use toolward_contract::schema::Schema;

/// The places of objects, with their kinds. A list contains objects of one kind.
const PLACES: [(&str, &str); 16] = [
    ("tool_declaration", "tool_declaration"),
    ("input_contract", "tool_input_contract"),
    ("output_contract", "tool_output_contract"),
    ("external_mappings", "tool_external_mapping"),
    ("tool_interface", "tool_interface"),
    ("tool_execution_profiles", "tool_execution_profile"),
    ("tool_permission_profiles", "tool_permission_profile"),
    ("tool_namespace", "tool_namespace"),
    ("tool_surface", "tool_surface"),
    ("tool_invocation", "tool_invocation"),
    ("tool_permission_decision", "tool_permission_decision"),
    ("tool_progress", "tool_progress"),
    ("tool_result", "tool_result"),
    ("tool_error", "tool_error"),
    ("tool_event", "tool_event"),
    ("deferred_tools", "deferred_tool_ref"),
];

macro_rules! published {
    ($object:literal) => {
        (
            $object,
            include_str!(concat!("../schemas/", $object, ".json")),
        )
    };
}

/// The fifteen schemas that Agent Tool publishes, in our own form: the required fields and their
/// types.
const PUBLISHED: [(&str, &str); 15] = [
    published!("tool_event"),
    published!("tool_declaration"),
    published!("tool_interface"),
    published!("tool_surface"),
    published!("tool_invocation"),
    published!("tool_permission_profile"),
    published!("tool_permission_decision"),
    published!("tool_input_mutation"),
    published!("tool_hook"),
    published!("tool_scheduler_policy"),
    published!("deferred_tool_ref"),
    published!("tool_result"),
    published!("tool_result_persistence"),
    published!("tool_progress"),
    published!("tool_execution_profile"),
];

/// The objects that have a published schema, but that no call of this host makes.
const NOT_MADE: [&str; 4] = [
    "tool_input_mutation",
    "tool_hook",
    "tool_scheduler_policy",
    "tool_result_persistence",
];

/// Asserts that every record matches the published schema of its object, and that each object has a
/// record.
#[track_caller]
pub(crate) fn are_published(found: &[(&'static str, Value)]) {
    for (object, text) in PUBLISHED {
        let document: Value = serde_json::from_str(text).unwrap();
        let schema = Schema::compile(&document, &NoScope).unwrap();
        let mut records = found.iter().filter(|(name, _)| *name == object).peekable();
        assert_eq!(
            records.peek().is_none(),
            NOT_MADE.contains(&object),
            "{object}"
        );
        for (_, record) in records {
            let valid = schema.validate(record);
            valid.unwrap_or_else(|violation| panic!("{object}: {violation}: {record:#}"));
        }
    }
}

/// The objects below a value, with their names.
pub(crate) fn objects(value: &Value) -> Vec<(&'static str, Value)> {
    let Value::Object(members) = value else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (key, member) in members {
        let Some((_, object)) = PLACES.iter().find(|(place, _)| place == key) else {
            continue;
        };
        let several = std::slice::from_ref(member);
        for one in member.as_array().map_or(several, Vec::as_slice) {
            found.push((*object, one.clone()));
            found.extend(objects(one));
        }
    }
    found
}

fn schema(object: &str) -> (Value, Schema) {
    let (_, text) = SCHEMAS.iter().find(|(name, _)| *name == object).unwrap();
    let document: Value = serde_json::from_str(text).unwrap();
    let schema = Schema::compile(&document, &NoScope);
    (
        document,
        schema.unwrap_or_else(|error| panic!("{object}: {error}")),
    )
}

/// Asserts that every record matches its schema. With an unknown field it must still match. Without
/// a required field, or with another version, it must not match.
#[track_caller]
pub(crate) fn are_valid(found: &[(&'static str, Value)]) {
    for (object, record) in found {
        let (document, schema) = schema(object);
        let valid = schema.validate(record);
        valid.unwrap_or_else(|violation| panic!("{object}: {violation}: {record:#}"));
        let members = record.as_object().unwrap();
        let changed = |change: &dyn Fn(&mut serde_json::Map<String, Value>)| {
            let mut members = members.clone();
            change(&mut members);
            schema.validate(&Value::Object(members))
        };
        let unknown = changed(&|members| {
            members.insert("x_unknown".to_owned(), Value::Null);
        });
        unknown.unwrap();
        let other = changed(&|members| {
            members.insert("schema_version".to_owned(), "0.1.1".into());
        });
        other.unwrap_err();
        let required = document["required"].as_array().unwrap();
        assert!(required.len() > 2, "{object}");
        for field in required {
            let field = field.as_str().unwrap();
            let without = changed(&|members| {
                members.shift_remove(field);
            });
            assert!(without.is_err(), "{object} is valid without {field}");
        }
    }
}

/// Returns all objects that have schemas.
pub(crate) fn all() -> BTreeSet<&'static str> {
    SCHEMAS.iter().map(|(name, _)| *name).collect()
}
