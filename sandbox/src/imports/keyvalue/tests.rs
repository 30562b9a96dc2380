//! Calls `wasi:keyvalue` as the bindings do, and once from a component.

use std::sync::{Mutex, PoisonError};

use wasmtime::Engine;
use wasmtime::component::{Component, ResourceTable, ResourceTableError};

use super::store::{Host as _, HostBucket as _};
use super::*;
use crate::exceeded::Exceeded;
use crate::imports::{
    BoxFuture, CallerBudget, HttpError, HttpRequest, HttpResponse, Imports, LogMessage, Meter,
    Progress, SecretError, ToolReply,
};
use crate::invocation::ToolCall;
use crate::limiter::Limiter;
use crate::result::LogRecord;
use crate::violations::EndsCall;

/// An attempt with a grant for only the bucket `own`.
struct Attempt {
    imports: OnlyOwn,
    table: ResourceTable,
    limiter: Limiter,
    meter: Meter,
    logs: Vec<LogRecord>,
}

impl Default for Attempt {
    fn default() -> Self {
        Self {
            imports: OnlyOwn::default(),
            table: ResourceTable::new(),
            limiter: Limiter::new(1 << 20, 100),
            meter: Meter::default(),
            logs: Vec::new(),
        }
    }
}

#[derive(Default)]
struct OnlyOwn(Mutex<Vec<(String, Vec<u8>)>>);

impl Imports for OnlyOwn {
    fn bucket(&self, request: BucketRequest) -> BoxFuture<'_, Result<BucketReply, BucketError>> {
        if let BucketOperation::Set(key, value) = request.operation {
            let mut stored = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            stored.push((key, value));
        }
        Box::pin(std::future::ready(match request.bucket.as_str() {
            "own" => Ok(BucketReply::Done),
            _ => Err(BucketError::Denied),
        }))
    }

    fn placeholder(&self, _: String) -> BoxFuture<'_, Result<String, SecretError>> {
        unreachable!("a bucket needs no secret")
    }

    fn reveal(&self, _: String) -> BoxFuture<'_, Result<Vec<u8>, SecretError>> {
        unreachable!("a bucket needs no secret")
    }

    fn store(&self, _: String, _: Vec<u8>) -> BoxFuture<'_, Result<(), SecretError>> {
        unreachable!("a bucket needs no secret")
    }

    fn http(&self, _: HttpRequest) -> BoxFuture<'static, Result<HttpResponse, HttpError>> {
        unreachable!("a bucket needs no host")
    }

    fn call_tool(
        &self,
        _: ToolCall,
        _: CallerBudget,
    ) -> BoxFuture<'_, Result<ToolReply, EndsCall>> {
        unreachable!("a bucket needs no tool")
    }

    fn has_tools(&self) -> bool {
        false
    }

    fn log(&self, message: LogMessage) -> Result<LogRecord, Exceeded> {
        Ok(message.into_record())
    }

    fn progress(&self, _: Progress) -> u64 {
        0
    }

    fn http_bytes(&self) -> u64 {
        0
    }

    fn redact(&self, _: &mut String) {}

    fn redact_end(&self, text: Vec<u8>, _: bool) -> Vec<u8> {
        text
    }
}

impl Attempt {
    fn view(&mut self) -> View<'_> {
        View {
            imports: &self.imports,
            table: &mut self.table,
            limiter: &mut self.limiter,
            meter: &mut self.meter,
            logs: &mut self.logs,
        }
    }
}

#[tokio::test]
async fn a_refusal_is_an_error_for_the_guest_and_opens_nothing() {
    let mut attempt = Attempt::default();
    let refused = attempt.view().open("other".to_owned()).await;
    let refused = refused.expect_err("a refusal").downcast();
    assert!(matches!(refused, Ok(store::Error::AccessDenied)));
    assert!(attempt.table.is_empty());
}

#[tokio::test]
async fn open_buckets_count_among_the_handles_until_they_are_dropped() {
    let mut attempt = Attempt::default();
    attempt.table.set_max_capacity(2);
    let own = || "own".to_owned();
    let first = attempt.view().open(own()).await.expect("opens");
    attempt.view().open(own()).await.expect("opens");
    let refused = attempt.view().open(own()).await.expect_err("no room");
    let trap = refused.downcast().expect_err("a trap");
    assert!(matches!(
        trap.downcast_ref::<ResourceTableError>(),
        Some(ResourceTableError::Full)
    ));
    let dropped = attempt.view().drop(first).await;
    dropped.expect("was open");
    attempt.view().open(own()).await.expect("opens");
}

/// Opens the bucket `own` and sets `key` in it. Returns 0, or 1 if setting failed. If opening
/// failed, returns 100 plus the number of the error's case.
const GUEST: &str = r#"(component
  (import "wasi:keyvalue/store@0.2.0-draft" (instance $store
    (export "bucket" (type $bucket (sub resource)))
    (type $cases (variant (case "no-such-store") (case "access-denied") (case "other" string)))
    (export "error" (type $error (eq $cases)))
    (export "open" (func (param "identifier" string)
      (result (result (own $bucket) (error $error)))))
    (export "[method]bucket.set" (func
      (param "self" (borrow $bucket)) (param "key" string) (param "value" (list u8))
      (result (result (error $error)))))
  ))
  (core module $memory
    (memory (export "memory") 1)
    (data (i32.const 64) "ownkeyvalue")
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) i32.const 1024))
  (core instance $memory (instantiate $memory))
  (core func $open (canon lower (func $store "open")
    (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
  (core func $set (canon lower (func $store "[method]bucket.set")
    (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
  (core module $guest
    (import "host" "memory" (memory 1))
    (import "host" "open" (func $open (param i32 i32 i32)))
    (import "host" "set" (func $set (param i32 i32 i32 i32 i32 i32)))
    (func (export "run") (result i32)
      (call $open (i32.const 64) (i32.const 3) (i32.const 0))
      (if (i32.load8_u (i32.const 0))
        (then (return (i32.add (i32.const 100) (i32.load8_u (i32.const 4))))))
      (call $set (i32.load (i32.const 4)) (i32.const 67) (i32.const 3)
        (i32.const 70) (i32.const 5) (i32.const 16))
      (i32.load8_u (i32.const 16))))
  (core instance $guest (instantiate $guest (with "host" (instance
    (export "memory" (memory $memory "memory"))
    (export "open" (func $open))
    (export "set" (func $set))))))
  (func (export "run") (result u32) (canon lift (core func $guest "run"))))"#;

#[tokio::test]
async fn a_component_reaches_its_bucket_through_the_linked_interface_and_no_other() {
    let engine = Engine::default();
    let mut linker = Linker::<Attempt>::new(&engine);
    add_to_linker(&mut linker, Attempt::view).expect("links");
    for (name, expected) in [("own", 0), ("oth", 101)] {
        let component = wat::parse_str(GUEST.replace("ownkeyvalue", &format!("{name}keyvalue")));
        let component = Component::new(&engine, component.expect("a component")).expect("compiles");
        let mut store = wasmtime::Store::new(&engine, Attempt::default());
        let instance = linker
            .instantiate_async(&mut store, &component)
            .await
            .expect("instantiates");
        let run = instance
            .get_typed_func::<(), (u32,)>(&mut store, "run")
            .expect("is there");
        let (returned,) = run.call_async(&mut store, ()).await.expect("returns");
        assert_eq!(returned, expected);
        let stored = store
            .into_data()
            .imports
            .0
            .into_inner()
            .expect("unpoisoned");
        let set = [("key".to_owned(), b"value".to_vec())];
        assert_eq!(stored, set[..usize::from(name == "own")]);
    }
}
