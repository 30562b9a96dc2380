//! Capabilities spelled as tools.json spells them: `net:host`, `fs:/path`, `db:table`. Only names differ.

use crate::capability::{Capability, CapabilityError, Class};

/// A capability in the spelling of tools.json.
#[must_use]
pub fn family(capability: &Capability) -> String {
    match capability.class().in_tools_json() {
        Some(name) => format!("{name}:{}", capability.scope()),
        None => capability.to_string(),
    }
}

/// Reads a capability in the spelling of tools.json.
///
/// # Errors
/// No colon, an empty part, or a scope that the family does not have.
pub fn parse_family(text: &str) -> Result<Capability, CapabilityError> {
    let short = text
        .split_once(':')
        .and_then(|(name, scope)| Some((Class::of_tools_json(name)?, scope)));
    match short {
        Some((class, scope)) => Capability::of(class.clone(), scope),
        None => Capability::parse(text),
    }
}
