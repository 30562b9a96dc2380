//! Checks whether the components of a bundle serve the tools that their drivers name (AIP-30,
//! `implements`).
//!
//! In Toolward's own WIT world, a component does not list its tools: it gets the tool's id with
//! each call. All libraries for drivers answer an unknown id with the code `not_found` and a
//! message that names the id. So each component is called for each tool that its DRIVER.md names,
//! and for a tool that no component knows. If both answers are the same, the tool is missing. A
//! component that answers an unknown id in another way is not judged.
//!
//! Nothing is granted to these calls: contracts and declarations are replaced by empty ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};
use toolward_bundle::codes;
use toolward_bundle::content::{Content, DriverEntry, ToolEntry};
use toolward_contract::NoScope;
use toolward_contract::diagnostic::{Diagnostic, attach};
use toolward_contract::driver::{Driver, DriverKind, Implements, World};
use toolward_contract::tool::Tool;
use toolward_host::{Host, HostBuilder, Origin, Reply, Request};

/// How long a component may take to answer, in milliseconds.
const ANSWER_MS: u64 = 5000;

/// The code of the answer to an unknown id.
const NOT_FOUND: &str = "not_found";

/// A tool that a component does not serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingTool {
    /// The id in `implements`.
    pub tool: String,
    /// The driver's id.
    pub driver: String,
    /// The error, located at the entry in DRIVER.md.
    pub diagnostic: Diagnostic,
}

/// The calls to the components of one bundle.
///
/// ```no_run
/// use toolward_bundle::content::Content;
/// use toolward_operator::examples::ToolProbe;
///
/// # async fn look() -> Result<(), Box<dyn std::error::Error>> {
/// let content = Content::from_dev("greeter".as_ref())?;
/// if let Some(probe) = ToolProbe::of(&content) {
///     let host = probe.host().build()?;
///     for missing in probe.ask(&host).await {
///         println!("{}", missing.diagnostic);
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ToolProbe {
    asked: Content,
    drivers: Vec<DriverEntry>,
    /// The input of an example, by the tool's id.
    inputs: BTreeMap<String, Value>,
    /// An id that no component knows.
    unknown: String,
}

impl ToolProbe {
    /// Prepares the calls to a bundle's components. Returns `None` if no component is called in
    /// Toolward's own world.
    #[must_use]
    pub fn of(content: &Content) -> Option<Self> {
        let own = |entry: &&DriverEntry| {
            let driver = &entry.driver;
            driver.kind == DriverKind::Component && served(driver).next().is_some()
        };
        let drivers: Vec<DriverEntry> = content.drivers.iter().filter(own).cloned().collect();
        if drivers.is_empty() {
            return None;
        }
        let digest = content.manifest_digest.to_string();
        let unknown = format!("unknown.{}", digest.get(..32).unwrap_or(&digest));
        let mut asked = content.clone();
        asked.drivers = drivers
            .iter()
            .filter_map(|entry| bare_driver(entry, &unknown))
            .collect();
        let named = drivers.iter().flat_map(|entry| served(&entry.driver));
        let ids: BTreeSet<&str> = named
            .filter_map(|entry| entry.tool_id.as_ref().map(|id| id.as_str()))
            .collect();
        let ids = ids.into_iter().chain([unknown.as_str()]);
        asked.tools = ids.filter_map(bare_tool).collect();
        let examples = content.tools.iter().filter_map(|entry| {
            let example = entry.tool.examples.first()?;
            Some((entry.tool.id.to_string(), example.input.clone()))
        });
        Some(Self {
            asked,
            drivers,
            inputs: examples.collect(),
            unknown,
        })
    }

    /// Returns a builder of a host that grants nothing and asks no person, for [`ToolProbe::ask`].
    pub fn host(&self) -> HostBuilder {
        Host::builder().bundle(self.asked.clone())
    }

    /// Calls the components, and returns the missing tools.
    pub async fn ask(&self, host: &Host) -> Vec<MissingTool> {
        let mut missing = Vec::new();
        for entry in &self.drivers {
            // The first call shows whether the component can be judged, before it is called for
            // each tool.
            let unknown = self.answer(host, entry, &self.unknown, &json!({})).await;
            if refusal(&unknown, &self.unknown).is_none() {
                continue;
            }
            for implemented in served(&entry.driver) {
                if self.is_missing(host, entry, implemented).await {
                    missing.push(self.missing(entry, implemented));
                }
            }
        }
        missing
    }

    fn missing(&self, entry: &DriverEntry, tool: &Implements) -> MissingTool {
        let component = entry.driver.component.as_deref().unwrap_or_default();
        let message = format!(
            "expected {component} to serve `{}`, which this driver implements; it answers that it does not",
            tool.named()
        );
        let found = Diagnostic::new(&codes::TOOL_NOT_SERVED, &entry.path, tool.at, message)
            .with_hint("give the component a handler for exactly this id, or take the entry out");
        let mut found = [found];
        let file = |path: &str| self.asked.files.get(path).map(|bytes| &**bytes);
        attach(&mut found, file);
        let [diagnostic] = found;
        MissingTool {
            tool: tool.named().to_owned(),
            driver: entry.driver.id.to_string(),
            diagnostic,
        }
    }

    /// Whether a component answers a tool like an unknown tool, for an empty input and for the
    /// input of an example. A component that ignores the id may find nothing for an empty input.
    async fn is_missing(&self, host: &Host, entry: &DriverEntry, tool: &Implements) -> bool {
        let id = tool.named();
        let empty = json!({});
        for input in std::iter::once(&empty).chain(self.inputs.get(id)) {
            let answer = self.answer(host, entry, id, input).await;
            let unknown = self.answer(host, entry, &self.unknown, input).await;
            let (Some(answer), Some(unknown)) =
                (refusal(&answer, id), refusal(&unknown, &self.unknown))
            else {
                return false;
            };
            if answer != unknown.replace(&self.unknown, id) {
                return false;
            }
        }
        true
    }

    async fn answer(&self, host: &Host, entry: &DriverEntry, tool: &str, input: &Value) -> Reply {
        let request = Request::with_value(tool, input.clone());
        host.call(request.pinned_driver(entry.driver.id.as_str()))
            .await
    }
}

/// Returns the entries for which the component is called in Toolward's own world.
fn served(driver: &Driver) -> impl Iterator<Item = &Implements> {
    let entries = driver.implements.iter();
    entries.filter(|entry| entry.world == World::Toolward)
}

/// Returns the message of a reply, if it is a component's answer for an unknown tool.
fn refusal<'r>(reply: &'r Reply, tool: &str) -> Option<&'r str> {
    let error = reply.result.as_ref().err()?;
    let unknown = error.origin == Origin::Driver && error.code.as_str() == NOT_FOUND;
    (unknown && error.message.contains(tool)).then_some(&error.message)
}

/// Returns a driver with the same component that declares only what the component needs to start.
fn bare_driver(entry: &DriverEntry, unknown: &str) -> Option<DriverEntry> {
    let driver = &entry.driver;
    let ids: BTreeSet<&str> = served(driver)
        .filter_map(|entry| entry.tool_id.as_ref().map(|id| id.as_str()))
        .collect();
    let implements = ids.into_iter().chain([unknown]);
    let implements: Vec<Value> = implements
        .map(|id| json!({ "tool": id, "version": "*" }))
        .collect();
    let head = json!({
        "name": "Probe",
        "id": driver.id.as_str(),
        "description": "Asked which tools it serves.",
        "version": "1.0.0",
        "kind": "component",
        "component": driver.component,
        "implements": implements,
    });
    let mut bare = Driver::parse(&entry.path, &front_matter(&head)).value?;
    bare.limits = driver.limits;
    bare.platform = driver.platform.clone();
    let mut asked = entry.clone();
    asked.driver = Arc::new(bare);
    Some(asked)
}

/// Returns a contract that accepts any input and grants nothing.
fn bare_tool(id: &str) -> Option<ToolEntry> {
    let head = json!({
        "name": "Probe",
        "id": id,
        "description": "Asks a component whether it serves this tool.",
        "version": "1.0.0",
        "idempotent": true,
        "approval": "auto",
        "risk_level": 0,
        "timeout_ms": ANSWER_MS,
        "inputs": { "type": "object" },
        "outputs": {},
    });
    let tool = Tool::parse(id, &front_matter(&head), &NoScope).value?;
    Some(ToolEntry::unwritten(Arc::new(tool)))
}

/// Writes a document with these fields. They are written as JSON, which is also YAML.
fn front_matter(head: &Value) -> String {
    format!("---\n{head}\n---\n")
}
