use super::*;

/// A module whose start runs `body`. `read` returns eight bytes of its memory, and `counter` a
/// global.
fn module(body: &str) -> Vec<u8> {
    let text = format!(
        r#"(module
            (import "wasi_snapshot_preview1" "args_sizes_get" (func $arguments (param i32 i32) (result i32)))
            (import "wasi_snapshot_preview1" "environ_sizes_get" (func $variables (param i32 i32) (result i32)))
            (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
            (import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))
            (import "wasi_snapshot_preview1" "fd_prestat_get" (func $directory (param i32 i32) (result i32)))
            (import "wasi_snapshot_preview1" "fd_fdstat_get" (func $descriptor (param i32 i32) (result i32)))
            (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
            (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
            (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
            (import "toolward:driver/log@0.1.0" "write" (func $log))
            (memory (export "memory") 3)
            (data (i32.const 0) "\10\00\00\00\05\00\00\00")
            (data (i32.const 16) "hello")
            (global $counter (mut i32) (i32.const 0))
            (func (export "counter") (result i32) global.get $counter)
            (func (export "read") (param i32) (result i64) (i64.load (local.get 0)))
            (func (export "pages") (result i32) memory.size)
            (func (export "toolward_adapter_memory") (result i32) (i32.const 32768))
            (func (export "_initialize") {body}))"#
    );
    wat::parse_str(text).unwrap()
}

/// Returns the result of a function, without running a start.
fn given<P: wasmtime::WasmParams, R: wasmtime::WasmResults>(
    wasm: &[u8],
    name: &str,
    parameters: P,
) -> R {
    let engine = Engine::default();
    let module = Module::new(&engine, wasm).unwrap();
    let mut linker = Linker::new(&engine);
    linker.define_unknown_imports_as_traps(&module).unwrap();
    let mut store = Store::new(&engine, ());
    let instance = linker.instantiate(&mut store, &module).unwrap();
    let function = instance.get_typed_func::<P, R>(&mut store, name).unwrap();
    function.call(&mut store, parameters).unwrap()
}

#[test]
fn what_a_start_leaves_is_the_modules_own() {
    let wasm = module(
        "(global.set $counter (i32.const 7))
         (i64.store (i32.const 1000) (i64.const 81))
         (drop (memory.grow (i32.const 2)))",
    );
    let started = run(&wasm).unwrap();
    assert_eq!(given::<_, i32>(&started, "counter", ()), 7);
    assert_eq!(given::<_, i64>(&started, "read", 1000), 81);
    assert_eq!(given::<_, i32>(&started, "pages", ()), 5);
    let module = Module::new(&Engine::default(), &started).unwrap();
    assert!(
        module.get_export(START).is_none(),
        "it would start once more"
    );
    assert_eq!(given::<_, i32>(&wasm, "counter", ()), 0);
}

#[test]
fn a_start_meets_nothing_of_this_machine() {
    let wasm = module(
        "(i64.store (i32.const 1016) (i64.const -1))
         (i64.store (i32.const 1024) (i64.const -1))
         (drop (call $random (i32.const 1000) (i32.const 8)))
         (drop (call $clock (i32.const 0) (i64.const 0) (i32.const 1008)))
         (drop (call $arguments (i32.const 1016) (i32.const 1020)))
         (drop (call $variables (i32.const 1024) (i32.const 1028)))
         (global.set $counter (call $directory (i32.const 3) (i32.const 1032)))",
    );
    let started = run(&wasm).unwrap();
    assert_eq!(run(&wasm).unwrap(), started);
    assert_ne!(given::<_, i64>(&started, "read", 1000), 0);
    assert_eq!(given::<_, i64>(&started, "read", 1008), 1);
    assert_eq!(given::<_, i64>(&started, "read", 1016), 0);
    assert_eq!(given::<_, i64>(&started, "read", 1024), 0);
    assert_eq!(given::<_, i32>(&started, "counter", ()), BADF);
    // Another driver has other random bytes.
    let other = module("(drop (call $random (i32.const 1000) (i32.const 8)))");
    let other = run(&other).unwrap();
    assert_ne!(
        given::<_, i64>(&other, "read", 1000),
        given::<_, i64>(&started, "read", 1000)
    );
}

#[test]
fn what_a_start_may_not_do_is_named() {
    let cases = [
        (
            "(drop (call $write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 8)))",
            "it prints \"hello\"",
        ),
        (
            "(drop (call $write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 8))) unreachable",
            "`unreachable` instruction executed; it printed \"hello\"",
        ),
        (
            "(call $exit (i32.const 3))",
            "it ends the program with status 3",
        ),
        (
            "(loop (drop (call $poll (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 1000))) br 0)",
            "it waits, and the clock stands still",
        ),
        (
            "(call $log)",
            "it calls `toolward:driver/log@0.1.0#write`, which is there only in a call",
        ),
        (
            "(drop (call $random (i32.const 196604) (i32.const 8)))",
            "an address outside of its memory",
        ),
        (
            "(drop (call $random (i32.const -1) (i32.const -1)))",
            "an address outside of its memory",
        ),
        (
            "(drop (call $random (i32.const 1000) (i32.const 8)))
             (drop (call $random (i32.const 1000) (i32.const 8)))",
            "it takes random bytes",
        ),
        (
            "(drop (call $write (i32.const 1) (i32.const 0) (i32.const -1) (i32.const 8)))",
            "in more than 64 pieces",
        ),
        (
            "(i32.store (i32.const 4) (i32.const 4097))
             (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))",
            "more than 4096 bytes",
        ),
        (
            "(i32.store (i32.const 0) (i32.const -8))
             (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))",
            "an address outside of its memory",
        ),
        ("(drop (memory.grow (i32.const 5000)))", "memory"),
    ];
    for (body, expected) in cases {
        let error = run(&module(body)).unwrap_err();
        assert!(error.contains(expected), "{body}: {error}");
    }
    let endless = start(&module("(loop br 0)"), 1_000_000).unwrap_err();
    assert!(format!("{endless:#}").contains("fuel"), "{endless:#}");
}

#[test]
fn what_has_no_start_or_an_older_library_is_refused() {
    let none = wat::parse_str("(module (memory (export \"memory\") 1))").unwrap();
    let error = run(&none).unwrap_err();
    assert!(error.contains(START), "{error}");
    let older = r#"(module (memory (export "memory") 1) (func (export "_initialize")))"#;
    let error = run(&wat::parse_str(older).unwrap()).unwrap_err();
    assert!(error.contains("older than snapshots"), "{error}");
    run(&none[..9]).unwrap_err();
}

/// The adapter never gets the same page twice, and gets only pages that the program has reserved.
#[test]
fn the_adapter_gets_the_two_pages_that_are_set_aside() {
    let started = run(&module("")).unwrap();
    let engine = Engine::default();
    let module = Module::new(&engine, &started).unwrap();
    let mut linker = Linker::new(&engine);
    linker.define_unknown_imports_as_traps(&module).unwrap();
    let mut store = Store::new(&engine, ());
    let mut instance = || linker.instantiate(&mut store, &module).unwrap();
    let (first, others) = (instance(), [instance(), instance()]);
    type Realloc = (u32, u32, u32, u32);
    let realloc = |store: &mut Store<()>, instance: &Instance, given: Realloc| {
        let realloc = instance.get_typed_func::<Realloc, u32>(&mut *store, "cabi_realloc_adapter");
        realloc.unwrap().call(store, given)
    };
    let page = (0, 0, 8, 65_536);
    assert_eq!(realloc(&mut store, &first, page).unwrap(), 32_768);
    assert_eq!(realloc(&mut store, &first, page).unwrap(), 98_304);
    realloc(&mut store, &first, page).unwrap_err();
    realloc(&mut store, &others[0], (32_768, 65_536, 8, 65_536)).unwrap_err();
    realloc(&mut store, &others[1], (0, 0, 8, 64)).unwrap_err();
}
