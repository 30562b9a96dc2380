//! What holds for every type, and for every value of it.

mod generators;
mod model;

use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use serde_json::Value;
use toolward_bundle::component::{Function, Type};
use toolward_contract::NoScope;
use toolward_contract::driver::{BytesForm, ResultForm, WitArguments as Form, WitCall};
use toolward_contract::json::{self, Limits};
use toolward_contract::schema::Schema;
use wasmtime::component::Val;

use self::generators::{fields, typed};
use self::model::{Spelling, canonical, is_finite};
use super::super::from_json::{Arguments, Refused};
use super::super::to_json::{self, JsonText};
use super::{call, taking};

/// Each form of `list<u8>`.
const FORMS: [BytesForm; 3] = [BytesForm::Base64, BytesForm::Utf8, BytesForm::Array];

/// Calls that show a result as it is, in the order of [`FORMS`].
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
    let mut text = JsonText::new(1 << 20, call.bytes);
    text.value(value, ty)?;
    Ok(text.into_string())
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

/// Whether a value is what a schema says. `None` where the schema would take too long to check:
/// `import` leaves such a function out.
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
            // As text, since −0.0 equals 0.0 and members have an order.
            prop_assert_eq!(output.to_string(), expected.to_string());

            let outputs = function.outputs(call);
            prop_assert_ne!(says(&outputs, &output), Some(false), "{}: {}", outputs, output);
            // An input has no words for numbers without digits.
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
