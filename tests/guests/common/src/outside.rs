//! What lies outside the sandbox. Each tells what it got: nothing, it is hoped.

use std::fmt::Display;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::time::SystemTime;

use serde_json::{Value, json};
use toolward_guest::bindings::toolward::driver::{secrets, tools};

use crate::Input;

fn tell<T: Into<Value>, E: Display>(result: Result<T, E>) -> Value {
    match result {
        Ok(value) => json!({"ok": value.into()}),
        Err(error) => json!({"refused": error.to_string()}),
    }
}

pub(crate) fn environment() -> Value {
    let mut stdin = Vec::new();
    let read = std::io::stdin().read_to_end(&mut stdin);
    json!({
        "variables": std::env::vars().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>(),
        "arguments": std::env::args().collect::<Vec<_>>(),
        "directory": wasip2::cli::environment::initial_cwd(),
        "preopens": wasip2::filesystem::preopens::get_directories().len(),
        "stdin": stdin.len(),
        "stdin_error": read.err().map(|error| error.to_string()),
        "terminal": wasip2::cli::terminal_stdout::get_terminal_stdout().is_some(),
    })
}

pub(crate) fn read_file(path: &str) -> Value {
    tell(std::fs::read(path).map(|bytes| bytes.len()))
}

pub(crate) fn write_file(path: &str) -> Value {
    tell(std::fs::write(path, "hostile").map(|()| true))
}

pub(crate) fn list_directory(path: &str) -> Value {
    tell(std::fs::read_dir(path).map(Iterator::count))
}

pub(crate) fn connect(address: &str) -> Value {
    tell(TcpStream::connect(address).and_then(|mut to| to.write(b"hostile")))
}

pub(crate) fn listen(address: &str) -> Value {
    tell(TcpListener::bind(address).map(|_| true))
}

pub(crate) fn send_datagram(address: &str) -> Value {
    tell(UdpSocket::bind("0.0.0.0:0").and_then(|from| from.send_to(b"hostile", address)))
}

pub(crate) fn resolve(name: &str) -> Value {
    tell((name, 80).to_socket_addrs().map(Iterator::count))
}

pub(crate) fn clock() -> Value {
    let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    json!({
        "unix_ms": wall.map(|since| since.as_millis() as u64).unwrap_or(0),
        "monotonic_ns": wasip2::clocks::monotonic_clock::now(),
    })
}

/// The secret `name`; `value` says which of the three operations.
pub(crate) fn secret(input: &Input) -> Value {
    match input.value.as_str() {
        Some("reveal") => tell(secrets::reveal(&input.name).map(|bytes| bytes.len())),
        Some("store") => tell(secrets::store(&input.name, b"hostile").map(|()| true)),
        _ => tell(secrets::placeholder(&input.name)),
    }
}

/// Calls the tool `name` with `value`.
pub(crate) fn tool(input: &Input) -> Value {
    let request = tools::Request {
        tool: input.name.clone(),
        input: input.value.to_string(),
        timeout_ms: (input.n > 0).then_some(input.n),
    };
    match tools::call(&request) {
        Ok(output) => json!({"ok": output.structured}),
        Err(error) => json!({"refused": error.code, "message": error.message}),
    }
}
