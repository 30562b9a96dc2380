//! The contracts and drivers of all bundles, before anything is decided about them.

use std::collections::HashMap;
use std::sync::Arc;

use toolward_bundle::content::Content;
use toolward_bundle::surface::BundleSurface;
use toolward_contract::driver::Driver;
use toolward_contract::tool::Tool;
use toolward_policy::{Contract, DuplicateId, Implementation};
use toolward_sandbox::error::HostError;
use toolward_signing::Digest;
use toolward_state::Withdrawal;

use super::icon::{Icon, Icons};
use super::routes::{LoadedDriver, Reached};
use crate::executor::Executors;
use crate::shared_state::SharedState;

/// The contracts and drivers of all bundles, in the order in which they came.
#[derive(Default)]
pub(super) struct Brought {
    pub(super) tools: Vec<BundledTool>,
    pub(super) drivers: Vec<Arc<LoadedDriver>>,
    /// The drivers whose transports are denied, with their publishers.
    denied: Vec<(Arc<Driver>, String)>,
    /// By the digest of each bundle's manifest.
    pub(super) bundles: HashMap<String, Arc<Withdrawal>>,
    /// The name of each driver's bundle, for messages.
    labels: Vec<String>,
}

/// A contract of a loaded bundle.
pub(crate) struct BundledTool {
    pub(crate) contract: Arc<Tool>,
    pub(crate) publisher: String,
    pub(crate) bundle: String,
    /// The digest of the bundle's surface, where calls are recorded.
    pub(crate) surface: Option<Digest>,
    pub(super) withdrawal: Arc<Withdrawal>,
    pub(super) dev: bool,
    pub(super) icon: Option<Icon>,
    label: String,
}

impl BundledTool {
    pub(super) fn contract(&self) -> Contract<'_> {
        Contract {
            tool: &self.contract,
            publisher: &self.publisher,
        }
    }

    /// The tool as one that another can call.
    pub(super) fn reached<'f>(&'f self, drivers: &'f [Arc<LoadedDriver>]) -> Reached<'f> {
        Reached {
            contract: &self.contract,
            publisher: &self.publisher,
            bundle: &self.bundle,
            drivers,
        }
    }
}

impl Brought {
    pub(super) fn add(
        &mut self,
        content: Content,
        shared_state: &SharedState,
        executors: &Executors,
        recorded: bool,
    ) {
        let publisher = content.origin.publisher();
        let dev = content.origin.is_dev();
        let bundle = content.manifest_digest.to_string();
        let withdrawal = self
            .bundles
            .entry(bundle.clone())
            .or_insert_with(|| shared_state.withdrawal(&bundle))
            .clone();
        let label = format!(
            "{} {} by {publisher}",
            content.manifest.id, content.manifest.version
        );
        let icons = Icons::of(&content);
        let surface = recorded.then(|| BundleSurface::of(&content).digest());
        for entry in content.drivers {
            let loaded = LoadedDriver::new(entry, &bundle, &publisher, &withdrawal, executors);
            self.drivers.push(Arc::new(loaded));
            self.labels.push(label.clone());
        }
        let denied = content.denied.into_iter();
        self.denied
            .extend(denied.map(|driver| (driver, publisher.clone())));
        for entry in content.tools {
            self.tools.push(BundledTool {
                icon: icons.for_tool(&entry.tool),
                contract: entry.tool,
                publisher: publisher.clone(),
                bundle: bundle.clone(),
                surface,
                withdrawal: withdrawal.clone(),
                dev,
                label: label.clone(),
            });
        }
    }

    /// The drivers that routing decides about: the denied ones last, which it rejects.
    pub(super) fn implementations(&self) -> Vec<Implementation<'_>> {
        let loaded = self.drivers.iter().map(|driver| Implementation {
            driver: &driver.driver,
            publisher: &driver.publisher,
        });
        let denied = self
            .denied
            .iter()
            .map(|(driver, publisher)| Implementation { driver, publisher });
        loaded.chain(denied).collect()
    }

    /// The error that names the two bundles that have the same id.
    pub(super) fn duplicate(&self, duplicate: DuplicateId) -> HostError {
        let tool = |at: usize| {
            let tool = self.tools.get(at)?;
            Some((tool.contract.major_id(), tool.label.clone()))
        };
        let driver = |at: usize| {
            let driver = self.drivers.get(at)?;
            Some((driver.driver.major_id(), self.labels.get(at)?.clone()))
        };
        let named = |at: usize| match duplicate.kind {
            "tool" => tool(at).unwrap_or_default(),
            _ => driver(at).unwrap_or_default(),
        };
        let ((id, first), (_, second)) = (named(duplicate.first), named(duplicate.second));
        HostError::Duplicate {
            kind: duplicate.kind,
            id,
            first,
            second,
        }
    }
}
