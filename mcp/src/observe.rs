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
use rmcp::service::{Peer, RequestContext};
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::time::Instant;
use toolward_bundle::text::{visible, visible_line};
use toolward_host::{LogLevel, LogRecord, Observer, Progress};

use crate::revision::Revision;
use crate::sanitize;

/// The most queued reports. Further reports are dropped, so that a driver never waits for the
/// client.
const MAX_QUEUED_REPORTS: usize = 64;
/// Reports that are sent at once. After them, one report is sent per [`REPORT_INTERVAL`].
const BURST_REPORTS: u32 = 16;
const REPORT_INTERVAL: Duration = Duration::from_millis(50);
/// The least time between the last progress report and the result. A client that reads both at once
/// may handle the result first, and some clients then fail on a report of a call that they no
/// longer know.
const RESULT_GAP: Duration = Duration::from_millis(50);
/// How long waiting log records may delay the result.
const LOG_TIMEOUT: Duration = Duration::from_secs(1);

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

/// Sends a driver's reports to the client.
pub(crate) struct Forwarder {
    receiver: mpsc::Receiver<Said>,
    peer: Peer<RoleServer>,
    token: Option<ProgressToken>,
    tool: String,
    revision: Revision,
    sent: u32,
    since: Instant,
}

/// Returns an observer for a tool call, and its forwarder; `None` if the client asked for no
/// reports. `level` is the least urgent level that the client wants.
pub(crate) fn observer(
    context: &RequestContext<RoleServer>,
    level: Option<LoggingLevel>,
    tool: &str,
) -> Option<(Arc<dyn Observer>, Forwarder)> {
    let token = context.meta.get_progress_token();
    if token.is_none() && level.is_none() {
        return None;
    }
    let (sender, receiver) = mpsc::channel(MAX_QUEUED_REPORTS);
    let listener = Listener {
        sender,
        progress: token.is_some(),
        level: level.map(least),
    };
    let forwarder = Forwarder {
        receiver,
        peer: context.peer.clone(),
        token,
        tool: tool.to_owned(),
        revision: Revision::of(context),
        sent: 0,
        since: Instant::now(),
    };
    Some((Arc::new(listener), forwarder))
}

impl Forwarder {
    /// Runs a call and forwards its reports. Once the result is known, waiting progress is dropped,
    /// because some clients fail on progress of a call whose result they have. Waiting log records
    /// are sent before the result, for at most [`LOG_TIMEOUT`].
    pub(crate) async fn during<T>(mut self, call: impl Future<Output = T>) -> T {
        let mut call = std::pin::pin!(call);
        // When the last progress was sent.
        let mut last: Option<Instant> = None;
        let mut waiting = Vec::new();
        let result = loop {
            let said = tokio::select! {
                biased;
                result = &mut call => break result,
                said = self.receiver.recv() => said,
            };
            let Some(said) = said else {
                break call.await;
            };
            tokio::select! {
                biased;
                result = &mut call => {
                    waiting.push(said);
                    break result;
                }
                () = self.wait() => {}
            }
            // A slow client does not delay the call, but a report that is being sent is completed
            // before the result.
            let progress = matches!(said, Said::Progress(_));
            let result = {
                let mut send = std::pin::pin!(self.forward(said));
                tokio::select! {
                    biased;
                    () = &mut send => None,
                    result = &mut call => {
                        send.await;
                        Some(result)
                    }
                }
            };
            if progress {
                last = Some(Instant::now());
            }
            if let Some(result) = result {
                break result;
            }
        };
        waiting.extend(std::iter::from_fn(|| self.receiver.try_recv().ok()));
        let send = async {
            for said in waiting {
                if matches!(said, Said::Log(_)) {
                    self.forward(said).await;
                }
            }
        };
        // A client that does not read must not keep the call from ending.
        let _ = tokio::time::timeout(LOG_TIMEOUT, send).await;
        if let Some(last) = last {
            tokio::time::sleep(RESULT_GAP.saturating_sub(last.elapsed())).await;
        }
        result
    }

    async fn forward(&self, said: Said) {
        // If the client has disconnected, another task cancels its call.
        let _ = match said {
            Said::Progress(progress) => {
                let Some(token) = self.token.clone() else {
                    return;
                };
                let mut parameters = ProgressNotificationParam::new(token, progress.done);
                parameters.total = progress.total;
                parameters.message = progress
                    .message
                    .filter(|_| self.revision.has_progress_messages())
                    .map(|message| visible_line(&message, MAX_MESSAGE_CHARS));
                self.peer.notify_progress(parameters).await
            }
            Said::Log(record) => {
                let (level, data) = (level(record.level), data(&record));
                let mut parameters = LoggingMessageNotificationParam::new(level, data);
                parameters.logger = Some(self.tool.clone());
                self.peer.notify_logging_message(parameters).await
            }
        };
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
    use rmcp::model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData, ServerCapabilities,
        ServerConfig,
    };
    use rmcp::{ServerHandler, ServiceExt as _};
    use serde_json::json;
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

    use super::*;

    /// Reports and returns its result at once.
    struct Reporting;

    impl ServerHandler for Reporting {
        fn get_info(&self) -> ServerConfig {
            ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
        }

        async fn call_tool(
            &self,
            _: CallToolRequestParams,
            context: RequestContext<RoleServer>,
        ) -> Result<CallToolResponse, ErrorData> {
            let level = Some(LoggingLevel::Debug);
            let (observer, forwarder) = observer(&context, level, "a.b").unwrap();
            let call = async {
                for _ in 0..10 {
                    observer.progress(&Progress {
                        done: 1.0,
                        total: None,
                        message: None,
                    });
                    observer.log(&LogRecord {
                        level: LogLevel::Info,
                        message: "here".to_owned(),
                        fields: Value::Null,
                    });
                }
            };
            forwarder.during(call).await;
            Ok(CallToolResult::success(Vec::new()).into())
        }
    }

    #[tokio::test]
    async fn reports_that_wait_are_dropped_once_the_result_is_known() {
        let (mut to, input) = tokio::io::duplex(1 << 16);
        let (output, from) = tokio::io::duplex(1 << 16);
        let server = tokio::spawn(async move { Reporting.serve((input, output)).await });
        let mut from = BufReader::new(from).lines();
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "a", "version": "1"}});
        let meta = json!({"name": "a", "_meta": {"progressToken": 7}});
        for message in [
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": meta}),
        ] {
            to.write_all(format!("{message}\n").as_bytes())
                .await
                .unwrap();
        }
        let mut methods = Vec::new();
        loop {
            let line = from.next_line().await.unwrap().unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == 2 {
                break;
            }
            methods.extend(message["method"].as_str().map(str::to_owned));
        }
        assert_eq!(methods, ["notifications/message"; 10]);
        drop(server);
    }

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
        // A driver may send text that is not JSON.
        let shown = data(&record(hidden.into()));
        assert_eq!(shown["fields"], visible);
        assert_eq!(data(&record(Value::Null)), json!({ "message": visible }));
    }
}
