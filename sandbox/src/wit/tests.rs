//! Values of each type can be converted to JSON and back.

mod property;

use std::sync::Arc;

use serde_json::{Value, json};
use toolward_bundle::component::{Function, Functions, Surface, Type};
use toolward_contract::driver::{BytesForm, ResultForm, WitArguments as Form, WitCall};
use toolward_contract::json::Limits;
use wasmtime::component::Val;

use super::from_json::{Arguments, Refused};
use super::to_json;
use super::weight;

/// The function `f` of a component in WAT, with one parameter of this type.
fn taking(types: &str, parameter: &str) -> Function {
    let wat = format!(
        r#"(component
            (type $i (instance {types} (export "f" (func (param "x" {parameter})))))
            (import "i" (instance $i (type $i)))
            (export "i" (instance $i)))"#
    );
    let wasm = wat::parse_str(&wat).unwrap_or_else(|error| panic!("{wat}: {error}"));
    let surface = Surface::read(&wasm).expect("a component");
    let functions = Functions::read(&wasm, &surface.exports).expect("types");
    functions
        .offered
        .get("i#f")
        .unwrap_or_else(|| panic!("{functions:?}"))
        .clone()
}

fn call(bytes: BytesForm) -> WitCall {
    let yaml = format!(
        "---\nname: S\nid: s-d\ndescription: D.\nversion: 1.0.0\nkind: component\ncomponent: d.wasm\nimplements:\n  - tool: a.b\n    version: 1.x\n    metadata: {{ component: {{ world: wit, export: f, arguments: whole, bytes: {} }} }}\n---\n",
        match bytes {
            BytesForm::Base64 => "base64",
            BytesForm::Utf8 => "utf8",
            BytesForm::Array => "array",
        }
    );
    let driver = toolward_contract::driver::Driver::parse("DRIVER.md", &yaml).into_result();
    let driver = driver.unwrap_or_else(|found| panic!("{found:?}"));
    match &driver.implements.first().expect("one").world {
        toolward_contract::driver::World::Wit(call) => {
            assert_eq!(
                (call.arguments, call.result),
                (Form::Whole, ResultForm::Unwrap)
            );
            call.clone()
        }
        other => panic!("{other:?}"),
    }
}

fn read_as(function: &Function, input: &Value, bytes: BytesForm) -> Result<Val, Refused> {
    let arguments = Arguments {
        function,
        call: &call(bytes),
        limits: &Limits::default(),
        memory: &mut (1 << 20),
    };
    let mut values = arguments.values(&input.to_string())?;
    Ok(values.pop().expect("one parameter"))
}

fn read(function: &Function, input: &Value) -> Result<Val, Refused> {
    read_as(function, input, BytesForm::Base64)
}

fn written(value: &Val, ty: &Type, limit: u64) -> Result<Value, to_json::Refused> {
    let text = to_json::written(Some((value, ty)), BytesForm::Base64, limit)?;
    Ok(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}")))
}

fn of(function: &Function) -> &Arc<Type> {
    &function.parameters.first().expect("one parameter").1
}

#[track_caller]
fn same(types: &str, parameter: &str, values: &[Value]) {
    let function = taking(types, parameter);
    for value in values {
        let lifted =
            read(&function, value).unwrap_or_else(|refused| panic!("{value}: {refused:?}"));
        assert_eq!(
            &written(&lifted, of(&function), 1 << 16).expect("written"),
            value
        );
    }
}

#[track_caller]
fn refused(types: &str, parameter: &str, values: &[Value]) {
    let function = taking(types, parameter);
    for value in values {
        match read(&function, value) {
            Err(Refused::Input(_)) => {}
            other => panic!("{parameter} {value}: {other:?}"),
        }
    }
}

#[test]
fn each_type_is_read_and_written() {
    same("", "bool", &[json!(true), json!(false)]);
    same("", "u8", &[json!(0), json!(255)]);
    same("", "s8", &[json!(-128), json!(127)]);
    same("", "u16", &[json!(65535)]);
    same("", "s16", &[json!(-32768)]);
    same("", "u32", &[json!(4_294_967_295_u32)]);
    same("", "s32", &[json!(-2_147_483_648_i32)]);
    let most = 9_007_199_254_740_991_u64;
    same(
        "",
        "u64",
        &[
            json!(0),
            json!(most),
            json!("9007199254740992"),
            json!("18446744073709551615"),
        ],
    );
    same(
        "",
        "s64",
        &[
            json!(-9_007_199_254_740_991_i64),
            json!("-9223372036854775808"),
        ],
    );
    same(
        "",
        "f64",
        &[
            json!(0.1),
            json!(-0.0),
            json!("NaN"),
            json!("Infinity"),
            json!("-Infinity"),
        ],
    );
    // The last value becomes another number if its text is read with 64 bits first.
    same(
        "",
        "f32",
        &[json!(0.5), json!(0.1), json!("NaN"), json!(7.038_531e-26)],
    );
    same("", "char", &[json!("ü"), json!("\u{10ffff}"), json!("\"")]);
    same("", "string", &[json!(""), json!("a\u{0}\"\\\n😀")]);
    same("(type $t (list u8))", "$t", &[json!(""), json!("AAEC/w==")]);
    same(
        "(type $t (list string))",
        "$t",
        &[json!([]), json!(["a", "b"])],
    );
    same("(type $t (tuple u8 string))", "$t", &[json!([1, "a"])]);
    same(
        "(type $o (option u8)) (type $r (record (field \"a-b\" u8) (field \"c\" $o))) (export \"r\" (type $e (eq $r)))",
        "$e",
        &[json!({"a-b": 1}), json!({"a-b": 1, "c": 2})],
    );
    same(
        "(type $e (enum \"x\" \"y\")) (export \"e\" (type $t (eq $e)))",
        "$t",
        &[json!("x")],
    );
    same(
        "(type $f (flags \"x\" \"y\" \"z\")) (export \"f-s\" (type $t (eq $f)))",
        "$t",
        &[json!([]), json!(["x", "z"])],
    );
    same(
        "(type $v (variant (case \"n\") (case \"s\" string))) (export \"v\" (type $t (eq $v)))",
        "$t",
        &[json!({"tag": "n"}), json!({"tag": "s", "val": "a"})],
    );
    same(
        "(type $t (result u8 (error string)))",
        "$t",
        &[json!({"ok": 1}), json!({"err": "e"})],
    );
    same(
        "(type $t (result))",
        "$t",
        &[json!({"ok": null}), json!({"err": null})],
    );
    same(
        "(type $t (option string))",
        "$t",
        &[json!(null), json!("a")],
    );
    same(
        "(type $o (option u8)) (type $p (option $o)) (type $t (option $p))",
        "$t",
        &[
            json!(null),
            json!({"some": null}),
            json!({"some": {"some": null}}),
            json!({"some": {"some": 3}}),
        ],
    );
}

#[test]
fn what_is_no_value_of_the_type_is_refused() {
    refused("", "bool", &[json!(1), json!("true"), json!(null)]);
    refused(
        "",
        "u8",
        &[json!(256), json!(-1), json!(1.5), json!("1"), json!(null)],
    );
    refused("", "s8", &[json!(128), json!(-129)]);
    refused(
        "",
        "u64",
        &[
            json!(-1),
            json!("18446744073709551616"),
            json!("+1"),
            json!(""),
            json!("1.0"),
        ],
    );
    refused("", "s64", &[json!("9223372036854775808"), json!("--1")]);
    refused("", "f32", &[json!(1e300), json!("1"), json!(null)]);
    refused("", "char", &[json!(""), json!("ab"), json!(1)]);
    refused("(type $t (list u8))", "$t", &[json!("*"), json!([1])]);
    refused(
        "(type $t (tuple u8 string))",
        "$t",
        &[json!([1]), json!([1, "a", 2]), json!({})],
    );
    refused(
        "(type $r (record (field \"a\" u8))) (export \"r\" (type $e (eq $r)))",
        "$e",
        &[json!({}), json!({"a": 1, "b": 2}), json!([1])],
    );
    refused(
        "(type $e (enum \"x\")) (export \"e\" (type $t (eq $e)))",
        "$t",
        &[json!("y"), json!(0)],
    );
    refused(
        "(type $f (flags \"x\")) (export \"f-s\" (type $t (eq $f)))",
        "$t",
        &[json!(["y"]), json!("x"), json!(["x", "x"])],
    );
    refused(
        "(type $v (variant (case \"n\") (case \"s\" string))) (export \"v\" (type $t (eq $v)))",
        "$t",
        &[
            json!({"tag": "s"}),
            json!({"tag": "n", "val": 1}),
            json!({"tag": "m"}),
            json!({"tag": "s", "val": "a", "more": 1}),
            json!("n"),
        ],
    );
    refused(
        "(type $t (result u8))",
        "$t",
        &[json!({}), json!({"ok": 1, "err": null}), json!(1)],
    );
    refused(
        "(type $o (option u8)) (type $t (option $o))",
        "$t",
        &[json!(1), json!({"some": 1, "x": 2})],
    );
}

#[test]
fn the_place_of_a_misfit_is_named() {
    let function = taking("(type $t (list u8)) (type $l (list $t))", "$l");
    let refused = read_as(&function, &json!([[1], [2, 300]]), BytesForm::Array);
    let Err(Refused::Input(message)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(
        message,
        "the driver takes an integer from 0 to 255 at \"/1/1\" of its input"
    );
}

#[test]
fn an_input_may_be_larger_than_an_output() {
    let function = taking("", "string");
    let arguments = Arguments {
        function: &function,
        call: &call(BytesForm::Base64),
        limits: &Limits {
            bytes: 16,
            ..Limits::default()
        },
        memory: &mut (1 << 20),
    };
    let long = "x".repeat(1000);
    let read = arguments.plain(&json!(long).to_string());
    assert_eq!(read, Ok(super::from_json::Plain::Text(long)));
}

#[test]
fn bytes_are_read_in_each_form() {
    let function = taking("(type $t (list u8))", "$t");
    let expected = Val::List(vec![Val::U8(104), Val::U8(105)]);
    for (form, value) in [
        (BytesForm::Base64, json!("aGk=")),
        (BytesForm::Utf8, json!("hi")),
        (BytesForm::Array, json!([104, 105])),
    ] {
        assert_eq!(read_as(&function, &value, form), Ok(expected.clone()));
        let text = to_json::written(Some((&expected, of(&function))), form, 64);
        assert_eq!(text, Ok(value.to_string()));
    }
    let bytes = Val::List(vec![Val::U8(0xff)]);
    assert_eq!(
        to_json::written(Some((&bytes, of(&function))), BytesForm::Utf8, 64),
        Err(to_json::Refused::NotUtf8)
    );
}

#[test]
fn text_stops_at_its_limit() {
    let function = taking("(type $t (list u32))", "$t");
    let value = Val::List(vec![Val::U32(7); 1000]);
    let exact = written(&value, of(&function), 2001).expect("fits");
    assert_eq!(exact.as_array().map(Vec::len), Some(1000));
    let refused = written(&value, of(&function), 2000);
    assert_eq!(refused, Err(to_json::Refused::TooLarge));
}

#[test]
fn values_are_counted_before_they_are_made() {
    let function = taking("(type $t (list u8))", "$t");
    let input = json!(vec![0; 10_000]).to_string();
    let read = |mut memory: u64| {
        let arguments = Arguments {
            function: &function,
            call: &call(BytesForm::Array),
            limits: &Limits::default(),
            memory: &mut memory,
        };
        let read = arguments.values(&input).map(drop);
        read.map(|()| memory)
    };
    assert_eq!(read(900_000), Err(Refused::Memory));
    let left = read(4 << 20).expect("enough");
    assert!(
        (4 << 20) - left >= 10_000 * size_of::<Val>() as u64,
        "{left}"
    );
}

/// The units that `wasmtime` charges when it lifts a value within another.
fn charged(value: &Val) -> u64 {
    let place = 48;
    match value {
        Val::String(text) | Val::Enum(text) => text.len() as u64,
        Val::List(values) | Val::Tuple(values) => {
            values.iter().map(|value| place + charged(value)).sum()
        }
        Val::Record(fields) => {
            let fields = fields.iter();
            fields
                .map(|(name, value)| place + name.len() as u64 + charged(value))
                .sum()
        }
        Val::Flags(names) => names.iter().map(|name| name.len() as u64).sum(),
        Val::Variant(case, value) => {
            case.len() as u64 + value.as_deref().map_or(0, |value| place + charged(value))
        }
        Val::Option(value) | Val::Result(Ok(value) | Err(value)) => {
            value.as_deref().map_or(0, |value| place + charged(value))
        }
        _ => 0,
    }
}

#[test]
fn no_value_takes_more_than_its_type_weighs() {
    let names: Vec<String> = (0..32).map(|index| format!("\"n{index}\"")).collect();
    let flags = format!(
        "(type $f (flags {})) (export \"fs\" (type $t (eq $f))) (type $l (list $t))",
        names.join(" ")
    );
    let all: Vec<String> = (0..32).map(|index| format!("n{index}")).collect();
    for (types, parameter, value) in [
        (
            "(type $t (list u8)) (type $l (list $t))",
            "$l",
            json!(vec![vec![1]; 100]),
        ),
        (
            "(type $r (record (field \"a\" u8))) (export \"r\" (type $t (eq $r))) (type $l (list $t))",
            "$l",
            json!(vec![json!({"a": 1}); 100]),
        ),
        (
            "(type $e (enum \"x\")) (export \"e\" (type $t (eq $e))) (type $l (list $t))",
            "$l",
            json!(vec!["x"; 100]),
        ),
        (
            "(type $o (option u8)) (type $l (list $o))",
            "$l",
            json!(vec![1; 100]),
        ),
        (flags.as_str(), "$l", json!(vec![all; 20])),
        (flags.as_str(), "$l", json!(vec![vec!["n1"]; 100])),
    ] {
        let function = taking(types, parameter);
        let value = read_as(&function, &value, BytesForm::Array).expect("a value");
        let weight = weight::of_type(of(&function));
        assert!(
            weight::of_value(&value) <= weight * charged(&value),
            "{types}: {weight}"
        );
        assert!(weight < 20, "{types}: {weight}");
    }
}

#[test]
fn bytes_that_are_no_text_are_not_passed_off_as_text() {
    let bytes = vec![b'h', 0xff];
    let refused = Err(to_json::Refused::NotUtf8);
    assert_eq!(to_json::text_of(bytes.clone(), BytesForm::Utf8), refused);
    let text = to_json::text_of(bytes, BytesForm::Base64);
    assert_eq!(text.as_deref(), Ok("aP8="));
}
