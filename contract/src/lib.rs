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
pub mod json;
mod outline;
pub mod path;
pub mod percent;
pub mod placeholder;
pub mod prompt;
pub mod resource;
pub mod schema;
mod shared;
mod source;
mod terms;
pub mod tool;
pub mod url_path;
mod wording;

pub use diagnostic::{CODES, Code, Diagnostic, Parsed, Position, Severity};
pub use outline::Outline;
pub use tool::{define_tool, define_tool_in};

use std::sync::Arc;

use serde_json::Value;

/// What else is in the bundle that a document may refer to.
pub trait Scope {
    /// The document of `schema:ID`, which is `schemas/ID.json` of the same bundle and nothing else.
    fn schema(&self, id: &str) -> Option<Value>;

    /// The action behind a reference of TOOL.md's `implements`. Inline actions are never asked for; a
    /// path is asked for once for each folder that it may be relative to.
    fn action(&self, reference: &action::Reference) -> Option<Arc<action::Action>>;

    /// Whether [`Scope::schema`] gave nothing because the file is there and is not JSON. The file has its own error
    /// then, and what refers to it none.
    fn is_schema_unread(&self, _id: &str) -> bool {
        false
    }

    /// Whether [`Scope::action`] gave nothing because the document is there and is not valid. The document has its own
    /// errors then, and what refers to it none.
    fn is_action_unread(&self, _reference: &action::Reference) -> bool {
        false
    }

    /// Who publishes the library in which [`Scope::action`] found an action; `None` where it was in the bundle.
    fn library(&self, _reference: &action::Reference) -> Option<String> {
        None
    }

    /// Whether [`Scope::action`] gave nothing because the action is of a library, and libraries are the business of
    /// who runs the bundle: the contract is read as if it implemented nothing, and never run so.
    fn is_action_elsewhere(&self, _reference: &action::Reference) -> bool {
        false
    }

    /// The ids that [`Scope::schema`] knows, for a hint at the one that was meant.
    fn schemas(&self) -> Vec<String> {
        Vec::new()
    }

    /// The ids that [`Scope::action`] knows, and the paths with `./` before them, for a hint at the one that was meant.
    fn actions(&self) -> Vec<String> {
        Vec::new()
    }

    /// This schema, if a document of the same scope had it and it is compiled already:
    /// what says the same twice need not be compiled twice.
    fn compiled(&self, _schema: &Value) -> Option<schema::Schema> {
        None
    }
}

/// A scope with nothing in it.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoScope;

impl Scope for NoScope {
    fn schema(&self, _id: &str) -> Option<Value> {
        None
    }

    fn action(&self, _reference: &action::Reference) -> Option<Arc<action::Action>> {
        None
    }
}
