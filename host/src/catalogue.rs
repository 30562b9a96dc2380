//! The catalogue: the tools of all loaded bundles, each with the drivers that may serve it. It is a
//! snapshot that is built once and then only read.

mod icon;
mod routes;
mod tool_facts;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use toolward_bundle::content::Content;
use toolward_bundle::surface::BundleSurface;
use toolward_contract::driver::Driver;
use toolward_policy::{Contract, DuplicateId, Implementation, ToolRoutes};
use toolward_sandbox::error::HostError;
use toolward_signing::Digest;
use toolward_state::Withdrawal;

use crate::admission::Admission;
use crate::api::approval::Chain;
use crate::executor::Executors;
use crate::recording::RecordedTool;
use crate::services::Services;
use crate::shared_state::SharedState;
use icon::Icons;

pub use icon::Icon;
pub use routes::{DriverFacts, LoadedDriver};
pub(crate) use tool_facts::withdrawn;
pub use tool_facts::{ToolFacts, Unserved, UnservedDriver, WithheldReason, WithheldTool};

/// The contracts and drivers of all bundles, in their order of arrival, before policy decides about
/// them.
#[derive(Default)]
struct Loaded {
    /// Without drivers yet.
    tools: Vec<ToolFacts>,
    drivers: Vec<Arc<LoadedDriver>>,
    /// The drivers whose transports are denied, with their publishers.
    denied: Vec<(Arc<Driver>, Arc<str>)>,
    /// By the digest of each bundle's manifest.
    bundles: HashMap<Arc<str>, LoadedBundle>,
}

struct LoadedBundle {
    withdrawal: Arc<Withdrawal>,
    /// Its id and version, for messages.
    label: String,
    /// The digest of its surface (what models and policies see of it); `None` unless calls are
    /// recorded.
    surface: Option<Digest>,
}

impl Loaded {
    fn add(
        &mut self,
        content: Content,
        shared_state: &SharedState,
        (admission, executors): (&Admission, &Executors),
        recorded: bool,
    ) {
        let publisher: Arc<str> = content.origin.publisher().into();
        let dev = content.origin.is_dev();
        let bundle: Arc<str> = content.manifest_digest.to_string().into();
        let loaded = self.bundles.entry(bundle.clone());
        let loaded = loaded.or_insert_with(|| LoadedBundle {
            withdrawal: shared_state.withdrawal(&bundle),
            label: format!("{} {}", content.manifest.id, content.manifest.version),
            surface: recorded.then(|| BundleSurface::of(&content).digest()),
        });
        let withdrawal = loaded.withdrawal.clone();
        let icons = Icons::of(&content);
        self.drivers
            .extend(content.drivers.into_iter().map(|entry| {
                let loaded = LoadedDriver::new(entry, &bundle, &publisher, &withdrawal, executors);
                Arc::new(loaded)
            }));
        let denied = content.denied.into_iter();
        self.denied
            .extend(denied.map(|driver| (driver, publisher.clone())));
        self.tools.extend(content.tools.into_iter().map(|entry| {
            let contract = entry.tool;
            let major_id = contract.major_id();
            ToolFacts {
                icon: icons.for_tool(&contract),
                version: contract.version.to_string(),
                full_id: format!("{}@{}", contract.id, contract.version).into(),
                gates: [
                    admission.tool(&publisher, &major_id),
                    admission.publisher(&publisher),
                ],
                major_id: major_id.into(),
                contract,
                publisher: publisher.clone(),
                bundle: bundle.clone(),
                withdrawal: withdrawal.clone(),
                dev,
                drivers: Vec::new(),
                unserved: Unserved::default(),
                recorded: None,
            }
        }));
    }

    /// The drivers that routing decides about. Drivers with a denied transport come last, and
    /// routing rejects them.
    fn implementations(&self) -> Vec<Implementation<'_>> {
        let loaded = self.drivers.iter();
        let loaded = loaded.map(|driver| (&driver.declaration, &driver.publisher));
        let denied = self.denied.iter();
        let denied = denied.map(|(driver, publisher)| (driver, publisher));
        loaded
            .chain(denied)
            .map(|(driver, publisher)| Implementation { driver, publisher })
            .collect()
    }

    /// The error that names the two bundles with a tool or driver of the same id.
    fn duplicate(&self, duplicate: &DuplicateId) -> HostError {
        let named = |at: usize| {
            let (id, bundle, publisher) = match duplicate.kind {
                "tool" => {
                    let tool = self.tools.get(at)?;
                    (tool.contract.major_id(), &tool.bundle, &tool.publisher)
                }
                _ => {
                    let driver = self.drivers.get(at)?;
                    let id = driver.declaration.major_id();
                    (id, &driver.bundle, &driver.publisher)
                }
            };
            // The publisher is added because unsigned bundles in two directories may have the same
            // label.
            let label = &self.bundles.get(bundle)?.label;
            Some((id, format!("{label} by {publisher}")))
        };
        let named = |at| named(at).unwrap_or_default();
        let ((id, first), (_, second)) = (named(duplicate.first), named(duplicate.second));
        HostError::Duplicate {
            kind: duplicate.kind,
            id,
            first,
            second,
        }
    }
}

/// All tools by `id@major`, and their other names.
#[derive(Default)]
pub(crate) struct Catalogue {
    tools: BTreeMap<Arc<str>, Arc<ToolFacts>>,
    names: HashMap<String, Arc<ToolFacts>>,
    /// By the digest of each bundle's manifest.
    bundles: HashMap<Arc<str>, LoadedBundle>,
    /// Tools of bundles that are not loaded.
    withheld: Vec<WithheldTool>,
}

impl Catalogue {
    /// Builds the catalogue of these bundles, and decides what each tool is granted.
    pub(crate) fn build(
        contents: Vec<Content>,
        withheld: Vec<WithheldTool>,
        services: &Services,
        shared_state: &SharedState,
        made_with: (&Admission, &Executors),
    ) -> Result<Self, HostError> {
        let mut loaded = Loaded::default();
        let recorded = services.recording.is_some();
        for content in contents {
            loaded.add(content, shared_state, made_with, recorded);
        }
        let contracts: Vec<Contract<'_>> = loaded.tools.iter().map(ToolFacts::signed).collect();
        let implementations = loaded.implementations();
        let (policy, machine) = (&services.policy, &services.machine);
        let planned = toolward_policy::routes(&contracts, &implementations, policy, machine)
            .map_err(|duplicate| loaded.duplicate(&duplicate))?;
        let drivers = loaded.drivers.iter();
        let by_id: HashMap<String, &Arc<LoadedDriver>> = drivers
            .map(|driver| (driver.declaration.major_id(), driver))
            .collect();
        let of = |route: &toolward_policy::Route<'_>| {
            by_id.get(&route.implementation.driver.major_id()).copied()
        };
        let planned_tools = loaded.tools.iter().zip(&planned);
        let found = planned_tools.clone().map(|(tool, planned)| {
            let drivers = planned.routes.iter().filter_map(of).cloned();
            (&*tool.major_id, (tool, drivers.collect()))
        });
        let found: BTreeMap<&str, (&ToolFacts, Vec<Arc<LoadedDriver>>)> = found.collect();
        let decided = |planned: &ToolRoutes<'_>| -> Vec<Arc<DriverFacts>> {
            let drivers = planned.routes.iter().filter_map(|route| {
                let reached = route.reach.tools.iter();
                let reached = reached.filter_map(|id| found.get(id.as_str()));
                let chain = || {
                    let reached = reached.clone();
                    Chain::of(reached.map(|(tool, drivers)| tool.chained(drivers, policy)))
                };
                Some(Arc::new(routes::route(route, of(route)?, &chain, services)))
            });
            drivers.collect()
        };
        let facts = planned_tools.map(|(tool, planned)| {
            let surface = loaded.bundles.get(&tool.bundle).and_then(|one| one.surface);
            let names = (&*tool.contract, &*tool.bundle, &*tool.publisher);
            let recorded = recorded.then(|| RecordedTool::of(names, surface, planned));
            (decided(planned), Unserved::of(planned), recorded)
        });
        let facts: Vec<_> = facts.collect();
        let tools = loaded.tools.into_iter().zip(facts);
        let tools = tools.map(|(tool, (drivers, unserved, recorded))| {
            let tool = ToolFacts {
                drivers,
                unserved,
                recorded,
                ..tool
            };
            (tool.major_id.clone(), Arc::new(tool))
        });
        let mut catalogue = Self {
            tools: tools.collect(),
            names: HashMap::new(),
            bundles: loaded.bundles,
            withheld,
        };
        catalogue.name_all();
        Ok(catalogue)
    }

    /// Adds the names without a version. An id alone means its highest major version. An alias
    /// never shadows an id, and an unsigned bundle's alias never shadows a signed bundle's alias.
    /// If two ids of signed bundles claim an alias, it means neither of them; the same holds for
    /// two ids of unsigned bundles.
    fn name_all(&mut self) {
        for entry in self.tools.values() {
            let id = entry.contract.id.to_string();
            let known = self.names.get(&id);
            if known.is_none_or(|known| known.contract.version < entry.contract.version) {
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

    /// The aliases of all signed bundles, or of all unsigned ones; `None` for an alias that two ids
    /// claim.
    fn aliases(&self, dev: bool) -> HashMap<String, Option<Arc<ToolFacts>>> {
        let mut aliases: HashMap<String, Option<Arc<ToolFacts>>> = HashMap::new();
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
    pub(crate) fn find(&self, name: &str) -> Option<&Arc<ToolFacts>> {
        self.tools.get(name).or_else(|| self.names.get(name))
    }

    /// The tool that another tool means by `name`, which is `id@major` or an id. Aliases don't
    /// count, since grants and approvals of nested calls are by id.
    pub(crate) fn find_by_id(&self, name: &str) -> Option<&Arc<ToolFacts>> {
        self.find(name)
            .filter(|entry| &*entry.major_id == name || entry.contract.id.as_str() == name)
    }

    /// The tools that are served.
    pub(crate) fn tools(&self) -> impl Iterator<Item = &Arc<ToolFacts>> {
        self.tools.values().filter(|tool| tool.is_served())
    }

    /// The tool that is not loaded and that `name` means. A nested call names a tool by its id,
    /// never by an alias.
    pub(crate) fn find_withheld(&self, name: &str, nested: bool) -> Option<&WithheldTool> {
        let mut withheld = self.withheld.iter();
        withheld.find(|tool| tool.has_id(name) || (!nested && tool.is_called(name)))
    }

    /// The tools that are known but not served, because their bundle is not loaded or was
    /// withdrawn.
    pub(crate) fn withheld(&self) -> impl Iterator<Item = WithheldTool> {
        let loaded = |tool: &WithheldTool| self.tools.contains_key(tool.major_id().as_str());
        let withheld = self.withheld.iter().filter(move |tool| !loaded(tool));
        let tools = self.tools.values();
        let withdrawn = tools.filter(|tool| !tool.is_served());
        let withdrawn = withdrawn.map(|tool| {
            WithheldTool::of(&tool.contract, &tool.publisher, WithheldReason::Withdrawn)
        });
        withheld.cloned().chain(withdrawn)
    }

    /// The manifest digests of the bundles that are served.
    pub(crate) fn bundles(&self) -> impl Iterator<Item = &str> {
        let bundles = self.bundles.iter();
        bundles
            .filter(|(_, bundle)| bundle.withdrawal.withdrawn().is_none())
            .map(|(digest, _)| &**digest)
    }
}
