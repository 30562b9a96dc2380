//! Who may connect over HTTP.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use toolward_host::{HostBuilder, SharedState};
use toolward_mcp::Service;
use toolward_mcp::http::tokens::{self, Secret, Tokens};
use toolward_mcp::http::{self, HttpError, PATH, Settings};

use super::local;
use super::signals::Asked;
use crate::failure::{self, Result};
use crate::output::Output;

/// How clients that speak HTTP prove who they are.
#[derive(Debug, Args)]
pub(crate) struct HttpFlags {
    /// Write the token that clients have to send to this file, mode 0600
    /// [default: the token is shown on standard error]
    #[arg(long, value_name = "FILE", requires = "http")]
    token_file: Option<PathBuf>,

    /// Take the tokens whose hashes are in this file, each with a name and the
    /// tools that it may use
    #[arg(
        long,
        value_name = "FILE",
        requires = "http",
        conflicts_with = "token_file"
    )]
    tokens: Option<PathBuf>,

    /// Ask for no token: every process of this machine may call. On loopback
    /// addresses only
    #[arg(long, requires = "http", conflicts_with_all = ["token_file", "tokens"])]
    no_token: bool,

    /// A name that clients may give as Host, NAME or NAME:PORT, besides the
    /// address's own (may be given again)
    #[arg(long, value_name = "NAME", requires = "http")]
    allow_host: Vec<String>,

    /// An origin whose pages may connect: a scheme, a name and a port, unless
    /// it is the scheme's, as browsers send it. With tokens those of this
    /// machine may in any case, and `null` and `vscode-webview://*` can be
    /// given (may be given again)
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    allow_origin: Vec<String>,

    /// At SIGTERM answer still for this long, with `/readyz` saying 503 and each
    /// connection closed after its answer, so that proxies and clients lose no
    /// request [default: 5]
    #[arg(long, value_name = "SECONDS", requires = "http", value_parser = clap::value_parser!(u64).range(..=3600))]
    drain: Option<u64>,
}

/// How long a server still answers after SIGTERM.
const DEFAULT_DRAIN: Duration = Duration::from_secs(5);

/// A server over HTTP that is about to serve.
pub(super) struct HttpServer {
    settings: Settings,
    token: ShownToken,
}

/// What is said about the token.
enum ShownToken {
    Token(Secret),
    File(PathBuf),
    Tokens(usize),
    None,
}

impl HttpFlags {
    /// Keeps all guests out of the files of tokens.
    pub(super) fn protect(&self, builder: HostBuilder) -> HostBuilder {
        self.token_files().fold(builder, |builder, file| {
            builder.protect("a file of tokens", file)
        })
    }

    /// The files of tokens that clients call with.
    pub(super) fn token_files(&self) -> impl Iterator<Item = &PathBuf> {
        self.token_file.iter().chain(&self.tokens)
    }

    /// How long the server still answers when it is told to end.
    pub(super) fn drain(&self) -> Duration {
        self.drain.map_or(DEFAULT_DRAIN, Duration::from_secs)
    }

    /// Reads or makes what clients are checked by.
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
        if self.no_token {
            return Ok((
                http::Authentication::Loopback(local(trust_client)),
                ShownToken::None,
            ));
        }
        if let Some(path) = &self.tokens {
            let tokens = tokens::read(path)?;
            let shown = ShownToken::Tokens(tokens.len());
            return Ok((http::Authentication::Required(Arc::new(tokens)), shown));
        }
        let (secret, hash) = tokens::generate()?;
        let shown = match &self.token_file {
            Some(path) => {
                tokens::write(path, &secret)?;
                ShownToken::File(path.clone())
            }
            None => ShownToken::Token(secret),
        };
        let tokens = Tokens::single(hash, local(trust_client));
        Ok((http::Authentication::Required(Arc::new(tokens)), shown))
    }
}

impl HttpServer {
    /// The most connections at once.
    pub(super) fn connections(&self) -> u64 {
        self.settings.limits.connections as u64
    }

    /// Says where to connect, and with what.
    pub(super) fn announce(&self, listener: &TcpListener, output: &mut Output) -> Result {
        let address = listener
            .local_addr()
            .map_err(|error| failure::http(HttpError::Listener(error)))?;
        let url = format!("http://{address}{PATH}");
        if let ShownToken::None = &self.token {
            output.warning(
                "no token is asked for: every process and every user of this machine may call \
                 these tools",
            );
        }
        if output.json() {
            let shown = match &self.token {
                ShownToken::Token(secret) => json!({ "listening": url, "token": secret.expose() }),
                _ => json!({ "listening": url }),
            };
            return output.value(&shown);
        }
        output.say(format!("listening on {url}"));
        match &self.token {
            ShownToken::Token(secret) => {
                let token = secret.expose();
                output.say(format!("clients send: Authorization: Bearer {token}"));
            }
            ShownToken::File(path) => output.note(format!("the token is in {}", path.display())),
            ShownToken::Tokens(count) => output.note(format!("{count} tokens are known")),
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
        let ended = http::serve(listener, handler, self.settings, shutdown)
            .await
            .map_err(failure::http)?;
        if ended.cut > 0 {
            tracing::warn!(
                connections = ended.cut,
                "calls took too long to end, and were cut off"
            );
        }
        Ok(())
    }
}
