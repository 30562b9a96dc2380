//! A server with the conformance bundle, for a client over HTTP or for a client that starts the
//! server itself.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::raw::PATIENCE;
use crate::support::{Machine, Run, copy, root};

/// The arguments of the server. The bundle, the key and the policy are in the machine's work
/// directory.
const WITH: &str =
    "serve --bundle conformance.toolbundle --trust-key tests.pub.pem --policy-file policy.toml";

/// The arguments of a server with the tools of `tests/guests/plain`.
const PLAIN: &str = "serve --bundle plain.toolbundle --trust-key tests.pub.pem";

/// How long to wait until a server prints its address.
const START: Duration = Duration::from_secs(120);

/// A machine with the signed bundle, and a policy that grants the bundle's requests. `more` is
/// inserted before the policy's tables.
pub(crate) fn machine(more: &str) -> Machine {
    let machine = Machine::new();
    let from = root().join("tests/guests/conformance");
    let parts = ["bundle.toml", "tools", "drivers", "prompts", "resources"];
    signed(&machine, "conformance", &parts);
    let shown = machine
        .toolward("publisher keys show tests.pub.pem --json")
        .ends(0)
        .json();
    let key = shown["key_id"].as_str().unwrap();
    let policy = std::fs::read_to_string(from.join("policy.toml")).unwrap();
    machine.write(
        "policy.toml",
        more.to_owned() + &policy.replace("PUBLISHER", &format!("key:{key}")),
    );
    machine
}

/// A machine with the signed bundle of `tests/guests/plain`.
pub(super) fn plain() -> Machine {
    let machine = Machine::new();
    signed(&machine, "plain", &["bundle.toml", "tools", "drivers"]);
    machine
}

/// Copies parts of a bundle of `tests/guests` to the machine's work directory, and writes its
/// archive next to it, signed with a new key.
fn signed(machine: &Machine, name: &str, parts: &[&str]) {
    let from = root().join("tests/guests").join(name);
    for driver in std::fs::read_dir(from.join("drivers")).unwrap() {
        let component = driver.unwrap().path().join("driver.wasm");
        assert!(component.is_file(), "run `cargo xtask guests` first");
    }
    for part in parts {
        copy(&from.join(part), &machine.path(&format!("{name}/{part}")));
    }
    machine
        .toolward("publisher keys new --out tests.pem")
        .ends(0);
    let pack = format!("pack {name} -o {name}.toolbundle --key tests.pem");
    machine.toolward(&pack).ends(0);
}

/// Returns the command that serves one client over standard input and output with the tools of
/// [`plain`].
pub(super) fn plain_stdio(machine: &Machine) -> std::process::Command {
    machine.toolward(PLAIN).into_command()
}

/// Returns the command that serves one client over standard input and output.
pub(super) fn stdio(machine: &Machine) -> std::process::Command {
    machine.toolward(WITH).into_command()
}

/// A server over HTTP. It ends when this is dropped.
pub(crate) struct Served {
    child: Child,
    stderr: Option<JoinHandle<String>>,
    pub(super) url: String,
}

impl Served {
    pub(super) fn start(machine: &Machine) -> Self {
        Self::with(machine, &format!("{WITH} --http 127.0.0.1:0 --no-token"))
    }

    /// Starts a server with the tools of [`plain`] and these flags.
    pub(super) fn plain(machine: &Machine, flags: &str) -> Self {
        Self::with(machine, &format!("{PLAIN} --http 127.0.0.1:0 {flags}"))
    }

    fn with(machine: &Machine, words: &str) -> Self {
        let mut command = machine.toolward(words).into_command();
        command.stdin(Stdio::null());
        Self::by(command)
    }

    /// Starts a server with a command.
    pub(crate) fn by(mut command: Command) -> Self {
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (found, url) = mpsc::channel();
        let stderr = std::thread::spawn(move || {
            let mut all = String::new();
            for line in lines.map_while(Result::ok) {
                if let Some((_, url)) = line.split_once("listening on ") {
                    // A second address is not needed.
                    let _ = found.send(url.trim().to_owned());
                }
                all += &line;
                all.push('\n');
            }
            all
        });
        let mut served = Self {
            child,
            stderr: Some(stderr),
            url: String::new(),
        };
        match url.recv_timeout(START) {
            Ok(url) => served.url = url,
            Err(_) => panic!("the server does not listen: {}", served.end()),
        }
        served
    }

    pub(super) fn process(&self) -> u32 {
        self.child.id()
    }

    /// The address that it listens at.
    pub(crate) fn address(&self) -> &str {
        let address = self.url.strip_prefix("http://").unwrap();
        address.split_once('/').unwrap().0
    }

    /// Posts a message in the era without sessions, with a token if one is given. Returns the
    /// answer.
    pub(crate) fn post(&self, token: Option<&str>, message: &Value) -> Value {
        let address = self.address();
        let method = message["method"].as_str().unwrap();
        let name = message["params"]["name"].as_str();
        let name = name.map_or_else(String::new, |name| format!("Mcp-Name: {name}\r\n"));
        let token = token.map_or_else(String::new, |token| {
            format!("Authorization: Bearer {token}\r\n")
        });
        let message = message.to_string();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{token}\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{name}Content-Length: {}\r\n\r\n",
            message.len()
        );
        stream.write_all((head + &message).as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let json = answer.split_once("\r\n\r\n").and_then(|(_, body)| {
            let (start, end) = (body.find('{')?, body.rfind('}')?);
            serde_json::from_str(body.get(start..=end)?).ok()
        });
        json.unwrap_or_else(|| panic!("no answer: {answer}"))
    }

    /// Sends a signal to the server, such as `TERM`.
    pub(super) fn signal(&self, machine: &Machine, name: &str) {
        let mut kill = machine.program("kill");
        kill.arg(format!("-{name}"))
            .arg(self.child.id().to_string());
        Run::new(kill).ends(0);
    }

    /// Interrupts the server, and waits until it ends.
    pub(super) fn interrupted(&mut self, machine: &Machine) {
        self.signal(machine, "INT");
        self.ended(PATIENCE).expect("it ends");
    }

    /// Sends a request over a new connection, as the last request of that connection. `headers` end
    /// with CRLF.
    pub(crate) fn sends(&self, method: &str, headers: &str, body: &Value) -> TcpStream {
        let address = self.address();
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let head = format!(
            "{method} /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nConnection: close\r\n{headers}\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).unwrap();
        stream
    }

    /// Waits for the server to end.
    pub(super) fn ended(&mut self, within: Duration) -> Option<ExitStatus> {
        let end = Instant::now() + within;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait().unwrap() {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        None
    }

    /// Ends the server, and returns its whole standard error.
    pub(super) fn said(mut self) -> String {
        self.end()
    }

    /// Ends the server, and returns its standard error.
    fn end(&mut self) -> String {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let stderr = self.stderr.take();
        stderr.map_or_else(String::new, |said| said.join().unwrap_or_default())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let said = self.end();
        if std::thread::panicking() {
            eprintln!("the server said:\n{said}");
        }
    }
}
