//! Dispatch: runs an approved call under one deadline. It calls the driver, retries if contract and
//! error allow it, and turns to the next driver if policy allows it. Writes the result of each
//! attempt to the call's record.

mod admit;
mod attempts;
mod output;

use std::sync::{Arc, Mutex, PoisonError};

use toolward_sandbox::invocation::CallEnd;

use self::attempts::{Admitted, Attempts};
use crate::admission::Admission;
use crate::api::facts::CallFacts;
use crate::api::result::{CallError, Captured, ErrorCode, Output};
use crate::catalogue::DriverFacts;
use crate::elicitation::{Asked, CheckedQuestions, OpenForm, Spent};
use crate::imports::{CallTools, HostImports};
use crate::pipeline::approve::Approved;
use crate::pipeline::call_record::CallRecord;
use crate::pipeline::validate::RoutedCall;
use crate::redact::Redactor;
use crate::services::Services;
use crate::shared_state::Shared;

/// The parts of the host that dispatch needs.
pub(crate) struct DispatchContext<'a> {
    pub(crate) host: Arc<dyn CallTools>,
    pub(crate) services: &'a Arc<Services>,
    pub(crate) admission: &'a Admission,
    pub(crate) shared: &'a Shared,
}

/// How a call ended. The question of a driver of `kind: form` comes with its form, which stays open
/// if the caller gets the question.
pub(crate) type HostEnd = CallEnd<Output, (Box<Asked>, Option<OpenForm>)>;

/// Runs an approved call. Its deadline starts once it has a slot.
pub(crate) async fn dispatch(
    approved: Approved,
    host: DispatchContext<'_>,
    record: &mut CallRecord<'_>,
) -> HostEnd {
    let (mut call, covered) = approved.into_parts();
    let (mut admitted, mut imports) = (None, None);
    let mut started = Started::default();
    let end = 'drivers: loop {
        // A block instead of match arms, because the future would hold the values of the arms
        // twice.
        let failure = 'driver: {
            let parts = (&mut admitted, &mut imports);
            let begun = admit::begin((&mut call, &covered), &host, parts, record).await;
            let (mut attempts, admitted) = match begun {
                Ok(begun) => begun,
                Err(failure) => break 'driver failure,
            };
            let end = serve((&mut attempts, &*admitted), &call, &host, record).await;
            let remains = attempts.end(&mut call);
            match end {
                CallEnd::Done(output) => {
                    admitted.remains = Mutex::new(remains);
                    break 'drivers CallEnd::Done(output);
                }
                CallEnd::Asks(questions) => break 'drivers CallEnd::Asks(questions),
                CallEnd::Failed(failure) => failure,
            }
        };
        let is_late = admitted.as_ref().is_some_and(Admitted::is_late);
        let spent = |admitted: &Admitted| record.facts.fuel >= admitted.fuel;
        let spent = admitted.as_ref().is_some_and(spent);
        if !failure.is_drivers || is_late || !started.falls(&mut call, &failure, spent) {
            break CallEnd::Failed(failure.error);
        }
        record.failed(&failure.error.code);
        // If a driver's questions were refused, its form closes before another driver runs.
        while call.extensions.take::<OpenForm>().is_some() {}
        record.picked(&call.route);
        if let Some(admitted) = &mut admitted {
            admitted.earlier_fuel = record.facts.fuel;
        }
    };
    let (Some(imports), Some(admitted)) = (imports, &mut admitted) else {
        return match end {
            CallEnd::Failed(error) => CallEnd::Failed(error),
            _ => CallEnd::Failed(CallError::internal("a call ran that was not admitted")),
        };
    };
    record.violated(imports.violations.found());
    finish(&mut call, (&*imports, admitted), end, record).await
}

/// Makes attempts until an attempt ends the call, or no other attempt of this driver may follow.
/// The deadline covers all attempts, retries and pauses. It starts after the wait for the first
/// slot.
async fn serve(
    (attempts, admitted): (&mut Attempts, &Admitted),
    call: &RoutedCall,
    host: &DispatchContext<'_>,
    record: &mut CallRecord<'_>,
) -> CallEnd<Output, CheckedQuestions, DriverFailure> {
    let earlier = record.earlier_attempts();
    loop {
        record.starts(!attempts.executor.features().replays);
        let health = &call.route.health;
        let report = attempts.attempt(health, &record.facts, earlier).await;
        let (end, origin) = record.attempted(report);
        let error = match end {
            CallEnd::Failed(error) => error,
            end => match attempts.accept(end, host).await {
                CallEnd::Done((output, memory)) => {
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

/// Ends a call that ran: checks its questions, and redacts the secrets that it used.
async fn finish(
    call: &mut RoutedCall,
    (imports, admitted): (&HostImports, &mut Admitted),
    end: CallEnd<Output, CheckedQuestions>,
    record: &mut CallRecord<'_>,
) -> HostEnd {
    let redactor = imports.secrets.redactor();
    let mut result = match end {
        CallEnd::Done(output) => Ok(output),
        CallEnd::Failed(error) => Err(error),
        CallEnd::Asks(questions) => match questions.keep(redactor.as_deref()) {
            Ok(questions) => {
                if let Some(redactor) = redactor {
                    redactor.captured(&mut record.captured);
                }
                let form = call.extensions.take();
                let asked = asked(call, questions, admitted, &record.facts);
                return CallEnd::Asks((Box::new(asked), form));
            }
            Err(error) => Err(error),
        },
    };
    if let Some(redactor) = redactor {
        let captured = std::mem::take(&mut record.captured);
        let texts;
        // Boxed, so that the future of a call without secrets does not contain it.
        let redacting = Box::pin(redacted(redactor, result, captured));
        (result, record.captured, texts) = redacting.await;
        record.redacted(texts);
    }
    let remains = std::mem::take(&mut admitted.remains).into_inner();
    if let Some(remains) = remains.unwrap_or_else(PoisonError::into_inner) {
        // A task of the runtime drops the instance. The task keeps the call's slot until then,
        // since a slot stands for room in the engine's pool.
        let slot = admitted.slot.take();
        tokio::spawn(async move {
            drop(remains);
            drop(slot);
        });
    }
    result.into()
}

/// The state of a call that pauses with these questions.
fn asked(
    call: &RoutedCall,
    questions: CheckedQuestions,
    admitted: &Admitted,
    facts: &CallFacts,
) -> Asked {
    let (tool, driver) = (&call.tool, &call.route);
    Asked {
        invocation: facts.invocation.clone(),
        principal: call.scope.principal.to_string(),
        tool: tool.full_id.to_string(),
        tool_id: tool.major_id.to_string(),
        publisher: tool.publisher.to_string(),
        driver: driver.id.to_string(),
        driver_publisher: driver.publisher.to_string(),
        bundle: driver.bundle.to_string(),
        input: call.identity().input(),
        round: admitted.rounds.saturating_add(1),
        questions: questions.questions,
        state: questions.state,
        spent: Spent {
            fuel: facts.fuel,
            milliseconds: u64::try_from(admitted.clock.spent().as_millis()).unwrap_or(u64::MAX),
            attempts: facts.attempts,
        },
    }
}

/// Redacts secrets, on a blocking thread, since the result may be megabytes. Also returns in how
/// many texts of the result secrets were found.
async fn redacted(
    redactor: Arc<Redactor>,
    mut result: Result<Output, CallError>,
    mut captured: Captured,
) -> (Result<Output, CallError>, Captured, u64) {
    // The guest has ended: secrets found from now on are in the result.
    let before = redactor.found();
    let work = tokio::task::spawn_blocking(move || {
        match &mut result {
            Ok(output) => redactor.output(output),
            Err(error) => redactor.error(error),
        }
        let redacted = redactor.found().saturating_sub(before);
        redactor.captured(&mut captured);
        (result, captured, redacted)
    });
    // Fail closed: never show a result that was not redacted.
    work.await.unwrap_or_else(|error| {
        let error = CallError::internal(format!("the result can't be shown: {error}"));
        (Err(error), Captured::default(), 0)
    })
}

/// The error of a driver's last attempt, or the error that prevents any attempt.
struct DriverFailure {
    error: CallError,
    /// Whether anything of the call may have left the host, or the driver's code ran.
    dispatched: bool,
    /// Whether another driver may succeed. If not, the call itself is at fault, its limits are
    /// reached, or policy ended it.
    is_drivers: bool,
}

/// Codes (the part before the colon) which state that the driver or its service failed. Other
/// codes, such as `not_found`, are the driver's answer.
const OF_DRIVERS: &[&str] = &[
    "upstream_error",
    "rate_limited",
    "auth_required",
    "cap_denied",
    "dependency_unavailable",
];

/// Codes of limits that may be lower for one driver than for the whole call.
const OF_ATTEMPTS: &[ErrorCode] = &[
    ErrorCode::MEMORY_EXCEEDED,
    ErrorCode::RESULT_TOO_LARGE,
    ErrorCode::FUEL_EXHAUSTED,
    ErrorCode::TIMEOUT,
];

impl DriverFailure {
    /// The failure of a driver whose attempt ended with this error.
    fn of_driver(error: CallError, dispatched: bool) -> Self {
        let code = error.code.as_str();
        let kind = code.split_once(':').map_or(code, |(kind, _)| kind);
        let is_drivers =
            error.retryable || OF_DRIVERS.contains(&kind) || OF_ATTEMPTS.contains(&error.code);
        Self {
            error,
            dispatched,
            is_drivers,
        }
    }

    /// The failure of a driver that can't be used at all.
    fn before_attempts(error: CallError) -> Self {
        Self {
            error,
            dispatched: false,
            is_drivers: true,
        }
    }
}

/// Converts an error that ends the call for every driver.
impl From<CallError> for DriverFailure {
    fn from(error: CallError) -> Self {
        Self {
            error,
            dispatched: true,
            is_drivers: false,
        }
    }
}

/// The drivers that failed after something of the call may have left the host. Their effects stay
/// uncertain, even if a later driver succeeds.
#[derive(Default)]
struct Started {
    any: bool,
    changes: bool,
    /// Whether an effect that one of these drivers may have had must not be repeated.
    once: bool,
}

impl Started {
    fn add(&mut self, route: &DriverFacts) {
        self.any = true;
        self.changes |= route.changes;
        self.once |= !route.repeats;
    }

    /// Whether the next driver may serve the call. A change is not made twice, even if the contract
    /// is idempotent, since two services know nothing of each other. Only the operator can allow a
    /// repeated change.
    fn admits(&self, next: &DriverFacts) -> bool {
        let repeats = next.repeats && !self.once;
        !self.any || repeats || !(self.changes || next.changes)
    }

    /// Turns to the next driver that may serve the call after this failure. Returns false if no
    /// such driver exists. `spent` is true if the call's fuel is consumed.
    fn falls(&mut self, call: &mut RoutedCall, failure: &DriverFailure, spent: bool) -> bool {
        if failure.dispatched {
            self.add(&call.route);
        }
        let next = call.fall(|next| {
            let too_late = spent && next.features().uses_fuel;
            self.admits(next) && !too_late && next.withdrawal.withdrawn().is_none()
        });
        next.is_some()
    }
}
