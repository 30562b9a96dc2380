//! Where the action that a contract implements is found: in its own bundle, else in the libraries of other
//! bundles. Which bundles those are, and whose, is decided by who has them.

use toolward_contract::action::{Action, Reference, RegistryReference};

use crate::documents::{Located, Unread, file_name, folder};

/// Actions of other bundles (AIP-39, "Action libraries"): asked for what the contract's own bundle does not
/// have, and never for paths, which stay in the bundle.
pub trait Libraries {
    /// The action behind an id or a registry reference.
    ///
    /// An implementation answers by the operator's trust alone: `@owner/…` is a library of the publisher
    /// whom trust calls `owner`, an id is the business of the one publisher whose prefix decides for it.
    fn action(&self, reference: &Reference) -> Option<Action>;
}

/// No other bundles.
#[derive(Debug, Clone, Copy)]
pub struct NoLibraries;

impl Libraries for NoLibraries {
    fn action(&self, _reference: &Reference) -> Option<Action> {
        None
    }
}

/// A bundle as a library: the address of the actions in it.
#[derive(Debug, Clone, Copy)]
pub struct Library<'a> {
    /// Its publisher: of a signed bundle the name in the trust store, never the bundle's claim.
    pub publisher: &'a str,
    /// Its id.
    pub id: &'a str,
}

impl Library<'_> {
    /// Whether a reference is into this bundle. `@acme/crm/actions/NAME` is in acme's bundle `crm.actions` or
    /// `acme.crm.actions`.
    fn is_of(self, reference: &RegistryReference) -> bool {
        let id = reference.library.replace('/', ".");
        let below = self.id.strip_prefix(self.publisher);
        reference.owner == self.publisher
            && (self.id == id
                || below.and_then(|below| below.strip_prefix('.')) == Some(id.as_str()))
    }
}

/// What is known around the documents of one bundle.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// The bundle itself, where it is known whose it is.
    pub own: Option<Library<'a>>,
    /// All others.
    pub others: &'a dyn Libraries,
}

impl Surroundings<'static> {
    /// Nothing: registry references lead nowhere.
    pub const NONE: Self = Self {
        own: None,
        others: &NoLibraries,
    };
}

impl<'a> Surroundings<'a> {
    /// Those of a bundle that stands alone.
    #[must_use]
    pub fn alone(publisher: &'a str, id: &'a str) -> Self {
        Self {
            own: Some(Library { publisher, id }),
            ..Surroundings::NONE
        }
    }
}

impl std::fmt::Debug for Surroundings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surroundings")
            .field("own", &self.own)
            .finish_non_exhaustive()
    }
}

/// The action that a contract means, among those of its bundle first.
pub(crate) fn look_up(
    reference: &Reference,
    actions: &[Located<Action>],
    surroundings: Surroundings<'_>,
) -> Option<Action> {
    let found = match reference {
        // No other bundle answers for a path.
        Reference::Path(path) => Some(actions.iter().find(|action| action.path == *path)?),
        Reference::Id(id) => actions.iter().find(|action| action.value.id == *id),
        Reference::Registry(registry) => surroundings
            .own
            .filter(|own| own.is_of(registry))
            .and_then(|_| in_folder(&registry.action, actions)),
    };
    match found {
        Some(found) => Some(Action::clone(&found.value)),
        None => surroundings.others.action(reference),
    }
}

/// Whether an ACTION.md of the bundle that could not be read may be the one that a contract means.
pub(crate) fn may_be(
    reference: &Reference,
    unread: &Unread,
    surroundings: Surroundings<'_>,
) -> bool {
    match reference {
        Reference::Path(path) => unread.path == *path,
        Reference::Id(id) => unread.may_be(id),
        Reference::Registry(registry) => {
            surroundings.own.is_some_and(|own| own.is_of(registry))
                && file_name(folder(&unread.path)) == registry.action
        }
    }
}

/// The action whose folder has a name, however deep; none if two have it, since neither is the one meant.
fn in_folder<'a>(name: &str, actions: &'a [Located<Action>]) -> Option<&'a Located<Action>> {
    let mut found = actions
        .iter()
        .filter(|action| file_name(folder(&action.path)) == name);
    let only = found.next()?;
    found.next().is_none().then_some(only)
}
