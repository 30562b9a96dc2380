//! Action libraries: the actions of other bundles, and the address of a bundle as a library. The
//! operator's trust store determines a library's publisher; `documents::scope` looks up a
//! contract's reference.

mod shelf;

use std::sync::Arc;

use toolward_contract::action::{Action, Reference, RegistryReference};

pub(crate) use shelf::only;
pub use shelf::{Reading, Shelf};

/// The actions of other bundles (AIP-39, "Action libraries"), for references that the contract's
/// own bundle does not resolve. A path is never looked up here, since it names a file of the
/// contract's own bundle.
pub trait Libraries {
    /// The action that an id or a registry reference means. [`Shelf`] decides this by the
    /// operator's trust store alone.
    fn action(&self, reference: &Reference) -> Option<LibraryAction<'_>>;

    /// Valid references, from which a hint picks the intended one.
    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// An action of another bundle.
#[derive(Debug, Clone, Copy)]
pub struct LibraryAction<'a> {
    /// The action.
    pub action: &'a Arc<Action>,
    /// The publisher of its library, by the trust store's name.
    pub publisher: &'a str,
}

/// An implementation of [`Libraries`] without any bundle.
#[derive(Debug, Clone, Copy)]
pub struct NoLibraries;

impl Libraries for NoLibraries {
    fn action(&self, _reference: &Reference) -> Option<LibraryAction<'_>> {
        None
    }
}

/// A bundle as a library: the address of the actions in it.
#[derive(Debug, Clone, Copy)]
pub struct Library<'a> {
    /// Its publisher. For a signed bundle this is the name in the trust store, never the bundle's
    /// claim.
    pub publisher: &'a str,
    /// Its id.
    pub id: &'a str,
}

impl Library<'_> {
    /// Whether a reference refers to this bundle: `@acme/crm/actions/NAME` refers to acme's bundle
    /// `crm.actions` or `acme.crm.actions`.
    pub(crate) fn is_of(self, reference: &RegistryReference) -> bool {
        let id = reference.library.replace('/', ".");
        let below = self.id.strip_prefix(self.publisher);
        reference.owner == self.publisher
            && (self.id == id
                || below.and_then(|below| below.strip_prefix('.')) == Some(id.as_str()))
    }
}

/// The bundles to which the documents of one bundle may refer.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// The bundle itself, if its publisher is known.
    pub own: Option<Library<'a>>,
    /// All other bundles. `None` if they are unknown, as in packing; references to them are then
    /// not checked.
    pub others: Option<&'a dyn Libraries>,
}

impl Surroundings<'static> {
    /// No surroundings: registry references, and references to other bundles, are not resolved.
    pub const NONE: Self = Self {
        own: None,
        others: Some(&NoLibraries),
    };
}

impl<'a> Surroundings<'a> {
    /// The surroundings for packing or inspecting a bundle without running it: the bundle's own
    /// actions are known, and references to libraries stay unresolved.
    pub fn of_author(publisher: &'a str, id: &'a str) -> Self {
        Self {
            own: Some(Library { publisher, id }),
            others: None,
        }
    }
}
