//! Limits of a client: sizes, deadlines, and the backoff between retries.

use std::time::Duration;

use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use tokio::time::Instant;

use crate::failure::{Failure, FailureReason};

/// Limits of a client, in bytes and time. The limit for the size of a bundle can't be raised above
/// its default, since no reader accepts more.
#[derive(Clone, Copy, Debug)]
pub struct ClientLimits {
    /// The largest archive, in bytes.
    pub content: u64,
    /// The largest OCI manifest or index, in bytes.
    pub manifest: u64,
    /// How many tags are listed.
    pub tags: usize,
    /// How many referrers of a kind are read.
    pub referrers: usize,
    /// How long connecting may take.
    pub connect: Duration,
    /// How long the registry may send nothing.
    pub silence: Duration,
    /// How long an operation may take, with all its requests, waits and transfers.
    pub total: Duration,
    /// How often a request is repeated, and how often a transfer is resumed without progress.
    pub retries: u32,
    /// The longest `Retry-After` that is honoured.
    pub patience: Duration,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            content: toolward_signing::verify::MAX_BYTES,
            manifest: 1024 * 1024,
            tags: 10_000,
            referrers: 16,
            connect: Duration::from_secs(10),
            silence: Duration::from_secs(30),
            total: Duration::from_secs(30 * 60),
            retries: 4,
            patience: Duration::from_secs(60),
        }
    }
}

/// The first backoff; each further one is twice as long.
const MIN_BACKOFF: Duration = Duration::from_millis(200);
/// The longest backoff, unless the registry asks for more.
const MAX_BACKOFF: Duration = Duration::from_secs(10);

/// The time at which an operation must have ended, with all its requests and waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    pub(crate) fn after(time: Duration) -> Self {
        // A duration that is too long to be added becomes a day.
        let now = Instant::now();
        Self(
            now.checked_add(time)
                .unwrap_or(now + Duration::from_secs(86_400)),
        )
    }

    /// Runs a future until the deadline.
    pub(crate) async fn within<T>(
        self,
        place: &str,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        tokio::time::timeout_at(self.0, work)
            .await
            .unwrap_or_else(|_| Err(Failure::new(FailureReason::Timeout).at(place)))
    }

    fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }
}

/// The remaining retries of one request or transfer.
#[derive(Debug)]
pub(crate) struct Tries {
    deadline: Deadline,
    left: u32,
    wait: Duration,
    /// The longest `Retry-After` that is honoured.
    patience: Duration,
}

impl Tries {
    pub(crate) fn new(deadline: Deadline, retries: u32, patience: Duration) -> Self {
        Self {
            deadline,
            left: retries,
            wait: MIN_BACKOFF,
            patience,
        }
    }

    /// Waits before the next attempt. `asked` is the registry's `Retry-After`.
    ///
    /// # Errors
    /// `failure`, if no retry is left, or if the wait is longer than `patience` or the deadline
    /// allows.
    pub(crate) async fn again(
        &mut self,
        failure: Failure,
        asked: Option<Duration>,
    ) -> Result<(), Failure> {
        let Some(left) = self.left.checked_sub(1) else {
            return Err(failure);
        };
        let wait = match asked {
            Some(asked) if asked > self.patience => return Err(failure),
            Some(asked) => asked.max(MIN_BACKOFF),
            None => jittered(self.wait),
        };
        if wait >= self.deadline.left() {
            return Err(failure);
        }
        self.left = left;
        self.wait = self.wait.saturating_mul(2).min(MAX_BACKOFF);
        tokio::time::sleep(wait).await;
        Ok(())
    }

    /// Resets the backoff and the number of retries, after progress.
    pub(crate) fn refill(&mut self, retries: u32) {
        self.left = retries;
        self.wait = MIN_BACKOFF;
    }
}

/// Adds jitter: a random time between half of the duration and all of it, so that clients don't all
/// return at once.
fn jittered(time: Duration) -> Duration {
    let mut random = [0; 1];
    // If this fails, the backoff has no jitter, but is still valid.
    let _ = getrandom::fill(&mut random);
    let [random] = random;
    let half = time / 2;
    half + half * u32::from(random) / 255
}

/// The delay that `Retry-After` requests (RFC 9110, section 10.2.3): in seconds, or as a date,
/// which is compared with the `Date` of the same response.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?;
    if let Ok(seconds) = text.parse::<u32>() {
        return Some(Duration::from_secs(u64::from(seconds)));
    }
    let until = httpdate::parse_http_date(text).ok()?;
    let now = httpdate::parse_http_date(headers.get(DATE)?.to_str().ok()?).ok()?;
    until.duration_since(now).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let asked = |after: &str, date: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, after.parse().unwrap());
            headers.insert(DATE, date.parse().unwrap());
            retry_after(&headers)
        };
        let date = "Sat, 21 Nov 2026 10:00:00 GMT";
        assert_eq!(asked("7", date), Some(Duration::from_secs(7)));
        assert_eq!(
            asked("Sat, 21 Nov 2026 10:01:30 GMT", date),
            Some(Duration::from_secs(90))
        );
        for wrong in [
            "-1",
            "soon",
            "",
            "99999999999999999999",
            "Sat, 21 Nov 2026 09:00:00 GMT",
        ] {
            assert_eq!(asked(wrong, date), None, "{wrong}");
        }
    }

    #[test]
    fn waits_are_jittered_and_never_longer_than_meant() {
        for _ in 0..100 {
            let wait = jittered(Duration::from_secs(2));
            assert!(wait >= Duration::from_secs(1) && wait <= Duration::from_secs(2));
        }
    }
}
