//! Results of functions whose world has its own types. As values, such results take more memory
//! than as text.

use serde_json::json;
use toolward_host::Request;

use super::process::{MIB, alone, idle, peak};
use crate::limits::hit;
use crate::world::Bundle;

/// One function of `tests/guests/other-world`, as the tool `large.run`.
fn bundle(function: &str) -> Bundle {
    let wasm = std::fs::read(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/guests/other-world/functions.wasm"
    ));
    let bundle = Bundle::empty();
    bundle.write(
        "tools/large.run/TOOL.md",
        "---\nname: Large\nid: large.run\ndescription: Returns much.\nversion: 1.0.0\n\
         inputs:\n  type: object\n  properties: { count: { type: integer } }\n  required: [count]\n\
         outputs: {}\n---\n",
    );
    bundle.write(
        "drivers/large/DRIVER.md",
        format!(
            "---\nname: Large\nid: large.driver\ndescription: Returns much.\nversion: 1.0.0\n\
             kind: component\ncomponent: driver.wasm\nimplements:\n  - tool: large.run\n    \
             version: ^1.0.0\n    metadata:\n      component:\n        world: wit\n        \
             export: \"tests:functions/large@1.0.0#{function}\"\n\
             limits:\n  memory_mib: 64\n  output_bytes: 16777216\n---\n"
        ),
    );
    bundle.write("drivers/large/driver.wasm", wasm.unwrap());
    bundle
}

#[test]
fn results_as_values_stay_within_the_memory_of_a_call() {
    alone(
        concat!(
            module_path!(),
            "::results_as_values_stay_within_the_memory_of_a_call"
        ),
        || async {
            for function in ["list-of-flags", "list-of-records", "list-of-lists", "bytes"] {
                let host = bundle(function).host("");
                let call = |count: u32| {
                    host.call(Request::with_value("large.run", json!({ "count": count })))
                };
                let small = call(100).await;
                assert!(small.result.is_ok(), "{function}: {:?}", small.result);
                let before = idle();
                let mut ended = Vec::new();
                let mut most = 0;
                // The last number exceeds a limit.
                for count in [
                    1_000, 10_000, 50_000, 100_000, 300_000, 1_000_000, 2_000_000,
                ] {
                    let (peak, reply) = peak(call(count)).await;
                    most = most.max(peak);
                    ended.push(reply.result.map(drop));
                }
                println!(
                    "{function}: resident {} MiB, at most {}",
                    before / MIB,
                    most / MIB
                );
                assert!(ended[1].is_ok(), "{function}: {:?}", ended[1]);
                let refused = ended.last().unwrap().as_ref().unwrap_err();
                let (code, limit) = hit(refused);
                let expected = [
                    ("toolward:memory_exceeded", "memory_bytes"),
                    ("result_too_large", "output_bytes"),
                    ("result_too_large", "json_values"),
                ];
                assert!(
                    expected.contains(&(code, limit)),
                    "{function}: {code} {limit}"
                );
                assert!(most <= before + 64 * MIB + 48 * MIB, "{function}: {most}");
            }
        },
    );
}
