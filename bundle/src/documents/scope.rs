//! The targets of references in contracts and `tools.json`: schemas of the same bundle, and
//! actions.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use toolward_contract::action::{Action, Reference, RegistryReference};
use toolward_contract::diagnostic::Diagnostic;
use toolward_contract::schema::Schema;
use toolward_contract::tool::Tool;
use toolward_contract::{SchemaScope, Scope, json};
use toolward_signing::manifest::FileRole;
use toolward_support::fields::without_mark_bytes;

use super::{Located, Unread, file_name, folder};
use crate::libraries::{Libraries, Surroundings, only};

/// How many names are candidates for the hint about an unresolved reference.
const MAX_HINTED: usize = 256;

/// How many unresolved references get a hint. A bundle may have hundreds of thousands of unresolved
/// references.
const MAX_HINTS: usize = 64;

/// The targets of a contract's references: schemas of the same bundle, and actions.
pub(crate) struct BundleScope<'a> {
    files: &'a BTreeMap<String, Arc<[u8]>>,
    actions: &'a [Located<Action>],
    surroundings: Surroundings<'a>,
    /// The contracts; empty while the contracts themselves are read.
    tools: &'a [Located<Tool>],
    /// The documents that could not be read.
    unread: &'a [Unread],
    /// The findings about requested schemas that are not JSON, by the schema's id.
    unread_schemas: RefCell<BTreeMap<String, Diagnostic>>,
    hints_left: Cell<usize>,
}

impl<'a> BundleScope<'a> {
    pub(super) fn new(
        files: &'a BTreeMap<String, Arc<[u8]>>,
        actions: &'a [Located<Action>],
        tools: &'a [Located<Tool>],
        unread: &'a [Unread],
        surroundings: Surroundings<'a>,
    ) -> Self {
        Self {
            files,
            actions,
            surroundings,
            tools,
            unread,
            unread_schemas: RefCell::default(),
            hints_left: Cell::new(MAX_HINTS),
        }
    }

    /// Counts one more unresolved reference, and returns how many names are candidates for its
    /// hint.
    fn offered(&self) -> usize {
        let left = self.hints_left.get().checked_sub(1);
        self.hints_left.set(left.unwrap_or(0));
        left.map_or(0, |_| MAX_HINTED)
    }

    /// Finds the action that a reference means, first in the contract's own bundle and then in
    /// libraries (other bundles). Also returns the publisher of the library if the action is in
    /// one.
    fn look_up(&self, reference: &Reference) -> Option<(&Arc<Action>, Option<&str>)> {
        let found = match reference {
            // A path always stays in the contract's bundle.
            Reference::Path(path) => Some(self.actions.iter().find(|action| action.path == *path)?),
            Reference::Id(id) => self.actions.iter().find(|action| action.value.id == *id),
            Reference::Registry(registry) if self.is_own(registry) => {
                let actions = self.actions.iter();
                only(actions.filter(|one| file_name(folder(&one.path)) == registry.action))
            }
            Reference::Registry(_) => None,
        };
        match found {
            Some(found) => Some((&found.value, None)),
            None => {
                let found = self.surroundings.others?.action(reference)?;
                Some((found.action, Some(found.publisher)))
            }
        }
    }

    /// Whether a registry reference refers to this bundle.
    fn is_own(&self, registry: &RegistryReference) -> bool {
        self.surroundings.own.is_some_and(|own| own.is_of(registry))
    }

    /// The findings about requested schemas that are not JSON.
    pub(crate) fn unread_schemas(&self) -> Vec<Diagnostic> {
        self.unread_schemas.take().into_values().collect()
    }
}

impl SchemaScope for BundleScope<'_> {
    fn schema(&self, id: &str) -> Option<Value> {
        let path = format!("schemas/{id}.json");
        let bytes = without_mark_bytes(self.files.get(&path)?);
        match json::parse(bytes, &json::Limits::default()) {
            Ok(value) => Some(value),
            Err(error) => {
                let mut unread = self.unread_schemas.borrow_mut();
                unread.insert(id.to_owned(), error.diagnostic(&path, bytes));
                None
            }
        }
    }
}

impl Scope for BundleScope<'_> {
    fn is_schema_unread(&self, id: &str) -> bool {
        self.unread_schemas.borrow().contains_key(id)
    }

    fn action(&self, reference: &Reference) -> Option<Arc<Action>> {
        self.look_up(reference)
            .map(|(action, _)| Arc::clone(action))
    }

    fn library(&self, reference: &Reference) -> Option<String> {
        let (_, publisher) = self.look_up(reference)?;
        publisher.map(str::to_owned)
    }

    fn is_action_elsewhere(&self, reference: &Reference) -> bool {
        let of_this_bundle = match reference {
            Reference::Path(_) => true,
            Reference::Id(_) => false,
            Reference::Registry(registry) => self.is_own(registry),
        };
        !of_this_bundle && self.surroundings.others.is_none()
    }

    fn is_action_unread(&self, reference: &Reference) -> bool {
        let unread = self.unread.iter();
        let mut actions = unread.filter(|unread| unread.role == FileRole::Action);
        actions.any(|unread| match reference {
            Reference::Path(path) => unread.path == *path,
            Reference::Id(id) => unread.may_be(id),
            Reference::Registry(registry) => {
                self.is_own(registry) && file_name(folder(&unread.path)) == registry.action
            }
        })
    }

    fn schemas(&self) -> Vec<String> {
        let names = self.files.keys();
        let ids = names.filter_map(|name| name.strip_prefix("schemas/")?.strip_suffix(".json"));
        ids.take(self.offered()).map(str::to_owned).collect()
    }

    fn actions(&self) -> Vec<String> {
        let offered = self.offered();
        if offered == 0 {
            return Vec::new();
        }
        let own = self.actions.iter();
        let own = own.flat_map(|action| [action.value.id.clone(), format!("./{}", action.path)]);
        let others = self.surroundings.others.map(Libraries::names);
        let others = others.into_iter().flatten();
        own.chain(others).take(offered).collect()
    }

    fn compiled(&self, schema: &Value) -> Option<Schema> {
        let tools = self.tools.iter();
        let mut schemas = tools.flat_map(|tool| [&tool.value.inputs, &tool.value.outputs]);
        schemas.find(|one| one.value() == schema).cloned()
    }
}
