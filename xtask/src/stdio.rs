//! A client of an MCP server on standard input and output, that takes the time of what it asks.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::AsFd as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Outcome;

/// How long a server may take to end.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// A tool with its arguments.
pub(crate) struct Called {
    tool: String,
    arguments: Value,
}

impl Called {
    /// The arguments are JSON.
    pub(crate) fn new(tool: &str, arguments: &str) -> Outcome<Self> {
        Ok(Self {
            tool: tool.to_owned(),
            arguments: serde_json::from_str(arguments)
                .map_err(|error| format!("{arguments} is not JSON: {error}"))?,
        })
    }

    pub(crate) fn of(tool: &str, arguments: Value) -> Self {
        Self {
            tool: tool.to_owned(),
            arguments,
        }
    }

    /// Of a request for `tools/call`.
    pub(crate) fn params(&self) -> Value {
        json!({ "name": self.tool, "arguments": self.arguments })
    }
}

/// A server that was started, and its client.
pub(crate) struct Server {
    process: Child,
    /// `None` once it is told to end.
    to: Option<ChildStdin>,
    from: Option<BufReader<ChildStdout>>,
    line: String,
    next: u64,
}

impl Server {
    /// Starts a line of the shell, and waits for the answer to `initialize`.
    pub(crate) fn start(command: &str) -> Outcome<Self> {
        Self::spawn(
            command,
            Command::new("sh").args(["-c", &format!("exec {command}")]),
        )
    }

    /// Starts a command, which messages call by this name, and waits for the answer to `initialize`.
    pub(crate) fn spawn(name: &str, command: &mut Command) -> Outcome<Self> {
        let failed = |error| format!("`{name}` can't be started: {error}");
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let (Some(to), Some(from)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(format!("`{name}` has no pipes"));
        };
        let mut server = Self {
            process,
            to: Some(to),
            from: Some(BufReader::new(from)),
            line: String::new(),
            next: 1,
        };
        let client = json!({ "name": "toolward-xtask", "version": "1" });
        server.send(
            &json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client } }),
        )?;
        server
            .answer()
            .map_err(|error| format!("`{name}`: {error}"))?;
        server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(server)
    }

    /// The number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    fn send(&mut self, message: &Value) -> Outcome {
        self.write(format!("{message}\n").as_bytes())
    }

    fn write(&mut self, bytes: &[u8]) -> Outcome {
        let to = self.to.as_mut().ok_or("the server was told to end")?;
        to.write_all(bytes)
            .map_err(|error| format!("the server does not read: {error}"))
    }

    /// Reads the next line that may be an answer.
    fn line(&mut self) -> Outcome {
        let from = self.from.as_mut().ok_or("the server was told to end")?;
        loop {
            self.line.clear();
            match from.read_line(&mut self.line) {
                Ok(0) => return Err("the server has ended".to_owned()),
                Ok(_) if self.line.contains("\"id\"") => return Ok(()),
                Ok(_) => {}
                Err(error) => return Err(format!("the server's answer can't be read: {error}")),
            }
        }
    }

    /// The result in the last line, if that is an answer; an error if it says that a call failed.
    fn result(&self) -> Outcome<Option<Value>> {
        let mut answer: Value = serde_json::from_str(&self.line)
            .map_err(|error| format!("the server's answer is not JSON: {error}"))?;
        let failed = answer.get("error").is_some()
            || answer.pointer("/result/isError") == Some(&Value::Bool(true));
        if failed {
            return Err(format!("a call failed: {}", self.line.trim_end()));
        }
        let answers = answer.get("id").is_some();
        let result = answer.get_mut("result").map(Value::take);
        Ok(result.filter(|_| answers))
    }

    /// Reads to the next answer.
    fn answer(&mut self) -> Outcome<Value> {
        loop {
            self.line()?;
            if let Some(result) = self.result()? {
                return Ok(result);
            }
        }
    }

    fn message(&mut self, method: &str, params: &Value) -> String {
        self.next += 1;
        let message =
            json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params });
        format!("{message}\n")
    }

    /// The time from sending a request to its answer, and what that says.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Outcome<(Duration, Value)> {
        let message = self.message(method, params);
        let begun = Instant::now();
        self.write(message.as_bytes())?;
        loop {
            self.line()?;
            // Without the time that it takes to look at the answer.
            let took = begun.elapsed();
            if let Some(result) = self.result()? {
                return Ok((took, result));
            }
        }
    }

    /// The time from sending a call to its answer.
    pub(crate) fn call(&mut self, called: &Called) -> Outcome<Duration> {
        let (took, _) = self.request("tools/call", &called.params())?;
        Ok(took)
    }

    /// The time of many calls, all sent before the first answer is waited for.
    pub(crate) fn calls_at_once(&mut self, called: &Called, count: usize) -> Outcome<Duration> {
        let params = called.params();
        let messages: String = (0..count)
            .map(|_| self.message("tools/call", &params))
            .collect();
        let to = self.to.as_ref().ok_or("the server was told to end")?;
        let to = to.as_fd().try_clone_to_owned();
        let mut to = std::fs::File::from(to.map_err(|error| error.to_string())?);
        let begun = Instant::now();
        let sending = std::thread::spawn(move || to.write_all(messages.as_bytes()));
        for _ in 0..count {
            self.answer()?;
        }
        let took = begun.elapsed();
        match sending.join() {
            Ok(Ok(())) => Ok(took),
            _ => Err("the server does not read".to_owned()),
        }
    }

    /// Ends its streams, and waits some seconds until it has ended.
    pub(crate) fn end(mut self) -> Outcome {
        self.to = None;
        self.from = None;
        let until = Instant::now() + END_TIMEOUT;
        while Instant::now() < until {
            match self.process.try_wait() {
                Ok(Some(_)) => return Ok(()),
                Ok(None) => std::thread::sleep(Duration::from_millis(5)),
                Err(error) => return Err(error.to_string()),
            }
        }
        Err("the server does not end when its input does".to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has ended, or there is an error that says more.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
