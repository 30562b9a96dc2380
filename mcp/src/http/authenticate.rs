//! Authentication of requests: the trait that checks tokens.

use std::future::Future;
use std::pin::Pin;

use http::HeaderValue;
use toolward_support::report::codes;

use crate::principal::Principal;

/// What [`Authenticate::authenticate`] returns.
pub type Authenticating<'a> = Pin<Box<dyn Future<Output = Result<Identity, Refusal>> + Send + 'a>>;

/// Finds the principal of a request by its bearer token. Keep tokens secret: log none, and
/// pass none on. [`tokens::Tokens`](super::tokens::Tokens) is one.
///
/// ```
/// use toolward_mcp::http::{Authenticate, Authenticating, Identity, Refusal};
/// use toolward_mcp::principal::{Principal, Tools};
///
/// /// Asks the identity provider of a company.
/// struct Company;
///
/// impl Company {
///     async fn user_of(&self, _token: &str) -> Option<String> {
///         None
///     }
/// }
///
/// impl Authenticate for Company {
///     fn authenticate<'a>(&'a self, token: Option<&'a str>) -> Authenticating<'a> {
///         Box::pin(async move {
///             let token = token.ok_or(Refusal::Missing)?;
///             let user = self.user_of(token).await.ok_or(Refusal::Unknown)?;
///             Ok(Identity {
///                 principal: Principal { name: user.into(), tools: Tools::All, may_approve: false },
///                 requests: None,
///             })
///         })
///     }
/// }
/// ```
pub trait Authenticate: Send + Sync + 'static {
    /// The principal of a token; `None` where the request carries none.
    ///
    /// # Errors
    ///
    /// [`Refusal`] where the token is missing, unknown or expired.
    fn authenticate<'a>(&'a self, token: Option<&'a str>) -> Authenticating<'a>;

    /// The value of `WWW-Authenticate` for a refused request (RFC 6750 section 3).
    /// Override it for a scheme that names where to get a token.
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

/// A principal, and how many requests it may have in flight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Who it is.
    pub principal: Principal,
    /// How many requests it may have in flight; `None` for the server's default.
    pub requests: Option<usize>,
}

codes! {
    /// Why a request has no principal.
    pub enum Refusal {
        /// Or it has more than one.
        Missing = "token-missing",
            "expected one header `Authorization: Bearer` with a token that the server's operator gives";
        Unknown = "token-unknown", "this token is not known; ask the server's operator for one";
        Expired = "token-expired", "this token has expired; ask the server's operator for another";
    }
}
