//! The broker's own process: receives components from the host, lets a worker compile each, and
//! signs and stores the result. A guest that escapes could take over the host after the start, so
//! only the start message is trusted.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use toolward_confine::compile_profiles;
use toolward_signing::Digest;
use toolward_signing::key::SigningKey;
use toolward_support::helper::frames::send;
use toolward_support::helper::{connection, lock};

use super::super::artifact::Claim;
use super::super::cache::{self, Cache};
use super::super::limits::{CompileCost, CompileError, Result};
use super::frame::{Answer, Made, PROTOCOL, Request, Start};
use super::job::{Compiled, Worker};
use crate::engine::{EngineHash, compiling_engine};
use crate::limiter::MemoryLayout;

/// The most unanswered requests in addition to one for each worker. A host has one permit for each
/// worker, but requests that it abandoned may still be unanswered. A host that sends more violates
/// the protocol.
pub(super) const QUEUE: usize = 4;

/// Serves one host as its broker, until the host disconnects. Meant for the process that
/// [`Broker`](super::Broker) starts, with the connection as standard input.
///
/// # Errors
///
/// If standard input is not a connection to a host, or the host violates the protocol.
pub fn run_broker() -> io::Result<()> {
    let stream = UnixStream::from(OwnedFd::from(connection()?));
    let mut reader = io::BufReader::new(stream.try_clone()?);
    let start = match Request::read(&mut reader, 0)? {
        Some((Request::Start(start), _)) if start.protocol == PROTOCOL => start,
        Some(_) => return Err(io::Error::other("the host does not begin with a start")),
        None => return Ok(()),
    };
    let component_bytes = start.component_bytes;
    let (program, cache) = (start.program.clone(), start.cache.clone());
    let workers = start.workers.max(1);
    let mut writer = stream.try_clone()?;
    let (broker, not_kept) = match Serving::new(start, stream) {
        Ok(made) => made,
        Err(problem) => return send(&mut writer, &Answer::Unusable(problem), &[]),
    };
    let confined = compile_profiles::broker(program.as_ref(), cache.as_deref().map(Path::new));
    if let Err(error) = confined {
        return send(&mut writer, &Answer::Unusable(error.to_string()), &[]);
    }
    let ready = Answer::Ready {
        public: *broker.key().public().as_bytes(),
        engines: broker.engines.map(|(engine, _)| engine),
    };
    broker.answer(&ready, &[]);
    if let Some(problem) = not_kept {
        broker.answer(&Answer::NotKept(problem), &[]);
    }
    toolward_support::program_pages::release();

    std::thread::scope(|scope| {
        let ended = broker.listen(&mut reader, component_bytes, workers, scope);
        broker.end();
        ended
    })
}

enum Store {
    Cache(Cache),
    /// Artifacts are returned to the host, signed with a key of this process.
    None(SigningKey),
}

/// The error if the broker can't compile a component now.
fn unavailable(problem: &str) -> CompileError {
    CompileError::unavailable(format!("the compile broker can't compile it: {problem}"))
}

/// One component to be compiled.
struct Task {
    id: u64,
    engine: EngineHash,
    layout: MemoryLayout,
    component: Digest,
    budget: CompileCost,
    wasm: Vec<u8>,
    cancelled: Arc<AtomicBool>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Task>,
    /// The unanswered requests.
    open: HashMap<u64, Arc<AtomicBool>>,
    /// The number of threads that compile, or wait for a component.
    threads: usize,
    ended: bool,
}

struct Serving {
    engines: [(EngineHash, MemoryLayout); 2],
    store: Store,
    worker: Worker,
    host: Mutex<UnixStream>,
    queue: Mutex<Queue>,
    more: Condvar,
}

impl Serving {
    /// Creates the state of the broker. If the cache can't be opened because its disk is full or
    /// read-only, also returns this problem; then nothing is cached.
    fn new(start: Start, host: UnixStream) -> Result<(Self, Option<String>), String> {
        let engine_of = |layout| match compiling_engine(layout) {
            Ok(engine) => Ok((EngineHash::of(&engine), layout)),
            Err(error) => Err(format!("{error:#}")),
        };
        let engines = [
            engine_of(MemoryLayout::Pooled)?,
            engine_of(MemoryLayout::Compact)?,
        ];
        let own = || SigningKey::generate().map_err(|error| error.to_string());
        let (store, not_kept) = match start.cache.map(Cache::open) {
            Some(Ok(cache)) => (Store::Cache(cache.limit(start.cache_limit)), None),
            Some(Err(error)) if cache::takes_nothing(&error) => {
                (Store::None(own()?), Some(error.to_string()))
            }
            Some(Err(error)) => return Err(error.to_string()),
            None => (Store::None(own()?), None),
        };
        let serving = Self {
            engines,
            store,
            worker: Worker {
                program: start.program,
                arguments: start.arguments,
                limits: start.limits,
            },
            host: Mutex::new(host),
            queue: Mutex::default(),
            more: Condvar::new(),
        };
        Ok((serving, not_kept))
    }

    fn key(&self) -> &SigningKey {
        match &self.store {
            Store::Cache(cache) => cache.key(),
            Store::None(key) => key,
        }
    }

    /// Compiles a component, unless the cache has it. Returns the artifact if the cache does not
    /// keep it, for example for lack of room.
    fn make(&self, task: &Task, spent: &mut CompileCost) -> Result<(Made, Vec<u8>)> {
        let claim = Claim {
            component: &task.component,
            engine: &task.engine,
        };
        let cached = Ok((Made::Cached, Vec::new()));
        if let Store::Cache(cache) = &self.store
            && cache.holds(claim)
        {
            return cached;
        }
        self.answer(&Answer::Begun { id: task.id }, &[]);
        let cancelled = || task.cancelled.load(Ordering::Relaxed);
        let (processor, compiled) =
            self.worker
                .compile(task.layout, &task.wasm, task.budget, cancelled);
        spent.processor = processor;
        let Compiled { code, facts, .. } = compiled?;
        if let Store::Cache(cache) = &self.store {
            match cache.put(claim, &code, &facts) {
                Ok(true) => {
                    spent.artifact_bytes = code.len() as u64;
                    return cached;
                }
                Ok(false) => {}
                Err(error) => self.answer(&Answer::NotKept(error.to_string()), &[]),
            }
        }
        let signature = claim.sign(&blake3::hash(&code), self.key()).to_vec();
        Ok((Made::Artifact { signature }, code))
    }

    /// Reads requests until the host disconnects or violates the protocol.
    fn listen<'s>(
        &'s self,
        from: &mut impl io::Read,
        component_bytes: usize,
        workers: usize,
        scope: &'s std::thread::Scope<'s, '_>,
    ) -> io::Result<()> {
        while let Some((request, wasm)) = Request::read(from, component_bytes)? {
            match request {
                Request::Start(_) => return Err(io::Error::other("a second start")),
                Request::Cancel { id } => {
                    // The request may have been answered in the meantime.
                    if let Some(cancelled) = lock(&self.queue).open.get(&id) {
                        cancelled.store(true, Ordering::Relaxed);
                    }
                }
                Request::Compile {
                    id,
                    engine,
                    component,
                    budget,
                } => {
                    let known = self.engines.iter().find(|(known, _)| *known == engine);
                    let Some((_, layout)) = known.filter(|_| Digest::of(&wasm) == component) else {
                        return Err(io::Error::other("a component that is not what it says"));
                    };
                    let mut queue = lock(&self.queue);
                    if queue.open.len() >= workers.saturating_add(QUEUE)
                        || queue.open.contains_key(&id)
                    {
                        return Err(io::Error::other("too many requests"));
                    }
                    let cancelled = Arc::<AtomicBool>::default();
                    if queue.threads < workers {
                        let work = move || self.work();
                        let started = std::thread::Builder::new().spawn_scoped(scope, work);
                        match started {
                            Ok(_) => queue.threads += 1,
                            // The existing threads take the request.
                            Err(_) if queue.threads > 0 => {}
                            Err(error) => {
                                drop(queue);
                                let answer = Answer::Ended {
                                    id,
                                    spent: CompileCost::default(),
                                    made: Err(unavailable(&error.to_string())),
                                };
                                self.answer(&answer, &[]);
                                continue;
                            }
                        }
                    }
                    queue.open.insert(id, cancelled.clone());
                    queue.waiting.push_back(Task {
                        id,
                        engine,
                        layout: *layout,
                        component,
                        budget,
                        wasm,
                        cancelled,
                    });
                    drop(queue);
                    self.more.notify_one();
                }
            }
        }
        Ok(())
    }

    /// Compiles the queued components, one after the other, until [`Self::end`] is called.
    fn work(&self) {
        while let Some(task) = self.next() {
            let id = task.id;
            let mut spent = CompileCost::default();
            // After a panic, the request is still answered, and the thread continues.
            let made = catch_unwind(AssertUnwindSafe(|| self.make(&task, &mut spent)));
            let made = made.unwrap_or_else(|_| Err(unavailable("it failed over the component")));
            let (made, bytes) = made.map_or_else(
                |error| (Err(error), Vec::new()),
                |(made, bytes)| (Ok(made), bytes),
            );
            lock(&self.queue).open.remove(&id);
            self.answer(&Answer::Ended { id, spent, made }, &bytes);
        }
    }

    fn next(&self) -> Option<Task> {
        let mut queue = lock(&self.queue);
        loop {
            if queue.ended {
                return None;
            }
            if let Some(task) = queue.waiting.pop_front() {
                return Some(task);
            }
            queue = self
                .more
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Cancels all compilations and ends the threads.
    fn end(&self) {
        let mut queue = lock(&self.queue);
        queue.ended = true;
        for cancelled in queue.open.values() {
            cancelled.store(true, Ordering::Relaxed);
        }
        drop(queue);
        self.more.notify_all();
    }

    /// Sends an answer. Ignores errors: if the host is gone, reading its requests ends, too.
    fn answer(&self, answer: &Answer, bytes: &[u8]) {
        let mut host = lock(&self.host);
        let _ = send(&mut *host, answer, &[bytes]);
    }
}
