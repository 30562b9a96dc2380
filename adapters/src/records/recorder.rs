//! Stores two things about a call that its reply does not contain: the driver's progress reports
//! (`tool_progress`), and a person's answer.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;

use toolward_host::{ApprovalRequest, Approver, Observer, Progress, Verdict};
use toolward_support::text::visible_line;

use super::references::{milliseconds, record, timestamp};

/// The most reports of a call that are stored. A driver may send any number. Beyond the limit, the
/// first reports and the last one are stored.
const MAX_REPORTS: usize = 1024;

/// A person's answer.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Answer {
    /// The answer.
    pub verdict: Verdict,
    /// When it came.
    pub at: SystemTime,
}

/// Collects the progress reports and the answers of one call. Clones are cheap, and share the
/// collected data.
///
/// ```
/// use std::sync::Arc;
/// use toolward_host::{Host, Request};
/// use toolward_adapters::records::{EndedCall, Recorder, call_records};
///
/// async fn call(host: &Host, request: Request) -> Option<String> {
///     let recorder = Recorder::new();
///     let reply = host.call(request.observer(Arc::new(recorder.clone()))).await;
///     let info = host.tool("text.stats");
///     let ended = EndedCall::now(&reply, info, &recorder);
///     Some(call_records(&ended).to_string())
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Recorder(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    started: Instant,
    recorded: Mutex<Recorded>,
}

#[derive(Debug, Default)]
struct Recorded {
    reports: Vec<ProgressReport>,
    count: u64,
    answers: Vec<(String, Answer)>,
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

impl Recorder {
    /// Starts recording.
    pub fn new() -> Self {
        Self(Arc::new(Shared {
            started: Instant::now(),
            recorded: Mutex::default(),
        }))
    }

    /// Returns an approver that asks `inner`, and records the person's answer.
    pub fn approver<A: Approver>(&self, inner: A) -> impl Approver + use<A> {
        Asking {
            inner,
            recorder: self.clone(),
        }
    }

    pub(crate) fn reports(&self) -> Vec<ProgressReport> {
        self.with(|recorded| recorded.reports.clone())
    }

    /// Returns a person's answer about an invocation.
    pub(crate) fn answer(&self, invocation: &str) -> Option<Answer> {
        self.with(|recorded| {
            let mut answers = recorded.answers.iter().rev();
            let answer = answers.find(|(asked, _)| asked == invocation);
            answer.map(|(_, answer)| answer.clone())
        })
    }

    fn with<T>(&self, work: impl FnOnce(&mut Recorded) -> T) -> T {
        let recorded = &self.0.recorded;
        work(&mut recorded.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Observer for Recorder {
    fn progress(&self, progress: &Progress) {
        let elapsed = self.0.started.elapsed();
        self.with(|recorded| {
            recorded.count = recorded.count.saturating_add(1);
            if recorded.reports.len() >= MAX_REPORTS {
                recorded.reports.pop();
            }
            recorded.reports.push(ProgressReport {
                sequence: recorded.count,
                report: progress.clone(),
                elapsed,
                at: SystemTime::now(),
            });
        });
    }
}

struct Asking<A> {
    inner: A,
    recorder: Recorder,
}

impl<A: Approver> Approver for Asking<A> {
    fn ask<'a>(
        &'a self,
        request: &'a ApprovalRequest,
    ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        Box::pin(async move {
            let verdict = self.inner.ask(request).await;
            let answer = Answer {
                verdict: verdict.clone(),
                at: SystemTime::now(),
            };
            let invocation = request.invocation.clone();
            self.recorder
                .with(|recorded| recorded.answers.push((invocation, answer)));
            verdict
        })
    }

    fn unused_answer(&self) -> Option<Verdict> {
        self.inner.unused_answer()
    }
}

/// The most characters of a message.
const MAX_MESSAGE_CHARS: usize = 1000;

/// A report with its time.
#[derive(Debug, Clone)]
pub(crate) struct ProgressReport {
    pub(crate) sequence: u64,
    pub(crate) report: Progress,
    pub(crate) elapsed: Duration,
    pub(crate) at: SystemTime,
}

/// Returns the record of one report of a running call.
pub(crate) fn record(invocation: &str, reported: &ProgressReport) -> Value {
    let ProgressReport {
        sequence, report, ..
    } = reported;
    let message = report.message.as_deref();
    // The percentage is known only if the driver reports the total.
    let total = report.total.filter(|total| *total > 0.0);
    let percent = total.map(|total| (report.done / total * 100.0).clamp(0.0, 100.0));
    record! {
        progress_id = format!("progress:{invocation}/{sequence}");
        invocation_id = invocation;
        sequence = sequence;
        status = "running";
        message ? message.map(|message| visible_line(message, MAX_MESSAGE_CHARS));
        percent ? percent.filter(|percent| percent.is_finite());
        elapsed_ms = milliseconds(reported.elapsed);
        timestamp = timestamp(reported.at);
    }
}
