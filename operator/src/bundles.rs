//! Where tools come from: bundles that were named, a directory under work, or what
//! is installed.

use std::path::{Path, PathBuf};

use toolward_bundle::content::Content;
use toolward_signing::verify::{Bundle, Verified};
use toolward_store::Store;

use crate::environment::Environment;
use crate::error::Error;
use crate::installed::{self, RefusedTool, StoreLocation};
use crate::report::Report;
use crate::trust::{self, Trust, TrustContext, dev_content};

/// Where tools come from.
#[derive(Debug, Default)]
pub struct BundleSource {
    /// Signed bundles, each a directory or an archive.
    pub named: Vec<PathBuf>,
    /// A directory under work, unsigned. Wins over the others.
    pub dev: Option<PathBuf>,
    /// Whom to trust.
    pub trust: Trust,
    /// Where the store of installed bundles is; looked into where nothing is named.
    pub store: StoreLocation,
}

/// What a [`BundleSource`] stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKind<'a> {
    /// A directory under work.
    Dev(&'a Path),
    /// Bundles that were named.
    Named,
    /// What is installed.
    Installed,
}

impl BundleSource {
    /// Which of them it stands for.
    pub fn kind(&self) -> SourceKind<'_> {
        match &self.dev {
            Some(directory) => SourceKind::Dev(directory),
            None if self.named.is_empty() => SourceKind::Installed,
            None => SourceKind::Named,
        }
    }

    /// All of it, verified. What is refused among installed bundles is left out, with a
    /// warning.
    ///
    /// # Errors
    ///
    /// Where nothing is there, or a bundle that was named is refused.
    pub fn contents(
        &self,
        environment: &Environment,
        report: &dyn Report,
    ) -> Result<Vec<Content>, Error> {
        if let Some(directory) = &self.dev {
            return Ok(vec![dev_content(directory, report)?]);
        }
        if self.named.is_empty() {
            let store = self.store.existing(environment)?;
            return Ok(self.installed(store.as_ref(), environment, report)?.0);
        }
        let bundles = self.named(environment, report)?.into_iter();
        bundles.map(trust::read).collect()
    }

    /// The bundles that were named, verified.
    pub fn named(
        &self,
        environment: &Environment,
        report: &dyn Report,
    ) -> Result<Vec<Verified<Bundle>>, Error> {
        let bundles = self.named.iter();
        bundles
            .map(|bundle| self.trust.open(bundle, environment, report))
            .collect()
    }

    /// What this store has installed, if there is a store, and whom and what that
    /// was verified with.
    pub fn installed(
        &self,
        store: Option<&Store>,
        environment: &Environment,
        report: &dyn Report,
    ) -> Result<(Vec<Content>, TrustContext), Error> {
        let missing = |what: &str| {
            Error::usage("bundle-missing", what)
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
        let contents = installed::contents(store, &context, report)?;
        Ok((contents, context))
    }

    /// Why a tool that none of these contents has is not there, if an installed
    /// bundle that was left out brings it.
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
