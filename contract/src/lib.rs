//! Formats of Toolward bundles: contracts (TOOL.md), drivers (DRIVER.md), actions (ACTION.md), prompts,
//! sidecars of resources and the index (tools.json), with JSON Schema and the vocabulary of capabilities.
//! Pure: reads no file, no environment and no clock, and prints nothing.
//!
//! Text comes in, a validated value or a list of [`Diagnostic`]s comes out:
//!
//! ```
//! use toolward_contract::{NoScope, tool::Tool};
//!
//! let source = "---
//! id: text.echo
//! name: Echo
//! description: Gives the text back.
//! version: 1.0.0
//! inputs: { type: object, properties: { text: { type: string } }, required: [text] }
//! outputs: { type: object, properties: { text: { type: string } } }
//! ---
//! ";
//! let tool = Tool::parse("TOOL.md", source, &NoScope).into_result().unwrap();
//! assert_eq!(tool.major_id(), "text.echo@1");
//! ```

pub mod action;
pub mod argument;
pub mod capability;
mod codes;
pub mod diagnostic;
pub mod driver;
pub mod form;
pub mod front_matter;
pub mod header;
mod id;
pub mod index;
pub mod path;
pub mod prompt;
pub mod resource;
mod shared;
mod source;
mod terms;
pub mod tool;
pub mod url_path;

pub use toolward_schema::{NoScope, SchemaScope, json, schema};

pub use diagnostic::{Code, Diagnostic, Parsed, Position, Severity, TABLES, codes};
pub use front_matter::Outline;
pub use tool::{define_tool, define_tool_in};

use std::sync::Arc;

use serde_json::Value;

/// What else is in the bundle that a document may refer to.
pub trait Scope: SchemaScope {
    /// The action behind a reference of TOOL.md's `implements`. Inline actions are never asked for; a
    /// path is asked for once for each folder that it may be relative to.
    fn action(&self, _reference: &action::Reference) -> Option<Arc<action::Action>> {
        None
    }

    /// Whether [`SchemaScope::schema`] gave nothing because the file exists and is not JSON. The file has an error
    /// then, and a reference to it has none.
    fn is_schema_unread(&self, _id: &str) -> bool {
        false
    }

    /// Whether [`Scope::action`] gave nothing because the document exists and is not valid. The document has
    /// errors then, and a reference to it has none.
    fn is_action_unread(&self, _reference: &action::Reference) -> bool {
        false
    }

    /// Who publishes the library in which [`Scope::action`] found an action; `None` if it was in the bundle.
    fn library(&self, _reference: &action::Reference) -> Option<String> {
        None
    }

    /// Whether [`Scope::action`] gave nothing because the action is in a library, which only the host that runs
    /// the bundle has: the contract is read as if it implemented nothing, and never run so.
    fn is_action_elsewhere(&self, _reference: &action::Reference) -> bool {
        false
    }

    /// The ids that [`SchemaScope::schema`] knows, for hints.
    fn schemas(&self) -> Vec<String> {
        Vec::new()
    }

    /// The ids that [`Scope::action`] knows, and the paths with `./` before them, for hints.
    fn actions(&self) -> Vec<String> {
        Vec::new()
    }

    /// This schema, if it was compiled for another document of the same scope.
    fn compiled(&self, _schema: &Value) -> Option<schema::Schema> {
        None
    }
}

impl Scope for NoScope {}
