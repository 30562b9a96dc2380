//! Actions: ACTION.md (AIP-39), the abstract verbs that contracts implement. Not the policies on them.

mod merge;
mod reference;

use serde_json::{Map, Value};

use crate::capability::CapabilitySet;
use crate::codes;
use crate::diagnostic::{Parsed, Report};
use crate::shared;
use crate::source::{Field, Fields, split};
use crate::terms::{Approval, Requires};
use crate::wording;

pub(crate) use merge::{Claims, Merged, merge};
pub(crate) use reference::{Implements, resolve};

/// A validated action: the floor under every tool that implements it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Action {
    /// Identifier, such as `storage:commit`.
    pub id: String,
    /// Display name.
    pub name: Option<String>,
    /// Purpose.
    pub description: Option<String>,
    /// Version of the document.
    pub version: Option<semver::Version>,
    /// What every tool that implements it may change at least.
    pub mutates: CapabilitySet,
    /// The lowest risk level that an implementing tool may claim.
    pub risk_level: u8,
    /// The weakest approval class that an implementing tool may claim.
    pub approval: Approval,
    /// What every implementing tool requires at least.
    pub requires: Requires,
    /// Inherited as it is.
    pub category: Option<String>,
    /// Inherited as it is.
    pub target_kind: Option<String>,
    /// Events that every implementing tool fires at least.
    pub fires_events: Vec<String>,
    /// Everything below `metadata`, as written.
    pub metadata: Map<String, Value>,
    /// The Markdown below the front matter. Informational.
    pub body: String,
}

/// The action behind a contract's `implements`.
#[derive(Clone, Debug, PartialEq)]
pub struct Implementation {
    /// As written: an id, a registry reference or a path; the id for an inline action.
    pub reference: String,
    /// What it stands for.
    pub action: Action,
}

impl Action {
    /// Reads an ACTION.md. `file` names it in diagnostics.
    #[must_use]
    pub fn parse(file: &str, source: &str) -> Parsed<Action> {
        let mut report = Report::new(file);
        let action = split(source, &mut report).and_then(|parts| {
            let mut fields = report.read(Fields::of(&parts.root()))?;
            let name = wording::name(&mut fields, &mut report);
            let description = wording::description(&mut fields, &mut report);
            let version = report.read(fields.required("version"));
            let version = version.and_then(|field| wording::version(&field, &mut report));
            let mut action = read(fields, &mut report)?;
            action.name = Some(name?);
            action.description = Some(description?);
            action.version = Some(version?);
            parts.body.clone_into(&mut action.body);
            Some(action)
        });
        report.finish(action)
    }
}

/// An action written inside a contract: the identity fields beyond `id` are optional.
fn inline(field: &Field<'_>, report: &mut Report<'_>) -> Option<Action> {
    let mut fields = report.read(Fields::of(field))?;
    let mut take = |key| fields.take(key).map(|field| field.named(key));
    let (name, description, version) = (take("name"), take("description"), take("version"));
    let name = name.and_then(|field| wording::prose(&field, 1..=80, false, report));
    let description = description.and_then(|field| wording::prose(&field, 1..=2000, true, report));
    let version = version.and_then(|field| wording::version(&field, report));
    let mut action = read(fields, report)?;
    (action.name, action.description, action.version) = (name, description, version);
    Some(action)
}

fn read(mut fields: Fields<'_>, report: &mut Report<'_>) -> Option<Action> {
    let id = report.read(fields.required("id")).and_then(|field| {
        let found = report.read(field.text())?;
        if !is_id(found) {
            let message = format!("expected an action id such as storage:commit, found {found:?}");
            report.add(&codes::ID_INVALID, field.at, message);
            return None;
        }
        Some(found.to_owned())
    });
    let mutates = shared::mutates(&mut fields, report)
        .map(|given| given.value)
        .unwrap_or_default();
    let requires = shared::requires(&mut fields, report).all();
    let approval =
        shared::approval(&mut fields, report).map_or(Approval::Auto, |given| given.value);
    let risk_level = shared::risk_level(&mut fields, report).map_or(0, |given| given.value);
    let mut word = |key: &'static str, report: &mut Report<'_>| {
        let field = fields.take(key)?;
        report.read(field.text()).map(str::to_owned)
    };
    let category = word("category", report);
    let target_kind = word("target_kind", report);
    let fires_events = report.strings(fields.take("fires_events"));
    // A hint that decides nothing: the contract says what it implements.
    report.strings(fields.take("implementations"));
    wording::labels(&mut fields, "tags", report);
    let metadata = fields.take("metadata");
    let metadata = metadata.map(|field| field.named("metadata"));
    let metadata = report.mapping(metadata.as_ref());
    report.unknown(fields);
    Some(Action {
        id: id?,
        name: None,
        description: None,
        version: None,
        mutates,
        risk_level,
        approval,
        requires,
        category,
        target_kind,
        fires_events,
        metadata,
        body: String::new(),
    })
}

/// Parts of lower-case letters, digits, dashes and dots, joined by colons.
fn is_id(text: &str) -> bool {
    let alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let part = |part: &str| {
        part.starts_with(alphanumeric)
            && part.ends_with(alphanumeric)
            && part
                .chars()
                .all(|c| alphanumeric(c) || matches!(c, '-' | '.' | '_'))
    };
    (2..=80).contains(&text.len()) && text.split(':').all(part)
}
