//! The contents and demands of a bundle, as plain values to show. This module grants nothing and
//! runs nothing. An unverified inspection lets people look at a bundle before they decide whether
//! to trust its publisher.

mod views;

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use toolward_contract::action::Action;
use toolward_contract::diagnostic::Diagnostic;
use toolward_contract::driver::Driver;
use toolward_contract::tool::Tool;
use toolward_signing::digest::Digest;
use toolward_signing::manifest::Manifest;
use toolward_signing::verify::{self, UnsignedBundle};

use crate::component::Component;
use crate::content::{Content, ContentOrigin};
use crate::documents::Documents;
use crate::error::ReadError;
use crate::files::Files;
use crate::index::{self, IndexContents};
use crate::libraries::Surroundings;
use crate::rules;

pub use self::views::{ActionView, ComponentView, CostView, DriverView, InputView, ToolView};
pub use crate::declared::{DeclarationDifference, UndeclaredImport};

use self::views::driver_view;

/// A bundle for inspection. All its text is untrusted.
#[derive(Debug, Clone, Serialize)]
pub struct Inspection {
    /// Whether signatures were verified. Otherwise everything here is a claim.
    pub verified: bool,
    /// The verified publisher; `dev:<dir>` for a working directory; for an unverified bundle the
    /// claim of its manifest.
    pub publisher: String,
    /// The ids of the keys that signed; empty if nothing was verified.
    pub signers: Vec<String>,
    /// BLAKE3 of the manifest.
    pub manifest_digest: Digest,
    /// The manifest, without its files.
    pub manifest: ManifestView,
    /// The contracts.
    pub tools: Vec<ToolView>,
    /// The drivers.
    pub drivers: Vec<DriverView>,
    /// The actions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<ActionView>,
    /// How the components were built, from a verified statement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provenance: Option<ProvenanceView>,
    /// The files.
    pub files: Vec<FileView>,
    /// Findings about the documents.
    pub problems: Vec<Diagnostic>,
}

/// The fields of a manifest, without its files.
#[derive(Debug, Clone, Serialize)]
pub struct ManifestView {
    /// The bundle's id.
    pub id: String,
    /// Its version.
    pub version: String,
    /// Its sequence number.
    pub sequence: u64,
    /// When it was made.
    pub created: String,
    /// When it stops being valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// The oldest host that can run it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_host: Option<String>,
}

/// How components were made.
#[derive(Debug, Clone, Serialize)]
pub struct ProvenanceView {
    /// The compiler.
    pub compiler: String,
    /// The target.
    pub target: String,
    /// The sources: name and digest.
    pub sources: Vec<(String, Digest)>,
}

/// A file of the manifest.
#[derive(Debug, Clone, Serialize)]
pub struct FileView {
    /// Its name within the bundle.
    pub path: String,
    /// BLAKE3 of its bytes.
    pub blake3: Digest,
    /// Its length in bytes.
    pub size: u64,
    /// Its role.
    pub role: String,
}

/// The parts of a release that callers rely on.
#[derive(Debug)]
pub struct ReleaseContents {
    /// The id of the bundle.
    pub id: String,
    /// Its contracts, including the contracts of a version 1 tools.json.
    pub tools: Vec<Arc<Tool>>,
    /// Its drivers that have a DRIVER.md.
    pub drivers: Vec<Arc<Driver>>,
}

/// Reads a release without verifying its signatures: for an author who compares releases.
///
/// # Errors
/// When it is not a bundle, or one of its documents can't be read.
pub fn release(path: &Path) -> Result<ReleaseContents, ReadError> {
    let read = UnverifiedBundle::read(path)?;
    if read.problems.iter().any(Diagnostic::is_error) {
        return Err(ReadError::Invalid(read.problems));
    }
    let written = read.documents.tools.into_iter().map(|tool| tool.value);
    let drivers = read.documents.drivers.into_iter();
    Ok(ReleaseContents {
        id: read.bundle.manifest.id,
        tools: written.chain(read.indexed.contracts).collect(),
        drivers: drivers.map(|driver| driver.value).collect(),
    })
}

/// A bundle whose signatures are not verified.
struct UnverifiedBundle {
    bundle: UnsignedBundle,
    files: Files,
    documents: Documents,
    indexed: IndexContents,
    problems: Vec<Diagnostic>,
}

impl UnverifiedBundle {
    fn read(path: &Path) -> Result<Self, ReadError> {
        let mut bundle = verify::unsigned(path).map_err(|refusal| ReadError::Refused {
            path: path.to_owned(),
            source: refusal,
        })?;
        let files = std::mem::take(&mut bundle.files).into_iter();
        let files: Files = files
            .map(|(path, bytes)| (path.as_str().to_owned(), bytes))
            .collect();
        let manifest = &bundle.manifest;
        let surroundings = Surroundings::of_author(&manifest.publisher, &manifest.id);
        let mut documents = Documents::read_in(&files, surroundings);
        let mut problems = std::mem::take(&mut documents.diagnostics);
        let indexed = index::read(&files, &documents, &mut problems);
        Ok(Self {
            bundle,
            files,
            documents,
            indexed,
            problems,
        })
    }
}

impl Inspection {
    /// The claims of a bundle.
    fn new<'b>(
        manifest: &Manifest,
        manifest_digest: Digest,
        tools: &[&Tool],
        drivers: impl Iterator<Item = (&'b Driver, Option<&'b Component>)>,
        actions: impl Iterator<Item = &'b Arc<Action>>,
        problems: Vec<Diagnostic>,
    ) -> Self {
        let known = || tools.iter().copied();
        Self {
            verified: false,
            publisher: manifest.publisher.clone(),
            signers: Vec::new(),
            manifest_digest,
            manifest: ManifestView {
                id: manifest.id.clone(),
                version: manifest.version.to_string(),
                sequence: manifest.sequence,
                created: manifest.created.to_string(),
                expires: manifest.expires.as_ref().map(ToString::to_string),
                min_host: manifest.min_host.as_ref().map(ToString::to_string),
            },
            tools: known().map(ToolView::of).collect(),
            drivers: drivers
                .map(|(driver, component)| driver_view(driver, component, known()))
                .collect(),
            actions: actions.map(|action| ActionView::of(action)).collect(),
            provenance: None,
            files: file_views(manifest),
            problems,
        }
    }

    /// Inspects a verified bundle or a working directory.
    pub fn of(content: &Content) -> Self {
        let signers = match &content.origin {
            ContentOrigin::Signed { signers, .. } => {
                signers.iter().map(ToString::to_string).collect()
            }
            ContentOrigin::Dev { .. } => Vec::new(),
        };
        let tools: Vec<&Tool> = content.tools.iter().map(|entry| &*entry.tool).collect();
        let drivers = content.drivers.iter();
        let drivers = drivers.map(|entry| (&*entry.driver, entry.component.as_ref()));
        let actions = content.actions.iter();
        let provenance = content.provenance.as_ref().map(|provenance| {
            let sets = provenance.sources.iter();
            ProvenanceView {
                compiler: provenance.compiler.clone(),
                target: provenance.target.clone(),
                sources: sets.map(|set| (set.name.clone(), set.digest)).collect(),
            }
        });
        let (manifest, digest) = (&content.manifest, content.manifest_digest);
        let problems = content.warnings.clone();
        Self {
            verified: !content.origin.is_dev(),
            publisher: content.origin.publisher(),
            signers,
            provenance,
            ..Self::new(manifest, digest, &tools, drivers, actions, problems)
        }
    }

    /// Inspects a packed directory or an archive, whose files must match the manifest. Signatures
    /// are not verified.
    ///
    /// # Errors
    ///
    /// When the bundle can't be read, or a file is missing, extra, or differs from the manifest.
    pub fn unverified(path: &Path) -> Result<Self, ReadError> {
        let UnverifiedBundle {
            bundle,
            files,
            documents,
            indexed,
            mut problems,
        } = UnverifiedBundle::read(path)?;
        let written = documents.tools.iter().map(|tool| &tool.value);
        let tools = written.chain(&indexed.contracts).map(|tool| &**tool);
        let tools: Vec<&Tool> = tools.collect();
        let mut components = Vec::with_capacity(documents.drivers.len());
        for driver in &documents.drivers {
            let component = rules::readable(driver, &files, None, None);
            let component = component.unwrap_or_else(|problem| {
                problems.push(*problem);
                None
            });
            if let Some(component) = &component
                && let Err(problem) = rules::usable(component, driver, &documents, &files)
            {
                problems.push(*problem);
            }
            components.push(component);
        }
        let drivers = documents.drivers.iter().map(|driver| &*driver.value);
        let drivers = drivers.zip(components.iter().map(Option::as_ref));
        let drivers = drivers.chain(indexed.drivers.iter().map(|driver| (&**driver, None)));
        let actions = documents.actions.iter().map(|action| &action.value);
        let (manifest, digest) = (&bundle.manifest, bundle.manifest_digest);
        Ok(Self::new(
            manifest, digest, &tools, drivers, actions, problems,
        ))
    }
}

fn file_views(manifest: &Manifest) -> Vec<FileView> {
    let tools = FileView {
        path: manifest.artifacts.tools.path.to_string(),
        blake3: manifest.artifacts.tools.blake3,
        size: manifest.artifacts.tools.size,
        role: "tools".to_owned(),
    };
    let listed = manifest.artifacts.files.iter().map(|file| FileView {
        path: file.path.to_string(),
        blake3: file.blake3,
        size: file.size,
        role: file.role.to_string(),
    });
    std::iter::once(tools).chain(listed).collect()
}
