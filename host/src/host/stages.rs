//! The stages of a call, in order. This module writes the results of the stages before dispatch to
//! the call's record. [`dispatch`] writes the results of its attempts itself.

use std::sync::Arc;
use std::time::Instant;

use toolward_sandbox::invocation::CallEnd;

use super::Host;
use crate::api::approval::Verdict;
use crate::api::facts::CallStage;
use crate::api::request::Request;
use crate::api::result::{CallError, Output};
use crate::elicitation;
use crate::named::CallName;
use crate::pipeline::approve::{self, Approved};
use crate::pipeline::authorise::{self, Granted};
use crate::pipeline::call_record::CallRecord;
use crate::pipeline::dispatch::{self, DispatchContext, HostEnd};
use crate::pipeline::resolve::{self, Resolved};
use crate::pipeline::validate::{self, RoutedCall, Validated};
use crate::validation_pool;

impl Host {
    /// The stages. Each takes a value that only the stage before it makes.
    pub(super) async fn stages(
        &self,
        mut request: Box<Request>,
        record: &mut CallRecord<'_>,
    ) -> Result<HostEnd, CallError> {
        let inner = &*self.inner;
        if let Some(resume) = &request.resume {
            request.pinned_driver = Some(resume.asked.driver.clone());
        }
        let resolved = resolve::resolve(&inner.catalogue, &request);
        let resolved = match (resolved, &request.resume) {
            (Err(error), Some(_)) => return Err(elicitation::gone(error)),
            (resolved, _) => resolved?,
        };
        record.resolved(&resolved.tool);

        record.enter(CallStage::Validate);
        let mut validated = self.validated(resolved, request).await?;
        record.validated(validated.call_mut());

        record.enter(CallStage::Authorise);
        let approved = match inner.services.tape {
            Some(_) => approve::unasked(authorise::decide(validated)?),
            None => {
                let granted = authorise::apply(validated)?;
                record.enter(CallStage::Approve);
                let asks = granted.asks();
                let approved = match asks {
                    // Boxed, so that the future of a call without a question does not contain it.
                    true => Box::pin(self.approved(granted, record)).await?,
                    false => {
                        record.answer_unused().await;
                        let approved = approve::unasked(granted);
                        approve::log_cost(approved.call());
                        approved
                    }
                };
                record.approved(asks);
                if let Some(output) = self.repeated(approved.call(), record).await? {
                    return Ok(CallEnd::Done(output));
                }
                approved
            }
        };
        let context = DispatchContext {
            host: self.inner.clone(),
            services: &inner.services,
            admission: &inner.admission,
            shared: &inner.shared_state.shared,
        };
        Ok(dispatch::dispatch(approved, context, record).await)
    }

    /// Asks a person, and returns the call once it is approved.
    async fn approved(
        &self,
        granted: Granted,
        record: &mut CallRecord<'_>,
    ) -> Result<Approved, CallError> {
        let needed = approve::needed(granted, &record.facts.invocation)?;
        let verdict = match needed.approver(self.inner.services.approver.as_ref()) {
            Some(approver) => record.asks(&*approver, &needed.request).await,
            None => Verdict::Unavailable,
        };
        needed.decided(verdict)
    }

    /// The output of the earlier call with the same id ([`crate::named`]). `None` if this call must
    /// be dispatched, like every call without an id.
    ///
    /// # Errors
    /// The error of the earlier call; or another error if the earlier call's reply is not kept, its
    /// input differs, it does not end in time, or too many calls wait for it.
    async fn repeated(
        &self,
        call: &RoutedCall,
        record: &mut CallRecord<'_>,
    ) -> Result<Option<Output>, CallError> {
        let Some(name) = call.extensions.get::<Arc<CallName>>() else {
            return Ok(None);
        };
        let named = &self.inner.shared_state.shared.named;
        match Box::pin(named.enter(name, call.timeout)).await? {
            Ok(running) => {
                record.named(running, &call.route);
                record.may_run().await.map(|()| None)
            }
            Err(kept) => {
                record.repeats(kept.source);
                kept.result.map(Some)
            }
        }
    }

    /// Validates inline, or on another thread if validation may take long: the schema comes from
    /// the publisher, and validation can't be interrupted.
    async fn validated(
        &self,
        resolved: Resolved,
        request: Box<Request>,
    ) -> Result<Validated, CallError> {
        let inner = &self.inner;
        if request.is_below(validation_pool::short_bytes(&resolved.tool.contract.inputs)) {
            return validate::validate(resolved, request, &inner.services);
        }
        let longest = inner.services.limits.timeout.maximum;
        let allowed = request.timeout.unwrap_or(longest).min(longest);
        let started = Instant::now();
        let deadline = started.checked_add(allowed).unwrap_or(started);
        let (host, scope) = (self.clone(), request.scope.clone());
        let checking = inner.shared_state.shared.validation.run(
            &scope.principal,
            deadline,
            || CallError::timed_out(allowed, started.elapsed()),
            move || validate::validate(resolved, request, &host.inner.services),
        );
        // Boxed, so that the future of a call with a short input does not contain it.
        Box::pin(checking).await
    }
}
