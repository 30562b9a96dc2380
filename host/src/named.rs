//! Ids that callers give their calls, as idempotency keys: a call of one id runs once for its principal and tool.
//!
//! An id replaces dispatch alone: a repeated call is resolved, validated, decided and approved like any other. Then
//! it gets the reply of the first one, which the state keeps for a while ([`NamedCalls`]); while that one runs,
//! it waits. The ledger, if there is one, knows ids longer than this process lives.

mod calls;
mod kept;
mod name;

pub(crate) use calls::{Entered, NamedCalls, RunningCall};
pub(crate) use kept::{KeptReply, ReplySource};
pub(crate) use name::{CallName, Named, NamedFacts};

use crate::api::result::{CallError, ErrorClass, ErrorCode};

/// A call with this id was started before, and its reply is not there.
pub(crate) fn already_run() -> CallError {
    CallError::new(
        ErrorCode::ALREADY_RUN,
        ErrorClass::ExecutionFailed,
        "a call with this id was started before, and its reply is not kept; it was not made again",
    )
    .with_hint(
        "find out what the first call did before you call again under another id: the operator's ledger has it, \
         where there is one",
    )
}

/// The id was given with another input.
pub(crate) fn other_input() -> CallError {
    CallError::new(
        ErrorCode::INPUT_INVALID,
        ErrorClass::InvalidArguments,
        "this id was given to a call with another input",
    )
    .with_hint("give each call an id of its own; repeat one only to repeat its call unchanged")
}
