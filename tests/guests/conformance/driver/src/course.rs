//! What happens while a call runs: progress, log records, failing, and never ending.

use std::hint::black_box;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use toolward_guest::{Call, Error, Reply, log, progress};

use crate::Nothing;
use crate::content::said;

const A_WHILE: Duration = Duration::from_millis(50);

type Answer = Result<Reply<Value>, Error>;

pub(crate) fn fail(_: Call<Nothing>) -> Answer {
    Err(Error::new(
        "conformance:intended",
        "This tool intentionally returns an error for testing",
    ))
}

pub(crate) fn progress(_: Call<Nothing>) -> Answer {
    progress::report(0.0, Some(100.0));
    sleep(A_WHILE);
    progress::report(50.0, Some(100.0));
    sleep(A_WHILE);
    progress::report(100.0, Some(100.0));
    // The TypeScript client handles a report a moment after it came, and forgets whom to
    // tell as soon as it has the result: what comes with it in one piece is lost there.
    sleep(A_WHILE);
    Ok(said("The tool reported its progress"))
}

pub(crate) fn logging(_: Call<Nothing>) -> Answer {
    log::info("Tool execution started");
    sleep(A_WHILE);
    log::info("Tool processing data");
    sleep(A_WHILE);
    log::info("Tool execution completed");
    Ok(said("The tool wrote its log"))
}

/// Says that it runs, and then does so in a tight loop: only the host can end it.
pub(crate) fn endless(_: Call<Nothing>) -> Answer {
    progress::report(1.0, None);
    loop {
        black_box(());
    }
}
