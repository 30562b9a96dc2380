//! The socket that clients of HTTP connect to: made here, or handed over by a service
//! manager (`LISTEN_FDS`, sd_listen_fds(3)).

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::{FromRawFd as _, OwnedFd};

use rustix::io::FdFlags;
use rustix::net::{AddressFamily, SocketType, ipproto, sockopt};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use toolward_mcp::http;

use crate::failure::{Code, Failure, Result};

/// The first descriptor that a service manager hands over (`SD_LISTEN_FDS_START`).
const FIRST_LISTEN_FD: i32 = 3;

/// Takes the listener that was handed over to this process, given the value of its
/// `LISTEN_FDS`. To be called once, before a program is started that would inherit it.
///
/// # Errors
///
/// When that is not exactly one TCP socket which listens at this address, or, where the
/// port is 0, at this address and any port.
pub(super) fn handed_over(count: &str, address: Option<SocketAddr>) -> Result<TcpListener> {
    let Some(address) = address else {
        return Err(refused(
            "a socket was handed over, and standard input and output are served",
        ));
    };
    if count != "1" {
        let found: String = count.chars().take(20).collect();
        return Err(refused(format_args!(
            "expected one socket, found LISTEN_FDS={found:?}"
        )));
    }
    let unusable = |error| {
        refused(format_args!(
            "descriptor {FIRST_LISTEN_FD} can't be used: {error}"
        ))
    };
    // A copy, to see what it is before anything is done to it.
    let copy = pidfd_open(getpid(), PidfdFlags::empty())
        .and_then(|own| pidfd_getfd(own, FIRST_LISTEN_FD, PidfdGetfdFlags::empty()))
        .map_err(unusable)?;
    if !is_tcp_listener(&copy).map_err(unusable)? {
        return Err(refused(format_args!(
            "expected a TCP socket that listens as descriptor {FIRST_LISTEN_FD}, found something else"
        )));
    }
    let listener = TcpListener::from(take());
    rustix::io::fcntl_setfd(&listener, FdFlags::CLOEXEC).map_err(unusable)?;
    let found = listener.local_addr().map_err(|error| {
        refused(format_args!(
            "descriptor {FIRST_LISTEN_FD} can't be used: {error}"
        ))
    })?;
    if found.ip() != address.ip() || (address.port() != 0 && found.port() != address.port()) {
        return Err(refused(format_args!(
            "expected a socket that listens at {address}, as `--http` says, found {found}"
        )));
    }
    listener.set_nonblocking(true).map_err(|error| {
        refused(format_args!(
            "descriptor {FIRST_LISTEN_FD} can't be used: {error}"
        ))
    })?;
    Ok(listener)
}

/// Owns the descriptor that was handed over. The caller has seen that it is a TCP socket
/// which listens.
#[expect(unsafe_code, reason = "a number becomes a descriptor")]
fn take() -> OwnedFd {
    // SAFETY: the descriptor is open: `handed_over` made a copy of it. Nothing else in
    // this process owns it: it is a TCP socket that listens, `handed_over` runs once and
    // before this process makes such a socket, so it was there when the process began.
    unsafe { OwnedFd::from_raw_fd(FIRST_LISTEN_FD) }
}

fn is_tcp_listener(socket: &OwnedFd) -> rustix::io::Result<bool> {
    let listens = match sockopt::socket_acceptconn(socket) {
        Err(rustix::io::Errno::NOTSOCK) => return Ok(false),
        listens => listens?,
    };
    let domain = sockopt::socket_domain(socket)?;
    Ok(listens
        && (domain == AddressFamily::INET || domain == AddressFamily::INET6)
        && sockopt::socket_type(socket)? == SocketType::STREAM
        && sockopt::socket_protocol(socket)? == Some(ipproto::TCP))
}

fn refused(message: impl std::fmt::Display) -> Failure {
    Failure::usage(Code::ListenerUnusable, message).hint(
        "a socket unit with one `ListenStream=`, an IP address and a port, and `--http` with the \
         same, see the book's page on serving over HTTP",
    )
}

/// Reads an address to listen at. `localhost` is 127.0.0.1: a name is not looked up, since
/// whoever answers would choose who can connect.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let port = match text.split_once(':') {
        Some(("localhost", port)) => port.parse::<u16>().ok(),
        _ => None,
    };
    port.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
        .ok_or_else(|| {
            "expected an IP address or localhost, and a port: localhost:8000, 127.0.0.1:8000, \
             [::1]:8000"
                .to_owned()
        })
}

/// Listens at an address.
pub(super) fn listen(address: SocketAddr) -> Result<TcpListener> {
    http::bind(address).map_err(|error| {
        Failure::usage(Code::AddressUnusable, format!("{address}: {error}"))
            .hint("name an address of this machine and a port that is free, or port 0 for any")
    })
}
