//! Replaces the module `network` in a build without the feature `network`: types without values for
//! a transport, its routes and responses. Code that uses them compiles unchanged, but never runs.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};

use crate::call_state::{CallState, Timeouts};
use crate::error::Error;
use crate::rules::Rules;

/// A transport, which can't be created, since the crate is built without the feature `network`.
#[derive(Debug, Clone)]
pub struct Transport(Infallible);

/// A route of a [`Transport`].
#[derive(Debug, Clone)]
pub struct Egress(Infallible);

/// The body of a response.
#[derive(Debug)]
pub struct ResponseBody(Infallible);

#[expect(missing_docs, reason = "as with the feature `network`")]
impl Transport {
    pub fn system() -> Option<Self> {
        None
    }

    pub fn egress(&self, _: &str, _: Arc<Rules>) -> Egress {
        match self.0 {}
    }
}

impl Egress {
    #[expect(missing_docs, reason = "as with the feature `network`")]
    pub fn on_behalf_of(&self, _: &str) -> Self {
        match self.0 {}
    }

    pub(crate) fn rules(&self) -> &Rules {
        match self.0 {}
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        match self.0 {}
    }
}

pub(crate) async fn send<B>(
    egress: Egress,
    _: Arc<CallState>,
    _: Box<Request<B>>,
    _: Timeouts,
) -> Result<Response<ResponseBody>, Error> {
    match egress.0 {}
}
