//! Components with many core instances: the engine's memory for each instance counts towards the
//! call's memory limit.

use serde_json::json;
use tokio::task::JoinSet;
use toolward_bundle::component::{MAX_CORE_INSTANCES, Surface};
use toolward_host::Request;

use super::process::{MIB, alone, idle, peak};
use crate::components::limited_with_module;
use crate::limits::{TOOL, hit};
use crate::world::{Guest, value};

/// A module whose functions can all be called indirectly, so each has an entry in every instance.
fn large(functions: u32) -> String {
    let all: String = (0..functions).map(|n| format!(" {n}")).collect();
    let each = "(func)".repeat(functions as usize);
    format!("(module {each} (elem declare func{all}))")
}

/// The number of instances besides those of the guest itself.
fn others() -> u32 {
    let own = Surface::read(&std::fs::read(Guest::Plain.wasm()).unwrap());
    MAX_CORE_INSTANCES - u32::try_from(own.unwrap().core_instances).unwrap()
}

#[test]
fn instances_count_against_the_memory_of_a_call() {
    alone(
        concat!(
            module_path!(),
            "::instances_count_against_the_memory_of_a_call"
        ),
        || async {
            let request = || Request::with_value(TOOL, json!({"do": "echo", "value": 7}));
            let limits = "limits:\n  memory_mib: 2\n";
            let plain = limited_with_module("(module)", 1, limits).host("");
            let reply = plain.call(request()).await;
            assert!(reply.result.is_ok(), "{:?}", reply.result);
            let alone = reply.metadata.peak_memory;

            let full = limited_with_module(&large(200), others(), limits).host("");
            let error = full.call(request()).await.result.unwrap_err();
            assert_eq!(hit(&error), ("toolward:memory_exceeded", "memory_bytes"));

            let limits = "limits:\n  memory_mib: 3\n";
            let full = limited_with_module(&large(200), others(), limits).host("");
            let reply = full.call(request()).await;
            assert!(reply.result.is_ok(), "{:?}", reply.result);
            let counted = reply.metadata.peak_memory - alone;
            println!("{} KiB alone, {} more", alone / 1024, counted / 1024);
            assert!(counted > MIB, "{counted}");
        },
    );
}

#[test]
fn elements_that_each_instance_copies_count_against_the_memory_of_a_call() {
    const ELEMENTS: usize = 100_000;
    alone(
        concat!(
            module_path!(),
            "::elements_that_each_instance_copies_count_against_the_memory_of_a_call"
        ),
        || async {
            let elements = " 0".repeat(ELEMENTS);
            let module = format!("(module (func) (elem func{elements}))");
            let host = limited_with_module(&module, others(), "").host("");
            let call = || {
                let request = Request::with_value(TOOL, json!({"do": "echo", "value": 7}));
                host.call(request)
            };
            // The first call compiles the driver.
            let _ = call().await;
            let before = idle();
            let (most, reply) = peak(call()).await;
            let error = reply.result.unwrap_err();
            assert_eq!(hit(&error), ("toolward:memory_exceeded", "memory_bytes"));
            println!("resident {} MiB, at most {}", before / MIB, most / MIB);
            assert!(most <= before + 64 * MIB + 32 * MIB, "{most}");
        },
    );
}

#[test]
fn ninety_six_calls_of_128_instances_stay_within_their_limits() {
    const CALLS: u64 = 96;
    alone(
        concat!(
            module_path!(),
            "::ninety_six_calls_of_128_instances_stay_within_their_limits"
        ),
        || async {
            let limits = "limits:\n  memory_mib: 8\n";
            let bundle = limited_with_module(&large(200), others(), limits);
            let host = bundle.host("");
            value(&host, TOOL, json!({"do": "echo", "value": 7})).await;
            let before = idle();
            let (most, ended) = peak(async {
                let mut calls = JoinSet::new();
                for _ in 0..CALLS {
                    let request = Request::with_value(TOOL, json!({"do": "sleep", "n": 3000}));
                    let host = host.clone();
                    calls.spawn(async move { host.call(request).await });
                }
                calls.join_all().await
            })
            .await;
            for reply in &ended {
                assert!(reply.result.is_ok(), "{:?}", reply.result);
            }
            println!(
                "{CALLS} calls: resident {} MiB, at most {}; counted {} KiB each",
                before / MIB,
                most / MIB,
                ended[0].metadata.peak_memory / 1024,
            );
            assert!(most <= before + CALLS * 8 * MIB + 256 * MIB, "{most}");
        },
    );
}
