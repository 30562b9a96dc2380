//! What a confined process may reach over the network.

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
