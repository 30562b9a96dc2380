//! A runtime for one transfer.

use crate::error::{Error, Kind};

/// A runtime of this thread's own.
pub fn runtime() -> Result<tokio::runtime::Runtime, Error> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::new(Kind::Failed, "runtime-unavailable", &error).caused_by(error))
}
