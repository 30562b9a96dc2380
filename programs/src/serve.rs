//! The broker's own process. A guest that escapes could take over the host after the start, so the
//! host's messages are not trusted. They contain only the number of a table, and an input that must
//! be JSON and not too large.

use std::collections::HashMap;
use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::broker::Broker;
use crate::file::ExecProblem;
use crate::frame::{Answer, Ending, PROTOCOL, Request, Run};
use crate::job;
use toolward_support::helper::frames::send;
use toolward_support::helper::{connection, lock};

/// The most programs that run at once.
const AT_ONCE: usize = 16;

/// The most runs, including ended runs whose output the host has not read yet. Without this limit,
/// a host that never reads could fill this process's memory.
const MAX_THREADS: usize = 2 * AT_ONCE;

/// Serves one host as the broker of its programs, until the host disconnects. Meant for the process
/// that [`ExecBroker`](crate::ExecBroker) starts, with the connection as standard input.
///
/// # Errors
///
/// If standard input is not a connection to a host, or the host violates the protocol.
pub fn run_broker() -> io::Result<()> {
    let stream = UnixStream::from(OwnedFd::from(connection()?));
    let mut reader = io::BufReader::new(stream.try_clone()?);
    let start = match Request::read(&mut reader, true, 0)? {
        Some((Request::Start(start), _)) if start.protocol == PROTOCOL => start,
        Some(_) => return Err(io::Error::other("the host does not begin with a start")),
        None => return Ok(()),
    };
    let input_bytes = start.input_bytes;
    let serving = Serving {
        broker: Broker::new(*start)?,
        host: Mutex::new(stream),
        running: Mutex::default(),
        threads: AtomicUsize::new(0),
    };
    std::thread::scope(|scope| {
        let ended = serving.listen(&mut reader, input_bytes, scope);
        serving.cancel_all();
        // This also ends jobs that wait for the host to read their output.
        let _ = reader.get_ref().shutdown(Shutdown::Both);
        ended
    })
}

/// The state of a run.
enum State {
    /// The host has not confirmed the run yet. It does not confirm a run that was taken too late.
    Taken { line: usize, input: Option<Vec<u8>> },
    /// The run was started. The flag is true once the run is cancelled.
    Running(Arc<AtomicBool>),
}

struct Serving {
    broker: Broker,
    host: Mutex<UnixStream>,
    /// The runs that have not ended.
    running: Mutex<HashMap<u64, State>>,
    /// The number of threads that run a program or send its output.
    threads: AtomicUsize,
}

impl Serving {
    /// Reads requests until the host disconnects or violates the protocol.
    fn listen<'s>(
        &'s self,
        from: &mut impl io::Read,
        input_bytes: usize,
        scope: &'s std::thread::Scope<'s, '_>,
    ) -> io::Result<()> {
        while let Some((request, input)) = Request::read(from, false, input_bytes)? {
            match request {
                Request::Start(_) => return Err(io::Error::other("a second start")),
                Request::Cancel { id } => {
                    let mut running = lock(&self.running);
                    match running.get(&id) {
                        Some(State::Running(cancelled)) => cancelled.store(true, Ordering::Relaxed),
                        Some(State::Taken { .. }) => {
                            running.remove(&id);
                            drop(running);
                            self.answer(id, &Ending::Cancelled.into());
                        }
                        // The run was answered in the meantime.
                        None => {}
                    }
                }
                Request::Go { id } => self.go(id, scope),
                Request::Run { id, line, is_trial } => {
                    let input = (!is_trial).then_some(input);
                    if line >= self.broker.lines.len() {
                        return Err(io::Error::other("a line that is not there"));
                    }
                    let is_json =
                        |input| serde_json::from_slice::<serde::de::IgnoredAny>(input).is_ok();
                    if !input.as_deref().is_none_or(is_json) {
                        let problem = ExecProblem::Unstarted("the input is not JSON".to_owned());
                        self.answer(id, &Ending::Refused(problem).into());
                        continue;
                    }
                    let mut running = lock(&self.running);
                    if running.contains_key(&id) {
                        return Err(io::Error::other("a run that is there already"));
                    }
                    if running.len() >= AT_ONCE {
                        drop(running);
                        self.answer(id, &Ending::Busy.into());
                        continue;
                    }
                    running.insert(id, State::Taken { line, input });
                    drop(running);
                    // Errors are ignored: if the host is gone, reading its requests fails, too.
                    let _ = send(&mut *lock(&self.host), &Answer::Taken { id }, &[]);
                }
            }
        }
        Ok(())
    }

    /// Starts a run that was taken, unless it was cancelled in the meantime.
    fn go<'s>(&'s self, id: u64, scope: &'s std::thread::Scope<'s, '_>) {
        let mut running = lock(&self.running);
        let Some(State::Taken { line, input }) = running.get_mut(&id) else {
            return;
        };
        let (line, input) = (*line, input.take());
        let cancelled = Arc::<AtomicBool>::default();
        running.insert(id, State::Running(cancelled.clone()));
        drop(running);
        let threads = self.threads.fetch_add(1, Ordering::Relaxed);
        // Each run has a separate thread, so that its processes get a separate namespace.
        let work = move || {
            let cancelled = || cancelled.load(Ordering::Relaxed);
            let line = self.broker.lines.get(line);
            let ended = line.map_or(Ending::Cancelled.into(), |line| {
                job::run(&self.broker, line, input.as_deref(), cancelled)
            });
            lock(&self.running).remove(&id);
            self.answer(id, &ended);
            self.threads.fetch_sub(1, Ordering::Relaxed);
        };
        let spawned = threads < MAX_THREADS
            && std::thread::Builder::new()
                .spawn_scoped(scope, work)
                .is_ok();
        if !spawned {
            self.threads.fetch_sub(1, Ordering::Relaxed);
            lock(&self.running).remove(&id);
            self.answer(id, &Ending::Busy.into());
        }
    }

    fn cancel_all(&self) {
        for state in lock(&self.running).values() {
            if let State::Running(cancelled) = state {
                cancelled.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Sends the end of a run. Ignores errors: if the host is gone, reading its requests fails,
    /// too.
    fn answer(&self, id: u64, ended: &Run) {
        let _ = ended.write(&mut *lock(&self.host), id);
    }
}
