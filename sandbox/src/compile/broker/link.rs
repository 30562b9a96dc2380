//! The host's end of the connection to its broker.

use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use toolward_signing::key::PublicKey;
use toolward_support::helper::{self, ENDING, Outgoing, Requests, lock};

use super::super::artifact::Claim;
use super::super::limits::{CompileCost, CompileError, CompileLimits, Result};
use super::super::{Stage, Watch};
use super::frame::{Answer, Made, Request};
use super::permits::POLL_INTERVAL;
use crate::engine::EngineHash;

/// The longest time between a request and the start of its compilation. The host has one permit for
/// each worker, so a request waits only for workers that still compile for abandoned requests.
const BEGINNING: Duration = Duration::from_secs(30);
/// The time that the broker gets, in addition to the limit on compiling, to sign and store the
/// artifact.
const AROUND: Duration = Duration::from_secs(15);

/// An answer to a request, with the bytes that belong to it.
type Answered = (Answer, Vec<u8>);

/// The connection to the broker, and the state that the broker has reported.
#[derive(Debug)]
pub(super) struct Link {
    link: helper::Link<Sender<Answered>>,
    told: Arc<Told>,
    artifact_bytes: usize,
    /// The longest time that compiling takes.
    wall: Duration,
    /// The most unanswered requests that a broker accepts.
    most_open: usize,
}

/// The state that the broker has reported.
#[derive(Debug)]
struct Told {
    /// The key that verifies artifacts. At first this is the public key that was read from the
    /// cache; later it is the key that the broker has sent.
    public: Mutex<Option<PublicKey>>,
    /// The broker's last report that artifacts are not cached, since an artifact could not be
    /// written or the cache could not be opened. Never cleared.
    not_kept: Mutex<Option<String>>,
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
            link: helper::Link::new("the compile broker", child, socket),
            told: Arc::new(Told {
                public: Mutex::new(public),
                not_kept: Mutex::default(),
            }),
            artifact_bytes: usize::try_from(limits.artifact_bytes).unwrap_or(usize::MAX),
            wall: limits.wall,
            most_open,
        }
    }

    /// The key that verifies artifacts, once it is known.
    pub(super) fn public(&self) -> Option<PublicKey> {
        lock(&self.told.public).clone()
    }

    /// The broker's last report that artifacts are not cached, if any.
    pub(super) fn not_kept(&self) -> Option<String> {
        lock(&self.told.not_kept).clone()
    }

    /// Lets the broker compile a component within the rest of a budget.
    pub(super) fn compile(
        &self,
        claim: Claim<'_>,
        wasm: &[u8],
        left: &mut CompileCost,
        watch: &mut Watch<'_>,
    ) -> Result<(Made, Vec<u8>)> {
        let (told, artifact_bytes, engine) =
            (self.told.clone(), self.artifact_bytes, *claim.engine);
        let outgoing = self.link.listen(
            "compile-broker",
            move |from| Answer::read(from, artifact_bytes),
            move |requests, answer| told.take(requests, answer, engine),
        );
        let outgoing = outgoing.map_err(CompileError::unavailable)?;
        let (sender, events) = channel();
        let mut requests = self.link.requests();
        if requests.senders.len() >= self.most_open {
            return Err(unanswered());
        }
        let id = requests.add(sender).map_err(CompileError::unavailable)?;
        drop(requests);
        let request = Request::Compile {
            id,
            engine,
            component: *claim.component,
            budget: *left,
        };
        let sent = outgoing.send(&request, &[wasm]);
        sent.map_err(|error| CompileError::unavailable(error.to_string()))?;
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
        let cancel = || drop(outgoing.send(&Request::Cancel { id }, &[]));
        loop {
            match events.recv_timeout(POLL_INTERVAL) {
                Ok((Answer::Ended { spent, made, .. }, bytes)) => {
                    left.spend(spent);
                    return made.map(|made| (made, bytes));
                }
                Ok(_) => begun = Some(Instant::now()),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(CompileError::unavailable(self.link.gone()));
                }
            }
            let stage = begun.map_or(Stage::Waiting, |begun| Stage::Compiling(begun.elapsed()));
            if let ControlFlow::Break(()) = watch(stage) {
                cancel();
                // Waits for the broker's answer: by then, the component's worker has ended.
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
}

fn unanswered() -> CompileError {
    CompileError::unavailable("the compile broker does not answer")
}

impl Told {
    fn take(
        &self,
        requests: &Mutex<Requests<Sender<Answered>>>,
        (answer, bytes): Answered,
        engine: EngineHash,
    ) -> Result<(), String> {
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
            Answer::Begun { id } => lock(requests).senders.get(id).cloned(),
            Answer::Ended { id, .. } => lock(requests).senders.remove(id),
        };
        if let Some(sender) = sender {
            // The caller may have stopped waiting.
            let _ = sender.send((answer, bytes));
        }
        Ok(())
    }
}
