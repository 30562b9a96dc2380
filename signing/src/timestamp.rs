//! Points in time in signed documents: whole seconds, UTC, one spelling. [`Mode`] decides whether a
//! wrong age is refused or gives a warning. This module reads no clock.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use serde::Deserialize;
use time::format_description::well_known::Rfc3339;
use time::{OffsetDateTime, UtcOffset};

use crate::error::{ErrorKind, Refusal, impl_serde_text};
use crate::text::quoted;

/// A time such as `2026-11-21T09:30:00Z`: RFC 3339, whole seconds, `T` and `Z` in upper case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(OffsetDateTime);

impl Timestamp {
    /// Reads a time in its only spelling.
    ///
    /// # Errors
    /// [`ErrorKind::TimeInvalid`], also for offsets, fractions of seconds and times before 1970.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let refusal = || Refusal::new(ErrorKind::TimeInvalid).found(quoted(text));
        let moment = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| refusal())?;
        let moment = Self(moment.to_offset(UtcOffset::UTC));
        // Writing the time back detects every other spelling, leap seconds included.
        if moment.to_string() == text && moment.unix() >= 0 {
            Ok(moment)
        } else {
            Err(refusal())
        }
    }

    /// The time that is `seconds` after 1970-01-01T00:00:00Z.
    ///
    /// # Errors
    /// [`ErrorKind::TimeInvalid`] outside the years 1970 to 9999.
    pub fn from_unix(seconds: i64) -> Result<Self, Refusal> {
        OffsetDateTime::from_unix_timestamp(seconds)
            .ok()
            .filter(|moment| (1970..=9999).contains(&moment.year()))
            .map(Self)
            .ok_or_else(|| Refusal::new(ErrorKind::TimeInvalid).found(seconds.to_string()))
    }

    /// Seconds since 1970-01-01T00:00:00Z.
    #[must_use]
    pub fn unix(self) -> i64 {
        self.0.unix_timestamp()
    }

    /// How long after `now` this time is; `None` if it is in the past.
    #[must_use]
    pub fn ahead_of(self, now: SystemTime) -> Option<Duration> {
        SystemTime::from(self.0).duration_since(now).ok()
    }

    /// The refusal of a creation time that is more than [`CLOCK_SKEW`] after `now`.
    pub(crate) fn not_yet(self, kind: ErrorKind, now: SystemTime) -> Option<Refusal> {
        self.ahead_of(now).filter(|ahead| *ahead > CLOCK_SKEW)?;
        let refusal = Refusal::new(kind).expected("`created` in the past");
        Some(refusal.found(self.to_string()))
    }

    /// The refusal of something that expires at this time, once the time has passed.
    pub(crate) fn expired(self, kind: ErrorKind, now: SystemTime) -> Option<Refusal> {
        if self.ahead_of(now).is_some_and(|ahead| !ahead.is_zero()) {
            return None;
        }
        let refusal = Refusal::new(kind).expected("`expires` in the future");
        Some(refusal.found(self.to_string()))
    }
}

impl FromStr for Timestamp {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        Self::parse(text)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
            self.0.year(),
            u8::from(self.0.month()),
            self.0.day(),
            self.0.hour(),
            self.0.minute(),
            self.0.second()
        )
    }
}

impl_serde_text!(Timestamp);

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Timestamp({self})")
    }
}

/// How far ahead of this machine's clock `created` may be.
pub const CLOCK_SKEW: Duration = Duration::from_secs(10 * 60);

/// Whether a wrong age is refused or gives a warning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Anything too old or from the future is refused.
    #[default]
    Enforce,
    /// Age is a warning. Nothing else is relaxed.
    Audit,
}

impl Mode {
    /// Returns the refusal under [`Mode::Enforce`]; adds it to the warnings under [`Mode::Audit`].
    pub(crate) fn apply(self, refusal: Refusal, warnings: &mut Vec<String>) -> Result<(), Refusal> {
        match self {
            Self::Enforce => Err(refusal),
            Self::Audit => {
                warnings.push(refusal.to_string());
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_one_spelling() {
        for text in [
            "2026-11-21T09:30:00Z",
            "1970-01-01T00:00:00Z",
            "9999-12-31T23:59:59Z",
        ] {
            assert_eq!(Timestamp::parse(text).unwrap().to_string(), text);
        }
        for text in [
            "",
            "2026-11-21",
            "2026-11-21T09:30Z",
            "2026-11-21t09:30:00z",
            "2026-11-21 09:30:00Z",
            "2026-11-21T09:30:00+00:00",
            "2026-11-21T09:30:00.0Z",
            "2026-02-30T00:00:00Z",
            "2026-11-21T23:59:60Z",
            "12026-11-21T09:30:00Z",
            "1969-12-31T23:59:59Z",
        ] {
            assert_eq!(
                Timestamp::parse(text).expect_err(text).code(),
                "time-invalid"
            );
        }
    }

    #[test]
    fn seconds_since_1970_go_both_ways() {
        let moment = Timestamp::from_unix(1_763_717_400).unwrap();
        assert_eq!(Timestamp::parse(&moment.to_string()).unwrap(), moment);
        assert_eq!(moment.unix(), 1_763_717_400);
        assert!(Timestamp::from_unix(i64::MAX).is_err());
        assert!(Timestamp::from_unix(-1).is_err());
    }
}
