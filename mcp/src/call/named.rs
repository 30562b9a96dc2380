//! The id that a client gives a call, as an idempotency key: `_meta["toolward/id"]`.

use rmcp::model::JsonObject;
use serde_json::Value;
use toolward_host::{CallError, ErrorClass, ErrorCode, Request};

/// `_meta` of a call: its id.
const ID_META: &str = "toolward/id";

/// The request, with the id that its `_meta` has. On standard input and output it is bound to the `session`: all
/// clients there are the same principal.
///
/// # Errors
/// If the id is not a string.
pub(super) fn named(
    request: Request,
    meta: &JsonObject,
    session: Option<&str>,
) -> Result<Request, CallError> {
    match (meta.get(ID_META), session) {
        (None, _) => Ok(request),
        (Some(Value::String(id)), Some(session)) => Ok(request.named_within(id, session)),
        (Some(Value::String(id)), None) => Ok(request.named(id)),
        (Some(_), _) => Err(CallError::new(
            ErrorCode::INPUT_INVALID,
            ErrorClass::InvalidArguments,
            format!("expected `_meta[\"{ID_META}\"]` to be a UUIDv7, found another type"),
        )),
    }
}

/// The name of a new session.
pub(crate) fn new_session() -> String {
    let mut random = [0_u8; 16];
    // Without randomness, ids are known beyond their session.
    let _ = getrandom::fill(&mut random);
    format!("{:032x}", u128::from_ne_bytes(random))
}
