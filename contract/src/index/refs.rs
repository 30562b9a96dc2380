//! `schema_refs`: names that an entry gives to schemas of its bundle.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::Scope;
use crate::action::{Action, Reference};
use crate::codes;
use crate::diagnostic::Report;
use crate::schema::Schema;
use crate::source::Fields;

/// Names of one entry: each is looked up and compiled.
const MAX_REFS: usize = 16;

/// Reads the names. What one of version 1 leads to has to be a schema of the bundle; version 2 repeats a contract's
/// metadata.
pub(super) fn read(
    fields: &mut Fields<'_>,
    version: u32,
    scope: &dyn Scope,
    report: &mut Report<'_>,
) -> Map<String, Value> {
    let field = fields.take("schema_refs");
    let members = field.and_then(|field| report.read(field.members()));
    let members = members.into_iter().flatten();
    let members = members.filter(|(_, member)| !member.is_null());
    let mut refs = Map::new();
    for (index, (key, member)) in members.enumerate() {
        if version == 1 && index == MAX_REFS {
            let message = format!("expected at most {MAX_REFS} names in `schema_refs`");
            report.add(&codes::SCHEMA_REFS_UNRESOLVED, member.key_at, message);
            break;
        }
        let Some(id) = report.read(member.text()) else {
            continue;
        };
        if version == 1
            && let Err(problem) =
                Schema::compile(&json!({ "$ref": format!("schema:{}", bare(id)) }), scope)
        {
            let message = format!(
                "expected `{}` to lead to a schema of the bundle, found {id:?}: {}",
                member.name, problem.message
            );
            report.add(&codes::SCHEMA_REFS_UNRESOLVED, member.at, message);
        }
        refs.insert(key.to_owned(), id.into());
    }
    refs
}

/// An id with or without `schema:`.
fn bare(id: &str) -> &str {
    id.strip_prefix("schema:").unwrap_or(id)
}

/// A scope in which the names of an entry stand for schemas, too. A schema of the bundle goes before a name.
pub(super) struct Named<'a> {
    pub(super) scope: &'a dyn Scope,
    pub(super) refs: &'a Map<String, Value>,
}

impl Named<'_> {
    fn target(&self, name: &str) -> Option<&str> {
        self.refs.get(name)?.as_str().map(bare)
    }
}

impl Scope for Named<'_> {
    fn schema(&self, id: &str) -> Option<Value> {
        let own = self.scope.schema(id);
        own.or_else(|| self.scope.schema(self.target(id)?))
    }

    fn action(&self, reference: &Reference) -> Option<Arc<Action>> {
        self.scope.action(reference)
    }

    fn is_schema_unread(&self, id: &str) -> bool {
        let target = self.target(id);
        self.scope.is_schema_unread(id)
            || target.is_some_and(|target| self.scope.is_schema_unread(target))
    }

    fn is_action_unread(&self, reference: &Reference) -> bool {
        self.scope.is_action_unread(reference)
    }

    fn library(&self, reference: &Reference) -> Option<String> {
        self.scope.library(reference)
    }

    fn is_action_elsewhere(&self, reference: &Reference) -> bool {
        self.scope.is_action_elsewhere(reference)
    }

    fn schemas(&self) -> Vec<String> {
        self.scope.schemas()
    }

    fn actions(&self) -> Vec<String> {
        self.scope.actions()
    }

    fn compiled(&self, schema: &Value) -> Option<Schema> {
        // With names, the same text may mean something else.
        let compiled = || self.scope.compiled(schema);
        self.refs.is_empty().then(compiled).flatten()
    }
}
