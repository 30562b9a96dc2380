//! What a host that was taken over says to the broker of programs: nothing but a line's number and a JSON input has
//! any effect. And a host without a broker.

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

/// Kinds of frames.
const START: u8 = 1;
const RUN: u8 = 2;
const CANCEL: u8 = 3;
const GO: u8 = 5;
const ENDED: u8 = 11;
const TAKEN: u8 = 12;

/// The largest input that the broker is told to take.
const INPUT_BYTES: usize = 64;

/// A broker and the connection that its host would have.
struct Broker {
    child: Child,
    socket: UnixStream,
}

impl Broker {
    /// One that holds a line with the hostile program, which says what it got.
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
        broker.say(START, start(scene).to_string().as_bytes());
        broker
    }

    fn say(&mut self, kind: u8, body: &[u8]) {
        self.say_long(kind, u32::try_from(body.len()).unwrap(), body);
    }

    /// A frame that claims this length.
    fn say_long(&mut self, kind: u8, length: u32, body: &[u8]) {
        let mut frame = vec![kind];
        frame.extend(length.to_le_bytes());
        frame.extend(body);
        // A broker that has gone already does not read the rest.
        let _ = self.socket.write_all(&frame);
    }

    fn run(&mut self, id: u64, line: u32, input: &[u8]) {
        self.say(RUN, &run(id, line, input));
    }

    /// The next frame of this kind.
    fn next(&mut self, kind: u8) -> Vec<u8> {
        let mut head = [0; 5];
        self.socket.read_exact(&mut head).unwrap();
        assert_eq!(head[0], kind);
        let length = u32::from_le_bytes(head[1..].try_into().unwrap()) as usize;
        let mut body = vec![0; length];
        self.socket.read_exact(&mut body).unwrap();
        body
    }

    /// That the next answer is that a run was taken.
    fn takes(&mut self, id: u64) {
        assert_eq!(self.next(TAKEN), id.to_le_bytes());
    }

    /// The next answer: its id, how the run ended, and what the program wrote.
    fn answer(&mut self) -> (u64, Value, Vec<u8>) {
        let body = self.next(ENDED);
        let number = |at: usize| u32::from_le_bytes(body[at..at + 4].try_into().unwrap()) as usize;
        let id = u64::from_le_bytes(body[..8].try_into().unwrap());
        let (ending, stdout) = (16 + number(8), 16 + number(8) + number(12));
        let how = serde_json::from_slice(&body[16..ending]).unwrap();
        (id, how, body[ending..stdout].to_vec())
    }

    /// That it ends with an error, and has run nothing.
    fn gives_up(mut self, what: &str) {
        let mut left = Vec::new();
        // A reset says the same as an end.
        let _ = self.socket.read_to_end(&mut left);
        assert!(left.is_empty(), "{what}: {left:?}");
        let status = self.child.wait().unwrap();
        assert!(!status.success(), "{what}: {status}");
    }
}

fn run(id: u64, line: u32, input: &[u8]) -> Vec<u8> {
    let mut body = id.to_le_bytes().to_vec();
    body.extend(line.to_le_bytes());
    body.extend(input);
    body
}

/// The first frame of a host whose policy has one line.
fn start(scene: &Scene) -> Value {
    let digest: Vec<u8> = (scene.digest().as_bytes().chunks(2))
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect();
    json!({
        "protocol": 2,
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
    let another = start(&scene).to_string();
    let large = vec![b' '; INPUT_BYTES + 1];
    for (what, kind, length, body) in [
        ("a kind that there is not", 9, 0, vec![]),
        ("an answer", ENDED, 8, vec![0; 8]),
        (
            "a second start",
            START,
            u32::try_from(another.len()).unwrap(),
            another.into_bytes(),
        ),
        ("a line that is not there", RUN, 14, run(1, 1, b"{}")),
        ("the last line of all", RUN, 14, run(1, u32::MAX, b"{}")),
        (
            "too large an input",
            RUN,
            12 + u32::try_from(large.len()).unwrap(),
            run(1, 0, &large),
        ),
        ("a length that nothing has", RUN, u32::MAX, vec![]),
        ("a run without a line", RUN, 8, vec![0; 8]),
        ("a long cancellation", CANCEL, 9, vec![0; 9]),
        ("a short start of a run", GO, 7, vec![0; 7]),
    ] {
        let mut broker = Broker::of(&scene);
        broker.say_long(kind, length, &body);
        broker.gives_up(what);
        scene.is_alone();
    }

    // A frame that is cut off.
    let mut broker = Broker::of(&scene);
    broker.say_long(RUN, 100, b"{}");
    broker.socket.shutdown(std::net::Shutdown::Write).unwrap();
    broker.gives_up("half a frame");
}

#[test]
fn a_broker_takes_no_input_that_is_not_json_and_goes_on() {
    let scene = Scene::new(&["echo"]);
    let mut broker = Broker::of(&scene);
    broker.run(7, 0, b"--flag");
    let (id, how, stdout) = broker.answer();
    assert_eq!(id, 7);
    assert!(how["Refused"].is_object(), "{how}");
    assert!(stdout.is_empty());
    // Nothing is cancelled that does not run.
    broker.say(CANCEL, &99_u64.to_le_bytes());
    broker.run(8, 0, b"{\"a\":1}");
    broker.takes(8);
    broker.say(GO, &8_u64.to_le_bytes());
    // The second says nothing new.
    broker.say(GO, &8_u64.to_le_bytes());
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
    broker.run(7, 0, b"{}");
    broker.say(CANCEL, &7_u64.to_le_bytes());
    broker.say(GO, &7_u64.to_le_bytes());
    broker.takes(7);
    let (id, how, _) = broker.answer();
    assert_eq!((id, how), (7, json!("Cancelled")));
    // Nothing more comes.
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
