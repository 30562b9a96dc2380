//! Why the server could not start. What is wrong with a request is its answer.

use std::net::SocketAddr;
use std::path::PathBuf;

use toolward_support::report::codes;

codes! {
    /// Starting the server, or reading its tokens, failed.
    #[derive(Debug)]
    pub enum HttpError: Error {
        Listener(source: std::io::Error) = "http-listener", "the listening socket can't be used",
            ("the listening socket can't be used: {source}")
            => "name an address of this machine and a port that is free";
        OpenAddress(address: SocketAddr) = "http-open-address" ["2"], "`--no-token` on an address that other machines reach",
            ("`{address}` can be reached from other machines, where calls without a token are refused")
            => "serve on 127.0.0.1 or [::1], or give tokens";
        OpenOrigin(origin: String) = "http-open-origin" ["2"], "an `--allow-origin` that can be any page, with `--no-token`",
            ("the origin `{origin}` can be any page, and calls without a token are served")
            => "leave out the origin, or give tokens";
        NoHosts(address: SocketAddr) = "http-no-hosts" ["2"],
            "clients can't name this address, and no `--allow-host` was given",
            ("clients can't name `{address}` as their host, and no host names are allowed")
            => "name each host by which clients reach the server: `--allow-host NAME`";
        Name { found: String, expected: &'static str } = "http-name-invalid" ["2"],
            "an `--allow-host` or `--allow-origin` is invalid", ("`{found}` is no {expected}")
            => "a host is `name` or `name:port`, an origin `https://name`, `https://name:port`, \
                `null` or `vscode-webview://*`";
        /// `action` is `read` or `written`.
        TokenFile { path: PathBuf, action: &'static str, source: std::io::Error } = "token-file-unusable" ["2"],
            "the file of tokens can't be read or written",
            ("the token file {} can't be {action}: {source}", path.display())
            => "name a file that you may read, in a directory that is there";
        TokenFileUnsafe { path: PathBuf, problem: String } = "token-file-unsafe" ["2"],
            "others than its owner may read or change the file of tokens",
            ("the token file {} {problem}", path.display())
            => "give the file to the user who runs the server, and set its mode to 0600";
        /// `line` from 1.
        Tokens { problem: String, line: Option<usize> } = "token-file-invalid" ["2"], "the file of tokens is invalid",
            ("the token file{} {problem}", line.map(|line| format!(", line {line},")).unwrap_or_default())
            => "see the book's page on serving over HTTP for the file's form";
        Token { problem: String } = "token-invalid" ["2"], "`mcp token` got an invalid name or tool",
            ("the new token {problem}")
            => "a name is up to 64 of a-z, 0-9, `-`, `_` and `.`; a tool is `id`, `id@major`, \
                `prefix.*` or `*`";
        TokenKnown { path: PathBuf, name: String } = "token-known" ["2"],
            "the file of tokens has an entry of this name already",
            ("the token file {} has a token of `{name}`", path.display())
            => "choose another name, or remove the entry from the file if its token should no longer be \
                valid";
        Random(source: getrandom::Error) = "random-unavailable", "the system gives no random bytes for a token",
            ("the system gives no random bytes: {source}");
    }
}
