//! Walks a component from start to end. It collects the imports and exports, counts the instances,
//! including those of nested components, and estimates how much of the host's memory the instances
//! take.

use wasmparser::{
    Chunk, ComponentAlias, ComponentAliasSectionReader, ComponentExportSectionReader,
    ComponentExternalKind, ComponentImportSectionReader, ComponentInstance,
    ComponentOuterAliasKind, ComponentTypeRef, Element, ElementItems, ElementKind, Encoding,
    Instance, Parser, Payload,
};

use super::{
    Export, MAX_CORE_INSTANCES, MAX_DEPTH, MAX_INSTANCE_BYTES, MAX_NAME, MAX_NAMES, MAX_NESTED,
    Surface, SurfaceError, too_complex, truncated,
};

/// How many instances, of components and core modules together, a component may make. An engine
/// lays out all of them when it compiles the component. Six nested levels that each instantiate the
/// next a hundred times would request 10^12 instances in two kilobytes.
const MAX_INSTANCES: usize = 256;

/// How many bytes a core instance takes besides its context, the structure in which the engine has
/// the instance's imports, functions, globals, memories and tables.
const INSTANCE_BYTES: u64 = 4 << 10;

/// The bytes of a context for an import, a function or a global. The largest of these, a function
/// that can be called indirectly, has four pointers.
const ITEM_BYTES: u64 = 40;

/// The bytes for an element of a passive segment. Each instance has a copy of the segment.
const ELEMENT_BYTES: u64 = 16;

/// The bytes for a memory or a table: its entry in the context, and the allocator's record.
const SPACE_BYTES: u64 = 256;

impl Surface {
    pub(super) fn walk(&mut self, bytes: &[u8]) -> Result<(), SurfaceError> {
        // The parsers of the enclosing components.
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
                    made.module(instance_bytes(module));
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
                Payload::ComponentImportSection(section) => {
                    self.imports(section, top, &mut made)?;
                }
                Payload::ComponentExportSection(section) if top => self.exports(section)?,
                Payload::End(_) => match enclosing.pop() {
                    Some(outer) => {
                        made.leave();
                        parser = outer;
                    }
                    None if rest.is_empty() => {
                        self.core_instances = made.here.made.core;
                        self.instance_bytes = total_bytes(made.here.made);
                        return bounded_instances(made.here.made);
                    }
                    None => return Err(truncated(bytes)),
                },
                _ => {}
            }
        }
    }

    /// Reads the imports of the component itself (`top`) or of a nested component.
    fn imports(
        &mut self,
        section: ComponentImportSectionReader<'_>,
        top: bool,
        made: &mut Instantiations,
    ) -> Result<(), SurfaceError> {
        for import in section {
            let import = import?;
            match import.ty {
                // No host provides a component, so an imported one has no instances to count.
                ComponentTypeRef::Component(_) if top => made.here.known.push(Default::default()),
                ComponentTypeRef::Component(_) => return Err(from_elsewhere()),
                ComponentTypeRef::Module(_) => made.module(MAX_INSTANCE_BYTES),
                _ => {}
            }
            if !top {
                continue;
            }
            let name = checked_name(import.name.name, self.imports.len(), "imports")?;
            self.imports.push(name);
        }
        Ok(())
    }

    fn exports(&mut self, section: ComponentExportSectionReader<'_>) -> Result<(), SurfaceError> {
        for export in section {
            let export = export?;
            let name = checked_name(export.name.name, self.exports.len(), "exports")?;
            let kind = kind_name(export.kind);
            self.exports.push(Export { name, kind });
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

fn bounded_instances(made: InstanceCounts) -> Result<(), SurfaceError> {
    if made.core > u64::from(MAX_CORE_INSTANCES) {
        return Err(SurfaceError::TooManyInstances { found: made.core });
    }
    if made.total() > MAX_INSTANCES as u64 {
        return Err(too_complex("instances", MAX_INSTANCES));
    }
    Ok(())
}

/// Checks the name of one of the imports or exports (`what`), of which `before` were read before.
fn checked_name(name: &str, before: usize, what: &'static str) -> Result<String, SurfaceError> {
    if name.len() > MAX_NAME {
        return Err(too_complex("bytes in a name", MAX_NAME));
    }
    if before >= MAX_NAMES {
        return Err(too_complex(what, MAX_NAMES));
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

/// The refusal of a component that an alias defines, or that a nested component imports. Otherwise,
/// each of several siblings could instantiate the sibling before it a hundred times, so the counts
/// would multiply without deep nesting. No toolchain needs this for a driver.
fn from_elsewhere() -> SurfaceError {
    too_complex("components taken from elsewhere", 0)
}

fn aliases(
    section: ComponentAliasSectionReader<'_>,
    made: &mut Instantiations,
) -> Result<(), SurfaceError> {
    for alias in section {
        match alias? {
            ComponentAlias::Outer {
                kind: ComponentOuterAliasKind::Component,
                ..
            }
            | ComponentAlias::InstanceExport {
                kind: ComponentExternalKind::Component,
                ..
            } => return Err(from_elsewhere()),
            ComponentAlias::Outer {
                kind: ComponentOuterAliasKind::CoreModule,
                count,
                index,
            } => made.outer_module(count, index),
            ComponentAlias::InstanceExport {
                kind: ComponentExternalKind::Module,
                ..
            } => made.module(MAX_INSTANCE_BYTES),
            _ => {}
        }
    }
    Ok(())
}

/// How many instances one instantiation of a component makes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct InstanceCounts {
    /// Instances of core modules.
    pub(super) core: u64,
    /// Instances of components.
    pub(super) components: u64,
    /// Bytes of the contexts of the core instances.
    pub(super) bytes: u64,
}

impl InstanceCounts {
    fn total(self) -> u64 {
        self.core.saturating_add(self.components)
    }
}

/// One component while it is read.
#[derive(Debug, Default)]
struct Level {
    made: InstanceCounts,
    /// The instances of each component that can be instantiated here, by its index.
    known: Vec<InstanceCounts>,
    /// How many bytes an instance takes, for each core module here, by the module's index.
    modules: Vec<u64>,
}

impl Level {
    fn module(&self, index: u32) -> u64 {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        self.modules
            .get(index)
            .copied()
            .unwrap_or(MAX_INSTANCE_BYTES)
    }
}

/// Counts the instances of a component while it is read from start to end. A component is always
/// defined before its instantiation, in the same enclosing component, so its count is known by
/// then.
#[derive(Debug, Default)]
struct Instantiations {
    here: Level,
    /// The enclosing components.
    outer: Vec<Level>,
}

impl Instantiations {
    /// Adds a core module whose instances take this many bytes each. For a module whose code is
    /// unknown, the caller gives the maximum.
    fn module(&mut self, bytes: u64) {
        self.here.modules.push(bytes);
    }

    /// Adds the core module with this index in the component that is `levels` levels further out.
    fn outer_module(&mut self, levels: u32, index: u32) {
        let levels = usize::try_from(levels).unwrap_or(usize::MAX);
        let level = match levels.checked_sub(1) {
            None => Some(&self.here),
            Some(out) => self.outer.iter().rev().nth(out),
        };
        let bytes = level.map_or(MAX_INSTANCE_BYTES, |level| level.module(index));
        self.module(bytes);
    }

    /// Counts an instance of the core module with this index.
    fn core(&mut self, module: u32) {
        let bytes = self.here.module(module);
        let made = &mut self.here.made;
        made.core = made.core.saturating_add(1);
        made.bytes = made.bytes.saturating_add(bytes);
    }

    /// Counts an instance of the component with this index. An index that doesn't exist is not an
    /// error here, since the engine refuses it later.
    fn component(&mut self, index: u32) {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        let inner = self.here.known.get(index).copied().unwrap_or_default();
        let made = &mut self.here.made;
        made.core = made.core.saturating_add(inner.core);
        made.bytes = made.bytes.saturating_add(inner.bytes);
        made.components = made
            .components
            .saturating_add(inner.components)
            .saturating_add(1);
    }

    /// Starts a nested component.
    fn enter(&mut self) {
        self.outer.push(std::mem::take(&mut self.here));
    }

    /// Ends a nested component.
    fn leave(&mut self) {
        let outer = self.outer.pop().unwrap_or_default();
        let inner = std::mem::replace(&mut self.here, outer);
        self.here.known.push(inner.made);
    }
}

/// Estimates the bytes of the context of one instance of the core module, from the counts at the
/// start of each section. The estimate is deliberately high. If the module can't be read, the
/// estimate is the maximum; the engine refuses the module later.
pub(super) fn instance_bytes(module: &[u8]) -> u64 {
    count(module).unwrap_or(MAX_INSTANCE_BYTES)
}

/// Bytes of all instances that a component makes.
pub(super) fn total_bytes(made: InstanceCounts) -> u64 {
    let own = made.core.saturating_mul(INSTANCE_BYTES);
    made.bytes.saturating_add(own)
}

fn count(module: &[u8]) -> Option<u64> {
    let mut parser = Parser::new(0);
    let mut rest = module;
    let mut bytes: u64 = 0;
    loop {
        let Chunk::Parsed { consumed, payload } = parser.parse(rest, true).ok()? else {
            return None;
        };
        rest = rest.get(consumed..)?;
        let (items, each) = match payload {
            Payload::ImportSection(section) => {
                let imports = section.into_imports();
                let count = imports.take_while(Result::is_ok).count();
                (u64::try_from(count).unwrap_or(u64::MAX), ITEM_BYTES)
            }
            Payload::FunctionSection(section) => (u64::from(section.count()), ITEM_BYTES),
            Payload::GlobalSection(section) => (u64::from(section.count()), ITEM_BYTES),
            Payload::TableSection(section) => (u64::from(section.count()), SPACE_BYTES),
            Payload::MemorySection(section) => (u64::from(section.count()), SPACE_BYTES),
            Payload::ElementSection(section) => {
                let segments = section.into_iter().take_while(Result::is_ok).flatten();
                let copies = segments.map(|segment| passive(&segment));
                (copies.fold(0, u64::saturating_add), 1)
            }
            Payload::CodeSectionStart { size, .. } => {
                parser.skip_section();
                rest = rest.get(usize::try_from(size).ok()?..)?;
                (0, 0)
            }
            Payload::End(_) => return Some(bytes),
            _ => (0, 0),
        };
        bytes = bytes.saturating_add(items.saturating_mul(each));
    }
}

/// Bytes of an instance's copy of a segment. Only passive segments are copied.
fn passive(segment: &Element<'_>) -> u64 {
    if !matches!(segment.kind, ElementKind::Passive) {
        return 0;
    }
    let count = match &segment.items {
        ElementItems::Functions(items) => items.count(),
        ElementItems::Expressions(_, items) => items.count(),
    };
    u64::from(count)
        .saturating_mul(ELEMENT_BYTES)
        .saturating_add(SPACE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(wat: &str) -> u64 {
        instance_bytes(&wat::parse_str(wat).unwrap())
    }

    #[test]
    fn imports_functions_globals_tables_and_memories_count() {
        assert_eq!(size("(module)"), 0);
        let one = size(
            "(module (import \"a\" \"f\" (func)) (func) (func) (global i32 (i32.const 0))
             (table 1 funcref) (memory 1))",
        );
        assert_eq!(one, 4 * ITEM_BYTES + 2 * SPACE_BYTES);
        let many = size(&format!("(module {})", "(func)".repeat(1000)));
        assert_eq!(many, 1000 * ITEM_BYTES);
    }

    #[test]
    fn elements_of_passive_segments_count_and_others_do_not() {
        let size = |segment: &str| size(&format!("(module (table 9 funcref) (func) {segment})"));
        let without = size("");
        let passive = size("(elem func 0 0 0)");
        assert_eq!(passive - without, 3 * ELEMENT_BYTES + SPACE_BYTES);
        let expressions = size("(elem funcref (ref.null func) (ref.func 0))");
        assert_eq!(expressions - without, 2 * ELEMENT_BYTES + SPACE_BYTES);
        assert_eq!(size("(elem declare func 0 0)"), without);
        assert_eq!(size("(elem (i32.const 0) func 0 0)"), without);
    }

    #[test]
    fn all_instances_count() {
        let made = |core, bytes| InstanceCounts {
            core,
            bytes,
            ..InstanceCounts::default()
        };
        assert_eq!(total_bytes(made(3, 100)), 100 + 3 * INSTANCE_BYTES);
        assert_eq!(total_bytes(made(2, u64::MAX)), u64::MAX);
        assert_eq!(
            instance_bytes(b"\0asm\x01\0\0\0\x02\xff"),
            MAX_INSTANCE_BYTES
        );
    }
}
