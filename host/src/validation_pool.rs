//! A bounded pool of threads for validations that may take long: value and schema are untrusted,
//! and a validation can't be interrupted. Each principal has a share of the permits. A validation
//! keeps its permit until it has ended, but its caller waits only until the deadline.

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use toolward_contract::schema::Schema;
use toolward_sandbox::deadline;
use toolward_sandbox::turns::cores;
use toolward_support::helper::lock;

use toolward_policy::{LimitName, own};
use toolward_state::{PlaceLimits, places_of_process};

use crate::admission::{Gate, Gates};
use crate::api::result::{CallError, Result};

/// The bound on inline checks: bytes of JSON times the weight of the schema. A check below this
/// bound takes microseconds, or a few milliseconds at worst, so moving it to a thread does not pay.
const INLINE_COST: usize = 500_000;

/// Whether `bytes` of JSON are checked against `schema` inline.
pub(crate) fn is_short(bytes: usize, schema: &Schema) -> bool {
    bytes.saturating_mul(schema.weight()) < INLINE_COST
}

/// A bound in bytes: [`is_short`] holds for fewer bytes.
pub(crate) fn short_bytes(schema: &Schema) -> usize {
    INLINE_COST
        .checked_div(schema.weight())
        .unwrap_or(INLINE_COST)
}

/// The most checks that may wait for a permit of their principal, and of the pool.
const MAX_WAITING: u32 = own::LONG_CHECKS as u32;

/// The pool for long checks of a host and of the hosts that replace it.
pub(crate) struct ValidationPool {
    all: Arc<Gate>,
    principals: Mutex<Gates>,
    /// Permits of one principal.
    share: u32,
}

impl Default for ValidationPool {
    /// A principal's share is one permit per core; the pool has a quarter more, so that
    /// no principal can take all.
    fn default() -> Self {
        let cores = u32::try_from(cores()).unwrap_or(u32::MAX);
        Self::new(cores, cores.saturating_add((cores / 4).max(1)), MAX_WAITING)
    }
}

impl ValidationPool {
    fn new(share: u32, all: u32, waiting: u32) -> Self {
        Self {
            all: gate(all, waiting),
            principals: Mutex::default(),
            share,
        }
    }

    /// The gate of one principal.
    fn of(&self, principal: &str) -> Arc<Gate> {
        let mut gates = lock(&self.principals);
        gates.get(principal, || gate(self.share, MAX_WAITING))
    }

    /// Runs a principal's `check` on a blocking thread; `late` makes the error if the
    /// deadline passes first.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        principal: &str,
        deadline: Instant,
        late: impl Fn() -> CallError,
        check: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let own = self.of(principal);
        let work = pin!(async {
            // A check that waits for its principal's share holds no permit of the pool.
            let places = (
                own.enter(true, Some(deadline)).await?,
                self.all.enter(true, Some(deadline)).await?,
            );
            // A running check keeps its principal's gate alive.
            let held = (places, own.clone());
            let task = tokio::task::spawn_blocking(move || {
                let result = check();
                drop(held);
                result
            });
            task.await.unwrap_or_else(|error| {
                tracing::error!(%error, "a check failed");
                Err(CallError::internal(
                    "checking a value against its schema failed",
                ))
            })
        });
        deadline::before(deadline, work)
            .await
            .unwrap_or_else(|deadline::Elapsed| Err(late()))
    }
}

/// A gate for this process only, since the pool's threads belong to this process.
fn gate(running: u32, waiting: u32) -> Arc<Gate> {
    let limits = PlaceLimits { running, waiting };
    Gate::new(LimitName::LongChecks, limits, places_of_process(limits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::result::ErrorCode;
    use std::time::Duration;

    fn late() -> CallError {
        CallError::of(ErrorCode::TIMEOUT, "late")
    }

    /// Starts a check of a principal that takes some time.
    async fn busy(checks: &Arc<ValidationPool>, principal: &'static str, time: Duration) {
        let checks = checks.clone();
        let (begun, begins) = tokio::sync::oneshot::channel();
        tokio::spawn(async move {
            let check = move || {
                let _ = begun.send(());
                std::thread::sleep(time);
                Ok(())
            };
            checks.run(principal, far(), late, check).await
        });
        begins.await.expect("it begins");
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(20)
    }

    fn far() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    #[tokio::test]
    async fn a_check_that_takes_too_long_is_not_waited_for_and_keeps_its_place() {
        let checks = ValidationPool::new(1, 1, MAX_WAITING);
        let slow = || {
            std::thread::sleep(Duration::from_millis(300));
            Ok(1)
        };
        let error = checks.run("a", soon(), late, slow).await.expect_err("late");
        assert_eq!(error.code, ErrorCode::TIMEOUT);
        for principal in ["a", "b"] {
            let next = checks.run(principal, soon(), late, || Ok(2)).await;
            assert_eq!(
                next.expect_err("the place is taken").code,
                ErrorCode::TIMEOUT
            );
        }
        assert_eq!(checks.run("a", far(), late, || Ok(3)).await, Ok(3));
    }

    #[tokio::test]
    async fn a_principal_whose_checks_take_long_leaves_a_place_to_others() {
        let checks = Arc::new(ValidationPool::default());
        let long = Duration::from_secs(2);
        for _ in 0..cores() {
            busy(&checks, "greedy", long).await;
        }
        let more = checks.run("greedy", soon(), late, || Ok(1)).await;
        assert_eq!(more.expect_err("its share").code, ErrorCode::TIMEOUT);
        let begun = Instant::now();
        let other = checks.run("modest", far(), late, || Ok(2)).await;
        assert_eq!(other, Ok(2));
        assert!(begun.elapsed() < long / 2, "it waited for none of them");
    }

    #[tokio::test]
    async fn beyond_what_may_wait_a_check_is_refused() {
        let checks = Arc::new(ValidationPool::new(1, 1, 1));
        busy(&checks, "a", Duration::from_millis(300)).await;
        let mut waiting = pin!(checks.run("b", far(), late, || Ok(1)));
        assert!(futures_util::poll!(&mut waiting).is_pending());
        let refused = checks.run("c", far(), late, || Ok(2)).await;
        let error = refused.expect_err("one waits already");
        assert_eq!(error.code, ErrorCode::RATE_LIMITED);
        assert_eq!(error.limit.expect("a limit").limit, LimitName::LongChecks);
        assert_eq!(error.hint.as_deref(), Some("try again later"));
        assert_eq!(waiting.await, Ok(1));
    }

    #[tokio::test]
    async fn a_check_that_panics_is_a_fault_of_the_host_and_frees_its_place() {
        let checks = ValidationPool::new(1, 1, MAX_WAITING);
        let error = checks
            .run("a", far(), late, || -> Result<(), _> {
                panic!("in a test")
            })
            .await
            .expect_err("it panicked");
        assert_eq!(error.code, ErrorCode::INTERNAL);
        assert_eq!(checks.run("a", far(), late, || Ok(1)).await, Ok(1));
    }
}
