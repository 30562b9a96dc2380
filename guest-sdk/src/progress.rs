//! Reports progress to the caller. A report never blocks, and excess reports are dropped.
//!
//! Outside a component (in a driver's own tests), reports are discarded.

use alloc::string::String;

use crate::bindings::toolward::driver::progress as wit;

/// Reports that `done` of `total` is reached. `done` must rise with each report within one call.
/// `total` is `None` if it isn't known.
///
/// ```
/// # use toolward_guest::progress;
/// progress::report(3.0, Some(10.0));
/// ```
pub fn report(done: f64, total: Option<f64>) {
    send(wit::Update {
        done,
        total,
        message: None,
    });
}

/// Reports progress like [`report`], with a message for people.
pub fn report_with(done: f64, total: Option<f64>, message: impl Into<String>) {
    send(wit::Update {
        done,
        total,
        message: Some(message.into()),
    });
}

fn send(update: wit::Update) {
    if cfg!(target_family = "wasm") {
        wit::report(&update);
    }
}
