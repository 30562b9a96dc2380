//! Runs the examples of a bundle's contracts as tests: one call for each driver that
//! may serve it.

mod sandbox;
mod tool_probe;

use serde_json::Value;
use toolward_bundle::content::{Content, DriverEntry, ToolEntry};
use toolward_contract::driver::DriverKind;
use toolward_contract::tool::Example;
use toolward_host::{Reply, Request};

pub use sandbox::Sandbox;
pub use tool_probe::{MissingTool, ToolProbe};

/// One example, to be run with one driver.
///
/// ```no_run
/// use toolward_bundle::content::Content;
/// use toolward_operator::examples::{Case, Outcome, Sandbox};
///
/// # async fn test(folder: &std::path::Path) -> Result<(), Box<dyn std::error::Error>> {
/// let content = Content::from_dev("greeter".as_ref())?;
/// let sandbox = Sandbox::new(folder, &content)?;
/// let host = sandbox.host(content.clone())?.build()?;
/// for case in Case::of(&content) {
///     sandbox.clear()?;
///     let reply = host.call(case.request()).await;
///     assert_eq!(case.outcome(&reply), Outcome::Passed, "{}", case.example.name);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Case {
    /// The tool's id, with its major version.
    pub tool: String,
    /// The driver's id.
    pub driver: String,
    /// The example, without the parts of its output that the driver drops.
    pub example: Example,
    /// Why the driver can't be tested with it.
    pub unfit: Option<String>,
}

/// The result of an example.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The output matches.
    Passed,
    /// The call failed, or its output differs.
    Failed(String),
    /// It was not run, for lack of a grant or an approval, or it is [unfit](Case::unfit).
    Skipped(String),
}

impl Case {
    /// All examples of a bundle, for each of its drivers.
    pub fn of(content: &Content) -> Vec<Self> {
        let mut cases = Vec::new();
        for entry in &content.tools {
            for driver in content.drivers_for(&entry.tool) {
                cases.extend(entry.tool.examples.iter().map(|example| Self {
                    tool: entry.tool.major_id(),
                    driver: driver.driver.id.to_string(),
                    example: without_dropped(example.clone(), driver, entry),
                    unfit: unfit(example, driver, entry),
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

    /// Compares the reply with the example. Without an expected output, only the host's
    /// schema check applies.
    pub fn outcome(&self, reply: &Reply) -> Outcome {
        if let Some(reason) = &self.unfit {
            return Outcome::Skipped(reason.clone());
        }
        match (&reply.result, &self.example.output) {
            (Err(error), _) if error.is_denial() && reply.metadata.attempts == 0 => {
                Outcome::Skipped(error.message.clone())
            }
            (Err(error), _) => Outcome::Failed(format!("{}: {}", error.code, error.message)),
            (Ok(found), Some(expected)) if found.structured != *expected => {
                Outcome::Failed(format!("expected {expected}, found {}", found.structured))
            }
            (Ok(_), _) => Outcome::Passed,
        }
    }
}

/// Why a driver can't be tested with an example: it does not take an input that is used, as it may,
/// or a person would have to answer.
fn unfit(example: &Example, driver: &DriverEntry, entry: &ToolEntry) -> Option<String> {
    if driver.driver.kind == DriverKind::Form {
        return Some("a person gives the output".to_owned());
    }
    let tool = &entry.tool;
    let implements = (driver.driver).implements_tool(tool.id.as_str(), &tool.version)?;
    let used = |name: &&String| example.input.get(name.as_str()).is_some();
    let dropped = implements.drop_inputs.iter().find(used)?;
    Some(format!("the driver does not take the input `{dropped}`"))
}

/// The example for a driver that drops parts of the output.
fn without_dropped(mut example: Example, driver: &DriverEntry, entry: &ToolEntry) -> Example {
    let tool = &entry.tool;
    let implements = (driver.driver).implements_tool(tool.id.as_str(), &tool.version);
    if let (Some(Value::Object(members)), Some(implements)) = (&mut example.output, implements) {
        members.retain(|name, _| !implements.drop_outputs.contains(name));
    }
    example
}
