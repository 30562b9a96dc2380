//! Which system calls a filter lets pass, and what network a process reaches.

use serde::Serialize;

/// Which system calls a confined process may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SystemCalls {
    /// Those that serving needs. Everything else is refused, calls of newer kernels
    /// too.
    #[default]
    AllowList,
    /// All but the known harmful ones. For a machine on which serving needs
    /// a call that the other list does not have.
    DenyList,
}

impl SystemCalls {
    /// Its name in configuration and reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AllowList => "allow-list",
            Self::DenyList => "deny-list",
        }
    }
}

/// What a filter is made for.
#[derive(Debug, Clone)]
pub(crate) struct Calls {
    pub(crate) list: SystemCalls,
    /// Sockets that can be made.
    pub(crate) network: Network,
    /// The listening sockets from which connections are accepted, and no others.
    pub(crate) listeners: Vec<i32>,
    /// Open `/proc/self/pagemap`, of which only written pages may be asked.
    pub(crate) page_maps: Vec<i32>,
}

/// What a confined process may still reach over the network.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Network {
    /// Nothing: no socket can be made.
    #[default]
    None,
    /// TCP connections to these ports, and name resolution (port 53). No
    /// listening for connections, no Unix sockets, no raw packets. Datagrams (UDP)
    /// go anywhere, since names are resolved with them.
    Ports(Vec<u16>),
    /// Connections to any port. No listening, no Unix sockets, no raw packets.
    Any,
}
