//! What a component imports against what its driver and contracts declare. Decides no grant: with
//! or without a difference, a sandbox gets what policy allows of the declaration.

use serde::Serialize;
use toolward_contract::capability::{Capability, CapabilitySet, Class};
use toolward_contract::driver::Driver;
use toolward_contract::tool::Tool;

use crate::component::Surface;

/// An import that stands for a capability.
struct CapabilityImport {
    /// The package, or one interface of it.
    import: &'static str,
    /// Declaring one of these accounts for the import.
    classes: &'static [Class],
    /// Whether a component that imports it without a declaration is refused. The rest comes in
    /// with Python and with Rust's std, used or not, and is linked so that it gives nothing.
    refused: bool,
}

const CAPABILITY_IMPORTS: &[CapabilityImport] = &[
    CapabilityImport {
        import: "wasi:http",
        classes: &[Class::Network, Class::External],
        refused: true,
    },
    CapabilityImport {
        import: "wasi:keyvalue",
        classes: &[Class::Database],
        refused: true,
    },
    CapabilityImport {
        import: "wasi:filesystem",
        classes: &[Class::Workspace],
        refused: false,
    },
    // No declaration opens raw sockets.
    CapabilityImport {
        import: "wasi:sockets",
        classes: &[],
        refused: false,
    },
    CapabilityImport {
        import: "toolward:driver/secrets",
        classes: &[Class::Secret],
        refused: false,
    },
    CapabilityImport {
        import: "toolward:driver/tools",
        classes: &[Class::Tool],
        refused: false,
    },
];

impl CapabilityImport {
    fn is_imported(&self, surface: &Surface) -> bool {
        surface.imports.iter().any(|name| {
            name.strip_prefix(self.import)
                .is_some_and(|rest| rest.starts_with(['/', '@']))
        })
    }
}

/// Whether a driver has HTTP declared, and reaches no host.
fn is_without_host(door: &CapabilityImport, driver: &Driver) -> bool {
    door.import == "wasi:http" && driver.declares_network && driver.egress.is_empty()
}

/// What a driver's component may turn out to use: its own `requires` and the
/// declarations of its contracts.
#[derive(Debug)]
pub(crate) struct Declared {
    pub(crate) capabilities: CapabilitySet,
    /// Whether each of its contracts is at hand. One of another bundle can't be
    /// asked, and gets the benefit of the doubt: the grant is computed with it
    /// at hand.
    complete: bool,
}

impl Declared {
    pub(crate) fn of<'t>(
        driver: &Driver,
        tools: impl Iterator<Item = &'t Tool> + Clone,
    ) -> Declared {
        let mut capabilities = driver.requires.capabilities.clone();
        let mut complete = true;
        for entry in &driver.implements {
            let mut known = tools
                .clone()
                .filter(|tool| entry.is_of(tool.id.as_str()))
                .peekable();
            complete &= known.peek().is_some();
            capabilities.extend(known.flat_map(Tool::declaration));
        }
        Declared {
            capabilities,
            complete,
        }
    }

    /// Whether one of the classes is declared, as far as that can be said here.
    fn has(&self, classes: &[Class]) -> bool {
        let mut members = self.capabilities.iter();
        let declared = members.any(|capability| classes.contains(capability.class()));
        declared || (!self.complete && !classes.is_empty())
    }

    /// Whether the import of a package is accounted for.
    pub(crate) fn accounts_for(&self, import: &str) -> bool {
        CAPABILITY_IMPORTS
            .iter()
            .all(|door| door.import != import || self.has(door.classes))
    }

    /// Whether some host of `egress` may be declared: what an external service
    /// reaches is for policy to say.
    pub(crate) fn shares_a_host(&self, egress: &CapabilitySet) -> bool {
        !self.complete
            || self.has(&[Class::External])
            || !self.capabilities.intersection(egress).is_empty()
    }
}

/// Where imports and declarations part.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Difference {
    /// Imported, and not declared.
    pub undeclared: Vec<Undeclared>,
    /// Declared, and not imported: the component can't use it.
    pub unused: Vec<String>,
}

/// An import that no declaration accounts for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Undeclared {
    /// The package or interface, such as `wasi:http`.
    pub import: String,
    /// Whether a host refuses the bundle for it; else it is linked and gives
    /// nothing.
    pub refused: bool,
}

impl Difference {
    /// Compares a component with what its driver and the contracts among
    /// `tools` declare.
    pub(crate) fn of<'t>(
        surface: &Surface,
        driver: &Driver,
        tools: impl Iterator<Item = &'t Tool> + Clone,
    ) -> Difference {
        let declared = Declared::of(driver, tools);
        let undeclared = CAPABILITY_IMPORTS
            .iter()
            .filter(|door| door.is_imported(surface) && !declared.has(door.classes))
            .map(|door| Undeclared {
                import: door.import.to_owned(),
                refused: door.refused && !is_without_host(door, driver),
            })
            .collect();
        let useless = |capability: &&Capability| {
            let mut doors = CAPABILITY_IMPORTS
                .iter()
                .filter(|door| door.classes.contains(capability.class()))
                .peekable();
            doors.peek().is_some() && !doors.any(|door| door.is_imported(surface))
        };
        let all = declared.capabilities.union(&driver.egress);
        let unused = all.iter().filter(useless).map(ToString::to_string);
        Difference {
            undeclared,
            unused: unused.collect(),
        }
    }
}
