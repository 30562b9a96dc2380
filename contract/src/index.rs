//! The machine index of a bundle: tools.json, versions 1 and 2. Contracts are the truth; this repeats them.

mod agree;
mod attachment;
mod contracts;
mod family;
mod generate;
mod parse;
mod refs;
mod transport;

use serde_json::{Map, Value};

use crate::Scope;
use crate::capability::CapabilitySet;
use crate::diagnostic::{Diagnostic, Parsed, Position};
use crate::driver::Driver;
use crate::schema::Schema;
use crate::tool::{Tool, ToolId};

pub use family::{family, parse_family};
pub use transport::Transport;

/// The version that `pack` writes.
pub const VERSION: u32 = 2;

/// A validated tools.json.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Index {
    /// 1 or 2.
    pub version: u32,
    /// The entries in order.
    pub tools: Vec<IndexEntry>,
}

/// One tool in the index.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct IndexEntry {
    /// The contract's id; may hold `_` in version 1.
    pub id: ToolId,
    /// The contract's major version, if the document has entries for several of the id. Version 2 only.
    pub major: Option<u64>,
    /// Summary.
    pub description: String,
    /// What carries the tool out.
    pub transport: Transport,
    /// Schema of the input.
    pub input_schema: Schema,
    /// Schema of the result.
    pub result_schema: Schema,
    /// Names for further schema ids.
    pub schema_refs: Map<String, Value>,
    /// What it needs, spelled as families (`net:`, `fs:`, `db:`) in the document.
    pub capabilities: CapabilitySet,
    /// Families that no policy can grant, as version 1 has them: without a scope (`exec`, `model`), or with one that
    /// the family does not have. They deny the attachment.
    pub ungrantable: Vec<String>,
    /// Ids of secrets that it needs.
    pub secrets: Vec<String>,
    /// Budget hints: `tokens`, `usd`.
    pub budget: Map<String, Value>,
    /// Whether a person confirms each call.
    pub requires_confirmation: bool,
    /// Tags for traces.
    pub tags: Vec<String>,
    /// Where the entry stands.
    pub at: Position,
}

impl Index {
    /// Reads a tools.json. `file` names it in diagnostics; `scope` knows the bundle's `schema:` documents.
    #[must_use]
    pub fn parse(file: &str, source: &[u8], scope: &dyn Scope) -> Parsed<Index> {
        parse::document(file, source, scope)
    }

    /// The index of contracts and their drivers: version 2, by id, contracts without a driver left out.
    #[must_use]
    pub fn generate(tools: &[(&Tool, &[&Driver])]) -> Index {
        generate::index(tools)
    }

    /// The document: indented JSON with a final line feed, the same bytes for the same index.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        generate::bytes(self)
    }

    /// Whether the index says what contracts and drivers say, as values, field by field.
    /// A version 1 entry without a contract, and its transport, have nothing to agree with.
    ///
    /// # Errors
    /// Each disagreement, with the field and both values.
    pub fn agrees(&self, file: &str, tools: &[(&Tool, &[&Driver])]) -> Result<(), Vec<Diagnostic>> {
        agree::check(self, file, tools)
    }

    /// The contracts that a version 1 document stands for, where a bundle has no TOOL.md; empty for
    /// version 2. What the document leaves open is read in the more careful way: every capability
    /// counts as a mutation unless the transport is an HTTP request that only reads.
    #[must_use]
    pub fn contracts(&self) -> Vec<Tool> {
        if self.version == 1 {
            self.tools.iter().map(contracts::contract).collect()
        } else {
            Vec::new()
        }
    }
}

impl IndexEntry {
    /// The driver that an `http` or `exec` transport stands for, of that kind and with the tool's id, for
    /// `contract`: that of [`Index::contracts`], or the TOOL.md with the entry's id. `None` for a
    /// component, which has a DRIVER.md. `file` names the document in diagnostics.
    ///
    /// # Errors
    /// One `transport-…` warning: what the transport needs can't be had safely, or is not declared.
    /// The attachment is denied, the tool has no driver.
    #[must_use]
    pub fn driver(&self, contract: &Tool, file: &str) -> Option<Result<Driver, Diagnostic>> {
        attachment::driver(self, contract, file)
    }

    /// The driver of a transport that [`IndexEntry::driver`] denied with `why`: it serves no call, and tells why.
    /// `None` for a component, and where the contract's version is none that npm can read.
    #[must_use]
    pub fn denied(&self, contract: &Tool, why: &Diagnostic) -> Option<Driver> {
        attachment::denied(self, contract, why)
    }
}
