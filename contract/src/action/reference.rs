//! `implements` in a contract: which action, and where from. Merging is elsewhere.

use super::{Action, Implementation, inline, is_id};
use crate::Scope;
use crate::codes;
use crate::diagnostic::Report;
use crate::source::{Content, Field, Fields, nearest};

/// What a contract says of an action.
pub(crate) enum Implements {
    /// Nothing.
    Nothing,
    /// That it implements one, which can't be told: that has been reported.
    Unknown,
    /// That it implements this one.
    Action(Box<Implementation>),
}

impl Implements {
    /// The action, if it is known.
    pub(crate) fn known(self) -> Option<Implementation> {
        match self {
            Implements::Action(implementation) => Some(*implementation),
            Implements::Nothing | Implements::Unknown => None,
        }
    }
}

/// The action that a contract implements.
pub(crate) fn resolve(
    fields: &mut Fields<'_>,
    scope: &dyn Scope,
    report: &mut Report<'_>,
) -> Implements {
    match fields.take("implements").filter(|field| !field.is_null()) {
        None => Implements::Nothing,
        Some(field) => read(&field, scope, report).map_or(Implements::Unknown, |found| {
            Implements::Action(Box::new(found))
        }),
    }
}

fn read(field: &Field<'_>, scope: &dyn Scope, report: &mut Report<'_>) -> Option<Implementation> {
    let (reference, action) = match &field.content {
        Content::Text(reference) => (reference.clone(), look_up(field, reference, scope, report)?),
        Content::Mapping(_) => {
            let mut inner = report.read(Fields::of(field))?;
            let action = report.read(inner.required("inline"));
            let action = action.and_then(|field| inline(&field, report));
            report.unknown(inner);
            let action = action?;
            (action.id.clone(), action)
        }
        _ => {
            let message = format!(
                "expected `implements` to be a reference or an inline action, found {}",
                field.kind()
            );
            report.add(&codes::WRONG_TYPE, field.at, message);
            return None;
        }
    };
    Some(Implementation { reference, action })
}

fn look_up(
    field: &Field<'_>,
    reference: &str,
    scope: &dyn Scope,
    report: &mut Report<'_>,
) -> Option<Action> {
    if !is_id(reference) && !is_registry(reference) && !is_path(reference) {
        let message = format!(
            "expected an action id, a registry reference or a path to an ACTION.md, found {reference:?}"
        );
        report.add(&codes::ACTION_REFERENCE_INVALID, field.at, message);
        return None;
    }
    let action = scope.action(reference);
    if action.is_none() && scope.is_action_unread(reference) {
        report.follows();
    } else if action.is_none() {
        let message = format!("expected an action known in this bundle, found {reference:?}");
        let known = scope.actions();
        let hint = match nearest(reference, known.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "put its ACTION.md into the bundle".to_owned(),
        };
        report.add_with_hint(&codes::ACTION_UNKNOWN, field.at, message, hint);
    }
    action
}

/// `@scope/name/…`
fn is_registry(text: &str) -> bool {
    text.strip_prefix('@')
        .is_some_and(|rest| rest.contains('/') && rest.split('/').all(is_segment))
}

/// `./…/ACTION.md`, within the bundle.
fn is_path(text: &str) -> bool {
    let inner = text
        .strip_prefix("./")
        .and_then(|rest| rest.strip_suffix("ACTION.md"));
    inner.is_some_and(|inner| {
        inner.is_empty()
            || inner
                .strip_suffix('/')
                .is_some_and(|inner| inner.split('/').all(is_segment))
    })
}

fn is_segment(segment: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    !segment.is_empty() && segment.chars().all(plain) && !segment.starts_with('.')
}
