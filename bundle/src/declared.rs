//! Compares the imports of a component with the declarations of its driver and contracts. This
//! module grants nothing: policy decides how much of a declaration a sandbox gets.

use serde::Serialize;
use toolward_contract::capability::{Capability, CapabilitySet, Class};
use toolward_contract::driver::Driver;
use toolward_contract::tool::Tool;

use crate::component::Surface;

/// Whether the import is HTTP and the driver declares an empty list of hosts. Such an import is
/// accepted: the empty list grants nothing, and toolchains import HTTP even if it is unused.
pub(crate) fn is_without_host(import: &str, driver: &Driver) -> bool {
    import == "wasi:http" && driver.declares_network && driver.egress.is_empty()
}

/// What a driver's component may use: its `requires` and the declarations of its contracts.
#[derive(Debug)]
pub(crate) struct DeclaredCapabilities {
    pub(crate) capabilities: CapabilitySet,
    /// Whether all contracts of the driver are known. A contract of another bundle is unknown here,
    /// and is assumed to declare everything. The grant is computed later, when the contract is
    /// known.
    complete: bool,
}

impl DeclaredCapabilities {
    pub(crate) fn of<'t>(
        driver: &Driver,
        tools: impl Iterator<Item = &'t Tool> + Clone,
    ) -> DeclaredCapabilities {
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
        DeclaredCapabilities {
            capabilities,
            complete,
        }
    }

    /// Whether one of the classes is declared, or may be declared by an unknown contract.
    fn has(&self, classes: &[Class]) -> bool {
        let mut members = self.capabilities.iter();
        let declared = members.any(|capability| classes.contains(capability.class()));
        declared || (!self.complete && !classes.is_empty())
    }

    /// Whether the declarations account for the import of a package. A package that is not in
    /// [`Class::IMPORTS`] needs no declaration.
    pub(crate) fn accounts_for(&self, import: &str) -> bool {
        let mut imports = Class::IMPORTS.iter();
        imports.all(|known| known.name != import || self.has(known.classes))
    }

    /// Whether some host of `egress` is or may be declared. The class `external` stands for any
    /// host, since policy decides about external services.
    pub(crate) fn shares_a_host(&self, egress: &CapabilitySet) -> bool {
        !self.complete
            || self.has(&[Class::External])
            || !self.capabilities.intersection(egress).is_empty()
    }
}

/// How imports differ from declarations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DeclarationDifference {
    /// Imported but not declared.
    pub undeclared: Vec<UndeclaredImport>,
    /// Declared but not imported: the component can't use it.
    pub unused: Vec<String>,
}

/// An import that no declaration accounts for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UndeclaredImport {
    /// The package or interface, such as `wasi:http`.
    pub import: String,
    /// Whether a host refuses the bundle because of this import. Otherwise, the host links the
    /// import without access.
    pub refused: bool,
}

impl DeclarationDifference {
    /// Compares a component with the declarations of its driver and of the driver's contracts among
    /// `tools`.
    pub(crate) fn of<'t>(
        surface: &Surface,
        driver: &Driver,
        tools: impl Iterator<Item = &'t Tool> + Clone,
    ) -> DeclarationDifference {
        let declared = DeclaredCapabilities::of(driver, tools);
        let undeclared = Class::IMPORTS
            .iter()
            .filter(|import| surface.imports_package(import.name) && !declared.has(import.classes))
            .map(|import| UndeclaredImport {
                import: import.name.to_owned(),
                refused: import.refusal.is_some() && !is_without_host(import.name, driver),
            })
            .collect();
        let useless = |capability: &&Capability| {
            let mut imports = Class::IMPORTS
                .iter()
                .filter(|import| import.classes.contains(capability.class()))
                .peekable();
            imports.peek().is_some() && !imports.any(|import| surface.imports_package(import.name))
        };
        let all = declared.capabilities.union(&driver.egress);
        let unused = all.iter().filter(useless).map(ToString::to_string);
        DeclarationDifference {
            undeclared,
            unused: unused.collect(),
        }
    }
}
