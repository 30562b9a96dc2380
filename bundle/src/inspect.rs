//! What a bundle holds and asks for, as plain values to show. Grants nothing
//! and runs nothing; the unverified kind exists so that people can look at a
//! bundle before they decide whom to trust.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};
use toolward_contract::capability::CapabilitySet;
use toolward_contract::diagnostic::Diagnostic;
use toolward_contract::driver::{Driver, Implements};
use toolward_contract::schema::Schema;
use toolward_contract::tool::{CostClass, Tool};
use toolward_signing::digest::Digest;
use toolward_signing::manifest::Manifest;
use toolward_signing::verify::{self, Unsigned};

use crate::component::{Component, Surface};
use crate::content::{Content, ContentOrigin};
use crate::documents::Documents;
use crate::error::ReadError;
use crate::files::Files;
use crate::index;
use crate::libraries::Surroundings;
use crate::rules;

pub use crate::declared::{Difference, Undeclared};

/// A bundle, laid open. All text in it is somebody else's.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Inspection {
    /// Whether signatures were verified. Where not, everything here is a claim.
    pub verified: bool,
    /// The verified publisher; else `dev:<dir>`, or what the manifest claims.
    pub publisher: String,
    /// The keys that signed, as key ids; empty where nothing was verified.
    pub signers: Vec<String>,
    /// BLAKE3 of the manifest.
    pub manifest_digest: Digest,
    /// The manifest's head.
    pub manifest: ManifestView,
    /// The contracts.
    pub tools: Vec<ToolView>,
    /// The drivers.
    pub drivers: Vec<DriverView>,
    /// How the components were made, if a verified statement says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provenance: Option<ProvenanceView>,
    /// The files.
    pub files: Vec<FileView>,
    /// What is wrong or odd with the documents.
    pub problems: Vec<Diagnostic>,
}

/// The head of a manifest.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ManifestView {
    /// The bundle's id.
    pub id: String,
    /// Its version.
    pub version: String,
    /// Its sequence number.
    pub sequence: u64,
    /// When it was made.
    pub created: String,
    /// When it stops being valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// The oldest host that can run it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_host: Option<String>,
}

/// A contract in short.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ToolView {
    /// Its id.
    pub id: String,
    /// Its version.
    pub version: String,
    /// Its name for people.
    pub name: String,
    /// What it says of itself.
    pub description: String,
    /// The inputs that its schema names, by name.
    pub inputs: Vec<InputView>,
    /// What its output has, likewise.
    pub outputs: Vec<InputView>,
    /// The capabilities that it declares.
    pub declares: Vec<String>,
    /// Its approval class.
    pub approval: String,
    /// Its risk level, 0 to 3.
    pub risk_level: u8,
    /// Its time limit in milliseconds.
    pub timeout_ms: u64,
    /// The events that it says it fires.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fires_events: Vec<String>,
    /// Its cost class: `trivial`, `metered` or `expensive`.
    pub cost_class: CostClass,
}

/// A property of a contract's input or output in short: what the schema says at first sight.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct InputView {
    /// Its name.
    pub name: String,
    /// Its type, where the schema gives one.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Whether no value goes without it.
    pub required: bool,
}

/// A driver in short.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct DriverView {
    /// Its id.
    pub id: String,
    /// Its version.
    pub version: String,
    /// Its kind.
    pub kind: String,
    /// The contracts that it says it implements, with version ranges.
    pub implements: Vec<String>,
    /// The hosts that it says it talks to.
    pub egress: Vec<String>,
    /// What it needs beyond its contracts.
    pub requires: Vec<String>,
    /// Where its publisher describes its secrets (`auth.ref`), for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_ref: Option<String>,
    /// For a declarative driver, what the host does for it: the method and URL of a request, with
    /// placeholders, or the program that it has run outside the sandbox.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<String>,
    /// What calls cost through it, where it says so: the contract's id and the cost, which has no class where the
    /// contract's holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<CostView>,
    /// The fields that only drivers of its kind have, where no host runs the kind; those of its entries by the
    /// contract.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub fields: Map<String, Value>,
    /// Its component, where it has one to look at; whether a host takes it is
    /// among the problems.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub component: Option<ComponentView>,
}

/// What a driver says of the cost of a contract's calls.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct CostView {
    /// The contract, as the driver names it.
    pub tool: String,
    /// Cost of a call, where the driver states one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub units_per_call: Option<f64>,
    /// The currency, where the driver states one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// The cost class, where the driver replaces the contract's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<CostClass>,
}

impl fmt::Display for CostView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.tool)?;
        if let Some(units) = self.units_per_call {
            write!(f, " {units}")?;
        }
        if let Some(currency) = &self.currency {
            write!(f, " {currency}")?;
        }
        match self.class {
            Some(class) => write!(f, ", {class}"),
            None => Ok(()),
        }
    }
}

/// A component in short.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ComponentView {
    /// Its file.
    pub path: String,
    /// BLAKE3 of its bytes.
    pub digest: Digest,
    /// Its length in bytes.
    pub size: u64,
    /// What it imports.
    pub imports: Vec<String>,
    /// What it exports.
    pub exports: Vec<String>,
    /// Where that and the declarations part.
    pub difference: Difference,
}

/// How components were made.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ProvenanceView {
    /// The compiler.
    pub compiler: String,
    /// The target.
    pub target: String,
    /// The sources: name and digest.
    pub sources: Vec<(String, Digest)>,
}

/// A file of the manifest.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct FileView {
    /// Its name within the bundle.
    pub path: String,
    /// BLAKE3 of its bytes.
    pub blake3: Digest,
    /// Its length in bytes.
    pub size: u64,
    /// Its role.
    pub role: String,
}

/// The id of a bundle, and its contracts. Its signatures are not looked at: for an author who compares releases.
///
/// # Errors
/// When it is no bundle, or a document of it can't be read.
pub fn contracts(path: &Path) -> Result<(String, Vec<Arc<Tool>>), ReadError> {
    let Unverified {
        bundle,
        files,
        documents,
        mut problems,
    } = Unverified::read(path)?;
    let indexed = index::read(&files, &documents, &mut problems);
    if problems.iter().any(Diagnostic::is_error) {
        return Err(ReadError::Invalid(problems));
    }
    let written = documents.tools.into_iter().map(|tool| tool.value);
    let tools = written.chain(indexed.contracts).collect();
    Ok((bundle.manifest.id.clone(), tools))
}

/// A bundle whose signatures are not looked at.
struct Unverified {
    bundle: Unsigned,
    files: Files,
    documents: Documents,
    problems: Vec<Diagnostic>,
}

impl Unverified {
    fn read(path: &Path) -> Result<Self, ReadError> {
        let mut bundle = verify::unsigned(path).map_err(|refusal| ReadError::Refused {
            path: path.to_owned(),
            refusal,
        })?;
        let files = std::mem::take(&mut bundle.files).into_iter();
        let files: Files = files
            .map(|(path, bytes)| (path.as_str().to_owned(), bytes))
            .collect();
        let manifest = &bundle.manifest;
        let surroundings = Surroundings::of_author(&manifest.publisher, &manifest.id);
        let mut documents = Documents::read_in(&files, surroundings);
        let problems = std::mem::take(&mut documents.diagnostics);
        Ok(Self {
            bundle,
            files,
            documents,
            problems,
        })
    }
}

impl Inspection {
    /// Lays open what was verified, or a directory under work.
    #[must_use]
    pub fn of(content: &Content) -> Self {
        let signers = match &content.origin {
            ContentOrigin::Signed { signers, .. } => {
                signers.iter().map(ToString::to_string).collect()
            }
            ContentOrigin::Dev { .. } => Vec::new(),
        };
        let tools = content.tools.iter().map(|entry| entry.tool.as_ref());
        Self {
            verified: !content.origin.is_dev(),
            publisher: content.origin.publisher(),
            signers,
            manifest_digest: content.manifest_digest,
            manifest: manifest_view(&content.manifest),
            tools: content
                .tools
                .iter()
                .map(|t| ToolView::of(&t.tool))
                .collect(),
            drivers: content
                .drivers
                .iter()
                .map(|d| driver_view(&d.driver, d.component.as_ref(), tools.clone()))
                .collect(),
            provenance: content
                .provenance
                .as_ref()
                .map(|provenance| ProvenanceView {
                    compiler: provenance.compiler.clone(),
                    target: provenance.target.clone(),
                    sources: provenance
                        .sources
                        .iter()
                        .map(|set| (set.name.clone(), set.digest))
                        .collect(),
                }),
            files: file_views(&content.manifest),
            problems: content.warnings.clone(),
        }
    }

    /// Lays open a packed directory or an archive that is what its own manifest
    /// says. Signatures are not checked.
    ///
    /// # Errors
    ///
    /// When it can't be read, or a file is missing, extra, or not the one that
    /// the manifest lists.
    pub fn unverified(path: &Path) -> Result<Self, ReadError> {
        let Unverified {
            bundle,
            files,
            documents,
            mut problems,
        } = Unverified::read(path)?;
        let indexed = index::read(&files, &documents, &mut problems);
        let written = documents.tools.iter().map(|tool| &tool.value);
        let tools: Vec<&Arc<Tool>> = written.chain(&indexed.contracts).collect();
        let known = tools.iter().map(|tool| tool.as_ref());
        let mut drivers = Vec::with_capacity(documents.drivers.len());
        for driver in &documents.drivers {
            let component = rules::readable(driver, &files, None);
            let component = component.unwrap_or_else(|problem| {
                problems.push(*problem);
                None
            });
            if let Some(component) = &component
                && let Err(problem) = rules::usable(component, driver, &documents, &files)
            {
                problems.push(*problem);
            }
            drivers.push(driver_view(
                &driver.value,
                component.as_ref(),
                known.clone(),
            ));
        }
        let attached = indexed.drivers.iter();
        drivers.extend(attached.map(|driver| driver_view(driver, None, known.clone())));
        Ok(Self {
            verified: false,
            publisher: bundle.manifest.publisher.clone(),
            signers: Vec::new(),
            manifest_digest: bundle.manifest_digest,
            manifest: manifest_view(&bundle.manifest),
            tools: tools.iter().map(|tool| ToolView::of(tool)).collect(),
            drivers,
            provenance: None,
            files: file_views(&bundle.manifest),
            problems,
        })
    }
}

fn manifest_view(manifest: &Manifest) -> ManifestView {
    ManifestView {
        id: manifest.id.clone(),
        version: manifest.version.to_string(),
        sequence: manifest.sequence,
        created: manifest.created.to_string(),
        expires: manifest.expires.as_ref().map(ToString::to_string),
        min_host: manifest.min_host.as_ref().map(ToString::to_string),
    }
}

impl ToolView {
    /// A contract in short.
    #[must_use]
    pub fn of(tool: &Tool) -> Self {
        Self {
            id: tool.id.to_string(),
            version: tool.version.to_string(),
            name: tool.name.clone(),
            description: tool.description.clone(),
            inputs: properties(&tool.inputs),
            outputs: properties(&tool.outputs),
            declares: names(&tool.declaration()),
            approval: tool.approval.to_string(),
            risk_level: tool.risk_level,
            timeout_ms: u64::try_from(tool.timeout.as_millis()).unwrap_or(u64::MAX),
            fires_events: tool.fires_events.clone(),
            cost_class: tool.cost_class,
        }
    }
}

fn properties(schema: &Schema) -> Vec<InputView> {
    let shape = schema.shape();
    let properties = schema.value().get("properties");
    let property = |name: &str| properties?.get(name)?.get("type");
    let kind = |name: &str| match property(name)? {
        Value::String(kind) => Some(kind.clone()),
        Value::Array(kinds) => {
            let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
            Some(kinds.join(" or "))
        }
        _ => None,
    };
    let view = |name: &String| InputView {
        name: name.clone(),
        kind: kind(name),
        required: shape.required.contains(name),
    };
    shape.names.iter().map(view).collect()
}

fn driver_view<'t>(
    driver: &Driver,
    component: Option<&Component>,
    tools: impl Iterator<Item = &'t Tool> + Clone,
) -> DriverView {
    let requests = driver.implements.iter();
    let requests = requests.filter_map(|entry| request(driver, entry));
    let auth_ref = driver.auth.as_ref().and_then(|auth| auth.get("ref"));
    DriverView {
        id: driver.id.to_string(),
        version: driver.version.to_string(),
        kind: driver.kind.to_string(),
        implements: driver
            .implements
            .iter()
            .map(|entry| format!("{} {}", entry.tool, entry.version))
            .collect(),
        egress: names(&driver.egress),
        requires: names(&driver.requires.capabilities),
        auth_ref: auth_ref.and_then(Value::as_str).map(str::to_owned),
        requests: requests.collect(),
        costs: costs(driver),
        fields: kind_fields(driver),
        component: component.map(|component| {
            let difference = Difference::of(&component.surface, driver, tools);
            component_view(component, &component.surface, difference)
        }),
    }
}

/// The request of an entry as it is written: nothing is encoded.
fn request(driver: &Driver, entry: &Implements) -> Option<String> {
    if let Some(program) = &entry.program {
        let words = std::iter::once(&program.command).chain(&program.args);
        let words: Vec<&str> = words.map(String::as_str).collect();
        return Some(format!("RUN {}", words.join(" ")));
    }
    let method = entry.http.as_ref()?.method.as_str();
    let origin = driver.origin()?;
    let written = entry.metadata.get("http");
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let base = text(driver.request_defaults.get("base_url"));
    let base = base.unwrap_or_else(|| format!("https://{origin}"));
    let endpoint = text(written.and_then(|http| http.get("endpoint"))).unwrap_or_default();
    let mut url = format!("{}{endpoint}", base.trim_end_matches('/'));
    let query = written.and_then(|http| http.get("query_template")?.as_object());
    for (name, value) in query.into_iter().flatten() {
        url.push(if url.contains('?') { '&' } else { '?' });
        url.extend([name, "=", value.as_str().unwrap_or_default()]);
    }
    Some(format!("{method} {url}"))
}

fn kind_fields(driver: &Driver) -> Map<String, Value> {
    let own = driver.kind_fields.clone();
    let entries = driver.implements.iter();
    let entries = entries.filter(|entry| !entry.kind_fields.is_empty());
    let entries = entries.map(|entry| {
        let key = format!("implements {}", entry.tool);
        (key, Value::Object(entry.kind_fields.clone()))
    });
    own.into_iter().chain(entries).collect()
}

fn costs(driver: &Driver) -> Vec<CostView> {
    let own = &driver.cost_override;
    let view = |entry: &Implements| {
        let cost = &entry.cost_override;
        let currency = cost.currency.as_ref().or(own.currency.as_ref());
        let view = CostView {
            tool: entry.tool.clone(),
            units_per_call: cost.cost_units_per_call.or(own.cost_units_per_call),
            currency: currency.cloned(),
            class: cost.cost_class.or(own.cost_class),
        };
        let says = view.units_per_call.is_some() || view.class.is_some();
        says.then_some(view)
    };
    driver.implements.iter().filter_map(view).collect()
}

fn names(capabilities: &CapabilitySet) -> Vec<String> {
    capabilities.iter().map(ToString::to_string).collect()
}

fn component_view(
    component: &Component,
    surface: &Surface,
    difference: Difference,
) -> ComponentView {
    ComponentView {
        path: component.path.clone(),
        digest: component.digest,
        size: surface.size,
        imports: surface.imports.clone(),
        exports: surface
            .exports
            .iter()
            .map(|export| export.name.clone())
            .collect(),
        difference,
    }
}

fn file_views(manifest: &Manifest) -> Vec<FileView> {
    let tools = FileView {
        path: manifest.tools.path.to_string(),
        blake3: manifest.tools.blake3,
        size: manifest.tools.size,
        role: "tools".to_owned(),
    };
    let listed = manifest.files.iter().map(|file| FileView {
        path: file.path.to_string(),
        blake3: file.blake3,
        size: file.size,
        role: file.role.to_string(),
    });
    std::iter::once(tools).chain(listed).collect()
}
