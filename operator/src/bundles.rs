//! Where tools come from: named bundles, a directory under work, or the installed
//! bundles.

mod beside;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolward_bundle::content::Content;
use toolward_signing::verify::{Bundle, Verified};
use toolward_store::Store;

use crate::environment::Environment;
use crate::error::{Code, Error};
use crate::installed::{self, LoadedBundles, RefusedTool, StoreLocation};
use crate::report::Report;
use crate::trust::{self, Opened, Trust, TrustContext, dev_content, naming_bundle};

pub(crate) use beside::Reserved;

/// Where tools come from.
///
/// ```no_run
/// use toolward_operator::bundles::BundleSource;
/// use toolward_operator::{Environment, Silent};
///
/// # fn main() -> Result<(), toolward_operator::Error> {
/// let installed = BundleSource::default();
/// for content in installed.contents(&Environment::of_process(), &Silent)? {
///     println!("{} by {}", content.manifest.id, content.origin.publisher());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct BundleSource {
    /// Signed bundles, each a directory or an archive.
    pub named: Vec<PathBuf>,
    /// A directory under work, unsigned; beside the named bundles, and in place of the installed ones.
    pub dev: Option<PathBuf>,
    /// Whom to trust.
    pub trust: Trust,
    /// The store of installed bundles, used if no bundle is named.
    pub store: StoreLocation,
}

/// The named bundles, and what is read from them and from the directory under work beside them.
pub(crate) struct Named {
    pub(crate) bundles: Vec<Verified<Bundle>>,
    pub(crate) contents: Vec<Content>,
    /// What they were verified with.
    pub(crate) context: TrustContext,
}

/// The kind of a [`BundleSource`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKind<'a> {
    /// A directory under work.
    Dev(&'a Path),
    /// Named bundles, and a directory under work beside them.
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

    /// Reads and verifies the bundles. An installed bundle that is refused is left out
    /// with a warning.
    ///
    /// # Errors
    /// If there are no bundles, or a named bundle is refused; `dev-clash` if the directory under work has an id of a
    /// named bundle or of its publisher.
    pub fn contents(
        &self,
        environment: &Environment,
        report: &dyn Report,
    ) -> Result<Vec<Content>, Error> {
        match self.kind() {
            SourceKind::Dev(directory) => Ok(vec![self.dev(directory, environment, report)?]),
            SourceKind::Installed => {
                let store = self.store.existing(environment)?;
                Ok(self
                    .installed(store.as_ref(), environment, report)?
                    .0
                    .contents)
            }
            SourceKind::Named | SourceKind::Beside(_) => {
                Ok(self.named(environment, report)?.contents)
            }
        }
    }

    /// The directory under work, beside named bundles with these ids.
    pub(crate) fn beside(
        &self,
        directory: &Path,
        reserved: &Reserved,
        environment: &Environment,
        report: &dyn Report,
    ) -> Result<Content, Error> {
        let own = self.dev(directory, environment, report)?;
        reserved.check(&own)?;
        Ok(own)
    }

    fn dev(
        &self,
        directory: &Path,
        environment: &Environment,
        report: &dyn Report,
    ) -> Result<Content, Error> {
        dev_content(directory, &self.trust, &self.store, environment, report)
    }

    /// Verifies and reads the named bundles, and reads the directory under work beside them.
    pub(crate) fn named(
        &self,
        environment: &Environment,
        report: &dyn Report,
    ) -> Result<Named, Error> {
        let Opened {
            bundles,
            readings,
            context,
        } = self.trust.open_all(&self.named, environment, report)?;
        let contents = trust::finish(readings, &context).into_iter();
        let mut contents: Vec<Content> = contents
            .zip(&self.named)
            .map(|(content, path)| content.map_err(|error| naming_bundle(error, path, &self.named)))
            .collect::<Result<_, _>>()?;
        if let SourceKind::Beside(directory) = self.kind() {
            let publishers: Vec<_> =
                (bundles.iter().map(|one| Arc::clone(&one.publisher))).collect();
            let reserved = Reserved::of(&contents, &publishers);
            contents.push(self.beside(directory, &reserved, environment, report)?);
        }
        Ok(Named {
            bundles,
            contents,
            context,
        })
    }

    /// The bundles installed in this store, if there is one, and the trust context they
    /// were verified in.
    pub fn installed(
        &self,
        store: Option<&Store>,
        environment: &Environment,
        report: &dyn Report,
    ) -> Result<(LoadedBundles, TrustContext), Error> {
        let missing = |what: &str| {
            Error::usage(Code::BundleMissing, what)
                .hint("give --bundle PATH with --trust-key PEM, or --dev DIR")
                .hint("or install a bundle: toolward install SOURCE")
        };
        let Some(store) = store else {
            return Err(missing("no bundle was named, and none is installed"));
        };
        if store.list()?.is_empty() {
            return Err(missing("no bundle was named, and none is installed"));
        }
        let context = self.trust.context(environment, report)?;
        let loaded = installed::loaded(store, &context, report)?;
        Ok((loaded, context))
    }

    /// Why a tool is missing from these contents, if it belongs to an installed bundle
    /// that was left out.
    pub fn withheld<'c>(
        &self,
        tool: &str,
        contents: impl IntoIterator<Item = &'c Content>,
        environment: &Environment,
        report: &dyn Report,
    ) -> Result<Option<Error>, Error> {
        let named = |content: &Content| {
            let tools = content.tools.iter();
            let mut tools = tools.map(|entry| &entry.tool);
            tools.any(|one| one.id.as_str() == tool || one.major_id() == tool)
        };
        if !matches!(self.kind(), SourceKind::Installed) || contents.into_iter().any(named) {
            return Ok(None);
        }
        let Some(store) = self.store.existing(environment)? else {
            return Ok(None);
        };
        installed::withheld(tool, &store, &self.trust, environment, report)
    }

    /// The tools of installed bundles that were left out.
    pub fn refused(
        &self,
        environment: &Environment,
        report: &dyn Report,
    ) -> Result<Vec<RefusedTool>, Error> {
        match (self.kind(), self.store.existing(environment)?) {
            (SourceKind::Installed, Some(store)) => {
                installed::refused_tools(&store, &self.trust, environment, report)
            }
            _ => Ok(Vec::new()),
        }
    }
}
