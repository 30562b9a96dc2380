//! The WebAssembly proposals that a host runs.

use wasmparser::{Validator, WasmFeatures};

use super::SurfaceError;

/// What the host's engine has on: WebAssembly 3.0 but for what no driver needs, and
/// components without async.
pub(super) const FEATURES: WasmFeatures = WasmFeatures::WASM3
    .difference(WasmFeatures::EXCEPTIONS)
    .difference(WasmFeatures::THREADS)
    .difference(WasmFeatures::MEMORY64)
    .difference(WasmFeatures::TAIL_CALL)
    .difference(WasmFeatures::RELAXED_SIMD)
    .difference(WasmFeatures::GC)
    .difference(WasmFeatures::GC_TYPES)
    .union(WasmFeatures::COMPONENT_MODEL);

/// What belongs to async functions.
const ASYNC: WasmFeatures = WasmFeatures::CM_ASYNC
    .union(WasmFeatures::CM_ASYNC_STACKFUL)
    .union(WasmFeatures::CM_MORE_ASYNC_BUILTINS)
    .union(WasmFeatures::CM_ERROR_CONTEXT);

/// Why a component is refused that has `error`: valid but for its async functions, or not at all.
pub(super) fn explained(wasm: &[u8], error: SurfaceError) -> SurfaceError {
    match Validator::new_with_features(FEATURES.union(ASYNC)).validate_all(wasm) {
        Ok(_) => SurfaceError::Async,
        Err(_) => error,
    }
}

/// Validates a whole component, its code included, as the host's engine does before it
/// compiles one. Takes about a second for 100 MB.
///
/// # Errors
///
/// [`SurfaceError::Async`], or [`SurfaceError::Malformed`] with the offset of what is invalid, or belongs to another
/// proposal that this host does not run.
pub fn validate(wasm: &[u8]) -> Result<(), SurfaceError> {
    let found = Validator::new_with_features(FEATURES).validate_all(wasm);
    found
        .map(drop)
        .map_err(|error| explained(wasm, error.into()))
}

#[cfg(test)]
mod tests {
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
