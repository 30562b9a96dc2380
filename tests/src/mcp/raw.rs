//! A client that sends any text, including text that no library would send.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, PipeReader, Write as _, pipe};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long to wait before an answer counts as missing.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A connection over standard input and output.
pub(crate) struct Raw {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    early: VecDeque<Value>,
    stderr: Option<JoinHandle<String>>,
    /// Standard error, if the client does not read it.
    unread: Option<PipeReader>,
    instructions: String,
}

impl Raw {
    pub(crate) fn start(mut command: Command) -> Self {
        command.stderr(Stdio::piped());
        let mut raw = Self::spawned(command);
        let mut stderr = raw.child.stderr.take().unwrap();
        raw.stderr = Some(std::thread::spawn(move || {
            let mut text = String::new();
            let _ = std::io::Read::read_to_string(&mut stderr, &mut text);
            text
        }));
        raw
    }

    fn spawned(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            stdin: child.stdin.take(),
            child,
            lines,
            early: VecDeque::new(),
            stderr: None,
            unread: None,
            instructions: String::new(),
        }
    }

    /// Opens a session of the older era, as a client with these capabilities.
    pub(crate) fn open(command: Command, capabilities: Value) -> Self {
        Self::open_as("raw", command, capabilities)
    }

    /// Does the same for a client with this name.
    pub(crate) fn open_as(name: &str, command: Command, capabilities: Value) -> Self {
        Self::start(command).opened_as(name, capabilities)
    }

    /// Does the same as [`Raw::open`] for a client that never reads standard error. When this
    /// returns, the pipe is full.
    pub(crate) fn open_deaf(mut command: Command) -> Self {
        let (unread, mut full) = pipe().unwrap();
        command.stderr(full.try_clone().unwrap());
        let mut raw = Self::spawned(command).opened(json!({}));
        raw.unread = Some(unread);
        let (sender, written) = channel();
        // The thread ends when the pipe has no reader any more.
        std::thread::spawn(move || {
            while full.write_all(b".").is_ok() {
                let _ = sender.send(());
            }
        });
        while written.recv_timeout(Duration::from_millis(500)).is_ok() {}
        raw
    }

    /// Opens a session with a server that was started.
    pub(crate) fn opened(self, capabilities: Value) -> Self {
        self.opened_as("raw", capabilities)
    }

    fn opened_as(mut self, name: &str, capabilities: Value) -> Self {
        self.send(&json!({
            "jsonrpc": "2.0", "id": "open", "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": capabilities,
                "clientInfo": {"name": name, "version": "1"},
            },
        }));
        let answer = self.answer("open");
        assert_eq!(
            answer["result"]["serverInfo"]["name"], "toolward",
            "{answer}"
        );
        let instructions = answer["result"]["instructions"].as_str();
        self.instructions = instructions.unwrap_or_default().to_owned();
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        self
    }

    /// Returns the instructions for the model from the opening of the session.
    pub(crate) fn instructions(&self) -> &str {
        &self.instructions
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.line(&message.to_string());
    }

    /// Sends a line unchanged.
    pub(crate) fn line(&mut self, text: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(text.as_bytes()).unwrap();
        stdin.write_all(b"\n").unwrap();
        stdin.flush().unwrap();
    }

    pub(crate) fn call(&mut self, id: impl Into<Value>, tool: &str, arguments: &Value) {
        let params = json!({"name": tool, "arguments": arguments});
        self.send(&json!({
            "jsonrpc": "2.0", "id": id.into(), "method": "tools/call", "params": params,
        }));
    }

    /// Returns the server's next message, or `None` if none arrives. Every line must be a message.
    pub(crate) fn next(&mut self, within: Duration) -> Option<Value> {
        match self.lines.recv_timeout(within) {
            Ok(line) => {
                let message = serde_json::from_str(&line);
                Some(message.unwrap_or_else(|_| panic!("no message: {line:?}")))
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
        }
    }

    /// Returns the answer to a request. Other messages are stored until they are requested.
    #[track_caller]
    pub(crate) fn answer(&mut self, id: impl Into<Value>) -> Value {
        let id = id.into();
        if let Some(place) = self.early.iter().position(|message| message["id"] == id) {
            return self.early.remove(place).unwrap();
        }
        let end = Instant::now() + PATIENCE;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            let Some(message) = self.next(left) else {
                break;
            };
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            self.early.push_back(message);
        }
        panic!("no answer to {id}");
    }

    /// Returns the messages that were not requested, until none arrives for 200 ms.
    pub(crate) fn rest(&mut self) -> Vec<Value> {
        while let Some(message) = self.next(Duration::from_millis(200)) {
            self.early.push_back(message);
        }
        std::mem::take(&mut self.early).into()
    }

    /// Sends nothing more, but continues to read.
    pub(crate) fn hang_up(&mut self) {
        self.stdin = None;
    }

    /// Hangs up, waits until the server ends, and returns its whole standard error.
    pub(crate) fn said(&mut self) -> String {
        self.hang_up();
        self.ended(PATIENCE).expect("it ends without its client");
        let said = self.stderr.take().and_then(|stderr| stderr.join().ok());
        said.unwrap_or_default()
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the server to end.
    pub(crate) fn ended(&mut self, within: Duration) -> Option<ExitStatus> {
        let end = Instant::now() + within;
        loop {
            match self.child.try_wait().unwrap() {
                Some(status) => return Some(status),
                None if Instant::now() > end => return None,
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let said = self.stderr.take().and_then(|stderr| stderr.join().ok());
        if std::thread::panicking() {
            eprintln!("the server said:\n{}", said.unwrap_or_default());
        }
    }
}
