//! The tools that clients see: names, descriptions, schemas, annotations. What
//! may be called is the host's to decide; here it is only shown.

mod annotations;
mod describe;
mod error;
mod icons;
mod names;
mod schemas;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use rmcp::model::JsonObject;
use serde_json::Value;
use toolward_contract::tool::Tool;
use toolward_host::{CallError, ErrorClass, ErrorCode, Host, ToolInfo};

pub use error::CatalogueError;

use crate::principal::Principal;

/// One tool as clients see it.
#[derive(Debug, Clone)]
pub(crate) struct Listed {
    /// Its name over MCP.
    pub(crate) name: String,
    /// `id@major`: what the host is asked for.
    pub(crate) target: String,
    pub(crate) contract: Arc<Tool>,
    /// As verified; `dev:<dir>` for an unsigned bundle.
    pub(crate) publisher: String,
    /// BLAKE3 of its bundle's manifest, 64 hex digits.
    pub(crate) bundle: String,
    /// What `tools/list` says of it.
    pub(crate) tool: rmcp::model::Tool,
    /// Its output is no object, and stands under `result` in the structure.
    pub(crate) wrapped: bool,
    /// Its input is no object, and stands under `input` in the arguments.
    wrapped_input: bool,
}

impl Listed {
    /// Whether a principal may use it.
    pub(crate) fn is_for(&self, principal: &Principal) -> bool {
        let id = self.contract.id.as_str();
        principal.tools.include(id, self.contract.version.major)
    }

    /// The arguments of a client as the contract's input.
    ///
    /// # Errors
    ///
    /// When they have what no client may send: a field marked `x-internal`.
    pub(crate) fn input(&self, arguments: JsonObject) -> Result<Value, CallError> {
        schemas::input(&self.contract.inputs, self.wrapped_input, arguments)
    }

    /// An output without what no client may see: the fields marked `x-internal`.
    /// Not yet wrapped.
    pub(crate) fn outward(&self, output: Value) -> Value {
        schemas::outward(&self.contract.outputs, output)
    }
}

/// A tool that no call can run: policy blocks it, or no driver serves it. It is
/// not listed, but whoever asks by name is told so.
#[derive(Debug, Clone)]
pub(crate) struct Blocked {
    /// The name that it would have over MCP.
    pub(crate) name: String,
    /// `id@major`: what the host is asked for. A call says why it is blocked.
    pub(crate) target: String,
    /// Its contract's id.
    pub(crate) id: String,
    /// As verified.
    pub(crate) publisher: String,
    /// The error with which a call of it ends.
    pub(crate) refusal: CallError,
    major: u64,
}

impl Blocked {
    /// Whether a principal might use it, were it not blocked.
    pub(crate) fn is_for(&self, principal: &Principal) -> bool {
        principal.tools.include(&self.id, self.major)
    }

    fn new(name: String, info: &ToolInfo) -> Self {
        let target = info.contract.major_id();
        Self {
            refusal: info.refusal().unwrap_or_else(|| blocked(&target)),
            name,
            target,
            id: info.contract.id.to_string(),
            publisher: info.publisher.clone(),
            major: info.contract.version.major,
        }
    }
}

/// What there is to say of a tool that its grants let run, and something else
/// does not.
fn blocked(target: &str) -> CallError {
    CallError::new(
        ErrorCode::UNAUTHORISED,
        ErrorClass::PolicyBlocked,
        format!("`{target}` is blocked here"),
    )
    .with_hint(format!(
        "the operator decides: `toolward policy explain {target}` shows what is missing"
    ))
}

/// All that a host serves, as clients see it. A snapshot.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    /// The tools that may run, by name.
    pub(crate) listed: Vec<Listed>,
    /// Those that may not, by name.
    pub(crate) blocked: Vec<Blocked>,
}

/// What a host serves, in the order of names: the same bundles give the same
/// catalogue.
///
/// # Errors
///
/// When two tools would carry one name, or one a name of the server's own.
pub(crate) fn of(host: &Host) -> Result<Catalogue, CatalogueError> {
    let infos: Vec<ToolInfo> = host.tools().collect();
    let claims: Vec<_> = infos.iter().map(names::Claim::of).collect();
    let names = names::assign(&claims)?;
    let mut named: Vec<(String, ToolInfo)> = names.into_iter().zip(infos).collect();
    named.sort_by(|a, b| a.0.cmp(&b.0));
    let mut catalogue = Catalogue::default();
    let mut icons = icons::Room::default();
    for (name, info) in named {
        match info.effects.filter(|_| info.context.is_none()) {
            Some(effects) => {
                let listed = describe::listed(name, info, effects, &mut icons);
                catalogue.listed.push(listed);
            }
            None => catalogue.blocked.push(Blocked::new(name, &info)),
        }
    }
    Ok(catalogue)
}
