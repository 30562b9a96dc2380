//! The three operations on a secret, and what they give.

use serde::Deserialize;
use serde_json::{Value, json};
use toolward_guest::bindings::toolward::driver::secrets::{self, SecretError};
use toolward_guest::bindings::toolward::driver::types::ToolError;

use crate::{failed, told};

#[derive(Deserialize)]
pub(crate) struct Secrets {
    op: String,
    slug: String,
    #[serde(default)]
    text: String,
}

pub(crate) fn code(error: SecretError) -> &'static str {
    match error {
        SecretError::Denied => "denied",
        SecretError::Missing => "missing",
        SecretError::Failed => "failed",
    }
}

pub(crate) fn act(secret: &Secrets) -> Result<Value, ToolError> {
    let result = match secret.op.as_str() {
        "placeholder" => secrets::placeholder(&secret.slug).map(Value::from),
        "reveal" => {
            secrets::reveal(&secret.slug).map(|bytes| json!(String::from_utf8_lossy(&bytes)))
        }
        "store" => secrets::store(&secret.slug, secret.text.as_bytes()).map(|()| json!(true)),
        other => {
            return Err(failed(
                "input_invalid",
                format!("secrets have no operation {other}"),
            ));
        }
    };
    Ok(told(result.map_err(code)))
}
