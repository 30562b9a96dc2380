//! Reads a component as a list of the items that it defines, in order. Reads the parts of its core
//! modules that merging needs.

use std::borrow::Cow;
use std::collections::BTreeMap;

use wasm_encoder::FuncType;
use wasm_encoder::reencode::{Reencode as _, RoundtripReencoder};
use wasmparser::{
    CanonicalFunction, Chunk, ComponentAlias, ComponentExternalKind, ComponentInstance,
    ComponentOuterAliasKind, ComponentType, ComponentTypeRef, CompositeInnerType, ConstExpr,
    FromReader, Import, Instance, KnownCustom, Name, Parser, Payload, SectionLimited,
    TypeSectionReader,
};

use super::Kept;

/// Something that a component defines.
#[derive(Debug, Clone)]
pub(super) enum Item<'a> {
    /// A core module.
    Module(&'a [u8]),
    /// A component.
    Component(Cow<'a, [u8]>),
    /// A core instance.
    Instance(Instance<'a>),
    Alias(ComponentAlias<'a>),
    Canon(CanonicalFunction),
    /// Another section, which is copied. It contains no number of a core module, instance or
    /// function ([`no_core_index`]).
    Section {
        id: u8,
        content: &'a [u8],
    },
}

/// Returns everything that a valid component defines. Refuses a component with a core index in a
/// section that is copied.
pub(super) fn items(bytes: &[u8]) -> Result<Vec<Item<'_>>, Kept> {
    let mut items = Vec::new();
    let mut parser = Parser::new(0);
    let mut at = 0;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let Chunk::Parsed { consumed, payload } = parser.parse(rest, true)? else {
            return Err(Kept::because("the component ends early"));
        };
        at += consumed;
        let nested = |range: &std::ops::Range<usize>| bytes.get(range.clone()).unwrap_or_default();
        match &payload {
            Payload::ModuleSection {
                unchecked_range, ..
            } => {
                items.push(Item::Module(nested(unchecked_range)));
                at = unchecked_range.end;
            }
            Payload::ComponentSection {
                unchecked_range, ..
            } => {
                items.push(Item::Component(nested(unchecked_range).into()));
                at = unchecked_range.end;
            }
            Payload::InstanceSection(section) => {
                for instance in section.clone() {
                    items.push(Item::Instance(instance?));
                }
            }
            Payload::ComponentAliasSection(section) => {
                for alias in section.clone() {
                    items.push(Item::Alias(alias?));
                }
            }
            Payload::ComponentCanonicalSection(section) => {
                for canon in section.clone() {
                    items.push(Item::Canon(canon?));
                }
            }
            // Left out: the section's numbers would be wrong after merging, and nothing depends on
            // them.
            Payload::CustomSection(section) if section.name() == "component-name" => {}
            Payload::End(_) => break,
            other => {
                if let Some((id, range)) = other.as_section() {
                    let content = bytes.get(range).unwrap_or_default();
                    items.push(Item::Section { id, content });
                }
            }
        }
        no_core_index(&payload)?;
    }
    Ok(items)
}

/// Refuses a component in which an inner component, at any depth, names a core module of an outer
/// one.
pub(super) fn no_outer_modules(bytes: &[u8]) -> Result<(), Kept> {
    for payload in Parser::new(0).parse_all(bytes) {
        if let Payload::ComponentAliasSection(section) = payload? {
            none_passes(&section, |alias| {
                let kind = ComponentOuterAliasKind::CoreModule;
                matches!(alias, ComponentAlias::Outer { kind: found, .. } if *found == kind)
            })?;
        }
    }
    Ok(())
}

/// Returns how many tables the modules of a component define, at all depths.
pub(super) fn tables(bytes: &[u8]) -> Result<u32, Kept> {
    let mut tables: u32 = 0;
    for payload in Parser::new(0).parse_all(bytes) {
        if let Payload::TableSection(section) = payload? {
            tables = tables.saturating_add(section.count());
        }
    }
    Ok(tables)
}

/// Refuses a section with an item that passes a core module from one component to another.
fn none_passes<'a, T: FromReader<'a>>(
    section: &SectionLimited<'a, T>,
    passes: impl Fn(&T) -> bool,
) -> Result<(), Kept> {
    for item in section.clone() {
        if passes(&item?) {
            let reason = "core modules pass from one component to another";
            return Err(Kept::because(reason));
        }
    }
    Ok(())
}

/// Refuses copied sections and aliases that name core modules or functions.
fn no_core_index(payload: &Payload<'_>) -> Result<(), Kept> {
    let is_module = |kind: ComponentExternalKind| kind == ComponentExternalKind::Module;
    match payload {
        Payload::ComponentTypeSection(section) => {
            for ty in section.clone() {
                if let ComponentType::Resource { dtor: Some(_), .. } = ty? {
                    return Err(Kept::because("a resource of its own has a destructor"));
                }
            }
            Ok(())
        }
        Payload::ComponentImportSection(section) => none_passes(section, |import| {
            matches!(import.ty, ComponentTypeRef::Module(_))
        }),
        Payload::ComponentExportSection(section) => {
            none_passes(section, |export| is_module(export.kind))
        }
        Payload::ComponentInstanceSection(section) => {
            none_passes(section, |instance| match instance {
                ComponentInstance::Instantiate { args, .. } => {
                    args.iter().any(|arg| is_module(arg.kind))
                }
                ComponentInstance::FromExports(exports) => {
                    exports.iter().any(|export| is_module(export.kind))
                }
            })
        }
        Payload::ComponentAliasSection(section) => none_passes(
            section,
            |alias| matches!(alias, ComponentAlias::InstanceExport { kind, .. } if is_module(*kind)),
        ),
        _ => Ok(()),
    }
}

/// A number in one of the component's core index spaces.
pub(super) type Index = u32;

/// A core module, without its code and data.
#[derive(Debug, Default)]
pub(super) struct Core<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) imports: Vec<Import<'a>>,
    pub(super) exports: BTreeMap<&'a str, Index>,
    pub(super) has_start: bool,
    /// The types by number; `None` for a type that is not a function type.
    pub(super) signatures: Vec<Option<FuncType>>,
    /// How many functions, tables, memories, element segments and data segments the module defines.
    pub(super) functions: Index,
    pub(super) tables: Index,
    pub(super) memories: Index,
    pub(super) elements: Index,
    pub(super) data: Index,
    /// The initial values of the globals that it defines.
    pub(super) globals: Vec<ConstExpr<'a>>,
    pub(super) names: BTreeMap<Index, &'a str>,
}

impl<'a> Core<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, Kept> {
        let mut core = Self {
            bytes,
            ..Self::default()
        };
        for payload in Parser::new(0).parse_all(bytes) {
            match payload? {
                Payload::TypeSection(section) => core.signatures = signatures(section)?,
                Payload::ImportSection(section) => {
                    core.imports = section.into_imports().collect::<Result<_, _>>()?;
                }
                Payload::FunctionSection(section) => core.functions = section.count(),
                Payload::TableSection(section) => core.tables = section.count(),
                Payload::MemorySection(section) => core.memories = section.count(),
                Payload::GlobalSection(section) => {
                    let globals = section.into_iter();
                    let values = globals.map(|global| Ok(global?.init_expr));
                    core.globals = values.collect::<Result<_, Kept>>()?;
                }
                Payload::ExportSection(section) => {
                    for export in section {
                        let export = export?;
                        core.exports.insert(export.name, export.index);
                    }
                }
                Payload::StartSection { .. } => core.has_start = true,
                Payload::ElementSection(section) => core.elements = section.count(),
                Payload::DataSection(section) => core.data = section.count(),
                Payload::CustomSection(section) => {
                    if let KnownCustom::Name(names) = section.as_known() {
                        // Names only help to find errors, so invalid ones are left out.
                        let names = names.into_iter().flatten().find_map(functions);
                        core.names = names.unwrap_or_default();
                    }
                }
                _ => {}
            }
        }
        Ok(core)
    }
}

fn signatures(types: TypeSectionReader<'_>) -> Result<Vec<Option<FuncType>>, Kept> {
    let mut signatures = Vec::new();
    for group in types {
        for ty in group?.into_types() {
            signatures.push(match ty.composite_type.inner {
                CompositeInnerType::Func(ty) => Some(RoundtripReencoder.func_type(ty)?),
                _ => None,
            });
        }
    }
    Ok(signatures)
}

/// Returns the names of functions.
fn functions<'a>(names: Name<'a>) -> Option<BTreeMap<Index, &'a str>> {
    let Name::Function(names) = names else {
        return None;
    };
    let names = names.into_iter().flatten();
    Some(names.map(|name| (name.index, name.name)).collect())
}
