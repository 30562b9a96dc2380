//! The publishers that an operator trusts: their keys, how many must sign, and which ids they may
//! publish. A publisher can't extend its ids. This module opens no file.

mod config;
mod publisher;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::document::{SignedDocument, Verified};
use crate::error::{ErrorKind, Refusal};
use crate::freshness::shorter;
use crate::id::{self, Prefix};
use crate::key::{KeyId, PublicKey};
use crate::publisher::PublisherDocument;
use crate::text::quoted;

use publisher::insert;

pub use crate::key::EXAMPLE_KEY_IDS;
pub use config::{TABLES, TrustSettings, max_age};
pub use publisher::Publisher;

/// The publishers that an operator trusts. No key belongs to two configured publishers. Cheap to
/// clone.
#[derive(Clone, Debug, Default)]
pub struct TrustStore {
    publishers: Arc<BTreeMap<String, Arc<Publisher>>>,
    ad_hoc: Vec<Arc<Publisher>>,
}

impl TrustStore {
    /// A store that trusts no publisher.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// Reads the `[[publisher]]` tables of a `toolward.toml`. Other tables are ignored.
    ///
    /// ```toml
    /// [[publisher]]
    /// name = "acme"
    /// keys = ["""
    /// -----BEGIN PUBLIC KEY-----
    /// …
    /// -----END PUBLIC KEY-----
    /// """]
    /// threshold = 1               # optional, 1 if left out
    /// prefixes = ["acme", "acme-tools"]
    /// actions = ["storage"]       # optional: further prefixes, for ids of actions only
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::TrustInvalid`], [`ErrorKind::TrustExampleKey`], or the error of an invalid key
    /// or prefix.
    pub fn from_toml(text: &str) -> Result<Self, Refusal> {
        Self::from_toml_with(text, &mut |_| {
            Err(std::io::Error::other("key files can't be read here"))
        })
    }

    /// As [`TrustStore::from_toml`]; `read_file` reads the files that `key_files` names. The caller
    /// decides which paths it allows.
    ///
    /// # Errors
    /// The errors of [`TrustStore::from_toml`], and [`ErrorKind::Io`] if `read_file` fails.
    pub fn from_toml_with(
        text: &str,
        read_file: &mut dyn FnMut(&str) -> std::io::Result<String>,
    ) -> Result<Self, Refusal> {
        let publishers = config::publishers(text, read_file)?;
        Ok(Self {
            publishers: Arc::new(publishers),
            ad_hoc: Vec::new(),
        })
    }

    /// Also trusts the publisher of a document for the ids below `prefixes`, which the operator
    /// chose. The document's time is checked with each bundle, so that an expired document affects
    /// its publisher only.
    ///
    /// # Errors
    /// [`ErrorKind::TrustInvalid`] if the store has a publisher of this name or one of these keys
    /// already, or if there are no prefixes; [`ErrorKind::TrustExampleKey`].
    pub fn add_document(
        &mut self,
        document: &Verified<SignedDocument<PublisherDocument>>,
        prefixes: Vec<Prefix>,
    ) -> Result<(), Refusal> {
        let mut publisher = Publisher::checked(
            document.name.clone(),
            document.keys.clone(),
            document.threshold,
            prefixes,
        )?;
        publisher.expires = document.expires;
        let revoked_keys = document.revoked_keys.iter();
        publisher.revoked = revoked_keys.map(|revoked| revoked.key_id).collect();
        insert(Arc::make_mut(&mut self.publishers), publisher)
    }

    /// Also trusts a bare key, as the publisher `name`, for the ids below `prefixes` and never for
    /// all ids. Its bundles may not be older than `max_age`, since its publisher can revoke neither
    /// the key nor a bundle.
    ///
    /// # Errors
    /// [`ErrorKind::TrustInvalid`] if the store has a publisher of this name or this key already,
    /// if there are no prefixes or one is `*`; [`ErrorKind::TrustExampleKey`];
    /// [`ErrorKind::IdInvalid`] for the name.
    pub fn add_bare_key(
        &mut self,
        name: &str,
        key: PublicKey,
        prefixes: Vec<Prefix>,
        max_age: Duration,
    ) -> Result<(), Refusal> {
        id::check(name).map_err(|refusal| refusal.at("publisher name"))?;
        if prefixes.contains(&Prefix::all()) {
            return Err(Refusal::new(ErrorKind::TrustInvalid)
                .at(format!("publisher {name}"))
                .expected("prefixes of its own: a bare key is not trusted for all ids")
                .found("*")
                .hinted("name the beginning of its ids, such as `acme`"));
        }
        let mut publisher = Publisher::checked(name.to_owned(), vec![key], 1, prefixes)?;
        publisher.is_bare = true;
        publisher.max_age = Some(max_age);
        insert(Arc::make_mut(&mut self.publishers), publisher)
    }

    /// Removes a configured publisher. An unknown name changes nothing.
    pub fn remove(&mut self, publisher: &str) {
        Arc::make_mut(&mut self.publishers).remove(publisher);
    }

    /// The configured publishers that have a prefix, for all ids or for actions only, that overlaps
    /// with `prefix`.
    pub fn overlapping(&self, prefix: &Prefix) -> impl Iterator<Item = &Arc<Publisher>> {
        self.publishers.values().filter(|publisher| {
            let mut own = publisher.prefixes.iter().chain(&publisher.actions);
            own.any(|own| own.overlaps(prefix))
        })
    }

    /// Limits the age of a configured publisher's bundles. The shorter of this and the operator's
    /// maximum for all publishers applies. An unknown name changes nothing.
    pub fn limit_age(&mut self, publisher: &str, max_age: Duration) {
        if let Some(publisher) = Arc::make_mut(&mut self.publishers).get_mut(publisher) {
            let publisher = Arc::make_mut(publisher);
            publisher.max_age = shorter(publisher.max_age, Some(max_age));
        }
    }

    /// Sets prefixes below which a configured publisher may publish ids of actions, in addition to
    /// the prefixes of all ids. They replace the prefixes for actions that were set earlier. An
    /// unknown name changes nothing.
    pub fn give_actions(&mut self, publisher: &str, actions: Vec<Prefix>) {
        if let Some(publisher) = Arc::make_mut(&mut self.publishers).get_mut(publisher) {
            Arc::make_mut(publisher).actions = actions;
        }
    }

    /// A store that trusts one key for every id, as `--trust-key` does. The publisher's name in the
    /// manifest does not matter; here the publisher is called `key:` followed by the key id. The
    /// example key is accepted, and [`TrustStore::warnings`] warns about it.
    #[must_use]
    pub fn for_key(key: PublicKey) -> Self {
        let mut store = Self::empty();
        store.add_key(key);
        store
    }

    /// Also trusts `key`, as [`TrustStore::for_key`] does. Adding a key again changes nothing.
    pub fn add_key(&mut self, key: PublicKey) {
        let mut ad_hoc = self.ad_hoc.iter();
        if !ad_hoc.any(|publisher| publisher.keys.contains(&key)) {
            let name = format!("key:{}", key.key_id());
            let mut publisher = Publisher::new(name, vec![key], 1, vec![Prefix::all()]);
            publisher.is_ad_hoc = true;
            self.ad_hoc.push(Arc::new(publisher));
        }
    }

    /// All publishers: the configured publishers by name, then the keys of `--trust-key`.
    pub fn publishers(&self) -> impl Iterator<Item = &Arc<Publisher>> + Clone {
        self.publishers.values().chain(&self.ad_hoc)
    }

    /// The publisher of this name.
    #[must_use]
    pub fn publisher(&self, name: &str) -> Option<&Arc<Publisher>> {
        self.publishers
            .get(name)
            .or_else(|| self.ad_hoc.iter().find(|publisher| publisher.name == name))
    }

    /// Whether the publisher of this name may publish `id`. Only the longest prefix that covers
    /// `id` counts, among the prefixes of all configured publishers: a publisher with a shorter
    /// prefix may not publish it. Two publishers may hold the same prefix. A key of `--trust-key`
    /// may publish every id.
    #[must_use]
    pub fn may_publish(&self, publisher: &str, id: &str) -> bool {
        self.publisher(publisher)
            .is_some_and(|publisher| self.covers(publisher, id))
    }

    /// The publisher with the longest prefix that covers an action's id; `None` if no prefix covers
    /// it, or if two publishers hold the longest. A key of `--trust-key` counts as such a publisher
    /// for every id. Other bundles can refer to a library's action by id alone only if the library
    /// comes from the returned publisher.
    #[must_use]
    pub fn action_holder(&self, id: &str) -> Option<&Arc<Publisher>> {
        let mut holders = self
            .publishers()
            .filter(|publisher| self.covers_action(publisher, id));
        holders.next().filter(|_| holders.next().is_none())
    }

    /// Warnings about this store for the user, one sentence each.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        self.ad_hoc
            .iter()
            .flat_map(|publisher| &publisher.keys)
            .filter(|key| key.is_example())
            .map(|_| EXAMPLE_WARNING.to_owned())
            .collect()
    }

    /// Whether a publisher may publish an id of anything but an action.
    pub(crate) fn covers(&self, publisher: &Publisher, id: &str) -> bool {
        self.decides(publisher, id, |_| &[])
    }

    /// Whether a publisher may publish an action of this id: prefixes of all ids and prefixes of
    /// actions count alike.
    pub(crate) fn covers_action(&self, publisher: &Publisher, id: &str) -> bool {
        self.decides(publisher, id, |publisher| &publisher.actions)
    }

    /// Whether this publisher holds the longest prefix that covers `id`. `further` prefixes count
    /// in addition to the prefixes of all ids.
    fn decides(
        &self,
        publisher: &Publisher,
        id: &str,
        further: fn(&Publisher) -> &[Prefix],
    ) -> bool {
        if publisher.is_ad_hoc {
            return true;
        }
        let closest = |publisher: &Publisher| {
            let prefixes = publisher.prefixes.iter().chain(further(publisher));
            prefixes
                .filter(|prefix| prefix.covers(id))
                .map(Prefix::closeness)
                .max()
        };
        let publishers = self.publishers.values();
        let decisive = publishers.filter_map(|publisher| closest(publisher)).max();
        decisive.is_some() && closest(publisher) == decisive
    }

    /// The refusal of an id that `publisher` may not publish. It names the publisher that may, if
    /// any.
    pub(crate) fn refuse_id(&self, publisher: &Publisher, id: &str) -> Refusal {
        let prefixes: Vec<_> = publisher.prefixes.iter().map(Prefix::as_str).collect();
        let mut publishers = self.publishers.values();
        let holder = publishers.find(|publisher| self.covers(publisher, id));
        let holder = holder.map_or_else(
            || "which no publisher holds".to_owned(),
            |holder| format!("which publisher {} holds by a longer prefix", holder.name()),
        );
        let change = match publisher.is_bare {
            true => "`toolward trust add KEY.pub.pem --prefix PREFIX`".to_owned(),
            false => format!(
                "`toolward trust update {} --prefix PREFIX`, or `prefixes` of its [[publisher]]",
                publisher.name()
            ),
        };
        Refusal::new(ErrorKind::PrefixNotGranted)
            .hinted(format!(
                "if this publisher may publish such ids, add their prefix: {change}"
            ))
            .at(format!("publisher {}", publisher.name()))
            .expected(format!("an id below {}", prefixes.join(", ")))
            .found(format!("{}, {holder}", quoted(id)))
    }

    pub(crate) fn configured(&self, name: &str) -> Option<&Arc<Publisher>> {
        self.publishers.get(name)
    }

    pub(crate) fn ad_hoc(&self) -> &[Arc<Publisher>] {
        &self.ad_hoc
    }

    /// The configured publisher that has the key with this id.
    pub(crate) fn owner(&self, id: &KeyId) -> Option<&Arc<Publisher>> {
        self.publishers
            .values()
            .find(|publisher| publisher.key(id).is_some())
    }

    /// The configured publisher whose document revokes the key with this id.
    pub(crate) fn revoker(&self, id: &KeyId) -> Option<&Arc<Publisher>> {
        self.publishers
            .values()
            .find(|publisher| publisher.revokes(id))
    }
}

/// The warning about a trusted example key.
pub(crate) const EXAMPLE_WARNING: &str =
    "this is the example key: its private half is public, so that anybody can sign with it";
