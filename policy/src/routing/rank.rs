//! Orders the drivers of a contract for a host (AIP-30, "Multi-driver routing", phase 5).

use std::cmp::Ordering;

use toolward_contract::driver::Implements;

use crate::implementation::{Contract, Implementation};

/// The rank of a driver among all that may serve a contract. The lowest rank is taken first. Fields
/// are compared in their order.
#[derive(Debug, PartialEq)]
pub(super) struct Rank<'a> {
    /// Whether it is not the contract's `default_implementation`.
    not_default: bool,
    /// The standing comes before the cost: a price is only a publisher's claim, and must not draw
    /// calls away from the contract's own publisher.
    standing: Standing,
    /// The cost of a call; infinite if it is not stated.
    cost: f64,
    /// The effort to reach drivers of its kind.
    dispatch: u8,
    id: &'a str,
    /// The major version: of two versions of a driver, the newer comes first.
    major: u64,
}

/// The publisher of a driver relative to the contract, and whether the operator prefers the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Standing {
    /// Another publisher's driver, bound by a rule with `prefer`.
    Preferred,
    /// A driver of the contract's own publisher.
    Own,
    /// Another publisher's driver.
    Bound,
}

impl<'a> Rank<'a> {
    /// The rank of a driver that serves a contract by `entry`.
    pub(super) fn of(
        contract: &Contract<'_>,
        implementation: &Implementation<'a>,
        entry: &Implements,
        standing: Standing,
    ) -> Self {
        let driver = implementation.driver;
        let id = driver.id.as_str();
        let cost = driver.cost(contract.tool, entry).units_per_call;
        Self {
            not_default: contract.tool.default_implementation.as_deref() != Some(id),
            standing,
            // Turns minus zero into zero.
            cost: cost.map_or(f64::INFINITY, |units| units + 0.0),
            dispatch: driver.kind.rank(),
            id,
            major: driver.version.major,
        }
    }

    /// Compares two drivers; the lesser is taken first.
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        self.before_id(other)
            .then(self.id.cmp(other.id))
            .then(other.major.cmp(&self.major))
    }

    /// Whether only the ids of two drivers and their versions determine their order.
    pub(super) fn ties(&self, other: &Self) -> bool {
        self.before_id(other) == Ordering::Equal
    }

    fn before_id(&self, other: &Self) -> Ordering {
        self.not_default
            .cmp(&other.not_default)
            .then(self.standing.cmp(&other.standing))
            .then(self.cost.total_cmp(&other.cost))
            .then(self.dispatch.cmp(&other.dispatch))
    }
}

#[cfg(test)]
mod tests {
    use toolward_contract::NoScope;
    use toolward_contract::driver::{Driver, DriverKind};
    use toolward_contract::tool::Tool;

    use super::*;

    /// A driver in short form: its publisher, its id, its kind, its own cost and the cost of its
    /// entry.
    type Row<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str);

    const C: &str = "component";
    const H: &str = "http";

    /// Pairs of drivers, of which the first ranks first. `default` is always the id of the
    /// contract's default.
    const CASES: [(Row<'static>, Row<'static>); 36] = [
        // The default comes first: before a lower id, a lower price, a nearer kind, and drivers of
        // the contract's publisher.
        (("acme", "default", C, "", ""), ("acme", "aa", C, "", "")),
        (("acme", "default", C, "", ""), ("acme", "aa", C, "0", "")),
        (("acme", "default", C, "9", ""), ("acme", "aa", C, "", "0")),
        (
            ("acme", "default", H, "", ""),
            ("acme", "aa", "builtin", "", ""),
        ),
        (("labs", "default", C, "", ""), ("acme", "aa", C, "0", "")),
        (("acme", "default", C, "", ""), ("labs", "aa", C, "0", "")),
        // Then the drivers that the operator prefers, at any cost.
        (("pref", "bb", C, "9", ""), ("acme", "aa", C, "0", "")),
        (("pref", "bb", H, "", ""), ("labs", "aa", C, "0", "")),
        (("pref", "bb", C, "1", ""), ("pref", "aa", C, "2", "")),
        (("acme", "default", C, "9", ""), ("pref", "aa", C, "0", "")),
        // Then the drivers of the contract's own publisher, regardless of the price of others.
        (("acme", "bb", C, "", ""), ("labs", "aa", C, "", "")),
        (("acme", "bb", C, "", ""), ("labs", "aa", C, "0", "")),
        (("acme", "bb", C, "", ""), ("labs", "aa", C, "", "0")),
        (("acme", "bb", C, "900", ""), ("labs", "aa", C, "1", "")),
        (
            ("acme", "bb", "cli", "", ""),
            ("labs", "aa", "builtin", "", ""),
        ),
        (("acme", "bb", H, "5", "900"), ("labs", "aa", C, "0", "0")),
        // Then the price: the entry's price replaces the driver's, and drivers without a price come
        // last.
        (("acme", "bb", C, "1", ""), ("acme", "aa", C, "2", "")),
        (("acme", "bb", C, "", "1"), ("acme", "aa", C, "", "2")),
        (("acme", "bb", C, "9", "1"), ("acme", "aa", C, "2", "")),
        (("acme", "bb", C, "2", ""), ("acme", "aa", C, "1", "9")),
        (("acme", "bb", C, "", "0.5"), ("acme", "aa", C, "1", "")),
        (("acme", "bb", C, "0", ""), ("acme", "aa", C, "", "")),
        (("acme", "bb", C, "", "900"), ("acme", "aa", C, "", "")),
        (
            ("acme", "bb", C, "1000000000", ""),
            ("acme", "aa", C, "", ""),
        ),
        (
            ("acme", "bb", "cli", "1", ""),
            ("acme", "aa", "builtin", "2", ""),
        ),
        (("labs", "bb", C, "1", ""), ("labs", "aa", C, "", "")),
        (("labs", "bb", C, "", "1"), ("other", "aa", C, "2", "")),
        // Then the kind.
        (
            ("acme", "bb", "builtin", "", ""),
            ("acme", "aa", "sdk", "", ""),
        ),
        (("acme", "bb", "sdk", "1", ""), ("acme", "aa", H, "1", "")),
        (("acme", "bb", C, "", ""), ("acme", "aa", H, "", "")),
        (("acme", "bb", H, "", "3"), ("acme", "aa", "mcp", "3", "")),
        (("acme", "bb", "mcp", "", ""), ("acme", "aa", "cli", "", "")),
        (("labs", "bb", C, "0", ""), ("labs", "aa", H, "-0.0", "")),
        // Then the id.
        (("acme", "aa", C, "", ""), ("acme", "bb", "sdk", "", "")),
        (("acme", "aa", C, "-0.0", ""), ("acme", "bb", C, "0", "")),
        (("labs", "aa", C, "2", ""), ("other", "bb", C, "", "2")),
    ];

    fn driver((_, id, kind, own, entry): Row<'_>) -> Driver {
        let cost = |units: &str| match units {
            "" => String::new(),
            units => format!("cost_override: {{ cost_units_per_call: {units} }}\n"),
        };
        let (own, entry) = (cost(own), cost(entry));
        let indented = match entry.as_str() {
            "" => String::new(),
            line => format!("    {line}"),
        };
        let more = match kind {
            C => "component: driver.wasm\n",
            _ => "",
        };
        let source = format!(
            "---\nid: {id}\nname: D\ndescription: Does it.\nversion: 1.0.0\nkind: {kind}\n{more}\
             implements:\n  - tool: a.tool\n    version: 1.x\n{indented}{own}---\n"
        );
        // This source has no request, so a driver of kind http is read as kind sdk, and gets its
        // kind below.
        let source = match kind {
            H => source.replace("kind: http", "kind: sdk"),
            _ => source,
        };
        let parsed = Driver::parse("DRIVER.md", &source).into_result();
        let mut driver = parsed.unwrap_or_else(|found| panic!("{source}\n{found:?}"));
        if kind == H {
            driver.kind = DriverKind::Http;
        }
        driver
    }

    #[test]
    fn of_two_drivers_the_first_is_taken_first() {
        let source = "---\nid: a.tool\nname: T\ndescription: Does it.\nversion: 1.0.0\n\
                      inputs: { type: object }\noutputs: { type: object }\n\
                      default_implementation: default\n---\n";
        let tool = Tool::parse("TOOL.md", source, &NoScope);
        let tool = tool.into_result().expect("a contract");
        let contract = Contract {
            tool: &tool,
            publisher: "acme",
        };
        for (first, second) in CASES {
            let drivers = [driver(first), driver(second)];
            let publishers = [first.0, second.0];
            let ranks: Vec<Rank<'_>> = drivers
                .iter()
                .zip(publishers)
                .map(|(driver, publisher)| {
                    let implementation = Implementation { driver, publisher };
                    let standing = match publisher {
                        "acme" => Standing::Own,
                        "pref" => Standing::Preferred,
                        _ => Standing::Bound,
                    };
                    Rank::of(&contract, &implementation, &driver.implements[0], standing)
                })
                .collect();
            let case = format!("{first:?} before {second:?}");
            assert_eq!(ranks[0].compare(&ranks[1]), Ordering::Less, "{case}");
            assert_eq!(ranks[1].compare(&ranks[0]), Ordering::Greater, "{case}");
        }
    }
}
