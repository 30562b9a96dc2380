//! Asks the person at the terminal whether a call may run. Where there is no
//! terminal, nobody is asked, and no flag stands for an answer: an agent could give
//! it. An operator's standing yes is `preapproved` in the policy.

mod keys;
mod question;

use std::future::Future;
use std::io::Write as _;
use std::pin::Pin;
use std::sync::Arc;

use toolward_host::{ApprovalRequest, Approver, Verdict};

use crate::environment::has_terminal;
use crate::progress::Bar;
use keys::Keys;

/// The terminal of the command: asked on standard error, answered on standard
/// input. Standard output is the result's.
pub(crate) struct Terminal {
    bar: Arc<Bar>,
    /// One question at a time.
    turn: tokio::sync::Mutex<()>,
}

impl Terminal {
    /// A terminal that `bar` shares.
    pub(crate) fn new(bar: &Arc<Bar>) -> Self {
        Self {
            bar: Arc::clone(bar),
            turn: tokio::sync::Mutex::default(),
        }
    }

    async fn put(&self, request: &ApprovalRequest) -> std::io::Result<bool> {
        let _turn = self.turn.lock().await;
        let _hold = self.bar.hold();
        // Given back when the call ends while the question is still open.
        let keys = Keys::take()?;
        let width = keys::width();
        write(&question::shown(request, width))?;
        // What was typed before the question was shown does not answer it.
        keys.forget()?;
        let reading = tokio::task::spawn_blocking(keys::answer);
        let answer = reading.await.map_err(std::io::Error::other)??;
        Ok(answer)
    }
}

impl Approver for Terminal {
    fn ask<'a>(
        &'a self,
        request: &'a ApprovalRequest,
    ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        Box::pin(async move {
            if !has_terminal() {
                return Verdict::Unavailable;
            }
            match self.put(request).await {
                Ok(true) => Verdict::Approved,
                Ok(false) => Verdict::Denied(None),
                // A terminal that can't be read is as good as none.
                Err(_) => Verdict::Unavailable,
            }
        })
    }
}

fn write(text: &str) -> std::io::Result<()> {
    let mut error = std::io::stderr().lock();
    error.write_all(text.as_bytes())?;
    error.flush()
}
