//! What records calls, [`Writer`](crate::Writer) in this process or something that reaches one elsewhere, and its
//! answers, which may come later.

use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use futures_channel::oneshot;

use crate::entry::{Entry, Given, Repeated};
use crate::error::Error;
use crate::payload::PayloadKind;

/// When an append is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Once the row is on the disk.
    Disk,
    /// Once it is in the queue. It is written within 20 ms.
    Queued,
}

/// What records calls.
pub trait Recorder: Send + Sync {
    /// Records an entry. It is in the queue when this returns, unless the queue is full: then it gets there once
    /// the answer is awaited.
    fn append(&self, entry: Entry, durability: Durability) -> Pending<()>;

    /// Waits until all that was appended before is on the disk.
    fn flush(&self) -> Pending<()>;

    /// Whether an id was given before, by this principal for this tool.
    fn given(&self, given: Given) -> Pending<Option<Repeated>>;

    /// The most bytes of a payload that is kept; 0 where none is. `matters` is [`Entry::matters`]. Of a longer one
    /// the size is enough ([`Entry::size`]).
    fn keeps(&self, kind: PayloadKind, matters: bool) -> usize {
        let _ = (kind, matters);
        usize::MAX
    }
}

/// An answer of a [`Recorder`](crate::Recorder), which may come later. What was asked for is done whether or not
/// the answer is awaited, once there is room for it in the queue.
pub struct Pending<T>(Inner<T>);

enum Inner<T> {
    Ready(Option<Result<T, Error>>),
    Later(Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>),
}

impl<T> Pending<T> {
    /// A present answer.
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

    /// Blocks the thread until the answer comes.
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

/// Where an answer is put.
pub(crate) struct AnswerSender<T>(oneshot::Sender<Result<T, Error>>);

impl<T> AnswerSender<T> {
    pub(crate) fn send(self, answer: Result<T, Error>) {
        // The caller may wait no more.
        let _ = self.0.send(answer);
    }
}

/// An answer that comes later. It is [`Error::Closed`] once its other end is dropped.
pub(crate) fn channel<T: Send + 'static>() -> (AnswerSender<T>, Pending<T>) {
    let (reply, answer) = oneshot::channel();
    let answer = async move { answer.await.unwrap_or(Err(Error::Closed)) };
    (AnswerSender(reply), Pending::later(answer))
}
