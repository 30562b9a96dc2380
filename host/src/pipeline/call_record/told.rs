//! What readers of events are told of a call, at each step of its record.

use super::CallRecord;
use crate::api::event::{CallCost, CallDecision, CallEventKind};
use crate::api::facts::CallStage;
use crate::api::result::{CallError, ErrorClass, ErrorCode, Origin};
use crate::events::ProgressEvents;

impl CallRecord<'_> {
    /// Tells the readers of events, if there are any.
    pub(super) fn happens(&mut self, kind: impl FnOnce() -> CallEventKind) {
        self.events
            .tell(&self.facts, &self.parties.scope.native, kind);
    }

    /// Tells what a guest reports; `None` while there are no readers of events.
    pub(crate) fn progress(&mut self) -> Option<ProgressEvents> {
        self.events
            .progress(&self.facts, &self.parties.scope.native)
    }

    /// Neither policy nor a person denied the call; `asked` if it needed an approval.
    pub(crate) fn approved(&mut self, asked: bool) {
        self.decided = true;
        let decision = match asked {
            true => CallDecision::Approved,
            false => CallDecision::Allowed,
        };
        self.happens(|| CallEventKind::PermissionDecided { decision });
    }

    /// A driver is started.
    pub(super) fn tells_start(&mut self) {
        let (driver, attempt) = (self.parties.route.clone(), self.facts.attempts);
        self.happens(|| CallEventKind::Started {
            driver: driver.map_or_else(String::new, |route| route.driver.driver.id.to_string()),
            attempt,
        });
    }

    /// Tells the readers of events how the call ends.
    pub(super) fn ends(&mut self, error: Option<&CallError>) {
        if self.yielded {
            return;
        }
        let unfit = [
            ErrorClass::SchemaValidationFailed,
            ErrorClass::InvalidArguments,
        ];
        let invalid = error.filter(|error| unfit.contains(&error.class));
        if let Some(code) = invalid.map(|error| error.code.known())
            && self.facts.stage == CallStage::Validate
        {
            self.happens(|| CallEventKind::ValidationFailed { code });
        }
        // A person who is asked may still answer.
        let answered = error.is_some_and(|error| error.code != ErrorCode::APPROVAL_PENDING);
        let deciding = matches!(self.facts.stage, CallStage::Authorise | CallStage::Approve);
        if answered && deciding && !self.decided {
            let decision = CallDecision::Denied;
            self.happens(|| CallEventKind::PermissionDecided { decision });
        }
        if error.is_some_and(|error| error.class == ErrorClass::PartialFailure) {
            self.happens(|| CallEventKind::PartialResult);
        }
        let bytes = match error {
            None => self.facts.output_bytes,
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
            fuel: self.facts.fuel,
            peak_memory: self.facts.peak_memory,
            violations: self.facts.violations_total,
        }
    }
}
