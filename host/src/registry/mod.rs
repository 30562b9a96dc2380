//! The catalogue: the tools of all loaded bundles, each with the drivers that
//! may serve it. A snapshot: built once, then only read.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use toolward_bundle::content::{Content, DriverEntry};
use toolward_contract::driver::{Driver, DriverKind, Implements, Platform};
use toolward_contract::tool::{Retry, Tool};
use toolward_signing::Digest;

use crate::error::HostError;
use crate::limits::{CallLimits, Limits};
use crate::policy::{self, Decision};
use crate::sandbox::run::Prepared;

/// The driver of a bundle, prepared at its first call.
pub(crate) struct LoadedDriver {
    pub(crate) driver: Arc<Driver>,
    pub(crate) bundle: String,
    pub(crate) publisher: String,
    /// The verified bytes, until they are compiled.
    wasm: Mutex<Option<Arc<[u8]>>>,
    pub(crate) digest: Option<Digest>,
    pub(crate) prepared: OnceLock<Result<Prepared, String>>,
    /// Held by whoever prepares it.
    pub(crate) preparing: Arc<tokio::sync::Mutex<()>>,
}

impl LoadedDriver {
    fn new(entry: DriverEntry, bundle: &str, publisher: &str) -> Self {
        let (digest, wasm) = match entry.component {
            Some(component) => (Some(component.digest), Some(component.bytes)),
            None => (None, None),
        };
        Self {
            driver: entry.driver,
            bundle: bundle.to_owned(),
            publisher: publisher.to_owned(),
            wasm: Mutex::new(wasm),
            digest,
            prepared: OnceLock::new(),
            preparing: Arc::default(),
        }
    }

    /// The component's bytes, as long as they are kept.
    pub(crate) fn wasm(&self) -> Option<Arc<[u8]>> {
        self.wasm
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Gives up the component's bytes: it is compiled.
    pub(crate) fn drop_wasm(&self) {
        *self.wasm.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// One way to carry out a contract: a driver, with all that is fixed about it.
pub(crate) struct Route {
    pub(crate) driver: Arc<LoadedDriver>,
    pub(crate) implements: Implements,
    pub(crate) limits: CallLimits,
    pub(crate) retry: Option<Retry>,
    pub(crate) decision: Decision,
}

/// One tool, with its routes in the order of preference.
pub(crate) struct ToolEntry {
    pub(crate) contract: Arc<Tool>,
    pub(crate) major_id: String,
    /// `id@version`, as results name it.
    pub(crate) full_id: String,
    pub(crate) publisher: String,
    pub(crate) bundle: String,
    /// Whether its bundle is unsigned, under work.
    dev: bool,
    pub(crate) routes: Vec<Arc<Route>>,
}

/// All tools by `id@major`, and what else they are called.
#[derive(Default)]
pub(crate) struct Catalogue {
    tools: BTreeMap<String, Arc<ToolEntry>>,
    names: HashMap<String, Arc<ToolEntry>>,
}

impl Catalogue {
    /// Builds the catalogue of these bundles.
    pub(crate) fn build(contents: Vec<Content>, limits: &Limits) -> Result<Self, HostError> {
        let mut catalogue = Self::default();
        let mut drivers: BTreeMap<String, Arc<LoadedDriver>> = BTreeMap::new();
        let mut contracts = Vec::new();
        for content in contents {
            let publisher = content.origin.publisher();
            let dev = content.origin.is_dev();
            let bundle = content.manifest_digest.to_string();
            let label = format!(
                "{} {} by {publisher}",
                content.manifest.id, content.manifest.version
            );
            for entry in content.drivers {
                let id = entry.driver.id.to_string();
                let loaded = Arc::new(LoadedDriver::new(entry, &bundle, &publisher));
                if let Some(first) = drivers.insert(id.clone(), loaded) {
                    return Err(HostError::Duplicate {
                        kind: "driver",
                        id,
                        first: format!("one by {}", first.publisher),
                        second: label,
                    });
                }
            }
            contracts.extend(content.tools.into_iter().map(|entry| {
                (
                    entry.tool,
                    publisher.clone(),
                    bundle.clone(),
                    label.clone(),
                    dev,
                )
            }));
        }
        for (contract, publisher, bundle, label, dev) in contracts {
            let routes = routes(&contract, &publisher, &drivers, limits);
            let entry = Arc::new(ToolEntry {
                major_id: contract.major_id(),
                full_id: format!("{}@{}", contract.id, contract.version),
                publisher,
                bundle,
                dev,
                routes,
                contract,
            });
            if let Some(first) = catalogue
                .tools
                .insert(entry.major_id.clone(), entry.clone())
            {
                return Err(HostError::Duplicate {
                    kind: "tool",
                    id: entry.major_id.clone(),
                    first: format!("one by {}", first.publisher),
                    second: label,
                });
            }
        }
        catalogue.name_all();
        Ok(catalogue)
    }

    /// A bare id means its highest major. An alias never shadows an id, nor one of
    /// a bundle under work one of a signed bundle; claimed by two tools, it means
    /// neither.
    fn name_all(&mut self) {
        for entry in self.tools.values() {
            let id = entry.contract.id.to_string();
            let newest = self
                .names
                .get(&id)
                .is_none_or(|known| known.contract.version < entry.contract.version);
            if newest {
                self.names.insert(id, entry.clone());
            }
        }
        for dev in [false, true] {
            for (alias, entry) in self.aliases(dev) {
                if let Some(entry) = entry {
                    self.names.entry(alias).or_insert(entry);
                }
            }
        }
    }

    /// The aliases of all signed bundles, or of all under work; `None` for one
    /// that two tools claim.
    fn aliases(&self, dev: bool) -> HashMap<String, Option<Arc<ToolEntry>>> {
        let mut aliases: HashMap<String, Option<Arc<ToolEntry>>> = HashMap::new();
        for entry in self.tools.values().filter(|entry| entry.dev == dev) {
            for alias in &entry.contract.aliases {
                aliases
                    .entry(alias.clone())
                    .and_modify(|known| {
                        known.take_if(|known| known.contract.id != entry.contract.id);
                    })
                    .or_insert_with(|| Some(entry.clone()));
            }
        }
        aliases
    }

    /// The tool that `name` means: `id@major`, an id, or an alias.
    pub(crate) fn find(&self, name: &str) -> Option<&Arc<ToolEntry>> {
        self.tools.get(name).or_else(|| self.names.get(name))
    }

    pub(crate) fn tools(&self) -> impl Iterator<Item = &Arc<ToolEntry>> {
        self.tools.values()
    }
}

/// The drivers that may serve a contract, best first: of the
/// contract's own publisher, for this version, of a kind that the contract
/// allows and this host runs.
fn routes(
    contract: &Tool,
    publisher: &str,
    drivers: &BTreeMap<String, Arc<LoadedDriver>>,
    limits: &Limits,
) -> Vec<Arc<Route>> {
    let mut routes: Vec<Arc<Route>> = drivers
        .values()
        .filter(|driver| driver.publisher == publisher)
        .filter(|driver| driver.driver.kind == DriverKind::Component && driver.digest.is_some())
        .filter(|driver| {
            contract
                .driver_constraints
                .permits(driver.driver.kind.as_str())
        })
        .filter(|driver| runs_here(&driver.driver.platform, limits))
        .filter_map(|driver| {
            let implements = driver
                .driver
                .implements_tool(contract.id.as_str(), &contract.version)?;
            let timeout = driver.driver.timeout(contract, implements);
            Some(Arc::new(Route {
                limits: CallLimits::new(limits, timeout, &driver.driver.limits),
                retry: driver.driver.retry(contract, implements),
                decision: policy::decide(contract, &driver.driver),
                implements: implements.clone(),
                driver: driver.clone(),
            }))
        })
        .collect();
    // The map is by id, and the sort stable: ids decide last.
    routes.sort_by(|a, b| {
        let default = |route: &Route| {
            contract.default_implementation.as_deref() == Some(route.driver.driver.id.as_str())
        };
        let cost = |route: &Route| {
            route
                .implements
                .cost_override
                .cost_units_per_call
                .unwrap_or(0.0)
        };
        default(b)
            .cmp(&default(a))
            .then(cost(a).total_cmp(&cost(b)))
    });
    routes
}

/// Whether this host has what a driver asks of its platform. Memory is what a
/// sandbox may have here; disk space is no matter for one that has no files.
fn runs_here(platform: &Platform, limits: &Limits) -> bool {
    let named = |list: &[String], own: &str| list.is_empty() || list.iter().any(|name| name == own);
    let memory = platform.min_memory_mb.unwrap_or(0).saturating_mul(1 << 20);
    named(&platform.os, std::env::consts::OS)
        && named(&platform.arch, std::env::consts::ARCH)
        && memory <= limits.memory_bytes.maximum
}
