//! The guest's body on its way out: counted, compared with its declared length, and searched for
//! placeholders across its chunks.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;

use crate::call_state::CallState;
use crate::error::{BoxError, Denied, Error, Limit, LimitKind, NetworkError, NetworkKind, Rule};
use crate::secret::placeholder;

/// The guest's body, its type erased.
pub(crate) type GuestBody = UnsyncBoxBody<Bytes, BoxError>;

/// How the body ended, once it has ended. Shared with the task that awaits the response.
#[derive(Debug, Default)]
pub(crate) struct Fate(OnceLock<Result<(), Error>>);

impl Fate {
    /// Whether the whole body was handed over.
    pub(crate) fn is_sent(&self) -> bool {
        matches!(self.0.get(), Some(Ok(())))
    }

    /// Why the body was not handed over.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.0.get()?.clone().err()
    }
}

/// A body in the form that a connection takes. It is boxed because each connection has room for
/// many requests, but holds only one at a time.
pub(crate) type Outgoing = Box<RequestBody>;

/// A body that is sent.
pub(crate) struct RequestBody {
    /// The guest's body; `None` after its end.
    guest: Option<GuestBody>,
    call: Arc<CallState>,
    pub(super) fate: Arc<Fate>,
    /// The length to declare, if it is known.
    pub(super) length: Option<u64>,
    /// The number of bytes that came from the guest.
    pub(super) seen: u64,
    /// Chunks that were read but not sent yet.
    ready: VecDeque<Bytes>,
    /// Whether to search for placeholders, which is needed if the route has secrets.
    search: bool,
    /// The end of the last chunk, which may start a placeholder.
    held: BytesMut,
}

impl RequestBody {
    /// Creates a body. `declared` is the length that the head declares, if it does. With `search`,
    /// placeholders in the body are refused.
    ///
    /// # Errors
    /// If `declared` exceeds the limit, or differs from the body's known length.
    pub(crate) fn new(
        guest: GuestBody,
        declared: Option<u64>,
        search: bool,
        call: Arc<CallState>,
    ) -> Result<RequestBody, Error> {
        let hint = guest.size_hint();
        let exact = hint.exact();
        if let (Some(declared), Some(exact)) = (declared, exact)
            && declared != exact
        {
            return Err(wrong_length(declared, exact));
        }
        let length = declared.or(exact);
        let mut body = RequestBody {
            guest: Some(guest),
            fate: Arc::default(),
            length,
            search,
            ..RequestBody::empty(call)
        };
        let least = length.unwrap_or(hint.lower());
        body.check_size(least)?;
        body.call.meter.fits(least)?;
        if body.guest.as_ref().is_some_and(Body::is_end_stream) {
            body.end()?;
        }
        Ok(body)
    }

    /// A body without content.
    pub(crate) fn empty(call: Arc<CallState>) -> RequestBody {
        let fate = Fate(OnceLock::from(Ok(())));
        RequestBody {
            guest: None,
            call,
            fate: Arc::new(fate),
            length: Some(0),
            seen: 0,
            ready: VecDeque::new(),
            search: false,
            held: BytesMut::new(),
        }
    }

    /// Reads until the end, or until `enough` bytes are read. If the body ends, its length is
    /// known.
    pub(crate) async fn read_ahead(&mut self, enough: u64) -> Result<(), Error> {
        while self.guest.is_some() && self.seen < enough {
            std::future::poll_fn(|cx| self.poll_guest(cx)).await?;
        }
        if self.guest.is_none() {
            self.length = Some(self.seen);
        }
        Ok(())
    }

    fn check_size(&self, used: u64) -> Result<(), Limit> {
        let allowed = self.call.limits.http_body_bytes;
        Limit::check(LimitKind::RequestBodyBytes, used, allowed)
    }

    /// Takes one frame from the guest.
    fn poll_guest(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let Some(guest) = self.guest.as_mut() else {
            return Poll::Ready(Ok(()));
        };
        let result = match ready!(Pin::new(guest).poll_frame(cx)) {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => self.take(data),
                Err(_) => Err(Denied::new(Rule::Trailers, "").into()),
            },
            Some(Err(error)) => Err(NetworkError::new(NetworkKind::RequestBody, error).into()),
            None => self.end(),
        };
        // A body with `is_end_stream` ends without another frame.
        let result = result.and_then(|()| {
            let over = self.guest.as_ref().is_some_and(Body::is_end_stream);
            if over { self.end() } else { Ok(()) }
        });
        if let Err(error) = &result {
            self.guest = None;
            self.ready.clear();
            let _ = self.fate.0.set(Err(error.clone()));
        }
        Poll::Ready(result)
    }

    fn take(&mut self, data: Bytes) -> Result<(), Error> {
        let length = data.len() as u64;
        self.seen = self.seen.saturating_add(length);
        self.check_size(self.seen)?;
        if let Some(declared) = self.length.filter(|declared| self.seen > *declared) {
            return Err(wrong_length(declared, self.seen));
        }
        self.call.meter.bytes(length)?;
        let data = if self.search {
            self.search(data)?
        } else {
            data
        };
        if !data.is_empty() {
            self.ready.push_back(data);
        }
        Ok(())
    }

    /// Returns the part of the held bytes and `data` that can't be the start of a placeholder.
    fn search(&mut self, data: Bytes) -> Result<Bytes, Denied> {
        let mut data = data;
        if !self.held.is_empty() {
            self.held.extend_from_slice(&data);
            data = std::mem::take(&mut self.held).freeze();
        }
        if let Some((_, slug)) = self.call.placeholders.find(&data) {
            return Err(Denied::new(Rule::SecretInBody, slug));
        }
        let rest = data.split_off(placeholder::unfinished(&data));
        self.held.extend_from_slice(&rest);
        Ok(data)
    }

    fn end(&mut self) -> Result<(), Error> {
        self.guest = None;
        if let Some(declared) = self.length.filter(|declared| self.seen != *declared) {
            return Err(wrong_length(declared, self.seen));
        }
        if !self.held.is_empty() {
            let held = std::mem::take(&mut self.held).freeze();
            self.ready.push_back(held);
        }
        self.set_sent();
        Ok(())
    }

    /// Whether all declared bytes were read, but the guest's body has not ended. The last chunk is
    /// held until the guest's body ends: hyper polls no further than the declared length, and a
    /// longer body must not look complete to the server.
    fn is_last(&self) -> bool {
        self.guest.is_some() && self.ready.len() <= 1 && self.length == Some(self.seen)
    }

    /// Marks the body as sent if no chunk is left. Called once the guest's body has ended.
    fn set_sent(&self) {
        if self.ready.is_empty() {
            let _ = self.fate.0.set(Ok(()));
        }
    }
}

fn wrong_length(declared: u64, found: u64) -> Error {
    let subject = format!("{declared} declared, {found} in the body");
    Denied::new(Rule::ContentLength, subject).into()
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let body = self.get_mut();
        loop {
            if !body.is_last()
                && let Some(data) = body.ready.pop_front()
            {
                if body.guest.is_none() {
                    body.set_sent();
                }
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
            if body.guest.is_none() {
                let failure = body.fate.failure();
                return Poll::Ready(failure.map(Err));
            }
            if let Err(error) = ready!(body.poll_guest(cx)) {
                return Poll::Ready(Some(Err(error)));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.guest.is_none() && self.ready.is_empty() && self.fate.failure().is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::new, SizeHint::with_exact)
    }
}
