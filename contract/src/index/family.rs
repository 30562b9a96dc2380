//! Capabilities spelled as tools.json spells them: `net:host`, `fs:/path`, `db:table`. Only names differ.

use crate::capability::{Capability, CapabilityError, FAMILIES};

/// A capability in the spelling of tools.json.
#[must_use]
pub fn family(capability: &Capability) -> String {
    let short = FAMILIES
        .iter()
        .find(|(_, class)| class == capability.class());
    match short {
        Some((name, _)) => format!("{name}:{}", capability.scope()),
        None => capability.to_string(),
    }
}

/// Reads a capability in the spelling of tools.json.
///
/// # Errors
/// No colon, an empty part, or a scope that the family does not have.
pub fn parse_family(text: &str) -> Result<Capability, CapabilityError> {
    let short = FAMILIES.iter().find_map(|(name, class)| {
        let scope = text.strip_prefix(name)?.strip_prefix(':')?;
        Some((class.clone(), scope))
    });
    match short {
        Some((class, scope)) => Capability::of(class, scope),
        None => Capability::parse(text),
    }
}
