//! The server as a process: its signals (to end at once, to drain and end, and to read its
//! configuration again), its limit on open files, and the user to whom it belongs.

use std::io::IsTerminal as _;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use toolward_host::LOCAL;
use toolward_mcp::principal::{Principal, Tools};
use toolward_operator::reload::Control;

use crate::prelude::*;

/// What signals have asked the server to do.
#[derive(Debug, Clone, Default)]
pub(super) struct Asked {
    /// Cancelled when requests should go to other servers.
    pub(super) draining: CancellationToken,
    /// Stopped when no more requests are accepted.
    pub(super) control: Control,
    /// Cancelled to end the server without waiting for anything.
    pub(super) at_once: CancellationToken,
}

/// The signals that a server handles. While this value exists, none of them ends the process by
/// itself.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    /// Whether the server was started from a terminal.
    terminal: bool,
}

impl Signals {
    /// Starts handling the signals. Must be called on a runtime.
    pub(super) fn take() -> Result<Self> {
        let take = |kind| signal(kind).map_err(Failure::runtime);
        Ok(Self {
            interrupt: take(SignalKind::interrupt())?,
            terminate: take(SignalKind::terminate())?,
            hangup: take(SignalKind::hangup())?,
            terminal: std::io::stdin().is_terminal(),
        })
    }

    /// Handles the signals. SIGTERM drains for `drain` and then ends the server in good order.
    /// SIGINT ends it without draining. A second SIGTERM or SIGINT ends it at once. SIGHUP makes it
    /// read its configuration again, or ends it if its terminal is gone.
    pub(super) async fn obey(mut self, asked: Asked, drain: Duration) {
        let drains = loop {
            tokio::select! {
                _ = self.interrupt.recv() => break false,
                _ = self.terminate.recv() => break true,
                _ = self.hangup.recv() => {
                    // The server's terminal is gone, and with it the person who could end the
                    // server.
                    if self.terminal && !std::io::stdin().is_terminal() {
                        break false;
                    }
                    asked.control.reload.ask();
                }
            }
        };
        if drains && !drain.is_zero() {
            asked.draining.cancel();
            tokio::select! {
                () = tokio::time::sleep(drain) => {}
                () = self.ended() => asked.at_once.cancel(),
            }
        }
        asked.control.stop.cancel();
        self.ended().await;
        asked.at_once.cancel();
    }

    async fn ended(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Files that a server needs by itself: bundles, the ledger, sockets of helpers, the runtime.
const OWN_FILES: u64 = 64;

/// Raises the soft limit on open files to the hard limit. The soft limit is low for programs that
/// use `select`, and this program does not use it.
pub(super) fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // If this fails, the lower limit stays.
    let _ = setrlimit(Resource::Nofile, raised);
}

/// Returns a warning if too few files may be open for this many connections and as many files of
/// tools.
pub(super) fn file_shortage(connections: u64) -> Option<String> {
    let needed = connections.saturating_add(OWN_FILES).saturating_mul(2);
    let most = getrlimit(Resource::Nofile).current?;
    let clients = match connections {
        1 => "its client".to_owned(),
        many => format!("{many} connections"),
    };
    (most < needed).then(|| {
        format!(
            "this process may open {most} files, and {needed} are needed for {clients} and the files of tools: \
             raise the hard limit (`ulimit -Hn {needed}`, `LimitNOFILE={needed}` under systemd)"
        )
    })
}

/// Returns the principal of standard input: the user who started this process.
pub(super) fn local(may_approve: bool) -> Principal {
    Principal {
        name: LOCAL.into(),
        tools: Tools::All,
        may_approve,
    }
}
