//! Components made to be hard to compile: they are refused or bounded, and the host continues.

use std::time::{Duration, Instant};

use serde_json::json;
use toolward_bundle::component::Surface;
use toolward_host::{
    Ahead, Broker, CompileCost, CompileError, CompileLimits, CompileReason, Host, Request,
};

use crate::bombs;
use crate::broker::CompileBackend;
use crate::fixture::{Extra, Fixture, hostile_wasm, still_serves};

/// Limits that are small enough for a test. Memory and output suffice for any honest driver of
/// these tests. Whether the processor time suffices depends on the machine.
const LIMITS: CompileLimits = CompileLimits {
    cpu_seconds: 2,
    memory_bytes: 1 << 30,
    wall: Duration::from_secs(60),
    artifact_bytes: 64 << 20,
};

fn broker(backend: &CompileBackend, limits: CompileLimits) -> Broker {
    Broker::builder(backend.command("worker_process"))
        .cache(backend.cache())
        .limits(limits)
        .start()
        .unwrap()
}

/// Compiles a component under [`LIMITS`]. Asserts that no worker is left, and no artifact if
/// compiling fails.
fn compile(wasm: &[u8]) -> Result<(), CompileError> {
    compile_within(LIMITS, wasm)
}

fn compile_within(limits: CompileLimits, wasm: &[u8]) -> Result<(), CompileError> {
    let backend = CompileBackend::new();
    let broker = broker(&backend, limits);
    let started = Instant::now();
    let result = broker.compile(wasm);
    assert!(started.elapsed() < limits.wall * 2);
    assert_eq!(backend.processes().len(), 1, "the broker alone is left");
    let kept = backend.artifacts().len();
    assert_eq!(kept, usize::from(result.is_ok()));
    result
}

fn refused(wasm: &[u8]) -> CompileReason {
    compile(wasm).unwrap_err().reason()
}

#[test]
fn a_driver_of_these_tests_compiles_within_the_limits() {
    let limits = CompileLimits {
        cpu_seconds: LIMITS.wall.as_secs(),
        ..LIMITS
    };
    compile_within(limits, &std::fs::read(hostile_wasm()).unwrap()).unwrap();
}

#[test]
fn what_is_no_component_is_refused_with_the_compilers_words() {
    let driver = std::fs::read(hostile_wasm()).unwrap();
    let cut = &driver[..driver.len() / 2];
    for wasm in [&b""[..], b"not WebAssembly", cut, b"\0asm\x01\0\0\0"] {
        let error = compile(wasm).unwrap_err();
        assert_eq!(error.reason(), CompileReason::Invalid, "{error}");
        assert!(error.to_string().contains("does not compile"), "{error}");
    }
}

#[test]
fn huge_functions_end_at_the_memory_or_processor_limit() {
    let reason = refused(&bombs::of_module(&bombs::huge_functions(8)));
    assert!(
        matches!(reason, CompileReason::Memory | CompileReason::Processor),
        "{reason:?}"
    );
}

#[test]
fn blocks_nested_without_measure_are_bounded() {
    let _ = compile(&bombs::deep_blocks(1_000_000));
}

#[test]
fn types_and_functions_without_measure_are_bounded() {
    let _ = compile(&bombs::many_types(10_000));
    let _ = compile(&bombs::many_functions(500_000));
}

#[test]
fn tables_that_are_laid_out_whole_are_bounded() {
    let wasm = bombs::sparse_tables(100);
    assert!(wasm.len() < 200_000, "{}", wasm.len());
    let reason = refused(&wasm);
    assert!(
        matches!(
            reason,
            // Which limit is hit first depends on how fast the machine provides memory.
            CompileReason::Memory | CompileReason::Output | CompileReason::Processor
        ),
        "{reason:?}"
    );
    let _ = compile(&bombs::many_elements(1_000_000));
}

#[test]
fn data_spread_over_a_whole_memory_is_bounded() {
    let _ = compile(&bombs::sparse_data(1000));
    let _ = compile(&bombs::sparse_data(60_000));
}

#[test]
fn components_within_components_are_bounded() {
    let _ = compile(&bombs::instances(6, 100));
    let _ = compile(&bombs::nested(5000));
}

#[test]
fn processor_time_is_told_from_the_rest() {
    let backend = CompileBackend::new();
    let limits = CompileLimits {
        cpu_seconds: 1,
        memory_bytes: 16 << 30,
        ..LIMITS
    };
    let wasm = bombs::of_module(&bombs::huge_functions(4));
    let error = broker(&backend, limits).compile(&wasm).unwrap_err();
    assert_eq!(error.reason(), CompileReason::Processor, "{error}");
}

#[test]
fn compiled_code_that_is_too_large_is_refused() {
    let backend = CompileBackend::new();
    let limits = CompileLimits {
        artifact_bytes: 10_000,
        ..LIMITS
    };
    let driver = std::fs::read(hostile_wasm()).unwrap();
    let error = broker(&backend, limits).compile(&driver).unwrap_err();
    assert_eq!(error.reason(), CompileReason::Output, "{error}");
}

/// Limits that the drivers of the tests below don't come near; [`ENOUGH`] is a budget of the same
/// size.
const AMPLE: CompileLimits = CompileLimits {
    cpu_seconds: LIMITS.wall.as_secs(),
    ..LIMITS
};
const ENOUGH: CompileCost = CompileCost {
    processor: LIMITS.wall,
    artifact_bytes: LIMITS.artifact_bytes,
};

#[test]
fn compiling_ahead_takes_from_the_budget_what_it_costs() {
    let backend = CompileBackend::new();
    let broker = broker(&backend, AMPLE);
    let driver = std::fs::read(hostile_wasm()).unwrap();
    let mut left = ENOUGH;
    let ahead = broker.compile_within(&driver, &mut left).unwrap();
    assert_eq!(ahead, Ahead::Compiled);
    let [artifact] = &backend.artifacts()[..] else {
        panic!("{:?}", backend.artifacts())
    };
    let size = std::fs::metadata(artifact).unwrap().len();
    // The code is followed by facts about the component, and a fixed footer that ends with a
    // signature.
    let facts = Surface::facts(&driver).unwrap().len() as u64;
    let code = size - facts - (8 + 32 + 8 + 64);
    assert_eq!(left.artifact_bytes, ENOUGH.artifact_bytes - code);
    assert!(left.processor < ENOUGH.processor);

    // A file that exists already costs nothing.
    let mut nothing = CompileCost::default();
    let ahead = broker.compile_within(&driver, &mut nothing).unwrap();
    assert_eq!(ahead, Ahead::Compiled);
}

#[test]
fn what_a_budget_does_not_allow_is_not_compiled_ahead() {
    let backend = CompileBackend::new();
    let broker = broker(&backend, AMPLE);
    let driver = std::fs::read(hostile_wasm()).unwrap();
    let small = CompileCost {
        artifact_bytes: 10_000,
        ..ENOUGH
    };
    for budget in [CompileCost::default(), small] {
        let mut left = budget;
        let ahead = broker.compile_within(&driver, &mut left).unwrap();
        assert_eq!(ahead, Ahead::OverBudget);
        assert_eq!(left.artifact_bytes, budget.artifact_bytes);
        assert_eq!(left.processor < budget.processor, budget == small);
    }
    assert_eq!(backend.artifacts().len(), 0);
}

#[test]
fn a_budget_of_processor_time_ends_a_compilation() {
    let backend = CompileBackend::new();
    let limits = CompileLimits {
        memory_bytes: 16 << 30,
        ..AMPLE
    };
    let mut left = CompileCost {
        processor: Duration::from_secs(1),
        ..ENOUGH
    };
    let wasm = bombs::of_module(&bombs::huge_functions(4));
    let ahead = broker(&backend, limits).compile_within(&wasm, &mut left);
    assert_eq!(ahead.unwrap(), Ahead::OverBudget);
    assert!(left.processor < Duration::from_millis(500), "{left:?}");
}

#[tokio::test]
async fn neighbours_are_served_while_a_hostile_driver_is_compiled() {
    let backend = CompileBackend::new();
    let fixture = Fixture::new(Extra::default());
    fixture.tool("hostile.bomb", "");
    fixture.driver("bomb", "hostile.bomb", Extra::default());
    let driver = std::fs::read(hostile_wasm()).unwrap();
    let bomb = bombs::with_module(&driver, &bombs::huge_functions(8));
    fixture.write("drivers/bomb/driver.wasm", bomb);
    broker(&backend, CompileLimits::default())
        .compile(&driver)
        .unwrap();
    let limits = CompileLimits {
        memory_bytes: 16 << 30,
        ..LIMITS
    };
    let host = Host::builder()
        .bundle(fixture.content())
        .broker(broker(&backend, limits))
        .build()
        .unwrap();
    still_serves(&host).await;

    let bad = tokio::spawn({
        let host = host.clone();
        async move {
            let request = Request::with_value("hostile.bomb", json!({"do": "echo"}));
            host.call(request).await.result.unwrap_err()
        }
    });
    let mut served = 0;
    while !bad.is_finished() {
        still_serves(&host).await;
        // If this call had waited for the compiler, `bad` would be finished by now.
        served += usize::from(!bad.is_finished());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(served > 2, "{served}");
    let error = bad.await.unwrap();
    let code = error.cause.as_ref().unwrap()["code"].as_str().unwrap();
    assert!(
        ["compile-time", "compile-processor"].contains(&code),
        "{error}"
    );
    still_serves(&host).await;
}
