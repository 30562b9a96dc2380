//! The view as a component gets it.

use super::*;

/// A component that asks for its directories, and whether the first is itself.
const COMPONENT: &str = r#"
(component
  (import "wasi:filesystem/types@0.2.0" (instance $types
    (export "descriptor" (type $descriptor (sub resource)))
    (export "[method]descriptor.is-same-object" (func
      (param "self" (borrow $descriptor)) (param "other" (borrow $descriptor)) (result bool)))))
  (alias export $types "descriptor" (type $descriptor))
  (import "wasi:filesystem/preopens@0.2.0" (instance $preopens
    (export "descriptor" (type $own (eq $descriptor)))
    (export "get-directories" (func (result (list (tuple (own $own) string)))))))
  (core module $memory
    (memory (export "memory") 1)
    (global $next (mut i32) (i32.const 1024))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
      (global.set $next (i32.add (local.get $at) (local.get 3)))
      (local.get $at)))
  (core instance $memory (instantiate $memory))
  (core func $get-directories (canon lower (func $preopens "get-directories")
    (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
  (core func $is-same (canon lower (func $types "[method]descriptor.is-same-object")))
  (core module $main
    (import "" "memory" (memory 1))
    (import "" "get-directories" (func $get-directories (param i32)))
    (import "" "is-same" (func $is-same (param i32 i32) (result i32)))
    (func (export "run") (result i32)
      (call $get-directories (i32.const 16))
      (if (i32.eqz (i32.load (i32.const 20))) (then (return (i32.const 100))))
      (call $is-same
        (i32.load (i32.load (i32.const 16)))
        (i32.load (i32.load (i32.const 16))))))
  (core instance $main (instantiate $main (with "" (instance
    (export "memory" (memory $memory "memory"))
    (export "get-directories" (func $get-directories))
    (export "is-same" (func $is-same))))))
  (func (export "run") (result u32) (canon lift (core func $main "run"))))
"#;

struct Data {
    wasi: wasmtime_wasi::WasiCtx,
    table: ResourceTable,
    files: Ctx,
}

impl wasmtime_wasi::WasiView for Data {
    fn ctx(&mut self) -> wasmtime_wasi::WasiCtxView<'_> {
        wasmtime_wasi::WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

#[tokio::test]
async fn a_component_gets_this_view_and_not_the_one_it_replaces() {
    use wasmtime::component::Component;
    let engine = wasmtime::Engine::default();
    let mut linker = Linker::new(&engine);
    wasmtime_wasi::p2::add_to_linker_async::<Data>(&mut linker).expect("linked");
    add_to_linker(&mut linker, |data: &mut Data| View {
        ctx: &mut data.files,
        table: &mut data.table,
    })
    .expect("linked");
    let bytes = wat::parse_str(COMPONENT).expect("a component");
    let component = Component::new(&engine, bytes).expect("compiles");
    let guest = Guest::new(&[("/w", false)]);
    for (files, expected) in [(guest.ctx.clone(), 1), (Ctx::default(), 100)] {
        let data = Data {
            wasi: wasmtime_wasi::WasiCtx::builder().build(),
            table: ResourceTable::new(),
            files,
        };
        let mut store = wasmtime::Store::new(&engine, data);
        let instance = linker
            .instantiate_async(&mut store, &component)
            .await
            .expect("links");
        let run = instance
            .get_typed_func::<(), (u32,)>(&mut store, "run")
            .expect("exported");
        let (answer,) = run.call_async(&mut store, ()).await.expect("runs");
        assert_eq!(answer, expected);
    }
}
