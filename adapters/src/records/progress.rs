//! `tool_progress`: one report of a running call.

use std::time::{Duration, SystemTime};

use serde_json::Value;
use toolward_support::text::visible_line;

use crate::records::object::record;
use crate::records::references::{milliseconds, timestamp};

/// Characters of a message.
const MAX_MESSAGE_CHARS: usize = 1000;

/// A report as it came.
#[derive(Debug, Clone)]
pub(crate) struct Reported {
    pub(crate) sequence: u64,
    pub(crate) report: toolward_host::Progress,
    pub(crate) elapsed: Duration,
    pub(crate) at: SystemTime,
}

/// One report of a running call.
pub(crate) fn record(invocation: &str, reported: &Reported) -> Value {
    let Reported {
        sequence, report, ..
    } = reported;
    let message = report.message.as_deref();
    // Known if the driver knows how much there is.
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
