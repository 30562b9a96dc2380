//! Calls that the command refuses before there is a host for them. They are recorded as those that a host refuses.

use toolward_host::{CallError, ErrorClass, ErrorCode, Host, LOCAL, Native, RefusedCall};
use toolward_operator::recorder::StartedRecorder;

use super::Arguments;
use crate::helper;
use crate::prelude::*;

/// A call that may end before it reaches a host.
pub(super) struct Early<'a> {
    pub(super) arguments: &'a Arguments,
    pub(super) contents: &'a [Content],
    pub(super) environment: &'a Environment,
    pub(super) output: &'a Output,
}

impl Early<'_> {
    /// The call ends with this failure. What fails here is a warning: it does not hide why the call ends.
    pub(super) fn ends(
        &self,
        started: Option<StartedRecorder>,
        code: ErrorCode,
        class: ErrorClass,
        failure: Failure,
    ) -> Failure {
        let error = CallError::new(code, class, failure.message.as_str());
        if let Some(started) = started
            && let Err(unrecorded) = self.record(started, &error)
        {
            self.output
                .warning_of("the call is not recorded", &unrecorded);
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
        helper::close_recorder(Some(&recorder), self.output);
        Ok(())
    }
}
