//! The world `amplifier-tool`: components that were made as tools of Amplifier, a framework for
//! agents, and export `amplifier:modules/tool@1.0.0`.

use serde_json::Value;
use toolward_contract::driver::{ForeignError, ForeignResult, ForeignWorld, domain_code};
use toolward_contract::json::JsonError;
use toolward_support::report::codes;

/// The interface that a tool of Amplifier exports.
#[cfg(feature = "import")]
pub(crate) const TOOL: &str = "amplifier:modules/tool@1.0.0";

/// The function of this interface that describes the tool.
pub(crate) const SPEC: &str = "amplifier:modules/tool@1.0.0#get-spec";

/// The world. A program that calls tools of Amplifier must [register](ForeignWorld::register) it.
pub static WORLD: ForeignWorld = ForeignWorld {
    name: "amplifier-tool",
    interfaces: "amplifier:modules/",
    functions: &["amplifier:modules/tool@1.0.0#execute", SPEC],
    word: "amplifier",
    component: "a module of Amplifier",
    tool: "a tool of Amplifier",
    unusable: "of Amplifier's modules, only tools are run",
    output,
};

codes! {
    /// Codes of calls of Amplifier's tools.
    pub enum AmplifierCode {
        Result = "component:result", "what the component returned is not a result of Amplifier";
        Failed = "amplifier:failed", "the tool of Amplifier returned `success: false` without a type";
        Error = "amplifier:error", "the tool of Amplifier returned an error from `execute`";
    }
}

fn output(returned: ForeignResult) -> Result<Value, ForeignError> {
    match returned {
        ForeignResult::Value(read) => result(read),
        ForeignResult::Failed(message) => Err(error(AmplifierCode::Error.code(), message, None)),
    }
}

fn error(code: &str, message: String, cause: Option<String>) -> ForeignError {
    ForeignError {
        code: code.to_owned(),
        message,
        cause,
    }
}

/// Converts an Amplifier `ToolResult`: `{"success": …, "output": …, "error": …}`.
fn result(read: Result<Value, JsonError>) -> Result<Value, ForeignError> {
    let invalid = |why: String| {
        let message = format!("what the tool returned is no result of Amplifier: {why}");
        error(AmplifierCode::Result.code(), message, None)
    };
    let mut value = read.map_err(|error| invalid(error.to_string()))?;
    match value.get("success").and_then(Value::as_bool) {
        Some(true) => Ok(value.get_mut("output").map(Value::take).unwrap_or_default()),
        Some(false) => {
            let found = value.get("error").unwrap_or(&Value::Null);
            let text = |key: &str| found.get(key).and_then(Value::as_str);
            let code = match text("type").filter(|kind| !kind.is_empty()) {
                Some(kind) => domain_code("amplifier", kind),
                None => AmplifierCode::Failed.code().to_owned(),
            };
            let message = text("message")
                .or_else(|| found.as_str())
                .or_else(|| value.get("output").and_then(Value::as_str))
                .unwrap_or("the tool failed and did not say why")
                .to_owned();
            Err(error(&code, message, Some(found.to_string())))
        }
        None => Err(invalid("it has no boolean `success`".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use toolward_contract::json::parse;

    use super::*;

    fn read(text: &str) -> Result<Value, ForeignError> {
        let limits = toolward_contract::json::Limits::default();
        result(parse(text.as_bytes(), &limits))
    }

    #[test]
    fn success_is_the_output_and_all_else_an_error() {
        match read(r#"{"success": true, "output": {"sum": 3}, "error": null}"#) {
            Ok(output) => assert_eq!(output, serde_json::json!({ "sum": 3 })),
            other => panic!("{other:?}"),
        }
        for (text, code, message) in [
            (
                r#"{"success": false, "error": {"type": "math", "message": "by zero"}}"#,
                "amplifier:math",
                "by zero",
            ),
            (
                r#"{"success": false, "error": {"type": "Value Error", "message": "no"}}"#,
                "amplifier:value_error",
                "no",
            ),
            (
                r#"{"success": false, "error": {"message": "no"}}"#,
                "amplifier:failed",
                "no",
            ),
            (
                r#"{"success": false}"#,
                "amplifier:failed",
                "the tool failed and did not say why",
            ),
        ] {
            let error = read(text).expect_err(text);
            assert_eq!(
                (error.code.as_str(), error.message.as_str()),
                (code, message)
            );
        }
        for text in ["", "[]", "{}", r#"{"success": 1}"#, "{\"success\": true} x"] {
            assert_eq!(read(text).expect_err(text).code, "component:result");
        }
    }

    #[cfg(feature = "import")]
    #[test]
    fn of_amplifiers_modules_only_tools_can_be_used() {
        use toolward_bundle::component::{MadeFor, Surface, Usability};

        WORLD.register().unwrap();
        let exports = |name: &str| {
            let text = format!("(component (instance $i) (export \"{name}\" (instance $i)))");
            let wasm = wat::parse_str(text).unwrap();
            let surface = Surface::read(&wasm).unwrap();
            assert_eq!(MadeFor::of(&surface), MadeFor::Foreign(&WORLD));
            assert!(matches!(
                Usability::of(&wasm, &surface),
                Usability::Unusable(_)
            ));
        };
        exports("amplifier:modules/hook-handler@1.0.0");
        exports("amplifier:modules/tool@1.0.0");
    }
}
