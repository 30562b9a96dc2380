//! Dispatch: has an approved call carried out under one deadline: by its driver, once more if contract and error allow
//! a retry, and by the next driver if policy lets it. Writes what comes of each attempt to the call's record.

mod admit;
mod attempts;
mod failure;
mod finish;
mod output;

use toolward_sandbox::invocation::CallEnd;

pub(crate) use self::finish::HostEnd;

use std::sync::{Arc, Mutex};

use self::attempts::{Admitted, Attempts};
use self::failure::{DriverFailure, Started};
use self::output::Mapped;
use crate::admission::Admission;
use crate::api::result::{CallError, Output};
use crate::elicitation::{CheckedQuestions, OpenForm};
use crate::imports::CallTools;
use crate::named::NamedCalls;
use crate::pipeline::approve::Approved;
use crate::pipeline::call_record::CallRecord;
use crate::pipeline::validate::RoutedCall;
use crate::services::Services;
use crate::validation_pool::ValidationPool;

/// What a call is carried out with.
pub(crate) struct DispatchContext<'a> {
    pub(crate) host: Arc<dyn CallTools>,
    pub(crate) services: &'a Arc<Services>,
    pub(crate) admission: &'a Admission,
    pub(crate) validation: &'a ValidationPool,
    pub(crate) named: &'a NamedCalls,
}

/// Runs an approved call. Its deadline starts once it has a slot.
pub(crate) async fn dispatch(
    approved: Approved<RoutedCall>,
    host: DispatchContext<'_>,
    record: &mut CallRecord<'_>,
) -> HostEnd {
    let (mut call, covered) = approved.into_parts();
    let (mut admitted, mut imports) = (None, None);
    let mut started = Started::default();
    let end = loop {
        let state = (&mut admitted, &mut imports);
        let failure = match admit::ready((&mut call, &covered), &host, state, record).await {
            Err(failure) => failure,
            Ok((mut attempts, admitted)) => {
                let end = serve((&mut attempts, &*admitted), &call, &host, record).await;
                let remains = attempts.end(&mut call);
                match end {
                    CallEnd::Done(output) => {
                        admitted.remains = Mutex::new(remains);
                        break CallEnd::Done(output);
                    }
                    CallEnd::Asks(questions) => break CallEnd::Asks(questions),
                    CallEnd::Failed(failure) => failure,
                }
            }
        };
        let is_late = admitted.as_ref().is_some_and(Admitted::is_late);
        let spent = |admitted: &Admitted| record.facts.fuel >= admitted.fuel;
        let spent = admitted.as_ref().is_some_and(spent);
        if !failure.is_drivers || is_late || !started.falls(&mut call, &failure, spent) {
            break CallEnd::Failed(failure.error);
        }
        record.failed(&failure.error.code);
        // The form of a driver whose questions were refused is no other driver's.
        while call.extensions.take::<OpenForm>().is_some() {}
        record.picked(&call.route);
        if let Some(admitted) = &mut admitted {
            admitted.earlier_fuel = record.facts.fuel;
        }
    };
    let (Some(imports), Some(admitted)) = (imports, admitted) else {
        return match end {
            CallEnd::Failed(error) => CallEnd::Failed(error),
            _ => CallEnd::Failed(CallError::internal("a call ran that was not admitted")),
        };
    };
    record.violated(imports.violations.found());
    let captured = std::mem::take(&mut record.captured);
    let shown = finish::finish(
        &mut call,
        (&*imports, admitted),
        end,
        &record.facts,
        captured,
    )
    .await;
    record.captured = shown.captured;
    record.redacted(shown.redacted);
    shown.end
}

/// Makes attempts until one ends the call or the driver's part in it. The deadline covers everything, retries and
/// pauses included; waiting for the first slot comes before it.
async fn serve(
    (attempts, admitted): (&mut Attempts, &Admitted),
    call: &RoutedCall,
    host: &DispatchContext<'_>,
    record: &mut CallRecord<'_>,
) -> CallEnd<Output, CheckedQuestions, DriverFailure> {
    let earlier = record.earlier_attempts();
    loop {
        record.starts(!attempts.executor.features().replays);
        let health = &call.route.driver.health;
        let report = attempts.attempt(health, &record.facts, earlier).await;
        let (end, origin) = record.attempted(report);
        let error = match end {
            CallEnd::Failed(error) => error,
            end => match attempts.accept(end, host).await {
                CallEnd::Done(Mapped(output, memory)) => {
                    record.accepted(memory, origin);
                    return CallEnd::Done(output);
                }
                CallEnd::Asks(questions) => return CallEnd::Asks(questions),
                CallEnd::Failed(error) => {
                    record.attempt_failed(&error);
                    return CallEnd::Failed(attempts.failure(error));
                }
            },
        };
        if let Err(failure) = attempts.retry(call, admitted, error).await {
            return CallEnd::Failed(failure);
        }
    }
}
