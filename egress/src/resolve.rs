//! Names to addresses, once per connection. What is answered is checked by the
//! caller.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::Semaphore;

/// The answer of a [`Resolve`].
pub type Resolving<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// A source of addresses.
pub trait Resolve: Send + Sync + 'static {
    /// All addresses of `host`, a name in ASCII, in the order to try them.
    fn resolve<'a>(&'a self, host: &'a str) -> Resolving<'a>;
}

/// Lookups at once. One that hangs cannot be cancelled and holds a thread.
const LOOKUPS: usize = 64;

/// The system's own resolver (`getaddrinfo`), on the runtime's blocking threads.
#[derive(Debug)]
pub struct SystemResolver {
    permits: Arc<Semaphore>,
}

impl Default for SystemResolver {
    fn default() -> Self {
        let permits = Arc::new(Semaphore::new(LOOKUPS));
        SystemResolver { permits }
    }
}

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> Resolving<'a> {
        Box::pin(async move {
            let permits = Arc::clone(&self.permits);
            let permit = permits.acquire_owned().await.map_err(io::Error::other)?;
            let host = host.to_owned();
            let lookup = move || {
                // Held by the thread, not by whoever waits for it.
                let _permit = permit;
                let answers = (host.as_str(), 0).to_socket_addrs()?;
                Ok(answers.map(|answer| answer.ip()).collect())
            };
            let task = tokio::task::spawn_blocking(lookup);
            task.await.map_err(io::Error::other)?
        })
    }
}
