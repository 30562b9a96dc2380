//! The catalogue: the tools of all loaded bundles, each with the drivers that
//! may serve it. A snapshot: built once, then only read.

mod closure;
mod driver;
mod icon;
mod routes;
mod standing;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use toolward_bundle::content::Content;
use toolward_contract::tool::Tool;
use toolward_policy::{Confirmed, ContextLack, Decision, Effects};

use crate::admission::{Admission, Gate};
use crate::continuity::Continuity;
use crate::error::HostError;
use crate::services::Services;
use closure::Candidate;
use icon::Icons;

pub(crate) use driver::LoadedDriver;
pub use icon::Icon;
pub(crate) use routes::{Question, Route};
pub(crate) use standing::Standing;

/// One tool, with its routes in the order of preference.
pub(crate) struct ToolEntry {
    pub(crate) contract: Arc<Tool>,
    pub(crate) major_id: String,
    /// `id@version`, as results name it.
    pub(crate) full_id: String,
    pub(crate) publisher: String,
    pub(crate) bundle: String,
    /// Whether its bundle is unsigned, under work.
    pub(crate) dev: bool,
    pub(crate) standing: Arc<Standing>,
    pub(crate) routes: Vec<Arc<Route>>,
    pub(crate) icon: Option<Icon>,
    /// The shares of this tool and of its publisher.
    pub(crate) gates: [Arc<Gate>; 2],
}

impl ToolEntry {
    /// The routes by which a call may run.
    pub(crate) fn open_routes(&self) -> impl Iterator<Item = &Arc<Route>> {
        let served = |route: &&Arc<Route>| route.driver.standing.withdrawn().is_none();
        self.routes
            .iter()
            .filter(served)
            .filter(|route| route.is_open())
    }

    /// What the operator believes of what it says of itself, whichever of its
    /// drivers a call goes to.
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

    /// What a call can bring about, whichever of its drivers it goes to.
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
    bundles: HashMap<String, Arc<Standing>>,
}

impl Catalogue {
    /// Builds the catalogue of these bundles, and decides for each tool what it
    /// gets.
    pub(crate) fn build(
        contents: Vec<Content>,
        services: &Services,
        continuity: &Continuity,
        admission: &Admission,
    ) -> Result<Self, HostError> {
        let mut drivers: BTreeMap<String, Arc<LoadedDriver>> = BTreeMap::new();
        let mut found: BTreeMap<String, Found> = BTreeMap::new();
        let mut bundles: HashMap<String, Arc<Standing>> = HashMap::new();
        for content in contents {
            let publisher = content.origin.publisher();
            let dev = content.origin.is_dev();
            let bundle = content.manifest_digest.to_string();
            let standing = bundles
                .entry(bundle.clone())
                .or_insert_with(|| continuity.standing(&bundle))
                .clone();
            let label = format!(
                "{} {} by {publisher}",
                content.manifest.id, content.manifest.version
            );
            let icons = Icons::of(&content);
            for entry in content.drivers {
                let id = entry.driver.id.to_string();
                let loaded = Arc::new(LoadedDriver::new(entry, &bundle, &publisher, &standing));
                if let Some(first) = drivers.insert(id.clone(), loaded) {
                    return Err(HostError::Duplicate {
                        kind: "driver",
                        id,
                        first: format!("one by {}", first.publisher),
                        second: label,
                    });
                }
            }
            for entry in content.tools {
                let id = entry.tool.major_id();
                let tool = Found {
                    icon: icons.for_tool(&entry.tool),
                    contract: entry.tool,
                    publisher: publisher.clone(),
                    bundle: bundle.clone(),
                    standing: standing.clone(),
                    dev,
                };
                if let Some(first) = found.insert(id.clone(), tool) {
                    return Err(HostError::Duplicate {
                        kind: "tool",
                        id,
                        first: format!("one by {}", first.publisher),
                        second: label,
                    });
                }
            }
        }
        let candidates: BTreeMap<String, Candidate> = found
            .iter()
            .map(|(id, tool)| {
                let candidate = Candidate {
                    contract: tool.contract.clone(),
                    major_id: id.clone(),
                    publisher: tool.publisher.clone(),
                    bundle: tool.bundle.clone(),
                    drivers: routes::drivers(&tool.contract, &tool.publisher, &drivers, services),
                };
                (id.clone(), candidate)
            })
            .collect();

        let mut catalogue = Self {
            bundles,
            ..Self::default()
        };
        for (major_id, tool) in found {
            let routes = match candidates.get(&major_id) {
                Some(own) => routes::routes(own, &tool.publisher, &candidates, services),
                None => Vec::new(),
            };
            let entry = Arc::new(ToolEntry {
                full_id: format!("{}@{}", tool.contract.id, tool.contract.version),
                gates: [
                    admission.tool(&tool.publisher, &major_id),
                    admission.publisher(&tool.publisher),
                ],
                publisher: tool.publisher,
                bundle: tool.bundle,
                standing: tool.standing,
                dev: tool.dev,
                contract: tool.contract,
                major_id: major_id.clone(),
                icon: tool.icon,
                routes,
            });
            catalogue.tools.insert(major_id, entry);
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

    /// The tool that another tool means by `name`: `id@major` or an id. Aliases are
    /// for callers outside: what a tool can reach is settled, granted and asked
    /// about by ids.
    pub(crate) fn find_by_id(&self, name: &str) -> Option<&Arc<ToolEntry>> {
        self.find(name)
            .filter(|entry| entry.major_id == name || entry.contract.id.as_str() == name)
    }

    /// The tools that are served.
    pub(crate) fn tools(&self) -> impl Iterator<Item = &Arc<ToolEntry>> {
        let tools = self.tools.values();
        tools.filter(|tool| tool.standing.withdrawn().is_none())
    }

    /// The manifest digests of the bundles that are served.
    pub(crate) fn bundles(&self) -> impl Iterator<Item = &str> {
        let bundles = self.bundles.iter();
        bundles
            .filter(|(_, standing)| standing.withdrawn().is_none())
            .map(|(digest, _)| digest.as_str())
    }
}

/// A contract of a loaded bundle.
struct Found {
    contract: Arc<Tool>,
    publisher: String,
    bundle: String,
    standing: Arc<Standing>,
    dev: bool,
    icon: Option<Icon>,
}
