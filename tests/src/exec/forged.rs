//! Forged messages of a compromised host to the broker of programs: only the number of a line and a
//! JSON input have an effect. Another test runs a host without a broker.

use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use toolward_bundle::content::Content;
use toolward_host::{Host, Request};
use toolward_policy::Policy;
use toolward_signing::key::PublicKey;
use toolward_signing::trust::TrustStore;
use toolward_signing::verify::{self, VerifyOptions};

use super::Scene;
use crate::support::machine::toolward;

/// The kinds of frames. A message has one frame of each kind.
const VALUE: u8 = 1;
const BYTES: u8 = 2;

/// The largest input that the broker accepts by its settings.
const INPUT_BYTES: usize = 64;

/// A broker, and the connection of its host.
struct Broker {
    child: Child,
    socket: UnixStream,
}

impl Broker {
    /// A broker whose only line is the hostile program, which reports its input.
    fn of(scene: &Scene) -> Self {
        let (socket, theirs) = UnixStream::pair().unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let child = Command::new(toolward())
            .arg("internal-exec-broker")
            .env_clear()
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut broker = Self { child, socket };
        broker.say(&json!({ "Start": start(scene) }), b"");
        broker
    }

    /// Sends a message.
    fn say(&mut self, value: &Value, bytes: &[u8]) {
        let value = value.to_string();
        self.frame(VALUE, value.len(), value.as_bytes());
        self.frame(BYTES, bytes.len(), bytes);
    }

    /// Sends a frame that claims this length.
    fn frame(&mut self, kind: u8, length: usize, body: &[u8]) {
        let mut frame = vec![kind];
        frame.extend(u32::try_from(length).unwrap().to_le_bytes());
        frame.extend(body);
        // A broker that has ended does not read the rest.
        let _ = self.socket.write_all(&frame);
    }

    fn run(&mut self, id: u64, input: &[u8]) {
        self.say(&run(id, 0), input);
    }

    /// Reads the next frame of this kind.
    fn next(&mut self, kind: u8) -> Vec<u8> {
        let mut head = [0; 5];
        self.socket.read_exact(&mut head).unwrap();
        assert_eq!(head[0], kind);
        let length = u32::from_le_bytes(head[1..].try_into().unwrap()) as usize;
        let mut body = vec![0; length];
        self.socket.read_exact(&mut body).unwrap();
        body
    }

    /// Reads the next message.
    fn message(&mut self) -> (Value, Vec<u8>) {
        let value = serde_json::from_slice(&self.next(VALUE)).unwrap();
        (value, self.next(BYTES))
    }

    /// Asserts that the next answer accepts a run.
    fn takes(&mut self, id: u64) {
        assert_eq!(self.message().0, json!({ "Taken": { "id": id } }));
    }

    /// Reads the next answer: its id, how the run ended, and the program's output.
    fn answer(&mut self) -> (u64, Value, Vec<u8>) {
        let (value, mut bytes) = self.message();
        let ended = &value["Ended"];
        bytes.truncate(usize::try_from(ended["stdout"].as_u64().unwrap()).unwrap());
        let id = ended["id"].as_u64().unwrap();
        (id, ended["ending"].clone(), bytes)
    }

    /// Asserts that the broker ends with an error, and without an answer.
    fn gives_up(mut self, what: &str) {
        let mut left = Vec::new();
        // A reset means the same as an end.
        let _ = self.socket.read_to_end(&mut left);
        assert!(left.is_empty(), "{what}: {left:?}");
        let status = self.child.wait().unwrap();
        assert!(!status.success(), "{what}: {status}");
    }
}

fn run(id: u64, line: u64) -> Value {
    json!({ "Run": { "id": id, "line": line, "is_trial": false } })
}

fn cancel(id: u64) -> Value {
    json!({ "Cancel": { "id": id } })
}

fn go(id: u64) -> Value {
    json!({ "Go": { "id": id } })
}

/// Returns the first frame of a host whose policy has one line.
fn start(scene: &Scene) -> Value {
    let digest: Vec<u8> = (scene.digest().as_bytes().chunks(2))
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect();
    json!({
        "protocol": 3,
        "program": { "Unix": toolward().as_os_str().as_encoded_bytes() },
        "arguments": [{ "Unix": b"internal-exec-runner" }],
        "input_bytes": INPUT_BYTES,
        "lines": [{
            "command": { "path": scene.program(), "digest": digest }, "interpreter": null,
            "args": ["echo"], "env": [], "network": false, "processes": false, "workspaces": [],
            "limits": {
                "timeout_ms": 30_000, "memory_mib": 256, "cpu_seconds": 30, "output_bytes": 1 << 16,
                "file_bytes": 1 << 16,
            },
        }],
    })
}

#[test]
fn a_forged_frame_ends_the_broker_and_starts_nothing() {
    let scene = Scene::new(&["echo"]);
    let trial = json!({ "Run": { "id": 1, "line": 0, "is_trial": true } });
    let large = vec![b' '; INPUT_BYTES + 1];
    let path = json!({ "Run": { "id": 1, "line": 0, "is_trial": false, "path": "/bin/sh" } });
    for (what, value, bytes) in [
        ("an unknown kind", json!({ "Exec": { "id": 1 } }), &b""[..]),
        ("an answer", json!({ "Taken": { "id": 1 } }), b""),
        ("a second start", json!({ "Start": start(&scene) }), b""),
        ("an unknown line", run(1, 1), b"{}"),
        ("the last line of all", run(1, u64::MAX), b"{}"),
        ("a further member", path, b"{}"),
        ("too large an input", run(1, 0), &large),
        ("a trial with an input", trial, b"{}"),
        (
            "a run without a line",
            json!({ "Run": { "id": 1, "is_trial": false } }),
            b"{}",
        ),
        ("a cancellation with bytes", cancel(1), b"1"),
        ("a negative id", json!({ "Go": { "id": -1 } }), b""),
    ] {
        let mut broker = Broker::of(&scene);
        broker.say(&value, bytes);
        broker.gives_up(what);
        scene.is_alone();
    }
    let whole = run(1, 0).to_string();
    for (what, kind, length, body) in [
        ("a kind that does not exist", 9, 0, ""),
        ("bytes without a value", BYTES, 0, ""),
        ("an impossible length", VALUE, u32::MAX as usize, ""),
        ("a value that is not JSON", VALUE, 4, "{\"a\""),
    ] {
        let mut broker = Broker::of(&scene);
        broker.frame(kind, length, body.as_bytes());
        broker.gives_up(what);
        scene.is_alone();
    }

    // A message that is cut off: within a frame, and between its frames.
    for length in [whole.len() + 1, whole.len()] {
        let mut broker = Broker::of(&scene);
        broker.frame(VALUE, length, whole.as_bytes());
        broker.socket.shutdown(std::net::Shutdown::Write).unwrap();
        broker.gives_up("half a message");
    }
}

#[test]
fn a_broker_takes_no_input_that_is_not_json_and_goes_on() {
    let scene = Scene::new(&["echo"]);
    let mut broker = Broker::of(&scene);
    broker.run(7, b"--flag");
    let (id, how, stdout) = broker.answer();
    assert_eq!(id, 7);
    assert!(how["Refused"].is_object(), "{how}");
    assert!(stdout.is_empty());
    // Cancelling a run that does not exist has no effect.
    broker.say(&cancel(99), b"");
    broker.run(8, b"{\"a\":1}");
    broker.takes(8);
    broker.say(&go(8), b"");
    // A repeated message has no effect.
    broker.say(&go(8), b"");
    let (id, how, stdout) = broker.answer();
    assert_eq!((id, how), (8, json!({ "Exited": 0 })));
    let did: Value = serde_json::from_slice(&stdout).unwrap();
    assert_eq!(did["input"], json!({ "a": 1 }), "{did}");
    drop(broker.socket);
    assert!(broker.child.wait().unwrap().success());
    scene.is_alone();
}

#[test]
fn a_run_that_is_cancelled_before_it_starts_does_not_start() {
    let scene = Scene::new(&["echo"]);
    let mut broker = Broker::of(&scene);
    broker.run(7, b"{}");
    broker.say(&cancel(7), b"");
    broker.say(&go(7), b"");
    broker.takes(7);
    let (id, how, _) = broker.answer();
    assert_eq!((id, how), (7, json!("Cancelled")));
    // No further message arrives.
    drop(broker.socket.shutdown(std::net::Shutdown::Write));
    let mut left = Vec::new();
    broker.socket.read_to_end(&mut left).unwrap();
    assert!(left.is_empty(), "{left:?}");
    assert!(broker.child.wait().unwrap().success());
    scene.is_alone();
}

#[tokio::test]
async fn a_host_without_a_broker_says_so_and_runs_nothing() {
    let mut scene = Scene::new(&["echo"]);
    scene.write();
    let machine = &scene.machine;
    let pem = std::fs::read_to_string(machine.path("key.pub.pem")).unwrap();
    let trust = TrustStore::for_key(PublicKey::from_pem(&pem).unwrap());
    let archive = machine.path("hostile.toolbundle");
    let verified = verify::open(&archive, &trust, &VerifyOptions::default()).unwrap();
    let policy = std::fs::read_to_string(machine.path("policy.toml")).unwrap();
    let host = Host::builder()
        .bundle(Content::from_verified(verified).unwrap())
        .policy(Policy::from_toml(&policy).unwrap())
        .build()
        .unwrap();
    let reply = host.call(Request::new("hostile.program", "{}")).await;
    let error = reply.result.unwrap_err();
    assert_eq!(error.cause.unwrap()["rule"], "exec-broker-missing");
    assert_eq!(reply.metadata.attempts, 0);
    scene.is_alone();
}
