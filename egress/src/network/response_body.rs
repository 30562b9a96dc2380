//! A response's body on its way to the guest: counted, bounded in time, scrubbed. At the end of the
//! body, its connection returns to the pool. If the body is dropped earlier, the connection is
//! closed.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::Sleep;

use super::pool::Lease;
use super::request_body::Fate;
use crate::authority::Origin;
use crate::call_state::{RequestClock, RequestSlot};
use crate::error::{Denied, Error, Limit, LimitKind, NetworkError, NetworkKind, Rule, Stage};
use crate::headers;
use crate::secret::scrub::{Patterns, Scrubber};

/// The body of a response.
pub struct ResponseBody {
    /// `None` after the body's end.
    open: Option<Box<Open>>,
}

struct Open {
    incoming: Incoming,
    lease: Lease,
    /// How the request's body ended.
    fate: Arc<Fate>,
    slot: RequestSlot,
    clock: RequestClock,
    /// The timer that runs while waiting for the server.
    timer: Option<Pin<Box<Sleep>>>,
    seen: u64,
    redactor: ResponseRedactor,
    /// The trailers, which follow the scrubber's last bytes.
    last: Option<HeaderMap>,
    ended: bool,
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody")
            .field("open", &self.open.is_some())
            .finish_non_exhaustive()
    }
}

impl ResponseBody {
    pub(crate) fn new(
        incoming: Incoming,
        lease: Lease,
        fate: Arc<Fate>,
        slot: RequestSlot,
        clock: RequestClock,
        redactor: ResponseRedactor,
    ) -> ResponseBody {
        let open = Open {
            incoming,
            lease,
            fate,
            slot,
            clock,
            timer: None,
            seen: 0,
            redactor,
            last: None,
            ended: false,
        };
        let mut body = ResponseBody {
            open: Some(Box::new(open)),
        };
        body.close_if_over();
        body
    }

    /// Returns the connection to the pool once no more data can follow, since a guest may never
    /// read again.
    fn close_if_over(&mut self) {
        let over = |open: &Open| open.incoming.is_end_stream() && !open.redactor.is_on();
        if self.open.as_deref().is_some_and(over) {
            self.close();
        }
    }

    fn close(&mut self) {
        if let Some(open) = self.open.take() {
            open.lease.give_back(open.fate.is_sent());
        }
    }
}

impl Open {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        loop {
            if self.ended {
                let trailers = self.last.take().map(|last| Ok(Frame::trailers(last)));
                return Poll::Ready(trailers);
            }
            let frame = match ready!(self.poll_server(cx)) {
                Ok(frame) => frame,
                Err(error) => return Poll::Ready(Some(Err(error))),
            };
            if let Err(denied) = self.redactor.renew(&self.slot, &self.lease.origin) {
                return Poll::Ready(Some(Err(denied.into())));
            }
            let Some(frame) = frame else {
                self.ended = true;
                let rest = self.redactor.finish();
                if rest.is_empty() {
                    continue;
                }
                return Poll::Ready(Some(Ok(Frame::data(rest))));
            };
            match frame.into_data() {
                Ok(data) => {
                    if let Err(limit) = self.count(data.len() as u64) {
                        return Poll::Ready(Some(Err(limit.into())));
                    }
                    let data = self.redactor.push(data);
                    if !data.is_empty() {
                        return Poll::Ready(Some(Ok(Frame::data(data))));
                    }
                }
                Err(frame) => {
                    if let Ok(trailers) = frame.into_trailers()
                        && let Err(limit) = self.take_trailers(trailers)
                    {
                        return Poll::Ready(Some(Err(limit.into())));
                    }
                }
            }
        }
    }

    /// Reads the next frame of the server within its time limit.
    fn poll_server(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame<Bytes>>, Error>> {
        // Checked before each frame, so that the request's time limit also ends the response of a
        // server that sends one byte after another.
        if self.clock.is_over() {
            return Poll::Ready(Err(self.clock.timeout(Stage::BetweenBytes).into()));
        }
        if let Poll::Ready(frame) = Pin::new(&mut self.incoming).poll_frame(cx) {
            self.timer = None;
            let failed = |error| {
                let own = self.fate.failure();
                own.unwrap_or_else(|| broken(&error).into())
            };
            return Poll::Ready(frame.transpose().map_err(failed));
        }
        let clock = self.clock;
        let arm = || {
            let end: Instant = clock.end(clock.timeouts.between_bytes);
            Box::pin(tokio::time::sleep_until(end.into()))
        };
        let timer = self.timer.get_or_insert_with(arm);
        ready!(timer.as_mut().poll(cx));
        Poll::Ready(Err(clock.timeout(Stage::BetweenBytes).into()))
    }

    fn count(&mut self, bytes: u64) -> Result<(), Limit> {
        self.seen = self.seen.saturating_add(bytes);
        let call = &self.slot.call;
        let allowed = call.limits.http_body_bytes;
        Limit::check(LimitKind::ResponseBodyBytes, self.seen, allowed)?;
        call.meter.bytes(bytes)
    }

    fn take_trailers(&mut self, mut trailers: HeaderMap) -> Result<(), Limit> {
        let call = &self.slot.call;
        let (used, allowed) = (headers::size(&trailers), call.limits.http_head_bytes);
        Limit::check(LimitKind::ResponseHeadBytes, used, allowed)?;
        call.meter.bytes(used)?;
        headers::filter_response(&mut trailers);
        if let Some(patterns) = self.redactor.patterns() {
            patterns.scrub_headers(&mut trailers);
        }
        self.last = Some(trailers);
        Ok(())
    }
}

pub(crate) fn broken(error: &hyper::Error) -> NetworkError {
    let kind = if error.is_parse() {
        NetworkKind::HttpProtocol
    } else {
        NetworkKind::Terminated
    };
    NetworkError::new(kind, error)
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let body = self.get_mut();
        let Some(open) = body.open.as_mut() else {
            return Poll::Ready(None);
        };
        let frame = ready!(open.poll(cx));
        match &frame {
            Some(Ok(_)) => body.close_if_over(),
            // After an error the connection is closed, since it can't be reused.
            Some(Err(_)) => body.open = None,
            None => body.close(),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.open.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match &self.open {
            Some(open) if !open.redactor.is_on() => open.incoming.size_hint(),
            Some(_) => SizeHint::new(),
            None => SizeHint::with_exact(0),
        }
    }
}

/// The redactor of one response.
pub(crate) struct ResponseRedactor {
    scrubber: Option<Scrubber>,
    /// How many values the call had loaded when the patterns were made.
    count: usize,
    /// The header that shows that a value in the body could not be found, if the response has one.
    obscure: Option<&'static str>,
}

impl ResponseRedactor {
    /// # Errors
    /// [`Rule::SecretResponse`] if `origin` may know a value, which could be hidden in this body.
    pub(crate) fn of(
        slot: &RequestSlot,
        origin: &Origin,
        obscure: Option<&'static str>,
    ) -> Result<ResponseRedactor, Denied> {
        let mut redactor = ResponseRedactor {
            scrubber: None,
            count: 0,
            obscure,
        };
        redactor.renew(slot, origin)?;
        Ok(redactor)
    }

    /// Also searches for values that other requests may have sent to the origin while this response
    /// arrives.
    ///
    /// # Errors
    /// The errors of [`ResponseRedactor::of`].
    pub(crate) fn renew(&mut self, slot: &RequestSlot, origin: &Origin) -> Result<(), Denied> {
        let secrets = &slot.call.secrets;
        let count = secrets.count();
        if count == self.count {
            return Ok(());
        }
        self.count = count;
        let Some(patterns) = secrets.patterns(origin) else {
            return Ok(());
        };
        if let Some(header) = self.obscure {
            return Err(Denied::new(Rule::SecretResponse, header));
        }
        match &mut self.scrubber {
            // The new value belongs to another origin, so the patterns are the same.
            Some(scrubber) if Arc::ptr_eq(scrubber.patterns(), &patterns) => {}
            Some(scrubber) => scrubber.look_for(patterns),
            None => self.scrubber = Some(Scrubber::new(patterns)),
        }
        Ok(())
    }

    pub(crate) fn is_on(&self) -> bool {
        self.scrubber.is_some()
    }

    pub(crate) fn patterns(&self) -> Option<&Arc<Patterns>> {
        self.scrubber.as_ref().map(Scrubber::patterns)
    }

    /// Returns the part of the body that can be passed on, which may be empty.
    pub(crate) fn push(&mut self, data: Bytes) -> Bytes {
        match &mut self.scrubber {
            Some(scrubber) => scrubber.push(data),
            None => data,
        }
    }

    /// Returns the held bytes at the body's end.
    pub(crate) fn finish(&mut self) -> Bytes {
        let rest = self.scrubber.as_mut().map(Scrubber::finish);
        rest.unwrap_or_default()
    }
}
