//! Answers the requests of a call's driver: each request is checked against the grant, counted, and
//! recorded as a violation if it was not granted.

use std::future::ready;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use http_body_util::BodyExt as _;
use toolward_contract::capability::Class;
use toolward_egress::{Call, Error as EgressError};
use toolward_policy::LimitName;
use toolward_sandbox::exceeded::{self, Exceeded};
use toolward_sandbox::files::OpenFiles as _;
use toolward_sandbox::imports::PROGRESS_REPORT_BYTES;
use toolward_sandbox::invocation::ToolCall;
use toolward_sandbox::limits::CallLimits;
use toolward_sandbox::violations::{EndsCall, Violations};
use toolward_state::Buckets;
use toolward_support::helper::lock;

use super::buckets::{BucketLimits, CallBuckets};
use super::tools::NestedCalls;
use super::{
    BoxFuture, BucketError, BucketReply, BucketRequest, CallBudget, CallSecrets, CallerBudget,
    HttpError, HttpRequest, HttpResponse, Imports, LogMessage, Progress, SecretError, ToolReply,
};
use crate::access::Access;
use crate::api::result::{CallError, ErrorClass, LogRecord, unauthorised};
use crate::call_scope::CallScope;
use crate::events::ProgressEvents;

/// The most bytes of a progress message. A longer message is cut.
const MAX_PROGRESS_MESSAGE_BYTES: usize = 1024;

/// Answers the requests of one driver of a call.
pub(crate) struct HostImports {
    pub(crate) access: Arc<Access>,
    /// Only the buckets: a guest may be dropped after the host, and must not hold all services
    /// until then.
    pub(crate) buckets: Option<Arc<dyn Buckets>>,
    pub(crate) scope: Arc<CallScope>,
    pub(crate) limits: CallLimits,
    pub(crate) deadline: Instant,
    pub(crate) budget: Arc<CallBudget>,
    pub(crate) violations: Violations,
    pub(crate) secrets: Arc<CallSecrets>,
    /// `None` if no host is granted.
    pub(crate) network: Option<Call>,
    /// `None` if no tool is granted.
    pub(crate) tools: Option<NestedCalls>,
    pub(crate) reports: Reports,
    /// Set if events had readers when the driver's attempts started.
    pub(crate) events: Option<ProgressEvents>,
}

impl Imports for HostImports {
    fn placeholder(&self, slug: String) -> BoxFuture<'_, Result<String, SecretError>> {
        Box::pin(ready(self.checked(&slug, self.own_placeholder(&slug))))
    }

    fn reveal(&self, slug: String) -> BoxFuture<'_, Result<Vec<u8>, SecretError>> {
        Box::pin(ready(self.checked(&slug, self.secrets.reveal(&slug))))
    }

    fn store(&self, slug: String, value: Vec<u8>) -> BoxFuture<'_, Result<(), SecretError>> {
        Box::pin(async move {
            let stored = self.secrets.store(&slug, value).await;
            self.checked(&slug, stored)
        })
    }

    fn bucket(&self, request: BucketRequest) -> BoxFuture<'_, Result<BucketReply, BucketError>> {
        let buckets = CallBuckets {
            grants: self.access.grant.buckets(),
            store: self.buckets.as_deref(),
            principal: &self.scope.principal,
            limits: BucketLimits::of(&self.limits),
            counters: &self.budget.buckets,
            deadline: self.deadline,
            violations: &self.violations,
        };
        Box::pin(async move { buckets.answer(request).await })
    }

    fn http(&self, request: HttpRequest) -> BoxFuture<'static, Result<HttpResponse, HttpError>> {
        let HttpRequest { request, timeouts } = request;
        let violations = self.violations.clone();
        let Some(network) = &self.network else {
            let host = request.uri().authority().map_or("", |name| name.as_str());
            // If policy ends the call at this violation, the guest ends when it is entered again.
            let _ = violations.record(&Class::Network, host);
            return Box::pin(ready(Err(HttpError::NoNetwork)));
        };
        let open = match self.budget.gates.open() {
            Ok(open) => open,
            Err(exceeded) => {
                return Box::pin(ready(Err(HttpError::Exceeded(exceeded))));
            }
        };
        let sending = network.send(request, timeouts);
        Box::pin(async move {
            match sending.await {
                Ok(response) => Ok(response.map(|body| {
                    // The connection is open until the body ends.
                    body.map_frame(move |frame| {
                        let _open = &open;
                        frame
                    })
                    .boxed_unsync()
                })),
                Err(error) => {
                    // A violation if the refusal is about the grant or a secret.
                    if let EgressError::Denied(denied) = &error
                        && let Some(class) = denied.rule.violated_class()
                    {
                        let _ = violations.record(class, &denied.subject);
                    }
                    Err(HttpError::Egress(error))
                }
            }
        })
    }

    fn call_tool(
        &self,
        call: ToolCall,
        left: CallerBudget,
    ) -> BoxFuture<'_, Result<ToolReply, EndsCall>> {
        Box::pin(async move {
            if let Some(slug) = self.secret_in(&call.input) {
                self.violations.record(&Class::Secret, &slug)?;
                let message = format!("the secret `{slug}` can't be passed to a tool");
                let error = unauthorised(ErrorClass::CapabilityGap, message);
                return Ok(ToolReply::refused(error));
            }
            match &self.tools {
                Some(tools) => tools.call(call, left, &self.violations).await,
                None => {
                    self.violations.record(&Class::Tool, &call.tool)?;
                    Ok(ToolReply::refused(CallError::not_granted(&call.tool)))
                }
            }
        })
    }

    fn has_tools(&self) -> bool {
        self.tools.is_some()
    }

    fn log(&self, message: LogMessage) -> Result<LogRecord, Exceeded> {
        let fields = message.fields.as_ref().map_or(0, String::len);
        let bytes = (message.message.len() as u64).saturating_add(fields as u64);
        self.reports.admit_log(bytes, &self.limits)?;
        let mut record = message.into_record();
        if let Some(redactor) = self.secrets.redactor() {
            redactor.record(&mut record);
        }
        if let Some(observer) = &self.scope.observer {
            observer.log(&record);
        }
        Ok(record)
    }

    fn progress(&self, progress: Progress) -> u64 {
        if !self.reports.admits_progress(progress.done) {
            return 0;
        }
        let total = progress.total.filter(|total| total.is_finite());
        if let Some(events) = &self.events {
            events.tell(progress.done, total);
        }
        // The message's bytes count as memory, since an observer may keep it queued until the call
        // ends.
        let bytes = progress.message.as_ref().map_or(0, String::len);
        let bytes = bytes.min(MAX_PROGRESS_MESSAGE_BYTES) as u64;
        if let Some(observer) = &self.scope.observer {
            observer.progress(&Progress {
                done: progress.done,
                total,
                message: progress.message.map(|mut message| {
                    self.redact(&mut message);
                    message.truncate(message.floor_char_boundary(MAX_PROGRESS_MESSAGE_BYTES));
                    message
                }),
            });
        }
        PROGRESS_REPORT_BYTES.saturating_add(bytes)
    }

    fn http_bytes(&self) -> u64 {
        self.network.as_ref().map_or(0, Call::memory)
    }

    fn redact(&self, text: &mut String) {
        if let Some(redactor) = self.secrets.redactor() {
            redactor.text(text);
        }
    }

    fn redact_end(&self, text: Vec<u8>, is_cut: bool) -> Vec<u8> {
        match self.secrets.redactor() {
            Some(redactor) => redactor.end_of_text(text, is_cut),
            None => text,
        }
    }
}

impl HostImports {
    /// Takes over the used secrets and the violations of the driver that was tried before.
    pub(crate) fn follow(&self, before: &Self) {
        if let Some(redactor) = before.secrets.redactor() {
            self.secrets.keep_out_earlier(&redactor);
        }
        self.violations.follow(&before.violations);
    }

    /// Records a denied request as a violation.
    fn checked<T>(&self, slug: &str, reply: Result<T, SecretError>) -> Result<T, SecretError> {
        if let Err(SecretError::Denied) = reply {
            let recorded = self.violations.record(&Class::Secret, slug);
            recorded.map_err(|ends| SecretError::Ends(ends.into()))?;
        }
        reply
    }

    fn own_placeholder(&self, slug: &str) -> Result<String, SecretError> {
        self.secrets.may_use(slug)?;
        let network = self.network.as_ref();
        let placeholder = network.and_then(|network| network.placeholder(slug));
        placeholder.ok_or(SecretError::Denied)
    }

    /// The secret that the input of a nested call contains, as a placeholder or as a value. The
    /// placeholder is valid only in this call, and the called tool would not redact the value.
    fn secret_in(&self, input: &str) -> Option<String> {
        let network = self.network.as_ref();
        let placeholder = network.and_then(|network| network.placeholder_in(input.as_bytes()));
        placeholder.or_else(|| {
            let redactor = self.secrets.redactor()?;
            redactor.slug_in_json(input).map(str::to_owned)
        })
    }
}

/// Counts the reports of one driver of a call, over all its attempts.
#[derive(Default)]
pub(crate) struct Reports {
    /// The last progress that was passed on, and the number of reports that were passed on.
    progress: Mutex<(Option<f64>, u32)>,
    records: AtomicU64,
    bytes: AtomicU64,
}

/// The most progress reports of a driver that are passed on. Further reports are dropped.
const PROGRESS_REPORTS: u32 = 1000;

impl Reports {
    /// Whether a progress report with this value is passed on. The value must rise, and the number
    /// of reports is limited.
    fn admits_progress(&self, done: f64) -> bool {
        let mut progress = lock(&self.progress);
        let (last, reports) = *progress;
        let rises = done.is_finite() && last.is_none_or(|last| done > last);
        let admits = rises && reports < PROGRESS_REPORTS;
        if admits {
            *progress = (Some(done), reports.saturating_add(1));
        }
        admits
    }

    /// Counts a log record of `size` bytes before the record is created.
    fn admit_log(&self, size: u64, limits: &CallLimits) -> Result<(), Exceeded> {
        // The number of records is checked first and counted last, so that a record that is refused
        // for its size is not counted.
        let records = AtomicU64::new(self.records.load(Ordering::Relaxed));
        exceeded::take(&records, LimitName::LogRecords, 1, limits.log_records)?;
        exceeded::take(&self.bytes, LimitName::LogBytes, size, limits.log_bytes)?;
        exceeded::take(&self.records, LimitName::LogRecords, 1, limits.log_records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> CallLimits {
        CallLimits {
            log_records: 3,
            log_bytes: 100,
            ..CallLimits::new(
                &crate::Limits::default(),
                std::time::Duration::from_secs(1),
                &toolward_contract::driver::DriverLimits::default(),
            )
        }
    }

    #[test]
    fn progress_that_falls_repeats_or_is_no_number_is_dropped() {
        let reports = Reports::default();
        let admitted =
            [1.0, 1.0, 0.5, f64::NAN, f64::INFINITY, 2.0].map(|done| reports.admits_progress(done));
        assert_eq!(admitted, [true, false, false, false, false, true]);
    }

    #[test]
    fn log_records_are_counted_by_number_and_by_bytes() {
        let (reports, limits) = (Reports::default(), limits());
        for size in [10, 50] {
            reports.admit_log(size, &limits).expect("room for it");
        }
        let refused = |size| {
            let admitted = reports.admit_log(size, &limits);
            admitted.map_err(|over| over.limit)
        };
        assert_eq!(refused(41), Err(LimitName::LogBytes));
        assert_eq!(refused(40), Ok(()));
        assert_eq!(refused(0), Err(LimitName::LogRecords));
        // If both limits are exceeded, the error names the limit on the number.
        assert_eq!(refused(1), Err(LimitName::LogRecords));
    }

    #[test]
    fn progress_is_passed_on_so_often_and_no_more() {
        let reports = Reports::default();
        let passed = (0..5000)
            .filter(|n| reports.admits_progress(f64::from(*n)))
            .count();
        assert_eq!(passed, 1000);
    }
}
