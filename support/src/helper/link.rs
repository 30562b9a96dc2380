//! The host's end of the connection to a helper that answers numbered requests.

use std::collections::HashMap;
use std::io::{self, BufReader};
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Outgoing, lock};

/// The connection, and the process at its other end, which ends with the connection. `S` is the
/// receiver of an answer.
#[derive(Debug)]
pub struct Link<S> {
    /// The helper's name in messages.
    name: &'static str,
    child: Mutex<Child>,
    socket: UnixStream,
    /// Set by the first call of [`Link::listen`]. Before that, this process must not have a second
    /// thread.
    outgoing: Mutex<Option<Outgoing>>,
    requests: Arc<Mutex<Requests<S>>>,
}

/// The requests of a connection.
#[derive(Debug)]
pub struct Requests<S> {
    next: u64,
    /// The receivers of all requests without an answer, including requests for which no one waits
    /// any more.
    pub senders: HashMap<u64, S>,
    /// The reason why the connection ended, if it has.
    ended: Option<String>,
}

impl<S> Requests<S> {
    /// Adds a request and returns its number.
    ///
    /// # Errors
    /// The reason, if the connection has ended.
    pub fn add(&mut self, sender: S) -> Result<u64, String> {
        if let Some(problem) = &self.ended {
            return Err(problem.clone());
        }
        let id = self.next;
        self.next = id.wrapping_add(1);
        self.senders.insert(id, sender);
        Ok(id)
    }
}

impl<S: Send + 'static> Link<S> {
    /// A connection without any requests yet.
    pub fn new(name: &'static str, child: Child, socket: UnixStream) -> Self {
        let requests = Requests {
            next: 0,
            senders: HashMap::new(),
            ended: None,
        };
        Self {
            name,
            child: Mutex::new(child),
            socket,
            outgoing: Mutex::default(),
            requests: Arc::new(Mutex::new(requests)),
        }
    }

    /// Its requests.
    pub fn requests(&self) -> MutexGuard<'_, Requests<S>> {
        lock(&self.requests)
    }

    /// The reason why the connection has ended, and so why a request has no answer.
    pub fn gone(&self) -> String {
        let ended = self.requests().ended.clone();
        ended.unwrap_or_else(|| format!("{} has ended", self.name))
    }

    /// Starts the thread that reads the helper's answers and passes each to `take`. Later calls
    /// start no further thread. Returns the queue of messages to the helper. If `take` refuses an
    /// answer, the connection counts as ended.
    ///
    /// # Errors
    /// If no thread can be started. The next call tries again.
    pub fn listen<A>(
        &self,
        thread: &str,
        read: impl Fn(&mut BufReader<UnixStream>) -> io::Result<Option<A>> + Send + 'static,
        take: impl Fn(&Mutex<Requests<S>>, A) -> Result<(), String> + Send + 'static,
    ) -> Result<Outgoing, String> {
        let mut known = lock(&self.outgoing);
        if let Some(outgoing) = &*known {
            return Ok(outgoing.clone());
        }
        let (name, requests) = (self.name, self.requests.clone());
        let begun = Outgoing::start(&format!("{thread}-send"), &self.socket).and_then(|outgoing| {
            let mut from = BufReader::new(self.socket.try_clone()?);
            let listen = move || {
                let problem = loop {
                    match read(&mut from).map(|answer| answer.map(|answer| take(&requests, answer)))
                    {
                        Ok(Some(Ok(()))) => {}
                        Ok(Some(Err(problem))) => break problem,
                        Ok(None) => break format!("{name} has ended"),
                        Err(error) => break format!("{name} can't be understood: {error}"),
                    }
                };
                let mut requests = lock(&requests);
                requests.ended = Some(problem);
                requests.senders.clear();
            };
            let thread = std::thread::Builder::new().name(thread.to_owned());
            thread.spawn(listen)?;
            Ok(outgoing)
        });
        let outgoing = begun.map_err(|error| format!("{name} can't be listened to: {error}"))?;
        Ok(known.insert(outgoing).clone())
    }
}

impl<S> Drop for Link<S> {
    fn drop(&mut self) {
        let child = self.child.get_mut().unwrap_or_else(PoisonError::into_inner);
        super::end(child, &self.socket);
    }
}
