//! Which runtime a call runs on: that of its connection, or another one where it would hold up the connection.
//!
//! A client that waits for each answer gets it soonest from the thread that read its message: to wake another takes
//! longer than a short call.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;
use toolward_host::{Host, Reply, Request};

/// A poll that takes this long and does not finish the call moves it to the other runtime. It is less than a guest
/// computes between two yields.
const LONG_POLL: Duration = Duration::from_micros(100);

/// In the extensions of a call that came while other calls of its connection were open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OthersOpen;

/// The host that calls are made to, and what decides where one runs.
#[derive(Clone, Copy)]
pub(crate) struct CallRuntime<'a> {
    pub(crate) host: &'a Host,
    /// The runtime for calls that would hold up the connection. Without one, none is moved.
    pub(crate) long_calls: Option<&'a Handle>,
    /// Whether other calls of the connection are open.
    pub(crate) others_open: bool,
}

impl CallRuntime<'_> {
    pub(crate) async fn call(self, request: Request) -> Reply {
        let host = self.host.clone();
        // Its future is large, and would be moved with those that it is part of.
        let mut call = Box::pin(async move { host.call(request).await });
        let Some(long_calls) = self.long_calls else {
            return call.await;
        };
        if !self.others_open {
            let reply = poll_fn(|context| {
                let began = Instant::now();
                match call.as_mut().poll(context) {
                    Poll::Ready(reply) => Poll::Ready(Some(reply)),
                    Poll::Pending if began.elapsed() >= LONG_POLL => Poll::Ready(None),
                    Poll::Pending => Poll::Pending,
                }
            });
            if let Some(reply) = reply.await {
                return reply;
            }
        }
        run_on(long_calls, call).await
    }
}

/// Runs the rest of a call as a task of `runtime`. Dropping the returned future cancels the call.
async fn run_on(
    runtime: &Handle,
    call: Pin<Box<impl Future<Output = Reply> + Send + 'static>>,
) -> Reply {
    match AbortOnDropHandle::new(runtime.spawn(call)).await {
        Ok(reply) => reply,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime was shut down, which ends what it served.
            Err(_) => std::future::pending().await,
        },
    }
}

#[cfg(test)]
mod tests;
