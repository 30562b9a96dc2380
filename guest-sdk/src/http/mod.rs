//! HTTP requests to the hosts that the contract declares, the driver's egress
//! list names and the operator grants. The host makes them: it decides by host,
//! port, scheme and method, puts secrets in, and follows no redirects.
//!
//! Only with the feature `http`, as a component that uses it imports `wasi:http`,
//! and one that does so without declaring network is refused. Outside a component
//! (a driver's own tests) every request is denied, unless
//! [`testing::Grants`](crate::testing::Grants) answers it.

mod failure;
mod request;
mod response;
mod send;
mod url;

pub use request::{Method, Request};
pub use response::Response;
