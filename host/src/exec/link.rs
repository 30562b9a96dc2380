//! The host's end of the connection to the broker of programs.

use std::collections::HashMap;
use std::io;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio::sync::oneshot;

use super::frame::{self, Run};
use toolward_helper::{self as helper, lock};

/// The connection, and the process at its other end.
#[derive(Debug)]
pub(super) struct Link {
    child: Mutex<Child>,
    writer: Arc<Mutex<UnixStream>>,
    /// Read from once the first input is sent: until then this process must have no second thread.
    listening: OnceLock<()>,
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
    senders: HashMap<u64, oneshot::Sender<Run>>,
    /// Why the connection ended, once it has.
    ended: Option<String>,
}

/// Ends a run that nobody waits for any more.
struct Cancel {
    id: u64,
    writer: Arc<Mutex<UnixStream>>,
    shared: Arc<Shared>,
}

impl Drop for Cancel {
    fn drop(&mut self) {
        // One that was answered has no sender.
        if lock(&self.shared.waiting)
            .senders
            .remove(&self.id)
            .is_some()
        {
            let _ = frame::cancel(&mut *lock(&self.writer), self.id);
        }
    }
}

impl Link {
    pub(super) fn new(child: Child, socket: UnixStream, output_bytes: u64) -> Self {
        Self {
            child: Mutex::new(child),
            writer: Arc::new(Mutex::new(socket)),
            listening: OnceLock::new(),
            shared: Arc::default(),
            output_bytes: usize::try_from(output_bytes).unwrap_or(usize::MAX),
        }
    }

    /// Runs the program of a line, until it ends or the future is dropped.
    pub(super) async fn run(&self, line: u32, input: String) -> Result<Run, String> {
        self.listen()?;
        let (id, ended) = self.shared.register()?;
        let cancel = Cancel {
            id,
            writer: self.writer.clone(),
            shared: self.shared.clone(),
        };
        // The broker reads at once; a large input still takes more than one turn.
        let (writer, shared) = (self.writer.clone(), self.shared.clone());
        let send = move || {
            let mut writer = lock(&writer);
            // A call that is already cancelled is not sent: its cancellation would arrive first. The lock is not
            // held while the input is written, which takes as long as the broker lets it.
            let wanted = lock(&shared.waiting).senders.contains_key(&id);
            match wanted {
                true => frame::run(&mut *writer, id, line, input.as_bytes()),
                false => Ok(()),
            }
        };
        let sent = tokio::task::spawn_blocking(send).await;
        if !matches!(sent, Ok(Ok(()))) {
            return Err(self.shared.gone());
        }
        let run = ended.await.map_err(|_| self.shared.gone());
        drop(cancel);
        run
    }

    /// Starts to read what the broker says, once.
    fn listen(&self) -> Result<(), String> {
        let mut failed = None;
        self.listening.get_or_init(|| {
            let (shared, output_bytes) = (self.shared.clone(), self.output_bytes);
            let begun = lock(&self.writer).try_clone().and_then(|mut socket| {
                std::thread::Builder::new()
                    .name("exec-broker".to_owned())
                    .spawn(move || shared.read(&mut socket, output_bytes))
            });
            failed = begun.err();
        });
        match failed {
            None => Ok(()),
            Some(error) => {
                let problem = format!("the broker of programs can't be listened to: {error}");
                self.shared.end(&problem);
                Err(problem)
            }
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let child = self.child.get_mut().unwrap_or_else(PoisonError::into_inner);
        helper::end(child, &lock(&self.writer));
    }
}

impl Shared {
    fn register(&self) -> Result<(u64, oneshot::Receiver<Run>), String> {
        let mut waiting = lock(&self.waiting);
        if let Some(problem) = &waiting.ended {
            return Err(problem.clone());
        }
        let id = waiting.next;
        waiting.next = id.wrapping_add(1);
        let (sender, receiver) = oneshot::channel();
        waiting.senders.insert(id, sender);
        Ok((id, receiver))
    }

    /// Hands the broker's answers to those who wait for them, until the connection ends.
    fn read(&self, socket: &mut UnixStream, output_bytes: usize) {
        let mut from = io::BufReader::new(socket);
        let problem = loop {
            match Run::read(&mut from, output_bytes) {
                Ok(Some((id, run))) => {
                    // A cancelled run has no receiver.
                    if let Some(sender) = lock(&self.waiting).senders.remove(&id) {
                        let _ = sender.send(run);
                    }
                }
                Ok(None) => break "the broker of programs has ended".to_owned(),
                Err(error) => break format!("the broker of programs can't be understood: {error}"),
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
