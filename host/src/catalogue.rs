//! The catalogue: the tools of all loaded bundles, each with the drivers that
//! may serve it. A snapshot: built once, then only read.

mod brought;
mod icon;
mod routes;
mod tool_facts;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use toolward_bundle::content::Content;
use toolward_contract::tool::Tool;
use toolward_policy::{Confirmed, ContextLack, Contract, Decision, Effects, ToolRoutes};
use toolward_sandbox::error::HostError;
use toolward_state::Withdrawal;

use crate::admission::{Admission, Gate};
use crate::api::withheld::{WithheldReason, WithheldTool};
use crate::executor::Executors;
use crate::recording::RecordedTool;
use crate::services::Services;
use crate::shared_state::SharedState;
use brought::Brought;
pub(crate) use brought::BundledTool;

pub use icon::Icon;
pub(crate) use routes::{LoadedDriver, Route};
pub use tool_facts::{DriverFacts, ToolFacts, Unserved, UnservedDriver};

/// One tool, with its routes in the order of preference.
pub(crate) struct ToolEntry {
    pub(crate) contract: Arc<Tool>,
    pub(crate) major_id: Arc<str>,
    pub(crate) version: String,
    /// `id@version`, as results name it.
    pub(crate) full_id: Arc<str>,
    pub(crate) publisher: Arc<str>,
    pub(crate) bundle: Arc<str>,
    /// Whether its bundle is unsigned, under work.
    pub(crate) dev: bool,
    pub(crate) withdrawal: Arc<Withdrawal>,
    pub(crate) routes: Vec<Arc<Route>>,
    /// Why the publisher's own drivers for it can't serve it.
    pub(crate) unserved: Unserved,
    pub(crate) icon: Option<Icon>,
    /// The shares of this tool and of its publisher.
    pub(crate) gates: [Arc<Gate>; 2],
    /// What records say of it, where calls are recorded.
    pub(crate) recorded: Option<RecordedTool>,
}

impl ToolEntry {
    /// The routes by which a call may run.
    pub(crate) fn open_routes(&self) -> impl Iterator<Item = &Arc<Route>> {
        let served = |route: &&Arc<Route>| route.driver.withdrawal.withdrawn().is_none();
        self.routes
            .iter()
            .filter(served)
            .filter(|route| route.is_open())
    }

    /// Which claims of its contract the operator confirms, for all of its drivers.
    pub(crate) fn confirmed(&self) -> Confirmed {
        self.open_routes()
            .filter_map(|route| match &route.decision {
                Decision::Allow(allowed) | Decision::Ask(allowed, _) => Some(allowed.confirmed),
                Decision::Deny(_) => None,
            })
            .reduce(Confirmed::and)
            .unwrap_or_default()
    }

    /// Why the operator gives no context to any of the routes by which a call may
    /// run, if that is so.
    pub(crate) fn context_lack(&self) -> Option<ContextLack> {
        let mut first = None;
        for route in self.open_routes() {
            let lack = route.contexts.lack()?;
            first.get_or_insert(lack);
        }
        first.cloned()
    }

    /// The effects of a call, by any of its drivers.
    pub(crate) fn effects(&self) -> Option<Effects> {
        self.open_routes()
            .filter_map(|route| match &route.decision {
                Decision::Allow(allowed) | Decision::Ask(allowed, _) => Some(allowed.effects),
                Decision::Deny(_) => None,
            })
            .reduce(Effects::join)
    }
}

/// All tools by `id@major`, and what else they are called.
#[derive(Default)]
pub(crate) struct Catalogue {
    tools: BTreeMap<String, Arc<ToolEntry>>,
    names: HashMap<String, Arc<ToolEntry>>,
    /// By the digest of each bundle's manifest.
    bundles: HashMap<String, Arc<Withdrawal>>,
    /// Tools of bundles that are not loaded.
    withheld: Vec<WithheldTool>,
}

impl Catalogue {
    /// Builds the catalogue of these bundles, and decides for each tool what it
    /// gets.
    pub(crate) fn build(
        contents: Vec<Content>,
        withheld: Vec<WithheldTool>,
        services: &Services,
        shared_state: &SharedState,
        admission: &Admission,
        executors: &Executors,
    ) -> Result<Self, HostError> {
        let mut brought = Brought::default();
        for content in contents {
            brought.add(
                content,
                shared_state,
                executors,
                services.recording.is_some(),
            );
        }
        let tools: Vec<Contract<'_>> = brought.tools.iter().map(BundledTool::contract).collect();
        let drivers = brought.implementations();
        let planned =
            toolward_policy::routes(&tools, &drivers, &services.policy, &services.machine)
                .map_err(|duplicate| brought.duplicate(duplicate))?;
        let by_id: HashMap<String, &Arc<LoadedDriver>> = brought
            .drivers
            .iter()
            .map(|driver| (driver.driver.major_id(), driver))
            .collect();
        let candidates = |planned: &ToolRoutes<'_>| -> Vec<Arc<LoadedDriver>> {
            let ids = planned.routes.iter();
            let ids = ids.map(|route| route.implementation.driver.major_id());
            ids.filter_map(|id| by_id.get(&id).copied().cloned())
                .collect()
        };
        let found: BTreeMap<String, (&BundledTool, Vec<Arc<LoadedDriver>>)> = brought
            .tools
            .iter()
            .zip(&planned)
            .map(|(tool, planned)| (tool.contract.major_id(), (tool, candidates(planned))))
            .collect();

        let mut catalogue = Self {
            withheld,
            ..Self::default()
        };
        for (tool, planned) in brought.tools.iter().zip(&planned) {
            let routes = planned.routes.iter().filter_map(|route| {
                let driver = by_id.get(&route.implementation.driver.major_id())?;
                let chain = || {
                    let reached = route.reach.tools.iter().filter_map(|id| found.get(id));
                    let reached = reached.map(|(tool, drivers)| tool.reached(drivers));
                    routes::chain(reached, &services.policy)
                };
                Some(Arc::new(routes::route(route, driver, &chain, services)))
            });
            let major_id = tool.contract.major_id();
            let recorded = services.recording.as_ref();
            let entry = Arc::new(ToolEntry {
                recorded: recorded.map(|_| {
                    let names = (&*tool.contract, &*tool.bundle, &*tool.publisher);
                    RecordedTool::of(names, tool.surface, planned)
                }),
                version: tool.contract.version.to_string(),
                full_id: format!("{}@{}", tool.contract.id, tool.contract.version).into(),
                gates: [
                    admission.tool(&tool.publisher, &major_id),
                    admission.publisher(&tool.publisher),
                ],
                publisher: tool.publisher.as_str().into(),
                bundle: tool.bundle.as_str().into(),
                withdrawal: tool.withdrawal.clone(),
                dev: tool.dev,
                contract: tool.contract.clone(),
                major_id: major_id.as_str().into(),
                icon: tool.icon.clone(),
                routes: routes.collect(),
                unserved: Unserved::of(planned),
            });
            catalogue.tools.insert(major_id, entry);
        }
        catalogue.bundles = brought.bundles;
        catalogue.name_all();
        Ok(catalogue)
    }

    /// Adds the names without a version. An id alone means its highest major version.
    /// An alias never shadows an id, and an unsigned bundle's alias never shadows a
    /// signed one's; an alias that two tools claim means neither.
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

    /// The aliases of all signed bundles, or of all unsigned ones; `None` for an alias
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

    /// The tool that another tool means by `name`: `id@major` or an id. No aliases:
    /// grants and approvals of nested calls are by id.
    pub(crate) fn find_by_id(&self, name: &str) -> Option<&Arc<ToolEntry>> {
        self.find(name)
            .filter(|entry| &*entry.major_id == name || entry.contract.id.as_str() == name)
    }

    /// The tools that are served.
    pub(crate) fn tools(&self) -> impl Iterator<Item = &Arc<ToolEntry>> {
        let tools = self.tools.values();
        tools.filter(|tool| tool.withdrawal.withdrawn().is_none())
    }

    /// The tool that is not loaded and that `name` means. A tool that another one calls is named by its id.
    pub(crate) fn find_withheld(&self, name: &str, nested: bool) -> Option<&WithheldTool> {
        let mut withheld = self.withheld.iter();
        withheld.find(|tool| tool.has_id(name) || (!nested && tool.is_called(name)))
    }

    /// The tools that are known and not served: of bundles that are not loaded, or that were withdrawn.
    pub(crate) fn withheld(&self) -> impl Iterator<Item = WithheldTool> {
        let loaded = |tool: &WithheldTool| self.tools.contains_key(&tool.major_id());
        let withheld = self.withheld.iter().filter(move |tool| !loaded(tool));
        let tools = self.tools.values();
        let withdrawn = tools.filter(|tool| tool.withdrawal.withdrawn().is_some());
        let withdrawn = withdrawn.map(|tool| {
            WithheldTool::of(&tool.contract, &tool.publisher, WithheldReason::Withdrawn)
        });
        withheld.cloned().chain(withdrawn)
    }

    /// The manifest digests of the bundles that are served.
    pub(crate) fn bundles(&self) -> impl Iterator<Item = &str> {
        let bundles = self.bundles.iter();
        bundles
            .filter(|(_, withdrawal)| withdrawal.withdrawn().is_none())
            .map(|(digest, _)| digest.as_str())
    }
}
