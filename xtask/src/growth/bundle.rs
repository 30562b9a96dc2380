//! The directory of a bundle, as an author would write it.

use std::fmt::Write as _;
use std::path::Path;

use super::place::write;
use crate::Outcome;

/// A bundle with one driver for all its tools.
pub(super) struct Bundle<'a> {
    pub(super) id: String,
    pub(super) sequence: usize,
    pub(super) tools: Vec<String>,
    /// The driver's component.
    pub(super) component: &'a [u8],
    /// A tool that each of them may call.
    pub(super) calls: Option<&'a str>,
}

impl<'a> Bundle<'a> {
    /// The first release of a bundle with one tool.
    pub(super) fn of_one(id: &str, tool: &str, component: &'a [u8]) -> Self {
        Self {
            id: id.to_owned(),
            sequence: 1,
            tools: vec![tool.to_owned()],
            component,
            calls: None,
        }
    }

    /// Writes all files. Two releases differ in their versions, and not in what a model or a policy sees of them:
    /// otherwise an update would be held until somebody accepts it.
    pub(super) fn write(&self, folder: &Path) -> Outcome {
        let Self { id, sequence, .. } = self;
        let version = format!("1.0.{sequence}");
        write(
            &folder.join("bundle.toml"),
            format!(
                "id = \"{id}\"\nversion = \"{version}\"\nsequence = {sequence}\npublisher = \"growth\"\n\
                 created = \"2026-11-01T00:00:00Z\"\n"
            ),
        )?;
        let mut implements = String::new();
        let requires = self
            .calls
            .map(|tool| format!("requires: {{ tools: [{tool}] }}\n"));
        let requires = requires.unwrap_or_default();
        for tool in &self.tools {
            let _ = writeln!(implements, "  - {{ tool: {tool}, version: \"^1.0.0\" }}");
            write(
                &folder.join("tools").join(tool).join("TOOL.md"),
                format!(
                    "---\nname: {}\nid: {tool}\ndescription: Does what its driver does, for a measurement of growth.\n\
                     version: {version}\nidempotent: true\ntimeout_ms: 30000\n{requires}inputs: {{ type: object }}\n\
                     outputs: {{ type: object }}\n---\n",
                    tool.replace('.', " ")
                ),
            )?;
        }
        let driver = folder.join("drivers").join(format!("{id}.driver"));
        write(&driver.join("driver.wasm"), self.component)?;
        write(
            &driver.join("DRIVER.md"),
            format!(
                "---\nname: Driver of {id}\nid: {id}.driver\ndescription: Serves all tools of the bundle.\n\
                 version: 1.0.0\nkind: component\ncomponent: driver.wasm\nimplements:\n{implements}---\n"
            ),
        )
    }
}
