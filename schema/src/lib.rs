//! Strict JSON with positions, JSON Schema 2020-12 compiled from hostile text, and findings about a
//! file. This crate reads no files and is independent of Toolward's formats.

pub mod codes;
pub mod diagnostic;
pub mod json;
pub mod schema;

use serde_json::Value;

/// The other schemas of a bundle.
pub trait SchemaScope {
    /// The document of `schema:ID`, which is usually `schemas/ID.json` of the same bundle.
    fn schema(&self, _id: &str) -> Option<Value> {
        None
    }
}

/// An empty scope.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoScope;

impl SchemaScope for NoScope {}
