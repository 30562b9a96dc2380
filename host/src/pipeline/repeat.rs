//! The stage of calls that repeat an id ([`crate::named`]): the first one goes on to `dispatch`, others get its
//! reply.

use crate::api::result::{CallError, Output};
use crate::named::{Entered, NamedCalls, already_run};
use crate::pipeline::call_record::CallRecord;
use crate::pipeline::validate::RoutedCall;

/// Takes in an approved call. `None` if it is to be dispatched, which all calls without an id are.
///
/// # Errors
/// If the id ran and its reply is not there, or it was given with another input.
pub(crate) async fn enter(
    call: &RoutedCall,
    calls: &NamedCalls,
    record: &mut CallRecord<'_>,
) -> Result<Option<Output>, CallError> {
    let Some(name) = &call.name else {
        return Ok(None);
    };
    match calls.enter(name, call.timeout).await? {
        Entered::Runs(running) => {
            record.named(running, &call.route);
            record.may_run().await.map(|()| None)
        }
        Entered::Repeats(kept) => {
            record.repeats(kept.source);
            kept.result.map(Some)
        }
        Entered::Ran => Err(already_run()),
    }
}
