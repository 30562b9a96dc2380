//! The sources of tools: named bundles, a directory under work, or the installed bundles. A
//! directory under work is an unsigned bundle that its author still changes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolward_bundle::content::Content;
use toolward_bundle::libraries::{Reading, Shelf};
use toolward_bundle::text::visible_line;
use toolward_contract::capability::CapabilitySet;
use toolward_contract::tool::Tool;
use toolward_host::Broker;
use toolward_signing::id::Prefix;
use toolward_signing::manifest;
use toolward_signing::trust::Publisher;
use toolward_store::{InstalledBundle, Store};

use crate::installed::{self, LoadedBundles, StoreLocation, examined, next_step};
use crate::trust::bare_key_rules::BUNDLE_TOML;
use crate::trust::{OpenedBundles, Trust, TrustContext};
use crate::{Code, Environment, Error, Kind, Result, content_error};

/// The source of tools.
///
/// ```no_run
/// use toolward_operator::bundles::BundleSource;
/// use toolward_operator::Environment;
///
/// # fn main() -> Result<(), toolward_operator::Error> {
/// let installed = BundleSource::default();
/// for content in installed.contents(&Environment::of_process())? {
///     println!("{} by {}", content.manifest.id, content.origin.publisher());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct BundleSource {
    /// Signed bundles, each a directory or an archive.
    pub named: Vec<PathBuf>,
    /// A directory under work, used in addition to the named bundles, or instead of the installed
    /// bundles.
    pub dev: Option<PathBuf>,
    /// Which publishers are trusted.
    pub trust: Trust,
    /// The store of installed bundles, used if no bundle is named.
    pub store: StoreLocation,
}

/// The kind of a [`BundleSource`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKind<'a> {
    /// A directory under work.
    Dev(&'a Path),
    /// Named bundles and a directory under work.
    Beside(&'a Path),
    /// Named bundles.
    Named,
    /// The installed bundles.
    Installed,
}

impl BundleSource {
    /// The kind of this source.
    pub fn kind(&self) -> SourceKind<'_> {
        match &self.dev {
            Some(directory) if self.named.is_empty() => SourceKind::Dev(directory),
            Some(directory) => SourceKind::Beside(directory),
            None if self.named.is_empty() => SourceKind::Installed,
            None => SourceKind::Named,
        }
    }

    /// Reads and verifies the bundles. Leaves out an installed bundle that is refused, with a
    /// warning.
    ///
    /// # Errors
    /// If no bundles are found, or a named bundle is refused; `dev-clash` if the directory under
    /// work has an id of a named bundle, or an id inside a prefix of a named bundle's publisher.
    pub fn contents(&self, environment: &Environment) -> Result<Vec<Content>> {
        match self.kind() {
            SourceKind::Dev(directory) => Ok(vec![self.dev(directory, environment)?]),
            SourceKind::Installed => {
                let store = self.store.existing(environment)?;
                let (loaded, _) = self.installed(store.as_ref(), environment, None)?;
                Ok(loaded.contents)
            }
            SourceKind::Named | SourceKind::Beside(_) => Ok(self.named(environment)?.1),
        }
    }

    pub(crate) fn dev(&self, directory: &Path, environment: &Environment) -> Result<Content> {
        dev_content(directory, &self.trust, &self.store, environment)
    }

    /// Verifies and reads the named bundles, and reads the directory under work, if one is given.
    pub(crate) fn named(&self, environment: &Environment) -> Result<OpenedBundles> {
        let (bundles, mut contents, context) = self.trust.open_all(&self.named, environment)?;
        if let Some(directory) = &self.dev {
            let publishers = bundles.iter().map(|one| Arc::clone(&one.publisher));
            let reserved = ReservedIds::of(&contents, &publishers.collect::<Vec<_>>());
            let own = self.dev(directory, environment)?;
            reserved.check(&own)?;
            contents.push(own);
        }
        Ok((bundles, contents, context))
    }

    /// Loads the bundles installed in this store. Also returns the trust context in which they were
    /// verified. Components in the cache of `known` are left unread until they are compiled.
    pub fn installed(
        &self,
        store: Option<&Store>,
        environment: &Environment,
        known: Option<&Broker>,
    ) -> Result<(LoadedBundles, TrustContext)> {
        let store = match store {
            Some(store) if !store.list()?.is_empty() => store,
            _ => {
                let missing = "no bundle was named, and none is installed";
                return Err(Error::usage(Code::BundleMissing, missing)
                    .hint("give --bundle PATH with --trust-key PEM, or --dev DIR")
                    .hint("or install a bundle: toolward install SOURCE"));
            }
        };
        let context = self.trust.context(environment)?;
        let loaded = installed::loaded(store, &context, known)?;
        Ok((loaded, context))
    }

    /// Returns why a tool is missing from these contents, if it belongs to an installed bundle that
    /// was left out.
    pub fn withheld<'c>(
        &self,
        tool: &str,
        contents: impl IntoIterator<Item = &'c Content>,
        environment: &Environment,
    ) -> Result<Option<Error>> {
        let named = |content: &Content| {
            let tools = content.tools.iter();
            let mut tools = tools.map(|entry| &entry.tool);
            tools.any(|one| one.id.as_str() == tool || one.major_id() == tool)
        };
        if contents.into_iter().any(named) {
            return Ok(None);
        }
        let named = |major_id: &str| major_id == tool || major_id.split('@').next() == Some(tool);
        let mut refused = self.refused(environment)?.into_iter();
        let found = refused.find(|(major_id, _, _)| named(major_id));
        Ok(found.map(|(_, installed, failure)| {
            let (id, version) = (&installed.id, &installed.version);
            let message = format!(
                "`{tool}` is in {id} {version}, which is installed and not loaded: {}",
                failure.message
            );
            failure.saying(message).hint(next_step(id))
        }))
    }

    /// Returns the tools of the installed bundles that are not loaded now. Returns none if bundles
    /// are named or a directory is under work.
    pub fn refused(&self, environment: &Environment) -> Result<Vec<RefusedTool>> {
        let store = match self.kind() {
            SourceKind::Installed => self.store.existing(environment)?,
            _ => None,
        };
        let mut refused = Vec::new();
        let Some(store) = store else {
            return Ok(refused);
        };
        let tools = store.tools()?;
        for one in examined(&store, &self.trust, environment)? {
            let Some(failure) = one.refusal() else {
                continue;
            };
            let (bundle, own) = (&one.installed, tools.iter());
            let own = own.filter(|tool| tool.bundle == bundle.id);
            refused
                .extend(own.map(|tool| (tool.major_id.clone(), bundle.clone(), failure.clone())));
        }
        Ok(refused)
    }
}

/// A tool of an installed bundle that is not loaded, with the reason.
pub type RefusedTool = (String, InstalledBundle, Error);

impl Trust {
    /// Opens, verifies and reads a bundle. If the bundle refers to actions of other bundles, they
    /// are taken from the installed bundles that verify.
    pub fn content(
        &self,
        path: &Path,
        store: &StoreLocation,
        environment: &Environment,
    ) -> Result<Content> {
        let bundle = self.open(path, environment)?;
        let refused = |error| content_error(error, Kind::Refused);
        if !Reading::new(bundle.clone()).is_open() {
            return Content::from_verified(bundle).map_err(refused);
        }
        let shelf = installed_libraries(self, store, environment)?;
        Content::from_verified_with(bundle, &shelf).map_err(refused)
    }
}

/// Whether this is a directory under work. A packed bundle is not, even if it also has a
/// `bundle.toml`: its signatures are checked.
pub fn is_under_work(directory: &Path) -> bool {
    let has = |name: &str| directory.join(name).symlink_metadata().is_ok();
    directory.join(BUNDLE_TOML).is_file() && !has(manifest::ENVELOPE_FILE) && !has(manifest::FILE)
}

/// Reads a directory under work, which has no signatures. If it refers to actions of other bundles,
/// they are taken from the installed bundles that verify.
pub fn under_work(
    directory: &Path,
    trust: &Trust,
    store: &StoreLocation,
    environment: &Environment,
) -> Result<Content> {
    let failed = |error| content_error(error, Kind::Failed);
    match Content::from_dev(directory) {
        Err(error) if error.lacks_action() => {
            let shelf = installed_libraries(trust, store, environment)?;
            Content::from_dev_with(directory, &shelf).map_err(failed)
        }
        content => content.map_err(failed),
    }
}

/// Reads, with [`under_work`], a directory that the user chose to run. Reports a note that it is
/// unsigned.
pub fn dev_content(
    directory: &Path,
    trust: &Trust,
    store: &StoreLocation,
    environment: &Environment,
) -> Result<Content> {
    let content = under_work(directory, trust, store, environment)?;
    environment.report.note(&format!(
        "{}: unsigned, under work; policies know it as {}",
        directory.display(),
        visible_line(&content.origin.publisher(), 500)
    ));
    Ok(content)
}

/// Returns the actions of the installed bundles that verify now; none if no store exists.
fn installed_libraries(
    trust: &Trust,
    store: &StoreLocation,
    environment: &Environment,
) -> Result<Shelf> {
    let Some(store) = store.existing(environment)? else {
        return Ok(Shelf::default());
    };
    let context = trust.context_or_empty(environment)?;
    installed::libraries(&store, &context, None)
}

/// Whether a tool has this id, with or without its major version, or this former name.
pub(crate) fn is_named(contract: &Tool, name: &str) -> bool {
    contract.id.as_str() == name
        || contract.major_id() == name
        || contract.aliases.iter().any(|alias| alias == name)
}

/// Whether a tool or a driver of a bundle declares capabilities that satisfy `such`.
pub(crate) fn declares(content: &Content, such: impl Fn(&CapabilitySet) -> bool) -> bool {
    let (mut tools, mut drivers) = (content.tools.iter(), content.drivers.iter());
    tools.any(|entry| such(&entry.tool.declaration()))
        || drivers.any(|entry| such(&entry.driver.requires.capabilities))
}

/// The ids that a directory under work may not use: the ids of verified bundles, and all ids inside
/// the prefixes of their publishers. They stay reserved when a bundle or its publisher is
/// withdrawn, since agents know them.
#[derive(Debug, Default)]
pub(crate) struct ReservedIds {
    /// By id: a text that names the bundle and its publisher.
    ids: BTreeMap<String, String>,
    /// The prefixes, with the publisher's name. A publisher of all ids (with the prefix `*`, or a
    /// key of `--trust-key`) reserves only the ids of its bundles.
    prefixes: Vec<(Prefix, String)>,
}

impl ReservedIds {
    /// Reserves the ids of verified bundles, and the prefixes of publishers.
    pub(crate) fn of(verified: &[Content], publishers: &[Arc<Publisher>]) -> Self {
        let signed = verified.iter().filter(|content| !content.origin.is_dev());
        let ids = signed.flat_map(|content| {
            let publisher = content.origin.publisher();
            let publisher = visible_line(&publisher, 200);
            let by = format!("{} by {publisher}", content.manifest.id);
            ids(content)
                .into_iter()
                .map(move |id| (id.to_owned(), by.clone()))
        });
        let prefixes = publishers.iter().flat_map(|publisher| {
            let prefixes = publisher.prefixes.iter();
            let narrow = prefixes.filter(|prefix| prefix.as_str() != "*");
            narrow.map(|prefix| (prefix.clone(), visible_line(publisher.name(), 200)))
        });
        Self {
            ids: ids.collect(),
            prefixes: prefixes.collect(),
        }
    }

    /// Refuses a directory under work that uses a reserved id.
    pub(crate) fn check(&self, own: &Content) -> Result<()> {
        for id in ids(own) {
            if let Some(bundle) = self.ids.get(id) {
                return Err(clash(format!("{id} is an id of {bundle}")));
            }
            let mut prefixes = self.prefixes.iter();
            if let Some((prefix, name)) = prefixes.find(|(prefix, _)| prefix.covers(id)) {
                return Err(clash(format!(
                    "{id} is inside the prefix {prefix} of {name}"
                )));
            }
        }
        Ok(())
    }
}

fn clash(what: String) -> Error {
    let message = format!("--dev clashes with another bundle: {what}");
    Error::new(Kind::Refused, Code::DevClash, message)
        .hint("choose another id, or name the directory without the other bundles")
}

/// Returns the ids of a bundle and of all its parts. Ids of tools are without versions.
fn ids(content: &Content) -> BTreeSet<&str> {
    let tools = content.tools.iter().map(|entry| entry.tool.id.as_str());
    let drivers = content.drivers.iter().map(|entry| &entry.driver);
    let drivers = drivers.chain(&content.denied);
    let prompts = content.prompts.iter().map(|entry| entry.value.id.as_str());
    tools
        .chain(drivers.map(|driver| driver.id.as_str()))
        .chain(prompts)
        .chain([content.manifest.id.as_str()])
        .collect()
}
