//! Why the server could not start. What is wrong with a request is its answer.

use std::net::SocketAddr;
use std::path::PathBuf;

use toolward_support::report::codes;

/// Starting the server, or reading its tokens, failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// The listening socket can't be used.
    #[error("the listening socket can't be used: {0}")]
    Listener(#[source] std::io::Error),
    /// No token is required on an address that other machines can reach.
    #[error("`{0}` can be reached from other machines, where calls without a token are refused")]
    OpenAddress(SocketAddr),
    /// Pages of unknown authors could call without a token.
    #[error("the origin `{0}` can be any page, and calls without a token are served")]
    OpenOrigin(String),
    /// Clients can't use the address as a host name, and no names were given.
    #[error("clients can't name `{0}` as their host, and no host names are allowed")]
    NoHosts(SocketAddr),
    /// An allowed host or origin is not valid.
    #[error("`{found}` is no {expected}")]
    Name {
        /// What was found.
        found: String,
        /// What was expected.
        expected: &'static str,
    },
    /// The token file can't be read or written.
    #[error("the token file {} can't be {action}: {source}", path.display())]
    TokenFile {
        /// The file.
        path: PathBuf,
        /// `read` or `written`.
        action: &'static str,
        /// What went wrong.
        #[source]
        source: std::io::Error,
    },
    /// Others than its owner can read or replace the token file.
    #[error("the token file {} {problem}", path.display())]
    TokenFileUnsafe {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The token file is not valid.
    #[error("the token file{} {problem}", line.map(|line| format!(", line {line},")).unwrap_or_default())]
    Tokens {
        /// What is wrong with it.
        problem: String,
        /// Where, from 1.
        line: Option<usize>,
    },
    /// The entry for a new token is not valid.
    #[error("the new token {problem}")]
    Token {
        /// What is wrong with it.
        problem: String,
    },
    /// The token file has an entry of this name already.
    #[error("the token file {} has a token of `{name}`", path.display())]
    TokenKnown {
        /// The file.
        path: PathBuf,
        /// The name.
        name: String,
    },
    /// The system gives no random bytes.
    #[error("the system gives no random bytes: {0}")]
    Random(#[source] getrandom::Error),
}

codes! {
    for HttpError {
        Self::Listener(_) = "http-listener",
            "name an address of this machine and a port that is free";
        Self::OpenAddress(_) = "http-open-address", "serve on 127.0.0.1 or [::1], or give tokens";
        Self::OpenOrigin(_) = "http-open-origin", "leave out the origin, or give tokens";
        Self::NoHosts(_) = "http-no-hosts", "name each host by which clients reach the server: `--allow-host NAME`";
        Self::Name { .. } = "http-name-invalid",
            "a host is `name` or `name:port`, an origin `https://name`, `https://name:port`, \
             `null` or `vscode-webview://*`";
        Self::TokenFile { .. } = "token-file-unusable",
            "name a file that you may read, in a directory that is there";
        Self::TokenFileUnsafe { .. } = "token-file-unsafe",
            "give the file to the user who runs the server, and set its mode to 0600";
        Self::Tokens { .. } = "token-file-invalid",
            "see the book's page on serving over HTTP for the file's form";
        Self::Token { .. } = "token-invalid",
            "a name is up to 64 of a-z, 0-9, `-`, `_` and `.`; a tool is `id`, `id@major`, \
             `prefix.*` or `*`";
        Self::TokenKnown { .. } = "token-known",
            "choose another name, or remove the entry from the file if its token should no longer be \
             valid";
        Self::Random(_) = "random-unavailable";
    }
}
