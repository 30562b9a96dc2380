//! `toolward serve` with independent clients. The server is the real command, usually with the
//! signed bundle of `tests/guests/conformance`.

mod cancelling;
mod clients;
mod conformance;
mod denials;
mod events;
mod hostile;
mod ids;
mod lax;
mod logs;
mod malformed;
mod metrics;
pub(crate) mod names;
mod native;
mod official;
mod older;
mod process;
pub(crate) mod raw;
pub(crate) mod served;
mod serving;
mod shortage;
mod signals;
mod soak;
mod sums;
mod tokens;
