//! The errors of operations of the state, and the repetition of operations with an unknown outcome.

use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use toolward_support::report::codes;

use crate::BoxFuture;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

codes! {
    /// A store could not be opened, or an operation on a bucket was refused or failed.
    #[derive(Debug)]
    pub enum Error: Error {
        Unusable(inner: toolward_support::files::Error) = "store-unusable"
            => "name another place for the store, or repair owner and mode of this one";
        Corrupt(source: BoxError) = "store-corrupt",
            ("the key-value store is damaged, or another program's file: {source}")
            => "move the file away, with those of the same name that end in -wal and -shm, and \
                put a copy back that was made while no host was running; without one, the host \
                begins with an empty store";
        Version { found: i64, expected: i64 } = "store-version",
            ("the key-value store has schema {found}; this version reads schema {expected}")
            => if found > expected {
                "update toolward"
            } else {
                "use the version of toolward that made the file"
            };
        Busy = "store-busy", ("the key-value store was busy until the deadline")
            => "find out which process holds the store, or allow the call more time";
        /// The operation was undone.
        Deadline = "store-deadline" ["–"], "the key-value store was not done at the deadline"
            => "find out which process holds the store, or allow the call more time";
        /// The store did not answer: the operation may have been done.
        Unknown = "store-unknown" ["–"], "it is unknown whether the key-value store made the change"
            => "look at the value before the change is made again";
        /// `limit` is a name of [`crate::Limits`].
        TooLarge { limit: &'static str, used: u64, allowed: u64 } = "too-large" ["–"],
            "a key, a value or an operation of a bucket is larger than allowed",
            ("`{limit}` exceeded: {used} of {allowed} allowed")
            => "raise the limit, if the tool is to have more";
        /// `limit` is a name of [`crate::Limits`].
        Quota { limit: &'static str, used: u64, allowed: u64 } = "quota-exceeded" ["–"],
            "a bucket, or the number of buckets, would grow beyond its quota",
            ("quota `{limit}` exceeded: {used} of {allowed} allowed")
            => "raise the limit, if the tool is to have more";
        ReadOnly = "bucket-read-only" ["–"], "the bucket was opened for reading";
        NotANumber(problem: &'static str) = "not-a-number" ["–"],
            "the value to increment is not a number, or the sum is too large",
            ("the value can't be incremented: {problem}");
        Full = "disk-full", ("the disk of the key-value store is full") => "make room on the disk";
        Io(source: BoxError) = "store-io", ("the key-value store failed: {source}");
    }
}

/// The pause before an operation is repeated.
const RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// Why an operation of the state has no result.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The deadline passed before the operation started, so it did not happen.
    #[error("the state did not take the operation before the deadline")]
    Late,
    /// The operation may have happened. Repeating it is safe.
    #[error("it is unknown whether the state did the operation")]
    Unknown,
    /// The operation failed, and did not happen.
    #[error("the state failed: {0}")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Repeats an operation until `deadline` while its outcome is unknown. Each repetition must be the
/// same operation. Without a Tokio runtime, the operation is tried only once.
///
/// # Errors
///
/// The [`StateError`] of the last attempt.
pub async fn settled<'a, T>(
    deadline: Instant,
    operation: impl Fn() -> BoxFuture<'a, Result<T, StateError>>,
) -> Result<T, StateError> {
    loop {
        match operation().await {
            // A pause needs a runtime, which a detached operation may lack.
            Err(StateError::Unknown)
                if Instant::now() < deadline && tokio::runtime::Handle::try_current().is_ok() =>
            {
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
            outcome => return outcome,
        }
    }
}

/// Runs an operation that nothing waits for. Polls it once here, and then continues in a task of
/// the Tokio runtime. Without a runtime, an operation that is not done after one poll is dropped.
pub fn detach(mut operation: BoxFuture<'static, ()>) {
    let mut context = Context::from_waker(Waker::noop());
    if operation.as_mut().poll(&mut context).is_pending()
        && let Ok(runtime) = tokio::runtime::Handle::try_current()
    {
        runtime.spawn(operation);
    }
}
