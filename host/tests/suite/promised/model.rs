//! A small model of DESIGN section 7, written from its text and from the book's page about
//! policies, independently of the library's code. It knows only the few capabilities that the sets
//! contain.

use std::collections::BTreeSet;

use super::sets::{Set, SetDriver, SetRule, SetTool};

/// The policy's outcome for one tool with one driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Blocked,
    Asks,
    Runs,
}

/// The effects that a call can have.
#[derive(Debug, Clone, Copy, Default)]
struct Effects {
    writes: bool,
    risk: u8,
    always: bool,
}

impl Effects {
    fn of(tool: &SetTool) -> Self {
        Self {
            writes: !tool.writes.is_empty(),
            risk: tool.risk,
            always: tool.approval == "always",
        }
    }

    fn join(self, other: Self) -> Self {
        Self {
            writes: self.writes || other.writes,
            risk: self.risk.max(other.risk),
            always: self.always || other.always,
        }
    }
}

/// One required capability.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Asked {
    capability: String,
    writes: bool,
    by_driver: bool,
}

/// Whether `wide` contains everything in `narrow`.
pub(super) fn covers(wide: &str, narrow: &str) -> bool {
    let host = |text: &str| text.starts_with("network:");
    wide == narrow
        || (wide == "network:*.example" && host(narrow))
        || (wide == "workspace:/notes" && narrow == "workspace:/notes/sub")
}

/// The intersection of two host patterns.
fn common(a: &str, b: &str) -> Option<String> {
    if covers(a, b) {
        Some(b.to_owned())
    } else {
        covers(b, a).then(|| a.to_owned())
    }
}

fn is_unknown(capability: &str) -> bool {
    ["storage:", "audit:"]
        .iter()
        .any(|class| capability.starts_with(class))
}

impl Set {
    /// The drivers that may serve a tool, in the order in which a host takes them.
    pub(super) fn serving(&self, tool: &SetTool) -> Vec<&SetDriver> {
        let bound = |driver: &SetDriver| {
            self.rules.iter().any(|rule| {
                rule.publisher == tool.publisher
                    && rule.driver_publisher == driver.publisher
                    && rule.driver.as_ref() == Some(&driver.id)
                    && rule.tool.as_ref().is_none_or(|id| *id == tool.id)
            })
        };
        let drivers = self.drivers.iter().filter(|driver| {
            let implements = driver.implements.contains(&(tool.id.clone(), tool.major));
            let here = driver.os.is_none_or(|os| os == std::env::consts::OS);
            let whose = driver.publisher == tool.publisher || bound(driver);
            implements && here && whose && driver.runs && !tool.forbids_components
        });
        let mut drivers: Vec<&SetDriver> = drivers.collect();
        drivers.sort_by_key(|driver| {
            let default = tool.default.as_ref() == Some(&driver.id);
            (
                !default,
                driver.publisher != tool.publisher,
                driver.cost.is_none(),
                driver.cost,
                driver.id.clone(),
            )
        });
        drivers
    }

    /// The rules that match a tool and a driver.
    pub(super) fn about(&self, tool: &SetTool, driver: &SetDriver) -> Vec<&SetRule> {
        let rules = self.rules.iter().filter(|rule| {
            rule.publisher == tool.publisher
                && rule.driver_publisher == driver.publisher
                && rule.driver.as_ref().is_none_or(|id| *id == driver.id)
                && rule.tool.as_ref().is_none_or(|id| *id == tool.id)
        });
        rules.collect()
    }

    fn asked(&self, tool: &SetTool, driver: &SetDriver) -> BTreeSet<Asked> {
        let narrowed = |capability: &str| -> Vec<String> {
            if !capability.starts_with("network:") {
                return vec![capability.to_owned()];
            }
            let parts = driver.egress.iter();
            parts.filter_map(|host| common(capability, host)).collect()
        };
        let changed = |capability: &str| {
            !capability.starts_with("secret:")
                && tool.writes.iter().any(|wide| covers(wide, capability))
        };
        let declared = |capability: &str| tool.reads.iter().any(|wide| covers(wide, capability));
        let reads = tool.reads.iter().filter(|one| !changed(one));
        let adds = driver
            .adds
            .iter()
            .filter(|one| !changed(one) && !declared(one));
        let mut asked = BTreeSet::new();
        for (all, writes, by_driver) in [
            (reads.collect::<Vec<_>>(), false, false),
            (tool.writes.iter().collect(), true, false),
            (adds.collect(), false, true),
        ] {
            for capability in all.into_iter().flat_map(|one| narrowed(one)) {
                asked.insert(Asked {
                    capability,
                    writes,
                    by_driver,
                });
            }
        }
        asked
    }

    /// The rules that grant a part.
    fn giving<'r>(&self, rules: &[&'r SetRule], asked: &Asked) -> Vec<&'r SetRule> {
        let capability = asked.capability.as_str();
        let gives = |rule: &&&SetRule| {
            let named = !asked.by_driver || rule.driver.is_some();
            let any = |all: &[String]| all.iter().any(|wide| covers(wide, capability));
            let secret = capability.starts_with("secret:");
            let accepted = rule.accepts.iter().any(|class| {
                asked.writes
                    && capability
                        .strip_prefix(class)
                        .is_some_and(|rest| rest.starts_with(':'))
            });
            named
                && (accepted
                    || (any(&rule.mutates) && (asked.writes || !secret))
                    || (any(&rule.requires) && !asked.writes))
        };
        rules.iter().filter(gives).copied().collect()
    }

    /// Whether the other tables provide a part, too, and no deny matches it.
    fn is_possible(&self, tool: &SetTool, driver: &SetDriver, asked: &Asked) -> bool {
        let capability = asked.capability.as_str();
        let denied = self.denies.iter().any(|deny| {
            let about = deny
                .publisher
                .is_none_or(|own| [tool.publisher, driver.publisher].contains(&own))
                && deny.tool.as_ref().is_none_or(|id| *id == tool.id);
            let overlaps = deny.capability.is_some_and(|denied| {
                let reaches = capability == "external:mail"
                    && self.service
                    && driver
                        .egress
                        .iter()
                        .any(|host| covers(host, "network:a.example"))
                    && covers(denied, "network:a.example");
                reaches || covers(denied, capability) || covers(capability, denied)
            });
            about && overlaps
        });
        let whose = if asked.by_driver {
            driver.publisher
        } else {
            tool.publisher
        };
        let there = match capability {
            "workspace:/notes" | "workspace:/notes/sub" => self.notes,
            // Its directory does not exist.
            "workspace:/gone" => false,
            "secret:token" => self.secret == Some(whose),
            "external:mail" => self.service,
            _ => true,
        };
        there && !denied
    }

    /// The effects that a call of `tool` through `driver` can reach through `requires.tools`.
    fn reached(&self, tool: &SetTool, driver: &SetDriver) -> Effects {
        let called = |tool: &SetTool, driver: &SetDriver| -> Vec<String> {
            let all = tool.reads.iter().chain(&driver.adds);
            all.filter_map(|one| one.strip_prefix("tool:"))
                .map(str::to_owned)
                .collect()
        };
        let (mut open, mut seen) = (called(tool, driver), BTreeSet::new());
        let mut effects = Effects::default();
        while let Some(id) = open.pop() {
            if !seen.insert(id.clone()) {
                continue;
            }
            for tool in self.tools.iter().filter(|tool| tool.id == id) {
                for driver in self.serving(tool) {
                    effects = effects.join(Effects::of(tool));
                    open.extend(called(tool, driver));
                }
            }
        }
        effects
    }

    pub(super) fn outcome(&self, tool: &SetTool, driver: &SetDriver) -> Outcome {
        let whole = self.denies.iter().any(|deny| {
            deny.capability.is_none()
                && deny
                    .publisher
                    .is_none_or(|own| [tool.publisher, driver.publisher].contains(&own))
                && deny.tool.as_ref().is_none_or(|id| *id == tool.id)
        });
        let (rules, asked) = (self.about(tool, driver), self.asked(tool, driver));
        let given = |one: &Asked| {
            self.is_possible(tool, driver, one) && !self.giving(&rules, one).is_empty()
        };
        if whole || !asked.iter().all(given) {
            return Outcome::Blocked;
        }
        let (own, reached) = (Effects::of(tool), self.reached(tool, driver));
        let both = own.join(reached);
        if both.always || both.risk == 3 || rules.iter().any(|rule| rule.always) {
            return Outcome::Asks;
        }
        if !both.writes && both.risk < 2 {
            return Outcome::Runs;
        }
        // A written approval of the operator (`preapproved`) lets the call run without asking.
        let through_tools = reached.writes || reached.risk >= 2;
        let matters = |one: &&Asked| {
            own.risk >= 2 || one.writes || (through_tools && one.capability.starts_with("tool:"))
        };
        let mut needed: Vec<&Asked> = asked.iter().filter(matters).collect();
        if needed.is_empty() {
            needed = asked.iter().collect();
        }
        let preapproved = if needed.is_empty() {
            rules
                .iter()
                .any(|rule| rule.preapproved && rule.tool.is_some())
        } else {
            needed
                .iter()
                .all(|one| self.giving(&rules, one).iter().any(|rule| rule.preapproved))
        };
        if preapproved {
            Outcome::Runs
        } else {
            Outcome::Asks
        }
    }

    /// Whether a capability is declared for a tool with a driver, and granted by some matching
    /// rule: the upper bound of a grant. `writes` means that it may be changed.
    pub(super) fn may_have(
        &self,
        tool: &SetTool,
        driver: &SetDriver,
        capability: &str,
        writes: bool,
    ) -> bool {
        let any = |all: &[String]| all.iter().any(|wide| covers(wide, capability));
        let declared = any(&tool.writes) || (!writes && (any(&tool.reads) || any(&driver.adds)));
        let given = self
            .about(tool, driver)
            .into_iter()
            .any(|rule| any(&rule.mutates) || (!writes && any(&rule.requires)));
        let within = !capability.starts_with("network:") || any(&driver.egress);
        // A service's name grants its hosts.
        let by_service = capability == "network:a.example"
            && self.service
            && any(&driver.egress)
            && tool.writes.iter().any(|one| one == "external:mail")
            && (self.about(tool, driver).iter())
                .any(|rule| rule.mutates.iter().any(|one| one == "external:mail"));
        by_service || (declared && given && within && !is_unknown(capability))
    }
}
