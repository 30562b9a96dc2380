//! Threads for checks that may take long: value and schema are the publisher's,
//! and nothing can interrupt a check. So few run at once, each keeps its place
//! until it is really done, and nobody waits for one past a deadline.

use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use tokio::sync::Semaphore;
use toolward_contract::schema::Schema;

use crate::result::{CallError, ErrorClass, ErrorCode};
use crate::sandbox::deadline;

/// Bytes of JSON times weight of the schema: below it a check takes some
/// milliseconds at the very most, and microseconds as a rule, which is less than
/// handing it over.
const LARGE: usize = 500_000;

/// Whether a text of so many bytes is checked at once against `schema`.
pub(crate) fn is_short(bytes: usize, schema: &Schema) -> bool {
    bytes.saturating_mul(schema.weight()) < LARGE
}

/// The most bytes that [`is_short`] takes for `schema`.
pub(crate) fn short_bytes(schema: &Schema) -> usize {
    LARGE.checked_div(schema.weight()).unwrap_or(LARGE)
}

/// A path into a value is made of the value's own keys: as long as its sender
/// likes.
pub(crate) fn shortened(mut path: String) -> String {
    path.truncate(path.floor_char_boundary(1024));
    path
}

/// The processors that this process may use, as they were at first: finding out
/// reads files.
pub(crate) fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// The places for long checks of a host, and of those that take its place.
#[derive(Debug)]
pub(crate) struct Checks {
    places: Arc<Semaphore>,
}

impl Default for Checks {
    /// As many places as the machine has cores.
    fn default() -> Self {
        Self {
            places: Arc::new(Semaphore::new(cores())),
        }
    }
}

impl Checks {
    /// Runs `check` on a thread of its own; `late` says what it means that the
    /// deadline passed before it was done.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        deadline: Instant,
        late: impl Fn() -> CallError,
        check: impl FnOnce() -> Result<T, CallError> + Send + 'static,
    ) -> Result<T, CallError> {
        let places = self.places.clone();
        let work = pin!(async {
            let place = places.acquire_owned().await.map_err(|_closed| failed())?;
            let task = tokio::task::spawn_blocking(move || {
                let result = check();
                drop(place);
                result
            });
            task.await.unwrap_or_else(|error| {
                tracing::error!(%error, "a check failed");
                Err(failed())
            })
        });
        deadline::before(deadline, work)
            .await
            .unwrap_or_else(|deadline::Elapsed| Err(late()))
    }
}

fn failed() -> CallError {
    CallError::new(
        ErrorCode::INTERNAL,
        ErrorClass::ExecutionFailed,
        "checking a value against its schema failed",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn late() -> CallError {
        CallError::new(ErrorCode::TIMEOUT, ErrorClass::Timeout, "late")
    }

    #[tokio::test]
    async fn a_check_that_takes_too_long_is_not_waited_for_and_keeps_its_place() {
        let checks = Checks {
            places: Arc::new(Semaphore::new(1)),
        };
        let soon = || Instant::now() + Duration::from_millis(20);
        let slow = || {
            std::thread::sleep(Duration::from_millis(300));
            Ok(1)
        };
        let error = checks.run(soon(), late, slow).await.expect_err("late");
        assert_eq!(error.code, ErrorCode::TIMEOUT);
        let next = checks.run(soon(), late, || Ok(2)).await;
        assert_eq!(
            next.expect_err("the place is taken").code,
            ErrorCode::TIMEOUT
        );
        let patient = Instant::now() + Duration::from_secs(20);
        assert_eq!(checks.run(patient, late, || Ok(3)).await, Ok(3));
    }

    #[tokio::test]
    async fn a_check_that_panics_is_a_fault_of_the_host_and_frees_its_place() {
        let checks = Checks {
            places: Arc::new(Semaphore::new(1)),
        };
        let soon = || Instant::now() + Duration::from_secs(20);
        let error = checks
            .run(soon(), late, || -> Result<(), _> { panic!("in a test") })
            .await
            .expect_err("it panicked");
        assert_eq!(error.code, ErrorCode::INTERNAL);
        assert_eq!(checks.run(soon(), late, || Ok(1)).await, Ok(1));
    }
}
