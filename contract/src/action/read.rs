//! Reads the fields of an ACTION.md (AIP-39, "Frontmatter") or of an inline action. References are
//! not looked up here.

use super::{
    Action, ActionExample, ImplementationHint, Implementor, id_target_kind, id_verb, is_valid_id,
    was_valid_id,
};
use crate::codes;
use crate::diagnostic::FileReport;
use crate::shared;
use crate::source::{Content, FieldReader, MappingReader, PlacedValue};
use crate::terms::Approval;

/// The only version of the format.
const SCHEMA: &str = "action/v1";

/// The valid values of `schema`, including the one that the public implementation of the AIPs
/// writes.
const SCHEMAS: &[&str] = &[SCHEMA, "agentproto/action/v1"];

/// The rules by which a document is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Edition {
    /// The rules of AIP-39, for a document with `schema: action/v1`.
    V1,
    /// The rules from before `schema` existed: with `name`, other ids, and `implementations` as a
    /// list of texts.
    Unnamed,
}

/// Reads a whole ACTION.md.
pub(super) fn document(root: &FieldReader<'_>) -> Option<Action> {
    root.whole(|fields| {
        let edition = match fields.take("schema") {
            Some(field) => edition(&field),
            None => without_schema(root, fields),
        };
        let description = shared::description(fields);
        let action = shared_fields(fields, edition)?;
        let description = Some(description?);
        Some(Action {
            description,
            ..action
        })
    })
}

/// Reads an action that is written inside a contract. Only the contract refers to it, so `schema`
/// may be omitted; without `schema`, `description` may be omitted, too.
pub(super) fn inline(field: &FieldReader<'_>) -> Option<Action> {
    let mut fields = field.fields()?;
    let edition = fields
        .take("schema")
        .map_or(Edition::Unnamed, |field| edition(&field));
    let description = match edition {
        Edition::V1 => Some(shared::description(&mut fields)?),
        Edition::Unnamed => {
            let field = fields.take("description");
            field.and_then(|field| shared::prose(&field, 1..=2000, true))
        }
    };
    let action = shared_fields(&mut fields, edition);
    fields.unknown();
    Some(Action {
        description,
        ..action?
    })
}

fn edition(field: &FieldReader<'_>) -> Edition {
    // An unknown value is refused, but the other fields are still read, so that their errors are
    // reported, too.
    shared::schema(field, SCHEMAS);
    Edition::V1
}

/// Accepts a document without `schema` if it has `name` and `version`, which were required before
/// `schema` existed.
fn without_schema(root: &FieldReader<'_>, fields: &mut MappingReader<'_>) -> Edition {
    if root.get("name").is_some() && root.get("version").is_some() {
        let message = format!(
            "expected `schema: {SCHEMA}`, found none: read as hosts read it before they knew `schema`"
        );
        let hint = format!("add `schema: {SCHEMA}` and remove `name`");
        root.note_with_hint(&codes::ACTION_SCHEMA_MISSING, message, hint);
    } else {
        let _ = fields.required("schema");
    }
    Edition::Unnamed
}

/// Reads all fields except `schema` and `description`.
fn shared_fields(fields: &mut MappingReader<'_>, edition: Edition) -> Option<Action> {
    let name = match edition {
        Edition::V1 => None,
        Edition::Unnamed => fields.read("name", |field| shared::prose(field, 1..=80, false)),
    };
    let id = read_id(fields, edition);
    let version = fields.read("version", shared::version);
    let mutates = shared::mutates(fields);
    let approval = shared::approval(fields);
    let risk_level = shared::risk_level(fields);
    let category = word(fields, "category");
    let verb = word(fields, "verb");
    let target_kind = word(fields, "target_kind");
    if let Some(id) = &id {
        compare("verb", verb.as_ref(), id_verb(id), fields.report);
        let derived = id_target_kind(id);
        compare("target_kind", target_kind.as_ref(), derived, fields.report);
    }
    Some(Action {
        requires: shared::requires(fields).all(),
        fires_events: fields.or_default("fires_events", events),
        implementations: fields
            .or_default("implementations", |field| implementations(field, edition)),
        tags: shared::labels(fields, "tags"),
        examples: examples(fields),
        metadata: fields.or_default("metadata", |field| {
            field.clone().named("metadata").mapping()
        }),
        id: id?,
        name,
        description: None,
        version: version.unwrap_or(semver::Version::new(1, 0, 0)),
        mutates: mutates.map(|given| given.value).unwrap_or_default(),
        risk_level: risk_level.map_or(0, |given| given.value),
        approval: approval.map_or(Approval::Auto, |given| given.value),
        category: category.map(|given| given.value),
        verb: verb.map(|given| given.value),
        target_kind: target_kind.map(|given| given.value),
        body: String::new(),
    })
}

fn read_id(fields: &mut MappingReader<'_>, edition: Edition) -> Option<String> {
    let field = fields.required("id")?;
    let found = field.text()?;
    let fits = match edition {
        Edition::V1 => is_valid_id(found),
        Edition::Unnamed => is_valid_id(found) || was_valid_id(found),
    };
    if !fits {
        let message = format!("expected an action id such as storage:commit, found {found:?}");
        return field.refuse(&codes::ID_INVALID, message);
    }
    Some(found.to_owned())
}

fn word(fields: &mut MappingReader<'_>, key: &'static str) -> Option<PlacedValue<String>> {
    let field = fields.take(key)?;
    Some(field.placed(shared::shown_text(&field, false)?))
}

/// Warns of a `verb` or `target_kind` that differs from the id. This is not an error: AIP-39
/// derives the two from the id only if they are missing, and lets a host put its own name before
/// the colon.
fn compare(
    key: &str,
    written: Option<&PlacedValue<String>>,
    derived: Option<&str>,
    report: &FileReport<'_>,
) {
    if let (Some(written), Some(derived)) = (written, derived)
        && !written.value.is_empty()
        && written.value != derived
    {
        let message = format!(
            "expected `{key}` to be {derived}, as the id says, found {:?}",
            written.value
        );
        let hint = format!("leave `{key}` out to take it from the id");
        report.add_with_hint(&codes::ACTION_ID_DIFFERS, written.at, message, hint);
    }
}

fn events(field: &FieldReader<'_>) -> Vec<String> {
    let items = field.items();
    let read = |item| shared::filled(item, false);
    let events: Vec<String> = items.iter().filter_map(read).collect();
    if !events.is_empty() && events.len() == items.len() {
        let instead = shared::NO_EVENTS;
        shared::without_effect("fires_events", field.key_at, instead, field.report);
    }
    events
}

/// Reads `implementations`, which has no effect: a contract itself states the action that it
/// implements.
fn implementations(field: &FieldReader<'_>, edition: Edition) -> Vec<ImplementationHint> {
    let items = field.items();
    let written = items.len();
    let mut hints = Vec::new();
    for item in items {
        if edition == Edition::Unnamed && matches!(item.content, Content::Text(_)) {
            continue;
        }
        hints.extend(item.whole(|inner| {
            let kind = inner.require("kind", |field| {
                field.word(Implementor::WORDS, &codes::WRONG_VALUE)
            });
            let reference = inner.require("ref", |field| shared::filled(field, false))?;
            Some(ImplementationHint {
                kind: kind?,
                reference,
            })
        }));
    }
    if !hints.is_empty() && hints.len() == written {
        shared::without_effect("implementations", field.key_at, NOT_FOLLOWED, field.report);
    }
    hints
}

const NOT_FOLLOWED: &str = "it is shown, and what it names is not looked for";

fn examples(fields: &mut MappingReader<'_>) -> Vec<ActionExample> {
    let read = fields.items("examples").into_iter().filter_map(|item| {
        item.whole(|inner| {
            let name = inner.require("name", |field| shared::filled(field, false));
            let scenario = inner.require("scenario", |field| shared::filled(field, true));
            Some(ActionExample {
                note: inner.read("note", |field| shared::shown_text(field, true)),
                name: name?,
                scenario: scenario?,
            })
        })
    });
    read.collect()
}
