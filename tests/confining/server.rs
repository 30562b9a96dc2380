//! A client of a server, over the server's standard input and output.

use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long to wait for an answer. Compiling comes first, possibly while other tests run.
const PATIENCE: Duration = Duration::from_secs(300);

/// Starts a program that may have just been copied. While another thread starts a process, that
/// process briefly keeps the file open for writing.
fn spawn(command: &mut Command) -> Child {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        match command.spawn() {
            Err(error)
                if error.kind() == ErrorKind::ExecutableFileBusy && Instant::now() < until =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            child => return child.unwrap(),
        }
    }
}

/// A server that has answered its client, and so is confined.
pub(super) struct Server {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Server {
    pub(super) fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = spawn(&mut command);
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let mut server = Self {
            input: child.stdin.take(),
            child,
            lines,
        };
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "confining", "version": "1"},
        });
        server.ask("initialize", &params);
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        server
    }

    fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{message}").unwrap();
        input.flush().unwrap();
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = json!(method);
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let line = self.lines.recv_timeout(PATIENCE).expect("an answer");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return message["result"].clone();
            }
        }
    }

    /// Calls a tool.
    pub(super) fn call(&mut self, tool: &str, input: &Value) -> Value {
        self.ask("tools/call", &json!({"name": tool, "arguments": input}))
    }

    pub(super) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Sends nothing more, so that the server ends.
    pub(super) fn hang_up(&mut self) {
        self.input = None;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
