//! Actions in short.

use serde::Serialize;
use toolward_contract::action::Action;

use super::names;

/// An action in short: the floor under the contracts that implement it.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ActionView {
    /// Its id.
    pub id: String,
    /// Its version.
    pub version: String,
    /// What it says of itself; empty where it says nothing.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// What every contract that implements it changes at least.
    pub mutates: Vec<String>,
    /// The weakest approval class that such a contract may claim.
    pub approval: String,
    /// The lowest risk level that such a contract may claim, 0 to 3.
    pub risk_level: u8,
    /// The events that it names. This host fires none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fires_events: Vec<String>,
    /// What implements it, as its author says: kind and reference. Never followed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub implementations: Vec<(String, String)>,
}

impl ActionView {
    /// An action in short.
    #[must_use]
    pub fn of(action: &Action) -> Self {
        let hints = action.implementations.iter();
        Self {
            id: action.id.clone(),
            version: action.version.to_string(),
            description: action.description.clone().unwrap_or_default(),
            mutates: names(&action.mutates),
            approval: action.approval.to_string(),
            risk_level: action.risk_level,
            fires_events: action.fires_events.clone(),
            implementations: hints
                .map(|hint| (hint.kind.to_string(), hint.reference.clone()))
                .collect(),
        }
    }
}
