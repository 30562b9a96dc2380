//! Calls that the command refuses before there is a host for them. They are recorded as those that a host refuses.

use toolward_bundle::content::Content;
use toolward_host::{
    CallError, ErrorClass, ErrorCode, Host, LOCAL, Native, RefusedCall, WithheldReason,
};
use toolward_operator::granted::Granted;
use toolward_operator::installed;
use toolward_operator::recorder::StartedRecorder;
use toolward_operator::runtime;

use super::{Arguments, recorder};
use crate::environment::Environment;
use crate::failure::{Failure, Result};
use crate::output::Output;

/// A call that may end before it reaches a host.
pub(super) struct Early<'a> {
    pub(super) arguments: &'a Arguments,
    pub(super) contents: &'a [Content],
    pub(super) environment: &'a Environment,
    pub(super) output: &'a Output,
}

impl Early<'_> {
    /// The call ends since its tool belongs to a bundle that was left out.
    pub(super) fn withheld(&self, started: Option<StartedRecorder>, failure: Failure) -> Failure {
        let code = match installed::reason(&failure) {
            WithheldReason::Held => ErrorCode::HELD,
            _ => ErrorCode::WITHDRAWN,
        };
        let error = CallError::new(code, ErrorClass::PolicyBlocked, failure.message.as_str());
        self.ends(started, &error, failure)
    }

    /// The call ends since its arguments can't be read, or don't make an input.
    pub(super) fn unfit(&self, started: Option<StartedRecorder>, failure: Failure) -> Failure {
        let error = CallError::new(
            ErrorCode::INPUT_INVALID,
            ErrorClass::InvalidArguments,
            failure.message.as_str(),
        );
        self.ends(started, &error, failure)
    }

    /// What fails here is a warning: it does not hide why the call ends.
    fn ends(
        &self,
        started: Option<StartedRecorder>,
        error: &CallError,
        failure: Failure,
    ) -> Failure {
        if let Some(started) = started
            && let Err(unrecorded) = self.record(started, error)
        {
            self.output.warning(format!(
                "the call is not recorded: {} ({})",
                unrecorded.message, unrecorded.code
            ));
        }
        failure
    }

    fn record(&self, started: StartedRecorder, error: &CallError) -> Result {
        let (arguments, environment) = (self.arguments, self.environment);
        let trust = &arguments.source.trust;
        let granted = Granted::read(trust, &arguments.means.policies, environment)?;
        let confinement = arguments.confine.recorded(trust, environment)?;
        let recorder = started.begin(self.contents, &granted, confinement)?;
        // Nothing runs in it.
        let builder = Host::builder().policy(granted.policy.clone());
        let contents = self.contents.iter().cloned();
        let builder = contents.fold(builder.defer_engine(), |builder, content| {
            builder.bundle(content)
        });
        let host = recorder.records(builder, &granted).build()?;
        let tool = arguments.tool.as_str();
        runtime()?.block_on(host.refused(RefusedCall {
            principal: LOCAL,
            name: tool,
            tool: Some(tool),
            native: &Native::default(),
            error,
        }));
        recorder::close(Some(&recorder), self.output);
        Ok(())
    }
}
