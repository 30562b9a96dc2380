//! The host's end of the connection to the broker of programs.

use std::collections::HashMap;
use std::io;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::frame::{Answer, Ending, Request, Run};
use toolward_support::helper::{self, Outgoing, frames::send, lock};

/// Runs that the broker has not answered, with those that nobody waits for any more: beyond it, it hangs or is busy.
const MAX_OPEN: usize = 256;
/// Of these, runs that the broker has not taken: their inputs wait in memory.
const MAX_UNTAKEN: usize = 32;
/// How long the broker has to take a run. It does so at once, unless it hangs.
const TAKEN_WITHIN: Duration = Duration::from_secs(5);

/// The connection, and the process at its other end.
#[derive(Debug)]
pub(crate) struct Link {
    child: Mutex<Child>,
    socket: UnixStream,
    /// Set once the first input is sent: until then this process must have no second thread.
    outgoing: Mutex<Option<Outgoing>>,
    shared: Arc<Shared>,
    output_bytes: usize,
}

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    /// Of all runs that have no answer yet.
    senders: HashMap<u64, Senders>,
    /// Why the connection ended, once it has.
    ended: Option<String>,
}

/// Who waits for a run.
#[derive(Debug)]
struct Senders {
    /// `None` once the broker has it.
    taken: Option<oneshot::Sender<()>>,
    ended: oneshot::Sender<Run>,
}

/// Whether a request was taken, and how its program ended.
type Receivers = (oneshot::Receiver<()>, oneshot::Receiver<Run>);

/// Ends a run that nobody waits for any more.
struct Cancel {
    id: u64,
    outgoing: Outgoing,
    shared: Arc<Shared>,
}

impl Drop for Cancel {
    fn drop(&mut self) {
        // One that was answered has no sender.
        if lock(&self.shared.waiting).senders.contains_key(&self.id) {
            let mut frames = Vec::new();
            if send(&mut frames, &Request::Cancel { id: self.id }, &[]).is_ok() {
                self.outgoing.send(frames);
            }
        }
    }
}

impl Link {
    pub(crate) fn new(child: Child, socket: UnixStream, output_bytes: u64) -> Self {
        Self {
            child: Mutex::new(child),
            socket,
            outgoing: Mutex::default(),
            shared: Arc::default(),
            output_bytes: usize::try_from(output_bytes).unwrap_or(usize::MAX),
        }
    }

    /// Runs the program of a line, until it ends or the future is dropped. Without an input, the kernel only loads it.
    /// A run that is dropped before the broker has taken it never starts, however late the broker reads of it.
    pub(crate) async fn run(&self, line: usize, input: Option<String>) -> Result<Run, String> {
        let outgoing = self.listen()?;
        let Some((id, (taken, ended))) = self.shared.register()? else {
            return Ok(Ending::Busy.into());
        };
        let is_trial = input.is_none();
        let request = Request::Run { id, line, is_trial };
        let mut frames = Vec::new();
        let input = input.unwrap_or_default();
        send(&mut frames, &request, &[input.as_bytes()]).map_err(|error| error.to_string())?;
        outgoing.send(frames);
        let cancel = Cancel {
            id,
            outgoing: outgoing.clone(),
            shared: self.shared.clone(),
        };
        match tokio::time::timeout(TAKEN_WITHIN, taken).await {
            Err(_elapsed) => return Ok(Ending::Silent.into()),
            Ok(Ok(())) => {
                let mut frames = Vec::new();
                let go = Request::Go { id };
                send(&mut frames, &go, &[]).map_err(|error| error.to_string())?;
                outgoing.send(frames);
            }
            // It was refused, or the connection has ended.
            Ok(Err(_)) => {}
        }
        let run = ended.await.map_err(|_| self.shared.gone());
        drop(cancel);
        run
    }

    /// Starts to read what the broker says, once. Where no thread can be started, the next run tries again.
    fn listen(&self) -> Result<Outgoing, String> {
        let mut known = lock(&self.outgoing);
        if let Some(outgoing) = &*known {
            return Ok(outgoing.clone());
        }
        let (shared, output_bytes) = (self.shared.clone(), self.output_bytes);
        let begun = Outgoing::start("exec-broker-send", &self.socket).and_then(|outgoing| {
            let mut socket = self.socket.try_clone()?;
            std::thread::Builder::new()
                .name("exec-broker".to_owned())
                .spawn(move || shared.read(&mut socket, output_bytes))?;
            Ok(outgoing)
        });
        let outgoing = begun
            .map_err(|error| format!("the broker of programs can't be listened to: {error}"))?;
        Ok(known.insert(outgoing).clone())
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let child = self.child.get_mut().unwrap_or_else(PoisonError::into_inner);
        helper::end(child, &self.socket);
    }
}

fn not_understood(error: &io::Error) -> String {
    format!("the broker of programs can't be understood: {error}")
}

impl Shared {
    /// A number for a run; `None` where too many have no answer.
    fn register(&self) -> Result<Option<(u64, Receivers)>, String> {
        let mut waiting = lock(&self.waiting);
        if let Some(problem) = &waiting.ended {
            return Err(problem.clone());
        }
        let untaken = waiting.senders.values().filter(|one| one.taken.is_some());
        if waiting.senders.len() >= MAX_OPEN || untaken.count() >= MAX_UNTAKEN {
            return Ok(None);
        }
        let id = waiting.next;
        waiting.next = id.wrapping_add(1);
        let (taken, is_taken) = oneshot::channel();
        let (ended, has_ended) = oneshot::channel();
        let senders = Senders {
            taken: Some(taken),
            ended,
        };
        waiting.senders.insert(id, senders);
        Ok(Some((id, (is_taken, has_ended))))
    }

    /// Hands the broker's answers to those who wait for them, until the connection ends.
    fn read(&self, socket: &mut UnixStream, output_bytes: usize) {
        let mut from = io::BufReader::new(socket);
        let problem = loop {
            match Answer::read(&mut from, output_bytes) {
                // A cancelled run has no receiver.
                Ok(Some((Answer::Taken { id }, _))) => {
                    let mut waiting = lock(&self.waiting);
                    let senders = waiting.senders.get_mut(&id);
                    if let Some(taken) = senders.and_then(|senders| senders.taken.take()) {
                        let _ = taken.send(());
                    }
                }
                Ok(Some((Answer::Ended { id, ending, stdout }, bytes))) => {
                    let run = match Run::of(ending, stdout, bytes) {
                        Ok(run) => run,
                        Err(error) => break not_understood(&error),
                    };
                    if let Some(senders) = lock(&self.waiting).senders.remove(&id) {
                        let _ = senders.ended.send(run);
                    }
                }
                Ok(None) => break "the broker of programs has ended".to_owned(),
                Err(error) => break not_understood(&error),
            }
        };
        self.end(&problem);
    }

    fn end(&self, problem: &str) {
        let mut waiting = lock(&self.waiting);
        waiting.ended = Some(problem.to_owned());
        waiting.senders.clear();
    }

    fn gone(&self) -> String {
        let waiting = lock(&self.waiting);
        let problem = waiting.ended.as_deref();
        problem
            .unwrap_or("the broker of programs has ended")
            .to_owned()
    }
}
