//! Drivers in short.

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};
use toolward_contract::driver::{Driver, Implements};
use toolward_contract::tool::{CostClass, Tool};
use toolward_signing::digest::Digest;

use super::names;
use crate::component::{Component, Surface};
use crate::declared::Difference;

/// A driver in short.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct DriverView {
    /// Its id.
    pub id: String,
    /// Its version.
    pub version: String,
    /// Its kind.
    pub kind: String,
    /// The contracts that it says it implements, with version ranges.
    pub implements: Vec<String>,
    /// The hosts that it says it talks to.
    pub egress: Vec<String>,
    /// What it needs beyond its contracts.
    pub requires: Vec<String>,
    /// Where its publisher describes its secrets (`auth.ref`), for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_ref: Option<String>,
    /// For a declarative driver, what the host does for it: the method and URL of a request, with
    /// placeholders, or the program that it has run outside the sandbox.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<String>,
    /// The regions that it claims to serve; none: `global`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub region: Vec<String>,
    /// The labels for policies that it claims.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub policy_tags: Vec<String>,
    /// `streaming`, `rate_limit` and `health_check`, as written: no call depends on them.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub unused: Map<String, Value>,
    /// What calls cost through it, where it says so: the contract's id and the cost, which has no class where the
    /// contract's holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<CostView>,
    /// The fields that only drivers of its kind have, where no host runs the kind; those of its entries by the
    /// contract.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub fields: Map<String, Value>,
    /// Its component, where it has one to look at; whether a host takes it is
    /// among the problems.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub component: Option<ComponentView>,
}

/// What a driver says of the cost of a contract's calls.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct CostView {
    /// The contract, as the driver names it.
    pub tool: String,
    /// Cost of a call, where the driver states one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub units_per_call: Option<f64>,
    /// The currency, where the driver states one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// The cost class, where the driver replaces the contract's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<CostClass>,
}

impl fmt::Display for CostView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.tool)?;
        if let Some(units) = self.units_per_call {
            write!(f, " {units}")?;
        }
        if let Some(currency) = &self.currency {
            write!(f, " {currency}")?;
        }
        match self.class {
            Some(class) => write!(f, ", {class}"),
            None => Ok(()),
        }
    }
}

/// A component in short.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ComponentView {
    /// Its file.
    pub path: String,
    /// BLAKE3 of its bytes.
    pub digest: Digest,
    /// Its length in bytes.
    pub size: u64,
    /// What it imports.
    pub imports: Vec<String>,
    /// What it exports.
    pub exports: Vec<String>,
    /// Where that and the declarations part.
    pub difference: Difference,
}

pub(super) fn driver_view<'t>(
    driver: &Driver,
    component: Option<&Component>,
    tools: impl Iterator<Item = &'t Tool> + Clone,
) -> DriverView {
    let requests = driver.implements.iter();
    let requests = requests.filter_map(|entry| request(driver, entry));
    let auth_ref = driver.auth.as_ref().and_then(|auth| auth.get("ref"));
    DriverView {
        id: driver.id.to_string(),
        version: driver.version.to_string(),
        kind: driver.kind.to_string(),
        implements: driver
            .implements
            .iter()
            .map(|entry| format!("{} {}", entry.named(), entry.version))
            .collect(),
        egress: names(&driver.egress),
        requires: names(&driver.requires.capabilities),
        auth_ref: auth_ref.and_then(Value::as_str).map(str::to_owned),
        requests: requests.collect(),
        region: driver.region.clone(),
        policy_tags: driver.policy_tags.clone(),
        unused: unused(driver),
        costs: costs(driver),
        fields: kind_fields(driver),
        component: component.map(|component| {
            let difference = Difference::of(&component.surface, driver, tools);
            component_view(component, &component.surface, difference)
        }),
    }
}

/// The request of an entry as it is written: nothing is encoded.
fn request(driver: &Driver, entry: &Implements) -> Option<String> {
    if let Some(program) = &entry.program {
        let words = std::iter::once(&program.command).chain(&program.args);
        let words: Vec<&str> = words.map(String::as_str).collect();
        return Some(format!("RUN {}", words.join(" ")));
    }
    let method = entry.http.as_ref()?.method.as_str();
    let origin = driver.origin()?;
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    // A transport of tools.json has its URL in one piece.
    if let Some(url) = text(driver.request_defaults.get("url")) {
        return Some(format!("{method} {url}"));
    }
    let written = entry.metadata.get("http");
    let base = text(driver.request_defaults.get("base_url"));
    let base = base.unwrap_or_else(|| format!("https://{origin}"));
    let endpoint = text(written.and_then(|http| http.get("endpoint"))).unwrap_or_default();
    let mut url = format!("{}{endpoint}", base.trim_end_matches('/'));
    let query = written.and_then(|http| http.get("query_template")?.as_object());
    for (name, value) in query.into_iter().flatten() {
        url.push(if url.contains('?') { '&' } else { '?' });
        url.extend([name, "=", value.as_str().unwrap_or_default()]);
    }
    Some(format!("{method} {url}"))
}

/// What clients may read and no call depends on.
fn unused(driver: &Driver) -> Map<String, Value> {
    let health = driver.health_check.clone().map(Value::Object);
    let health = health.map(|health| ("health_check".to_owned(), health));
    driver.hints.clone().into_iter().chain(health).collect()
}

fn kind_fields(driver: &Driver) -> Map<String, Value> {
    let own = driver.kind_fields.clone();
    let entries = driver.implements.iter();
    let entries = entries.filter(|entry| !entry.kind_fields.is_empty());
    let entries = entries.map(|entry| {
        let key = format!("implements {}", entry.named());
        (key, Value::Object(entry.kind_fields.clone()))
    });
    own.into_iter().chain(entries).collect()
}

fn costs(driver: &Driver) -> Vec<CostView> {
    let own = &driver.cost_override;
    let view = |entry: &Implements| {
        let cost = &entry.cost_override;
        let currency = cost.currency.as_ref().or(own.currency.as_ref());
        let view = CostView {
            tool: entry.named().to_owned(),
            units_per_call: cost.cost_units_per_call.or(own.cost_units_per_call),
            currency: currency.cloned(),
            class: cost.cost_class.or(own.cost_class),
        };
        let says = view.units_per_call.is_some() || view.class.is_some();
        says.then_some(view)
    };
    driver.implements.iter().filter_map(view).collect()
}

fn component_view(
    component: &Component,
    surface: &Surface,
    difference: Difference,
) -> ComponentView {
    ComponentView {
        path: component.path.clone(),
        digest: component.digest,
        size: surface.size,
        imports: surface.imports.clone(),
        exports: surface
            .exports
            .iter()
            .map(|export| export.name.clone())
            .collect(),
        difference,
    }
}
