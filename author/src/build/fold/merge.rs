//! Merges many core modules into one. An import from one of these modules is replaced by the item
//! that it names.

use std::collections::{BTreeMap, BTreeSet};

use wasm_encoder::reencode::{Error, Reencode, utils};
use wasm_encoder::{
    CodeSection, ConstExpr, DataCountSection, DataSection, ElementSection, Elements, Encode,
    EntityType, ExportKind, ExportSection, FuncType, FunctionSection, GlobalSection, ImportSection,
    Instruction, MemorySection, Module, NameMap, NameSection, TableSection, TypeSection,
};
use wasmparser::{Operator, Parser, Payload, TypeRef};

use super::Kept;
use super::link::{Kind, MergeGroup, Source, unknown};
use super::read::{Core, Index};

/// The most bytes of a global's initial value, which is copied to each use of the global. Tools
/// write a number there. But a value could also add up other globals, and double in length with
/// each module.
const MAX_VALUE: usize = 64;

/// The numbers of one module's items in the merged module.
#[derive(Debug, Default)]
struct Numbers {
    first_type: Index,
    first_element: Index,
    first_data: Index,
    of_kinds: BTreeMap<Kind, Vec<Index>>,
}

impl Numbers {
    fn get(&self, kind: Kind, number: Index) -> Result<Index, Error<Kept>> {
        let numbers = self.of_kinds.get(&kind);
        let found = numbers.and_then(|numbers| numbers.get(number as usize));
        found.copied().ok_or_else(|| Error::UserError(unknown()))
    }
}

/// A function that the merged module imports from outside the group.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outside {
    /// Its number among the component's core functions.
    pub(super) canon: Index,
    /// Its type: the type with the number `ty` in the module of `member`.
    member: usize,
    ty: Index,
}

/// The modules of a group, numbered as one.
#[derive(Debug, Default)]
pub(super) struct Layout<'g, 'a> {
    cores: Vec<&'g Core<'a>>,
    members: Vec<Numbers>,
    /// The functions that the merged module imports, in order. They are its first functions.
    pub(super) outside: Vec<Outside>,
    /// The globals of the merged module, by number: the member that defines the global, and the
    /// initial value.
    globals: Vec<(usize, wasmparser::ConstExpr<'a>)>,
}

impl<'g, 'a> Layout<'g, 'a> {
    pub(super) fn of(group: &MergeGroup<'g, 'a>) -> Result<Self, Kept> {
        let mut layout = Self {
            cores: group.members.iter().map(|(core, _)| *core).collect(),
            ..Self::default()
        };
        // Imports come first in the index space, regardless of the member that has them.
        let mut places = BTreeMap::new();
        for (member, (core, sources)) in group.members.iter().enumerate() {
            for (import, (_, source)) in core.imports.iter().zip(sources) {
                if let (Source::Canon(canon), TypeRef::Func(ty)) = (*source, import.ty)
                    && !places.contains_key(&canon)
                {
                    places.insert(canon, number(layout.outside.len())?);
                    layout.outside.push(Outside { canon, member, ty });
                }
            }
        }

        let mut next = Next::default();
        let outside = number(layout.outside.len())?;
        next.of_kinds.insert(Kind::Function, outside);
        for (member, (core, sources)) in group.members.iter().enumerate() {
            let mut numbers = Numbers {
                first_type: next.types,
                first_element: next.elements,
                first_data: next.data,
                ..Numbers::default()
            };
            for (kind, source) in sources {
                let index = match source {
                    Source::Canon(canon) => *places.get(canon).ok_or_else(unknown)?,
                    Source::Export { instance, name } => {
                        let exporting = group.member(*instance).ok_or_else(unknown)?;
                        layout.export(exporting, *kind, name)?
                    }
                };
                numbers.of_kinds.entry(*kind).or_default().push(index);
            }
            let globals = core.globals.iter().cloned();
            layout.globals.extend(globals.map(|value| (member, value)));
            next.types += number(core.signatures.len())?;
            let defined = [
                (Kind::Function, core.functions),
                (Kind::Table, core.tables),
                (Kind::Memory, core.memories),
                (Kind::Global, number(core.globals.len())?),
            ];
            for (kind, count) in defined {
                let next = next.of_kinds.entry(kind).or_default();
                let numbers = numbers.of_kinds.entry(kind).or_default();
                numbers.extend(*next..*next + count);
                *next += count;
            }
            next.elements += core.elements;
            next.data += core.data;
            layout.members.push(numbers);
        }
        if next.of_kinds.get(&Kind::Memory) > Some(&1) {
            return Err(Kept::because("its modules have more than one memory"));
        }
        Ok(layout)
    }

    /// Returns the number of a member's export in the merged module.
    pub(super) fn export(&self, member: usize, kind: Kind, name: &str) -> Result<Index, Kept> {
        let number = self.core(member)?.exports.get(name).ok_or_else(unknown)?;
        Ok(self.numbers(member)?.get(kind, *number)?)
    }

    fn core(&self, member: usize) -> Result<&'g Core<'a>, Kept> {
        self.cores.get(member).copied().ok_or_else(unknown)
    }

    fn numbers(&self, member: usize) -> Result<&Numbers, Kept> {
        self.members.get(member).ok_or_else(unknown)
    }

    fn member(&self, member: usize) -> Result<Member<'_, 'g, 'a>, Kept> {
        Ok(Member {
            layout: self,
            numbers: self.numbers(member)?,
            referenced: BTreeSet::new(),
        })
    }

    /// Returns the types of functions from outside.
    pub(super) fn types(&self, functions: &[Outside]) -> Result<Vec<FuncType>, Kept> {
        let types = functions.iter().map(|function| {
            let types = &self.core(function.member)?.signatures;
            let ty = types.get(function.ty as usize).cloned().flatten();
            ty.ok_or_else(unknown)
        });
        types.collect()
    }

    /// Returns the merged module. It imports the functions from outside as `"" "0"`, `"" "1"` and
    /// so on.
    pub(super) fn module(
        &self,
        exports: &BTreeMap<(Kind, Index), String>,
    ) -> Result<Vec<u8>, Kept> {
        let mut types = TypeSection::new();
        let mut functions = FunctionSection::new();
        let mut tables = TableSection::new();
        let mut memories = MemorySection::new();
        let mut globals = GlobalSection::new();
        let mut elements = ElementSection::new();
        let mut code = CodeSection::new();
        let mut data = DataSection::new();
        let mut names = BTreeMap::new();
        let mut referenced = BTreeSet::new();
        for (number, core) in self.cores.iter().enumerate() {
            let mut member = self.member(number)?;
            for payload in Parser::new(0).parse_all(core.bytes) {
                match payload? {
                    Payload::TypeSection(read) => member.parse_type_section(&mut types, read)?,
                    Payload::FunctionSection(read) => {
                        member.parse_function_section(&mut functions, read)?;
                    }
                    Payload::TableSection(read) => member.parse_table_section(&mut tables, read)?,
                    Payload::MemorySection(read) => {
                        member.parse_memory_section(&mut memories, read)?;
                    }
                    Payload::GlobalSection(read) => {
                        member.parse_global_section(&mut globals, read)?;
                    }
                    Payload::ElementSection(read) => {
                        member.parse_element_section(&mut elements, read)?;
                    }
                    Payload::CodeSectionEntry(body) => {
                        member.parse_function_body(&mut code, body)?;
                    }
                    Payload::DataSection(read) => member.parse_data_section(&mut data, read)?,
                    _ => {}
                }
            }
            for (function, name) in &core.names {
                // The module that defines a function comes before the modules that import it, so
                // its name for the function is used.
                if let Ok(function) = member.function_index(*function) {
                    names.entry(function).or_insert(*name);
                }
            }
            referenced.append(&mut member.referenced);
        }
        if !referenced.is_empty() {
            // `ref.func` accepts only declared functions. An export declares its function, but most
            // functions are not exported any more. So an element section declares them.
            let referenced: Vec<Index> = referenced.into_iter().collect();
            elements.declared(Elements::Functions(referenced.into()));
        }

        let mut imports = ImportSection::new();
        for (number, outside) in self.outside.iter().enumerate() {
            let ty = self.numbers(outside.member)?.first_type + outside.ty;
            imports.import("", &number.to_string(), EntityType::Function(ty));
        }
        let mut exported = ExportSection::new();
        for ((kind, index), name) in exports {
            exported.export(name, export_kind(*kind), *index);
        }
        let mut module = Module::new();
        module
            .section(&types)
            .section(&imports)
            .section(&functions)
            .section(&tables)
            .section(&memories)
            .section(&globals)
            .section(&exported)
            .section(&elements)
            .section(&DataCountSection { count: data.len() })
            .section(&code)
            .section(&data);
        let mut functions = NameMap::new();
        for (function, name) in names {
            functions.append(function, name);
        }
        let mut names = NameSection::new();
        names.functions(&functions);
        module.section(&names);
        Ok(module.finish())
    }
}

/// The next free numbers of the merged module.
#[derive(Debug, Default)]
struct Next {
    types: Index,
    elements: Index,
    data: Index,
    of_kinds: BTreeMap<Kind, Index>,
}

fn number(count: usize) -> Result<Index, Kept> {
    Index::try_from(count).map_err(|_| unknown())
}

pub(super) fn export_kind(kind: Kind) -> ExportKind {
    match kind {
        Kind::Function => ExportKind::Func,
        Kind::Table => ExportKind::Table,
        Kind::Memory => ExportKind::Memory,
        Kind::Global => ExportKind::Global,
    }
}

/// Writes the items of one member, with the numbers of the merged module.
struct Member<'l, 'g, 'a> {
    layout: &'l Layout<'g, 'a>,
    numbers: &'l Numbers,
    /// The functions that `ref.func` names.
    referenced: BTreeSet<Index>,
}

impl Member<'_, '_, '_> {
    /// Returns the initial value of an immutable global of the merged module.
    fn initial_value(&self, global: Index) -> Result<Vec<u8>, Error<Kept>> {
        let globals = &self.layout.globals;
        let (member, value) = globals
            .get(global as usize)
            .ok_or_else(|| Error::UserError(unknown()))?;
        let mut member = self.layout.member(*member).map_err(Error::UserError)?;
        let mut bytes = Vec::new();
        member.value(value.clone(), MAX_VALUE, &mut bytes)?;
        Ok(bytes)
    }

    /// Writes a constant expression. Names of globals are replaced by the globals' initial values.
    fn value(
        &mut self,
        value: wasmparser::ConstExpr<'_>,
        most: usize,
        bytes: &mut Vec<u8>,
    ) -> Result<(), Error<Kept>> {
        let mut operators = value.get_operators_reader();
        while !operators.is_end_then_eof() {
            match operators.read()? {
                // Without WebAssembly's garbage collection, a constant expression names only
                // imported globals, and the merged module imports none.
                Operator::GlobalGet { global_index } => {
                    let global = self.global_index(global_index)?;
                    bytes.extend(self.initial_value(global)?);
                }
                operator => self.instruction(operator)?.encode(bytes),
            }
            if bytes.len() > most {
                let reason = "the initial value of a global is long";
                return Err(Error::UserError(Kept::because(reason)));
            }
        }
        Ok(())
    }
}

impl Reencode for Member<'_, '_, '_> {
    type Error = Kept;

    fn type_index(&mut self, ty: u32) -> Result<u32, Error<Kept>> {
        Ok(self.numbers.first_type + ty)
    }

    fn function_index(&mut self, function: u32) -> Result<u32, Error<Kept>> {
        self.numbers.get(Kind::Function, function)
    }

    fn table_index(&mut self, table: u32) -> Result<u32, Error<Kept>> {
        self.numbers.get(Kind::Table, table)
    }

    fn memory_index(&mut self, memory: u32) -> Result<u32, Error<Kept>> {
        self.numbers.get(Kind::Memory, memory)
    }

    fn global_index(&mut self, global: u32) -> Result<u32, Error<Kept>> {
        self.numbers.get(Kind::Global, global)
    }

    fn element_index(&mut self, element: u32) -> Result<u32, Error<Kept>> {
        Ok(self.numbers.first_element + element)
    }

    fn data_index(&mut self, data: u32) -> Result<u32, Error<Kept>> {
        Ok(self.numbers.first_data + data)
    }

    fn instruction<'i>(&mut self, operator: Operator<'i>) -> Result<Instruction<'i>, Error<Kept>> {
        if let Operator::RefFunc { function_index } = operator {
            let function = self.function_index(function_index)?;
            self.referenced.insert(function);
        }
        utils::instruction(self, operator)
    }

    fn const_expr(&mut self, value: wasmparser::ConstExpr<'_>) -> Result<ConstExpr, Error<Kept>> {
        let mut bytes = Vec::new();
        self.value(value, usize::MAX, &mut bytes)?;
        Ok(ConstExpr::raw(bytes))
    }
}
