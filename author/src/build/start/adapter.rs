//! Adds a function to a Go program's module whose start has run. The adapter for WASI preview 1
//! gets its memory from this function.
//!
//! The adapter takes two pages at its first use. If a program starts in a call, its start uses the
//! adapter before Go's runtime exists, and Go's `cabi_realloc` takes the pages from the end of the
//! memory. After a snapshot, Go's runtime exists before the first use. Then `cabi_realloc` would
//! run Go's allocator in the middle of a call to the adapter. The pages can't come from the end of
//! the memory either, since Go assumes that only Go makes the memory grow. So the library for Go
//! reserves two pages, and `cabi_realloc_adapter` hands them out; wit-component prefers a function
//! of that name to `cabi_realloc`.

use std::convert::Infallible;

use wasm_encoder::reencode::{Error, Reencode, utils};
use wasm_encoder::{
    BlockType, CodeSection, ConstExpr, ExportKind, ExportSection, Function, FunctionSection,
    GlobalSection, GlobalType, ImportSection, Module, TypeSection, ValType,
};
use wasmparser::{
    CodeSectionReader, ExportSectionReader, FunctionSectionReader, GlobalSectionReader,
    ImportSectionReader, TypeRef, TypeSectionReader,
};

/// The name of the added function.
const NAME: &str = "cabi_realloc_adapter";

/// The size of the pieces that the adapter asks for, and the number of pieces that it gets.
const PAGE_BYTES: u32 = 65_536;
const PAGES: u32 = 2;

/// Returns the module with the function. The adapter's pages start at `address`.
pub(super) fn with_pages(wasm: &[u8], address: u32) -> wasmtime::Result<Vec<u8>> {
    let end = PAGES
        .checked_mul(PAGE_BYTES)
        .and_then(|bytes| address.checked_add(bytes));
    let Some(end) = end else {
        wasmtime::bail!("the adapter's memory is at no address");
    };
    let mut adding = Adding {
        address,
        end,
        ..Adding::default()
    };
    let mut module = Module::new();
    adding
        .parse_core_module(&mut module, wasmparser::Parser::new(0), wasm)
        .map_err(|error| wasmtime::format_err!("{error}"))?;
    Ok(module.finish())
}

/// Adds an item at the end of each section, so that no index changes.
#[derive(Default)]
struct Adding {
    address: u32,
    end: u32,
    /// The number of imported functions.
    imported: u32,
    /// The indices of the added items.
    shape: u32,
    function: u32,
    next: u32,
}

impl Reencode for Adding {
    type Error = Infallible;

    fn parse_type_section(
        &mut self,
        types: &mut TypeSection,
        section: TypeSectionReader<'_>,
    ) -> Result<(), Error<Infallible>> {
        utils::parse_type_section(self, types, section)?;
        self.shape = types.len();
        types.ty().function([ValType::I32; 4], [ValType::I32]);
        Ok(())
    }

    fn parse_import_section(
        &mut self,
        imports: &mut ImportSection,
        section: ImportSectionReader<'_>,
    ) -> Result<(), Error<Infallible>> {
        for import in section.clone().into_imports() {
            self.imported += u32::from(matches!(import?.ty, TypeRef::Func(_)));
        }
        utils::parse_import_section(self, imports, section)
    }

    fn parse_function_section(
        &mut self,
        functions: &mut FunctionSection,
        section: FunctionSectionReader<'_>,
    ) -> Result<(), Error<Infallible>> {
        utils::parse_function_section(self, functions, section)?;
        self.function = self.imported + functions.len();
        functions.function(self.shape);
        Ok(())
    }

    fn parse_global_section(
        &mut self,
        globals: &mut GlobalSection,
        section: GlobalSectionReader<'_>,
    ) -> Result<(), Error<Infallible>> {
        utils::parse_global_section(self, globals, section)?;
        // No global is imported, since a snapshot of such a module is not possible.
        self.next = globals.len();
        let next = GlobalType {
            val_type: ValType::I32,
            mutable: true,
            shared: false,
        };
        globals.global(next, &ConstExpr::i32_const(self.address.cast_signed()));
        Ok(())
    }

    fn parse_export_section(
        &mut self,
        exports: &mut ExportSection,
        section: ExportSectionReader<'_>,
    ) -> Result<(), Error<Infallible>> {
        utils::parse_export_section(self, exports, section)?;
        exports.export(NAME, ExportKind::Func, self.function);
        Ok(())
    }

    fn parse_code_section(
        &mut self,
        code: &mut CodeSection,
        section: CodeSectionReader<'_>,
    ) -> Result<(), Error<Infallible>> {
        utils::parse_code_section(self, code, section)?;
        code.function(&self.realloc());
        Ok(())
    }
}

impl Adding {
    /// Hands out the next page. Traps if the caller wants another size, a third page, or another
    /// size for a piece that it has: such a caller is not the known adapter.
    fn realloc(&self) -> Function {
        let [old, old_bytes, _align, new_bytes] = [0, 1, 2, 3];
        let mut function = Function::new([]);
        function
            .instructions()
            .local_get(old)
            .local_get(old_bytes)
            .i32_or()
            .local_get(new_bytes)
            .i32_const(PAGE_BYTES.cast_signed())
            .i32_ne()
            .i32_or()
            .global_get(self.next)
            .i32_const(self.end.cast_signed())
            .i32_ge_u()
            .i32_or()
            .if_(BlockType::Empty)
            .unreachable()
            .end()
            .global_get(self.next)
            .global_get(self.next)
            .i32_const(PAGE_BYTES.cast_signed())
            .i32_add()
            .global_set(self.next)
            .end();
        function
    }
}
