//! Formats of Toolward bundles: contracts (TOOL.md), drivers (DRIVER.md), actions (ACTION.md),
//! prompts, descriptions of resources and the index (tools.json), with JSON Schema and the
//! vocabulary of capabilities. This crate reads no file, no environment and no clock, and prints
//! nothing.
//!
//! A parser takes text and returns a validated value or a list of [`Diagnostic`]s:
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

/// The rest of the bundle, in which the references of a document are looked up.
pub trait Scope: SchemaScope {
    /// The action that `implements` of a TOOL.md refers to. An inline action is not looked up. If a
    /// path may be relative to several folders, each resulting path is looked up until an action is
    /// found.
    fn action(&self, _reference: &action::Reference) -> Option<Arc<action::Action>> {
        None
    }

    /// Whether [`SchemaScope::schema`] returned `None` because the file exists but is not JSON. The
    /// error is then reported for the file, not for the reference.
    fn is_schema_unread(&self, _id: &str) -> bool {
        false
    }

    /// Whether [`Scope::action`] returned `None` because the document exists but is invalid. The
    /// errors are then reported for the document, not for the reference.
    fn is_action_unread(&self, _reference: &action::Reference) -> bool {
        false
    }

    /// The publisher of the library in which [`Scope::action`] found an action; `None` if the
    /// action was in the bundle.
    fn library(&self, _reference: &action::Reference) -> Option<String> {
        None
    }

    /// Whether [`Scope::action`] returned `None` because the action may be in a library that only
    /// the host that runs the bundle has. The contract is then read without the action, but no tool
    /// runs without its action.
    fn is_action_elsewhere(&self, _reference: &action::Reference) -> bool {
        false
    }

    /// The ids that [`SchemaScope::schema`] knows, for hints.
    fn schemas(&self) -> Vec<String> {
        Vec::new()
    }

    /// For hints: the ids that [`Scope::action`] knows, and the paths, each with a leading `./`.
    fn actions(&self) -> Vec<String> {
        Vec::new()
    }

    /// The compiled schema, if this schema was already compiled for another document of the same
    /// scope.
    fn compiled(&self, _schema: &Value) -> Option<schema::Schema> {
        None
    }
}

impl Scope for NoScope {}
