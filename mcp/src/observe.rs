//! Forwards a driver's progress and log records to the client: in order, and no faster
//! than a client can use them.
#![expect(
    deprecated,
    reason = "logging is on its way out of MCP, and in both eras still"
)]

use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::Peer;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::time::Instant;
use toolward_bundle::text::{visible, visible_line};
use toolward_host::{LogLevel, LogRecord, Observer, Progress};

use crate::sanitize;

/// Reports that are queued. Further ones are dropped: a driver never waits for the
/// client.
const MAX_QUEUED_REPORTS: usize = 64;
/// Reports that are sent at once; after them, one per [`REPORT_INTERVAL`].
const BURST_REPORTS: u32 = 16;
const REPORT_INTERVAL: Duration = Duration::from_millis(50);

const MAX_MESSAGE_CHARS: usize = 1000;

/// A report of a driver.
enum Said {
    Progress(Progress),
    Log(LogRecord),
}

/// Receives reports, on the thread that runs the driver.
struct Listener {
    sender: mpsc::Sender<Said>,
    progress: bool,
    /// The least urgent level that the client wants.
    level: Option<LogLevel>,
}

impl Observer for Listener {
    fn progress(&self, progress: &Progress) {
        if self.progress {
            let _ = self.sender.try_send(Said::Progress(progress.clone()));
        }
    }

    fn log(&self, record: &LogRecord) {
        if self.level.is_some_and(|level| record.level >= level) {
            let _ = self.sender.try_send(Said::Log(record.clone()));
        }
    }
}

/// The reports that a client asked for.
pub(crate) struct Wanted {
    pub(crate) token: Option<ProgressToken>,
    pub(crate) level: Option<LoggingLevel>,
}

/// Sends a driver's reports to the client.
pub(crate) struct Forwarder {
    receiver: mpsc::Receiver<Said>,
    peer: Peer<RoleServer>,
    token: Option<ProgressToken>,
    tool: String,
    sent: u32,
    since: Instant,
}

impl Wanted {
    /// An observer for the call and its forwarder; `None` if the client asked for no
    /// reports.
    pub(crate) fn observer(
        self,
        peer: &Peer<RoleServer>,
        tool: &str,
    ) -> Option<(Arc<dyn Observer>, Forwarder)> {
        if self.token.is_none() && self.level.is_none() {
            return None;
        }
        let (sender, receiver) = mpsc::channel(MAX_QUEUED_REPORTS);
        let listener = Listener {
            sender,
            progress: self.token.is_some(),
            level: self.level.map(least),
        };
        let forwarder = Forwarder {
            receiver,
            peer: peer.clone(),
            token: self.token,
            tool: tool.to_owned(),
            sent: 0,
            since: Instant::now(),
        };
        Some((Arc::new(listener), forwarder))
    }
}

impl Forwarder {
    /// Runs a call and forwards its reports, all of them before the call's result.
    pub(crate) async fn during<T>(mut self, call: impl Future<Output = T>) -> T {
        let mut call = std::pin::pin!(call);
        let result = loop {
            tokio::select! {
                biased;
                result = &mut call => break result,
                said = self.receiver.recv() => match said {
                    Some(said) => {
                        // A slow client does not delay the call.
                        let send = self.forward(said);
                        let mut send = std::pin::pin!(send);
                        tokio::select! {
                            biased;
                            () = &mut send => {}
                            result = &mut call => {
                                send.await;
                                break result;
                            }
                        }
                    }
                    None => break call.await,
                },
            }
        };
        while let Ok(said) = self.receiver.try_recv() {
            self.sent = 0;
            self.forward(said).await;
        }
        result
    }

    async fn forward(&mut self, said: Said) {
        self.wait().await;
        // If the client has disconnected, its call is cancelled elsewhere.
        let _ = match said {
            Said::Progress(progress) => {
                let Some(token) = self.token.clone() else {
                    return;
                };
                let mut parameters = ProgressNotificationParam::new(token, progress.done);
                parameters.total = progress.total;
                parameters.message = progress
                    .message
                    .map(|message| visible_line(&message, MAX_MESSAGE_CHARS));
                self.peer.notify_progress(parameters).await
            }
            Said::Log(record) => self.log(record).await,
        };
    }

    async fn log(&self, record: LogRecord) -> Result<(), rmcp::service::ServiceError> {
        let data = data(&record);
        let mut parameters = LoggingMessageNotificationParam::new(level(record.level), data);
        parameters.logger = Some(self.tool.clone());
        self.peer.notify_logging_message(parameters).await
    }

    /// Waits until another report may be sent.
    async fn wait(&mut self) {
        let now = Instant::now();
        let pauses = now.duration_since(self.since).as_millis() / REPORT_INTERVAL.as_millis();
        let regained = u32::try_from(pauses).unwrap_or(u32::MAX);
        if regained > 0 {
            self.sent = self.sent.saturating_sub(regained);
            self.since = now;
        }
        if self.sent >= BURST_REPORTS {
            tokio::time::sleep(REPORT_INTERVAL).await;
            self.since = Instant::now();
        } else {
            self.sent = self.sent.saturating_add(1);
        }
    }
}

/// A record as clients see it: the driver's text, escaped.
fn data(record: &LogRecord) -> Value {
    let mut data = Map::new();
    let message = visible(&record.message, MAX_MESSAGE_CHARS);
    data.insert("message".to_owned(), Value::String(message));
    if !record.fields.is_null() {
        data.insert("fields".to_owned(), sanitize::value(record.fields.clone()));
    }
    Value::Object(data)
}

fn least(level: LoggingLevel) -> LogLevel {
    match level {
        LoggingLevel::Debug => LogLevel::Trace,
        LoggingLevel::Info | LoggingLevel::Notice => LogLevel::Info,
        LoggingLevel::Warning => LogLevel::Warn,
        _ => LogLevel::Error,
    }
}

fn level(level: LogLevel) -> LoggingLevel {
    match level {
        LogLevel::Trace | LogLevel::Debug => LoggingLevel::Debug,
        LogLevel::Info => LoggingLevel::Info,
        LogLevel::Warn => LoggingLevel::Warning,
        LogLevel::Error => LoggingLevel::Error,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_that_a_driver_logs_is_made_visible() {
        let hidden = "a\u{202e}b\u{1b}[2J";
        let record = |fields: Value| LogRecord {
            level: LogLevel::Info,
            message: hidden.to_owned(),
            fields,
        };
        let visible = "a\\u{202e}b\\e[2J";
        let shown = data(&record(json!({ hidden: [hidden], "count": 2 })));
        let fields = json!({ visible: [visible], "count": 2 });
        assert_eq!(shown, json!({ "message": visible, "fields": fields }));
        // A driver may send text that is no JSON.
        let shown = data(&record(hidden.into()));
        assert_eq!(shown["fields"], visible);
        assert_eq!(data(&record(Value::Null)), json!({ "message": visible }));
    }
}
