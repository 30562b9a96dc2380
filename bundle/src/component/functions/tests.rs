//! Functions of components that are built in the tests, and the schemas of their types.

use serde_json::json;
use toolward_contract::driver::{Driver, WitCall, World};
use toolward_contract::{NoScope, tool::Tool};

use super::*;
use crate::component::Surface;

fn functions(wat: &str) -> Functions {
    let wasm = wat::parse_str(wat).unwrap_or_else(|error| panic!("{wat}: {error}"));
    let surface = Surface::read(&wasm).unwrap();
    Functions::read(&wasm, &surface.exports).unwrap()
}

/// The functions of a component that exports an instance `i` of these types and functions.
fn instance(inside: &str) -> Functions {
    functions(&instance_of(inside))
}

fn instance_of(inside: &str) -> String {
    format!(
        "(component (type $i (instance {inside}))
            (import \"i\" (instance $i (type $i))) (export \"i\" (instance $i)))"
    )
}

fn entry(component: &str) -> toolward_contract::driver::Implements {
    let text = format!(
        "---\nname: S\nid: s-d\ndescription: D.\nversion: 1.0.0\nkind: component\n\
         component: d.wasm\nimplements:\n  - tool: a.b\n    version: 1.x\n    \
         metadata: {{ component: {component} }}\n---\n"
    );
    let driver = Driver::parse("DRIVER.md", &text).into_result().unwrap();
    driver.implements.into_iter().next().unwrap()
}

fn call(component: &str) -> WitCall {
    match entry(component).world {
        World::Wit(call) => call,
        other => panic!("{other:?}"),
    }
}

const NAMED: &str = "{ world: wit, export: f }";

#[test]
fn functions_are_found_at_the_top_and_in_instances() {
    let found = functions(
        r#"(component
            (import "a:b/c@1.0.0" (instance $i (export "g" (func (param "x" u8) (result string)))))
            (export "a:b/c@1.0.0" (instance $i))
            (core module $m (func (export "f")))
            (core instance $m (instantiate $m))
            (func $f (canon lift (core func $m "f")))
            (export "f" (func $f)))"#,
    );
    let names: Vec<&String> = found.offered.keys().collect();
    assert_eq!(names, ["a:b/c@1.0.0#g", "f"]);
    assert!(found.withheld.is_empty());
    let g = &found.offered["a:b/c@1.0.0#g"];
    assert_eq!(*g.parameters[0].1, Type::Unsigned(8));
    assert_eq!(g.result.as_deref(), Some(&Type::String));
}

#[test]
fn what_no_call_can_pass_is_withheld_and_the_rest_offered() {
    let found = instance(
        r#"(export "r" (type $r (sub resource)))
           (type $b (borrow $r))
           (export "takes" (func (param "x" $b)))
           (export "[method]r.m" (func (param "self" $b)))
           (export "plain" (func (param "x" string)))"#,
    );
    assert_eq!(found.offered.keys().collect::<Vec<_>>(), ["i#plain"]);
    for name in ["i#takes", "i#[method]r.m"] {
        assert_eq!(found.withheld[name].code(), "component-type-unsupported");
    }
}

#[test]
fn names_are_bounded_before_they_are_kept() {
    let long = "a".repeat(201);
    let found = instance(&format!(
        "(export \"{long}\" (func)) (export \"ok\" (func))"
    ));
    assert_eq!(found.offered.keys().collect::<Vec<_>>(), ["i#ok"]);
    assert!(found.withheld.is_empty());
    assert_eq!(found.uncounted, 1);
    let many: String = (0..2000)
        .map(|index| format!("(export \"f{index}\" (func))"))
        .collect();
    let found = instance(&many);
    assert_eq!(
        (found.offered.len(), found.withheld.len(), found.uncounted),
        (512, 512, 976)
    );
}

#[test]
fn beyond_a_limit_a_function_is_not_offered() {
    let parameters = |count: usize| {
        let each = (0..count).map(|index| format!("(param \"p{index}\" u8)"));
        format!("(export \"f\" (func {}))", each.collect::<String>())
    };
    let nested = |levels: usize| {
        let each = (1..levels).map(|level| format!("(type (list {}))", level - 1));
        format!(
            "(type (list u8)) {} (export \"f\" (func (param \"x\" {})))",
            each.collect::<String>(),
            levels - 1
        )
    };
    let fields = |count: usize| {
        let each = (0..count).map(|index| format!("(field \"a{index}\" u8)"));
        format!(
            "(type $r (record {})) (export \"r\" (type $t (eq $r))) (export \"f\" (func (param \"x\" $t)))",
            each.collect::<String>()
        )
    };
    let long = |length: usize| {
        format!(
            "(export \"f\" (func (param \"{}\" u8)))",
            "a".repeat(length)
        )
    };
    for (inside, offered) in [
        (parameters(64), true),
        (parameters(65), false),
        (nested(31), true),
        (nested(32), false),
        (fields(256), true),
        (fields(257), false),
        (long(200), true),
        (long(201), false),
    ] {
        let found = instance(&inside);
        assert_eq!(found.offered.contains_key("i#f"), offered, "{inside}");
        if !offered {
            assert_eq!(found.withheld["i#f"].code(), "component-type-too-large");
        }
    }
    let many: String = (0..513)
        .map(|index| format!("(export \"f{index}\" (func))"))
        .collect();
    let found = instance(&many);
    assert_eq!((found.offered.len(), found.withheld.len()), (512, 1));
}

/// Nested records: each has two fields of the type of the record before it.
fn bomb(levels: usize) -> String {
    let mut text =
        "(type $r0 (record (field \"a\" u8))) (export \"t0\" (type $t0 (eq $r0)))".to_owned();
    for level in 1..levels {
        let below = level - 1;
        text.push_str(&format!(
            "(type $r{level} (record (field \"a\" $t{below}) (field \"b\" $t{below})))
             (export \"t{level}\" (type $t{level} (eq $r{level})))"
        ));
    }
    format!(
        "{text} (export \"f\" (func (param \"x\" $t{})))",
        levels - 1
    )
}

#[test]
fn types_that_are_used_twice_are_written_once() {
    let found = instance(&bomb(16));
    let schema = found.offered["i#f"].inputs(&call(NAMED));
    let defs = schema["$defs"].as_object().unwrap();
    assert_eq!(defs.len(), 15);
    assert!(schema.to_string().len() < 4000);
    assert_eq!(
        schema["properties"]["x"]["properties"]["a"],
        json!({"$ref": "#/$defs/t15"})
    );
    // A contract may have the schema of six levels; checking more levels is too costly.
    let schema = instance(&bomb(6)).offered["i#f"].inputs(&call(NAMED));
    let document = format!(
        "---\nname: T\nid: a.b\ndescription: D.\nversion: 1.0.0\nidempotent: true\ninputs: {schema}\noutputs: {{ type: object }}\n---\n"
    );
    Tool::parse("TOOL.md", &document, &NoScope)
        .into_result()
        .unwrap();
    // Types of other kinds are shared in the same way.
    let results: String = (1..16)
        .map(|level| format!("(type (result {0} (error {0})))", level - 1))
        .collect();
    let results = format!("(type (option u8)) {results} (export \"f\" (func (param \"x\" 15)))");
    let schema = instance(&results).offered["i#f"].inputs(&call(NAMED));
    assert!(schema.to_string().len() < 6000);
    // Each level doubles the size of the type when it is written out.
    let wasm = wat::parse_str(instance_of(&bomb(31))).unwrap();
    let surface = Surface::read(&wasm).unwrap();
    let refused = Functions::read(&wasm, &surface.exports).unwrap_err();
    assert!(refused.to_string().contains("type size"), "{refused}");
}

#[test]
fn each_type_has_its_schema() {
    let schema = |types: &str, ty: &str| {
        let found = instance(&format!("{types} (export \"f\" (func (result {ty})))"));
        found.offered["i#f"].outputs(&call(NAMED))
    };
    assert_eq!(schema("", "bool"), json!({"type": "boolean"}));
    assert_eq!(
        schema("", "s8"),
        json!({"type": "integer", "minimum": -128, "maximum": 127})
    );
    assert_eq!(
        schema("", "u32"),
        json!({"type": "integer", "minimum": 0, "maximum": 4_294_967_295_u32})
    );
    assert_eq!(
        schema("", "u64")["anyOf"][0]["maximum"],
        json!(9_007_199_254_740_991_u64)
    );
    assert_eq!(
        schema("", "f64"),
        json!({"anyOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}]})
    );
    assert_eq!(
        schema("", "char"),
        json!({"type": "string", "minLength": 1, "maxLength": 1})
    );
    assert_eq!(
        schema("(type $t (list u8))", "$t"),
        json!({"type": "string", "contentEncoding": "base64"})
    );
    assert_eq!(
        schema("(type $t (list bool))", "$t"),
        json!({"type": "array", "items": {"type": "boolean"}})
    );
    assert_eq!(
        schema("(type $t (tuple bool string))", "$t"),
        json!({
            "type": "array", "minItems": 2, "maxItems": 2,
            "prefixItems": [{"type": "boolean"}, {"type": "string"}],
        })
    );
    assert_eq!(
        schema(
            "(type $o (option u8)) (type $r (record (field \"a\" bool) (field \"b\" $o))) (export \"r\" (type $t (eq $r)))",
            "$t"
        ),
        json!({
            "type": "object", "required": ["a"], "additionalProperties": false,
            "properties": {"a": {"type": "boolean"}, "b": {"type": "integer", "minimum": 0, "maximum": 255}},
        })
    );
    assert_eq!(
        schema("(type $t (option bool))", "$t"),
        json!({"anyOf": [{"type": "boolean"}, {"type": "null"}]})
    );
    assert_eq!(
        schema("(type $o (option bool)) (type $t (option $o))", "$t")["anyOf"][0]["required"],
        json!(["some"])
    );
    assert_eq!(
        schema(
            "(type $e (enum \"x\" \"y\")) (export \"e\" (type $t (eq $e)))",
            "$t"
        ),
        json!({"type": "string", "enum": ["x", "y"]})
    );
    assert_eq!(
        schema(
            "(type $e (flags \"x\" \"y\")) (export \"e\" (type $t (eq $e)))",
            "$t"
        ),
        json!({"type": "array", "items": {"enum": ["x", "y"]}, "uniqueItems": true})
    );
    let variant = schema(
        "(type $v (variant (case \"n\") (case \"s\" string))) (export \"v\" (type $t (eq $v)))",
        "$t",
    );
    assert_eq!(variant["oneOf"][0]["required"], json!(["tag"]));
    assert_eq!(
        variant["oneOf"][1]["properties"]["val"],
        json!({"type": "string"})
    );
    // At the top, `ok` is the output; inside, both are shown.
    assert_eq!(
        schema("(type $t (result bool (error string)))", "$t"),
        json!({"type": "boolean"})
    );
    assert_eq!(schema("(type $t (result))", "$t"), json!({"type": "null"}));
    let inside = schema(
        "(type $r (result bool (error string))) (type $t (list $r))",
        "$t",
    );
    assert_eq!(
        inside["items"]["oneOf"][1]["properties"],
        json!({"err": {"type": "string"}})
    );
}

fn tool(inputs: &str, outputs: &str) -> Tool {
    let text = format!(
        "---\nname: T\nid: a.b\ndescription: D.\nversion: 1.0.0\nidempotent: true\n\
         inputs: {inputs}\noutputs: {outputs}\n---\n"
    );
    Tool::parse("TOOL.md", &text, &NoScope)
        .into_result()
        .unwrap()
}

#[test]
fn a_function_fits_a_contract_or_not() {
    let found = instance(
        "(type $o (option u8)) (export \"f\" (func (param \"a\" string) (param \"b\" $o) (result string)))",
    );
    let function = &found.offered["i#f"];
    let fits = |component: &str, more: &str, inputs: &str, outputs: &str| {
        let mut entry = entry(component);
        if !more.is_empty() {
            entry.drop_inputs.push(more.to_owned());
        }
        let World::Wit(call) = entry.world.clone() else {
            panic!("{:?}", entry.world);
        };
        function.fits(&call, &entry, &tool(inputs, outputs))
    };
    let a = "{ type: string }";
    let text = "{ type: string }";
    let object = |properties: &str, required: &str| {
        format!("{{ type: object, properties: {{ {properties} }}, required: [{required}] }}")
    };
    let good = object(&format!("a: {a}, b: {{ type: integer }}"), "a");
    assert_eq!(fits(NAMED, "", &good, text), Ok(()));
    for (inputs, outputs, expected) in [
        (
            object("a: { type: string }, c: { type: string }", "a"),
            text,
            "no parameter for the input `c`",
        ),
        (
            object("b: { type: integer }", ""),
            text,
            "`a` is no input of a.b",
        ),
        (
            object("a: { type: string }", ""),
            text,
            "`a` is always needed",
        ),
        (
            object("a: { type: integer }", "a"),
            text,
            "`a` is of type string in JSON",
        ),
        (
            object("a: { type: string }", "a"),
            "{ type: integer }",
            "its result is of type string",
        ),
    ] {
        let reason = fits(NAMED, "", &inputs, outputs).unwrap_err();
        assert!(reason.contains(expected), "{reason}");
    }
    let dropped = object("a: { type: string }, c: { type: string }", "a");
    assert_eq!(fits(NAMED, "c", &dropped, text), Ok(()));
    let whole = "{ world: wit, export: f, arguments: whole }";
    let reason = fits(whole, "", &good, text).unwrap_err();
    assert!(reason.contains("2 parameters"), "{reason}");
}
