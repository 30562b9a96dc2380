//! What a WebAssembly component shows on its outside: the names it imports and
//! exports. Not a validator: wasmtime validates before it compiles.
//!
//! Only the top level is read. The bodies of core modules are stepped over, so
//! that the cost follows the number of sections and not the amount of code.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolward_report::codes;
use toolward_signing::Digest;
use wasmparser::{
    Chunk, ComponentAlias, ComponentAliasSectionReader, ComponentExportSectionReader,
    ComponentExternalKind, ComponentImportSectionReader, ComponentInstance,
    ComponentOuterAliasKind, ComponentTypeRef, Encoding, Instance, Parser, Payload,
};

mod features;
mod file_kind;
mod functions;
mod instances;
mod size;
mod world;

pub use features::validate;
pub use functions::{
    Function, Functions, MAX_FIELDS, MAX_FUNCTIONS, MAX_KEBAB, MAX_PARAMETERS, MAX_TYPE_DEPTH,
    MAX_TYPES, Type, Withheld,
};
use instances::{Instantiations, MAX_INSTANCES, Made};
pub use world::{AMPLIFIER_EXECUTE, AMPLIFIER_SPEC, AMPLIFIER_TOOL, MadeFor, Usability};

/// The interface that a driver exports.
pub const HANDLER: &str = "toolward:driver/handler@0.1.0";

/// Largest component that is read, in bytes. A Python driver has 19 MB; a
/// larger limit would only serve to keep the compiler busy.
pub const MAX_SIZE: u64 = 64 * 1024 * 1024;

/// How deep components may lie within components. Toolchains write one or two
/// levels; each further one multiplies the work of validation.
pub const MAX_DEPTH: usize = 8;

/// How many core modules and components may lie inside, at all depths
/// together: the count bounds this reader's own work.
pub const MAX_NESTED: usize = 1024;

/// How many core modules a component may instantiate, at all depths together: the
/// host's engine takes no more. Toolchains make two to eight; a Python driver with its
/// shared libraries has 14 to 38.
pub const MAX_CORE_INSTANCES: u32 = 128;

/// Bytes that all core instances of a component may take together in the host's own
/// memory: the host's engine takes no more. Not their linear memories and tables.
pub const MAX_INSTANCE_BYTES: u64 = 1 << 20;

/// How many imports, and how many exports, the top level may have.
pub const MAX_NAMES: usize = 4096;

/// Longest import or export name, in bytes: such names are shown to people.
pub const MAX_NAME: usize = 1024;

/// The namespaces and packages that a driver may import, each with the version
/// that the host knows (WASI 0.2 stands outside the world): all patches of one that
/// ends in a dot, else that one only.
const KNOWN_IMPORTS: &[(&str, &str)] = &[
    ("toolward:driver/", "0.1."),
    ("wasi:cli/", "0.2."),
    ("wasi:io/", "0.2."),
    ("wasi:clocks/", "0.2."),
    ("wasi:random/", "0.2."),
    ("wasi:filesystem/", "0.2."),
    ("wasi:sockets/", "0.2."),
    ("wasi:http/", "0.2."),
    ("wasi:keyvalue/", "0.2.0-draft"),
];

/// One export of a component's top level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// The name as written, such as `toolward:driver/handler@0.1.0`.
    pub name: String,
    /// `instance`, `func`, `type`, `component`, `module` or `value`.
    pub kind: &'static str,
}

/// The outside of a component.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Surface {
    /// The names that the top level imports, in the order of the file.
    pub imports: Vec<String>,
    /// What the top level exports, in the order of the file.
    pub exports: Vec<Export>,
    /// Core modules at all depths.
    pub modules: usize,
    /// Components inside the component, at all depths.
    pub components: usize,
    /// Core modules that are instantiated, at all depths together.
    pub core_instances: u64,
    /// Bytes that these instances take in the host's own memory at most, beside their
    /// linear memories and tables. They count against a call's memory limit.
    pub instance_bytes: u64,
    /// Length of the binary in bytes.
    pub size: u64,
}

/// Why a file is not a component that a host accepts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SurfaceError {
    /// The binary is larger than [`MAX_SIZE`].
    #[error("the component has {size} bytes, the limit is {MAX_SIZE}")]
    TooLarge {
        /// Length found, in bytes.
        size: u64,
    },
    /// A core module stands where a component was expected.
    #[error("a core WebAssembly module was found, a component was expected")]
    CoreModule,
    /// The bytes are something else than WebAssembly.
    #[error("a WebAssembly component was expected, and this is {found}")]
    NotWebAssembly {
        /// What they are, with its article.
        found: &'static str,
    },
    /// The bytes are no valid WebAssembly binary.
    #[error("byte {offset}: {message}")]
    Malformed {
        /// Offset from the start of the file.
        offset: u64,
        /// What the parser expected.
        message: String,
    },
    /// It is valid but for functions, streams or futures that are async.
    #[error(
        "it has async functions, streams or futures, which this version of Toolward does not run yet"
    )]
    Async,
    /// More core instances than [`MAX_CORE_INSTANCES`].
    #[error("the component makes {found} core instances, the limit is {MAX_CORE_INSTANCES}")]
    TooManyInstances {
        /// Instances that it makes of core modules, at all depths.
        found: u64,
    },
    /// More nested modules, components, imports or exports, or deeper ones,
    /// than the constants of this module let in.
    #[error("the component has more {what} than {limit}")]
    TooComplex {
        /// What was counted.
        what: &'static str,
        /// The limit that was passed.
        limit: usize,
    },
}

codes! {
    for SurfaceError {
        Self::TooLarge { .. } = "component-too-large",
            "build with opt-level \"s\", lto and strip, or split the driver";
        Self::CoreModule = "component-is-module",
            "build for the target wasm32-wasip2, or wrap the module with `wasm-tools component new`";
        Self::NotWebAssembly { .. } = "component-malformed",
            "name the component, a file that ends in .wasm; `toolward build` makes it";
        Self::Malformed { .. } = "component-malformed", "build the driver again: `toolward build`";
        Self::Async = "component-async", "build it without async functions, for WASI 0.2";
        Self::TooManyInstances { .. } = "component-too-complex",
            "link the driver's libraries into fewer core modules";
        Self::TooComplex { .. } = "component-too-complex";
    }
}

impl From<wasmparser::BinaryReaderError> for SurfaceError {
    fn from(error: wasmparser::BinaryReaderError) -> Self {
        Self::Malformed {
            offset: u64::try_from(error.offset()).unwrap_or(u64::MAX),
            message: error.message().to_owned(),
        }
    }
}

/// A driver's component: the bytes to compile and what they show outside.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Component {
    /// The file's name within the bundle.
    pub path: String,
    /// BLAKE3 of the bytes.
    pub digest: Digest,
    /// The component.
    pub bytes: Arc<[u8]>,
    /// Its imports and exports.
    pub surface: Surface,
    /// The functions that its driver calls in the world `wit`, by name.
    pub functions: BTreeMap<String, Arc<Function>>,
}

/// Whether an alias brings in a component that is defined elsewhere. With such
/// ones the levels of nesting would bound nothing: siblings could instantiate
/// each other, a hundred times each. No toolchain needs it for a driver.
fn brings_a_component(alias: &ComponentAlias<'_>) -> bool {
    matches!(
        alias,
        ComponentAlias::Outer {
            kind: ComponentOuterAliasKind::Component,
            ..
        } | ComponentAlias::InstanceExport {
            kind: ComponentExternalKind::Component,
            ..
        }
    )
}

impl Surface {
    /// Reads the outside of `bytes`.
    ///
    /// # Errors
    ///
    /// When the bytes are no component binary, or pass one of the limits of
    /// this module. The contents of core modules and of nested components are
    /// not looked at: a component that is read without an error can still be
    /// an invalid one.
    pub fn read(bytes: &[u8]) -> Result<Self, SurfaceError> {
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if size > MAX_SIZE {
            return Err(SurfaceError::TooLarge { size });
        }
        if let Some(found) = file_kind::of(bytes) {
            return Err(SurfaceError::NotWebAssembly { found });
        }
        let mut surface = Self {
            imports: Vec::new(),
            exports: Vec::new(),
            modules: 0,
            components: 0,
            core_instances: 0,
            instance_bytes: 0,
            size,
        };
        surface.walk(bytes)?;
        Ok(surface)
    }

    /// The version of `toolward:driver/handler` that the component exports.
    #[must_use]
    pub fn handler_version(&self) -> Option<&str> {
        self.exports
            .iter()
            .filter(|export| export.kind == "instance")
            .find_map(|export| export.name.strip_prefix("toolward:driver/handler@"))
    }

    /// Whether the component exports the world that this host knows.
    #[must_use]
    pub fn exports_handler(&self) -> bool {
        self.exports
            .iter()
            .any(|export| export.kind == "instance" && export.name == HANDLER)
    }

    /// Whether anything of a package, such as `wasi:http`, is imported.
    #[must_use]
    pub fn imports_package(&self, package: &str) -> bool {
        self.imports.iter().any(|name| {
            name.strip_prefix(package)
                .is_some_and(|rest| rest.starts_with('/'))
        })
    }

    /// The imports that no host of this version provides.
    #[must_use]
    pub fn unknown_imports(&self) -> Vec<&str> {
        self.imports
            .iter()
            .map(String::as_str)
            .filter(|name| !is_known_import(name))
            .collect()
    }

    fn walk(&mut self, bytes: &[u8]) -> Result<(), SurfaceError> {
        // The parsers of the components that enclose the present one.
        let mut enclosing: Vec<Parser> = Vec::new();
        let mut made = Instantiations::default();
        let mut parser = Parser::new(0);
        let mut rest = bytes;
        loop {
            let (consumed, payload) = match parser.parse(rest, true)? {
                Chunk::Parsed { consumed, payload } => (consumed, payload),
                Chunk::NeedMoreData(_) => return Err(truncated(bytes)),
            };
            rest = rest.get(consumed..).ok_or_else(|| truncated(bytes))?;
            let top = enclosing.is_empty();
            match payload {
                Payload::Version {
                    encoding: Encoding::Module,
                    ..
                } => {
                    return Err(SurfaceError::CoreModule);
                }
                Payload::ModuleSection {
                    unchecked_range, ..
                } => {
                    self.modules += 1;
                    self.bounded()?;
                    let length = unchecked_range.end.saturating_sub(unchecked_range.start);
                    let module = rest.get(..length).ok_or_else(|| truncated(bytes))?;
                    made.module(size::of(module));
                    rest = rest.get(length..).ok_or_else(|| truncated(bytes))?;
                }
                Payload::ComponentSection { parser: inner, .. } => {
                    self.components += 1;
                    self.bounded()?;
                    if enclosing.len() >= MAX_DEPTH {
                        return Err(too_complex("levels of nesting", MAX_DEPTH));
                    }
                    enclosing.push(std::mem::replace(&mut parser, inner));
                    made.enter();
                }
                Payload::InstanceSection(section) => {
                    for instance in section {
                        if let Instance::Instantiate { module_index, .. } = instance? {
                            made.core(module_index);
                        }
                    }
                }
                Payload::ComponentInstanceSection(section) => {
                    for instance in section {
                        if let ComponentInstance::Instantiate {
                            component_index, ..
                        } = instance?
                        {
                            made.component(component_index);
                        }
                    }
                }
                Payload::ComponentAliasSection(section) => aliases(section, &mut made)?,
                Payload::ComponentImportSection(section) if !top => {
                    inner_imports(section, &mut made)?;
                }
                Payload::ComponentImportSection(section) => self.imports(section, &mut made)?,
                Payload::ComponentExportSection(section) if top => self.exports(section)?,
                Payload::End(_) => match enclosing.pop() {
                    Some(outer) => {
                        made.leave();
                        parser = outer;
                    }
                    None if rest.is_empty() => {
                        self.core_instances = made.made().core;
                        self.instance_bytes = size::of_all(made.made());
                        return bounded_instances(made.made());
                    }
                    None => return Err(truncated(bytes)),
                },
                _ => {}
            }
        }
    }

    /// The imports of the component itself.
    fn imports(
        &mut self,
        section: ComponentImportSectionReader<'_>,
        made: &mut Instantiations,
    ) -> Result<(), SurfaceError> {
        for import in section {
            let import = import?;
            match import.ty {
                ComponentTypeRef::Component(_) => made.import(),
                ComponentTypeRef::Module(_) => made.foreign_module(),
                _ => {}
            }
            let name = checked_name(import.name.name)?;
            if self.imports.len() >= MAX_NAMES {
                return Err(too_complex("imports", MAX_NAMES));
            }
            self.imports.push(name);
        }
        Ok(())
    }

    fn exports(&mut self, section: ComponentExportSectionReader<'_>) -> Result<(), SurfaceError> {
        for export in section {
            let export = export?;
            let name = checked_name(export.name.name)?;
            if self.exports.len() >= MAX_NAMES {
                return Err(too_complex("exports", MAX_NAMES));
            }
            self.exports.push(Export {
                name,
                kind: kind_name(export.kind),
            });
        }
        Ok(())
    }

    fn bounded(&self) -> Result<(), SurfaceError> {
        if self.modules + self.components > MAX_NESTED {
            return Err(too_complex("nested modules and components", MAX_NESTED));
        }
        Ok(())
    }
}

fn bounded_instances(made: Made) -> Result<(), SurfaceError> {
    if made.core > u64::from(MAX_CORE_INSTANCES) {
        return Err(SurfaceError::TooManyInstances { found: made.core });
    }
    if made.total() > MAX_INSTANCES as u64 {
        return Err(too_complex("instances", MAX_INSTANCES));
    }
    Ok(())
}

fn is_known_import(name: &str) -> bool {
    KNOWN_IMPORTS.iter().any(|(package, version)| {
        name.strip_prefix(package).is_some_and(|interface| {
            interface
                .split_once('@')
                .and_then(|(_, found)| found.strip_prefix(version))
                .is_some_and(|patch| {
                    patch.is_empty() != version.ends_with('.')
                        && patch.bytes().all(|byte| byte.is_ascii_digit())
                })
        })
    })
}

fn checked_name(name: &str) -> Result<String, SurfaceError> {
    if name.len() > MAX_NAME {
        return Err(too_complex("bytes in a name", MAX_NAME));
    }
    Ok(name.to_owned())
}

fn kind_name(kind: ComponentExternalKind) -> &'static str {
    match kind {
        ComponentExternalKind::Module => "module",
        ComponentExternalKind::Func => "func",
        ComponentExternalKind::Value => "value",
        ComponentExternalKind::Type => "type",
        ComponentExternalKind::Instance => "instance",
        ComponentExternalKind::Component => "component",
    }
}

/// The imports of a component inside another one.
fn inner_imports(
    section: ComponentImportSectionReader<'_>,
    made: &mut Instantiations,
) -> Result<(), SurfaceError> {
    for import in section {
        match import?.ty {
            ComponentTypeRef::Component(_) => {
                return Err(too_complex("components taken from elsewhere", 0));
            }
            ComponentTypeRef::Module(_) => made.foreign_module(),
            _ => {}
        }
    }
    Ok(())
}

fn aliases(
    section: ComponentAliasSectionReader<'_>,
    made: &mut Instantiations,
) -> Result<(), SurfaceError> {
    for alias in section {
        let alias = alias?;
        if brings_a_component(&alias) {
            return Err(too_complex("components taken from elsewhere", 0));
        }
        match alias {
            ComponentAlias::Outer {
                kind: ComponentOuterAliasKind::CoreModule,
                count,
                index,
            } => made.outer_module(count, index),
            ComponentAlias::InstanceExport {
                kind: ComponentExternalKind::Module,
                ..
            } => made.foreign_module(),
            _ => {}
        }
    }
    Ok(())
}

fn truncated(bytes: &[u8]) -> SurfaceError {
    SurfaceError::Malformed {
        offset: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
        message: "the file ends inside a section, or continues after the component".to_owned(),
    }
}

fn too_complex(what: &'static str, limit: usize) -> SurfaceError {
    SurfaceError::TooComplex { what, limit }
}

#[cfg(test)]
mod tests;
