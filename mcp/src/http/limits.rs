//! Limits of the HTTP server.

use std::time::Duration;

/// Limits of the HTTP server. What a call may use is limited by the host.
///
/// ```
/// let limits = toolward_mcp::http::HttpLimits {
///     connections_per_address: 512,
///     ..Default::default()
/// };
/// assert_eq!(limits.connections, 512);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpLimits {
    /// Connections at once. A further one replaces one that has not shown a valid token;
    /// where there is none, it gets status 503 and is closed.
    pub connections: usize,
    /// Connections at once from one address: all of this machine's loopback addresses
    /// count as one, and so does a /64 network of IPv6. Behind a proxy all clients
    /// have one address: there it is as high as `connections`.
    pub connections_per_address: usize,
    /// Connections at once that one principal keeps for further requests. A connection
    /// counts for the principal of its first token. Beyond them a connection is closed
    /// after its first answer.
    pub connections_per_principal: usize,
    /// How long a connection may stay without a valid token once half of the
    /// connections, of all or of its address, are taken.
    pub newcomer_within: Duration,
    /// Requests of one principal at once, unless its token says otherwise. A further one
    /// gets status 429.
    pub requests: usize,
    /// Streams of one principal at once on which it listens for what changes.
    pub streams: usize,
    /// Sessions of one principal at once, in the protocol's older era. The one that
    /// was idle longest makes room; if none is idle, a new one is refused.
    pub sessions: usize,
    /// Sessions of all principals at once. Beyond them one that is idle makes room: one
    /// of the principal's own, or, where it has none, of any.
    pub sessions_in_all: usize,
    /// How long a session may be idle: without request, call or stream.
    pub session_idle: Duration,
    /// Bytes of one request's body. A tool's input is limited to 1 MiB before; the
    /// rest is room for escapes and for answers to what a tool asked.
    pub body: usize,
    /// Bytes of memory that requests may take together while they are parsed and
    /// handled, estimated from their bytes and values. A quarter as much again is for
    /// bodies that are being read, and for answers. One principal may take at most half
    /// of what is left.
    pub memory: usize,
    /// How long a request's head may take, and how long a connection may be idle. Stops
    /// clients that send one byte now and then.
    pub head_within: Duration,
    /// How long a request's body may take.
    pub body_within: Duration,
    /// How long a client may leave what is sent to it unread.
    pub read_within: Duration,
    /// How long a call of the session era outlives its connection, because the client may
    /// come back for the result; then it is cancelled. In the stateless era it is
    /// cancelled at once.
    pub resume_within: Duration,
    /// How long calls may take to finish when the server is shut down.
    pub finish_within: Duration,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            connections: 512,
            connections_per_address: 256,
            connections_per_principal: 128,
            newcomer_within: Duration::from_secs(2),
            requests: 32,
            streams: 16,
            sessions: 32,
            sessions_in_all: 1024,
            session_idle: Duration::from_secs(30 * 60),
            body: crate::messages::MAX_MESSAGE_BYTES,
            memory: 512 * 1024 * 1024,
            head_within: Duration::from_secs(15),
            body_within: Duration::from_secs(30),
            read_within: Duration::from_secs(30),
            resume_within: Duration::from_secs(5),
            finish_within: Duration::from_secs(30),
        }
    }
}
