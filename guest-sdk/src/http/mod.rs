//! HTTP requests to the hosts that the contract declares, the driver's egress list names and the
//! operator grants. The Toolward host makes the requests: it checks host, port, scheme and method,
//! injects secrets, and does not follow redirects.
//!
//! Requires the feature `http`: a component that uses this module imports `wasi:http`, and is
//! refused if it does not declare network access. Outside a component (a driver's own tests) every
//! request is denied, unless [`testing::Grants`](crate::testing::Grants) answers it.

mod failure;
mod request;
mod response;
mod send;
mod url;

pub use request::{Method, Request};
pub use response::Response;
