//! The strict rules for messages of clients ([`toolward_contract::json`]), checked on the text of a
//! message. The library that parses messages silently takes the last of two equal keys and rounds
//! large integers. After that, neither can be detected.

use rmcp::model::{ErrorCode, ErrorData, RequestId};
use serde::de::{Deserializer, Error};
use serde_json::{Map, Value, json};
use toolward_contract::json::{Breach, JsonErrorKind, JsonRules, inspect, read_part};
use toolward_host::CallError;

/// The member with the arguments of a tool or a prompt.
const ARGUMENTS: &str = "arguments";

/// The rules for arguments, which are passed on.
const PASSED_ON: JsonRules<'_> = JsonRules::Strict(ARGUMENTS);

/// The rules for a message. The strictest rules apply to the parts that are passed on: arguments,
/// the answers that come with a call, and `result`, the answer to a question of the server.
/// Elsewhere a large integer is allowed, since it can only be an id, which is returned unchanged.
const MESSAGE: JsonRules<'_> = JsonRules::Members(&[
    (
        "params",
        JsonRules::Members(&[
            (ARGUMENTS, PASSED_ON),
            ("inputResponses", JsonRules::Strict("inputResponses")),
            ("argument", JsonRules::Strict("argument")),
            ("context", JsonRules::Strict("context")),
        ]),
    ),
    ("result", JsonRules::Strict("result")),
]);

/// Reads the id of a request by the rules.
pub(crate) fn id<'de, D: Deserializer<'de>>(reader: D) -> Result<RequestId, D::Error> {
    let id = read_part(reader, &JsonRules::Keys)?;
    serde_json::from_value(id).map_err(D::Error::custom)
}

/// The members of an object, if there is one.
type Members = Option<Map<String, Value>>;

/// Reads the arguments of a call by the rules.
pub(crate) fn arguments<'de, D: Deserializer<'de>>(reader: D) -> Result<Members, D::Error> {
    object(read_part(reader, &PASSED_ON)?)
}

/// Reads the metadata of a message by the rules.
pub(crate) fn metadata<'de, D: Deserializer<'de>>(reader: D) -> Result<Members, D::Error> {
    object(read_part(reader, &JsonRules::Keys)?)
}

fn object<E: Error>(value: Value) -> Result<Members, E> {
    match value {
        Value::Null => Ok(None),
        Value::Object(members) => Ok(Some(members)),
        _ => Err(E::custom("expected an object")),
    }
}

/// Why a message is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Malformed(Breach);

/// Checks a message against the rules. Returns whether it is JSON. If not, parsing the message
/// reports the error in more detail.
pub(crate) fn check(message: &[u8]) -> Result<bool, Malformed> {
    match inspect(message, &MESSAGE) {
        Ok(()) => Ok(true),
        Err(breach) if breach.error.kind == JsonErrorKind::Syntax => Ok(false),
        Err(breach) => Err(Malformed(breach)),
    }
}

impl Malformed {
    /// Whether the fault is in the arguments. A tool call then ends with an error result, as for
    /// any invalid input.
    pub(crate) fn is_about_arguments(&self) -> bool {
        self.0.part == Some(ARGUMENTS)
    }

    /// The error for a tool call: the same as for this text on the command line.
    pub(crate) fn of_call(&self) -> CallError {
        CallError::malformed_input(&self.0.error)
    }

    /// The stable code.
    pub(crate) fn code(&self) -> &'static str {
        self.0.error.code()
    }

    /// Describes what was expected and found.
    pub(crate) fn message(&self) -> String {
        self.0.error.to_string()
    }

    /// The protocol error for all other messages.
    pub(crate) fn of_message(&self) -> ErrorData {
        let number = match self.0.part {
            Some(_) => ErrorCode::INVALID_PARAMS,
            None => ErrorCode::INVALID_REQUEST,
        };
        ErrorData::new(number, self.message(), Some(json!({ "code": self.code() })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(message: &str) -> Option<(&'static str, bool)> {
        let malformed = check(message.as_bytes()).err()?;
        Some((malformed.code(), malformed.is_about_arguments()))
    }

    #[test]
    fn arguments_are_held_to_all_rules_at_every_level() {
        for (arguments, expected) in [
            (r#"{"a":1,"a":2}"#, "json-duplicate-key"),
            (r#"{"a":1,"\u0061":2}"#, "json-duplicate-key"),
            (r#"{"a":[{"b":{"c":1,"c":1}}]}"#, "json-duplicate-key"),
            (r#"{"a":9007199254740992}"#, "json-integer-range"),
            (r#"{"a":[[-9007199254740992]]}"#, "json-integer-range"),
            (
                r#"{"a":{"$serde_json::private::RawValue":"{\"b\":1}"}}"#,
                "json-reserved-key",
            ),
        ] {
            let message = format!(
                r#"{{"id":1,"method":"tools/call","params":{{"name":"x","arguments":{arguments}}}}}"#
            );
            assert_eq!(code(&message), Some((expected, true)), "{message}");
        }
        let beyond = r#"{"id":1,"params":{"arguments":{"a":99999999999999999999}}}"#;
        assert_eq!(code(beyond), Some(("json-integer-range", true)));
    }

    #[test]
    fn two_readers_can_not_take_a_message_for_two_different_ones() {
        for message in [
            r#"{"id":1,"method":"tools/call","params":{"name":"a","name":"b"}}"#,
            r#"{"id":1,"params":{"arguments":{}},"params":{}}"#,
            r#"{"id":1,"params":{"arguments":{},"argument\u0073":{}}}"#,
            r#"{"id":1,"params":{"_meta":{"x":{"y":1,"y":2}}}}"#,
        ] {
            assert_eq!(
                code(message),
                Some(("json-duplicate-key", false)),
                "{message}"
            );
        }
    }

    #[test]
    fn answers_are_held_to_all_rules_and_ids_may_be_large() {
        let integer = Some(("json-integer-range", false));
        for message in [
            r#"{"id":1,"result":{"content":{"n":9007199254740993}}}"#,
            r#"{"id":1,"params":{"inputResponses":{"q":{"content":{"n":9007199254740993}}}}}"#,
        ] {
            assert_eq!(code(message), integer, "{message}");
        }
        let large = r#"{"id":9007199254740993,"method":"tools/call","params":{"_meta":
            {"progressToken":9007199254740993},"arguments":{"n":9007199254740991,"x":1e300}}}"#;
        assert_eq!(code(large), None);
    }

    #[test]
    fn what_is_no_json_is_left_to_who_parses_it() {
        for text in ["", "{", "nonsense", "{\"a\":1,}", "{} {}", "\u{feff}{}"] {
            assert_eq!(code(text), None, "{text}");
        }
    }
}
