//! Mappings of DRIVER.md that are kept as written: `auth`, `health_check`, `metadata`.

use serde_json::{Map, Value};

use crate::codes;
use crate::diagnostic::Report;
use crate::source::Fields;

/// A mapping that is kept as written.
pub(super) fn mapping(
    fields: &mut Fields<'_>,
    key: &'static str,
    report: &mut Report<'_>,
) -> Option<Map<String, Value>> {
    let label = fields.name(key);
    let node = fields.take(key)?;
    match node.to_value() {
        Value::Object(members) => Some(members),
        _ => {
            report.add(
                &codes::WRONG_TYPE,
                node.at,
                format!("expected `{label}` to be a mapping, found {}", node.kind()),
            );
            None
        }
    }
}
