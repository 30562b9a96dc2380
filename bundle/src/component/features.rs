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

/// Validates a whole component, its code included, as the host's engine does before it
/// compiles one. Takes about a second for 100 MB.
///
/// # Errors
///
/// [`SurfaceError::Malformed`] with the offset of what is invalid, or belongs to a
/// proposal that hosts don't run.
pub fn validate(wasm: &[u8]) -> Result<(), SurfaceError> {
    Validator::new_with_features(FEATURES).validate_all(wasm)?;
    Ok(())
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
            assert_eq!(validate(&wasm).is_ok(), runs, "{text}");
        }
    }
}
