//! The typed contents of a bundle, from a `Verified<Bundle>` or from an unsigned working directory.
//! The contents record which of the two they come from. The files of a verified bundle are not
//! opened again: exactly the verified bytes are parsed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolward_contract::action::{self, Action};
use toolward_contract::diagnostic::{Diagnostic, Position};
use toolward_contract::driver::Driver;
use toolward_contract::index::Index;
use toolward_contract::prompt::Prompt;
use toolward_contract::tool::Tool;
use toolward_signing::digest::Digest;
use toolward_signing::key::KeyId;
use toolward_signing::manifest::Manifest;
use toolward_signing::provenance::Provenance;
use toolward_signing::verify::{Bundle, Verified};

use crate::codes;
use crate::component::Component;
use crate::dev::{self, PackOptions};
use crate::documents::{Located, serves};
pub use crate::error::ContentError;
use crate::libraries::{Libraries, NoLibraries};
use crate::shown::ResourceEntry;

mod assemble;

/// The origin of a bundle's bytes. The grants that a bundle may get depend on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContentOrigin {
    /// A publisher's signatures were verified.
    Signed {
        /// The publisher's name in the trust store, never the bundle's claim.
        publisher: String,
        /// The keys that signed, sorted and distinct.
        signers: Vec<KeyId>,
    },
    /// An unsigned working directory that the operator named with `--dev`.
    Dev {
        /// The directory.
        dir: PathBuf,
    },
}

impl ContentOrigin {
    /// The publisher that policy and messages name: the trust store's name, or `dev:<dir>`.
    pub fn publisher(&self) -> String {
        match self {
            Self::Signed { publisher, .. } => publisher.clone(),
            Self::Dev { dir } => format!("dev:{}", dir.display()),
        }
    }

    /// Whether the bundle comes from an unsigned working directory.
    pub fn is_dev(&self) -> bool {
        matches!(self, Self::Dev { .. })
    }
}

/// A contract and its file.
#[derive(Debug, Clone)]
pub struct ToolEntry {
    /// The contract.
    pub tool: Arc<Tool>,
    /// The name of its TOOL.md; `None` if it comes from a version 1 `tools.json`.
    pub path: Option<String>,
    /// Whether the contract has a `metadata.mcp.name` that its publisher's prefixes allow. In a
    /// working directory, every such name is allowed.
    pub names_itself: bool,
    /// The tool's place in the order of installation: later tools have higher numbers. The store
    /// sets it; `None` if the tool is not installed.
    pub arrival: Option<u64>,
}

impl ToolEntry {
    /// An entry for a contract without a TOOL.md and without a name for MCP.
    pub fn unwritten(tool: Arc<Tool>) -> Self {
        Self {
            tool,
            path: None,
            names_itself: false,
            arrival: None,
        }
    }
}

/// A driver, its file and its component.
#[derive(Debug, Clone)]
pub struct DriverEntry {
    /// The driver.
    pub driver: Arc<Driver>,
    /// The name of its DRIVER.md, or `tools.json` if it comes from a transport of a version 1
    /// document.
    pub path: String,
    /// The component; `None` if the driver is of another kind than `component`.
    pub component: Option<Component>,
}

/// A bundle's contents, which obey every rule of the formats.
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
    /// The origin of the bytes.
    pub origin: ContentOrigin,
    /// BLAKE3 of `manifest.toml`, or of the manifest that `pack` would write for a working
    /// directory.
    pub manifest_digest: Digest,
    /// The manifest.
    pub manifest: Arc<Manifest>,
    /// The contracts, by id.
    pub tools: Vec<ToolEntry>,
    /// The drivers, by id.
    pub drivers: Vec<DriverEntry>,
    /// The drivers made from denied transports of a version 1 `tools.json`. Routing rejects them,
    /// with the reason.
    pub denied: Vec<Arc<Driver>>,
    /// The actions, by path.
    pub actions: Vec<Arc<Action>>,
    /// The prompts, by id.
    pub prompts: Vec<Located<Prompt>>,
    /// The resources, by path.
    pub resources: Vec<ResourceEntry>,
    /// `tools.json`, which agrees with the contracts and drivers.
    pub index: Index,
    /// Every file of the manifest, by name, except unread components.
    pub files: BTreeMap<String, Arc<[u8]>>,
    /// How the components were built, if the bundle has verified provenance.
    pub provenance: Option<Provenance>,
    /// Findings that are not errors.
    pub warnings: Vec<Diagnostic>,
}

impl Content {
    /// Reads the contents of a verified bundle, without the actions of other bundles.
    ///
    /// # Errors
    ///
    /// The errors of [`Content::from_verified_with`], and `action-unresolved` for a contract that
    /// takes its action from a library.
    pub fn from_verified(bundle: Verified<Bundle>) -> Result<Self, ContentError> {
        Self::from_verified_with(bundle, &NoLibraries)
    }

    /// Reads the contents of a verified bundle. `libraries` has the actions of other bundles that
    /// were verified with the same trust store.
    ///
    /// # Errors
    ///
    /// When a document doesn't parse or breaks a rule, a component is missing or exports another
    /// world, `tools.json` differs from the contracts, the manifest gives a file a wrong role, or
    /// an id is outside the publisher's prefixes.
    pub fn from_verified_with(
        bundle: Verified<Bundle>,
        libraries: &dyn Libraries,
    ) -> Result<Self, ContentError> {
        let bundle = bundle.into_inner();
        let publisher = bundle.publisher.name().to_owned();
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
            Some(&bundle),
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

    /// Reads an unsigned working directory: the files that `pack` would pack, with the same checks.
    /// The origin of the contents shows that they are unsigned.
    ///
    /// # Errors
    ///
    /// The errors of [`Content::from_verified`], and an error if the directory can't be packed.
    pub fn from_dev(directory: &Path) -> Result<Self, ContentError> {
        Self::from_dev_with(directory, &NoLibraries)
    }

    /// Reads a working directory as [`Content::from_dev`] does. `libraries` has the actions of
    /// other bundles.
    ///
    /// # Errors
    ///
    /// The errors of [`Content::from_dev`].
    pub fn from_dev_with(
        directory: &Path,
        libraries: &dyn Libraries,
    ) -> Result<Self, ContentError> {
        // Any fixed time will do, since it does not affect calls.
        let options = PackOptions {
            source_date_epoch: Some(0),
            ..PackOptions::default()
        };
        let packed = dev::pack(directory, &options)?;
        // Policies name the directory, so its spelling must be unique.
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
            None,
            libraries,
        )?;
        // Packing and assembling both report findings about the documents. If both report a
        // finding, packing's is used, since it has the path in the directory. But packing knows no
        // other bundles, so it also warns of actions that assembling has found there; these
        // warnings are dropped.
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

    /// Whether a contract takes its action from another bundle. Its demands then also depend on
    /// that bundle.
    pub fn takes_actions(&self) -> bool {
        self.tools.iter().any(|entry| takes_action(&entry.tool))
    }

    /// The contract with the `id@major` in `name`. If `name` is only an id, the newest contract
    /// with it.
    pub fn tool(&self, name: &str) -> Option<&ToolEntry> {
        let mut tools = self.tools.iter().rev();
        tools.find(|entry| entry.tool.id.as_str() == name || entry.tool.major_id() == name)
    }

    /// The drivers that implement a contract, ordered by id.
    pub fn drivers_for<'a>(&'a self, tool: &'a Tool) -> impl Iterator<Item = &'a DriverEntry> + 'a {
        let drivers = self.drivers.iter();
        drivers.filter(|entry| serves(&entry.driver, tool))
    }
}

fn takes_action(tool: &Tool) -> bool {
    let implements = tool.implements.as_ref();
    implements.is_some_and(|implements| implements.library.is_some())
}
