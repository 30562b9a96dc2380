//! A server whose client runs eight calls at a time until it is killed, and the answers that the
//! client got.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::mcp::raw::{PATIENCE, Raw};
use crate::recorder::{gone, recorder_of};
use crate::support::Machine;

/// Calls that run at once.
const TASKS: u64 = 8;

/// The processes that are killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Killed {
    Server,
    /// The server then ends by itself.
    Recorder,
    /// The recorder, and directly after it the server.
    Both,
}

/// The kind of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
    Nested,
}

impl Kind {
    fn request(self, path: &str) -> (&'static str, Value) {
        let write = json!({
            "do": "fs", "op": "write", "path": path, "how": ["create"], "text": "x",
        });
        match self {
            Self::Read => ("crash_read", json!({"do": "echo", "value": path})),
            Self::Write => ("crash_write", write),
            Self::Nested => {
                let call = json!({"do": "call-tool", "tool": "crash.write", "input": write});
                ("crash_outer", call)
            }
        }
    }
}

/// An answer that the client saw.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) kind: Kind,
    /// The text or path that the call was given.
    pub(super) path: String,
    /// The id of the call, if the answer has it.
    pub(super) invocation: Option<String>,
    pub(super) code: Option<String>,
    /// Whether its end was recorded before it was answered.
    pub(super) recorded: bool,
    pub(super) at: Instant,
    /// How many answers the client had when it made the call.
    pub(super) after: usize,
}

/// What a client saw.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) answers: Vec<Answered>,
    /// When the process was killed.
    pub(super) killed: Instant,
    /// The longest wait of a call whose rows must be written first: until its answer, or until the
    /// end.
    pub(super) longest_wait: Duration,
    /// Whether only read-only calls were made at the end.
    pub(super) only_read: bool,
}

impl Seen {
    /// Returns the results of calls of this kind.
    pub(super) fn results(&self, kind: Kind) -> impl Iterator<Item = &Answered> {
        let answers = self.answers.iter();
        answers.filter(move |answer| answer.kind == kind && answer.code.is_none())
    }

    /// Returns the paths of calls that were not made because they could not be recorded.
    pub(super) fn unrecorded(&self) -> impl Iterator<Item = &str> {
        let unrecorded = |answer: &&Answered| answer.code.as_deref() == Some("toolward:unrecorded");
        let answers = self.answers.iter().filter(unrecorded);
        answers.map(|answer| answer.path.as_str())
    }
}

/// A server, and its client.
pub(super) struct Session {
    raw: Raw,
    recorder: u32,
    /// Distinguishes its calls from the calls of other sessions.
    number: u64,
    sent: u64,
    /// For each call, how many answers had arrived when it was made, and the time.
    waiting: HashMap<u64, (usize, Instant)>,
    answers: Vec<Answered>,
    longest_wait: Duration,
    /// All calls from this number on only read.
    reads_from: u64,
}

impl Session {
    /// Starts a server that has answered a call.
    pub(super) fn start(machine: &Machine, number: u64) -> Self {
        let serve = machine.toolward("serve --dev crash").into_command();
        let mut raw = Raw::open(serve, json!({}));
        raw.call("first", "crash_read", &json!({"do": "echo"}));
        let first = raw.answer("first");
        assert_eq!(first["result"]["isError"], false, "{first}");
        let recorder = recorder_of(raw.process()).expect("there is a recorder");
        Self {
            raw,
            recorder,
            number,
            sent: 0,
            waiting: HashMap::new(),
            answers: Vec::new(),
            longest_wait: Duration::ZERO,
            reads_from: u64::MAX,
        }
    }

    /// Makes the session send only read-only calls after the first few.
    pub(super) fn only_reading(mut self) -> Self {
        self.reads_from = 2 * TASKS;
        self
    }

    fn kind(&self, id: u64) -> Kind {
        match id % 4 {
            _ if id >= self.reads_from => Kind::Read,
            0 => Kind::Write,
            1 => Kind::Nested,
            _ => Kind::Read,
        }
    }

    fn waited(&mut self, id: u64, since: Instant) {
        if self.kind(id) != Kind::Read {
            self.longest_wait = self.longest_wait.max(since.elapsed());
        }
    }

    fn path(&self, id: u64) -> String {
        format!("{}-{id}", self.number)
    }

    fn send(&mut self) {
        let id = self.sent;
        self.sent += 1;
        let (tool, arguments) = self.kind(id).request(&self.path(id));
        self.raw.call(id, tool, &arguments);
        let now = (self.answers.len(), Instant::now());
        self.waiting.insert(id, now);
    }

    fn take(&mut self, answer: &Value) {
        let id = answer["id"].as_u64().unwrap();
        let waiting = self.waiting.remove(&id);
        let (after, since) = waiting.unwrap_or_else(|| panic!("nobody waits for this: {answer}"));
        self.waited(id, since);
        let (kind, result) = (self.kind(id), &answer["result"]);
        let meta = &result["_meta"];
        let call = &meta["toolward/call"];
        // A tool that calls another one reports how that call ended.
        let nested = &result["structuredContent"]["value"]["err"];
        let code = meta["toolward/error"]["code"].as_str();
        let code = code.or(nested.as_str());
        assert!(code.is_some() || result["isError"] == false, "{answer}");
        self.answers.push(Answered {
            kind,
            path: self.path(id),
            invocation: call["invocation"].as_str().map(str::to_owned),
            code: code.map(str::to_owned),
            recorded: call["recorded"] != false,
            at: Instant::now(),
            after,
        });
    }

    /// Makes calls for this long, kills, and returns what the client saw. No process of the session
    /// is left.
    pub(super) fn run(mut self, time: Duration, killed: Killed) -> Seen {
        let end = Instant::now() + time;
        for _ in 0..TASKS {
            self.send();
        }
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            if let Some(answer) = self.raw.next(left) {
                self.take(&answer);
                self.send();
            }
        }
        let at = Instant::now();
        for (id, (_, since)) in self.waiting.clone() {
            self.waited(id, since);
        }
        if killed != Killed::Server {
            kill(self.recorder);
        }
        if killed != Killed::Recorder {
            kill(self.raw.process());
        }
        while let Some(answer) = self.raw.next(PATIENCE) {
            self.take(&answer);
        }
        let ended = self.raw.ended(PATIENCE).expect("the server has ended");
        if killed == Killed::Recorder {
            assert_eq!(ended.code(), Some(1), "{ended}");
        }
        assert!(gone(self.recorder), "the recorder does not end");
        Seen {
            answers: self.answers,
            killed: at,
            longest_wait: self.longest_wait,
            only_read: self.reads_from < self.sent,
        }
    }
}

fn kill(process: u32) {
    let process = Pid::from_raw(process.try_into().unwrap()).unwrap();
    kill_process(process, Signal::KILL).unwrap();
}
