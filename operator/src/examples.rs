//! Runs the examples of a bundle's contracts as tests: one call for each driver that may serve the
//! example.

mod tool_probe;

use std::collections::BTreeSet;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;

use serde_json::Value;
use toolward_bundle::content::{Content, DriverEntry};
use toolward_contract::capability::{Capability, CapabilitySet, Class, PathPattern};
use toolward_contract::driver::{DriverKind, Implements};
use toolward_contract::tool::{Tool, ToolExample};
use toolward_host::confine::Confinement;
use toolward_host::{ApprovalRequest, Approver, Host, HostBuilder, Reply, Request, Verdict};
use toolward_policy::{Policy, PolicyError, PolicyParts, Publisher, Rule, ToolPattern, Workspace};
use toolward_state::Store;

use crate::{Error, Kind, Result};

pub use tool_probe::{MissingTool, ToolProbe};

/// One example to run with one driver.
///
/// ```no_run
/// use toolward_bundle::content::Content;
/// use toolward_operator::examples::{ExampleCase, ExampleOutcome, Sandbox};
///
/// # async fn test(folder: &std::path::Path) -> Result<(), Box<dyn std::error::Error>> {
/// let content = Content::from_dev("greeter".as_ref())?;
/// let sandbox = Sandbox::new(folder, &content)?;
/// let host = sandbox.host(content.clone())?.build()?;
/// for case in ExampleCase::of(&content) {
///     sandbox.clear()?;
///     let reply = host.call(case.request()).await;
///     assert_eq!(case.outcome(&reply), ExampleOutcome::Passed, "{}", case.example.name);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ExampleCase {
    /// The tool's id, with its major version.
    pub tool: String,
    /// The driver's id.
    pub driver: String,
    /// The example, without the parts of its output that the driver drops.
    pub example: ToolExample,
    /// Why this driver can't be tested with the example; `None` if it can.
    pub unfit: Option<String>,
}

/// The result of an example.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExampleOutcome {
    /// The output matches.
    Passed,
    /// The call failed, or its output differs.
    Failed(String),
    /// The example was not run: a grant or an approval was missing, or it is
    /// [unfit](ExampleCase::unfit).
    Skipped(String),
}

impl ExampleCase {
    /// Returns all examples of a bundle's tools, each for every driver that serves the tool.
    pub fn of(content: &Content) -> Vec<Self> {
        let mut cases = Vec::new();
        for entry in &content.tools {
            for driver in content.drivers_for(&entry.tool) {
                let tool = &entry.tool;
                let implements = (driver.driver).implements_tool(tool.id.as_str(), &tool.version);
                cases.extend(tool.examples.iter().map(|example| Self {
                    tool: tool.major_id(),
                    driver: driver.driver.id.to_string(),
                    example: without_dropped(example.clone(), implements),
                    unfit: unfit(example, driver, implements),
                }));
            }
        }
        cases
    }

    /// The call of the example.
    pub fn request(&self) -> Request {
        Request::with_value(self.tool.as_str(), self.example.input.clone())
            .pinned_driver(self.driver.as_str())
    }

    /// Compares the reply with the example. Without an expected output, only the host's schema
    /// check applies.
    pub fn outcome(&self, reply: &Reply) -> ExampleOutcome {
        if let Some(reason) = &self.unfit {
            return ExampleOutcome::Skipped(reason.clone());
        }
        match (&reply.result, &self.example.output) {
            (Err(error), _) if error.is_denial() && reply.metadata.attempts == 0 => {
                ExampleOutcome::Skipped(error.message.clone())
            }
            (Err(error), _) => ExampleOutcome::Failed(format!("{}: {}", error.code, error.message)),
            (Ok(found), Some(expected)) if found.structured != *expected => {
                ExampleOutcome::Failed(format!("expected {expected}, found {}", found.structured))
            }
            (Ok(_), _) => ExampleOutcome::Passed,
        }
    }
}

/// Returns why a driver can't be tested with an example: the driver drops an input that the example
/// uses, or a person would have to answer.
fn unfit(
    example: &ToolExample,
    driver: &DriverEntry,
    implements: Option<&Implements>,
) -> Option<String> {
    if driver.driver.kind == DriverKind::Form {
        return Some("a person gives the output".to_owned());
    }
    let used = |name: &&String| example.input.get(name.as_str()).is_some();
    let dropped = implements?.drop_inputs.iter().find(used)?;
    Some(format!("the driver does not take the input `{dropped}`"))
}

/// Returns the example for a driver that drops parts of the output.
fn without_dropped(mut example: ToolExample, implements: Option<&Implements>) -> ToolExample {
    if let (Some(Value::Object(members)), Some(implements)) = (&mut example.output, implements) {
        members.retain(|name, _| !implements.drop_outputs.contains(name));
    }
    example
}

/// The directories for a bundle's workspaces, and the policy that grants them.
#[derive(Debug)]
pub struct Sandbox {
    folder: PathBuf,
    directories: Vec<PathBuf>,
    policy: Policy,
}

impl Sandbox {
    /// Creates the directories in an empty folder, which the caller removes afterwards.
    ///
    /// # Errors
    /// `write-failed` if a directory can't be created.
    pub fn new(folder: &Path, content: &Content) -> Result<Self> {
        let mut directories = Vec::new();
        let mut parts = PolicyParts {
            source: Some("scratch".to_owned()),
            ..PolicyParts::default()
        };
        for (number, path) in roots(content).into_iter().enumerate() {
            let directory = folder.join(number.to_string());
            std::fs::create_dir(&directory)
                .map_err(|error| Error::unwritable(&directory, error))?;
            let workspace = Workspace::new(path, &directory);
            parts.tables.workspaces.push(workspace);
            directories.push(directory);
        }
        // A publisher that can't be named in a policy gets no grants.
        if let Ok(publisher) = Publisher::parse(&content.origin.publisher()) {
            for entry in &content.tools {
                let rule = rule(&entry.tool, publisher.clone());
                parts.grants.push(rule.map_err(|error| unusable(&error))?);
            }
        }
        Ok(Self {
            folder: folder.to_owned(),
            directories,
            policy: parts.build().map_err(|error| unusable(&error))?,
        })
    }

    /// Returns a builder of a host that grants the sandbox to its bundle and approves every call.
    /// Files and buckets (the tools' key-value data) are temporary.
    ///
    /// # Errors
    /// If the buckets can't be created.
    pub fn host(&self, content: Content) -> Result<HostBuilder> {
        let buckets = Store::in_memory()
            .map_err(|error| Error::with_code(Kind::Failed, error.code(), &error))?;
        Ok(Host::builder()
            .bundle(content)
            .policy(self.policy.clone())
            .approver(ApproveAll)
            .buckets(buckets))
    }

    /// Returns the access that a process needs to run examples here and to remove the folder
    /// afterwards.
    pub fn kept(&self, host: &Host) -> Confinement {
        let confinement = host.requirements().confinement();
        let confinement = confinement.read_write(&self.folder);
        match self.folder.parent() {
            Some(parent) => confinement.remove_directories(parent),
            None => confinement,
        }
    }

    /// Empties the directories for the next example.
    ///
    /// # Errors
    /// `write-failed` if a file can't be removed.
    pub fn clear(&self) -> Result<()> {
        for directory in &self.directories {
            empty(directory).map_err(|error| Error::unwritable(directory, error))?;
        }
        Ok(())
    }
}

struct ApproveAll;

impl Approver for ApproveAll {
    fn ask<'a>(
        &'a self,
        _request: &'a ApprovalRequest,
    ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        Box::pin(async { Verdict::Approved })
    }
}

/// Returns directories that contain a bundle's workspace paths. None of them contains another.
fn roots(content: &Content) -> Vec<PathPattern> {
    let declared = content.tools.iter().map(|entry| entry.tool.declaration());
    let directories: BTreeSet<String> = declared
        .flat_map(|set| {
            let paths = set.of_class(&Class::Workspace).filter_map(Capability::path);
            paths.map(PathPattern::directory).collect::<Vec<_>>()
        })
        .collect();
    let patterns = directories.iter();
    let patterns = patterns.filter_map(|path| Capability::of(Class::Workspace, path).ok());
    let all: Vec<Capability> = patterns.collect();
    let outermost = all.iter().filter(|one| {
        let above = |other: &&Capability| other != one && other.covers(one);
        !all.iter().any(|other| above(&other))
    });
    outermost.filter_map(|one| one.path().cloned()).collect()
}

/// Grants the workspaces and buckets that the contract declares.
fn rule(tool: &Tool, publisher: Publisher) -> Result<Rule, PolicyError> {
    let temporary = |one: &&Capability| one.class().is_in_examples();
    let kept =
        |set: &CapabilitySet| -> CapabilitySet { set.iter().filter(temporary).cloned().collect() };
    let mut rule = Rule::new(publisher);
    rule.tool = ToolPattern::parse(&tool.major_id())?;
    rule.requires = kept(&tool.requires.capabilities);
    rule.mutates = kept(&tool.mutates);
    Ok(rule)
}

fn unusable(error: &PolicyError) -> Error {
    Error::with_code(Kind::Failed, error.code(), error)
}

fn empty(directory: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => std::fs::remove_dir_all(entry.path())?,
            false => std::fs::remove_file(entry.path())?,
        }
    }
    Ok(())
}
