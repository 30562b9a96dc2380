//! `defineTool`, AIP-14's standard entry point, in Rust's spelling. Registers nothing.

use serde_json::Value;

use super::{Tool, parse};
use crate::diagnostic::{Parsed, Report};
use crate::json;
use crate::source::{Field, Node, Spelling};
use crate::{NoScope, Scope};

/// Makes a contract of a definition object with the camel-case keys of AIP-14's `ToolDefinition`
/// (`id`, `description`, `inputSchema`, `outputSchema`, ...).
///
/// `name` defaults to the id, `version` to 1.0.0. An `execute` member is ignored with a migration
/// warning. Diagnostics name the file `<definition>` and point at 1:1.
#[must_use]
pub fn define_tool(definition: &Value) -> Parsed<Tool> {
    define_tool_in(definition, &NoScope)
}

/// [`define_tool`] with a scope for `schema:` references and actions.
#[must_use]
pub fn define_tool_in(definition: &Value, scope: &dyn Scope) -> Parsed<Tool> {
    let mut report = Report::new("<definition>");
    if let Err(error) = json::check(definition, &json::Limits::default()) {
        report.add(error.info(), crate::Position::START, error.message.clone());
        return report.finish(None);
    }
    let node = Node::from_value(definition);
    let root = Field::new("", &node);
    let tool = parse::contract(&root, Spelling::Camel, "", scope, &mut report);
    report.finish(tool)
}
