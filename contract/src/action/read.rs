//! ACTION.md field by field (AIP-39, "Frontmatter"), and the same fields inline. Looks nothing up.

use super::{Action, ActionExample, ImplementationHint, Implementor, id};
use crate::codes;
use crate::diagnostic::Report;
use crate::shared::{self, Given};
use crate::source::{Field, Fields};
use crate::terms::Approval;
use crate::wording;

/// The one version of the format.
const SCHEMA: &str = "action/v1";

/// What `schema` may say: also what the public implementation of the AIPs writes.
const SCHEMAS: &[&str] = &[SCHEMA, "agentproto/action/v1"];

/// By which rules a document is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Edition {
    /// AIP-39's: it says `schema: action/v1`.
    V1,
    /// Those of hosts that knew no `schema`: `name`, other ids, and `implementations` as a list of texts.
    Unnamed,
}

/// The whole of an ACTION.md.
pub(super) fn document(root: &Field<'_>, report: &mut Report<'_>) -> Option<Action> {
    let mut fields = report.read(Fields::of(root))?;
    let edition = match fields.take("schema") {
        Some(field) => edition(&field, report),
        None => without_schema(root, &mut fields, report),
    };
    let description = wording::description(&mut fields, report);
    let mut action = shared_fields(fields, edition, report)?;
    action.description = Some(description?);
    Some(action)
}

/// An action written inside a contract. Nobody but the contract refers to it, so that `schema` may be left
/// out, and `description` with it.
pub(super) fn inline(field: &Field<'_>, report: &mut Report<'_>) -> Option<Action> {
    let mut fields = report.read(Fields::of(field))?;
    let edition = fields
        .take("schema")
        .map_or(Edition::Unnamed, |field| edition(&field, report));
    let description = match edition {
        Edition::V1 => Some(wording::description(&mut fields, report)?),
        Edition::Unnamed => fields
            .take("description")
            .and_then(|field| wording::prose(&field, 1..=2000, true, report)),
    };
    let mut action = shared_fields(fields, edition, report)?;
    action.description = description;
    Some(action)
}

fn edition(field: &Field<'_>, report: &mut Report<'_>) -> Edition {
    // Another one is refused; the rest is read for what else is wrong.
    shared::schema(field, SCHEMAS, report);
    Edition::V1
}

/// A document of the time before `schema` was read has the fields that were demanded then.
fn without_schema(root: &Field<'_>, fields: &mut Fields<'_>, report: &mut Report<'_>) -> Edition {
    if root.get("name").is_some() && root.get("version").is_some() {
        let message = format!(
            "expected `schema: {SCHEMA}`, found none: read as hosts read it before they knew `schema`"
        );
        let hint = format!("add `schema: {SCHEMA}` and remove `name`");
        report.add_with_hint(&codes::ACTION_SCHEMA_MISSING, root.at, message, hint);
    } else {
        let _ = report.read(fields.required("schema"));
    }
    Edition::Unnamed
}

/// All fields but `schema` and `description`.
fn shared_fields(
    mut fields: Fields<'_>,
    edition: Edition,
    report: &mut Report<'_>,
) -> Option<Action> {
    let name = match edition {
        Edition::V1 => None,
        Edition::Unnamed => fields
            .take("name")
            .and_then(|field| wording::prose(&field, 1..=80, false, report)),
    };
    let id = read_id(&mut fields, edition, report);
    let version = fields.take("version");
    let version = version.and_then(|field| wording::version(&field, report));
    let mutates = shared::mutates(&mut fields, report);
    let requires = shared::requires(&mut fields, report).all();
    let approval = shared::approval(&mut fields, report);
    let risk_level = shared::risk_level(&mut fields, report);
    let category = word(&mut fields, "category", report);
    let verb = word(&mut fields, "verb", report);
    let target_kind = word(&mut fields, "target_kind", report);
    if let Some(id) = &id {
        compare("verb", verb.as_ref(), id::verb(id), report);
        let derived = id::target_kind(id);
        compare("target_kind", target_kind.as_ref(), derived, report);
    }
    let fires_events = events(&mut fields, report);
    let implementations = implementations(&mut fields, edition, report);
    let tags = wording::labels(&mut fields, "tags", report);
    let examples = examples(&mut fields, report);
    let metadata = fields.take("metadata");
    let metadata = metadata.map(|field| field.named("metadata"));
    let metadata = report.mapping(metadata.as_ref());
    report.unknown(fields);
    Some(Action {
        id: id?,
        name,
        description: None,
        version: version.unwrap_or(semver::Version::new(1, 0, 0)),
        mutates: mutates.map(|given| given.value).unwrap_or_default(),
        risk_level: risk_level.map_or(0, |given| given.value),
        approval: approval.map_or(Approval::Auto, |given| given.value),
        requires,
        category: category.map(|given| given.value),
        verb: verb.map(|given| given.value),
        target_kind: target_kind.map(|given| given.value),
        fires_events,
        implementations,
        tags,
        examples,
        metadata,
        body: String::new(),
    })
}

fn read_id(fields: &mut Fields<'_>, edition: Edition, report: &mut Report<'_>) -> Option<String> {
    let field = report.read(fields.required("id"))?;
    let found = report.read(field.text())?;
    let fits = match edition {
        Edition::V1 => id::is_valid(found),
        Edition::Unnamed => id::is_valid(found) || id::was_valid(found),
    };
    if !fits {
        let message = format!("expected an action id such as storage:commit, found {found:?}");
        report.add(&codes::ID_INVALID, field.at, message);
        return None;
    }
    Some(found.to_owned())
}

fn word(
    fields: &mut Fields<'_>,
    key: &'static str,
    report: &mut Report<'_>,
) -> Option<Given<String>> {
    let field = fields.take(key)?;
    let found = report.read(field.text())?;
    let value = wording::check_characters(found, &field.name, field.at, false, report)
        .then(|| found.to_owned())?;
    let at = field.at;
    Some(Given { value, at })
}

/// Warns of a `verb` or `target_kind` that is not the id's. AIP-39 derives them only where they are not
/// written, and lets a host put its own name before the colon.
fn compare(
    key: &str,
    written: Option<&Given<String>>,
    derived: Option<&str>,
    report: &mut Report<'_>,
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

fn events(fields: &mut Fields<'_>, report: &mut Report<'_>) -> Vec<String> {
    let Some(field) = fields.take("fires_events") else {
        return Vec::new();
    };
    let items = report.read(field.items()).unwrap_or_default();
    let read = |item| wording::filled(item, false, report);
    let events: Vec<String> = items.iter().filter_map(read).collect();
    if !events.is_empty() && events.len() == items.len() {
        shared::without_effect("fires_events", field.key_at, shared::NO_EVENTS, report);
    }
    events
}

/// A hint that decides nothing: the contract says what it implements.
fn implementations(
    fields: &mut Fields<'_>,
    edition: Edition,
    report: &mut Report<'_>,
) -> Vec<ImplementationHint> {
    const KINDS: &[&str] = &["tool", "driver", "ui", "lifecycle"];
    let Some(field) = fields.take("implementations") else {
        return Vec::new();
    };
    let items = report.read(field.items()).unwrap_or_default();
    let written = items.len();
    let mut hints = Vec::new();
    for item in items {
        if edition == Edition::Unnamed && item.text().is_ok() {
            continue;
        }
        let Some(mut inner) = report.read(Fields::of(&item)) else {
            continue;
        };
        let kind = report.read(inner.required("kind"));
        let kind = kind
            .and_then(|field| shared::word(&field, KINDS, kind_of, &codes::WRONG_VALUE, report));
        let reference = report.read(inner.required("ref"));
        let reference = reference.and_then(|field| wording::filled(&field, false, report));
        report.unknown(inner);
        if let (Some(kind), Some(reference)) = (kind, reference) {
            hints.push(ImplementationHint { kind, reference });
        }
    }
    if !hints.is_empty() && hints.len() == written {
        shared::without_effect("implementations", field.key_at, NOT_FOLLOWED, report);
    }
    hints
}

const NOT_FOLLOWED: &str = "it is shown, and what it names is not looked for";

fn kind_of(word: &str) -> Option<Implementor> {
    match word {
        "tool" => Some(Implementor::Tool),
        "driver" => Some(Implementor::Driver),
        "ui" => Some(Implementor::Ui),
        "lifecycle" => Some(Implementor::Lifecycle),
        _ => None,
    }
}

fn examples(fields: &mut Fields<'_>, report: &mut Report<'_>) -> Vec<ActionExample> {
    let Some(field) = fields.take("examples") else {
        return Vec::new();
    };
    let mut examples = Vec::new();
    for item in report.read(field.items()).unwrap_or_default() {
        let Some(mut inner) = report.read(Fields::of(&item)) else {
            continue;
        };
        let name = report.read(inner.required("name"));
        let name = name.and_then(|field| wording::filled(&field, false, report));
        let scenario = report.read(inner.required("scenario"));
        let scenario = scenario.and_then(|field| wording::filled(&field, true, report));
        let note = inner.take("note");
        let note = note.and_then(|field| {
            let found = report.read(field.text())?;
            wording::check_characters(found, &field.name, field.at, true, report)
                .then(|| found.to_owned())
        });
        report.unknown(inner);
        if let (Some(name), Some(scenario)) = (name, scenario) {
            examples.push(ActionExample {
                name,
                scenario,
                note,
            });
        }
    }
    examples
}
