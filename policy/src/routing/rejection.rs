//! Why a driver that names a contract may not serve it. What a grant lacks is decided elsewhere.

use serde::Serialize;
use toolward_support::report::codes;

codes! {
    /// Why a driver may not serve a contract, independent of grants.
    #[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
    #[serde(rename_all = "kebab-case", tag = "code")]
    pub enum Rejection: Error {
        /// No rule for the contract names the driver and its publisher.
        NotBound = "not-bound",
            "it is another publisher's, and no [[grant]] binds it to this tool by `driver` and `driver_publisher`";
        Version { implemented: Vec<String>, found: String } = "version", "it implements other versions of the contract",
            ("it implements {}, and the contract has version {found}", implemented.join(" and "));
        KindNotRun { kind: String } = "kind-not-run", "no host runs drivers of this kind",
            ("it is of kind {kind}, and this host runs component, http and form");
        KindForbidden { kind: String } = "kind-forbidden", "the contract's `driver_constraints` do not permit its kind",
            ("it is of kind {kind}, which the contract's driver_constraints do not permit");
        /// `rule` is the code of the rule that the transport breaks, `message` how it breaks it.
        TransportDenied { rule: String, message: String } = "transport-denied", "its transport in tools.json is denied",
            ("its transport in tools.json is denied: {message} [{rule}]");
        Os { needed: Vec<String>, found: String } = "os", "it runs on other operating systems",
            ("it needs {}, and this host runs {found}", needed.join(" or "));
        Arch { needed: Vec<String>, found: String } = "arch", "it runs on other processors",
            ("it needs {}, and this host is {found}", needed.join(" or "));
        Memory { needed_mb: u64, maximum_bytes: u64 } = "memory",
            "it needs more memory than the operator lets one call have",
            ("it needs {needed_mb} MiB of memory, and a call gets at most {} MiB", maximum_bytes >> 20);
        /// `needed` are the regions of which one is asked for.
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
        /// It reaches the network, and `[resolve]` asks for the region.
        RegionNotBelieved { claimed: String } = "region-not-believed",
            "it claims a region, and `[resolve]` does not believe its publisher",
            ("it claims the region {claimed}, and [resolve] does not believe its publisher");
        TagDenied { tag: String } = "tag-denied", "it has a policy tag that `[resolve]` denies",
            ("its policy tag {tag} is one that [resolve] denies");
        TagMissing = "tag-missing", "it has none of the policy tags that [resolve] allows";
        /// `[resolve]` allows the tag.
        TagNotBelieved { tag: String } = "tag-not-believed",
            "it claims a policy tag, and `[resolve]` does not believe its publisher",
            ("it claims the policy tag {tag}, and [resolve] does not believe its publisher");
    }
}

impl Rejection {
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
