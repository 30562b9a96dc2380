//! Components that are hard to read, and components that are refused.

use super::walk::{InstanceCounts, instance_bytes, total_bytes};
use super::*;

fn surface(wat: &str) -> Result<Surface, SurfaceError> {
    Surface::read(&wat::parse_str(wat).unwrap())
}

#[test]
fn levels_that_multiply_their_instances_are_refused() {
    let bomb = |levels: usize, each: usize| {
        let leaf = "(component $c (core module $m) (core instance (instantiate $m)))".to_owned();
        let inner = (1..levels).fold(leaf, |below, _| {
            let made = "(instance (instantiate $c))".repeat(each);
            format!("(component $c {below} {made})")
        });
        let made = "(instance (instantiate $c))".repeat(each);
        surface(&format!("(component {inner} {made})"))
    };
    assert!(bomb(2, 4).is_ok());
    let refused = bomb(6, 16).unwrap_err();
    assert_eq!(refused.code(), "component-too-complex");
    assert!(
        refused.to_string().contains("16777216 core instances"),
        "{refused}"
    );
    assert_eq!(bomb(1, 1000).unwrap_err().code(), "component-too-complex");
}

#[test]
fn so_many_core_instances_are_taken_and_one_more_is_refused_with_the_number() {
    let flat = |count: usize| {
        let made = "(core instance (instantiate $m))".repeat(count);
        surface(&format!("(component (core module $m) {made})"))
    };
    assert!(flat(38).is_ok() && flat(128).is_ok());
    let refused = flat(129).unwrap_err();
    assert_eq!(refused.code(), "component-too-complex");
    assert_eq!(
        refused.to_string(),
        "the component makes 129 core instances, the limit is 128"
    );
    assert!(refused.hint().is_some());
}

#[test]
fn each_component_counts_as_often_as_it_is_instantiated() {
    // A component with many core instances that is instantiated once, and a small one that is
    // instantiated often.
    let nested = |small: usize| {
        let many = "(core instance (instantiate $m))".repeat(100);
        let made = "(instance (instantiate $small))".repeat(small);
        surface(&format!(
            "(component
                (component $large (core module $m) {many})
                (component $small (core module $m) (core instance (instantiate $m)))
                (component $unused (core module $m) {many})
                (instance (instantiate $large)) {made})"
        ))
    };
    assert!(nested(28).is_ok());
    let refused = nested(29).unwrap_err().to_string();
    assert!(refused.contains("129 core instances"), "{refused}");
    // Component instances without core instances are counted, too.
    let made = "(instance (instantiate $c))".repeat(257);
    let refused = surface(&format!("(component (component $c) {made})")).unwrap_err();
    assert!(
        refused.to_string().contains("instances than 256"),
        "{refused}"
    );
}

#[test]
fn siblings_that_instantiate_each_other_are_refused() {
    for wat in [
        "(component (component $a) (component $b (alias outer 1 $a (component $c)) \
         (instance (instantiate $c))))",
        "(component (component $a (component $b) (export \"b\" (component $b))) \
         (instance $i (instantiate $a)) (alias export $i \"b\" (component $c)))",
        "(component (component $a (import \"c\" (component $c)) (instance (instantiate $c))))",
    ] {
        assert_eq!(
            surface(wat).unwrap_err().code(),
            "component-too-complex",
            "{wat}"
        );
    }
}

#[test]
fn each_instance_counts_what_its_module_takes_wherever_it_was_defined() {
    let many = "(func)".repeat(100);
    let found = surface(&format!(
        "(component
            (core module $small)
            (core module $large {many})
            (component $inner
                (alias outer 1 $large (core module $own))
                (core instance (instantiate $own)) (core instance (instantiate $own)))
            (core instance (instantiate $small))
            (instance (instantiate $inner)) (instance (instantiate $inner)))"
    ))
    .unwrap();
    assert_eq!(found.core_instances, 5);
    let empty = instance_bytes(&wat::parse_str("(module)").unwrap());
    let large = instance_bytes(&wat::parse_str(format!("(module {many})")).unwrap());
    assert!(large > empty);
    let made = InstanceCounts {
        core: 5,
        bytes: empty + 4 * large,
        ..InstanceCounts::default()
    };
    assert_eq!(found.instance_bytes, total_bytes(made));
}

#[test]
fn a_component_shows_its_top_level_names_and_counts_what_lies_inside() {
    let found = surface(
        r#"(component
            (import "wasi:io/poll@0.2.3" (instance))
            (core module)
            (component (import "inner:only/x@1.0.0" (instance)) (core module))
            (instance $i)
            (export "toolward:driver/handler@0.1.0" (instance $i)))"#,
    )
    .unwrap();
    assert_eq!(found.imports, ["wasi:io/poll@0.2.3"]);
    assert_eq!(found.exports.len(), 1);
    assert!(found.exports_handler());
    assert_eq!(found.handler_version(), Some("0.1.0"));
    // The inner component's module counts, too.
    assert_eq!((found.modules, found.components), (2, 1));
}

#[test]
fn a_function_named_like_the_handler_is_not_the_handler() {
    let found = surface(
        r#"(component
            (import "f" (func $f))
            (export "toolward:driver/handler@0.1.0" (func $f)))"#,
    );
    // The text format may refuse the text. If not, the reader must not accept the component.
    if let Ok(found) = found {
        assert!(!found.exports_handler());
    }
}

#[test]
fn only_packages_of_the_known_versions_are_known_imports() {
    assert!(is_known_import("wasi:cli/environment@0.2.6"));
    assert!(is_known_import("toolward:driver/log@0.1.0"));
    assert!(is_known_import("wasi:keyvalue/store@0.2.0-draft"));
    for name in [
        "wasi:keyvalue/store@0.2.0",
        "wasi:keyvalue/store@0.2.0-draft2",
        "wasi:keyvalue/store@0.2.0-draftish",
        "wasi:cli/environment@0.3.0",
        "wasi:cli/environment@0.2.0-rc-2023-11-10",
        "wasi:cli/environment@0.2.",
        "wasi:cli/environment",
        "wasi:nn/graph@0.2.0",
        "wasi:clievil/x@0.2.0",
        "toolward:driver/log@1.0.0",
        "run",
    ] {
        assert!(!is_known_import(name), "{name}");
    }
}

#[test]
fn a_package_is_not_matched_by_a_longer_one() {
    let found = surface(r#"(component (import "wasi:http-ish/x@0.2.0" (instance)))"#).unwrap();
    assert!(!found.imports_package("wasi:http"));
    let found = surface(r#"(component (import "wasi:http/types@0.2.0" (instance)))"#).unwrap();
    assert!(found.imports_package("wasi:http"));
}

#[test]
fn a_core_module_is_named_as_such() {
    let error = surface("(module)").unwrap_err();
    assert_eq!(error.code(), "component-is-module");
}

#[test]
fn no_prefix_and_no_changed_byte_of_a_component_makes_the_reader_panic() {
    let bytes = wat::parse_str(
        r#"(component
            (import "wasi:io/poll@0.2.3" (instance))
            (core module (func))
            (component (component))
            (instance $i)
            (export "toolward:driver/handler@0.1.0" (instance $i)))"#,
    )
    .unwrap();
    for end in 0..bytes.len() {
        // A prefix that ends between two sections is a component too.
        let _ = Surface::read(&bytes[..end]);
    }
    for at in 0..bytes.len() {
        for value in [0x00, 0x01, 0x7f, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] = value;
            let _ = Surface::read(&changed);
        }
    }
}

#[test]
fn nesting_deeper_than_the_limit_is_refused() {
    let mut text = "(component".repeat(MAX_DEPTH + 2);
    text.push_str(&")".repeat(MAX_DEPTH + 2));
    let error = surface(&text).unwrap_err();
    assert_eq!(error.code(), "component-too-complex");
}
