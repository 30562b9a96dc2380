//! The world `amplifier-tool`: `amplifier:modules/tool@1.0.0`, whose `execute` takes and returns
//! JSON as bytes.

use serde_json::Value;
use toolward_bundle::component::AMPLIFIER_EXECUTE;
use toolward_contract::json::{JsonError, JsonErrorKind, parse_within};
use wasmtime::component::{ComponentExportIndex, InstancePre};
use wasmtime::{Engine, Result, Store};

use crate::invocation::{DriverEnd, DriverError, DriverOutput, Invocation};
use crate::limits::CallLimits;
use crate::result::WorldErrorCode;
use crate::state::State;
use crate::wit;

/// A tool of Amplifier.
pub(crate) struct Tool {
    component: InstancePre<State>,
    execute: ComponentExportIndex,
}

impl Tool {
    /// `None` if the component exports no such tool.
    pub(crate) fn new(component: InstancePre<State>) -> Option<Self> {
        let execute = wit::export(&component, AMPLIFIER_EXECUTE)?;
        Some(Self { component, execute })
    }
}

/// A call of a tool of Amplifier.
pub(crate) struct ToolCall<'a> {
    tool: &'a Tool,
    input: &'a str,
}

impl<'a> ToolCall<'a> {
    pub(crate) fn new(tool: &'a Tool, invocation: &'a Invocation) -> Self {
        Self {
            tool,
            input: &invocation.input,
        }
    }

    pub(crate) async fn execute(
        &self,
        store: &mut Store<State>,
        limits: &CallLimits,
    ) -> Result<DriverEnd> {
        let Tool { component, execute } = self.tool;
        let instance = component.instantiate_async(&mut *store).await?;
        let function = instance
            .get_typed_func::<(&[u8],), (Result<Vec<u8>, String>,)>(&mut *store, execute)?;
        let (returned,) = function
            .call_async(&mut *store, (self.input.as_bytes(),))
            .await?;
        let result = match returned {
            Ok(bytes) => {
                let limiter = &mut store.data_mut().limiter;
                limiter.held.keep(bytes.len() as u64);
                limiter.settle()?;
                let mut left = limiter.memory_left();
                match parse_within(&bytes, &limits.json, &mut left) {
                    Err(error) if error.kind == JsonErrorKind::TooMuchMemory => {
                        return Err(wit::no_memory(store));
                    }
                    read => result(read),
                }
            }
            Err(message) => Err(error(WorldErrorCode::AmplifierError.code(), message, None)),
        };
        Ok(result.into())
    }

    pub(crate) fn engine(&self) -> &Engine {
        self.tool.component.engine()
    }
}

fn error(code: &str, message: String, cause: Option<String>) -> DriverError {
    DriverError {
        code: code.to_owned(),
        message,
        retryable: false,
        retry_after_ms: None,
        cause,
    }
}

/// An Amplifier `ToolResult`: `{"success": …, "output": …, "error": …}`.
fn result(read: Result<Value, JsonError>) -> Result<DriverOutput, DriverError> {
    let invalid = |why: String| {
        let message = format!("what the tool returned is no result of Amplifier: {why}");
        error(WorldErrorCode::Result.code(), message, None)
    };
    let value = read.map_err(|error| invalid(error.to_string()))?;
    match value.get("success").and_then(Value::as_bool) {
        Some(true) => {
            let output = value.get("output").unwrap_or(&Value::Null);
            Ok(DriverOutput::new(output.to_string()))
        }
        Some(false) => {
            let found = value.get("error").unwrap_or(&Value::Null);
            let text = |key: &str| found.get(key).and_then(Value::as_str);
            let code = match text("type").filter(|kind| !kind.is_empty()) {
                Some(kind) => wit::own_code("amplifier", kind),
                None => WorldErrorCode::AmplifierFailed.code().to_owned(),
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
    use super::*;

    fn read(text: &str) -> Result<DriverOutput, DriverError> {
        let limits = toolward_contract::json::Limits::default();
        result(parse_within(text.as_bytes(), &limits, &mut (1 << 20)))
    }

    #[test]
    fn success_is_the_output_and_all_else_an_error() {
        match read(r#"{"success": true, "output": {"sum": 3}, "error": null}"#) {
            Ok(output) => assert_eq!(output.structured, r#"{"sum":3}"#),
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
}
