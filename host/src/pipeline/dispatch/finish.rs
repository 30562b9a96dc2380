//! Finishes a call that ran: checks its questions, and redacts the secrets that it used.

use std::sync::{Arc, PoisonError};

use toolward_sandbox::invocation::CallEnd;

use super::attempts::Admitted;
use crate::api::facts::CallFacts;
use crate::api::result::{CallError, Captured, Output};
use crate::elicitation::{Asked, CallIdentity, CheckedQuestions, OpenForm, Spent};
use crate::imports::HostImports;
use crate::pipeline::validate::RoutedCall;
use crate::redact::Redactor;

/// How a call ended: with its questions, the form that stays open if the caller gets them.
pub(crate) type HostEnd = CallEnd<Output, (Box<Asked>, Option<OpenForm>)>;

/// What of a call can be shown.
pub(super) struct Shown {
    pub(super) end: HostEnd,
    pub(super) captured: Captured,
    /// In how many texts of the result bytes of secrets were found.
    pub(super) redacted: u64,
}

/// Ends a call that ran. `captured` is what its driver logged and printed.
pub(super) async fn finish(
    call: &mut RoutedCall,
    (imports, mut admitted): (&HostImports, Admitted),
    end: CallEnd<Output, CheckedQuestions>,
    facts: &CallFacts,
    captured: Captured,
) -> Shown {
    let redactor = imports.secrets.redactor();
    let result = match end {
        CallEnd::Done(output) => Ok(output),
        CallEnd::Failed(error) => Err(error),
        CallEnd::Asks(questions) => match questions.keep(redactor.as_deref()) {
            Ok(questions) => {
                return asks(call, questions, &admitted, facts, (captured, redactor));
            }
            Err(error) => Err(error),
        },
    };
    let shown = match redactor {
        Some(redactor) => redacted(redactor, result, captured).await,
        None => Shown {
            end: result.into(),
            captured,
            redacted: 0,
        },
    };
    let remains = std::mem::take(&mut admitted.remains).into_inner();
    if let Some(remains) = remains.unwrap_or_else(PoisonError::into_inner) {
        drop_later(remains, &admitted);
    }
    shown
}

/// Has a task of the runtime drop what is left of an attempt. It keeps the call's slot until then: a slot is room
/// in the engine's pool.
fn drop_later(remains: Box<dyn Send>, admitted: &Admitted) {
    let slot = admitted.slot.take();
    tokio::spawn(async move {
        drop(remains);
        drop(slot);
    });
}

/// The end of a call with these questions.
fn asks(
    call: &mut RoutedCall,
    questions: CheckedQuestions,
    admitted: &Admitted,
    facts: &CallFacts,
    (mut captured, redactor): (Captured, Option<Arc<Redactor>>),
) -> Shown {
    if let Some(redactor) = redactor {
        redactor.captured(&mut captured);
    }
    let form = call.extensions.take::<OpenForm>();
    let (tool, driver) = (&call.tool, &call.route.driver);
    let identity = CallIdentity {
        principal: &call.scope.principal,
        tool: &tool.full_id,
        publisher: &tool.publisher,
        driver: driver.driver.id.as_str(),
        bundle: &driver.bundle,
        input: &call.input,
        context: &call.context,
    };
    let asked = Asked {
        invocation: facts.invocation.clone(),
        principal: call.scope.principal.to_string(),
        tool: tool.full_id.to_string(),
        tool_id: tool.major_id.to_string(),
        publisher: tool.publisher.to_string(),
        driver: driver.driver.id.to_string(),
        driver_publisher: driver.publisher.to_string(),
        bundle: driver.bundle.to_string(),
        input: identity.input(),
        round: admitted.rounds.saturating_add(1),
        questions: questions.questions,
        state: questions.state,
        spent: Spent {
            fuel: facts.fuel,
            milliseconds: u64::try_from(admitted.clock.spent().as_millis()).unwrap_or(u64::MAX),
            attempts: facts.attempts,
        },
    };
    Shown {
        end: CallEnd::Asks((Box::new(asked), form)),
        captured,
        redacted: 0,
    }
}

/// Redacts secrets, on a blocking thread, since the result may be megabytes.
async fn redacted(
    redactor: Arc<Redactor>,
    mut result: Result<Output, CallError>,
    mut captured: Captured,
) -> Shown {
    // The guest has ended: what is found from here on is in the result.
    let before = redactor.found();
    let work = tokio::task::spawn_blocking(move || {
        match &mut result {
            Ok(output) => redactor.output(output),
            Err(error) => redactor.error(error),
        }
        let redacted = redactor.found().saturating_sub(before);
        redactor.captured(&mut captured);
        Shown {
            end: result.into(),
            captured,
            redacted,
        }
    });
    // Fail closed: show nothing that was not redacted.
    work.await.unwrap_or_else(|error| Shown {
        end: CallEnd::Failed(CallError::internal(format!(
            "the result can't be shown: {error}"
        ))),
        captured: Captured::default(),
        redacted: 0,
    })
}
