//! Makes a bundle under work of a component that was made for another host: a contract for
//! each of its functions, a driver that says how they are called, and its bytes, unchanged.
//! What it may do comes from the caller, never from the component.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use toolward_bundle::component::{
    AMPLIFIER_TOOL, Function, Functions, Surface, SurfaceError, Type, Usability, Withheld,
};
use toolward_bundle::text::visible_line;
use toolward_contract::diagnostic::Diagnostic;
use toolward_contract::driver::{Arguments, Driver, WitCall, World};
use toolward_contract::tool::Tool;
use toolward_contract::{NoScope, Parsed};
use toolward_report::codes;
use toolward_signing::Digest;
use toolward_signing::id::Id;
use toolward_signing::timestamp::Timestamp;

use crate::error::AuthorError;
use crate::output;

mod amplifier;
mod write;

pub use amplifier::spec_bundle;

/// What is said about the tools of an imported component.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The id of the bundle, and of its tool; where there are several, of each the beginning.
    pub id: String,
    /// Who will sign it.
    pub publisher: String,
    /// Seconds since 1970: what `created` says.
    pub created: i64,
    /// Directories that the tools read, such as `/data`; with `:rw` behind, also write.
    pub workspaces: Vec<String>,
    /// Hosts that they send requests to.
    pub network: Vec<String>,
    /// Secrets that are put into their requests.
    pub secrets: Vec<String>,
    /// That they change nothing, and may be called again with the same input.
    pub read_only: bool,
    /// The name of the component's file, to be told in ORIGIN.md.
    pub file: String,
}

/// A bundle that was made of a component.
#[derive(Debug)]
#[non_exhaustive]
pub struct Imported {
    /// Its files, with `/` between folders.
    pub files: Vec<(String, Vec<u8>)>,
    /// The ids of its tools.
    pub tools: Vec<String>,
    /// Functions that can't be called, each with the reason.
    pub withheld: Vec<(String, Withheld)>,
}

/// Why a component is not imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The id or the publisher is not an id.
    #[error("{what}: {refusal}")]
    Name {
        /// `id`, `publisher`, or the id of a tool that was made of it.
        what: String,
        /// Why not.
        #[source]
        refusal: toolward_signing::Refusal,
    },
    /// The time can't be written.
    #[error("the time can't be written into a TOML file")]
    Time,
    /// The file is no component that hosts accept.
    #[error(transparent)]
    Component(#[from] SurfaceError),
    /// No host can call it.
    #[error("it is {what}: {reason}")]
    NothingOffered {
        /// What it is.
        what: &'static str,
        /// Why it can't be called.
        reason: String,
    },
    /// Two functions would become the same tool.
    #[error("the functions {first} and {second} would both be the tool {id}")]
    NameTaken {
        /// The id.
        id: String,
        /// The function that has it.
        first: String,
        /// The function that would have it, too.
        second: String,
    },
    /// What an Amplifier tool says about itself is no description of a tool.
    #[error("what `get-spec` returned {0}")]
    Spec(String),
    /// What was written is not valid: a declaration is wrong, or a schema is too costly.
    #[error("what was made of it is not valid: {}", first(.0))]
    Invalid(Vec<Diagnostic>),
    /// The directory exists, or can't be written.
    #[error(transparent)]
    Write(#[from] AuthorError),
}

fn first(found: &[Diagnostic]) -> String {
    found.first().map_or_else(String::new, ToString::to_string)
}

codes! {
    for ImportError {
        Self::Name { refusal, .. } = refusal,
            "use 2 to 80 lower-case ASCII letters, digits, dashes and dots, as in files.search";
        Self::Time = "unwritable-value";
        Self::Component(error) = error;
        Self::NothingOffered { .. } = "import-nothing-offered", "`toolward inspect` lists what it exports";
        Self::NameTaken { .. } = "import-name-taken", "leave one of them to another bundle";
        Self::Spec(_) = "import-spec-failed", "it should return JSON with name, description and parameters";
        Self::Invalid(_) = "import-invalid", "correct the flag that the message is about";
        Self::Write(error) = error;
    }
}

/// A function that becomes a tool.
struct Called<'a> {
    tool: String,
    /// What stands below `metadata.component`.
    component: Value,
    name: String,
    description: Option<String>,
    inputs: Value,
    outputs: Value,
    function: &'a str,
}

/// Makes a bundle of a component with functions of its own: a tool for each that can be called.
///
/// # Errors
///
/// When a name is not an id, no function can be called, two become the same tool, or what is
/// declared is not valid.
pub fn component(wasm: &[u8], options: &Options) -> Result<Imported, ImportError> {
    let surface = Surface::read(wasm)?;
    usable(wasm, &surface, "component")?;
    let functions = Functions::read(wasm, &surface.exports)?;
    let only = functions.offered.len() == 1;
    let mut called: Vec<Called<'_>> = Vec::new();
    for (export, function) in &functions.offered {
        let last = export.rsplit('#').next().unwrap_or(export);
        let tool = match only {
            true => options.id.clone(),
            false => format!("{}.{}", options.id, last.to_ascii_lowercase()),
        };
        if let Some(first) = called.iter().find(|called| called.tool == tool) {
            return Err(ImportError::NameTaken {
                id: tool,
                first: first.function.to_owned(),
                second: export.clone(),
            });
        }
        let (component, call) = how(export, function)?;
        called.push(Called {
            tool,
            component,
            name: title(last),
            description: None,
            inputs: function.inputs(&call),
            outputs: function.outputs(&call),
            function: export,
        });
    }
    let files = write::files(wasm, &called, options)?;
    Ok(Imported {
        files,
        tools: called.into_iter().map(|called| called.tool).collect(),
        withheld: functions.withheld.into_iter().collect(),
    })
}

/// Makes a bundle of a tool of Amplifier. `spec` is what its `get-spec` returned.
///
/// # Errors
///
/// As [`component`], and when `spec` is no description of a tool.
pub fn amplifier(wasm: &[u8], spec: &str, options: &Options) -> Result<Imported, ImportError> {
    let surface = Surface::read(wasm)?;
    usable(wasm, &surface, "amplifier")?;
    let spec = amplifier::Spec::read(spec).map_err(ImportError::Spec)?;
    let called = [Called {
        tool: options.id.clone(),
        component: json!({ "world": "amplifier-tool" }),
        name: title(&spec.name),
        description: spec.description,
        inputs: spec.parameters,
        // Amplifier does not say what a tool returns.
        outputs: json!({}),
        function: AMPLIFIER_TOOL,
    }];
    let files = write::files(wasm, &called, options)?;
    Ok(Imported {
        files,
        tools: vec![options.id.clone()],
        withheld: Vec::new(),
    })
}

/// Whether a component can be imported in this way.
///
/// # Errors
///
/// [`ImportError::NothingOffered`] if not.
pub fn usable(wasm: &[u8], surface: &Surface, word: &str) -> Result<(), ImportError> {
    let reason = match Usability::of(wasm, surface) {
        Usability::Import(found) if found == word => return Ok(()),
        Usability::Import(found) => format!("`toolward import {found}` makes tools of it"),
        Usability::Unusable(reason) => reason,
        _ => "a driver of Toolward needs no import: write a DRIVER.md for it".to_owned(),
    };
    Err(ImportError::NothingOffered {
        what: toolward_bundle::component::MadeFor::of(surface).description(),
        reason,
    })
}

/// How a function is called: as DRIVER.md says it, and as it is read from there.
fn how(export: &str, function: &Function) -> Result<(Value, WitCall), ImportError> {
    // A record that is all there is to it is the input.
    let whole = match &function.parameters[..] {
        [(_, only)] => matches!(**only, Type::Record(_)),
        _ => false,
    };
    let component = match whole {
        true => json!({ "world": "wit", "export": export, "arguments": "whole" }),
        false => json!({ "world": "wit", "export": export }),
    };
    let entry = json!({ "tool": "a.b", "version": "1.x", "metadata": { "component": component } });
    let driver = json!({
        "id": "a.b", "name": "n", "description": "d", "version": "1.0.0",
        "kind": "component", "component": "driver.wasm", "implements": [entry],
    });
    let read = Driver::parse("DRIVER.md", &write::document(&driver, ""));
    let driver = valid(read)?;
    let world = driver
        .implements
        .into_iter()
        .next()
        .map(|entry| entry.world);
    match world {
        Some(World::Wit(call)) => {
            debug_assert_eq!(call.arguments == Arguments::Whole, whole);
            Ok((component, call))
        }
        _ => Err(ImportError::Invalid(Vec::new())),
    }
}

fn valid<T>(parsed: Parsed<T>) -> Result<T, ImportError> {
    parsed.into_result().map_err(ImportError::Invalid)
}

/// Reads a contract back that was written.
fn read_back(text: &str) -> Result<Tool, ImportError> {
    valid(Tool::parse("TOOL.md", text, &NoScope))
}

/// `read-file` → `Read file`.
fn title(name: &str) -> String {
    let words = visible_line(name, 80).replace(['.', '-', '_'], " ");
    let words = words.trim();
    let mut letters = words.chars();
    match letters.next() {
        Some(first) => format!("{}{}", first.to_uppercase(), letters.as_str()),
        None => "Tool".to_owned(),
    }
}

/// Writes an imported bundle to `directory`, which must not exist.
///
/// # Errors
///
/// When it exists or can't be written.
pub fn create(directory: &Path, imported: &Imported) -> Result<(), ImportError> {
    let files = imported.files.iter();
    output::directory(
        directory,
        files.map(|(name, bytes)| (name.as_str(), bytes.as_slice())),
    )?;
    Ok(())
}

/// Checks that all names of a bundle are ids.
fn checked_names(options: &Options, tools: &[Called<'_>]) -> Result<(), ImportError> {
    let names = [("id", &options.id), ("publisher", &options.publisher)];
    let tools: BTreeSet<&String> = tools.iter().map(|called| &called.tool).collect();
    let driver = format!("{}.driver", options.id);
    let tools = tools.into_iter().map(|id| ("the id of a tool", id));
    for (what, name) in names
        .into_iter()
        .chain(tools)
        .chain([("the id of the driver", &driver)])
    {
        Id::parse(name).map_err(|refusal| ImportError::Name {
            what: what.to_owned(),
            refusal,
        })?;
    }
    Ok(())
}

/// Digest and time, as documents have them.
fn origin(wasm: &[u8], options: &Options) -> Result<(Digest, Timestamp), ImportError> {
    let created = Timestamp::from_unix(options.created).map_err(|_| ImportError::Time)?;
    Ok((Digest::of(wasm), created))
}
