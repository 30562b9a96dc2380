//! The methods of the server, and requests whose parameters have a form that the protocol does not
//! allow. Some clients send an empty list for an empty object, which is accepted. Any other wrong
//! form gets an error that names the place. The protocol library would answer that the method does
//! not exist, and clients then stop using the method.

use std::fmt;

use rmcp::model::{CallToolRequestParams, CustomRequest, ErrorData};
use serde_json::{Value, json};
use toolward_host::{CallError, ErrorClass, ErrorCode};

use crate::messages::{self, LARGE, MessageSize, SMALL};
use crate::strict;

/// What a member of the parameters must be.
#[derive(Clone, Copy)]
pub(crate) enum Expected {
    Text,
    Object,
    /// One of these texts.
    OneOf(&'static str),
}

/// A member of parameters: its JSON pointer, what it must be, and whether it is required.
type Member = (&'static str, Expected, bool);

const CURSOR: &[Member] = &[("/cursor", Expected::Text, false)];
const URI: &[Member] = &[("/uri", Expected::Text, true)];
const NAMED: &[Member] = &[
    ("/name", Expected::Text, true),
    ("/arguments", Expected::Object, false),
    ("/inputResponses", Expected::Object, false),
    ("/requestState", Expected::Text, false),
];
const LEVEL: &[Member] = &[("/level", Expected::OneOf(LEVELS), true)];
const LEVELS: &str = "debug, info, notice, warning, error, critical, alert, emergency";
const COMPLETED: &[Member] = &[
    ("/ref", Expected::Object, true),
    (
        "/ref/type",
        Expected::OneOf("ref/prompt, ref/resource"),
        true,
    ),
    ("/ref/name", Expected::Text, false),
    ("/ref/uri", Expected::Text, false),
    ("/argument", Expected::Object, true),
    ("/argument/name", Expected::Text, true),
    ("/argument/value", Expected::Text, true),
    ("/context", Expected::Object, false),
];
const NOTIFICATIONS: &[Member] = &[("/notifications", Expected::Object, true)];

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A call of a tool.
    Call,
    /// The start of a session.
    Initialize,
    /// Another request that is answered when its work is done.
    Request,
    /// A request whose answer is a stream without end.
    Listen,
    /// An answer, a notification or a cancellation.
    Other,
    /// A list of messages.
    Batch,
}

/// When the server has a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Served {
    Always,
    /// In the session era only: revision 2026-07-28 has removed the method (SEP-2575).
    InSessions,
    Never,
}

/// A method: the kind of its requests, the limits of their messages, when the server has the
/// method, and the members of its parameters that the server reads.
type Method = (Kind, MessageSize, Served, &'static [Member]);

/// Returns the facts about a method.
pub(crate) fn named(method: &[u8]) -> Method {
    use Served::{Always, InSessions};
    match method {
        b"tools/call" => (Kind::Call, LARGE, Always, NAMED),
        b"prompts/get" => (Kind::Request, SMALL, Always, NAMED),
        b"resources/read" => (Kind::Request, SMALL, Always, URI),
        b"resources/subscribe" => (Kind::Request, SMALL, InSessions, URI),
        b"resources/unsubscribe" => (Kind::Request, SMALL, InSessions, URI),
        b"logging/setLevel" => (Kind::Request, SMALL, InSessions, LEVEL),
        b"completion/complete" => (Kind::Request, SMALL, Always, COMPLETED),
        b"tools/list" => (Kind::Request, SMALL, Always, CURSOR),
        b"prompts/list" => (Kind::Request, SMALL, Always, CURSOR),
        b"resources/list" => (Kind::Request, SMALL, Always, CURSOR),
        b"resources/templates/list" => (Kind::Request, SMALL, Always, CURSOR),
        b"subscriptions/listen" => (Kind::Listen, SMALL, Always, NOTIFICATIONS),
        b"initialize" => (Kind::Initialize, SMALL, InSessions, &[]),
        b"server/discover" => (Kind::Request, SMALL, Always, &[]),
        b"ping" => (Kind::Request, SMALL, Always, &[]),
        _ => (Kind::Request, SMALL, Served::Never, &[]),
    }
}

impl Expected {
    fn takes(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Object => value.is_object(),
            Self::OneOf(texts) => value
                .as_str()
                .is_some_and(|text| texts.split(", ").any(|one| one == text)),
        }
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => f.write_str("a string"),
            Self::Object => f.write_str("an object"),
            Self::OneOf(texts) => write!(f, "one of {texts}"),
        }
    }
}

/// The stable code of a request whose parameters have the wrong form.
pub(crate) const PARAMS_INVALID: &str = "params-invalid";

/// Replaces an empty list by `{}` if it is the message's parameters, or the arguments of a tool or
/// prompt. Returns `None` if the message has no such list.
///
/// # Errors
///
/// If the parameters or their `_meta` are not an object. A message that is not JSON is no error
/// here: parsing it reports the error.
pub(crate) fn mended(message: &[u8]) -> Result<Option<Vec<u8>>, ErrorData> {
    let params = messages::scan(message).member("params");
    let inner = messages::scan(params.unwrap_or_default());
    let not_an_object = |path| match strict::check(message) {
        Ok(false) => Ok(None),
        _ => Err(invalid(format!("expected an object at `{path}`"), path)),
    };
    let path = if is_empty_list(params) {
        "/params"
    } else if !may_be_object(params) {
        return not_an_object("/params");
    } else if !may_be_object(inner.member("_meta")) {
        return not_an_object("/params/_meta");
    } else if is_empty_list(inner.member("arguments")) {
        "/params/arguments"
    } else {
        return Ok(None);
    };
    let Ok(mut value) = serde_json::from_slice::<Value>(message) else {
        return Ok(None);
    };
    if let Some(place) = value.pointer_mut(path) {
        *place = json!({});
    }
    Ok(Some(value.to_string().into_bytes()))
}

fn may_be_object(value: Option<&[u8]>) -> bool {
    matches!(value, None | Some(b"null" | [b'{', ..]))
}

fn is_empty_list(value: Option<&[u8]>) -> bool {
    let list = value.filter(|value| messages::is_list(value));
    list.and_then(messages::items)
        .is_some_and(|items| items.is_empty())
}

/// The error of a tool call whose arguments are not an object. It is passed in the extensions of
/// the call.
#[derive(Debug, Clone)]
pub(crate) struct WrongArguments(pub(crate) CallError);

/// Interprets a request that the protocol library could not read. A tool call whose arguments are
/// not an object is returned, so that it ends with a result, which a model can read.
///
/// # Errors
///
/// The fault of any other request. If `stateless` is set, the methods that need a session are
/// unknown.
pub(crate) fn unreadable(
    request: CustomRequest,
    stateless: bool,
) -> Result<(CallToolRequestParams, WrongArguments), ErrorData> {
    let CustomRequest { method, params, .. } = request;
    let (kind, _, served, members) = named(method.as_bytes());
    if served == Served::Never || (stateless && served == Served::InSessions) {
        let number = rmcp::model::ErrorCode::METHOD_NOT_FOUND;
        return Err(ErrorData::new(number, method, None));
    }
    let mut params = params.unwrap_or_default();
    let wrong = members.iter().find_map(|&(path, expected, required)| {
        let value = params.pointer(path).filter(|value| !value.is_null());
        match value {
            Some(value) if expected.takes(value) => None,
            None if !required => None,
            value => Some((path, expected, found(value))),
        }
    });
    let Some((path, expected, found)) = wrong else {
        return Err(invalid(
            format!("the parameters do not have the form that `{method}` takes"),
            "/params",
        ));
    };
    let name = path.trim_start_matches('/').replace('/', ".");
    let message = format!("expected `{name}` to be {expected}, found {found}");
    if (kind, path) == (Kind::Call, "/arguments") {
        if let Some(members) = params.as_object_mut() {
            members.shift_remove("arguments");
        }
        if let Ok(call) = serde_json::from_value(params) {
            let hint = "send the arguments as one JSON object, not as text or as a list";
            let error = invalid_input(message, hint);
            let error = error.with_cause(json!({ "path": "/params/arguments" }));
            return Ok((call, WrongArguments(error)));
        }
    }
    Err(invalid(message, &format!("/params{path}")))
}

/// Returns the error for an input that does not match its schema.
pub(crate) fn invalid_input(message: impl Into<String>, hint: impl Into<String>) -> CallError {
    let class = ErrorClass::SchemaValidationFailed;
    CallError::new(ErrorCode::INPUT_INVALID, class, message).with_hint(hint)
}

fn invalid(message: String, path: &str) -> ErrorData {
    ErrorData::invalid_params(
        message,
        Some(json!({ "code": PARAMS_INVALID, "path": path })),
    )
}

fn found(value: Option<&Value>) -> &'static str {
    match value {
        None => "none",
        Some(Value::Null) => "null",
        Some(Value::Bool(_)) => "a boolean",
        Some(Value::Number(_)) => "a number",
        Some(Value::String(_)) => "a string",
        Some(Value::Array(_)) => "a list",
        Some(Value::Object(_)) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_is_an_empty_object_in_place_of_parameters_or_arguments() {
        let read = |message: Value| mended(message.to_string().as_bytes());
        for (sent, taken) in [
            (
                json!({"id": 1, "method": "tools/list", "params": []}),
                json!({"id": 1, "method": "tools/list", "params": {}}),
            ),
            (
                json!({"id": 1, "method": "tools/call", "params": {"name": "a", "arguments": []}}),
                json!({"id": 1, "method": "tools/call", "params": {"name": "a", "arguments": {}}}),
            ),
        ] {
            let mended = read(sent).unwrap().unwrap();
            assert_eq!(serde_json::from_slice::<Value>(&mended).unwrap(), taken);
        }
        for whole in [
            json!({"id": 1, "method": "ping"}),
            json!({"id": 1, "method": "a", "params": null}),
            json!({"id": 1, "method": "a", "params": {"arguments": {"a": []}, "other": []}}),
            json!({"id": 1, "method": "a", "params": {"arguments": [1]}}),
            json!([]),
        ] {
            assert_eq!(read(whole.clone()), Ok(None), "{whole}");
        }
        assert_eq!(mended(b"{\"params\":[]"), Ok(None));
    }

    #[test]
    fn parameters_that_are_not_an_object_are_named() {
        for (params, path) in [
            (json!([1]), "/params"),
            (json!("{}"), "/params"),
            (json!(5), "/params"),
            (json!({"_meta": 5}), "/params/_meta"),
            (json!({"_meta": []}), "/params/_meta"),
        ] {
            let message = json!({"id": 1, "method": "ping", "params": params}).to_string();
            let wrong = mended(message.as_bytes()).unwrap_err();
            assert_eq!(wrong.data.unwrap()["path"], path, "{message}");
        }
    }

    #[test]
    fn the_place_of_a_wrong_value_is_named() {
        for (method, params, path) in [
            ("tools/call", json!({"arguments": {}}), "/params/name"),
            ("tools/call", json!({"name": 5}), "/params/name"),
            ("resources/read", json!({"uri": 5}), "/params/uri"),
            (
                "logging/setLevel",
                json!({"level": "loud"}),
                "/params/level",
            ),
            (
                "prompts/get",
                json!({"name": "a", "arguments": "{}"}),
                "/params/arguments",
            ),
            (
                "completion/complete",
                json!({"ref": {"type": "ref/prompt", "name": "a"}, "argument": {"name": "b"}}),
                "/params/argument/value",
            ),
            ("tools/list", json!({"cursor": 1}), "/params/cursor"),
        ] {
            let request = CustomRequest::new(method, Some(params));
            let error = unreadable(request, false).unwrap_err();
            assert_eq!(error.code, rmcp::model::ErrorCode::INVALID_PARAMS);
            assert_eq!(error.data.unwrap()["path"], path, "{method}");
        }
        for (method, stateless) in [("tools/steal", false), ("logging/setLevel", true)] {
            let unknown = unreadable(CustomRequest::new(method, None), stateless);
            assert_eq!(
                unknown.unwrap_err().code,
                rmcp::model::ErrorCode::METHOD_NOT_FOUND
            );
        }
    }

    #[test]
    fn a_call_keeps_its_name_when_its_arguments_are_no_object() {
        let params = json!({"name": "a_b", "arguments": "{\"a\":1}"});
        let request = CustomRequest::new("tools/call", Some(params));
        let (call, wrong) = unreadable(request, false).unwrap();
        assert_eq!(call.name, "a_b");
        assert_eq!(wrong.0.code, ErrorCode::INPUT_INVALID);
        assert!(wrong.0.message.contains("`arguments`"), "{}", wrong.0);
    }
}
