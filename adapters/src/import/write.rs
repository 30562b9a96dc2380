//! Writes the documents of an imported bundle.

use serde_json::{Value, json};
use toolward_bundle::component::Surface;
use toolward_bundle::rules::UNDESCRIBED;
use toolward_bundle::text::visible_line;
use toolward_contract::driver::Driver;
use toolward_signing::Digest;

use super::document::{MAX_DESCRIPTION, check_id, clean, document};
use super::{Called, Described, ImportError, ImportOptions, read_back, valid};
use crate::records::references::{filled, object};

/// Returns the text of a contract, after checking that a host can read the text.
pub(super) fn contract(
    described: &Described<'_>,
    options: &ImportOptions,
) -> Result<String, ImportError> {
    let text = document(&fields(described, options), &body(described));
    read_back(&text)?;
    Ok(text)
}

/// Checks the user's declarations, which are the same for all functions, in a minimal contract.
pub(super) fn declarations(options: &ImportOptions) -> Result<(), ImportError> {
    checked_names(options, &[])?;
    consistent(options)?;
    let described = Described {
        tool: options.bundle.id.clone(),
        component: Value::Null,
        name: "n".to_owned(),
        description: None,
        inputs: json!({ "type": "object" }),
        outputs: json!({}),
        function: "f",
    };
    contract(&described, options).map(drop)
}

/// Returns all files of the bundle, after checking that a host can read the driver.
pub(super) fn files(
    wasm: &[u8],
    surface: &Surface,
    tools: &[Called<'_>],
    options: &ImportOptions,
) -> Result<Vec<(String, Vec<u8>)>, ImportError> {
    checked_names(options, tools)?;
    let mut files = vec![options.bundle.file()?];
    for (described, contract) in tools {
        let name = format!("tools/{}/TOOL.md", described.tool);
        files.push((name, contract.clone().into_bytes()));
    }
    let folder = format!("drivers/{}.driver", options.bundle.id);
    let text = document(
        &driver(tools, surface, options),
        "How the component is called. ORIGIN.md says where it comes from.\n",
    );
    valid(Driver::parse("DRIVER.md", &text))?;
    files.push((format!("{folder}/DRIVER.md"), text.into_bytes()));
    let origin = origin_md(wasm, options).into_bytes();
    files.push((format!("{folder}/ORIGIN.md"), origin));
    files.push((format!("{folder}/driver.wasm"), wasm.to_vec()));
    Ok(files)
}

/// Checks that the user's declarations don't contradict each other.
fn consistent(options: &ImportOptions) -> Result<(), ImportError> {
    for workspace in &options.workspaces {
        let (path, writes) = match workspace.strip_suffix(":rw") {
            Some(path) => (path, true),
            None => (workspace.as_str(), false),
        };
        if path.contains(':') {
            return Err(ImportError::Declared(format!(
                "`{workspace}` is neither a directory nor one with `:rw` behind"
            )));
        }
        if writes && options.read_only {
            return Err(ImportError::Declared(format!(
                "`--workspace {path}:rw` writes, and `--read-only` says that nothing is changed"
            )));
        }
    }
    Ok(())
}

fn fields(called: &Described<'_>, options: &ImportOptions) -> Value {
    let (requires, mutates) = declared(options);
    object! {
        id = called.tool;
        name = called.name;
        description = description(called.description.as_deref());
        version = "1.0.0";
        idempotent = options.read_only;
        approval = if options.read_only { "auto" } else { "on-mutate" };
        risk_level = u8::from(!options.read_only);
        inputs = called.inputs;
        outputs = called.outputs;
        requires ? filled(requires);
        mutates ? (!mutates.is_empty()).then_some(mutates);
    }
}

/// Returns a component's description of itself, cut to the length of a contract's description.
fn description(own: Option<&str>) -> String {
    match clean(own.unwrap_or_default()).as_str() {
        "" => UNDESCRIBED.to_owned(),
        own => own.chars().take(MAX_DESCRIPTION).collect(),
    }
}

/// Returns `requires` and `mutates` of the contracts, by the user's declarations.
fn declared(options: &ImportOptions) -> (Value, Vec<String>) {
    let mut mutates = Vec::new();
    let mut read = Vec::new();
    for workspace in &options.workspaces {
        match workspace.strip_suffix(":rw") {
            Some(path) => mutates.push(format!("workspace:{path}")),
            None => read.push(workspace),
        }
    }
    if !options.read_only {
        mutates.extend(options.network.iter().map(|host| format!("network:{host}")));
    }
    let requires = object! {
        workspace ? (!read.is_empty()).then_some(read);
        network ? Some(&options.network).filter(|all| !all.is_empty());
        secrets ? Some(&options.secrets).filter(|all| !all.is_empty());
    };
    (requires, mutates)
}

fn driver(tools: &[Called<'_>], surface: &Surface, options: &ImportOptions) -> Value {
    let entries = tools.iter().map(|(described, _)| {
        json!({
            "tool": described.tool,
            "version": "^1.0.0",
            "metadata": { "component": described.component },
        })
    });
    // An empty list declares the import of `wasi:http`, and allows no host.
    let egress = !options.network.is_empty() || surface.imports_package("wasi:http");
    object! {
        id = format!("{}.driver", options.bundle.id);
        name = "Imported component";
        description = "Calls a component that was made for another host.";
        version = "0.1.0";
        kind = "component";
        component = "driver.wasm";
        implements = entries.collect::<Vec<_>>();
        network ? egress.then(|| json!({ "egress": options.network }));
    }
}

/// Checks that all names of a bundle are ids.
fn checked_names(options: &ImportOptions, tools: &[Called<'_>]) -> Result<(), ImportError> {
    options.bundle.check("id")?;
    for (described, _) in tools {
        check_id("the id of a tool", &described.tool)?;
    }
    let driver = format!("{}.driver", options.bundle.id);
    check_id("the id of the driver", &driver)
}

fn body(called: &Described<'_>) -> String {
    format!(
        "Made by `toolward import` of `{}`. The person who imported it chose what it declares.\n",
        visible_line(called.function, 200)
    )
}

fn origin_md(wasm: &[u8], options: &ImportOptions) -> String {
    let digest = Digest::of(wasm);
    let file = visible_line(&options.file, 200).replace('`', "'");
    format!(
        "# Where the component comes from\n\n\
         `driver.wasm` is `{file}`, unchanged: {} bytes, BLAKE3 `{digest}`.\n",
        wasm.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_cut_and_a_missing_one_is_to_be_written() {
        for (own, expected) in [
            (None, UNDESCRIBED.to_owned()),
            (Some(" \n"), UNDESCRIBED.to_owned()),
            (
                Some("Adds.\nTwo numbers."),
                "Adds.\nTwo numbers.".to_owned(),
            ),
            (Some(&*"ü".repeat(5000)), "ü".repeat(MAX_DESCRIPTION)),
        ] {
            assert_eq!(description(own), expected);
        }
        assert_eq!(super::super::title("read-file"), "Read file");
        assert!(super::super::title(&"ß".repeat(500)).chars().count() <= 80);
    }

    #[test]
    fn what_is_written_is_read_back_the_same() {
        let schema = json!({
            "type": "object",
            "properties": {
                "a": {"anyOf": [{"type": "string"}, {}]},
                "b": {"enum": [[], ["a", [1]], {}, 1, null, "x: #\u{7f}"]},
                "yes": {"const": {"<<": [{"k": []}]}},
            },
        });
        let contract = json!({
            "id": "a.b", "name": "n", "description": "d", "version": "1.0.0",
            "inputs": schema, "outputs": {},
        });
        let tool = read_back(&document(&contract, "")).expect("valid");
        assert_eq!(*tool.inputs.value(), schema);
        assert_eq!(*tool.outputs.value(), json!({}));
    }
}
