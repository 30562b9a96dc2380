//! Merges the core modules of a component, since the tools of some languages link many.
//!
//! Each call makes an instance of the component, and looks up everything that one core module
//! imports from another: Python's libraries import thousands of functions. Merging replaces many
//! modules by three: the merged module, and two small modules that give it functions from outside
//! ([`trampolines`]). The first module with a start function and all later modules are not merged,
//! and stay as separate modules.
//!
//! A component with an unusual structure stays unchanged.

mod emit;
mod link;
mod merge;
mod read;

#[cfg(test)]
mod tests;

use wasm_encoder::{
    CodeSection, ConstExpr, ElementSection, Elements, EntityType, ExportKind, ExportSection,
    FuncType, Function, FunctionSection, ImportSection, Instruction, Module, RefType, TableSection,
    TableType, TypeSection,
};

use toolward_bundle::component::{MAX_INSTANCE_BYTES, Surface, SurfaceError, validate};

/// The fewest modules that are merged. Fewer are not worth it, since merging gives three modules.
const FEWEST: usize = 4;

/// The most tables of a merged component. The host accepts 16.
const MAX_TABLES: u32 = 8;

/// Why a component stays unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kept(String);

impl Kept {
    fn because(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

impl<E: std::fmt::Display> From<wasm_encoder::reencode::Error<E>> for Kept {
    fn from(error: wasm_encoder::reencode::Error<E>) -> Self {
        Self(error.to_string())
    }
}

impl From<wasmparser::BinaryReaderError> for Kept {
    fn from(error: wasmparser::BinaryReaderError) -> Self {
        Self(error.to_string())
    }
}

impl From<SurfaceError> for Kept {
    fn from(error: SurfaceError) -> Self {
        Self(error.to_string())
    }
}

impl std::fmt::Display for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns a component that does the same as this one, with fewer core modules.
pub(super) fn component(bytes: &[u8]) -> Result<Vec<u8>, Kept> {
    // First checks that the component is valid. The code below relies on the limits for depth,
    // modules and instances, and on each index referring to an earlier item.
    bounded(bytes)?;
    read::no_outer_modules(bytes)?;
    let folded = level(bytes)?;
    bounded(&folded)?;
    if read::tables(&folded)? > MAX_TABLES {
        return Err(Kept::because("it has many tables"));
    }
    Ok(folded)
}

/// Refuses a component that the host would refuse.
fn bounded(bytes: &[u8]) -> Result<(), Kept> {
    let surface = Surface::read(bytes)?;
    if surface.instance_bytes > MAX_INSTANCE_BYTES {
        return Err(Kept::because("its instances take much memory"));
    }
    Ok(validate(bytes)?)
}

/// Merges the modules of a component, and of the components inside it.
fn level(bytes: &[u8]) -> Result<Vec<u8>, Kept> {
    let mut items = read::items(bytes)?;
    let mut inner = false;
    for item in &mut items {
        if let read::Item::Component(nested) = item
            && let Ok(folded) = level(nested)
        {
            *nested = folded.into();
            inner = true;
        }
    }
    match own(&items) {
        Err(_) if inner => emit::unchanged(&items),
        folded => folded,
    }
}

/// Merges the modules of a component, without the components inside it.
fn own(items: &[read::Item<'_>]) -> Result<Vec<u8>, Kept> {
    let spaces = link::Spaces::of(items)?;
    let group = link::MergeGroup::of(&spaces)?;
    emit::folded(items, &spaces, &group)
}

/// The name of the table of [`trampolines`]. Also the module name in the second module's import of
/// the table.
const TABLE: &str = "table";

/// Returns the two small modules next to a merged one, for functions of these types. A function
/// from outside that uses the merged module's memory can only be made after that memory, but the
/// merged module imports the function. So the merged module imports a trampoline of the first
/// module instead, which calls through a table. The second module fills that table later.
///
/// The first module exports functions `"0"`, `"1"` and so on, and [`TABLE`]. The second module
/// imports the table, and the functions from outside under the same names.
fn trampolines(signatures: &[FuncType]) -> (Vec<u8>, Vec<u8>) {
    let count = u32::try_from(signatures.len()).unwrap_or(u32::MAX);
    let table = TableType {
        element_type: RefType::FUNCREF,
        table64: false,
        minimum: count.into(),
        maximum: Some(count.into()),
        shared: false,
    };
    let mut types = TypeSection::new();
    let (mut functions, mut code) = (FunctionSection::new(), CodeSection::new());
    let (mut exports, mut imports) = (ExportSection::new(), ImportSection::new());
    for (number, signature) in (0..).zip(signatures) {
        types.ty().func_type(signature);
        functions.function(number);
        let mut function = Function::new([]);
        for (parameter, _) in (0..).zip(signature.params()) {
            function.instruction(&Instruction::LocalGet(parameter));
        }
        function
            .instruction(&Instruction::I32Const(number.cast_signed()))
            .instruction(&Instruction::CallIndirect {
                type_index: number,
                table_index: 0,
            })
            .instruction(&Instruction::End);
        code.function(&function);
        let name = number.to_string();
        exports.export(&name, ExportKind::Func, number);
        imports.import("", &name, EntityType::Function(number));
    }
    exports.export(TABLE, ExportKind::Table, 0);
    imports.import(TABLE, TABLE, EntityType::Table(table));
    let mut tables = TableSection::new();
    tables.table(table);
    let mut elements = ElementSection::new();
    let all: Vec<u32> = (0..count).collect();
    elements.active(
        None,
        &ConstExpr::i32_const(0),
        Elements::Functions(all.into()),
    );

    let mut trampolines = Module::new();
    trampolines
        .section(&types)
        .section(&functions)
        .section(&tables)
        .section(&exports)
        .section(&code);
    let mut filler = Module::new();
    filler.section(&types).section(&imports).section(&elements);
    (trampolines.finish(), filler.finish())
}
