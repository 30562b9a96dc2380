//! Properties of every type and every value. The table of types in `docs/src/importing.md` is
//! implemented a second time here: as JSON values, without limits, and with equivalent spellings.

mod generators;

use std::sync::{Arc, LazyLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolward_bundle::component::{Function, Type};
use toolward_contract::NoScope;
use toolward_contract::driver::{BytesForm, ResultForm, WitArguments as Form, WitCall};
use toolward_contract::json::{self, Limits};
use toolward_contract::schema::Schema;
use wasmtime::component::Val;

use self::generators::{fields, typed};
use super::super::from_json::{Arguments, Refused};
use super::super::to_json;
use super::{call, taking};

/// Each form of `list<u8>`.
const FORMS: [BytesForm; 3] = [BytesForm::Base64, BytesForm::Utf8, BytesForm::Array];

/// Calls that show a result unchanged, in the order of [`FORMS`].
static CALLS: LazyLock<[WitCall; 3]> = LazyLock::new(|| {
    FORMS.map(|form| {
        let mut call = call(form);
        call.result = ResultForm::Keep;
        call
    })
});

static FUNCTION: LazyLock<Function> = LazyLock::new(|| taking("", "bool"));

/// A function that takes and returns this type.
fn echo(ty: &Arc<Type>) -> Function {
    let mut function = FUNCTION.clone();
    function.parameters = vec![("x".to_owned(), Arc::clone(ty))];
    function.result = Some(Arc::clone(ty));
    function
}

fn written(value: &Val, ty: &Type, call: &WitCall) -> Result<String, to_json::Refused> {
    to_json::written(Some((value, ty)), call.bytes, 1 << 20)
}

fn read(function: &Function, call: &WitCall, input: &str) -> Result<Vec<Val>, Refused> {
    let arguments = Arguments {
        function,
        call,
        limits: &Limits::default(),
        memory: &mut (1 << 24),
    };
    arguments.values(input)
}

/// Whether a value matches a schema. `None` if the check would take too long: `import` leaves such
/// a function out.
fn says(schema: &Value, value: &Value) -> Option<bool> {
    match Schema::compile(schema, &NoScope) {
        Ok(schema) => Some(schema.validate(value).is_ok()),
        Err(error) if error.code() == "schema-cost" => None,
        Err(error) => panic!("{schema}: {error}"),
    }
}

fn config() -> ProptestConfig {
    // Set by `cargo xtask long`.
    let long = std::env::var_os("TOOLWARD_LONG").is_some();
    ProptestConfig {
        cases: if long { 25_000 } else { 500 },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_value_is_written_as_its_schema_says_and_read_again((ty, value) in typed()) {
        let function = echo(&ty);
        for call in CALLS.iter() {
            let text = written(&value, &ty, call);
            let Some(expected) = canonical(&value, &ty, call.bytes) else {
                prop_assert_eq!(text, Err(to_json::Refused::NotUtf8));
                continue;
            };
            let text = text.map_err(|refused| TestCaseError::fail(format!("{refused:?}")))?;
            let output = json::parse(text.as_bytes(), &Limits::default())
                .map_err(|error| TestCaseError::fail(format!("{text}: {error}")))?;
            // Compared as text, since −0.0 equals 0.0 and members have an order.
            prop_assert_eq!(output.to_string(), expected.to_string());

            let outputs = function.outputs(call);
            prop_assert_ne!(says(&outputs, &output), Some(false), "{}: {}", outputs, output);
            // An input can't contain numbers without digits.
            let inputs = function.inputs(call);
            let wrong = Some(!is_finite(&value));
            prop_assert_ne!(says(&inputs, &output), wrong, "{}: {}", inputs, output);

            let again = read(&function, call, &text);
            prop_assert_eq!(again, Ok(vec![value.clone()]), "{}", text);
        }
    }

    #[test]
    fn however_an_input_is_spelled_the_same_value_is_meant(
        (ty, value) in typed(),
        choices in any::<u64>(),
    ) {
        let function = echo(&ty);
        for call in CALLS.iter() {
            let Some(expected) = canonical(&value, &ty, call.bytes) else {
                continue;
            };
            let input = Spelling(choices).of(&expected, &ty);
            let read = read(&function, call, &input.to_string());
            prop_assert_eq!(&read, &Ok(vec![value.clone()]), "{}", input);
            let text = written(&value, &ty, call).map_err(|refused| {
                TestCaseError::fail(format!("{input}: {refused:?}"))
            })?;
            let output: Value = serde_json::from_str(&text)
                .map_err(|error| TestCaseError::fail(format!("{text}: {error}")))?;
            prop_assert_eq!(output.to_string(), expected.to_string());
        }
    }

    #[test]
    fn parameters_are_members_of_the_input_and_options_may_be_absent(
        (parameters, values) in fields(),
    ) {
        let mut function = FUNCTION.clone();
        function.parameters = parameters;
        let mut call = CALLS[0].clone();
        call.arguments = Form::Named;
        let mut input = serde_json::Map::new();
        for ((name, ty), value) in function.parameters.iter().zip(&values) {
            if *value != Val::Option(None) {
                let member = canonical(value, ty, call.bytes);
                input.insert(name.clone(), member.expect("base64 is for any bytes"));
            }
        }
        let input = Value::Object(input);
        let inputs = function.inputs(&call);
        let wrong = Some(!values.iter().all(is_finite));
        prop_assert_ne!(says(&inputs, &input), wrong, "{}: {}", inputs, input);
        prop_assert_eq!(read(&function, &call, &input.to_string()), Ok(values), "{}", input);
    }
}

/// The largest integer that is written as a number.
const MAX_INTEGER: u64 = (1 << 53) - 1;

/// The JSON of a value; `None` if bytes that must become text are not UTF-8.
fn canonical(value: &Val, ty: &Type, bytes: BytesForm) -> Option<Value> {
    let inner = |value: &Option<Box<Val>>, ty: &Option<std::sync::Arc<Type>>| {
        let both = value.as_deref().zip(ty.as_deref());
        both.map(|(value, ty)| canonical(value, ty, bytes))
    };
    Some(match (value, ty) {
        (Val::Bool(value), Type::Bool) => json!(value),
        (Val::U8(value), Type::Unsigned(8)) => json!(value),
        (Val::U16(value), Type::Unsigned(16)) => json!(value),
        (Val::U32(value), Type::Unsigned(32)) => json!(value),
        (Val::U64(value), Type::Unsigned(64)) if *value > MAX_INTEGER => json!(value.to_string()),
        (Val::U64(value), Type::Unsigned(64)) => json!(value),
        (Val::S8(value), Type::Signed(8)) => json!(value),
        (Val::S16(value), Type::Signed(16)) => json!(value),
        (Val::S32(value), Type::Signed(32)) => json!(value),
        (Val::S64(value), Type::Signed(64)) if value.unsigned_abs() > MAX_INTEGER => {
            json!(value.to_string())
        }
        (Val::S64(value), Type::Signed(64)) => json!(value),
        (Val::Float32(value), Type::Float32) => float(f64::from(*value), &json_text(value)),
        (Val::Float64(value), Type::Float64) => float(*value, &json_text(value)),
        (Val::Char(value), Type::Char) => json!(value),
        (Val::String(value), Type::String) => json!(value),
        (Val::List(values), bytes_type) if bytes_type.is_bytes() => {
            let values: Vec<u8> = values.iter().map(byte).collect();
            match bytes {
                BytesForm::Base64 => json!(STANDARD.encode(values)),
                BytesForm::Utf8 => json!(String::from_utf8(values).ok()?),
                BytesForm::Array => json!(values),
            }
        }
        (Val::List(values), Type::List(element)) => {
            let values = values.iter().map(|value| canonical(value, element, bytes));
            Value::Array(values.collect::<Option<_>>()?)
        }
        (Val::Tuple(values), Type::Tuple(types)) => {
            let values = values.iter().zip(types);
            let values = values.map(|(value, ty)| canonical(value, ty, bytes));
            Value::Array(values.collect::<Option<_>>()?)
        }
        (Val::Record(values), Type::Record(fields)) => {
            let present = values.iter().zip(fields);
            let present = present.filter(|((_, value), _)| *value != Val::Option(None));
            let members = present
                .map(|((name, value), (_, ty))| Some((name.clone(), canonical(value, ty, bytes)?)));
            Value::Object(members.collect::<Option<_>>()?)
        }
        (Val::Option(None), Type::Option(_)) => Value::Null,
        (Val::Option(Some(value)), Type::Option(ty)) => {
            let some = canonical(value, ty, bytes)?;
            match **ty {
                Type::Option(_) => json!({ "some": some }),
                _ => some,
            }
        }
        (Val::Enum(case), Type::Enum(_)) => json!(case),
        (Val::Flags(names), Type::Flags(_)) => json!(names),
        (Val::Variant(case, value), Type::Variant(cases)) => {
            let (_, ty) = cases.iter().find(|(name, _)| name == case)?;
            match inner(value, ty) {
                Some(value) => json!({ "tag": case, "val": value? }),
                None => json!({ "tag": case }),
            }
        }
        (Val::Result(Ok(value)), Type::Result { ok, .. }) => {
            json!({ "ok": inner(value, ok).unwrap_or(Some(Value::Null))? })
        }
        (Val::Result(Err(value)), Type::Result { err, .. }) => {
            json!({ "err": inner(value, err).unwrap_or(Some(Value::Null))? })
        }
        (value, ty) => panic!("{value:?} is no {ty:?}"),
    })
}

fn byte(value: &Val) -> u8 {
    match value {
        Val::U8(byte) => *byte,
        other => panic!("{other:?} is no byte"),
    }
}

/// The shortest text that is read as the same number with the same bits.
fn json_text(number: &impl serde::Serialize) -> String {
    serde_json::to_string(number).expect("a number")
}

fn float(number: f64, text: &str) -> Value {
    match number {
        f64::INFINITY => json!("Infinity"),
        f64::NEG_INFINITY => json!("-Infinity"),
        _ if number.is_nan() => json!("NaN"),
        _ => json!(text.parse::<f64>().expect("a number")),
    }
}

/// Whether all numbers in the value have digits.
fn is_finite(value: &Val) -> bool {
    let inside = |value: &Option<Box<Val>>| value.as_deref().is_none_or(is_finite);
    match value {
        Val::Float32(value) => value.is_finite(),
        Val::Float64(value) => value.is_finite(),
        Val::List(values) | Val::Tuple(values) => values.iter().all(is_finite),
        Val::Record(fields) => fields.iter().all(|(_, value)| is_finite(value)),
        Val::Variant(_, value) | Val::Option(value) | Val::Result(Ok(value) | Err(value)) => {
            inside(value)
        }
        _ => true,
    }
}

/// Choices between spellings, one for each bit.
struct Spelling(u64);

impl Spelling {
    fn other(&mut self) -> bool {
        self.0 = self.0.rotate_left(1);
        self.0 & 1 == 1
    }

    /// The same value, perhaps in another accepted spelling.
    fn of(&mut self, value: &Value, ty: &Type) -> Value {
        match (value, ty) {
            (Value::Number(number), Type::Unsigned(bits) | Type::Signed(bits)) => {
                match (self.other(), self.other()) {
                    (true, true) if *bits == 64 => json!(number.to_string()),
                    (true, _) => json!(number.as_f64()),
                    _ => value.clone(),
                }
            }
            (Value::Number(number), Type::Float32 | Type::Float64) if self.other() => {
                let number = number.as_f64().expect("a number");
                let whole = number as i64;
                // −0 is not an integer, and integers beyond 2^53 are not written as numbers.
                let same = (whole as f64).to_bits() == number.to_bits();
                match same && whole.unsigned_abs() <= MAX_INTEGER {
                    true => json!(whole),
                    false => json!(number),
                }
            }
            (Value::Array(values), Type::List(element)) => {
                values.iter().map(|value| self.of(value, element)).collect()
            }
            (Value::Array(values), Type::Tuple(types)) => {
                let values = values.iter().zip(types);
                values.map(|(value, ty)| self.of(value, ty)).collect()
            }
            (Value::Array(names), Type::Flags(all)) => self.flags(names, all.len()),
            (Value::Object(members), Type::Record(fields)) => {
                let mut record = Map::new();
                for (name, ty) in fields {
                    match members.get(name) {
                        Some(value) => drop(record.insert(name.clone(), self.of(value, ty))),
                        // An option without a value may be left out or be null.
                        None if self.other() => drop(record.insert(name.clone(), Value::Null)),
                        None => {}
                    }
                }
                self.ordered(record)
            }
            (Value::Object(members), Type::Variant(cases)) => {
                let case = cases.iter().find(|(name, _)| members["tag"] == json!(name));
                let mut members = members.clone();
                match (members.get("val"), &case.expect("a case").1) {
                    (Some(value), Some(ty)) => {
                        let value = self.of(value, ty);
                        members.insert("val".to_owned(), value);
                    }
                    _ if self.other() => drop(members.insert("val".to_owned(), Value::Null)),
                    _ => {}
                }
                self.ordered(members)
            }
            (Value::Object(members), Type::Result { ok, err }) => {
                let members = members.iter().map(|(key, value)| {
                    let ty = if key == "ok" { ok } else { err };
                    let value = ty.as_deref().map_or(Value::Null, |ty| self.of(value, ty));
                    (key.clone(), value)
                });
                Value::Object(members.collect())
            }
            (Value::Null, Type::Option(_)) => Value::Null,
            (value, Type::Option(ty)) => match **ty {
                Type::Option(_) => json!({ "some": self.of(&value["some"], ty) }),
                _ => self.of(value, ty),
            },
            _ => value.clone(),
        }
    }

    /// Flags may be in any order, and a repeated word is one flag.
    fn flags(&mut self, names: &[Value], all: usize) -> Value {
        let mut names = names.to_vec();
        if self.other() {
            names.reverse();
        }
        if names.len() < all && self.other() {
            names.extend(names.first().cloned());
        }
        Value::Array(names)
    }

    fn ordered(&mut self, members: Map<String, Value>) -> Value {
        match self.other() {
            true => Value::Object(members.into_iter().rev().collect()),
            false => Value::Object(members),
        }
    }
}
