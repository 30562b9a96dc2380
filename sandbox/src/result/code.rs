//! Error codes and classes. A code is from AIP-14 if AIP-14 has a code for the error, and otherwise
//! `toolward:…`. Classes are from Agent Tool 0.2.0.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use toolward_support::report::{Code, codes};

codes! {
    /// Codes of calls whose driver is a component of another world.
    pub enum WorldErrorCode {
        WitError = "wit:error",
            "the function of a component returned `err`; a text is the message, anything else the cause";
        Input = "component:input", "the input matches the contract, but is not a value of the parameter's type";
        NotUtf8 = "component:not-utf8", "with `bytes: utf8`, the result has bytes that are not UTF-8";
    }
}

/// A stable error code.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ErrorCode(Cow<'static, str>);

impl ErrorCode {
    codes! {
        pub const Self;

        INPUT_INVALID = "input_invalid",
            "Input or context does not match its schema, is too large or too deep.";
        INPUT_UNSUPPORTED = "input_unsupported",
            "The driver drops an input of the call (`drop_inputs`) or can't map it, and no other driver takes it.";
        INPUT_UNAVAILABLE = "input_unavailable",
            "The driver asked a question that this caller can't answer.";
        INPUT_REQUIRED = "toolward:input_required",
            "The driver asks questions that the caller can have answered: call again with the answers.";
        RESUME_REFUSED = "toolward:resume_refused",
            "The answers do not belong to this call's questions, or its driver has changed.";
        NOT_FOUND = "not_found", "No such tool.";
        SCHEMA_NOT_LOADED = "toolward:schema_not_loaded",
            "A deferred tool was called before its schema was loaded.";
        UNAUTHORISED = "unauthorised", "Policy denies, or a declared capability is not granted.";
        ADDRESS_NOT_GRANTED = "toolward:address_not_granted",
            "A granted host has an address that is not globally reachable, and the grant does not name it.";
        CAP_DENIED = "cap_denied",
            "The tool is an entry of tools.json, and a grant or the value of a secret is missing.";
        APPROVAL_DENIED = "toolward:approval_denied", "A person denied approval, or no one could be asked.";
        APPROVAL_PAUSED = "toolward:approval_paused",
            "A person denied this tool a moment ago, and is not asked again yet.";
        APPROVAL_PENDING = "toolward:approval_pending",
            "A person is being asked: call again when there is an answer.";
        AUTH_REQUIRED = "auth_required", "A granted secret has no value.";
        SANDBOX_VIOLATION = "toolward:sandbox_violation",
            "Policy ended the call at its first violation.";
        WITHDRAWN = "toolward:withdrawn",
            "The tool's bundle, or its driver's, is no longer served: revoked, expired, not trusted, or withdrawn.";
        HELD = "toolward:held",
            "The tool's bundle is not loaded until the operator accepts what changed in it.";
        TIMEOUT = "timeout", "The deadline passed.";
        FUEL_EXHAUSTED = "toolward:fuel_exhausted", "The fuel was spent.";
        MEMORY_EXCEEDED = "toolward:memory_exceeded", "The memory limit was reached.";
        RESULT_TOO_LARGE = "toolward:result_too_large", "The result is larger than allowed.";
        LIMIT_EXCEEDED = "toolward:limit_exceeded", "Another limit was reached.";
        RATE_LIMITED = "rate_limited", "The queue is full.";
        UPSTREAM_ERROR = "upstream_error",
            "The driver trapped, or returned what its contract does not allow.";
        NO_ROUTE = "no_route", "No driver serves this tool.";
        NO_ROUTE_IN_REGION = "no_route_in_region",
            "No driver serves this tool in the region that the policy asks for.";
        PINNED_PROVIDER_UNAVAILABLE = "pinned_provider_unavailable",
            "The driver that the caller pinned does not serve this tool.";
        UNRECORDED = "toolward:unrecorded",
            "The call would change something, and can't be recorded now; it was not made.";
        ALREADY_RUN = "toolward:already_run",
            "A call with this id was started before, and its reply is not kept; it was not made again.";
        CANCELED = "toolward:canceled",
            "The caller cancelled the call or disconnected.";
        INTERNAL = "internal", "A fault of the host's own.";
    }

    const fn of(row: Code) -> Self {
        Self(Cow::Borrowed(row.code))
    }
}

impl ErrorCode {
    /// The code as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The code in events, log lines and metrics: a code from the host's table, or `driver` for any
    /// other code. So the number of values is bounded.
    pub fn known(&self) -> &'static str {
        let own = Self::CODES.iter().find(|row| row.code == self.as_str());
        own.map_or("driver", |row| row.code)
    }

    /// The host's own code with this text; `None` for any other text.
    pub fn of_host(code: &str) -> Option<Self> {
        let mut rows = Self::CODES.iter();
        rows.find(|row| row.code == code).map(|row| Self::of(*row))
    }

    /// The advice about this code for a caller, who may be an agent or a person without access to
    /// the host: ask the operator. Commands and files are named only to operators.
    pub fn ask_the_operator(&self, to: &str) -> String {
        format!("ask the operator of this host to {to} (code `{self}`)")
    }

    /// A driver's code. `None` if it does not have the form that the world requires, or has the
    /// prefix `toolward`. A driver may use the codes of AIP-14 that the host also uses, such as
    /// `timeout`.
    pub fn from_driver(code: &str) -> Option<Self> {
        let (head, tail) = match code.split_once(':') {
            Some((head, tail)) => (head, Some(tail)),
            None => (code, None),
        };
        let lower = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let good = code.len() <= 128
            && head.starts_with(|c: char| c.is_ascii_lowercase())
            && head.chars().all(lower)
            && head != "toolward"
            && tail.is_none_or(|tail| {
                !tail.is_empty() && tail.chars().all(|c| lower(c) || c == '.' || c == '-')
            });
        good.then(|| Self(Cow::Owned(code.to_owned())))
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The error class of Agent Tool 0.2.0 ("Errors").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorClass {
    /// No such tool for this caller.
    UnknownTool,
    /// The arguments are well-formed, but this driver does not accept them.
    InvalidArguments,
    /// A value does not match its schema.
    SchemaValidationFailed,
    /// The caller has not seen the schema yet.
    SchemaNotLoaded,
    /// Policy denies.
    PermissionDenied,
    /// Policy denies this tool, or this request.
    PolicyBlocked,
    /// A hook of the service behind a driver stopped the work.
    HookBlocked,
    /// Policy ended the call at its first violation.
    SandboxViolation,
    /// A declared capability is not granted.
    CapabilityGap,
    /// A person denied approval, or no one could be asked.
    ApprovalRejected,
    /// Something must be set up first.
    SetupRequired,
    /// A credential has no value.
    CredentialMissing,
    /// The deadline passed.
    Timeout,
    /// The caller cancelled the call or disconnected.
    Canceled,
    /// Too many calls.
    RateLimited,
    /// A dependency of the tool is missing.
    DependencyUnavailable,
    /// Running the tool failed.
    ExecutionFailed,
    /// Only a part of the request was done.
    PartialFailure,
    /// The result is too large.
    ResultTooLarge,
    /// Nothing is left of the result once confidential parts are taken out.
    ResultRedacted,
    /// The call was cancelled because parallel work failed.
    SiblingCanceled,
    /// Streamed output was dropped, because the service started over.
    StreamingFallbackDiscarded,
}

impl ErrorClass {
    /// The class of a driver's code, and of the host's own errors unless they set another class.
    pub fn of_code(code: &str) -> Self {
        match code {
            "input_invalid" => Self::SchemaValidationFailed,
            "input_unsupported" => Self::InvalidArguments,
            "input_unavailable" => Self::SetupRequired,
            "unauthorised" | "toolward:address_not_granted" => Self::PermissionDenied,
            "auth_required" => Self::CredentialMissing,
            "rate_limited" => Self::RateLimited,
            "timeout" => Self::Timeout,
            "canceled" => Self::Canceled,
            "result_too_large" => Self::ResultTooLarge,
            // Only drivers report these codes. This host has no hooks, streams no results, and
            // makes calls one by one.
            "hook_blocked" => Self::HookBlocked,
            "partial_failure" => Self::PartialFailure,
            "result_redacted" => Self::ResultRedacted,
            "sibling_canceled" => Self::SiblingCanceled,
            "streaming_fallback_discarded" => Self::StreamingFallbackDiscarded,
            "dependency_unavailable" => Self::DependencyUnavailable,
            "no_route" | "no_route_in_region" | "pinned_provider_unavailable" => {
                Self::DependencyUnavailable
            }
            // `not_found` is included, since from a driver it refers to a thing, not the tool.
            _ => Self::ExecutionFailed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_codes_of_the_host_are_named() {
        assert_eq!(ErrorCode::TIMEOUT.known(), "timeout");
        let made_up = ErrorCode::from_driver("stripe:card_4242").expect("a driver's code");
        assert_eq!(made_up.known(), "driver");
    }

    #[test]
    fn a_driver_may_use_plain_and_domain_codes() {
        for code in ["not_found", "stripe:card_declined", "a1:x.y-z"] {
            assert!(ErrorCode::from_driver(code).is_some(), "{code}");
        }
    }

    #[test]
    fn a_driver_names_the_classes_of_its_own_work() {
        for class in [
            "canceled",
            "result_too_large",
            "hook_blocked",
            "partial_failure",
            "result_redacted",
            "sibling_canceled",
            "streaming_fallback_discarded",
            "dependency_unavailable",
        ] {
            let found = serde_json::to_value(ErrorClass::of_code(class));
            assert_eq!(found.unwrap(), class);
        }
        // A driver can't claim this host's own decisions.
        for code in ["policy_blocked", "capability_gap", "approval_rejected"] {
            let found = ErrorClass::of_code(code);
            assert_eq!(found, ErrorClass::ExecutionFailed, "{code}");
        }
    }

    #[test]
    fn a_driver_cannot_pass_for_the_host_or_break_the_form() {
        for code in [
            "toolward:fuel_exhausted",
            "toolward",
            "",
            ":x",
            "a:",
            "Not",
            "1a",
            "a b",
            "a:b:c",
        ] {
            assert!(ErrorCode::from_driver(code).is_none(), "{code}");
        }
    }
}
