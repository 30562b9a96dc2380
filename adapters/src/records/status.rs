//! The state in which an invocation ended.

use serde::Serialize;
use toolward_host::{CallError, ErrorClass, ErrorCode, Origin, Reply};

/// The states in which an invocation can end; the events of a call have the states before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Status {
    /// It has an output.
    Succeeded,
    /// The driver asks, and the call can continue with answers.
    NeedsInput,
    /// The input does not match the contract's schema.
    SchemaParseFailed,
    /// The input matches the schema, and no driver takes it.
    ValidationFailed,
    /// A person is asked, and has not answered yet.
    AwaitingApproval,
    /// A person denied it, or could not be asked; or its caller may not call it.
    Denied,
    /// Policy blocks it, or something that it needs is missing.
    Blocked,
    /// The deadline passed.
    TimedOut,
    /// It was cancelled.
    Canceled,
    /// It failed in any other way.
    Failed,
}

impl Status {
    /// That of a call with this reply.
    #[must_use]
    pub fn of(reply: &Reply) -> Self {
        match &reply.result {
            Ok(_) => Self::Succeeded,
            Err(_) if reply.asked.is_some() => Self::NeedsInput,
            Err(error) => Self::of_error(error, reply.metadata.attempts > 0),
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::NeedsInput => "needs_input",
            Self::SchemaParseFailed => "schema_parse_failed",
            Self::ValidationFailed => "validation_failed",
            Self::AwaitingApproval => "awaiting_approval",
            Self::Denied => "denied",
            Self::Blocked => "blocked",
            Self::TimedOut => "timed_out",
            Self::Canceled => "canceled",
            Self::Failed => "failed",
        }
    }

    fn of_error(error: &CallError, ran: bool) -> Self {
        if error.origin == Origin::Driver {
            return Self::Failed;
        }
        match error.class {
            ErrorClass::SchemaValidationFailed => Self::SchemaParseFailed,
            ErrorClass::InvalidArguments => Self::ValidationFailed,
            ErrorClass::ApprovalRejected if error.code == ErrorCode::APPROVAL_PENDING => {
                Self::AwaitingApproval
            }
            ErrorClass::ApprovalRejected | ErrorClass::PermissionDenied => Self::Denied,
            ErrorClass::PolicyBlocked | ErrorClass::CapabilityGap => Self::Blocked,
            ErrorClass::SetupRequired
            | ErrorClass::CredentialMissing
            | ErrorClass::DependencyUnavailable
                if !ran =>
            {
                Self::Blocked
            }
            ErrorClass::Timeout => Self::TimedOut,
            ErrorClass::Canceled => Self::Canceled,
            _ => Self::Failed,
        }
    }
}
