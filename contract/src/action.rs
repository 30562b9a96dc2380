//! Actions: ACTION.md (AIP-39), the abstract verbs that contracts implement. Policies on actions
//! are elsewhere.

mod merge;
mod read;
mod reference;

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::capability::CapabilitySet;
use crate::diagnostic::{FileReport, Parsed};
use crate::front_matter::split;
use crate::id::is_word;
use crate::terms::{Approval, Requires};

pub(crate) use merge::{Claims, MergedTerms, merge};
pub(crate) use reference::resolve;
pub use reference::{Reference, RegistryReference};

/// The code for an `implements` whose action is neither in the bundle nor in a known library.
pub const UNRESOLVED: &str = crate::codes::ACTION_UNRESOLVED.code;

/// The code for an `implements` with a registry reference to another bundle, if the libraries of
/// the host are not known.
pub const ELSEWHERE: &str = crate::codes::ACTION_ELSEWHERE.code;

/// A validated action: the minimum for every tool that implements it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Action {
    /// Identifier, such as `storage:commit`.
    pub id: String,
    /// Display name. Only documents without `schema` have one; AIP-39 has no such field.
    pub name: Option<String>,
    /// Purpose; `None` only for an inline action.
    pub description: Option<String>,
    /// Version of the document; 1.0.0 by default.
    pub version: semver::Version,
    /// The changes that every implementing tool must declare at least.
    pub mutates: CapabilitySet,
    /// The lowest risk level that an implementing tool may claim.
    pub risk_level: u8,
    /// The weakest approval class that an implementing tool may claim.
    pub approval: Approval,
    /// The requirements that every implementing tool must declare at least.
    pub requires: Requires,
    /// The category, which implementing tools inherit unchanged.
    pub category: Option<String>,
    /// The bare verb as written.
    pub verb: Option<String>,
    /// The kind of resource as written, which implementing tools inherit. If it is missing,
    /// [`Action::effective_target_kind`] takes it from the id.
    pub target_kind: Option<String>,
    /// Events that every implementing tool fires at least.
    pub fires_events: Vec<String>,
    /// The implementations that the action's author knows. They are hints for catalogues: no tool
    /// is trusted, found or granted anything because of them (AIP-39, conformance rule 5).
    pub implementations: Vec<ImplementationHint>,
    /// Discovery tags.
    pub tags: Vec<String>,
    /// Situations in which to use it.
    pub examples: Vec<ActionExample>,
    /// Everything below `metadata`, as written.
    pub metadata: Map<String, Value>,
    /// The Markdown below the front matter. Informational.
    pub body: String,
}

/// One entry of an action's `implementations`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImplementationHint {
    /// The kind of document that implements the action.
    pub kind: Implementor,
    /// The document's id, path or registry reference, as written. Never followed.
    pub reference: String,
}

/// The kinds of documents that may implement an action (AIP-39, "Optional fields").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Implementor {
    /// A contract.
    Tool,
    /// A driver.
    Driver,
    /// A user interface.
    Ui,
    /// A handler of lifecycle events.
    Lifecycle,
}

impl Implementor {
    pub(crate) const WORDS: &[(&str, Self)] = &[
        ("tool", Self::Tool),
        ("driver", Self::Driver),
        ("ui", Self::Ui),
        ("lifecycle", Self::Lifecycle),
    ];
}

impl fmt::Display for Implementor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = Implementor::WORDS.iter().find(|(_, kind)| kind == self);
        f.write_str(found.map_or("", |(word, _)| word))
    }
}

/// A situation in which an action is used. It has no input and output, since an action has no
/// schema.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ActionExample {
    /// The example's name.
    pub name: String,
    /// The situation.
    pub scenario: String,
    /// A note for readers.
    pub note: Option<String>,
}

/// The action behind a contract's `implements`.
#[derive(Clone, Debug, PartialEq)]
pub struct Implementation {
    /// The reference as written: an id, a registry reference or a path. For an inline action, its
    /// id.
    pub reference: String,
    /// The form of the reference. An inline action has an id of its author's choice, and belongs
    /// only to the contract.
    pub form: ReferenceForm,
    /// The publisher of the library with the action; `None` if the action is in the contract's own
    /// bundle.
    pub library: Option<String>,
    /// The action. Contracts share it, since thousands may implement the same one.
    pub action: Arc<Action>,
}

impl Implementation {
    /// The id by which other documents may name the action, and the action's publisher: the
    /// publisher of the library or, if the action is in the contract's bundle, `own`, the
    /// contract's publisher. `None` for an action that is inline or at a path, since only the
    /// contract refers to such an action.
    pub fn shared<'a>(&'a self, own: &'a str) -> Option<(&'a str, &'a str)> {
        match self.form {
            ReferenceForm::Id | ReferenceForm::Registry => {
                Some((&self.action.id, self.library.as_deref().unwrap_or(own)))
            }
            ReferenceForm::Path | ReferenceForm::Inline => None,
        }
    }
}

/// The forms of `implements` (AIP-39, "Composition pattern").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceForm {
    /// A bare id.
    Id,
    /// `@owner/library/action`.
    Registry,
    /// The path of an ACTION.md, or of its folder.
    Path,
    /// The action itself, written in the contract.
    Inline,
}

impl Action {
    /// Reads an ACTION.md. `file` names it in diagnostics.
    pub fn parse(file: &str, source: &str) -> Parsed<Action> {
        let report = FileReport::new(file);
        let action = split(source, &report).and_then(|parts| {
            let mut action = read::document(&parts.root(&report))?;
            parts.body.clone_into(&mut action.body);
            Some(action)
        });
        report.finish(action)
    }

    /// Whether a text is the id of an action (AIP-39, conformance rule 1). Underscores and several
    /// colons are allowed, too, as in documents for earlier hosts.
    pub fn is_id(text: &str) -> bool {
        is_valid_id(text) || was_valid_id(text)
    }

    /// The kind of resource: as written, or otherwise the part of the id before the colon.
    pub fn effective_target_kind(&self) -> Option<&str> {
        let written = self.target_kind.as_deref();
        // The JSON Schema of AIP-39 permits an empty text.
        let written = written.filter(|text| !text.is_empty());
        written.or_else(|| id_target_kind(&self.id))
    }
}

/// The allowed length of an id, in bytes.
const ID_LENGTH: std::ops::RangeInclusive<usize> = 2..=80;

/// Whether a text is an id: lower-case letters, digits, dashes and dots, with at most one colon
/// (AIP-39, conformance rule 1). In addition to that rule, each part must end with a letter or
/// digit, so that the end of an id in a sentence is unambiguous.
fn is_valid_id(text: &str) -> bool {
    ID_LENGTH.contains(&text.len())
        && text.split(':').count() <= 2
        && text.split(':').all(|part| is_word(part, &['-', '.']))
}

/// Whether a text is an id by the rules of hosts that do not read `schema` yet, which also allow
/// underscores and any number of colons.
fn was_valid_id(text: &str) -> bool {
    let is_part = |part: &str| is_word(part, &['-', '.', '_']);
    ID_LENGTH.contains(&text.len()) && text.split(':').all(is_part)
}

/// The verb in an id: the part after the colon.
fn id_verb(id: &str) -> Option<&str> {
    id.split_once(':').map(|(_, verb)| verb)
}

/// The kind of resource in an id: the part before the colon.
fn id_target_kind(id: &str) -> Option<&str> {
    id.split_once(':').map(|(kind, _)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_one_colon_at_most() {
        for id in [
            "storage:commit",
            "a1",
            "my.local-action",
            "v.c.s:a-b",
            "0:0",
        ] {
            assert!(is_valid_id(id) && was_valid_id(id), "{id}");
        }
        for id in ["vcs:storage:commit", "mail:send_all"] {
            assert!(!is_valid_id(id) && was_valid_id(id), "{id}");
        }
        for id in [
            "", "a", ":a", "a:", "a::b", "A:b", "a b", ".a", "-a:b", "a.:b", "a/b", "ä:b",
        ] {
            assert!(!is_valid_id(id) && !was_valid_id(id), "{id}");
        }
        assert!(is_valid_id(&"a".repeat(80)) && !is_valid_id(&"a".repeat(81)));
    }

    #[test]
    fn an_id_without_a_colon_names_no_id_verb() {
        assert_eq!(id_verb("storage:commit"), Some("commit"));
        assert_eq!(id_target_kind("storage:commit"), Some("storage"));
        assert_eq!(
            (id_verb("storage"), id_target_kind("storage")),
            (None, None)
        );
    }
}
