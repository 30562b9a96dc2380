//! The two small modules beside a merged one. A function from outside that uses the merged
//! module's memory can only be made when that is there, and the merged module needs it to be
//! made itself. So it imports a trampoline of the first module, which calls through a table; the
//! second module fills that table later.

use wasm_encoder::{
    CodeSection, ConstExpr, ElementSection, Elements, EntityType, ExportKind, ExportSection,
    Function, FunctionSection, ImportSection, Instruction, Module, RefType, TableSection,
    TableType, TypeSection, ValType,
};

/// The name of the table, and of what the second module imports it from.
pub(super) const TABLE: &str = "table";

/// Parameters and results.
pub(super) type Signature = (Vec<ValType>, Vec<ValType>);

/// The two modules for functions of these types. The first exports functions `"0"`, `"1"` and so
/// on and [`TABLE`]; the second imports both, the functions as what the others call.
pub(super) fn modules(signatures: &[Signature]) -> (Vec<u8>, Vec<u8>) {
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
    for (number, (parameters, results)) in (0..).zip(signatures) {
        types
            .ty()
            .function(parameters.iter().copied(), results.iter().copied());
        functions.function(number);
        let mut function = Function::new([]);
        for (parameter, _) in (0..).zip(parameters) {
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
