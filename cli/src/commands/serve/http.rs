//! Which clients may connect over HTTP, and the socket to which they connect. The socket is made
//! here, or handed over by a service manager (`LISTEN_FDS`, sd_listen_fds(3)).

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::io::FdFlags;
use rustix::net::{AddressFamily, SocketType, ipproto, sockopt};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use toolward_host::{HostBuilder, SharedState};
use toolward_mcp::Service;
use toolward_mcp::http::tokens::{self, Secret, Tokens};
use toolward_mcp::http::{self, HttpError, PATH, Settings};

use super::process::{Asked, local};
use crate::failure;
use crate::prelude::*;

/// How clients over HTTP prove who they are, and from where they may connect.
#[derive(Debug, Args)]
pub(crate) struct HttpFlags {
    /// Write the token for clients to this file, with mode 0600
    ///
    /// [default: the token is shown on standard error]
    #[arg(long, hide_short_help = true, value_name = "FILE", requires = "http")]
    token_file: Option<PathBuf>,

    /// Accept the tokens whose hashes are in this file, which `mcp token --add` writes
    ///
    /// Each token has a name and the tools that its holder may use.
    #[arg(long, value_name = "FILE")]
    #[arg(requires = "http", conflicts_with = "token_file")]
    tokens: Option<PathBuf>,

    /// Ask for no token: every process of this machine may call
    ///
    /// On loopback addresses only.
    #[arg(long, hide_short_help = true, requires = "http", conflicts_with_all = ["token_file", "tokens"])]
    no_token: bool,

    /// A name that clients may send in the Host header: NAME or NAME:PORT
    ///
    /// In addition to the names of the address itself. May be given again.
    #[arg(long, hide_short_help = true, value_name = "NAME", requires = "http")]
    allow_host: Vec<String>,

    /// An origin whose pages may connect
    ///
    /// As browsers send it: SCHEME://NAME:PORT, without the port if it is the scheme's default. If
    /// clients need a token, `null` and `vscode-webview://*` can also be allowed. If clients need a
    /// token and the address is a loopback address, pages of this machine need no --allow-origin.
    /// May be given again.
    #[arg(long, hide_short_help = true, value_name = "ORIGIN", requires = "http")]
    allow_origin: Vec<String>,

    /// After SIGTERM, still answer for this many seconds
    ///
    /// In this time, `/readyz` answers 503, and each connection is closed after its next answer, so
    /// that proxies and clients lose no request. [default: 5]
    #[arg(long, hide_short_help = true, value_name = "SECONDS", requires = "http", value_parser = clap::value_parser!(u64).range(..=3600))]
    drain: Option<u64>,
}

/// How long a server still answers after SIGTERM.
const DEFAULT_DRAIN: Duration = Duration::from_secs(5);

/// A server over HTTP that is about to serve.
pub(super) struct HttpServer {
    settings: Settings,
    token: ShownToken,
}

/// What is reported about the tokens.
enum ShownToken {
    Token(Secret),
    File(PathBuf),
    Tokens(usize),
    None,
}

impl HttpFlags {
    /// Keeps all guests out of the files with tokens.
    pub(super) fn protect(&self, builder: HostBuilder) -> HostBuilder {
        self.token_files().fold(builder, |builder, file| {
            builder.protect("a file of tokens", file)
        })
    }

    /// Returns the files with tokens of clients.
    pub(super) fn token_files(&self) -> impl Iterator<Item = &PathBuf> {
        self.token_file.iter().chain(&self.tokens)
    }

    /// How long the server still answers after it is asked to end.
    pub(super) fn drain(&self) -> Duration {
        self.drain.map_or(DEFAULT_DRAIN, Duration::from_secs)
    }

    /// Reads or makes the tokens by which clients are checked, and checks the settings.
    pub(super) fn server(
        &self,
        address: SocketAddr,
        trust_client: bool,
        shared_state: &SharedState,
    ) -> Result<HttpServer> {
        let (authentication, token) = self.authentication(trust_client).map_err(failure::http)?;
        let mut settings = Settings::new(authentication);
        settings.shared_state = Some(shared_state.clone());
        settings.hosts.clone_from(&self.allow_host);
        settings.origins.clone_from(&self.allow_origin);
        http::check(address, &settings).map_err(failure::http)?;
        Ok(HttpServer { settings, token })
    }

    fn authentication(
        &self,
        trust_client: bool,
    ) -> Result<(http::Authentication, ShownToken), HttpError> {
        let required = |tokens| http::Authentication::Required(Arc::new(tokens));
        if self.no_token {
            let everyone = http::Authentication::Loopback(local(trust_client));
            return Ok((everyone, ShownToken::None));
        }
        if let Some(path) = &self.tokens {
            let tokens = tokens::read(path)?;
            let shown = ShownToken::Tokens(tokens.len());
            return Ok((required(tokens), shown));
        }
        let (secret, hash) = tokens::generate()?;
        let shown = match &self.token_file {
            Some(path) => {
                tokens::write(path, &secret)?;
                ShownToken::File(path.clone())
            }
            None => ShownToken::Token(secret),
        };
        Ok((required(Tokens::single(hash, local(trust_client))), shown))
    }
}

impl HttpServer {
    /// The most connections at once.
    pub(super) fn connections(&self) -> u64 {
        self.settings.limits.connections as u64
    }

    /// Reports the address to connect to, and the token.
    pub(super) fn announce(&self, listener: &TcpListener, context: &Context) -> Result {
        let address = listener.local_addr();
        let address = address.map_err(|error| failure::http(HttpError::Listener(error)))?;
        let url = format!("http://{address}{PATH}");
        if let ShownToken::None = &self.token {
            context.warning(
                "no token is asked for: every process and every user of this machine may call \
                 these tools",
            );
        }
        if context.json() {
            let shown = match &self.token {
                ShownToken::Token(secret) => json!({ "listening": url, "token": secret.expose() }),
                _ => json!({ "listening": url }),
            };
            return context.value(&shown);
        }
        context.say(format!("listening on {url}"));
        match &self.token {
            ShownToken::Token(secret) => {
                let token = secret.expose();
                context.say(format!("clients send: Authorization: Bearer {token}"));
            }
            ShownToken::File(path) => context.note(format!("the token is in {}", path.display())),
            ShownToken::Tokens(count) => context.note(format!("{count} tokens are known")),
            ShownToken::None => {}
        }
        Ok(())
    }

    pub(super) async fn serve(
        mut self,
        service: &Service,
        listener: TcpListener,
        asked: &Asked,
    ) -> Result {
        let service = service.clone();
        let handler = move || service.connection(None);
        self.settings.draining = asked.draining.clone();
        let shutdown = asked.control.stop.clone();
        let ended = http::serve(listener, handler, self.settings, shutdown).await;
        let connections = ended.map_err(failure::http)?.cut;
        if connections > 0 {
            tracing::warn!(connections, "calls took too long to end, and were cut off");
        }
        Ok(())
    }
}

/// The first descriptor that a service manager hands over (`SD_LISTEN_FDS_START`).
const FIRST_LISTEN_FD: i32 = 3;

/// Takes the listener that was handed over to this process, given the value of its `LISTEN_FDS`.
/// Call it once, before any program is started that would inherit the listener.
///
/// # Errors
///
/// If the descriptors are not exactly one TCP socket that listens at this address. If the port is
/// 0, any port is accepted.
pub(super) fn handed_over(count: &str, address: Option<SocketAddr>) -> Result<TcpListener> {
    let Some(address) = address else {
        let why = "a socket was handed over, and standard input and output are served";
        return Err(refused(why));
    };
    if count != "1" {
        let found: String = count.chars().take(20).collect();
        let why = format!("expected one socket, found LISTEN_FDS={found:?}");
        return Err(refused(why));
    }
    // The descriptor is copied, to check its type before it is used.
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
    let found = listener.local_addr().map_err(unusable)?;
    if found.ip() != address.ip() || (address.port() != 0 && found.port() != address.port()) {
        return Err(refused(format_args!(
            "expected a socket that listens at {address}, as `--http` says, found {found}"
        )));
    }
    listener.set_nonblocking(true).map_err(unusable)?;
    Ok(listener)
}

/// Owns the descriptor that was handed over. The caller has checked that it is a listening TCP
/// socket.
#[expect(unsafe_code, reason = "a number becomes a descriptor")]
fn take() -> OwnedFd {
    // SAFETY: the descriptor is open, since `handed_over` made a copy of it. Nothing else in this
    // process owns it: it is a listening TCP socket, and `handed_over` runs once, before this
    // process makes such a socket. So the socket existed when the process started.
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

fn unusable(error: impl std::error::Error) -> Failure {
    refused(format_args!(
        "descriptor {FIRST_LISTEN_FD} can't be used: {error}"
    ))
}

fn refused(message: impl std::fmt::Display) -> Failure {
    Failure::usage(Code::ListenerUnusable, message).hint(
        "a socket unit with one `ListenStream=`, an IP address and a port, and `--http` with the \
         same, see the book's page on serving over HTTP",
    )
}

/// Parses an address to listen at. `localhost` is 127.0.0.1. Names are not looked up, since the
/// server that answers the lookup would choose who can connect.
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
