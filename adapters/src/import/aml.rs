//! Makes a bundle from AML's tool definitions. A contract declares the capabilities that its
//! definition needs. Only a policy grants them.

use serde_json::{Value, json};
use toolward_author::check::ImportFormat;
use toolward_contract::diagnostic::Diagnostic;
use toolward_contract::driver::Driver;
use toolward_contract::tool::{Tool, ToolId};
use toolward_support::report::codes;

mod contract;
mod request;

use request::Request;

use super::document::{Draft, Granted, NewBundle, document, line};
use super::{ImportError, Imported, Remark, read_back, valid};
use crate::aml::{Behaviour, Definition, EXTENSION, Lifecycle, SPEC_VERSION, not_imported};
use crate::records::references::object;

/// How definitions become a bundle.
#[derive(Debug, Clone, Default)]
pub struct AmlOptions {
    /// The bundle. Its id is the prefix of its tools' ids.
    pub bundle: NewBundle,
    /// Whether tools are made of drafts.
    pub allow_draft: bool,
    /// The `spec_version` that every definition must have. `None` means the version of the rules in
    /// [`crate::aml`].
    pub spec_version: Option<String>,
}

/// The format of definitions, for `toolward check`.
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
    /// Its name in diagnostics.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// A tool made from a definition.
struct Made {
    id: String,
    contract: Tool,
    files: Vec<(String, String)>,
    notes: Vec<Note>,
    carrier: Carrier,
}

/// The way in which a tool's calls are carried out.
enum Carrier {
    Request(Box<Request>),
    /// A person, who fills in the contract's outputs.
    Form,
    /// No driver of this host can carry them out.
    Missing,
}

/// Makes a bundle from definitions: a contract for each definition, and a driver if the host can
/// call the tool by a request or by a form that a person fills in.
///
/// # Errors
///
/// If a definition breaks a rule of AML, the bundle's id or publisher is not an id, its time can't
/// be written, or no definition can become a tool.
pub fn aml(definitions: &[AmlFile], options: &AmlOptions) -> Result<Imported, ImportError> {
    options.bundle.check("prefix")?;
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
    let mut imported = Imported {
        files: vec![options.bundle.file()?],
        ..Imported::default()
    };
    let mut draft = Draft::default();
    for definition in &read {
        match made(definition, options, &imported.tools) {
            Ok(made) => add(made, &mut imported, &mut draft),
            Err(reason) => {
                let left = Remark::new(&line(&definition.tool_id), &reason);
                imported.left_out.push(left);
            }
        }
    }
    if imported.tools.is_empty() {
        let none = || Remark {
            name: "AML".to_owned(),
            message: "there are no definitions".to_owned(),
            code: "import-nothing-offered",
        };
        let first = imported.left_out.into_iter().next();
        return Err(ImportError::NoTool(first.unwrap_or_else(none)));
    }
    imported.policy = draft.write(&options.bundle.publisher);
    Ok(imported)
}

/// Returns the findings of `check` about a definition: AML's findings and, if none of them is an
/// error, why no tool is made from it. The states `draft` and `disabled` give no finding, since
/// `import` leaves such definitions out on purpose.
fn check(file: &str, bytes: &[u8]) -> Vec<Diagnostic> {
    let mut found = crate::aml::check_bytes(file, bytes);
    let source = std::str::from_utf8(bytes).unwrap_or_default();
    let Ok(definition) = Definition::read(file, source) else {
        return found;
    };
    // These warnings already state why no tool is made.
    let stated = ["aml-request-incomplete", "aml-spec-version-unknown"];
    if found.iter().any(|one| stated.contains(&one.code)) {
        return found;
    }
    let options = AmlOptions {
        bundle: NewBundle {
            id: "check".to_owned(),
            ..NewBundle::default()
        },
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
        && let Some(slug) = &request.secret
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
        return Err(Refused::SpecVersion(
            line(approved),
            line(&definition.spec_version),
        ));
    }
    match definition.status {
        Lifecycle::Draft if !options.allow_draft => return Err(Refused::Draft),
        Lifecycle::Disabled => return Err(Refused::Disabled),
        _ => {}
    }
    let prefix = &options.bundle.id;
    let id = format!("{prefix}.{}", definition.tool_id.replace('_', "-"));
    // The driver's id is longer than the tool's, so it may be too long even if the tool's is valid.
    let driver_id = format!("{id}.driver");
    if ToolId::parse(&id).is_err() || ToolId::parse(&driver_id).is_err() {
        return Err(Refused::NoId(prefix.clone()));
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

/// Returns why a form can't ask a person for the contract's outputs; `None` if it can.
fn unaskable(driver: &Driver, contract: &Tool) -> Option<String> {
    let mut entries = driver.implements.iter();
    entries.find_map(|entry| driver.form(contract, entry).err())
}

/// Returns the fields of the tool's DRIVER.md; `None` if the tool has no driver.
fn driver(definition: &Definition, id: &str, carrier: &Carrier) -> Option<Value> {
    let request = match carrier {
        Carrier::Missing => return None,
        Carrier::Form => None,
        Carrier::Request(request) => Some(request),
    };
    let (name, kind, description) = match request {
        None => (
            "Form",
            "form",
            format!("Asks a person for what {id} returns."),
        ),
        Some(_) => ("Request", "http", format!("Makes the request of {id}.")),
    };
    let entry = object! {
        tool = id;
        version = format!("^{}", definition.version);
        metadata ? request.map(|request| json!({ "http": request.http }));
    };
    Some(object! {
        name = name;
        description = description;
        kind = kind;
        base_url ? request.map(|request| &request.base_url);
        network ? request.map(|request| json!({ "egress": [request.host] }));
        id = format!("{id}.driver");
        version = definition.version;
        implements = [entry];
    })
}

codes! {
    /// Why no tool is made of a definition.
    #[derive(Debug)]
    pub(super) enum Refused: Error {
        Draft = "aml-draft" ["1 or –"], "a definition of AML is a draft, and drafts are left out",
            ("it is a draft, and drafts are left out") => "`--allow-draft` takes drafts, too";
        Disabled = "aml-disabled" ["1 or –"], "a definition of AML is disabled", ("it is disabled");
        SpecVersion(expected: String, found: String) = "aml-spec-version-refused" ["1 or –"],
            "a definition of AML has a `spec_version` that is not approved",
            ("expected `spec_version` to be {expected:?}, found {found:?}")
            => "`--spec-version` names the version that your platform approves";
        NoId(prefix: String) = "import-name-unusable", ("{prefix:?} and its id together are not a valid id");
        Taken(id: String) = "import-name-taken", ("its tool would have the id {id}, which another definition has");
        Insecure = "aml-url-insecure" ["1 or –"], "the `base_url` of a definition of AML is not https",
            ("its `base_url` is not https: requests would go out in the clear");
        Request(problem: String) = "aml-request-unusable" ["1 or –"],
            "the request of a definition of AML can't be made safely: a part is missing, or a placeholder is invalid",
            ("its request can't be made: {problem}");
        Hidden(field: &'static str) = "aml-text-hidden" ["1 or –"],
            "a schema of a definition of AML has invisible characters",
            ("`{field}` has invisible characters, which no signed text may hold");
        Invalid(problem: String) = "import-invalid", ("what would be made of it is not valid: {problem}");
    }
}

codes! {
    /// A part of a definition that the tool does not take over, or takes over in a changed form.
    #[derive(Debug)]
    pub(super) enum Note: Error {
        Function = "aml-function-without-driver" Note,
            "no driver is made, so write one: the tool is computed in process";
        Human(problem: String) = "aml-human-without-driver" Note,
            "no driver is made: a person answers, and can't be asked for the output as a form",
            ("no driver is made: a person answers, and can't be asked for the output as a form: {problem}");
        AskedHere(transport: String) = "aml-human-asked-here" Note,
            "the person behind the caller is asked; the transport of the definition is not used",
            ("the person behind the caller is asked; its transport, {transport}, is not used");
        Lambda = "aml-lambda-unsupported" Note,
            "no driver is made: this host does not call AWS, GCP or Azure functions";
        Mcp = "aml-mcp-unsupported" Note, "no driver is made: this host does not call MCP servers";
        MessageQueue = "aml-message-queue-unsupported" Note,
            "no driver is made: this host does not send to message queues";
        Database = "aml-database-unsupported" Note, "no driver is made: this host does not query databases";
        Grpc = "aml-grpc-unsupported" Note, "no driver is made: this host does not speak gRPC";
        IamRole = "aml-iam-role-unsupported" Note, "no driver is made: this host does not assume cloud roles";
        Oauth2 = "aml-oauth2-unsupported" Note, "no driver is made: this host does not fetch OAuth 2 tokens";
        Deprecated = "aml-deprecated" Note, "deprecated, as its description says";
        ReadsByChange(method: &'static str) = "aml-reads-by-change" Note,
            "the tool only reads, but this host counts its method as a change: a person is asked, unless policy says otherwise",
            ("{method} counts as a change for this host, though the tool only reads: a person is asked, unless policy says otherwise");
        OneAttempt = "aml-one-attempt" Note, "one attempt: only `retrieval` tools are retried";
        InQuery(inputs: String, method: &'static str) = "aml-inputs-in-query" Note,
            "inputs go into the query: the method has no body, and AML names no place for them",
            ("the inputs {inputs} go into the query: {method} has no body, and AML says no place");
        HeaderAssumed(header: &'static str) = "aml-header-assumed" Note,
            "a secret goes into the usual header, because AML names none",
            ("the secret goes into the header `{header}`, as AML's text names none");
        StatusIgnored(status: String) = "aml-status-ignored" Note,
            "a key of `error_codes` or `on_status` is ignored: it is not a status from 400 to 599",
            ("`{status}` in `error_codes` or `on_status` is ignored: it is not a status from 400 to 599");
        Cut = "aml-description-cut" Note, "the description was cut to 2000 characters";
    }
}
