//! The recorder of a host whose calls are recorded. It is this program in another process, as
//! `toolward serve` starts its recorder.

use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use toolward_ledger::LedgerOptions;
use toolward_ledger::record::{Number, Opened, Version, Word};
use toolward_ledger::remote::{RecorderConnection, Remote, Start};

/// Set in the environment of the process that records.
const RECORDS: &str = "TOOLWARD_BENCH_RECORDS";

/// Records calls in another process, into a ledger that is removed afterwards.
pub(super) struct Recorded {
    pub(super) remote: Arc<Remote>,
    process: Child,
    _folder: TempDir,
}

impl Recorded {
    pub(super) fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (ours, theirs) = UnixStream::pair().expect("two sockets");
        let program = std::env::current_exe().expect("this program");
        let process = Command::new(program)
            .env(RECORDS, "1")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .spawn()
            .expect("a process");
        let start = Start {
            options: LedgerOptions::new(folder.path().join("ledger")),
            opened: Opened {
                build: Version::parse("0.0.0").expect("a version"),
                bundles: Vec::new(),
                bundles_set: None,
                confinement: Word::parse("none").expect("a word"),
                cut: Number::default(),
                policy: None,
            },
        };
        Self {
            remote: Arc::new(Remote::start(ours, start).expect("a recorder")),
            process,
            _folder: folder,
        }
    }

    /// Waits until all is recorded.
    pub(super) fn end(mut self) {
        let closed = self.remote.close(Duration::from_secs(60));
        closed.expect("all is recorded");
        self.process.wait().expect("its end");
    }
}

/// Records until the socket ends, if this process is the recorder. Returns whether it is.
pub(super) fn records() -> bool {
    if std::env::var_os(RECORDS).is_none() {
        return false;
    }
    let socket = std::io::stdin().as_fd().try_clone_to_owned();
    let socket = UnixStream::from(socket.expect("a socket"));
    let accepted = RecorderConnection::accept(socket).expect("a start");
    if let Some(connection) = accepted {
        connection.serve().expect("a ledger");
    }
    true
}
