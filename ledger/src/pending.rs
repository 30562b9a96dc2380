//! Answers that may come later, for async callers and for threads.

use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use crate::error::Error;

/// An answer of a [`Recorder`](crate::Recorder), which may come later. What was asked for is done whether or not
/// the answer is awaited, once there is room for it in the queue.
pub struct Pending<T>(Inner<T>);

enum Inner<T> {
    Ready(Option<Result<T, Error>>),
    Later(Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>),
}

impl<T> Pending<T> {
    /// An answer that is there.
    #[must_use]
    pub fn ready(answer: Result<T, Error>) -> Self {
        Self(Inner::Ready(Some(answer)))
    }

    /// An answer that a future gives.
    pub fn later(future: impl Future<Output = Result<T, Error>> + Send + 'static) -> Self {
        Self(Inner::Later(Box::pin(future)))
    }

    /// The same answer, but with `why` in place of [`Error::Closed`], where that is known when the answer comes.
    pub(crate) fn closed_because(self, why: impl FnOnce() -> Option<Error> + Send + 'static) -> Self
    where
        T: 'static,
    {
        let named = |error| match error {
            Error::Closed => why().unwrap_or(Error::Closed),
            error => error,
        };
        match self.0 {
            Inner::Ready(Some(Err(error))) => Self::ready(Err(named(error))),
            Inner::Ready(_) => self,
            Inner::Later(answer) => Self::later(async move { answer.await.map_err(named) }),
        }
    }

    /// Blocks the thread until the answer is there.
    ///
    /// # Errors
    /// The answer's.
    pub fn wait(self) -> Result<T, Error>
    where
        T: Unpin,
    {
        // A waker would be allocated.
        if let Self(Inner::Ready(answer)) = self {
            return answer.unwrap_or(Err(Error::Closed));
        }
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut context = Context::from_waker(&waker);
        let mut pending = pin!(self);
        loop {
            match pending.as_mut().poll(&mut context) {
                Poll::Ready(answer) => return answer,
                Poll::Pending => std::thread::park(),
            }
        }
    }
}

impl<T: Unpin> Future for Pending<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Inner::Ready(answer) => Poll::Ready(answer.take().unwrap_or(Err(Error::Closed))),
            Inner::Later(future) => future.as_mut().poll(context),
        }
    }
}

impl<T> fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pending(..)")
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Where an answer is put. Who drops it without an answer says that the ledger is closed.
pub(crate) struct Reply<T>(Arc<Slot<T>>);

/// Where it is taken from.
pub(crate) struct Answer<T>(Arc<Slot<T>>);

type Slot<T> = Mutex<(Option<Result<T, Error>>, Option<Waker>)>;

pub(crate) fn channel<T>() -> (Reply<T>, Answer<T>) {
    let slot = Arc::new(Mutex::new((None, None)));
    (Reply(slot.clone()), Answer(slot))
}

impl<T> Reply<T> {
    pub(crate) fn send(self, answer: Result<T, Error>) {
        self.put(answer);
    }

    fn put(&self, answer: Result<T, Error>) {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.0.is_none() {
            slot.0 = Some(answer);
        }
        let waker = slot.1.take();
        drop(slot);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        // Nobody waits for the second of two answers.
        self.put(Err(Error::Closed));
    }
}

impl<T> Future for Answer<T> {
    type Output = Result<T, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match slot.0.take() {
            Some(answer) => Poll::Ready(answer),
            None => {
                slot.1 = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}
