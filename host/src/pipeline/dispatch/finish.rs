//! Finishes a call that ran: collects violations and questions, and redacts the secrets
//! that it used.

use std::sync::Arc;

use super::admit::Admitted;
use super::attempts::Finished;
use crate::api::result::{CallError, Output};
use crate::elicitation::{Asked, Facts, OpenForm, Questions, Spent};
use crate::imports::HostImports;
use crate::pipeline::call_record::CallRecord;
use crate::pipeline::validate::RoutedCall;
use crate::redact::Redactor;

/// How a call ended that did not fail.
pub(crate) enum Ended {
    /// With an output.
    Output(Output),
    /// With questions, and the form that stays open if the caller gets them.
    Asked(Box<Asked>, Option<OpenForm>),
}

/// Ends a call that ran.
pub(super) async fn finish(
    call: &RoutedCall,
    imports: &HostImports,
    admitted: &Admitted,
    result: Result<Finished, CallError>,
    record: &mut CallRecord<'_>,
) -> Result<Ended, CallError> {
    let found = imports.violations.found();
    record.metadata.violations = found.first;
    record.metadata.violations_total = found.total;
    record.violated(found.own);
    let redactor = imports.secrets.redactor();
    let mut remains = None;
    let result = match result {
        Ok(Finished::Done(output, dropped_later)) => {
            remains = dropped_later;
            Ok(output)
        }
        Err(error) => Err(error),
        Ok(Finished::Asks(questions)) => match questions.keep(redactor.as_deref()) {
            Ok(mut questions) => {
                let form = questions.form.take();
                if let Some(redactor) = redactor {
                    redactor.captured(&mut record.captured);
                }
                let milliseconds = admitted.clock.spent().as_millis();
                let spent = Spent {
                    fuel: record.metadata.fuel,
                    milliseconds: u64::try_from(milliseconds).unwrap_or(u64::MAX),
                    attempts: record.metadata.attempts,
                };
                let invocation = &record.metadata.invocation;
                let asked = asked(call, questions, admitted.rounds, spent, invocation);
                return Ok(Ended::Asked(Box::new(asked), form));
            }
            Err(error) => Err(error),
        },
    };
    let result = match redactor {
        Some(redactor) => redacted(redactor, result, record).await,
        None => result,
    };
    if let Some(remains) = remains {
        drop_later(remains, admitted);
    }
    result.map(Ended::Output)
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

fn asked(
    call: &RoutedCall,
    questions: Questions,
    rounds: u32,
    spent: Spent,
    invocation: &str,
) -> Asked {
    let facts = Facts {
        principal: &call.scope.principal,
        tool: &call.tool.full_id,
        publisher: &call.tool.publisher,
        driver: call.route.driver.driver.id.as_str(),
        bundle: &call.route.driver.bundle,
        input: &call.input,
        context: &call.context,
    };
    let driver = &call.route.driver;
    Asked {
        invocation: invocation.to_owned(),
        principal: call.scope.principal.clone(),
        tool: call.tool.full_id.to_string(),
        tool_id: call.tool.major_id.clone(),
        publisher: call.tool.publisher.to_string(),
        driver: driver.driver.id.to_string(),
        driver_publisher: driver.publisher.to_string(),
        bundle: driver.bundle.to_string(),
        input: facts.input(),
        round: rounds.saturating_add(1),
        questions: questions.questions,
        state: questions.state,
        spent,
    }
}

/// Redacts secrets, on a blocking thread, since the result may be megabytes.
async fn redacted(
    redactor: Arc<Redactor>,
    mut result: Result<Output, CallError>,
    record: &mut CallRecord<'_>,
) -> Result<Output, CallError> {
    let mut captured = std::mem::take(&mut record.captured);
    // The guest has ended: what is found from here on is in the result.
    let before = redactor.found();
    let work = tokio::task::spawn_blocking(move || {
        match &mut result {
            Ok(output) => redactor.output(output),
            Err(error) => redactor.error(error),
        }
        let found = redactor.found().saturating_sub(before);
        redactor.captured(&mut captured);
        (result, captured, found)
    });
    match work.await {
        Ok((result, captured, found)) => {
            record.captured = captured;
            record.redacted(found);
            result
        }
        // Fail closed: show nothing that was not redacted.
        Err(error) => Err(CallError::internal(format!(
            "the result can't be shown: {error}"
        ))),
    }
}
