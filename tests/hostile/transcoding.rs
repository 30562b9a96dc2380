//! A guest that does little itself but keeps the engine busy: one component passes a string to
//! another, and the engine transcodes it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use serde_json::json;

use crate::world::{Bundle, call};

/// A call of `write` passes a text of a megabyte to `read`, `count` times.
const TRANSCODING: &str = r#"(component
  (component $reader
    (core module $module
      (memory (export "memory") 64)
      (func (export "realloc") (param i32 i32 i32 i32) (result i32) i32.const 65536)
      (func (export "read") (param i32 i32)))
    (core instance $module (instantiate $module))
    (alias core export $module "memory" (core memory $memory))
    (alias core export $module "realloc" (core func $realloc))
    (alias core export $module "read" (core func $read))
    (func (export "read") (param "text" string)
      (canon lift (core func $read) string-encoding=utf16 (memory $memory) (realloc $realloc))))
  (component $writer
    (import "read" (func $read (param "text" string)))
    (core module $texts (memory (export "memory") 64))
    (core instance $texts (instantiate $texts))
    (alias core export $texts "memory" (core memory $memory))
    (core func $read (canon lower (func $read) string-encoding=utf8 (memory $memory)))
    (core module $module
      (import "" "read" (func $read (param i32 i32)))
      (func (export "write") (param $count i32) (result i32)
        (loop $again
          (call $read (i32.const 0) (i32.const 1000000))
          (br_if $again
            (local.tee $count (i32.sub (local.get $count) (i32.const 1)))))
        i32.const 7))
    (core instance $reads (export "read" (func $read)))
    (core instance $module (instantiate $module (with "" (instance $reads))))
    (alias core export $module "write" (core func $write))
    (func (export "write") (param "count" s32) (result s32)
      (canon lift (core func $write))))
  (instance $reader (instantiate $reader))
  (instance $writer (instantiate $writer (with "read" (func $reader "read"))))
  (instance $texts (export "write" (func $writer "write")))
  (export "tests:texts/texts@1.0.0" (instance $texts)))"#;

const TOOL: &str = "transcode.run";

fn bundle() -> Bundle {
    let bundle = Bundle::empty();
    bundle.write(
        "tools/transcode.run/TOOL.md",
        "---\nname: Transcode\nid: transcode.run\ndescription: Gives a text.\nversion: 1.0.0\n\
         inputs:\n  type: object\n  properties: { count: { type: integer } }\n  required: [count]\n\
         outputs: {}\n---\n",
    );
    bundle.write(
        "drivers/transcode/DRIVER.md",
        "---\nname: Transcode\nid: transcode.driver\ndescription: Gives a text.\nversion: 1.0.0\n\
         kind: component\ncomponent: driver.wasm\nimplements:\n  - tool: transcode.run\n    \
         version: ^1.0.0\n    metadata:\n      component:\n        world: wit\n        \
         export: \"tests:texts/texts@1.0.0#write\"\n---\n",
    );
    let component = wat::parse_str(TRANSCODING).unwrap();
    bundle.write("drivers/transcode/driver.wasm", component);
    bundle
}

/// On one thread, another task runs only when the guest yields.
#[tokio::test]
async fn a_guest_that_only_enters_the_engine_lets_others_run() {
    let host = bundle().host("");
    let turns = Arc::new(AtomicUsize::new(0));
    let other = Arc::clone(&turns);
    let other = tokio::spawn(async move {
        loop {
            other.fetch_add(1, Relaxed);
            tokio::task::yield_now().await;
        }
    });
    let turns_beside = async |count: u32| {
        let before = turns.load(Relaxed);
        let input = json!({ "count": count });
        let output = call(&host, TOOL, input).await.result.unwrap();
        assert_eq!(output.structured, json!(7));
        turns.load(Relaxed) - before
    };
    // The first call compiles the component.
    turns_beside(1).await;
    let short = turns_beside(1).await;
    let long = turns_beside(2000).await;
    other.abort();
    assert!(
        long > short + 2,
        "{long} turns of another task, {short} beside a short call"
    );
}
