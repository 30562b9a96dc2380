//! What readers of events are told of a call, at each step of its record.

use super::CallRecord;
use crate::api::event::{CallCost, CallDecision, CallEventKind};
use crate::api::listener::CallStage;
use crate::api::result::{CallError, ErrorClass, ErrorCode, Origin, Output};
use crate::events::ProgressEvents;

impl CallRecord<'_> {
    /// Tells the readers of events, if there are any.
    pub(super) fn happens(&mut self, kind: impl FnOnce() -> CallEventKind) {
        let tool = self.tool.as_ref().map(|tool| tool.major_id.as_str());
        let call = (&*self.metadata.invocation, tool, &*self.scope);
        self.events.tell(call, kind);
    }

    /// Tells what a guest reports; `None` while there are no readers of events.
    pub(crate) fn progress(&mut self) -> Option<ProgressEvents> {
        let tool = self.tool.as_ref().map(|tool| tool.major_id.as_str());
        let call = (&*self.metadata.invocation, tool, &*self.scope);
        self.events.progress(call)
    }

    /// Neither policy nor a person denied the call.
    pub(crate) fn approved(&mut self) {
        self.decided = true;
        let decision = match self.needs_approval {
            true => CallDecision::Approved,
            false => CallDecision::Allowed,
        };
        self.happens(|| CallEventKind::PermissionDecided { decision });
    }

    /// A driver is started.
    pub(super) fn tells_start(&mut self) {
        let tool = self.tool.as_ref().map(|tool| tool.major_id.as_str());
        let call = (&*self.metadata.invocation, tool, &*self.scope);
        let (driver, attempt) = (self.driver.as_deref(), self.metadata.attempts);
        let driver = || driver.map_or_else(String::new, |driver| driver.driver.id.to_string());
        self.events.tell(call, || CallEventKind::Started {
            driver: driver(),
            attempt,
        });
    }

    /// Tells the readers of events how the call ends.
    pub(super) fn ends(&mut self, result: Result<&Output, &CallError>) {
        if self.yielded {
            return;
        }
        let error = result.err();
        let unfit = [
            ErrorClass::SchemaValidationFailed,
            ErrorClass::InvalidArguments,
        ];
        let invalid = error.filter(|error| unfit.contains(&error.class));
        if let Some(code) = invalid.map(|error| error.code.known())
            && self.stage == CallStage::Validate
        {
            self.happens(|| CallEventKind::ValidationFailed { code });
        }
        // A person who is asked may still answer.
        let answered = error.is_some_and(|error| error.code != ErrorCode::APPROVAL_PENDING);
        let deciding = matches!(self.stage, CallStage::Authorise | CallStage::Approve);
        if answered && deciding && !self.decided {
            let decision = CallDecision::Denied;
            self.happens(|| CallEventKind::PermissionDecided { decision });
        }
        if error.is_some_and(|error| error.class == ErrorClass::PartialFailure) {
            self.happens(|| CallEventKind::PartialResult);
        }
        let bytes = match error {
            None => self.returned as u64,
            Some(_) => 0,
        };
        self.happens(|| CallEventKind::ResultCreated {
            bytes,
            canceled: None,
        });
        let cost = self.cost();
        self.happens(|| match error {
            None => CallEventKind::Succeeded(cost),
            Some(error) if error.origin == Origin::Host && error.code == ErrorCode::TIMEOUT => {
                CallEventKind::TimedOut(cost)
            }
            Some(error) => CallEventKind::Failed {
                code: error.code.known(),
                class: error.class,
                cost,
            },
        });
    }

    pub(super) fn cost(&self) -> CallCost {
        let micros = self.started.elapsed().as_micros();
        CallCost {
            micros: u64::try_from(micros).unwrap_or(u64::MAX),
            fuel: self.metadata.fuel,
            peak_memory: self.metadata.peak_memory,
            violations: self.metadata.violations_total,
        }
    }
}
