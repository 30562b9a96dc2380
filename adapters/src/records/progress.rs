//! `tool_progress`: one report of a running call.

use std::time::{Duration, SystemTime};

use serde::Serialize;
use toolward_support::text::visible_line;

use crate::records::references::{milliseconds, timestamp};
use crate::records::version::SchemaVersion;

/// Characters of a message.
const MAX_MESSAGE_CHARS: usize = 1000;

/// One report of a running call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Progress {
    /// The version of Agent Tool.
    pub schema_version: SchemaVersion,
    /// Its reference.
    pub progress_id: String,
    /// The invocation's id.
    pub invocation_id: String,
    /// Its number within the call, from 1.
    pub sequence: u64,
    /// Always `running`.
    pub status: &'static str,
    /// The driver's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How much is done, from 0 to 100, where the driver knows how much there is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent: Option<f64>,
    /// Milliseconds since the call was recorded.
    pub elapsed_ms: u64,
    /// When it came.
    pub timestamp: String,
}

/// A report as it came.
#[derive(Debug, Clone)]
pub(crate) struct Reported {
    pub(crate) sequence: u64,
    pub(crate) report: toolward_host::Progress,
    pub(crate) elapsed: Duration,
    pub(crate) at: SystemTime,
}

impl Progress {
    pub(crate) fn of(invocation: &str, reported: &Reported) -> Self {
        let Reported {
            sequence, report, ..
        } = reported;
        let total = report.total.filter(|total| *total > 0.0);
        let percent = total.map(|total| (report.done / total * 100.0).clamp(0.0, 100.0));
        Self {
            schema_version: SchemaVersion,
            progress_id: format!("progress:{invocation}/{sequence}"),
            invocation_id: invocation.to_owned(),
            sequence: *sequence,
            status: "running",
            message: report
                .message
                .as_deref()
                .map(|message| visible_line(message, MAX_MESSAGE_CHARS)),
            percent: percent.filter(|percent| percent.is_finite()),
            elapsed_ms: milliseconds(reported.elapsed),
            timestamp: timestamp(reported.at),
        }
    }
}
