//! Makes an unsigned bundle from files of another host.
//!
//! * From a component: a contract for each function that can be called, and a driver that describes
//!   how to call these functions. The component's bytes stay unchanged. The user declares the
//!   permissions of the tools; the component can't.
//! * From definitions of AML ([`aml`](aml())): contracts, and a driver for each tool whose request
//!   the host can make, or whose output a person can fill in.
//! * From a tools.json of Runloop ([`runloop`](runloop())): a bundle with this document.

use std::path::Path;

use serde_json::Value;
use toolward_author::check::ImportFormat;
use toolward_author::{AuthorError, create_directory};
use toolward_bundle::component::{
    Function, Functions, MadeFor, Surface, SurfaceError, Type, Usability,
};
use toolward_bundle::text::visible_line;
use toolward_contract::diagnostic::Diagnostic;
use toolward_contract::driver::{WitArguments, WitCall};
use toolward_contract::tool::Tool;
use toolward_contract::{NoScope, Parsed};
use toolward_signing::id::Id;
use toolward_support::report::{Code, Coded, codes};

use crate::records::references::object;

mod aml;
mod amplifier;
mod document;
mod runloop;
mod write;

pub use aml::{Aml, AmlFile, AmlOptions, aml};
pub use amplifier::{amplifier, spec_bundle};
pub use document::NewBundle;
pub use runloop::{RunloopFiles, runloop};

/// The formats whose documents `check` recognises by their names.
pub const FORMATS: &[&dyn ImportFormat] = &[&Aml];

/// The user's declarations about the tools of an imported component.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// The bundle. Its id is also the id of its tool, or the prefix of the ids of several tools.
    pub bundle: NewBundle,
    /// Directories that the tools read, such as `/data`. With the suffix `:rw` they also write
    /// there.
    pub workspaces: Vec<String>,
    /// Hosts to which the tools send requests.
    pub network: Vec<String>,
    /// Secrets that are put into the tools' requests.
    pub secrets: Vec<String>,
    /// Whether the tools change nothing and may be called again with the same input.
    pub read_only: bool,
    /// The name of the component's file, for ORIGIN.md.
    pub file: String,
}

/// A bundle that was made from another host's files.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Imported {
    /// Its files. Their names use `/` between folders.
    pub files: Vec<(String, Vec<u8>)>,
    /// The ids of its tools.
    pub tools: Vec<String>,
    /// Functions and definitions from which no tool was made.
    pub left_out: Vec<Remark>,
    /// How many more functions can't be called. They are not in `left_out`.
    pub uncounted: usize,
    /// Remarks about the tools: imports of the component that no flag declares, or differences
    /// between a tool and the document from which it was made.
    pub remarks: Vec<Remark>,
    /// A draft of the policy that the tools need, as TOML; empty for a component. Choices that a
    /// person must make are placeholders, which grant nothing.
    pub policy: String,
}

/// A remark for a person about a tool, or about a function or definition without a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Remark {
    /// The tool's id, or the name of the function or definition.
    pub name: String,
    /// Its code.
    pub code: &'static str,
    /// The remark in words.
    pub message: String,
}

impl Remark {
    fn new(name: &str, remark: &(impl ToString + Coded)) -> Self {
        Self {
            name: name.to_owned(),
            code: remark.code(),
            message: remark.to_string(),
        }
    }
}

codes! {
    /// Why an import fails.
    #[derive(Debug)]
    pub enum ImportError: Error {
        /// `what` describes the name in the message, such as `id` or `publisher`.
        Name(what: String, source: toolward_signing::Refusal) -> source, ("{what}: {source}")
            => "use 2 to 80 lower-case ASCII letters, digits, dashes and dots, as in files.search";
        Time = "unwritable-value", ("the time can't be written into a TOML file");
        /// The file is not a component that hosts accept.
        Component(inner: SurfaceError);
        /// `what` describes the component, and `reason` states why it can't be imported.
        NothingOffered(what: &'static str, reason: String) = "import-nothing-offered",
            "what is to be imported has no function or entry that can be called", ("it is {what}: {reason}")
            => "`toolward inspect` lists what it exports";
        Definition(findings: Vec<Diagnostic>) = "import-definition-invalid",
            "a definition to be imported breaks rules of its format; the findings are printed before this error",
            ("a definition is not valid: {}", first(findings))
            => "`toolward check FILE` shows all that is wrong with it";
        Caps(problem: String) = "runloop-caps-invalid", "a policy.caps can't be read", ("policy.caps {problem}")
            => "it is TOML with a table `capabilities` of lists and booleans";
        Hidden(document: String) = "runloop-text-hidden",
            "a tools.json or schema has invisible characters, which a signed file must not have",
            ("{document} has invisible characters, which no signed file may hold")
            => "remove them";
        /// No definition can become a tool. Has the first definition, with the reason.
        NoTool(left: Remark) -> (left.code), ("no tool can be made; {}: {}", left.name, left.message);
        Spec(problem: String) = "import-spec-failed", ("what `get-spec` returned {problem}")
            => "it should return JSON with name, description and parameters";
        Declared(problem: String) = "import-invalid",
            "the bundle made of a component or definition is not valid: a flag declares something impossible, or a schema is too costly",
            ("{problem}")
            => "correct the flag";
        Invalid(findings: Vec<Diagnostic>) = "import-invalid", ("what was made of it is not valid: {}", first(findings))
            => "a flag declares what can't be, or the component has what no contract can say";
        /// The directory exists, or can't be written.
        Write(inner: AuthorError);
    }
}

fn first(findings: &[Diagnostic]) -> String {
    let first = findings.first();
    first.map_or_else(String::new, ToString::to_string)
}

impl ImportError {
    /// Returns the findings about the definitions, if they are the reason.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Self::Definition(findings) => findings,
            _ => &[],
        }
    }
}

/// The codes of imports.
pub const TABLES: &[&[Code]] = &[
    ImportError::CODES,
    NoTool::CODES,
    Undeclared::CODES,
    aml::Refused::CODES,
    aml::Note::CODES,
];

/// A function that becomes a tool, with the parts of its contract.
struct Described<'a> {
    tool: String,
    name: String,
    description: Option<String>,
    inputs: Value,
    outputs: Value,
    function: &'a str,
    /// How to call the function, for `metadata.component`.
    component: Value,
}

/// A function, with the text of its contract.
type Called<'a> = (Described<'a>, String);

/// Makes the bundle of these functions.
fn bundle(
    wasm: &[u8],
    surface: &Surface,
    called: Vec<Called<'_>>,
    options: &ImportOptions,
) -> Result<Imported, ImportError> {
    Ok(Imported {
        files: write::files(wasm, surface, &called, options)?,
        remarks: remarks(surface, options),
        tools: called.into_iter().map(|(one, _)| one.tool).collect(),
        ..Imported::default()
    })
}

/// Makes a bundle from a component that was not made as a tool: each function that can be called
/// becomes a tool.
///
/// # Errors
///
/// If hosts do not accept the component, a name is not an id, no function can become a tool, or a
/// declaration is not valid.
pub fn component(wasm: &[u8], options: &ImportOptions) -> Result<Imported, ImportError> {
    let surface = Surface::read(wasm)?;
    usable(wasm, &surface, "component")?;
    let functions = Functions::read(wasm, &surface.exports)?;
    write::declarations(options)?;
    let withheld = functions.withheld.iter();
    let mut left_out: Vec<Remark> = withheld
        .map(|(name, reason)| Remark::new(name, reason))
        .collect();
    let mut called: Vec<Called<'_>> = Vec::new();
    let mut offered = functions.offered;
    if offered.remove(COMPONENTIZE_PY_INIT).is_some() {
        left_out.push(Remark::new(COMPONENTIZE_PY_INIT, &NoTool::Toolchain));
    }
    let only = offered.len() == 1;
    for (export, function) in &offered {
        let tool = match only {
            true => options.bundle.id.clone(),
            false => match tool_id(&options.bundle.id, export, &called) {
                Ok(tool) => tool,
                Err(reason) => {
                    left_out.push(Remark::new(export, &reason));
                    continue;
                }
            },
        };
        let call = how(export, function);
        let whole = matches!(call.arguments, WitArguments::Whole);
        let described = Described {
            tool,
            name: title(last(export)),
            description: None,
            inputs: function.inputs(&call),
            outputs: function.outputs(&call),
            function: export,
            component: object! {
                world = "wit";
                export = call.export;
                arguments ? whole.then_some("whole");
            },
        };
        match write::contract(&described, options) {
            Ok(contract) => called.push((described, contract)),
            // For example, its schemas are too large, or take too long to check.
            Err(error) => left_out.push(Remark::new(export, &error)),
        }
    }
    if called.is_empty() {
        return Err(ImportError::NothingOffered(
            MadeFor::of(&surface).description(),
            match left_out.first() {
                Some(left) => format!("no tool can be made; {}: {}", left.name, left.message),
                None => "no tool can be made".to_owned(),
            },
        ));
    }
    Ok(Imported {
        left_out,
        uncounted: functions.uncounted,
        ..bundle(wasm, &surface, called, options)?
    })
}

/// The function that initialises a component made by componentize-py, a toolchain for Python.
const COMPONENTIZE_PY_INIT: &str = "exports#init";

codes! {
    /// What a component imports and no flag declares.
    #[derive(Debug)]
    enum Undeclared: Error {
        Network = "import-network-unused" Note,
            "the component imports wasi:http, and `--network` named no host: DRIVER.md has `egress: []`, and each request is refused";
        Database = "import-database-undeclared" Note,
            "the component imports wasi:keyvalue: hosts refuse it until TOOL.md has `mutates: [\"database:NAME\"]`";
    }
}

/// Returns remarks on the component's imports that calls may need and that no flag declares.
fn remarks(surface: &Surface, options: &ImportOptions) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let mut add = |undeclared| remarks.push(Remark::new(&options.bundle.id, &undeclared));
    if surface.imports_package("wasi:http") && options.network.is_empty() {
        add(Undeclared::Network);
    }
    if surface.imports_package("wasi:keyvalue") {
        add(Undeclared::Database);
    }
    remarks
}

codes! {
    /// Why no tool is made of a function.
    #[derive(Debug)]
    enum NoTool: Error {
        Toolchain = "import-toolchain-function" Note, "no tool is made of a function that a toolchain exports for itself",
            ("componentize-py exports it for itself");
        NoId = "import-name-unusable" Warning, "no tool is made of a function or definition whose name can't be an id",
            ("its name makes no id, which has 2 to 80 characters");
        Taken(id: String, by: String) = "import-name-taken" Warning,
            "no tool is made of a function or definition whose id is taken",
            ("its tool would have the id {id}, which {by} has");
    }
}

/// Returns the function's name without the name of its interface.
fn last(export: &str) -> &str {
    export.rsplit('#').next().unwrap_or(export)
}

/// Returns the id of one of several tools. If the function's name is taken, the id contains the
/// name of its interface as well.
fn tool_id(id: &str, export: &str, called: &[Called<'_>]) -> Result<String, NoTool> {
    let holder = |tool: &str| called.iter().find(|(one, _)| one.tool == tool);
    let function = last(export).to_ascii_lowercase();
    let plain = format!("{id}.{function}");
    let tool = match holder(&plain) {
        None => plain,
        Some(_) => {
            let interface = export.split(['#', '@']).next().unwrap_or_default();
            let interface = interface.rsplit(['/', ':']).next().unwrap_or_default();
            format!("{id}.{}.{function}", interface.to_ascii_lowercase())
        }
    };
    Id::parse(&tool).map_err(|_| NoTool::NoId)?;
    match holder(&tool) {
        None => Ok(tool),
        Some((by, _)) => Err(NoTool::Taken(tool, by.function.to_owned())),
    }
}

/// Checks that `toolward import WORD` can import a component.
///
/// # Errors
///
/// [`ImportError::NothingOffered`] if it can't.
pub fn usable(wasm: &[u8], surface: &Surface, word: &str) -> Result<(), ImportError> {
    let reason = match Usability::of(wasm, surface) {
        Usability::Import(found) if found == word => return Ok(()),
        Usability::Import(found) => format!("`toolward import {found}` makes tools of it"),
        Usability::Unusable(reason) => reason,
        _ => "a driver of Toolward needs no import: write a DRIVER.md for it".to_owned(),
    };
    Err(ImportError::NothingOffered(
        MadeFor::of(surface).description(),
        reason,
    ))
}

/// Describes how to call a function. If its only parameter is a record, the record is the input.
fn how(export: &str, function: &Function) -> WitCall {
    let mut call = WitCall::new(export);
    if let [(_, only)] = &function.parameters[..]
        && matches!(**only, Type::Record(_))
    {
        call.arguments = WitArguments::Whole;
    }
    call
}

fn valid<T>(parsed: Parsed<T>) -> Result<T, ImportError> {
    parsed.into_result().map_err(ImportError::Invalid)
}

/// Reads a written contract as a host does.
fn read_back(text: &str) -> Result<Tool, ImportError> {
    valid(Tool::parse("TOOL.md", text, &NoScope))
}

/// `read-file` → `Read file`.
fn title(name: &str) -> String {
    const LONGEST: usize = 70;
    let words = visible_line(name, usize::MAX).replace(['.', '-', '_'], " ");
    let words: String = words.trim().chars().take(LONGEST).collect();
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
/// If the directory exists or can't be written.
pub fn create(directory: &Path, imported: &Imported) -> Result<(), ImportError> {
    let files = imported.files.iter();
    let files = files.map(|(name, bytes)| (name.as_str(), bytes.as_slice()));
    Ok(create_directory(directory, files)?)
}
