//! Reads `implements` in a contract and resolves it to an action (AIP-39, "Composition pattern").
//! The [`Scope`] finds the action; `merge` merges it into the contract.

use std::fmt;
use std::sync::Arc;

use super::{Action, Implementation, ReferenceForm, read};
use crate::Scope;
use crate::codes;
use crate::path::{self, folder, is_relative, resolve_beneath};
use crate::source::{Content, FieldReader, MappingReader, nearest};

/// A reference to an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// A bare id, such as `storage:commit`.
    Id(String),
    /// `@owner/library/action`.
    Registry(RegistryReference),
    /// An ACTION.md in the contract's bundle: its path from the bundle's root, without `.` and
    /// `..`.
    Path(String),
}

/// `@owner/library/action`: an action of a published library (AIP-39, "Action libraries").
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RegistryReference {
    /// The publisher of the library.
    pub owner: String,
    /// The library: one part, or several with `/` between them.
    pub library: String,
    /// The action, by the name of its folder.
    pub action: String,
}

impl RegistryReference {
    /// Reads `@owner/library/action`; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let (owner, rest) = text.strip_prefix('@')?.split_once('/')?;
        let (library, action) = rest.rsplit_once('/')?;
        let mut parts = library.split('/').chain([owner, action]);
        parts.all(is_segment).then(|| Self {
            owner: owner.to_owned(),
            library: library.to_owned(),
            action: action.to_owned(),
        })
    }
}

impl fmt::Display for RegistryReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}/{}/{}", self.owner, self.library, self.action)
    }
}

fn is_segment(segment: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    !segment.is_empty() && segment.chars().all(plain) && !segment.starts_with('.')
}

/// The action that a contract implements; `None` if the contract names no action. `Some(None)` if
/// the reference is invalid or leads to no valid action; the findings of the contract or of the
/// action state the reason.
pub(crate) fn resolve(
    fields: &mut MappingReader<'_>,
    scope: &dyn Scope,
) -> Option<Option<Implementation>> {
    let field = fields.take("implements").filter(|field| !field.is_null())?;
    Some(match &field.content {
        Content::Text(text) if is_relative(text) => at_path(&field, scope),
        Content::Text(_) => by_name(&field, scope),
        Content::Mapping(_) => composed(&field, scope),
        _ => {
            let message = format!(
                "expected `implements` to be a reference or an inline action, found {}",
                field.kind()
            );
            field.refuse(&codes::WRONG_TYPE, message)
        }
    })
}

/// `{ref: …}`, `{file: …}` or `{inline: …}`.
fn composed(field: &FieldReader<'_>, scope: &dyn Scope) -> Option<Implementation> {
    let mut inner = field.fields()?;
    let forms = [inner.take("ref"), inner.take("file"), inner.take("inline")];
    inner.unknown();
    match forms {
        [Some(name), None, None] => by_name(&name, scope),
        [None, Some(path), None] => at_path(&path, scope),
        [None, None, Some(action)] => {
            let action = read::inline(&action)?;
            Some(Implementation {
                reference: action.id.clone(),
                form: ReferenceForm::Inline,
                library: None,
                action: Arc::new(action),
            })
        }
        forms => {
            let message = format!(
                "expected `{}` to have one of `ref`, `file` and `inline`, found {}",
                field.name,
                forms.iter().flatten().count()
            );
            field.refuse(&codes::ACTION_REFERENCE_INVALID, message)
        }
    }
}

/// Resolves an id or a registry reference.
fn by_name(field: &FieldReader<'_>, scope: &dyn Scope) -> Option<Implementation> {
    let text = field.text()?;
    let (reference, form) = if let Some(registry) = RegistryReference::parse(text) {
        (Reference::Registry(registry), ReferenceForm::Registry)
    } else if Action::is_id(text) {
        (Reference::Id(text.to_owned()), ReferenceForm::Id)
    } else {
        let message = format!(
            "expected an action id, a registry reference or a path to an ACTION.md, found {text:?}"
        );
        return field.refuse(&codes::ACTION_REFERENCE_INVALID, message);
    };
    if let Some(action) = scope.action(&reference) {
        return Some(Implementation {
            reference: text.to_owned(),
            form,
            library: scope.library(&reference),
            action,
        });
    }
    if scope.is_action_unread(&reference) {
        field.report.follows();
    } else if scope.is_action_elsewhere(&reference) {
        let message = format!(
            "{text:?} is no action of this bundle: a host takes it from an action library that it has"
        );
        let otherwise = "hosts without that library refuse this bundle";
        let hint = hint([text], scope, otherwise);
        field.note_with_hint(&codes::ACTION_ELSEWHERE, message, hint);
    } else {
        let message =
            format!("expected an action of the bundle or of a library at hand, found {text:?}");
        let otherwise = "install the library, or put its ACTION.md into the bundle";
        let hint = hint([text], scope, otherwise);
        field.note_with_hint(&codes::ACTION_UNRESOLVED, message, hint);
    }
    None
}

/// Resolves a path to an ACTION.md or its folder. The path is relative to the bundle's root or, if
/// it leads to no action there, to the folder of the contract.
fn at_path(field: &FieldReader<'_>, scope: &dyn Scope) -> Option<Implementation> {
    let text = field.text()?;
    let bases = ["", folder(field.report.file())];
    let paths = bases.iter().filter_map(|base| resolve_beneath(base, text));
    let mut paths: Vec<String> = paths
        .map(|path| path::document(path, "ACTION.md"))
        .collect();
    paths.dedup();
    if paths.is_empty() {
        let message =
            format!("expected the path of an ACTION.md beneath the bundle, found {text:?}");
        return field.refuse(&codes::ACTION_REFERENCE_INVALID, message);
    }
    for path in &paths {
        let reference = Reference::Path(path.clone());
        if let Some(action) = scope.action(&reference) {
            return Some(Implementation {
                reference: text.to_owned(),
                form: ReferenceForm::Path,
                library: None,
                action,
            });
        }
        // The contract means this unreadable action, so no action at another path must replace it.
        if scope.is_action_unread(&reference) {
            field.report.follows();
            return None;
        }
    }
    let message = format!("expected an action at {}, found none", paths.join(" or "));
    let meant: Vec<String> = paths.iter().map(|path| format!("./{path}")).collect();
    let meant = meant.iter().map(String::as_str);
    let hint = hint(meant, scope, "put its ACTION.md there, or correct the path");
    field.note_with_hint(&codes::ACTION_UNKNOWN, message, hint);
    None
}

/// A hint that names a known action similar to one of `meant`; if there is none, `otherwise`.
fn hint<'t>(
    meant: impl IntoIterator<Item = &'t str>,
    scope: &dyn Scope,
    otherwise: &str,
) -> String {
    let known = scope.actions();
    let mut meant = meant.into_iter();
    match meant.find_map(|name| nearest(name, known.iter().map(String::as_str))) {
        Some(near) => format!("did you mean `{near}`?"),
        None => otherwise.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_reference_has_an_owner_a_library_and_an_action() {
        let read = RegistryReference::parse("@agentik/actions/standard/storage-commit").unwrap();
        assert_eq!(
            (&*read.owner, &*read.library, &*read.action),
            ("agentik", "actions/standard", "storage-commit")
        );
        assert_eq!(read.to_string(), "@agentik/actions/standard/storage-commit");
        for text in [
            "@a/b",
            "@a",
            "a/b/c",
            "@/b/c",
            "@a//c",
            "@a/b/",
            "@a/../c",
            "@a/.b/c",
            "@a/b/c@2.0.0",
            "@a/b/c d",
        ] {
            assert_eq!(RegistryReference::parse(text), None, "{text}");
        }
    }
}
