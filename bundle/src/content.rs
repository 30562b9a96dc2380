//! The typed contents of a bundle: from `Verified<Bundle>`, or, marked as such,
//! from a directory under work. Nothing is opened again here: what is parsed
//! are the bytes that were verified.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolward_contract::action::{self, Action};
use toolward_contract::diagnostic::{Diagnostic, Position, Severity};
use toolward_contract::driver::Driver;
use toolward_contract::index::Index;
use toolward_contract::tool::Tool;
use toolward_signing::digest::Digest;
use toolward_signing::key::KeyId;
use toolward_signing::manifest::Manifest;
use toolward_signing::provenance::Provenance;
use toolward_signing::verify::{Bundle, Verified};

use crate::codes;
use crate::component::Component;
use crate::dev::{self, PackOptions};
use crate::documents::{Documents, role_of};
pub use crate::error::ContentError;
use crate::index::{self, TOOLS_JSON};
use crate::libraries::{Libraries, Library, NoLibraries, Surroundings};
use crate::rules;
use crate::shown::{self, PromptEntry, ResourceEntry};

mod prefixes;

use prefixes::{Prefixes, check_prefixes, id_of};

/// Where a bundle's bytes come from, and so what may be granted to it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ContentOrigin {
    /// A publisher's signatures were verified.
    Signed {
        /// The publisher's name in the trust store, never the bundle's claim.
        publisher: String,
        /// The keys that signed, sorted and distinct.
        signers: Vec<KeyId>,
    },
    /// A directory under work, unsigned, named by the operator (`--dev`).
    Dev {
        /// The directory.
        dir: PathBuf,
    },
}

impl ContentOrigin {
    /// The publisher that policy and messages name: the trust store's name, or
    /// `dev:<dir>`.
    #[must_use]
    pub fn publisher(&self) -> String {
        match self {
            Self::Signed { publisher, .. } => publisher.clone(),
            Self::Dev { dir } => format!("dev:{}", dir.display()),
        }
    }

    /// Whether the bundle is unsigned and under work.
    #[must_use]
    pub fn is_dev(&self) -> bool {
        matches!(self, Self::Dev { .. })
    }
}

/// A contract and where it stands.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolEntry {
    /// The contract.
    pub tool: Arc<Tool>,
    /// The name of its TOOL.md; `None` where it comes from a version 1
    /// `tools.json`.
    pub path: Option<String>,
    /// Whether the contract's `metadata.mcp.name` lies inside the prefixes of its
    /// publisher; true for a directory under work.
    pub names_itself: bool,
    /// When the tool was installed, as a number that those of later tools exceed; `None` for
    /// what is not installed. The store sets it.
    pub arrival: Option<u64>,
}

impl ToolEntry {
    /// A contract that stands in no document and names no MCP tool.
    #[must_use]
    pub fn unwritten(tool: Arc<Tool>) -> Self {
        Self {
            tool,
            path: None,
            names_itself: false,
            arrival: None,
        }
    }
}

/// A driver, where it stands, and its component.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DriverEntry {
    /// The driver.
    pub driver: Arc<Driver>,
    /// The name of its DRIVER.md; `tools.json` where it comes from a transport of
    /// a version 1 document.
    pub path: String,
    /// There for a driver of kind `component`, and only then.
    pub component: Option<Component>,
}

/// A bundle's contents, every rule of the formats checked.
///
/// ```no_run
/// use toolward_bundle::ContentError;
/// use toolward_bundle::content::Content;
/// use toolward_signing::trust::TrustStore;
/// use toolward_signing::verify::{self, VerifyOptions};
///
/// fn list(trust: &TrustStore) -> Result<(), Box<dyn std::error::Error>> {
///     let bundle = verify::open("acme.toolbundle".as_ref(), trust, &VerifyOptions::default())?;
///     let content = match Content::from_verified(bundle) {
///         Ok(content) => content,
///         Err(ContentError::Invalid(diagnostics)) => {
///             diagnostics.iter().for_each(|one| println!("{one}"));
///             return Ok(());
///         }
///         Err(error) => return Err(error.into()),
///     };
///     for entry in &content.tools {
///         println!("{} {}", entry.tool.id, entry.tool.version);
///     }
///     Ok(())
/// }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Content {
    /// Where the bytes come from.
    pub origin: ContentOrigin,
    /// BLAKE3 of `manifest.toml`; for a directory under work, of the manifest
    /// that `pack` would write.
    pub manifest_digest: Digest,
    /// What the manifest says.
    pub manifest: Arc<Manifest>,
    /// The contracts, by id.
    pub tools: Vec<ToolEntry>,
    /// The drivers, by id.
    pub drivers: Vec<DriverEntry>,
    /// The drivers of transports that are denied: routing rejects them, with the reason.
    pub denied: Vec<Arc<Driver>>,
    /// The actions, by path.
    pub actions: Vec<Arc<Action>>,
    /// The prompts, by id.
    pub prompts: Vec<PromptEntry>,
    /// The resources, by path.
    pub resources: Vec<ResourceEntry>,
    /// `tools.json`, in agreement with the contracts and drivers.
    pub index: Index,
    /// Every file of the manifest, by name.
    pub files: BTreeMap<String, Arc<[u8]>>,
    /// How the components were made, if the bundle says so and proves it.
    pub provenance: Option<Provenance>,
    /// What is odd but no reason to refuse.
    pub warnings: Vec<Diagnostic>,
}

impl Content {
    /// Reads the contents of a verified bundle, with no other bundle around it.
    ///
    /// # Errors
    ///
    /// Those of [`Content::from_verified_with`]; `action-unresolved` for a contract that takes its action from a
    /// library.
    pub fn from_verified(bundle: Verified<Bundle>) -> Result<Self, ContentError> {
        Self::from_verified_with(bundle, &NoLibraries)
    }

    /// Reads the contents of a verified bundle. `libraries`: the actions of other bundles, as the same trust gives
    /// them.
    ///
    /// # Errors
    ///
    /// When a document doesn't parse, a component is missing or exports another
    /// world, `tools.json` disagrees with the contracts, or an id
    /// lies outside the publisher's prefixes.
    pub fn from_verified_with(
        bundle: Verified<Bundle>,
        libraries: &dyn Libraries,
    ) -> Result<Self, ContentError> {
        let bundle = bundle.into_inner();
        let publisher = bundle.publisher.name().to_owned();
        let granted = Prefixes {
            of_all: &|id| bundle.may_publish(id),
            of_actions: &|id| bundle.may_publish_action(id),
        };
        let files = bundle
            .files
            .iter()
            .map(|(path, bytes)| (path.as_str().to_owned(), Arc::clone(bytes)))
            .collect();
        let mut content = Self::assemble(
            ContentOrigin::Signed {
                publisher: publisher.clone(),
                signers: bundle.signers.clone(),
            },
            bundle.manifest_digest,
            Arc::new(bundle.manifest.clone()),
            files,
            &publisher,
            granted,
            libraries,
        )?;
        content.provenance = bundle.provenance.clone();
        for warning in &bundle.warnings {
            content.warnings.push(Diagnostic::new(
                &codes::VERIFICATION,
                "manifest.toml",
                Position::START,
                warning.clone(),
            ));
        }
        Ok(content)
    }

    /// Reads a directory under work, without signatures: what `pack` would
    /// pack, with the same checks. Its origin says that it is unsigned.
    ///
    /// # Errors
    ///
    /// As [`Content::from_verified`], and when the directory can't be packed.
    pub fn from_dev(directory: &Path) -> Result<Self, ContentError> {
        Self::from_dev_with(directory, &NoLibraries)
    }

    /// Reads a directory under work as [`Content::from_dev`] does. `libraries`: the actions of other bundles.
    ///
    /// # Errors
    ///
    /// Those of [`Content::from_dev`].
    pub fn from_dev_with(
        directory: &Path,
        libraries: &dyn Libraries,
    ) -> Result<Self, ContentError> {
        // The time does not affect what runs; any fixed one will do.
        let options = PackOptions {
            source_date_epoch: Some(0),
            ..PackOptions::default()
        };
        let packed = dev::pack(directory, &options)?;
        // Policy names the directory, so it has one spelling.
        let dir = directory
            .canonicalize()
            .unwrap_or_else(|_| directory.to_owned());
        let origin = ContentOrigin::Dev { dir };
        let publisher = origin.publisher();
        let mut content = Self::assemble(
            origin,
            Digest::of(&packed.manifest_bytes),
            Arc::new(packed.manifest),
            packed.files,
            &publisher,
            Prefixes {
                of_all: &|_| true,
                of_actions: &|_| true,
            },
            libraries,
        )?;
        // Both read the documents; packing knows where they lie, and no libraries.
        let resolved = content.takes_actions();
        let mut warnings = packed.warnings;
        warnings.retain(|found| !resolved || found.code != action::ELSEWHERE);
        let of = |found: &Diagnostic| {
            let file = found.file.trim_start_matches('.').to_owned();
            (found.code, file, found.position(), found.message.clone())
        };
        let known: BTreeSet<_> = warnings.iter().map(of).collect();
        let more = content.warnings.into_iter();
        warnings.extend(more.filter(|found| !known.contains(&of(found))));
        content.warnings = warnings;
        Ok(content)
    }

    /// Whether a contract takes its action from another bundle, so that more than this bundle decides what it asks
    /// for.
    #[must_use]
    pub fn takes_actions(&self) -> bool {
        self.tools.iter().any(|entry| takes_action(&entry.tool))
    }

    /// The contract with an `id@major`, or the newest with an id.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&ToolEntry> {
        let mut tools = self.tools.iter().rev();
        tools.find(|entry| entry.tool.id.as_str() == name || entry.tool.major_id() == name)
    }

    /// The drivers that say they implement a contract, by id.
    pub fn drivers_for<'a>(&'a self, tool: &'a Tool) -> impl Iterator<Item = &'a DriverEntry> + 'a {
        self.drivers.iter().filter(|entry| {
            entry
                .driver
                .implements_tool(tool.id.as_str(), &tool.version)
                .is_some()
        })
    }

    fn assemble(
        origin: ContentOrigin,
        manifest_digest: Digest,
        manifest: Arc<Manifest>,
        files: BTreeMap<String, Arc<[u8]>>,
        publisher: &str,
        granted: Prefixes<'_>,
        libraries: &dyn Libraries,
    ) -> Result<Self, ContentError> {
        check_roles(&manifest)?;
        // Nothing is signed: the publisher is a claim.
        let owner = match origin.is_dev() {
            true => manifest.publisher.as_str(),
            false => publisher,
        };
        let own = Library {
            publisher: owner,
            id: &manifest.id,
        };
        let surroundings = Surroundings {
            own: Some(own),
            others: libraries,
        };
        let (documents, mut diagnostics) = rules::read_in(&files, surroundings);
        // What is signed as tools.json was written before any library was known.
        let takes_actions = documents.tools.iter().any(|tool| takes_action(&tool.value));
        let written = takes_actions.then(|| {
            let surroundings = Surroundings::of_author(owner, &manifest.id);
            Documents::read_in(&files, surroundings)
        });
        let said = written.as_ref().unwrap_or(&documents);
        let indexed = index::read(&files, said, &mut diagnostics);
        if let Some(index) = &indexed.index {
            diagnostics.extend(index::check_version(&manifest, index));
        }
        let written = documents.tools.iter();
        let written = written.map(|tool| (Arc::clone(&tool.value), Some(tool.path.clone())));
        let indexed_only = indexed.contracts.into_iter().map(|tool| (tool, None));
        let entry = |(tool, path): (Arc<Tool>, Option<String>)| ToolEntry {
            names_itself: tool
                .mcp_name
                .as_deref()
                .is_some_and(|name| (granted.of_all)(&id_of(name))),
            tool,
            path,
            arrival: None,
        };
        let tools: Vec<ToolEntry> = written.chain(indexed_only).map(entry).collect();

        let mut drivers = Vec::with_capacity(documents.drivers.len());
        for driver in &documents.drivers {
            match rules::component(driver, &documents, &files, Some(&manifest)) {
                Ok(component) => drivers.push(DriverEntry {
                    driver: Arc::clone(&driver.value),
                    path: driver.path.clone(),
                    component,
                }),
                Err(diagnostic) => diagnostics.push(*diagnostic),
            }
        }
        drivers.extend(indexed.drivers.into_iter().map(|driver| DriverEntry {
            driver,
            path: TOOLS_JSON.to_owned(),
            component: None,
        }));
        let (errors, warnings): (Vec<_>, Vec<_>) = diagnostics
            .into_iter()
            .partition(|diagnostic| diagnostic.severity == Severity::Error);
        let Some(index) = indexed.index.filter(|_| errors.is_empty()) else {
            return Err(ContentError::Invalid(errors));
        };
        check_prefixes(&manifest, &documents, &tools, publisher, granted)?;

        let prompts = documents.prompts.iter().map(|prompt| PromptEntry {
            prompt: Arc::clone(&prompt.value),
            path: prompt.path.clone(),
        });
        let mut prompts: Vec<PromptEntry> = prompts.collect();
        prompts.sort_by(|a, b| a.prompt.id.cmp(&b.prompt.id));
        let resources = shown::resources(&documents, &files);
        let mut content = Self {
            origin,
            manifest_digest,
            manifest,
            tools,
            drivers,
            denied: indexed.denied,
            actions: documents
                .actions
                .iter()
                .map(|action| Arc::clone(&action.value))
                .collect(),
            prompts,
            resources,
            index,
            files,
            provenance: None,
            warnings,
        };
        content.tools.sort_by(|a, b| {
            let versions = a.tool.version.cmp(&b.tool.version);
            a.tool.id.cmp(&b.tool.id).then(versions)
        });
        content.drivers.sort_by(|a, b| {
            let versions = a.driver.version.cmp(&b.driver.version);
            a.driver.id.cmp(&b.driver.id).then(versions)
        });
        Ok(content)
    }
}

fn takes_action(tool: &Tool) -> bool {
    let implements = tool.implements.as_ref();
    implements.is_some_and(|implements| implements.library.is_some())
}

fn check_roles(manifest: &Manifest) -> Result<(), ContentError> {
    for entry in &manifest.files {
        let expected = role_of(entry.path.as_str());
        if entry.role != expected {
            return Err(ContentError::RoleMismatch {
                path: entry.path.as_str().to_owned(),
                found: entry.role.to_string(),
                expected: expected.to_string(),
            });
        }
    }
    Ok(())
}
