//! The caller's time as the state keeps it: whole seconds since 1970.

use std::time::{SystemTime, UNIX_EPOCH};

use toolward_signing::timestamp::Timestamp;

use crate::error::Error;

pub(crate) fn seconds(now: SystemTime) -> i64 {
    now.duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|since| i64::try_from(since.as_secs()).ok())
        .unwrap_or(0)
}

pub(crate) fn timestamp(seconds: i64) -> Result<Timestamp, Error> {
    Timestamp::from_unix(seconds).map_err(|refusal| Error::Corrupt(refusal.into()))
}
