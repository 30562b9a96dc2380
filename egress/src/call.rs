//! One call of a tool: its limits, its placeholders, and what it has used.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body::Body;
use http_body_util::BodyExt;

use crate::clock::Timeouts;
use crate::error::{Error, Limit, LimitKind};
use crate::meter::{Meter, Usage};
use crate::response_body::ResponseBody;
use crate::secret::SecretValues;
use crate::secret::known::KnownSecrets;
use crate::secret::placeholder::Placeholders;
use crate::send;
use crate::transport::Egress;

/// Any error of a body.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What one call may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallLimits {
    /// Requests in flight: from [`Call::send`] to the end of the response's body.
    pub requests_at_once: u32,
    /// Requests in all, refused ones included.
    pub requests_total: u64,
    /// Bytes of one request body.
    pub request_body_bytes: u64,
    /// Bytes of one response body.
    pub response_body_bytes: u64,
    /// Bytes of all heads and bodies, both ways.
    pub total_bytes: u64,
    /// Bytes of a request's head, and of a response's; of the latter, 64 KiB at
    /// most.
    pub header_bytes: u64,
    /// From [`Call::send`] to the end of the response's body.
    pub request_timeout: Duration,
    /// When the call is over.
    pub deadline: Instant,
}

impl CallLimits {
    /// The default limits, for a call that is over at `deadline`.
    #[must_use]
    pub fn until(deadline: Instant) -> CallLimits {
        const MIB: u64 = 1 << 20;
        CallLimits {
            requests_at_once: 16,
            requests_total: 1000,
            request_body_bytes: 16 * MIB,
            response_body_bytes: 16 * MIB,
            total_bytes: 256 * MIB,
            header_bytes: 64 << 10,
            request_timeout: Duration::from_secs(60),
            deadline,
        }
    }
}

/// One call's access to the network. Clones share everything.
#[derive(Debug, Clone)]
pub struct Call(Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) egress: Egress,
    pub(crate) limits: CallLimits,
    pub(crate) meter: Meter,
    pub(crate) placeholders: Placeholders,
    pub(crate) secrets: KnownSecrets,
    in_flight: AtomicU32,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("limits", &self.limits)
            .field("usage", &self.meter.usage())
            .finish_non_exhaustive()
    }
}

impl Call {
    pub(crate) fn new(
        egress: Egress,
        limits: CallLimits,
        outer: Option<Meter>,
        values: Arc<dyn SecretValues>,
    ) -> Call {
        Call(Arc::new(Shared {
            egress,
            limits,
            meter: Meter::new(limits.requests_total, limits.total_bytes, outer),
            placeholders: Placeholders::default(),
            secrets: KnownSecrets::new(values),
            in_flight: AtomicU32::new(0),
        }))
    }

    /// The text that stands for a secret in this call; the same each time.
    /// `None`: the rules tie this secret to no place, or the system has no
    /// randomness.
    #[must_use]
    pub fn placeholder(&self, slug: &str) -> Option<String> {
        let places = self.0.egress.rules().secrets();
        let known = places.iter().any(|place| place.slug == slug);
        known.then(|| self.0.placeholders.issue(slug)).flatten()
    }

    /// The secret whose placeholder `text` holds: for whatever leaves the guest
    /// another way, e.g. the input of a nested call.
    #[must_use]
    pub fn placeholder_in(&self, text: &[u8]) -> Option<String> {
        self.0.placeholders.find(text).map(|(_, slug)| slug)
    }

    /// Bytes of memory that looking for secrets in responses takes, at most.
    #[must_use]
    pub fn memory(&self) -> u64 {
        self.0.secrets.memory()
    }

    /// What was used so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.0.meter.usage()
    }

    /// This call's meter, to count nested calls against.
    #[must_use]
    pub fn meter(&self) -> Meter {
        self.0.meter.clone()
    }

    /// Sends a request, if the rules allow it, and waits for the response's
    /// head. The URI is absolute; `host` is not among the headers.
    ///
    /// A body is read before anything is sent where the method takes none, and
    /// up to its first 64 KiB where the call has placeholders; after that, it is
    /// sent as it comes.
    ///
    /// Dropping the future, or the response's body, closes the connection.
    ///
    /// # Errors
    /// What refused or ended it.
    pub fn send<B>(
        &self,
        request: http::Request<B>,
        timeouts: Timeouts,
    ) -> impl Future<Output = Result<http::Response<ResponseBody>, Error>> + Send + 'static + use<B>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let shared = Arc::clone(&self.0);
        let request = request.map(|body| body.map_err(Into::into).boxed_unsync());
        send::send(shared, Box::new(request), timeouts)
    }
}

impl Shared {
    /// Takes a slot for one request.
    pub(crate) fn begin(self: &Arc<Self>) -> Result<Slot, Limit> {
        self.meter.request()?;
        let before = self.in_flight.fetch_add(1, Ordering::AcqRel);
        let slot = Slot(Arc::clone(self));
        let allowed = self.limits.requests_at_once;
        if before >= allowed {
            return Err(Limit {
                kind: LimitKind::RequestsAtOnce,
                used: u64::from(before) + 1,
                allowed: u64::from(allowed),
            });
        }
        Ok(slot)
    }
}

/// One of the requests in flight, until it is dropped.
#[derive(Debug)]
pub(crate) struct Slot(Arc<Shared>);

impl Slot {
    pub(crate) fn call(&self) -> &Arc<Shared> {
        &self.0
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}
