//! A bundle of AML's tool definitions. What a contract declares is what its definition says the tool does; it gives
//! nothing until a policy grants it.

use serde_json::{Value, json};
use toolward_author::check::ImportFormat;
use toolward_contract::diagnostic::Diagnostic;
use toolward_contract::driver::Driver;
use toolward_contract::tool::{Tool, ToolId};
use toolward_signing::id::Id;
use toolward_support::report::Code;

mod codes;
mod contract;
mod request;

use codes::{Note, Refused};
use request::Request;

use super::document::{bundle_toml, document, line, with};
use super::policy::{Draft, Granted};
use super::{ImportError, Imported, LeftOut, Remark, read_back, valid};
use crate::aml::{Behaviour, Definition, EXTENSION, SPEC_VERSION, Status, not_imported};

/// Why no tool is made of a definition.
pub(super) const REFUSED: &[Code] = Refused::CODES;

/// What a tool does not take over from its definition.
pub(super) const NOTES: &[Code] = Note::CODES;

/// How definitions become a bundle.
#[derive(Debug, Clone, Default)]
pub struct AmlOptions {
    /// The id of the bundle, and the beginning of its tools' ids.
    pub prefix: String,
    /// Who will sign it.
    pub publisher: String,
    /// `created`, in seconds since 1970.
    pub created: i64,
    /// Whether tools are made of drafts.
    pub allow_draft: bool,
    /// The one `spec_version` that definitions may have, instead of the version of these rules.
    pub spec_version: Option<String>,
}

/// Definitions, as `check` finds them.
#[derive(Debug)]
pub struct Aml;

impl ImportFormat for Aml {
    fn extension(&self) -> &'static str {
        EXTENSION
    }

    fn check(&self, file: &str, bytes: &[u8]) -> Vec<Diagnostic> {
        check(file, bytes)
    }
}

/// A definition and the name of its file.
#[derive(Debug, Clone)]
pub struct AmlFile {
    /// What diagnostics call it.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// A tool that was made of a definition.
struct Made {
    id: String,
    contract: Tool,
    files: Vec<(String, String)>,
    notes: Vec<Note>,
    carrier: Carrier,
}

/// What carries a tool out.
enum Carrier {
    Request(Box<Request>),
    /// A person, who fills in the contract's outputs.
    Form,
    /// Nothing that this host has.
    Missing,
}

/// Makes a bundle of definitions: a contract for each, and a driver for each that the host can run: by a request, or
/// by a form that a person fills in.
///
/// # Errors
///
/// When a definition breaks a rule of AML, a name is not an id, or no tool can be made of any definition.
pub fn aml(definitions: &[AmlFile], options: &AmlOptions) -> Result<Imported, ImportError> {
    for (what, name) in [
        ("prefix", &options.prefix),
        ("publisher", &options.publisher),
    ] {
        Id::parse(name).map_err(|source| ImportError::Name {
            what: what.to_owned(),
            source,
        })?;
    }
    let (mut read, mut broken): (Vec<Definition>, Vec<Diagnostic>) = Default::default();
    for file in definitions {
        match Definition::read(&file.name, &file.text) {
            Ok(definition) => read.push(definition),
            Err(found) => broken.extend(found),
        }
    }
    if !broken.is_empty() {
        return Err(ImportError::Definition(broken));
    }
    let toml = bundle_toml(&options.prefix, &options.publisher, options.created)?;
    let mut imported = Imported {
        files: vec![("bundle.toml".to_owned(), toml.into_bytes())],
        ..Imported::default()
    };
    let mut draft = Draft::default();
    for definition in &read {
        match made(definition, options, &imported.tools) {
            Ok(made) => add(made, &mut imported, &mut draft),
            Err(reason) => {
                let left = LeftOut::new(&line(&definition.tool_id), &reason);
                imported.left_out.push(left);
            }
        }
    }
    if imported.tools.is_empty() {
        let none = || LeftOut {
            function: "AML".to_owned(),
            reason: "there are no definitions".to_owned(),
            code: "import-nothing-offered",
        };
        let first = imported.left_out.into_iter().next();
        return Err(ImportError::NoTool(first.unwrap_or_else(none)));
    }
    imported.policy = draft.write(&options.publisher);
    Ok(imported)
}

/// What `check` reports of a definition: all that AML has to say and, if that has no error, why no tool is made of it.
/// States that are meant to be left out (`draft`, `disabled`) give no finding.
fn check(file: &str, bytes: &[u8]) -> Vec<Diagnostic> {
    let mut found = crate::aml::check_bytes(file, bytes);
    let source = std::str::from_utf8(bytes).unwrap_or_default();
    let Ok(definition) = Definition::read(file, source) else {
        return found;
    };
    // A warning about the same part states it already.
    let stated = ["aml-request-incomplete", "aml-spec-version-unknown"];
    if found.iter().any(|one| stated.contains(&one.code)) {
        return found;
    }
    let options = AmlOptions {
        prefix: "check".to_owned(),
        allow_draft: true,
        ..AmlOptions::default()
    };
    match made(&definition, &options, &[]) {
        Ok(_) | Err(Refused::Disabled | Refused::Draft) => {}
        Err(refused) => found.push(not_imported(file, &refused.to_string())),
    }
    found
}

fn add(made: Made, imported: &mut Imported, draft: &mut Draft) {
    let files = made.files.into_iter();
    imported
        .files
        .extend(files.map(|(name, text)| (name, text.into_bytes())));
    imported
        .remarks
        .extend(made.notes.iter().map(|note| Remark::new(&made.id, note)));
    if let Carrier::Request(request) = &made.carrier
        && let Some((slug, _)) = &request.secret
    {
        let header = request.header.as_deref();
        draft.secret(slug, &request.host, request.method.as_str(), header);
    }
    if !matches!(made.carrier, Carrier::Missing) {
        let all = |set: &toolward_contract::capability::CapabilitySet| {
            set.iter().map(ToString::to_string).collect()
        };
        draft.grant(Granted {
            tool: made.id.clone(),
            requires: all(&made.contract.requires.capabilities),
            mutates: all(&made.contract.mutates),
        });
    }
    imported.tools.push(made.id);
}

fn made(definition: &Definition, options: &AmlOptions, others: &[String]) -> Result<Made, Refused> {
    let approved = options.spec_version.as_deref().unwrap_or(SPEC_VERSION);
    if definition.spec_version != approved {
        return Err(Refused::SpecVersion {
            expected: line(approved),
            found: line(&definition.spec_version),
        });
    }
    match definition.status {
        Status::Draft if !options.allow_draft => return Err(Refused::Draft),
        Status::Disabled => return Err(Refused::Disabled),
        _ => {}
    }
    let id = format!(
        "{}.{}",
        options.prefix,
        definition.tool_id.replace('_', "-")
    );
    // The driver's id is the longer one.
    let driver_id = format!("{id}.driver");
    if ToolId::parse(&id).is_err() || ToolId::parse(&driver_id).is_err() {
        return Err(Refused::NoId(options.prefix.clone()));
    }
    if others.contains(&id) {
        return Err(Refused::Taken(id));
    }
    let mut notes = Vec::new();
    let asks = definition.behaviour == Behaviour::Human;
    let mut carrier = match Request::of(definition, &id, &mut notes)? {
        Some(request) => Carrier::Request(Box::new(request)),
        None if asks => Carrier::Form,
        None => Carrier::Missing,
    };
    let request = match &carrier {
        Carrier::Request(request) => Some(&**request),
        Carrier::Form | Carrier::Missing => None,
    };
    let fields = contract::fields(definition, &id, request, &mut notes)?;
    let text = document(
        &fields,
        "Made by `toolward import aml`. What it declares follows from its definition.\n",
    );
    let invalid = |error: ImportError| Refused::Invalid(error.to_string());
    let contract = read_back(&text).map_err(invalid)?;
    let mut files = vec![(format!("tools/{id}/TOOL.md"), text)];
    if let Some(fields) = driver(definition, &id, &carrier) {
        let text = document(&fields, "");
        let driver = valid(Driver::parse("DRIVER.md", &text)).map_err(invalid)?;
        match (&carrier, unaskable(&driver, &contract)) {
            (Carrier::Form, Some(problem)) => {
                notes.push(Note::Human(problem));
                carrier = Carrier::Missing;
            }
            _ => {
                let objections = driver.check_against(&contract, "DRIVER.md");
                if let Some(objection) = objections.into_iter().find(Diagnostic::is_error) {
                    return Err(Refused::Invalid(objection.message));
                }
                files.push((format!("drivers/{driver_id}/DRIVER.md"), text));
            }
        }
    }
    if let (Carrier::Form, Some(transport)) = (&carrier, &definition.transport) {
        notes.push(Note::AskedHere(line(&transport.kind)));
    }
    Ok(Made {
        id,
        contract,
        files,
        notes,
        carrier,
    })
}

/// Why no person can be asked for what a contract returns.
fn unaskable(driver: &Driver, contract: &Tool) -> Option<String> {
    let mut entries = driver.implements.iter();
    entries.find_map(|entry| driver.form(contract, entry).err())
}

/// The driver of a tool, where something carries it out.
fn driver(definition: &Definition, id: &str, carrier: &Carrier) -> Option<Value> {
    let mut entry = json!({ "tool": id, "version": format!("^{}", definition.version) });
    let fields = match carrier {
        Carrier::Missing => return None,
        Carrier::Form => json!({
            "name": "Form",
            "description": format!("Asks a person for what {id} returns."),
            "kind": "form",
        }),
        Carrier::Request(request) => {
            entry = with(entry, [("metadata", Some(json!({ "http": request.http })))]);
            json!({
                "name": "Request",
                "description": format!("Makes the request of {id}."),
                "kind": "http",
                "base_url": request.base_url,
                "network": { "egress": [request.host] },
            })
        }
    };
    Some(with(
        fields,
        [
            ("id", Some(json!(format!("{id}.driver")))),
            ("version", Some(json!(definition.version))),
            ("implements", Some(json!([entry]))),
        ],
    ))
}
