//! Strict JSON with places, JSON Schema 2020-12 compiled from hostile text, and findings about a file.
//! Pure: reads no file, and knows no format of Toolward.

pub mod codes;
pub mod diagnostic;
pub mod json;
pub mod schema;

use serde_json::Value;

/// The other schemas of a bundle.
pub trait SchemaScope {
    /// The document of `schema:ID`, which is `schemas/ID.json` of the same bundle and nothing else.
    fn schema(&self, _id: &str) -> Option<Value> {
        None
    }
}

/// An empty scope.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoScope;

impl SchemaScope for NoScope {}
