//! The host's end of the connection to its broker.

use std::collections::HashMap;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use toolward_signing::key::PublicKey;
use toolward_support::helper::{self as helper, ENDING, Outgoing, frames, lock};

use super::super::artifact::Claim;
use super::super::limits::{CompileCost, CompileError, CompileLimits, Result};
use super::super::{Stage, Watch};
use super::frame::{Answer, Made, Request};
use super::permits::POLL_INTERVAL;
use crate::engine::EngineHash;

/// How long a broker may take until it compiles a component: it gets no more of them than it has workers.
const BEGINNING: Duration = Duration::from_secs(30);
/// How long it may take for all but compiling: to sign and to store.
const AROUND: Duration = Duration::from_secs(15);

/// An answer to a request, with the bytes that belong to it.
type Answered = (Answer, Vec<u8>);

/// The connection, and the process at its other end.
#[derive(Debug)]
pub(super) struct Link {
    child: Mutex<Child>,
    socket: UnixStream,
    /// Set once the first component is sent: until then this process
    /// must have no second thread.
    outgoing: Mutex<Option<Outgoing>>,
    shared: Arc<Shared>,
    artifact_bytes: usize,
    /// The longest that compiling takes.
    wall: Duration,
    /// Requests that a broker takes before it has answered any.
    most_open: usize,
}

#[derive(Debug)]
struct Shared {
    /// The key that the cache had when this process started, until the broker
    /// has sent the one that it signs with.
    public: Mutex<Option<PublicKey>>,
    waiting: Mutex<Waiting>,
    /// Why the cache took no artifact the last time, if it did not.
    not_kept: Mutex<Option<String>>,
}

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    /// Of all requests that have no answer yet, also if no one waits for it any more.
    senders: HashMap<u64, Sender<Answered>>,
    /// Why the connection ended, once it has.
    ended: Option<String>,
}

impl Link {
    pub(super) fn new(
        child: Child,
        socket: UnixStream,
        public: Option<PublicKey>,
        limits: CompileLimits,
        most_open: usize,
    ) -> Self {
        Self {
            child: Mutex::new(child),
            socket,
            outgoing: Mutex::default(),
            shared: Arc::new(Shared {
                public: Mutex::new(public),
                waiting: Mutex::default(),
                not_kept: Mutex::default(),
            }),
            artifact_bytes: usize::try_from(limits.artifact_bytes).unwrap_or(usize::MAX),
            wall: limits.wall,
            most_open,
        }
    }

    /// The key that artifacts are checked with, once it is known.
    pub(super) fn public(&self) -> Option<PublicKey> {
        lock(&self.shared.public).clone()
    }

    /// Why the cache does not keep what is compiled, if it does not.
    pub(super) fn not_kept(&self) -> Option<String> {
        lock(&self.shared.not_kept).clone()
    }

    /// Has a component compiled, for what is left of a budget.
    pub(super) fn compile(
        &self,
        claim: Claim<'_>,
        wasm: &[u8],
        left: &mut CompileCost,
        watch: &mut Watch<'_>,
    ) -> Result<(Made, Vec<u8>)> {
        let outgoing = self.listen(*claim.engine)?;
        let (id, events) = self.shared.register(self.most_open)?;
        let request = Request::Compile {
            id,
            engine: *claim.engine,
            component: *claim.component,
            budget: *left,
        };
        let mut frames = Vec::new();
        frames::send(&mut frames, &request, &[wasm])
            .map_err(|error| CompileError::unavailable(error.to_string()))?;
        outgoing.send(frames);
        self.wait(id, (&events, &outgoing), left, watch)
    }

    fn wait(
        &self,
        id: u64,
        (events, outgoing): (&Receiver<Answered>, &Outgoing),
        left: &mut CompileCost,
        watch: &mut Watch<'_>,
    ) -> Result<(Made, Vec<u8>)> {
        let asked = Instant::now();
        let mut begun: Option<Instant> = None;
        let cancel = || {
            let mut frames = Vec::new();
            if frames::send(&mut frames, &Request::Cancel { id }, &[]).is_ok() {
                outgoing.send(frames);
            }
        };
        loop {
            match events.recv_timeout(POLL_INTERVAL) {
                Ok((Answer::Ended { spent, made, .. }, bytes)) => {
                    left.spend(spent);
                    return made.map(|made| (made, bytes));
                }
                Ok(_) => begun = Some(Instant::now()),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(self.shared.gone()),
            }
            let stage = begun.map_or(Stage::Waiting, |begun| Stage::Compiling(begun.elapsed()));
            if let ControlFlow::Break(()) = watch(stage) {
                cancel();
                // Its worker is gone once the broker has answered.
                let until = Instant::now().checked_add(ENDING);
                while until.is_some_and(|until| Instant::now() < until)
                    && matches!(
                        events.recv_timeout(POLL_INTERVAL),
                        Ok((Answer::Begun { .. }, _)) | Err(RecvTimeoutError::Timeout)
                    )
                {}
                return Err(CompileError::cancelled());
            }
            let is_late = match begun {
                None => asked.elapsed() >= BEGINNING,
                Some(begun) => begun.elapsed() >= self.wall.saturating_add(AROUND),
            };
            if is_late {
                cancel();
                return Err(unanswered());
            }
        }
    }

    /// Starts to read the broker's answers, once. Where no thread can be started, the next component tries again.
    fn listen(&self, engine: EngineHash) -> Result<Outgoing> {
        let mut known = lock(&self.outgoing);
        if let Some(outgoing) = &*known {
            return Ok(outgoing.clone());
        }
        let (shared, artifact_bytes) = (self.shared.clone(), self.artifact_bytes);
        let begun = Outgoing::start("compile-send", &self.socket).and_then(|outgoing| {
            let mut socket = self.socket.try_clone()?;
            std::thread::Builder::new()
                .name("compile-broker".to_owned())
                .spawn(move || shared.read(&mut socket, engine, artifact_bytes))?;
            Ok(outgoing)
        });
        let outgoing = begun.map_err(|error| {
            let problem = format!("the compile broker can't be listened to: {error}");
            CompileError::unavailable(problem)
        })?;
        Ok(known.insert(outgoing).clone())
    }
}

fn unanswered() -> CompileError {
    CompileError::unavailable("the compile broker does not answer")
}

impl Drop for Link {
    fn drop(&mut self) {
        let child = self.child.get_mut().unwrap_or_else(PoisonError::into_inner);
        helper::end(child, &self.socket);
    }
}

impl Shared {
    fn register(&self, most_open: usize) -> Result<(u64, Receiver<Answered>)> {
        let mut waiting = lock(&self.waiting);
        if waiting.ended.is_some() {
            drop(waiting);
            return Err(self.gone());
        }
        if waiting.senders.len() >= most_open {
            return Err(unanswered());
        }
        let id = waiting.next;
        waiting.next = id.wrapping_add(1);
        let (sender, receiver) = channel();
        waiting.senders.insert(id, sender);
        Ok((id, receiver))
    }

    /// Dispatches the broker's answers until the connection ends.
    fn read(&self, socket: &mut UnixStream, engine: EngineHash, artifact_bytes: usize) {
        let mut from = io::BufReader::new(socket);
        let problem = loop {
            match Answer::read(&mut from, artifact_bytes) {
                Ok(Some((answer, bytes))) => {
                    if let Err(problem) = self.take(answer, bytes, engine) {
                        break problem;
                    }
                }
                Ok(None) => break "the compile broker has ended".to_owned(),
                Err(error) => break format!("the compile broker can't be understood: {error}"),
            }
        };
        self.end(&problem);
    }

    fn take(&self, answer: Answer, bytes: Vec<u8>, engine: EngineHash) -> Result<(), String> {
        let sender = match &answer {
            Answer::Unusable(problem) => {
                return Err(format!("the compile broker can't work: {problem}"));
            }
            Answer::Ready { public, engines } => {
                if !engines.contains(&engine) {
                    return Err("the compile broker is of another build".to_owned());
                }
                let public = PublicKey::from_bytes(public).map_err(|error| error.to_string())?;
                *lock(&self.public) = Some(public);
                return Ok(());
            }
            Answer::NotKept(problem) => {
                tracing::warn!(%problem, "compiled drivers are not cached");
                *lock(&self.not_kept) = Some(problem.clone());
                return Ok(());
            }
            Answer::Begun { id } => lock(&self.waiting).senders.get(id).cloned(),
            Answer::Ended { id, .. } => lock(&self.waiting).senders.remove(id),
        };
        if let Some(sender) = sender {
            // The one who asked may have stopped waiting.
            let _ = sender.send((answer, bytes));
        }
        Ok(())
    }

    fn end(&self, problem: &str) {
        let mut waiting = lock(&self.waiting);
        waiting.ended = Some(problem.to_owned());
        waiting.senders.clear();
    }

    fn gone(&self) -> CompileError {
        let waiting = lock(&self.waiting);
        let problem = waiting.ended.as_deref();
        CompileError::unavailable(problem.unwrap_or("the compile broker has ended"))
    }
}
