//! How many files this process may open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files that a server needs by itself: bundles, the ledger, sockets of helpers, the runtime.
const OWN_FILES: u64 = 64;

/// Raises the soft limit on open files to the hard one. The soft limit is low for programs
/// that use `select`, which this one doesn't.
pub(crate) fn raise() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // Without it the lower limit is kept to.
    let _ = setrlimit(Resource::Nofile, raised);
}

/// A warning if too few files may be open for this many connections, and as many again for
/// what tools open.
pub(crate) fn shortage(connections: u64) -> Option<String> {
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
