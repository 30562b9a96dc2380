use wasmparser::{Parser, Payload};
use wasmtime::component::{Component, Linker};
use wasmtime::{Engine, Store};

use super::{Kept, component};

/// A component as tools link it: a module with memory, table and globals, a library that uses all
/// of them, and the two modules that give functions from outside to the first module.
fn linked(library: &str) -> String {
    format!(
        r#"(component
  (import "log" (func $log (param "text" string)))
  (import "tick" (func $tick (result u32)))
  (core module $shim
    (type $text (func (param i32 i32)))
    (table (export "$imports") 1 1 funcref)
    (func (export "0") (param i32 i32) local.get 0 local.get 1 i32.const 0 call_indirect (type $text)))
  (core module $main
    (import "env" "log" (func $log (param i32 i32)))
    (memory (export "memory") 1)
    (table (export "table") 4 funcref)
    (global (export "base") i32 (i32.const 64))
    (global (export "slot") i32 (i32.const 2))
    (global (export "counter") (mut i32) (i32.const 1000))
    (data (i32.const 8) "hello ")
    (func (export "say") (param i32 i32) local.get 0 local.get 1 call $log))
  (core module $library {library})
  (core module $fixup
    (import "" "0" (func (param i32 i32)))
    (import "" "$imports" (table 1 1 funcref))
    (elem (i32.const 0) func 0))
  (core instance $shim (instantiate $shim))
  (alias core export $shim "0" (core func $late))
  (core instance $env (export "log" (func $late)))
  (core instance $main (instantiate $main (with "env" (instance $env))))
  (core func $tick (canon lower (func $tick)))
  (core instance $ticks (export "tick" (func $tick)))
  (core instance $library (instantiate $library
    (with "env" (instance $main)) (with "tick" (instance $ticks))))
  (alias core export $main "memory" (core memory $memory))
  (core func $log (canon lower (func $log) (memory $memory)))
  (alias core export $shim "$imports" (core table $imports))
  (core instance $late (export "0" (func $log)) (export "$imports" (table $imports)))
  (core instance (instantiate $fixup (with "" (instance $late))))
  (alias core export $library "run" (core func $run))
  (func (export "run") (result u32) (canon lift (core func $run))))"#
    )
}

/// Globals of the other module state the places of its data and table entry. A part of the data is
/// passive. One function is named only as an export and by `ref.func`.
const LIBRARY: &str = r#"
    (import "env" "memory" (memory 1))
    (import "env" "table" (table $table 4 funcref))
    (import "env" "base" (global $base i32))
    (import "env" "slot" (global $slot i32))
    (import "env" "counter" (global $counter (mut i32)))
    (import "env" "say" (func $say (param i32 i32)))
    (import "tick" "tick" (func $tick (result i32)))
    (type $step (func (param i32) (result i32)))
    (global $own i32 (global.get $base))
    (data $world (global.get $base) "?????")
    (data $late "world")
    (elem (global.get $slot) func $add)
    (func $add (param i32) (result i32) local.get 0 i32.const 1 i32.add)
    (func $double (export "double") (param i32) (result i32) local.get 0 i32.const 2 i32.mul)
    (func (export "run") (result i32)
      global.get $own i32.const 0 i32.const 5 memory.init $late
      i32.const 14 global.get $own i32.const 5 memory.copy
      i32.const 8 i32.const 11 call $say
      i32.const 3 ref.func $double table.set $table
      call $tick global.get $counter i32.add global.set $counter
      global.get $counter i32.const 2 call_indirect $table (type $step)
      i32.const 3 call_indirect $table (type $step))"#;

/// Returns what a component prints and returns.
fn run(component: &[u8]) -> (Vec<String>, u32) {
    let engine = Engine::default();
    let component = Component::new(&engine, component).unwrap();
    let mut linker = Linker::<Vec<String>>::new(&engine);
    let mut root = linker.root();
    let log = |mut store: wasmtime::StoreContextMut<'_, Vec<String>>, (text,): (String,)| {
        store.data_mut().push(text);
        Ok(())
    };
    root.func_wrap("log", log).unwrap();
    root.func_wrap("tick", |_, (): ()| Ok((7_u32,))).unwrap();
    let mut store = Store::new(&engine, Vec::new());
    let instance = linker.instantiate(&mut store, &component).unwrap();
    let run = instance.get_typed_func::<(), (u32,)>(&mut store, "run");
    let (result,) = run.unwrap().call(&mut store, ()).unwrap();
    (store.into_data(), result)
}

fn modules(component: &[u8]) -> usize {
    let payloads = Parser::new(0).parse_all(component);
    let module = |payload: &Payload<'_>| matches!(payload, Payload::ModuleSection { .. });
    payloads
        .filter(|payload| module(payload.as_ref().unwrap()))
        .count()
}

fn folded(text: &str) -> Result<Vec<u8>, Kept> {
    component(&wat::parse_str(text).unwrap())
}

#[test]
fn a_folded_component_does_the_same_with_fewer_modules() {
    let text = linked(LIBRARY);
    let before = wat::parse_str(&text).unwrap();
    let after = folded(&text).unwrap();
    assert_eq!((modules(&before), modules(&after)), (4, 3));
    let expected = (vec!["hello world".to_owned()], 2016);
    assert_eq!(run(&before), expected);
    assert_eq!(run(&after), expected);
    // No modules are left to merge.
    assert_eq!(
        component(&after),
        Err(Kept::because("it has few core modules"))
    );
}

#[test]
fn one_inside_another_is_folded() {
    let inner = linked(LIBRARY).replacen("(component", "(component $inner", 1);
    let text = format!(
        r#"(component
  (import "log" (func $log (param "text" string)))
  (import "tick" (func $tick (result u32)))
  {inner}
  (instance $inner (instantiate $inner (with "log" (func $log)) (with "tick" (func $tick))))
  (export "run" (func $inner "run")))"#
    );
    let after = folded(&text).unwrap();
    assert_eq!(modules(&after), 3);
    assert_eq!(run(&after), run(&wat::parse_str(&text).unwrap()));
}

#[test]
fn an_instance_that_starts_stays_by_itself_and_finds_the_others_complete() {
    let text = linked(LIBRARY).replacen(
        "(alias core export $library \"run\"",
        r#"(core module $starting
    (import "main" "say" (func $say (param i32 i32)))
    (func $start i32.const 8 i32.const 5 call $say)
    (start $start))
  (core instance (instantiate $starting (with "main" (instance $main))))
  (alias core export $library "run""#,
        1,
    );
    let after = folded(&text).unwrap();
    assert_eq!(modules(&after), 4);
    let expected = (vec!["hello".to_owned(), "hello world".to_owned()], 2016);
    assert_eq!(run(&after), expected);
    assert_eq!(run(&wat::parse_str(&text).unwrap()), expected);
}

#[test]
fn what_is_unusual_is_left_as_it_is() {
    let with = |more: &str| linked(&format!("{LIBRARY}{more}"));
    let cases = [
        // Only two instances come before the module.
        (with("(func $start) (start $start)"), "it has few core modules"),
        (with("(memory 1)"), "its modules have more than one memory"),
        (with(&"(table 1 funcref)".repeat(7)), "it has many tables"),
        (
            linked(LIBRARY).replacen(
                "(alias core export $library",
                "(core instance (instantiate $shim)) (alias core export $library",
                1,
            ),
            "a module has more than one instance",
        ),
        (
            linked(LIBRARY).replacen(
                "(alias core export $library",
                "(component (alias outer 1 0 (core module))) (alias core export $library",
                1,
            ),
            "core modules pass from one component to another",
        ),
        (
            linked(LIBRARY).replacen(
                "(alias core export $library",
                r#"(core module $end (func (export "end") (param i32)))
                (core instance $end (instantiate $end)) (alias core export $end "end" (core func $end))
                (type (resource (rep i32) (dtor (core func $end)))) (alias core export $library"#,
                1,
            ),
            "a resource of its own has a destructor",
        ),
    ];
    for (text, reason) in cases {
        assert_eq!(folded(&text), Err(Kept::because(reason)), "{text}");
    }
    assert!(component(b"\0asm").is_err());
}

/// Each of 40 modules has a global whose value is twice the value of the previous module's global.
#[test]
fn initial_values_do_not_grow_without_bound() {
    let mut text = String::from(
        r#"(component (core module $m0 (global (export "g") i32 (i32.const 1)))
        (core instance $i0 (instantiate $m0))"#,
    );
    for number in 1..40 {
        let before = number - 1;
        text += &format!(
            r#"(core module $m{number} (import "" "g" (global $g i32))
                (global (export "g") i32 (i32.add (global.get $g) (global.get $g))))
            (core instance $i{number} (instantiate $m{number} (with "" (instance $i{before}))))"#
        );
    }
    let kept = Err(Kept::because("the initial value of a global is long"));
    assert_eq!(folded(&(text + ")")), kept);
}

#[test]
fn components_deep_within_one_another_are_not_followed() {
    const HEADER: &[u8] = b"\0asm\x0d\0\x01\0";
    // A section with a component, its length in five bytes, and that component's header.
    let mut bytes = HEADER.to_vec();
    let depth: u32 = 50_000;
    for level in (0..depth).rev() {
        let length = level * 14 + 8;
        bytes.push(4);
        for part in 0..5 {
            let more = if part < 4 { 0x80 } else { 0 };
            bytes.push(u8::try_from(length >> (7 * part) & 0x7f).unwrap() | more);
        }
        bytes.extend_from_slice(HEADER);
    }
    assert!(component(&bytes).is_err());
}
