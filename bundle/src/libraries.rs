//! Action libraries: the actions of other bundles, and what a bundle is called as one. The operator's trust decides
//! whose a library is; `documents::scope` looks a contract's reference up.

mod reading;
mod shelf;

use std::sync::Arc;

use toolward_contract::action::{Action, Reference, RegistryReference};

pub use reading::Reading;
pub use shelf::Shelf;

/// Actions of other bundles (AIP-39, "Action libraries"): asked for what the contract's own bundle does not
/// have, and never for paths, which stay in the bundle.
pub trait Libraries {
    /// The action behind an id or a registry reference. [`Shelf`] answers by the operator's trust alone.
    fn action(&self, reference: &Reference) -> Option<Shelved<'_>>;

    /// The references that lead somewhere, for a hint at the one that was meant.
    fn names(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether the libraries are those of a host. If not, a reference to one can't be judged.
    fn are_at_hand(&self) -> bool {
        true
    }
}

/// An action of another bundle.
#[derive(Debug, Clone, Copy)]
pub struct Shelved<'a> {
    /// What it demands.
    pub action: &'a Arc<Action>,
    /// The publisher of its library, by the trust store's name.
    pub publisher: &'a str,
}

/// No other bundles.
#[derive(Debug, Clone, Copy)]
pub struct NoLibraries;

impl Libraries for NoLibraries {
    fn action(&self, _reference: &Reference) -> Option<Shelved<'_>> {
        None
    }
}

/// The libraries of whoever will run the bundle: while it is made they are not known.
#[derive(Debug, Clone, Copy)]
struct LibrariesOfHosts;

impl Libraries for LibrariesOfHosts {
    fn action(&self, _reference: &Reference) -> Option<Shelved<'_>> {
        None
    }

    fn are_at_hand(&self) -> bool {
        false
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
    pub(crate) fn is_of(self, reference: &RegistryReference) -> bool {
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
    /// For reading a bundle without running it, as its author or inspector does: its own actions are known, and
    /// references to libraries are left unresolved.
    #[must_use]
    pub fn of_author(publisher: &'a str, id: &'a str) -> Self {
        Self {
            own: Some(Library { publisher, id }),
            others: &LibrariesOfHosts,
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
