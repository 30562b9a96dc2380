//! When something is too old, or from the future, and whether that refuses it.

use std::time::{Duration, SystemTime};

use crate::timestamp::Timestamp;

/// How far ahead of this machine's clock `created` may be.
pub const CLOCK_SKEW: Duration = Duration::from_secs(10 * 60);

/// How strictly age is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// What is too old or from the future is refused.
    #[default]
    Enforce,
    /// It is a warning. Nothing else is relaxed.
    Audit,
}

/// Whether it claims to be made later than the clocks of two machines may differ.
pub(crate) fn is_from_the_future(created: Timestamp, now: SystemTime) -> bool {
    created
        .ahead_of(now)
        .is_some_and(|ahead| ahead > CLOCK_SKEW)
}

/// Whether a document's last moment has come.
pub(crate) fn is_over(expires: Timestamp, now: SystemTime) -> bool {
    expires.ahead_of(now).is_none_or(|ahead| ahead.is_zero())
}
