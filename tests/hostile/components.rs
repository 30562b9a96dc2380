//! Components that demand too much: many memories, tables and instances, and start functions that
//! do what a call may not do.

use std::time::{Duration, Instant};

use serde_json::json;
use toolward_bundle::component::{MAX_CORE_INSTANCES, Surface};
use toolward_host::{Limit, Limits, Origin, Request};

use crate::limits::{TOOL, hit, small, still_serves};
use crate::world::{Bundle, Guest, error, value};

/// The hostile driver with one more core module in its component. The module is instantiated
/// `times` times.
fn with_module(wat: &str, times: u32) -> Bundle {
    limited_with_module(wat, times, "")
}

/// Does the same as [`with_module`], with `limits` in DRIVER.md.
pub(crate) fn limited_with_module(wat: &str, times: u32, limits: &str) -> Bundle {
    let mut wasm = std::fs::read(Guest::Plain.wasm()).unwrap();
    let module = wat::parse_str(wat).unwrap();
    let index = core_modules(&wasm);
    section(&mut wasm, 1, &module);
    let mut instances = leb(times);
    for _ in 0..times {
        // Instantiates that module without arguments.
        instances.push(0);
        instances.extend(leb(index));
        instances.push(0);
    }
    section(&mut wasm, 2, &instances);
    let bundle =
        Bundle::of(TOOL, Guest::Plain, "", limits).with("other.tool", Guest::Plain, "", "");
    bundle.write(&format!("drivers/{TOOL}/driver.wasm"), wasm);
    bundle
}

/// Returns the number of core modules in the component: its sections with the number 1.
fn core_modules(wasm: &[u8]) -> u32 {
    let (mut at, mut found) = (8, 0);
    while at < wasm.len() {
        found += u32::from(wasm[at] == 1);
        at += 1;
        let (mut size, mut shift) = (0_usize, 0);
        loop {
            let byte = wasm[at];
            at += 1;
            size |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
        at += size;
    }
    found
}

fn section(wasm: &mut Vec<u8>, number: u8, content: &[u8]) {
    wasm.push(number);
    wasm.extend(leb(u32::try_from(content.len()).unwrap()));
    wasm.extend(content);
}

fn leb(mut number: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(u8::try_from(number & 0x7f).unwrap() | 0x80);
        number >>= 7;
    }
    bytes.push(u8::try_from(number).unwrap());
    bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_with_one_more_module_is_a_driver_like_any_other() {
    let bundle = with_module("(module (memory 1) (table 10 funcref))", 1);
    still_serves(&bundle.host("")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_runs_with_38_core_instances_and_with_as_many_as_may_be() {
    let own = Surface::read(&std::fs::read(Guest::Plain.wasm()).unwrap());
    let own = u32::try_from(own.unwrap().core_instances).unwrap();
    for count in [38, MAX_CORE_INSTANCES] {
        let bundle = with_module("(module (func (export \"f\")))", count - own);
        still_serves(&bundle.host("")).await;
    }
    let many = with_module("(module)", MAX_CORE_INSTANCES - own + 1);
    let refused = many.read().unwrap_err();
    let said = "the component makes 129 core instances, the limit is 128";
    assert!(refused.contains(said), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn memories_and_tables_are_counted_together_however_many_there_are() {
    for (wat, times, expected) in [
        (
            "(module (memory 700))",
            2,
            ("toolward:memory_exceeded", "memory_bytes"),
        ),
        (
            "(module (table 60000 funcref))",
            2,
            ("toolward:limit_exceeded", "table_elements"),
        ),
    ] {
        let bundle = with_module(wat, times);
        let host = bundle.builder("").limits(small()).build().unwrap();
        let error = error(&host, TOOL, json!({"do": "echo", "value": 1})).await;
        assert_eq!(hit(&error), expected, "{wat}");
        assert_eq!(
            value(&host, "other.tool", json!({"do": "echo", "value": 7})).await,
            json!(7)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_with_too_many_or_too_large_parts_is_not_run() {
    let many = |part: &str, count: usize| format!("(module {})", part.repeat(count));
    for (wat, times) in [
        (many("(memory 0)", 50), 1),
        ("(module (memory 0))".to_owned(), 50),
        (many("(table 0 funcref)", 200), 1),
        ("(module (table 0 funcref))".to_owned(), 200),
        ("(module)".to_owned(), 2000),
        ("(module (table 200000 funcref))".to_owned(), 1),
        ("(module (memory 5000))".to_owned(), 1),
    ] {
        let bundle = with_module(&wat, times);
        if let Err(refused) = bundle.read() {
            assert!(refused.contains("component-invalid"), "{refused}");
            continue;
        }
        let host = bundle.builder("").limits(small()).build().unwrap();
        let started = Instant::now();
        let error = error(&host, TOOL, json!({"do": "echo", "value": 1})).await;
        assert_eq!(error.code.as_str(), "upstream_error", "{times} {error:?}");
        let cause = error.cause.as_ref().map(|cause| &cause["code"]);
        assert_eq!(cause, Some(&json!("compile-invalid")), "{times} {error:?}");
        assert!(!error.retryable && error.hint.is_some());
        assert!(started.elapsed() < Duration::from_secs(60));
        assert_eq!(
            value(&host, "other.tool", json!({"do": "echo", "value": 7})).await,
            json!(7)
        );
    }
}

/// Some languages turn refused memory into an exception, which the guest may catch.
#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_was_refused_memory_and_goes_on_is_told_of_whatever_its_end() {
    let grows = "(module (memory 1) (func $f (drop (memory.grow (i32.const 60000)))) (start $f))";
    let bundle = with_module(grows, 1);
    let limits = Limits {
        fuel: Limit::fixed(u64::MAX / 2),
        ..Limits::default()
    };
    let host = bundle.builder("").limits(limits).build().unwrap();
    let own = json!({"do": "error", "name": "internal"});
    let own = error(&host, TOOL, own).await;
    assert_eq!(hit(&own), ("internal", "memory_bytes"));
    assert_eq!(own.origin, Origin::Driver);
    assert!(own.limit.unwrap().used > 60_000 << 16, "{own:?}");
    for what in ["trap", "panic", "exit"] {
        let ended = error(&host, TOOL, json!({"do": what, "name": "x"})).await;
        assert_eq!(
            hit(&ended),
            ("toolward:memory_exceeded", "memory_bytes"),
            "{what}"
        );
        assert_eq!(ended.hint, own.hint, "{what}");
    }
    // The timeout ended the call, so its code and hint come first.
    let request = Request::with_value(TOOL, json!({"do": "loop"}));
    let request = request.timeout(Duration::from_millis(200));
    let late = host.call(request).await.result.unwrap_err();
    assert_eq!(hit(&late), ("timeout", "timeout_ms"));
    let hint = late.hint.unwrap();
    assert!(hint.contains("`timeout_ms`"), "{hint}");
    assert!(
        hint.contains("limit `memory_bytes`") && hint.contains("`limits.memory_mib`"),
        "{hint}"
    );
    // A successful call keeps its result.
    assert_eq!(
        value(&host, TOOL, json!({"do": "echo", "value": 7})).await,
        json!(7)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_function_is_inside_every_limit() {
    for (wat, expected) in [
        (
            "(module (func $f (loop br 0)) (start $f))",
            "toolward:fuel_exhausted",
        ),
        (
            "(module (func $f call $f) (start $f))",
            "toolward:limit_exceeded",
        ),
        (
            "(module (func $f unreachable) (start $f))",
            "upstream_error",
        ),
        (
            "(module (memory 1) (func $f (if (i32.eq (memory.grow (i32.const 60000)) (i32.const -1)) (then unreachable))) (start $f))",
            "toolward:memory_exceeded",
        ),
    ] {
        let bundle = with_module(wat, 1);
        let host = bundle.builder("").limits(small()).build().unwrap();
        let error = error(&host, TOOL, json!({"do": "echo", "value": 1})).await;
        assert_eq!(error.code.as_str(), expected, "{wat}: {error:?}");
        assert_eq!(
            value(&host, "other.tool", json!({"do": "echo", "value": 7})).await,
            json!(7)
        );
    }
}
