//! Who a request comes from: the seam behind which tokens are checked.

use std::future::Future;
use std::pin::Pin;

use http::HeaderValue;

use crate::principal::Principal;

/// What [`Authenticate::authenticate`] returns.
pub type Authenticating<'a> = Pin<Box<dyn Future<Output = Result<Identity, Refusal>> + Send + 'a>>;

/// Finds the principal whose bearer token a request carries. Whoever implements it
/// keeps tokens secret: none is logged, and none is passed on.
pub trait Authenticate: Send + Sync + 'static {
    /// The principal of a token; `None` where the request carries none.
    fn authenticate<'a>(&'a self, token: Option<&'a str>) -> Authenticating<'a>;

    /// What `WWW-Authenticate` says of a refused request (RFC 6750 section 3), for
    /// schemes that name a place to get a token from.
    fn challenge(&self, refusal: Refusal) -> HeaderValue {
        HeaderValue::from_static(match refusal {
            Refusal::Missing => "Bearer realm=\"toolward\"",
            Refusal::Unknown => "Bearer realm=\"toolward\", error=\"invalid_token\"",
            Refusal::Expired => {
                "Bearer realm=\"toolward\", error=\"invalid_token\", error_description=\"expired\""
            }
        })
    }
}

/// A principal, and what it may ask at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Who it is.
    pub principal: Principal,
    /// How many requests it may have in flight; `None` for the server's default.
    pub requests: Option<usize>,
}

/// Why a request has no principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// It carries no token, or more than one.
    Missing,
    /// It carries a token that nobody has.
    Unknown,
    /// Its token holds no longer.
    Expired,
}
