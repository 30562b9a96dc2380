//! Compares contracts and drivers with an earlier release (AIP-14, "Stable identity"). Within a
//! major version, the values that callers may send and the values that they get must stay
//! compatible. Additions to `mutates` and `requires` of a contract are also reported, and so are
//! inputs and outputs that a driver drops.

mod subset;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use toolward_bundle::dev::bundle_toml;
use toolward_bundle::documents::{Documents, Located};
use toolward_bundle::files::Files;
use toolward_bundle::locate::about_file;
use toolward_bundle::{ReadError, codes, inspect};
use toolward_contract::Outline;
use toolward_contract::diagnostic::{Diagnostic, Position};
use toolward_contract::driver::Driver;
use toolward_contract::schema::Schema;
use toolward_contract::tool::Tool;
use toolward_support::report::Code;

use self::subset::{Difference, What, differences};
use crate::lints::{finding, outline};

/// The contracts and drivers of an earlier release. Its signatures are not checked, since it is the
/// author's own release.
#[derive(Debug)]
pub struct Earlier {
    /// The id of the bundle.
    pub id: String,
    tools: BTreeMap<String, Arc<Tool>>,
    drivers: BTreeMap<String, Arc<Driver>>,
}

impl Earlier {
    /// Reads a bundle: a directory or an archive.
    ///
    /// # Errors
    /// If `path` is not a bundle, or its contracts can't be read.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        let release = inspect::release(path)?;
        let tools = release.tools.into_iter();
        let drivers = release.drivers.into_iter();
        Ok(Self {
            id: release.id,
            tools: tools.map(|tool| (tool.major_id(), tool)).collect(),
            drivers: drivers.map(|driver| (driver.major_id(), driver)).collect(),
        })
    }

    /// Returns the earlier contract with the id and the major version of `tool`; otherwise the
    /// newest contract with the id.
    fn of(&self, tool: &Tool) -> Option<&Arc<Tool>> {
        let newest = || {
            let tools = self.tools.values().filter(|one| one.id == tool.id);
            tools.max_by(|a, b| a.version.cmp(&b.version))
        };
        self.tools.get(&tool.major_id()).or_else(newest)
    }

    /// Finds contracts that are gone or have a lower version, and incompatible changes without a
    /// new major version.
    pub(crate) fn compare(&self, documents: &Documents, files: &Files) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for earlier in self.tools.values() {
            let id = earlier.id.as_str();
            if !documents.may_have_tool(id) {
                let message = format!("{id} {} is gone: its callers find no tool", earlier.version);
                let hint = "keep the contract, or give it to another bundle under the same id";
                let (file, code) = (bundle_toml::FILE, &codes::CONTRACT_GONE);
                found.push(about_file(file, code, message, hint));
            }
        }
        for tool in &documents.tools {
            let Some(earlier) = self.of(&tool.value) else {
                continue;
            };
            let (old, new) = (&earlier.version, &tool.value.version);
            if new < old {
                found.push(lowered(earlier, tool, files));
            }
            if line(old.major, old.minor) == line(new.major, new.minor) {
                let mut contracts = Contracts {
                    earlier,
                    tool,
                    outline: outline(files, &tool.path),
                    found: &mut found,
                };
                contracts.compare();
            }
        }
        for driver in &documents.drivers {
            if let Some(earlier) = self.drivers.get(&driver.value.major_id()) {
                found.extend(dropped(earlier, driver));
            }
        }
        found
    }
}

/// The finding that a contract has a lower version than before.
fn lowered(earlier: &Tool, tool: &Located<Tool>, files: &Files) -> Diagnostic {
    let (old, new) = (&earlier.version, &tool.value.version);
    let message = format!("{} is {new}, lower than {old} before", earlier.id);
    let hint = format!("give the contract a version above {old}");
    let at = (&*tool.path, "/version");
    finding(files, &codes::CONTRACT_LOWERED, at, message, hint)
}

/// Returns the release line of a version. Within one line, a later release promises to be
/// compatible. Before 1.0.0 each minor version is a separate line (semver.org, 4).
fn line(major: u64, minor: u64) -> (u64, u64) {
    match major {
        0 => (0, minor),
        major => (major, 0),
    }
}

/// A contract and its earlier form, with the findings so far.
struct Contracts<'c> {
    earlier: &'c Tool,
    tool: &'c Located<Tool>,
    outline: Option<Outline>,
    found: &'c mut Vec<Diagnostic>,
}

impl Contracts<'_> {
    fn compare(&mut self) {
        let (old, new) = (self.earlier, &self.tool.value);
        self.narrowed("inputs", &old.inputs, &new.inputs);
        self.narrowed("outputs", &old.outputs, &new.outputs);
        match (&old.context_schema, &new.context_schema) {
            (Some(old), Some(new)) => self.narrowed("contextSchema", old, new),
            (None, Some(_)) => {
                let at = ("contextSchema", "", "");
                self.add(&codes::CONTRACT_NARROWED, at, "is there");
            }
            (_, None) => {}
        }
        // A caller, or a driver of another bundle, may rely on the earlier, smaller set.
        let (before, now) = (&old.requires.capabilities, &new.requires.capabilities);
        for (field, gained) in [
            ("mutates", old.mutates.missing(&new.mutates)),
            ("requires", before.missing(now)),
        ] {
            if !gained.is_empty() {
                let gained: Vec<String> = gained.iter().map(ToString::to_string).collect();
                let says = format!("has {}", gained.join(", "));
                let code = &codes::CONTRACT_EFFECTS_ADDED;
                self.add(code, (field, "", ""), &says);
            }
        }
        if new.timeout < old.timeout {
            let says = format!("is shorter than {} ms", old.timeout.as_millis());
            let at = ("timeout_ms", "", "");
            self.add(&codes::CONTRACT_TIMEOUT_SHORTER, at, &says);
        }
        // Values that callers get now but did not get before.
        let now = differences(new.outputs.closed(), old.outputs.closed());
        for Difference { inner, what, .. } in now {
            let code = &codes::CONTRACT_WIDENED;
            self.differs(("outputs", &inner), &what, (code, widening));
        }
    }

    /// Finds values that were valid but no longer are.
    fn narrowed(&mut self, field: &str, old: &Schema, new: &Schema) {
        for Difference { outer, what, .. } in differences(old.closed(), new.closed()) {
            let code = &codes::CONTRACT_NARROWED;
            self.differs((field, &outer), &what, (code, narrowing));
        }
    }

    /// Adds a finding about a difference in the schema of a field. Adds nothing if `text` has no
    /// description for the difference.
    fn differs(
        &mut self,
        (field, pointer): (&str, &str),
        what: &What,
        (code, text): (&Code, fn(&What) -> Option<String>),
    ) {
        let code = match what {
            What::Unclear(_) => &codes::CONTRACT_CHANGED,
            _ => code,
        };
        if let Some(says) = text(what) {
            self.add(code, (field, pointer, what.keyword()), &says);
        }
    }

    fn add(&mut self, code: &Code, (field, pointer, keyword): (&str, &str, &str), says: &str) {
        let at = format!("/{field}{pointer}");
        let place = self.outline.as_ref();
        let place = place.map_or(Position::START, |outline| {
            outline.position(&format!("{at}/{keyword}"))
        });
        let (old, new) = (&self.earlier.version, &self.tool.value.version);
        let message = format!("`{at}` {says}, unlike {} {old}", self.earlier.id);
        let next = match old.major {
            0 => format!("0.{}.0", old.minor + 1),
            major => format!("{}.0.0", major + 1),
        };
        let one = Diagnostic::new(code, &self.tool.path, place, message).with_hint(format!(
            "give the contract the version {next} instead of {new}, or keep what {old} has"
        ));
        // A keyword that can't be compared differs in both directions, but is reported once.
        if !self.found.contains(&one) {
            self.found.push(one);
        }
    }
}

/// Describes the values that a schema allows now but did not allow before. Added properties don't
/// count.
fn widening(what: &What) -> Option<String> {
    Some(match what {
        What::Type(name) => format!("gives {name}"),
        What::Values => "gives other values".to_owned(),
        What::Bound(keyword) => format!("has a wider `{keyword}`"),
        What::Added(keyword) => format!("gives values that `{keyword}` did not allow"),
        What::Required(name) => format!("may lack {name:?}"),
        What::Unnamed(name) => format!("does not name {name:?}"),
        What::Unclear(keyword) => format!("has another `{keyword}`"),
        What::Property(_) | What::Others => return None,
    })
}

/// Describes the values that a schema no longer allows.
fn narrowing(what: &What) -> Option<String> {
    Some(match what {
        What::Type(name) => format!("does not allow {name}"),
        What::Values => "does not allow all values".to_owned(),
        What::Bound(keyword) => format!("has a narrower `{keyword}`"),
        What::Added(keyword) => format!("has a `{keyword}` that does not allow all values"),
        What::Required(name) => format!("requires {name:?}"),
        What::Property(name) => format!("does not allow the property {name:?}"),
        What::Others => "does not allow properties that it does not name".to_owned(),
        What::Unclear(keyword) => format!("has another `{keyword}`"),
        What::Unnamed(_) => return None,
    })
}

/// Finds inputs and outputs that a driver supported before and drops in the same major version.
fn dropped(old: &Driver, new: &Located<Driver>) -> Vec<Diagnostic> {
    let driver = &new.value;
    let (before, now) = (&old.version, &driver.version);
    if line(before.major, before.minor) != line(now.major, now.minor) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for entry in &driver.implements {
        let mut earlier = old.implements.iter();
        let Some(earlier) = earlier.find(|earlier| earlier.named() == entry.named()) else {
            continue;
        };
        let lists = [
            ("drop_inputs", &earlier.drop_inputs, &entry.drop_inputs),
            ("drop_outputs", &earlier.drop_outputs, &entry.drop_outputs),
        ];
        for (field, earlier, dropped) in lists {
            let added = dropped.iter().filter(|name| !earlier.contains(name));
            found.extend(added.map(|name| {
                let (tool, id) = (entry.named(), &driver.id);
                let message = format!("`{field}` of {tool} has {name:?}, unlike {id} {before}");
                Diagnostic::new(&codes::DRIVER_DROPS_ADDED, &new.path, entry.at, message)
                    .with_hint("give the driver a new major version, or carry the value as before")
            }));
        }
    }
    found
}
