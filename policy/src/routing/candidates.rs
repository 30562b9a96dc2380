//! Sorts the drivers that may serve a contract, best first, and collects why others may not.

use serde::Serialize;
use toolward_contract::driver::{DriverKind, Implements, Platform};
use toolward_support::report::codes;

use super::rank::{Rank, Standing};
use crate::implementation::{Contract, Implementation, Machine};
use crate::policy::Policy;
use crate::rule::{Rule, RuleFallback};

/// A contract with the drivers that may serve it.
pub(super) struct Candidates<'a> {
    pub(super) contract: Contract<'a>,
    pub(super) fit: Vec<Fit<'a>>,
    pub(super) rejected: Vec<Rejected<'a>>,
}

/// A driver that may serve a contract.
pub(super) struct Fit<'a> {
    pub(super) implementation: Implementation<'a>,
    pub(super) entry: &'a Implements,
    /// Whether it may take over a call after another driver failed.
    pub(super) takes_over: bool,
    /// Drivers with the same number rank equal and are ordered only by their ids.
    pub(super) tie: usize,
}

/// A driver that claims to implement a contract but may not serve it.
#[derive(Debug, Clone)]
pub struct Rejected<'a> {
    /// The driver.
    pub implementation: Implementation<'a>,
    /// All reasons, at least one.
    pub reasons: Vec<Rejection>,
}

impl<'a> Candidates<'a> {
    /// Splits the drivers that name the contract into drivers that may serve it, best first, and
    /// others.
    pub(super) fn of(
        contract: Contract<'a>,
        drivers: &[Implementation<'a>],
        policy: &Policy,
        machine: &Machine,
    ) -> Self {
        let mut candidates = Self {
            contract,
            fit: Vec::new(),
            rejected: Vec::new(),
        };
        let tool = contract.tool;
        let mut ranked: Vec<(Rank<'a>, Fit<'a>)> = Vec::new();
        for implementation in drivers {
            let driver = implementation.driver;
            let named = driver.implements.iter();
            let named = named.filter(|entry| entry.is_of(tool.id.as_str()));
            let implemented: Vec<String> = named.map(|entry| entry.version_text.clone()).collect();
            if implemented.is_empty() {
                continue;
            }
            let implements = driver.implements_tool(tool.id.as_str(), &tool.version);
            let mut reasons = Vec::new();
            let binding = Binding::of(&contract, implementation, policy);
            if binding.is_none() {
                reasons.push(Rejection::NotBound);
            }
            if implements.is_none() {
                reasons.push(Rejection::Version {
                    implemented,
                    found: tool.version.to_string(),
                });
            }
            let kind = || driver.kind.as_str().to_owned();
            if !machine.runs(driver.kind) {
                reasons.push(Rejection::KindNotRun { kind: kind() });
            }
            if !tool.driver_constraints.permits(driver.kind.as_str()) {
                reasons.push(Rejection::KindForbidden { kind: kind() });
            }
            let denied = driver.denied.iter();
            reasons.extend(denied.map(|denied| Rejection::TransportDenied {
                rule: denied.code.to_owned(),
                message: denied.message.clone(),
            }));
            reasons.extend(lacks(machine, &driver.platform));
            reasons.extend(policy.tables.resolve.rejects(implementation));
            match (implements, binding) {
                (Some(entry), Some(binding)) if reasons.is_empty() => {
                    let rank = Rank::of(&contract, implementation, entry, binding.standing);
                    let fit = Fit {
                        implementation: *implementation,
                        entry,
                        takes_over: policy.tables.resolve.fallback() && binding.fallback,
                        tie: 0,
                    };
                    ranked.push((rank, fit));
                }
                _ => candidates.rejected.push(Rejected {
                    implementation: *implementation,
                    reasons,
                }),
            }
        }
        ranked.sort_by(|(a, _), (b, _)| a.compare(b));
        let mut before: Option<(Rank<'a>, &'a str, usize)> = None;
        for (rank, mut fit) in ranked {
            let publisher = fit.implementation.publisher;
            fit.tie = match &before {
                None => 0,
                Some((last, of, tie)) if last.ties(&rank) && *of == publisher => *tie,
                Some((_, _, tie)) => tie.saturating_add(1),
            };
            before = Some((rank, publisher, fit.tie));
            candidates.fit.push(fit);
        }
        let rejected = &mut candidates.rejected;
        rejected.sort_by_key(|one| one.implementation.driver.id.as_str());
        candidates
    }
}

/// The requirements of a driver that this machine does not meet. The required disk space is
/// ignored.
fn lacks(machine: &Machine, platform: &Platform) -> Vec<Rejection> {
    let mut lacks = Vec::new();
    if !platform.runs_on_os(&machine.os) {
        lacks.push(Rejection::Os {
            needed: platform.os.clone(),
            found: machine.os.clone(),
        });
    }
    if !platform.runs_on_arch(&machine.arch) {
        lacks.push(Rejection::Arch {
            needed: platform.arch.clone(),
            found: machine.arch.clone(),
        });
    }
    let needed = platform.min_memory_mb.unwrap_or(0);
    if needed.saturating_mul(1 << 20) > machine.memory_bytes {
        lacks.push(Rejection::Memory {
            needed_mb: needed,
            maximum_bytes: machine.memory_bytes,
        });
    }
    lacks
}

/// The binding of a driver to a contract that it may serve.
struct Binding {
    standing: Standing,
    /// Whether it may take over calls.
    fallback: bool,
}

impl Binding {
    /// A driver of the contract's own publisher needs no rule. Another publisher's driver needs a
    /// rule for the contract that names both the driver and its publisher; `None` without such a
    /// rule.
    fn of(
        contract: &Contract<'_>,
        implementation: &Implementation<'_>,
        policy: &Policy,
    ) -> Option<Self> {
        if implementation.publisher == contract.publisher {
            return Some(Self {
                standing: Standing::Own,
                fallback: true,
            });
        }
        let binds = |rule: &&Rule| {
            rule.is_about(contract)
                && rule.driver.as_deref() == Some(implementation.driver.id.as_str())
                && rule.driver_publisher.as_str() == implementation.publisher
        };
        let mut found = None;
        for rule in policy.grants().filter(binds) {
            let binding = found.get_or_insert(Self {
                standing: Standing::Bound,
                fallback: false,
            });
            binding.fallback |= rule.fallback == RuleFallback::Bound;
            if rule.prefer {
                binding.standing = Standing::Preferred;
            }
        }
        found
    }
}

codes! {
    /// Why a driver may not serve a contract, no matter what capabilities it is granted.
    #[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
    #[serde(rename_all = "kebab-case", tag = "code")]
    pub enum Rejection: Error {
        /// No rule for the contract names the driver and its publisher.
        NotBound = "not-bound",
            "it is another publisher's, and no [[grant]] binds it to this tool by `driver` and `driver_publisher`";
        Version { implemented: Vec<String>, found: String } = "version", "it implements other versions of the contract",
            ("it implements {}, and the contract has version {found}", implemented.join(" and "));
        KindNotRun { kind: String } = "kind-not-run", "no host runs drivers of this kind",
            ("it is of kind {kind}, and this host runs {}", DriverKind::run_names("and"));
        KindForbidden { kind: String } = "kind-forbidden", "the contract's `driver_constraints` do not permit its kind",
            ("it is of kind {kind}, which the contract's driver_constraints do not permit");
        /// `rule` is the code of the rule that the transport breaks; `message` describes the
        /// violation.
        TransportDenied { rule: String, message: String } = "transport-denied", "its transport in tools.json is denied",
            ("its transport in tools.json is denied: {message} [{rule}]");
        Os { needed: Vec<String>, found: String } = "os", "it runs on other operating systems",
            ("it needs {}, and this host runs {found}", needed.join(" or "));
        Arch { needed: Vec<String>, found: String } = "arch", "it runs on other processors",
            ("it needs {}, and this host is {found}", needed.join(" or "));
        Memory { needed_mb: u64, maximum_bytes: u64 } = "memory",
            "it needs more memory than the operator lets one call have",
            ("it needs {needed_mb} MiB of memory, and a call gets at most {} MiB", maximum_bytes >> 20);
        /// `[resolve]` requires one of the regions in `needed`.
        Region { needed: Vec<String>, claimed: Vec<String> } = "region",
            "it reaches the network, and claims none of the regions that `[resolve]` asks for",
            (
                "it reaches the network, [resolve] asks for the region {}, and its own is: {}",
                needed.join(" or "),
                match claimed.as_slice() {
                    [] => "global, by default".to_owned(),
                    claimed => claimed.join(", "),
                }
            );
        /// It reaches the network, and `[resolve]` accepts the region that it claims.
        RegionNotBelieved { claimed: String } = "region-not-believed",
            "it claims a region, and `[resolve]` does not believe its publisher",
            ("it claims the region {claimed}, and [resolve] does not believe its publisher");
        TagDenied { tag: String } = "tag-denied", "it has a policy tag that `[resolve]` denies",
            ("its policy tag {tag} is one that [resolve] denies");
        TagMissing = "tag-missing", "it has none of the policy tags that [resolve] allows";
        /// `[resolve]` allows the tag that it claims.
        TagNotBelieved { tag: String } = "tag-not-believed",
            "it claims a policy tag, and `[resolve]` does not believe its publisher",
            ("it claims the policy tag {tag}, and [resolve] does not believe its publisher");
    }
}

impl Rejection {
    /// Whether it is about the region alone.
    pub fn is_regional(&self) -> bool {
        matches!(self, Self::Region { .. } | Self::RegionNotBelieved { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_a_rejection_is_the_one_in_its_json() {
        let text = String::new;
        let kind = text();
        for rejection in [
            Rejection::NotBound,
            Rejection::Version {
                implemented: Vec::new(),
                found: text(),
            },
            Rejection::KindNotRun { kind: kind.clone() },
            Rejection::KindForbidden { kind },
            Rejection::TransportDenied {
                rule: text(),
                message: text(),
            },
            Rejection::Os {
                needed: Vec::new(),
                found: text(),
            },
            Rejection::Arch {
                needed: Vec::new(),
                found: text(),
            },
            Rejection::Memory {
                needed_mb: 1,
                maximum_bytes: 0,
            },
            Rejection::Region {
                needed: Vec::new(),
                claimed: Vec::new(),
            },
            Rejection::RegionNotBelieved { claimed: text() },
            Rejection::TagDenied { tag: text() },
            Rejection::TagMissing,
            Rejection::TagNotBelieved { tag: text() },
        ] {
            let json = serde_json::to_value(&rejection).expect("JSON");
            assert_eq!(json["code"], rejection.code());
        }
    }
}
