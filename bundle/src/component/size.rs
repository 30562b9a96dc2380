//! What an instance of a core module takes in the host's own memory, beside its
//! linear memories and tables: wasmtime's context of it. An estimate that is meant
//! to be more, from the counts at the start of each section: no code is read.

use wasmparser::{Chunk, Element, ElementItems, ElementKind, Parser, Payload};

use super::MAX_INSTANCE_BYTES;
use super::instances::Made;

/// What each instance takes beside its context.
const INSTANCE_BYTES: u64 = 4 << 10;

/// An import, a function that may be called indirectly, or a global. The largest of
/// them, a function, has four pointers.
const ITEM_BYTES: u64 = 40;

/// An element of a passive segment: each instance has a copy of its own.
const ELEMENT_BYTES: u64 = 16;

/// A memory, a table: its place in the context, and what the allocator keeps on it.
const SPACE_BYTES: u64 = 256;

/// Bytes of the context of one instance of the core module that `module` begins with.
/// One that can't be read takes the most; it is for the engine to refuse.
pub(super) fn of(module: &[u8]) -> u64 {
    count(module).unwrap_or(MAX_INSTANCE_BYTES)
}

/// Bytes of all instances that a component makes.
pub(super) fn of_all(made: Made) -> u64 {
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
                (
                    segments.fold(0, |sum: u64, one| sum.saturating_add(passive(&one))),
                    1,
                )
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

/// Bytes of a segment's copy.
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
        of(&wat::parse_str(wat).unwrap())
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
        let made = |core, bytes| Made {
            core,
            bytes,
            ..Made::default()
        };
        assert_eq!(of_all(made(3, 100)), 100 + 3 * INSTANCE_BYTES);
        assert_eq!(of_all(made(2, u64::MAX)), u64::MAX);
        assert_eq!(of(b"\0asm\x01\0\0\0\x02\xff"), MAX_INSTANCE_BYTES);
    }
}
