//! What a tool of Amplifier declares about itself.

use std::path::Path;

use serde_json::{Value, json};
use toolward_author::create_directory;
use toolward_contract::json::{self, Limits};

use super::ImportError;
use super::document::{NewBundle, document};
use crate::amplifier::SPEC as AMPLIFIER_SPEC;

/// The tool of the bundle that asks a component for its description.
const SPEC_TOOL: &str = "import.get-spec";

/// A tool's description of itself.
pub(super) struct Spec {
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) parameters: Value,
}

impl Spec {
    /// Reads what `get-spec` returned: JSON with `name`, `description` and `parameters`, a JSON
    /// Schema. The error ends a sentence.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let limits = Limits {
            bytes: 256 << 10,
            ..Limits::default()
        };
        let spec = json::parse(text.as_bytes(), &limits)
            .map_err(|error| format!("is not the JSON that is allowed: {error}"))?;
        let text = |key: &str| spec.get(key).and_then(Value::as_str);
        let name = text("name").ok_or("has no text `name`")?;
        let parameters = match spec.get("parameters").or_else(|| spec.get("input_schema")) {
            Some(Value::Object(schema)) => Value::Object(schema.clone()),
            Some(Value::Null) | None => json!({ "type": "object" }),
            Some(_) => return Err("has `parameters` that are no object".to_owned()),
        };
        Ok(Self {
            name: name.to_owned(),
            description: text("description").map(str::to_owned),
            parameters,
        })
    }
}

/// Writes a bundle to `directory`, which must not exist, whose one tool gives the description of
/// a component: it takes nothing, may do nothing, and has small limits. Gives its id.
///
/// # Errors
///
/// When the directory exists or can't be written.
pub fn spec_bundle(directory: &Path, wasm: &[u8]) -> Result<&'static str, ImportError> {
    let driver = format!("{SPEC_TOOL}.driver");
    let contract = json!({
        "id": SPEC_TOOL, "name": "Description", "description": "Gives the description of a tool.",
        "version": "1.0.0", "idempotent": true, "timeout_ms": 10_000,
        "inputs": { "type": "object", "additionalProperties": false },
        "outputs": { "type": "string" },
    });
    let component = json!({ "world": "wit", "export": AMPLIFIER_SPEC, "bytes": "utf8" });
    let declaration = json!({
        "id": driver, "name": "Description", "description": "Gives the description of a tool.",
        "version": "1.0.0", "kind": "component", "component": "driver.wasm",
        "implements": [{
            "tool": SPEC_TOOL, "version": "1.x", "metadata": { "component": component },
        }],
        // A component that imports HTTP is linked, and reaches nothing.
        "network": { "egress": [] },
        "limits": { "fuel": 1_000_000_000, "memory_mib": 32, "output_bytes": 256 << 10 },
    });
    let bundle = NewBundle {
        id: SPEC_TOOL.to_owned(),
        publisher: "local".to_owned(),
        created: 0,
    };
    let files = [
        bundle.file()?,
        (
            format!("tools/{SPEC_TOOL}/TOOL.md"),
            document(&contract, "").into_bytes(),
        ),
        (
            format!("drivers/{driver}/DRIVER.md"),
            document(&declaration, "").into_bytes(),
        ),
        (format!("drivers/{driver}/driver.wasm"), wasm.to_vec()),
    ];
    let files = files
        .iter()
        .map(|(name, bytes)| (name.as_str(), bytes.as_slice()));
    create_directory(directory, files)?;
    Ok(SPEC_TOOL)
}
