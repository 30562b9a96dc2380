//! Makes a bundle from a tool of Amplifier. The tool's function `get-spec` describes the tool: its
//! name, description and input schema.

use std::path::Path;

use serde_json::{Value, json};
use toolward_bundle::component::Surface;
use toolward_contract::driver::ForeignWorldError;
use toolward_contract::json::{self, Limits};

use super::document::{NewBundle, document};
use super::{
    Described, ImportError, ImportOptions, Imported, bundle, create, title, usable, write,
};
use crate::amplifier::{SPEC, TOOL, WORLD};

/// The id of the tool in the bundle that [`spec_bundle`] writes.
const SPEC_TOOL: &str = "import.get-spec";

/// Makes a bundle from a tool of Amplifier. `spec` is the result of the tool's `get-spec`.
///
/// # Errors
///
/// As [`component`](super::component). Fails also if `spec` does not describe a tool.
pub fn amplifier(
    wasm: &[u8],
    spec: &str,
    options: &ImportOptions,
) -> Result<Imported, ImportError> {
    let refused =
        |error: ForeignWorldError| ImportError::NothingOffered(WORLD.tool, error.to_string());
    WORLD.register().map_err(refused)?;
    let surface = Surface::read(wasm)?;
    usable(wasm, &surface, WORLD.word)?;
    let described = described(spec, options).map_err(ImportError::Spec)?;
    write::declarations(options)?;
    let contract = write::contract(&described, options)?;
    bundle(wasm, &surface, vec![(described, contract)], options)
}

/// Reads the result of `get-spec`: JSON with `name`, `description` and `parameters`, a JSON Schema.
/// The error completes a sentence.
fn described(text: &str, options: &ImportOptions) -> Result<Described<'static>, String> {
    let limits = Limits {
        bytes: 256 << 10,
        ..Limits::default()
    };
    let spec = json::parse(text.as_bytes(), &limits)
        .map_err(|error| format!("is not the JSON that is allowed: {error}"))?;
    let text = |key: &str| spec.get(key).and_then(Value::as_str);
    let name = text("name").ok_or("has no text `name`")?;
    let inputs = match spec.get("parameters").or_else(|| spec.get("input_schema")) {
        Some(Value::Object(schema)) => Value::Object(schema.clone()),
        Some(Value::Null) | None => json!({ "type": "object" }),
        Some(_) => return Err("has `parameters` that are no object".to_owned()),
    };
    Ok(Described {
        tool: options.bundle.id.clone(),
        name: title(name),
        description: text("description").map(str::to_owned),
        inputs,
        // Amplifier does not state what a tool returns.
        outputs: json!({}),
        function: TOOL,
        component: json!({ "world": WORLD.name }),
    })
}

/// Writes a bundle to `directory`, which must not exist. The bundle's only tool calls `get-spec` of
/// a component. The tool takes no input, has no permissions, and has small limits. Returns the
/// tool's id.
///
/// # Errors
///
/// If the directory exists or can't be written.
pub fn spec_bundle(directory: &Path, wasm: &[u8]) -> Result<&'static str, ImportError> {
    let driver = format!("{SPEC_TOOL}.driver");
    let contract = json!({
        "id": SPEC_TOOL, "name": "Description", "description": "Gives the description of a tool.",
        "version": "1.0.0", "idempotent": true, "timeout_ms": 10_000,
        "inputs": { "type": "object", "additionalProperties": false },
        "outputs": { "type": "string" },
    });
    let component = json!({ "world": "wit", "export": SPEC, "bytes": "utf8" });
    let declaration = json!({
        "id": driver, "name": "Description", "description": "Gives the description of a tool.",
        "version": "1.0.0", "kind": "component", "component": "driver.wasm",
        "implements": [{
            "tool": SPEC_TOOL, "version": "1.x", "metadata": { "component": component },
        }],
        // With an empty list, a component that imports HTTP can be linked, but reaches no host.
        "network": { "egress": [] },
        "limits": { "fuel": 1_000_000_000, "memory_mib": 32, "output_bytes": 256 << 10 },
    });
    let bundle = NewBundle {
        id: SPEC_TOOL.to_owned(),
        publisher: "local".to_owned(),
        created: 0,
    };
    let texts = [
        (format!("tools/{SPEC_TOOL}/TOOL.md"), contract),
        (format!("drivers/{driver}/DRIVER.md"), declaration),
    ];
    let texts = texts.map(|(name, fields)| (name, document(&fields, "").into_bytes()));
    let component = (format!("drivers/{driver}/driver.wasm"), wasm.to_vec());
    let files = [bundle.file()?, component].into_iter().chain(texts);
    let imported = Imported {
        files: files.collect(),
        ..Imported::default()
    };
    create(directory, &imported)?;
    Ok(SPEC_TOOL)
}
