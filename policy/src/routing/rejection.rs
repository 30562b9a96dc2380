//! Why a driver that names a contract may not serve it. What a grant lacks is decided elsewhere.

use serde::Serialize;

/// Why a driver may not serve a contract, independent of grants.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, thiserror::Error)]
#[serde(rename_all = "kebab-case", tag = "code")]
#[non_exhaustive]
pub enum Rejection {
    /// It is another publisher's, and no rule for the contract names the driver and its publisher.
    #[error(
        "it is another publisher's, and no [[grant]] binds it to this tool by `driver` and `driver_publisher`"
    )]
    NotBound,
    /// It implements other versions of the contract.
    #[error("it implements {}, and the contract has version {found}", .implemented.join(" and "))]
    Version {
        /// The ranges that it implements.
        implemented: Vec<String>,
        /// The contract's version.
        found: String,
    },
    /// No host runs drivers of this kind.
    #[error("it is of kind {kind}, and this host runs component, http and form")]
    KindNotRun {
        /// The driver's kind.
        kind: String,
    },
    /// The contract's `driver_constraints` do not permit its kind.
    #[error("it is of kind {kind}, which the contract's driver_constraints do not permit")]
    KindForbidden {
        /// The driver's kind.
        kind: String,
    },
    /// The transport of tools.json that it stands for is denied.
    #[error("its transport in tools.json is denied: {message} [{rule}]")]
    TransportDenied {
        /// The code of the rule that the transport breaks.
        rule: String,
        /// How it breaks it.
        message: String,
    },
    /// It runs on other operating systems.
    #[error("it needs {}, and this host runs {found}", .needed.join(" or "))]
    Os {
        /// Those that it names.
        needed: Vec<String>,
        /// The host's.
        found: String,
    },
    /// It runs on other processors.
    #[error("it needs {}, and this host is {found}", .needed.join(" or "))]
    Arch {
        /// Those that it names.
        needed: Vec<String>,
        /// The host's.
        found: String,
    },
    /// It needs more memory than the operator lets one call have.
    #[error("it needs {needed_mb} MiB of memory, and a call gets at most {} MiB", .maximum_bytes >> 20)]
    Memory {
        /// What it needs, in MiB.
        needed_mb: u64,
        /// The operator's maximum.
        maximum_bytes: u64,
    },
    /// It reaches the network, and claims none of the regions that `[resolve]` asks for.
    #[error("it reaches the network, [resolve] asks for the region {}, and its own is: {}", .needed.join(" or "), claimed_region(.claimed))]
    Region {
        /// The regions of which one is asked for.
        needed: Vec<String>,
        /// Those that it claims.
        claimed: Vec<String>,
    },
    /// It reaches the network and claims a region that `[resolve]` asks for, and its publisher's claims are not
    /// believed.
    #[error("it claims the region {claimed}, and [resolve] does not believe its publisher")]
    RegionNotBelieved {
        /// The region that it claims.
        claimed: String,
    },
    /// It has a policy tag that `[resolve]` denies.
    #[error("its policy tag {tag} is one that [resolve] denies")]
    TagDenied {
        /// The tag.
        tag: String,
    },
    /// It has none of the policy tags of which `[resolve]` demands one.
    #[error("it has none of the policy tags that [resolve] allows")]
    TagMissing,
    /// It has a policy tag that `[resolve]` allows, and its publisher's claims are not believed.
    #[error("it claims the policy tag {tag}, and [resolve] does not believe its publisher")]
    TagNotBelieved {
        /// The tag.
        tag: String,
    },
}

fn claimed_region(claimed: &[String]) -> String {
    match claimed {
        [] => "global, by default".to_owned(),
        claimed => claimed.join(", "),
    }
}

impl Rejection {
    /// Its stable code, as in JSON.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotBound => "not-bound",
            Self::Version { .. } => "version",
            Self::KindNotRun { .. } => "kind-not-run",
            Self::KindForbidden { .. } => "kind-forbidden",
            Self::TransportDenied { .. } => "transport-denied",
            Self::Os { .. } => "os",
            Self::Arch { .. } => "arch",
            Self::Memory { .. } => "memory",
            Self::Region { .. } => "region",
            Self::RegionNotBelieved { .. } => "region-not-believed",
            Self::TagDenied { .. } => "tag-denied",
            Self::TagMissing => "tag-missing",
            Self::TagNotBelieved { .. } => "tag-not-believed",
        }
    }

    /// Whether it is about the region alone.
    #[must_use]
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
