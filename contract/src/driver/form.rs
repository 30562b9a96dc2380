//! The form of a driver of `kind: form`, whose answer is the output.

use serde_json::Value;

use super::Implements;
use crate::form::Form;
use crate::tool::Tool;

/// The contract's `outputs` as a form, without those that the driver does not give.
pub(super) fn of(tool: &Tool, entry: &Implements) -> Result<Value, String> {
    let mut schema = tool.outputs.value().clone();
    if let Some(fields) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        fields.retain(|name, _| !entry.drop_outputs.contains(name));
        if fields.is_empty() {
            return Err("the form has no fields".to_owned());
        }
    }
    Form::read(&schema).map(|_| schema)
}
