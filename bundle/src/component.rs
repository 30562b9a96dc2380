//! The outside of a WebAssembly component: the names that its top level imports and exports, and
//! the number of its instances.
//!
//! [`Surface::read`] skips the code of core modules, so that its cost does not depend on the amount
//! of code. It does not validate the component; [`validate`] does.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolward_signing::Digest;
use toolward_signing::verify::UnreadFile;
use toolward_support::report::codes;
use wasmparser::{Validator, WasmFeatures};

mod facts;
mod functions;
mod walk;
mod world;

pub use functions::{
    Function, Functions, MAX_FIELDS, MAX_FUNCTIONS, MAX_KEBAB, MAX_PARAMETERS, MAX_TYPE_DEPTH,
    MAX_TYPES, Type, WithheldFunction,
};
pub use world::{MadeFor, Usability};

/// The interface that a driver exports.
pub const HANDLER: &str = "toolward:driver/handler@0.1.0";

/// Largest component that is read, in bytes. A Python driver has 19 MB. With a larger limit, a
/// component could keep the compiler busy for longer.
pub const MAX_SIZE: u64 = 64 * 1024 * 1024;

/// How deep components may be nested. Toolchains write one or two levels; each further level
/// multiplies the work of validation.
pub const MAX_DEPTH: usize = 8;

/// How many core modules and components may be inside a component, at all depths together. Bounds
/// the work of reading.
pub const MAX_NESTED: usize = 1024;

/// How many core modules a component may instantiate, at all depths together. The host's engine
/// accepts no more. Toolchains make two to eight; a Python driver with its shared libraries has 14
/// to 38.
pub const MAX_CORE_INSTANCES: u32 = 128;

/// Bytes that all core instances of a component may take together in the host's memory, without
/// their linear memories and tables. The host's engine accepts no more.
pub const MAX_INSTANCE_BYTES: u64 = 1 << 20;

/// How many imports, and how many exports, the top level may have.
pub const MAX_NAMES: usize = 4096;

/// Longest import or export name, in bytes: such names are shown to people.
pub const MAX_NAME: usize = 1024;

/// The packages that a driver may import, each with the version that the host provides. A version
/// that ends in a dot includes all of its patch versions.
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
pub struct Surface {
    /// The names that the top level imports, in the order of the file.
    pub imports: Vec<String>,
    /// The exports of the top level, in the order of the file.
    pub exports: Vec<Export>,
    /// Core modules at all depths.
    pub modules: usize,
    /// Components inside the component, at all depths.
    pub components: usize,
    /// Instances of core modules, at all depths together.
    pub core_instances: u64,
    /// Bytes that these core instances take in the host's memory at most, without their linear
    /// memories and tables. They count against a call's memory limit.
    pub instance_bytes: u64,
    /// Length of the binary in bytes.
    pub size: u64,
}

codes! {
    /// Why a file is not a component that a host accepts.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub enum SurfaceError: Error {
        /// `size` in bytes is above [`MAX_SIZE`].
        TooLarge { size: u64 } = "component-too-large" ["1 or 3"], "a component is larger than a host accepts",
            ("the component has {size} bytes, the limit is {MAX_SIZE}")
            => "build with opt-level \"s\", lto and strip, or split the driver";
        CoreModule = "component-is-module" ["1 or 3"],
            "a core WebAssembly module was found, a component was expected"
            => "build for the target wasm32-wasip2, or wrap the module with `wasm-tools component new`";
        /// `found` is a kind of file with its article, such as `a ZIP archive`.
        NotWebAssembly { found: &'static str } = "component-malformed" ["1 or 3"],
            "a file is not WebAssembly, or not a valid component",
            ("a WebAssembly component was expected, and this is {found}")
            => "name the component, a file that ends in .wasm; `toolward build` makes it";
        /// `offset` is counted from the start of the file.
        Malformed { offset: u64, message: String } = "component-malformed" ["1 or 3"], ("byte {offset}: {message}")
            => "build the driver again: `toolward build`";
        Async = "component-async" ["1 or 3"],
            "a component has async functions, streams or futures, which this version does not run yet",
            ("it has async functions, streams or futures, which this version of Toolward does not run yet")
            => "build it without async functions, for WASI 0.2";
        /// More core instances, at all depths, than [`MAX_CORE_INSTANCES`].
        TooManyInstances { found: u64 } = "component-too-complex" ["1 or 3"],
            "a component is more deeply nested, or makes more instances, than a host accepts",
            ("the component makes {found} core instances, the limit is {MAX_CORE_INSTANCES}")
            => "link the driver's libraries into fewer core modules";
        /// Another limit is exceeded. `what` is what it counts, such as imports or levels of
        /// nesting.
        TooComplex { what: &'static str, limit: usize } = "component-too-complex" ["1 or 3"],
            ("the component has more {what} than {limit}");
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

/// The bytes of a component, or the file in which they are.
#[derive(Debug, Clone)]
pub enum ComponentContent {
    /// The verified bytes.
    Bytes(Arc<[u8]>),
    /// A file that is verified when it is read.
    Unread(UnreadFile),
}

/// A driver's component: the bytes to compile and their outside.
#[derive(Debug, Clone)]
pub struct Component {
    /// The file's name within the bundle.
    pub path: String,
    /// The digest of the bytes.
    pub digest: Digest,
    /// The bytes of the component.
    pub content: ComponentContent,
    /// The imports and exports.
    pub surface: Surface,
    /// The functions that the host calls with their own types (the world `wit`), by name.
    pub functions: BTreeMap<String, Arc<Function>>,
}

impl Component {
    /// The verified bytes. Bytes that were unread must also be as the facts state, with which the
    /// declarations were checked.
    ///
    /// # Errors
    ///
    /// Why the file can't be read, or is not as it was when its bundle was verified.
    pub fn read(&self) -> Result<Arc<[u8]>, String> {
        let file = match &self.content {
            ComponentContent::Bytes(bytes) => return Ok(Arc::clone(bytes)),
            ComponentContent::Unread(file) => file,
        };
        let bytes = file.read().map_err(|refusal| refusal.to_string())?;
        match Surface::read(&bytes) {
            Ok(surface) if surface == self.surface => Ok(bytes),
            _ => Err("it is not as the facts in the cache state".to_owned()),
        }
    }
}

impl Surface {
    /// Reads the outside of `bytes`.
    ///
    /// # Errors
    ///
    /// When the bytes are not a component binary, or exceed a limit of this module. The contents of
    /// core modules and of nested components are not validated: a component that is read without an
    /// error can still be invalid.
    pub fn read(bytes: &[u8]) -> Result<Self, SurfaceError> {
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if size > MAX_SIZE {
            return Err(SurfaceError::TooLarge { size });
        }
        if let Some(found) = kind_of(bytes) {
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

    /// The version of `toolward:driver/handler` that the component exports, if it exports one.
    pub fn handler_version(&self) -> Option<&str> {
        self.instances()
            .find_map(|name| name.strip_prefix("toolward:driver/handler@"))
    }

    /// Whether the component exports [`HANDLER`].
    pub fn exports_handler(&self) -> bool {
        self.instances().any(|name| name == HANDLER)
    }

    /// The names of the exported instances.
    fn instances(&self) -> impl Iterator<Item = &str> {
        let exports = self.exports.iter();
        let instances = exports.filter(|export| export.kind == "instance");
        instances.map(|export| export.name.as_str())
    }

    /// Whether the component imports `package`: any interface of a package, such as `wasi:http`, or
    /// a single interface, such as `wasi:cli/run`.
    pub fn imports_package(&self, package: &str) -> bool {
        let names = self.imports.iter();
        let mut rests = names.filter_map(|name| name.strip_prefix(package));
        rests.any(|rest| rest.starts_with(['/', '@']))
    }

    /// The imports that no host of this version provides.
    pub fn unknown_imports(&self) -> Vec<&str> {
        let names = self.imports.iter().map(String::as_str);
        names.filter(|name| !is_known_import(name)).collect()
    }
}

fn is_known_import(name: &str) -> bool {
    KNOWN_IMPORTS.iter().any(|(package, version)| {
        let interface = name.strip_prefix(package);
        let found = interface.and_then(|interface| interface.split_once('@'));
        let patch = found.and_then(|(_, found)| found.strip_prefix(version));
        patch.is_some_and(|patch| {
            patch.is_empty() != version.ends_with('.')
                && patch.bytes().all(|byte| byte.is_ascii_digit())
        })
    })
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

/// The proposals of the host's engine: WebAssembly 3.0 without features that no driver needs, and
/// components without async.
const FEATURES: WasmFeatures = WasmFeatures::WASM3
    .difference(WasmFeatures::EXCEPTIONS)
    .difference(WasmFeatures::THREADS)
    .difference(WasmFeatures::MEMORY64)
    .difference(WasmFeatures::TAIL_CALL)
    .difference(WasmFeatures::RELAXED_SIMD)
    .difference(WasmFeatures::GC)
    .difference(WasmFeatures::GC_TYPES)
    .union(WasmFeatures::COMPONENT_MODEL);

/// The proposals for async functions.
const ASYNC: WasmFeatures = WasmFeatures::CM_ASYNC
    .union(WasmFeatures::CM_ASYNC_STACKFUL)
    .union(WasmFeatures::CM_MORE_ASYNC_BUILTINS)
    .union(WasmFeatures::CM_ERROR_CONTEXT);

/// Returns [`SurfaceError::Async`] if the component is valid with the async proposals, otherwise
/// `error`.
fn explained(wasm: &[u8], error: SurfaceError) -> SurfaceError {
    match Validator::new_with_features(FEATURES.union(ASYNC)).validate_all(wasm) {
        Ok(_) => SurfaceError::Async,
        Err(_) => error,
    }
}

/// Validates a whole component, its code included, as the host's engine does before it compiles
/// one. Takes about a second for 100 MB.
///
/// # Errors
///
/// [`SurfaceError::Async`], or [`SurfaceError::Malformed`] with the offset of the first part that
/// is invalid or belongs to a proposal that this host does not run.
pub fn validate(wasm: &[u8]) -> Result<(), SurfaceError> {
    let found = Validator::new_with_features(FEATURES).validate_all(wasm);
    found
        .map(drop)
        .map_err(|error| explained(wasm, error.into()))
}

/// Kinds of files, by their first bytes, for messages.
const KINDS: [(&[u8], &str); 13] = [
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"\xfd7zXZ", "an xz archive"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF", "a PDF document"),
    (b"\x7fELF", "a Linux program"),
    (b"MZ", "a Windows program"),
    (b"#!", "a script"),
    (b"-----BEGIN ", "a PEM file"),
    (b"<", "HTML, XML or SVG"),
];

/// How many bytes are read to find out whether a file is text.
const MAX_CHECKED: usize = 4096;

/// The kind of the bytes, for messages; `None` if they start as WebAssembly does.
fn kind_of(bytes: &[u8]) -> Option<&'static str> {
    if bytes.starts_with(b"\0asm") {
        return None;
    }
    if bytes.is_empty() {
        return Some("an empty file");
    }
    let known = KINDS.iter().find(|(first, _)| bytes.starts_with(first));
    if let Some((_, kind)) = known {
        return Some(kind);
    }
    let start = bytes.get(..MAX_CHECKED).unwrap_or(bytes);
    // The last character may be cut off.
    let is_invalid = str::from_utf8(start).is_err_and(|error| error.error_len().is_some());
    let is_text = !start.contains(&0) && !is_invalid;
    Some(match (is_text, start.trim_ascii_start().first()) {
        (true, Some(b'{' | b'[')) => "JSON",
        (true, Some(b'(')) => "WebAssembly in text form",
        (true, _) => "a text file",
        (false, _) => "a file of an unknown kind",
    })
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod feature_tests {
    use super::*;

    #[test]
    fn what_no_host_runs_is_refused() {
        for (text, runs) in [
            ("(component (core module (memory 1)))", true),
            ("(component (core module (memory 1) (memory 1)))", true),
            ("(component (core module (memory i64 1)))", false),
            ("(component (core module (memory 1 1 shared)))", false),
            ("(component (core module (tag)))", false),
            ("(component (core module (type (struct))))", false),
            ("(component (core module (func (param externref))))", false),
            ("(component (core module (func return_call 0)))", false),
            ("(component (core func (canon task.cancel)))", false),
            ("(component (import \"f\" (func async)))", false),
        ] {
            let wasm = wat::parse_str(text).unwrap();
            let found = validate(&wasm);
            assert_eq!(found.is_ok(), runs, "{text}");
            let is_async = matches!(found, Err(SurfaceError::Async));
            let names_it = text.contains("async") || text.contains("task.");
            assert_eq!(is_async, names_it, "{text}: {found:?}");
        }
    }
}
