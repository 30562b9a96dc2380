//! What connects: the transport of a host, its routes, and the exchange of one request.

mod connect;
mod pool;
mod request_body;
mod resolve;
mod response_body;
mod response_redactor;
mod send;
mod shares;
mod tls;
mod transport;

pub use resolve::{LookupPermit, Resolve, Resolving, SystemResolver};
pub use response_body::ResponseBody;
pub(crate) use send::send;
pub use tls::RootsError;
pub use transport::{Egress, Transport, TransportBuilder};
