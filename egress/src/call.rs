//! The network access of one tool call.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http_body::Body;
use http_body_util::BodyExt;
use toolward_policy::CallLimits;

use crate::call_state::{CallState, Timeouts};
use crate::error::{BoxError, Error};
use crate::meter::{Meter, Usage};
use crate::network::{self, Egress, ResponseBody};
use crate::secret::SecretValues;

/// One call's access to the network. Clones share everything.
///
/// ```no_run
/// use std::sync::Arc;
/// use std::time::{Duration, Instant};
/// use http_body_util::{BodyExt, Limited};
/// use toolward_egress::{Call, Egress, NoSecrets, ResponseBody, Timeouts, target};
/// use toolward_policy::CallLimits;
///
/// async fn fetch(egress: &Egress, url: &str) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
///     let deadline = Instant::now() + Duration::from_secs(30);
///     let call: Call = egress.call(CallLimits::default(), deadline, None, Arc::new(NoSecrets));
///     let request = http::Request::get(target::uri(url)?).body(String::new())?;
///     let timeouts = Timeouts { connect: Some(Duration::from_secs(5)), ..Timeouts::default() };
///     let response: http::Response<ResponseBody> = call.send(request, timeouts).await?;
///     let body = response.into_body().collect().await?.to_bytes();
///     println!("{} bytes both ways", call.usage().bytes);
///     Ok(body.into())
/// }
/// ```
#[derive(Clone)]
pub struct Call {
    egress: Egress,
    state: Arc<CallState>,
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("usage", &self.usage())
            .finish_non_exhaustive()
    }
}

impl Egress {
    /// The network access of one call, which ends at `deadline`. Its usage also counts against
    /// `outer`, the meter of the call that contains it.
    pub fn call(
        &self,
        limits: CallLimits,
        deadline: Instant,
        outer: Option<&Meter>,
        secrets: Arc<dyn SecretValues>,
    ) -> Call {
        Call {
            egress: self.clone(),
            state: Arc::new(CallState::new(limits, deadline, outer.cloned(), secrets)),
        }
    }
}

impl Call {
    /// The text that stands for a secret in this call; the same each time. `None` if no rule lets a
    /// call send the secret, or if the system has no randomness.
    pub fn placeholder(&self, slug: &str) -> Option<String> {
        let places = self.egress.rules().secrets();
        let known = places.iter().any(|place| place.slug == slug);
        known.then(|| self.state.placeholders.issue(slug)).flatten()
    }

    /// The secret whose placeholder `text` contains. Meant for data that leaves the guest in other
    /// ways, e.g. the input of a nested call.
    pub fn placeholder_in(&self, text: &[u8]) -> Option<String> {
        self.state.placeholders.find(text).map(|(_, slug)| slug)
    }

    /// The most bytes of memory that the search for secrets in responses takes.
    pub fn memory(&self) -> u64 {
        self.state.secrets.memory()
    }

    /// The usage so far.
    pub fn usage(&self) -> Usage {
        self.state.meter.usage()
    }

    /// This call's meter, which also counts the usage of nested calls.
    pub fn meter(&self) -> Meter {
        self.state.meter.clone()
    }

    /// Sends a request, if the rules allow it, and waits for the response's head. The URI must be
    /// absolute, and the headers must not contain `host`.
    ///
    /// If the method takes no body, nothing is sent before the body is known to be empty. If the
    /// call has placeholders, the first 64 KiB of the body are searched for them before anything is
    /// sent. The rest is searched and sent as it arrives.
    ///
    /// Dropping the future, or the response's body before its end, closes the connection.
    ///
    /// # Errors
    /// The refusal, or the error that ended the request.
    pub fn send<B>(
        &self,
        request: http::Request<B>,
        timeouts: Timeouts,
    ) -> impl Future<Output = Result<http::Response<ResponseBody>, Error>> + Send + 'static + use<B>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let (egress, state) = (self.egress.clone(), Arc::clone(&self.state));
        let request = request.map(|body| body.map_err(Into::into).boxed_unsync());
        network::send(egress, state, Box::new(request), timeouts)
    }
}
