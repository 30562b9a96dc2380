//! A core module, read as far as merging needs it.

use std::collections::BTreeMap;

use wasmparser::{
    BinaryReader, CodeSectionReader, CompositeInnerType, DataSectionReader, ElementSectionReader,
    FuncType, FunctionSectionReader, GlobalSectionReader, Import, KnownCustom, MemorySectionReader,
    Name, Parser, Payload, TableSectionReader, TypeSectionReader,
};

use super::Kept;

/// A number in one of the component's core index spaces.
pub(super) type Index = u32;

/// A core module, read but for its code and data.
#[derive(Debug, Default)]
pub(super) struct Core<'a> {
    pub(super) imports: Vec<Import<'a>>,
    pub(super) exports: BTreeMap<&'a str, Index>,
    pub(super) has_start: bool,
    pub(super) types: Option<TypeSectionReader<'a>>,
    pub(super) functions: Option<FunctionSectionReader<'a>>,
    pub(super) tables: Option<TableSectionReader<'a>>,
    pub(super) memories: Option<MemorySectionReader<'a>>,
    pub(super) globals: Option<GlobalSectionReader<'a>>,
    pub(super) elements: Option<ElementSectionReader<'a>>,
    pub(super) data: Option<DataSectionReader<'a>>,
    pub(super) code: Option<CodeSectionReader<'a>>,
    pub(super) names: BTreeMap<Index, &'a str>,
}

impl<'a> Core<'a> {
    pub(super) fn read(module: &'a [u8]) -> Result<Self, Kept> {
        let mut core = Self::default();
        for payload in Parser::new(0).parse_all(module) {
            match payload? {
                Payload::TypeSection(section) => core.types = Some(section),
                Payload::ImportSection(section) => {
                    core.imports = section.into_imports().collect::<Result<_, _>>()?;
                }
                Payload::FunctionSection(section) => core.functions = Some(section),
                Payload::TableSection(section) => core.tables = Some(section),
                Payload::MemorySection(section) => core.memories = Some(section),
                Payload::GlobalSection(section) => core.globals = Some(section),
                Payload::ExportSection(section) => {
                    for export in section {
                        let export = export?;
                        core.exports.insert(export.name, export.index);
                    }
                }
                Payload::StartSection { .. } => core.has_start = true,
                Payload::ElementSection(section) => core.elements = Some(section),
                Payload::DataSection(section) => core.data = Some(section),
                Payload::CodeSectionStart { range, .. } => {
                    let code = module.get(range.clone()).unwrap_or_default();
                    let code = BinaryReader::new(code, range.start);
                    core.code = Some(CodeSectionReader::new(code)?);
                }
                Payload::CustomSection(section) => {
                    if let KnownCustom::Name(names) = section.as_known() {
                        // Names are a help where something fails: bad ones are left out.
                        core.names = names
                            .into_iter()
                            .flatten()
                            .find_map(functions)
                            .unwrap_or_default();
                    }
                }
                _ => {}
            }
        }
        Ok(core)
    }

    /// The function types at its numbers.
    pub(super) fn signatures(&self) -> Result<Vec<Option<FuncType>>, Kept> {
        let mut signatures = Vec::new();
        for group in self.types.clone().into_iter().flatten() {
            for ty in group?.into_types() {
                signatures.push(match ty.composite_type.inner {
                    CompositeInnerType::Func(ty) => Some(ty),
                    _ => None,
                });
            }
        }
        Ok(signatures)
    }

    /// How many names it imports and exports.
    pub(super) fn name_count(&self) -> usize {
        self.imports.len().saturating_add(self.exports.len())
    }
}

/// The names of functions.
fn functions<'a>(names: Name<'a>) -> Option<BTreeMap<Index, &'a str>> {
    let Name::Function(names) = names else {
        return None;
    };
    let names = names.into_iter().flatten();
    Some(names.map(|name| (name.index, name.name)).collect())
}
