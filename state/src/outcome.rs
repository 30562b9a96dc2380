//! How operations of the state fail, and the repetition of those whose outcome is unknown.

use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use crate::BoxFuture;

/// The pause before an operation is repeated.
const RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// Why an operation of the state has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The deadline passed before it started: it did not happen.
    #[error("the state did not take the operation before the deadline")]
    Late,
    /// It may have happened. Repeating it is safe.
    #[error("it is unknown whether the state did the operation")]
    Unknown,
    /// It failed, and did not happen.
    #[error("the state failed: {0}")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Repeats an operation until `deadline` while its outcome is unknown. Each repetition must be the same operation.
///
/// # Errors
///
/// [`StateError`]: that of the last attempt.
pub async fn settled<'a, T>(
    deadline: Instant,
    operation: impl Fn() -> BoxFuture<'a, Result<T, StateError>>,
) -> Result<T, StateError> {
    loop {
        match operation().await {
            // A pause needs a runtime, which what is detached may lack.
            Err(StateError::Unknown)
                if Instant::now() < deadline && tokio::runtime::Handle::try_current().is_ok() =>
            {
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
            outcome => return outcome,
        }
    }
}

/// Does what nothing waits for: as far as it goes at once here, and then in a task of the runtime, if there is one.
pub fn detach(mut operation: BoxFuture<'static, ()>) {
    let mut context = Context::from_waker(Waker::noop());
    if operation.as_mut().poll(&mut context).is_pending()
        && let Ok(runtime) = tokio::runtime::Handle::try_current()
    {
        runtime.spawn(operation);
    }
}
