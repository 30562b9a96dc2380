//! A runtime for work that blocks the calling thread.

use tokio::runtime::{Builder, Handle, Runtime};

use crate::error::{Code, Error, Kind};

/// A runtime for one piece of work of this thread, such as a transfer.
///
/// Everything in this crate that uses the network blocks the thread that calls it. In an
/// asynchronous application call it on a thread of its own:
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let fetched = std::thread::spawn(|| -> Result<u32, toolward_operator::Error> {
///     Ok(toolward_operator::runtime()?.block_on(async { 7 }))
/// });
/// assert_eq!(fetched.join().map_err(|_| "it panicked")??, 7);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// `runtime-unavailable` on a thread that already runs a tokio runtime, where blocking
/// would panic, or if the system has no resources for one.
pub fn runtime() -> Result<Runtime, Error> {
    if Handle::try_current().is_ok() {
        let message = "this blocks, and was called inside a tokio runtime";
        return Err(Error::new(Kind::Failed, Code::RuntimeUnavailable, message)
            .hint("call it on a thread of its own, such as one of std::thread::spawn"));
    }
    Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::runtime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn inside_a_runtime_it_is_an_error_and_no_panic() {
        let error = runtime().unwrap_err();
        assert_eq!(error.code, Code::RuntimeUnavailable.code());
        let elsewhere = std::thread::spawn(|| runtime().is_ok());
        assert!(elsewhere.join().unwrap());
    }
}
