//! Calls a handler without a host, in the tests of a driver's own crate: types
//! go through JSON as they do in a component. What it leaves out is the host:
//! schemas, limits, grants. `toolward test` runs the contract's examples with it.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::bindings::toolward::driver::types as wit;
use crate::{Call, Error, IntoOutcome, Reply, run};

/// One call with an empty context, as its first attempt.
///
/// ```
/// use toolward_guest::{testing, Call, Error};
///
/// fn double(call: Call<u32>) -> Result<u32, Error> {
///     call.input.checked_mul(2).ok_or_else(|| Error::new("input_invalid", "too large"))
/// }
///
/// let reply = testing::invoke(double, 21.into()).unwrap();
/// assert_eq!(reply.structured(), &serde_json::json!(42));
/// assert_eq!(testing::invoke(double, u32::MAX.into()).unwrap_err().code(), "input_invalid");
/// ```
///
/// # Errors
/// Those of the handler; `input_unavailable` where it asks, as there is nobody
/// to answer.
pub fn invoke<I, O, E>(
    handler: impl FnOnce(Call<I>) -> Result<O, E>,
    input: Value,
) -> Result<Reply<Value>, Error>
where
    I: DeserializeOwned,
    O: IntoOutcome,
    E: Into<Error>,
{
    let call = wit::Invocation {
        id: "00000000-0000-7000-8000-000000000000".to_owned(),
        tool: "test".to_owned(),
        tool_version: "0.0.0".to_owned(),
        input: input.to_string(),
        context: "{}".to_owned(),
        attempt: 1,
        remaining_ms: 30_000,
        idempotency_key: "test".to_owned(),
        resume: None,
    };
    match run(call, handler).map_err(Error::from_raw)? {
        wit::Outcome::Done(output) => Reply::from_raw(output),
        wit::Outcome::NeedsInput(_) => Err(Error::new(
            "input_unavailable",
            "the driver asks, and a test without a host can't answer",
        )),
    }
}
