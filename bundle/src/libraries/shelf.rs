//! Resolves references to actions in the known libraries, and reads several bundles that may take
//! actions from each other.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolward_contract::action::{Action, Reference};
use toolward_signing::manifest::FileRole;
use toolward_signing::trust::TrustStore;
use toolward_signing::verify::{Bundle, Verified};

use super::{Libraries, Library, LibraryAction};
use crate::content::Content;
use crate::documents::{file_name, folder, role_of};
use crate::error::ContentError;

/// How many actions are candidates for the hint about an unresolved reference.
const MAX_NAMES: usize = 256;

/// The actions of verified bundles, with the trust store that verified them.
///
/// * `@owner/library/action` refers to a bundle of the publisher that the trust store calls
///   `owner`.
/// * An id means an action of the publisher with the longest prefix that covers it. Actions of
///   other publishers with that id do not count. If two publishers hold the longest prefix, the id
///   means no action.
/// * A reference that matches two actions means no action.
#[derive(Debug, Default)]
pub struct Shelf {
    entries: Vec<ActionEntry>,
    /// By id, the indices of the entries with `decides`.
    by_id: BTreeMap<String, Vec<usize>>,
    by_folder: BTreeMap<String, Vec<usize>>,
}

/// An action and its library.
#[derive(Debug)]
struct ActionEntry {
    action: Arc<Action>,
    publisher: String,
    bundle: String,
    /// The name of its folder.
    folder: String,
    /// Whether its publisher alone holds the longest prefix that covers its id.
    decides: bool,
}

/// The readable actions of a bundle that its publisher may publish. The other actions are left out
/// here, since they are errors when the bundle is read.
fn actions(bundle: &Bundle) -> Vec<ActionEntry> {
    let documents = bundle.files.iter();
    let documents = documents.filter(|(path, _)| role_of(path.as_str()) == FileRole::Action);
    let entries = documents.filter_map(|(path, bytes)| {
        let path = path.as_str();
        let text = std::str::from_utf8(bytes).ok()?;
        let action = Action::parse(path, text).value?;
        bundle.may_publish_action(&action.id).then(|| ActionEntry {
            action: Arc::new(action),
            publisher: bundle.publisher.name().to_owned(),
            bundle: bundle.manifest.id.clone(),
            folder: file_name(folder(path)).to_owned(),
            decides: false,
        })
    });
    entries.collect()
}

impl Shelf {
    fn new(volumes: impl IntoIterator<Item = Vec<ActionEntry>>, trust: &TrustStore) -> Self {
        let mut shelf = Self::default();
        for mut entry in volumes.into_iter().flatten() {
            let holder = trust.action_holder(&entry.action.id);
            entry.decides = holder.is_some_and(|holder| holder.name() == entry.publisher);
            let place = shelf.entries.len();
            if entry.decides {
                let of_id = shelf.by_id.entry(entry.action.id.clone());
                of_id.or_default().push(place);
            }
            let of_folder = shelf.by_folder.entry(entry.folder.clone());
            of_folder.or_default().push(place);
            shelf.entries.push(entry);
        }
        shelf
    }

    /// The library actions of these bundles.
    pub fn of<'b>(bundles: impl IntoIterator<Item = &'b Bundle>, trust: &TrustStore) -> Self {
        Self::new(bundles.into_iter().map(actions), trust)
    }

    fn at<'s>(&'s self, places: Option<&'s Vec<usize>>) -> impl Iterator<Item = &'s ActionEntry> {
        let places = places.into_iter().flatten();
        places.filter_map(|place| self.entries.get(*place))
    }
}

impl ActionEntry {
    fn library(&self) -> Library<'_> {
        Library {
            publisher: &self.publisher,
            id: &self.bundle,
        }
    }
}

impl Libraries for Shelf {
    fn action(&self, reference: &Reference) -> Option<LibraryAction<'_>> {
        let found = match reference {
            Reference::Path(_) => None,
            Reference::Id(id) => only(self.at(self.by_id.get(id))),
            Reference::Registry(registry) => {
                let of_name = self.at(self.by_folder.get(&registry.action));
                only(of_name.filter(|entry| entry.library().is_of(registry)))
            }
        }?;
        Some(LibraryAction {
            action: &found.action,
            publisher: &found.publisher,
        })
    }

    fn names(&self) -> Vec<String> {
        let names = self.entries.iter().take(MAX_NAMES).flat_map(|entry| {
            let below = entry.bundle.strip_prefix(&entry.publisher);
            let library = below.and_then(|below| below.strip_prefix('.'));
            let library = library.unwrap_or(&entry.bundle);
            let address = format!("@{}/{library}/{}", entry.publisher, entry.folder);
            [
                entry.decides.then(|| entry.action.id.clone()),
                Some(address),
            ]
        });
        names.flatten().collect()
    }
}

/// The only item; `None` if there are none or several.
pub(crate) fn only<T>(mut items: impl Iterator<Item = T>) -> Option<T> {
    let first = items.next()?;
    items.next().is_none().then_some(first)
}

/// A verified bundle that was read without libraries. [`Reading::finish`] reads it again if it
/// takes actions from libraries.
#[derive(Debug)]
pub struct Reading {
    content: Result<Content, ContentError>,
    /// The bundle, if it must be read again with the libraries.
    open: Option<Verified<Bundle>>,
    volume: Vec<ActionEntry>,
}

impl Reading {
    /// Reads a bundle without libraries.
    pub fn new(bundle: Verified<Bundle>) -> Self {
        let volume = actions(&bundle);
        let content = Content::from_verified(bundle.clone());
        let open = content.as_ref().err().filter(|error| error.lacks_action());
        Self {
            open: open.map(|_| bundle),
            content,
            volume,
        }
    }

    /// Whether the bundle must be read again, since it takes actions from libraries.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Finishes bundles that may take actions from each other. The results have the order of the
    /// bundles. Actions don't depend on actions, so bundles may refer to each other in a circle.
    pub fn finish(readings: Vec<Self>, trust: &TrustStore) -> Vec<Result<Content, ContentError>> {
        let (volumes, read): (Vec<_>, Vec<_>) = readings
            .into_iter()
            .map(|reading| (reading.volume, (reading.content, reading.open)))
            .unzip();
        let shelf = Shelf::new(volumes, trust);
        let read = read.into_iter().map(|(content, open)| match open {
            Some(bundle) => Content::from_verified_with(bundle, &shelf),
            None => content,
        });
        read.collect()
    }
}
