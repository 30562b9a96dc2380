//! How failures become codes.

use serde_json::json;
use toolward_guest::bindings::toolward::driver::types::ToolError;
use toolward_guest::testing::invoke;
use toolward_guest::{Call, Code, Error};

#[derive(Debug)]
struct Outer(std::num::ParseIntError);

impl std::fmt::Display for Outer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("the count is wrong")
    }
}

impl std::error::Error for Outer {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

#[test]
fn any_error_becomes_upstream_error_with_its_sources_as_cause() {
    fn handler(call: Call<String>) -> Result<u32, Error> {
        Ok(call.input.parse::<u32>().map_err(Outer)?)
    }
    let error = ToolError::from(invoke(handler, json!("x")).unwrap_err());
    assert_eq!(error.code, "upstream_error");
    assert_eq!(error.message, "the count is wrong");
    assert_eq!(
        error.cause.as_deref(),
        Some(r#"["invalid digit found in string"]"#)
    );
    assert!(!error.retryable);
}

#[test]
fn a_handler_may_keep_its_own_error_type() {
    let handler = |call: Call<String>| call.input.parse::<u32>().map_err(Outer);
    assert_eq!(
        invoke(handler, json!("x")).unwrap_err().message(),
        "the count is wrong"
    );
}

#[test]
fn a_code_replaces_the_default_one() {
    let error = "x".parse::<u32>().code("count:invalid").unwrap_err();
    assert_eq!(
        (error.code(), error.message()),
        ("count:invalid", "invalid digit found in string")
    );
    assert_eq!(
        None::<u32>.code("count:missing").unwrap_err().code(),
        "count:missing"
    );
}

#[test]
fn retry_and_cause_reach_the_host() {
    let error = Error::new("rate_limited", "slow down")
        .retry_after_ms(1500)
        .cause(&json!({"status": 429}));
    let raw = ToolError::from(error);
    assert!(raw.retryable);
    assert_eq!(raw.retry_after_ms, Some(1500));
    assert_eq!(raw.cause.as_deref(), Some(r#"{"status":429}"#));

    let raw = ToolError::from(Error::new("upstream_error", "try again").retryable());
    assert!(raw.retryable);
    assert_eq!(raw.retry_after_ms, None);
}

#[test]
fn outside_a_host_nothing_is_granted() {
    use toolward_guest::{secrets, tools};
    assert_eq!(
        secrets::placeholder("key").unwrap_err().code(),
        "unauthorised"
    );
    assert_eq!(secrets::reveal("key").unwrap_err().code(), "unauthorised");
    assert_eq!(
        secrets::store("key", b"v").unwrap_err().code(),
        "unauthorised"
    );
    let error = tools::call::<u32>("other.tool", &json!({})).unwrap_err();
    assert_eq!(error.code(), "not_found");
}
