//! The effects of signals on a server, and a socket that a service manager hands over.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;

use super::raw::{PATIENCE, Raw};
use super::served::{Served, machine, plain, stdio};
use crate::support::machine::toolward;
use crate::support::{Machine, Run};

/// Sends a request over a new connection, and returns the complete answer.
fn ask(address: &str, request: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

fn get(address: &str, path: &str) -> std::io::Result<String> {
    let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    ask(address, &head)
}

/// A request of the newer era that keeps its connection open.
fn posted(address: &str, method: &str, name: Option<&str>) -> String {
    let mut params = json!({
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "signals", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    });
    let mut header = String::new();
    if let Some(name) = name {
        params["name"] = json!(name);
        params["arguments"] = json!({});
        header = format!("Mcp-Name: {name}\r\n");
    }
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: {method}\r\n{header}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[test]
fn at_sigterm_it_drains_with_its_listener_open_and_then_ends() {
    let machine = plain();
    let mut served = Served::plain(&machine, "--no-token --drain 3");
    let address = served.address().to_owned();
    assert!(get(&address, "/readyz").unwrap().ends_with("ready\n"));
    served.signal(&machine, "TERM");
    while get(&address, "/readyz")
        .unwrap()
        .starts_with("HTTP/1.1 200")
    {
        std::thread::sleep(Duration::from_millis(5));
    }
    // The server still listens, and announces the end of each connection.
    let answer = ask(&address, &posted(&address, "tools/list", None)).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let head = answer.split("\r\n\r\n").next().unwrap().to_lowercase();
    assert!(head.contains("connection: close"), "{head}");
    let ended = served.ended(PATIENCE).expect("it ends");
    assert_eq!(ended.code(), Some(0), "{ended}");
    assert!(TcpStream::connect(&address).is_err());
}

#[test]
fn a_second_sigterm_ends_it_at_once() {
    let machine = machine("");
    let mut served = Served::start(&machine);
    let address = served.address().to_owned();
    let mut endless = TcpStream::connect(&address).unwrap();
    let call = posted(&address, "tools/call", Some("test_endless"));
    endless.write_all(call.as_bytes()).unwrap();
    assert!(get(&address, "/readyz").unwrap().ends_with("ready\n"));
    served.signal(&machine, "TERM");
    // After one signal, the server would drain for five seconds, and wait thirty seconds for the
    // call.
    assert!(served.ended(Duration::from_millis(300)).is_none());
    served.signal(&machine, "TERM");
    let ended = served
        .ended(Duration::from_secs(4))
        .expect("it ends at once");
    assert_eq!(ended.code(), Some(0), "{ended}");
}

fn hang_up(machine: &Machine, raw: &Raw) {
    let mut kill = machine.program("kill");
    kill.args(["-HUP", &raw.process().to_string()]);
    Run::new(kill).ends(0);
}

fn names(raw: &mut Raw, id: &str) -> Vec<String> {
    raw.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"}));
    let answer = raw.answer(id);
    let tools = answer["result"]["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

const GRANT: &str = "requires = [\"user:form\", \"user:sample\", \"user:roots\"]";

#[test]
fn at_sighup_a_policy_that_gives_less_is_taken_and_another_is_not() {
    let machine = machine("");
    machine.configure("[clients]\nmay_approve = []\n");
    let mut raw = Raw::open(stdio(&machine), json!({}));
    let before = names(&mut raw, "before");
    let policy = machine.text("policy.toml");

    let less = policy.replace(GRANT, "requires = [\"user:form\", \"user:sample\"]");
    machine.write("policy.toml", &less);
    hang_up(&machine, &raw);
    let told = |raw: &mut Raw| loop {
        let message = raw.next(PATIENCE).expect("word of the change");
        if message["method"] == "notifications/tools/list_changed" {
            break;
        }
    };
    told(&mut raw);
    let after = names(&mut raw, "after");
    assert!(after.len() < before.len(), "{after:?}");
    assert!(after.iter().all(|name| before.contains(name)), "{after:?}");

    // A policy that grants more, one that can't be read, and one that grants less.
    for (text, id) in [(policy.as_str(), "wider"), ("[[grant]", "broken")] {
        machine.write("policy.toml", text);
        hang_up(&machine, &raw);
        std::thread::sleep(Duration::from_secs(2));
        assert_eq!(names(&mut raw, id), after);
    }
    machine.write(
        "policy.toml",
        less.replace(GRANT, "").replace(", \"user:sample\"", ""),
    );
    hang_up(&machine, &raw);
    told(&mut raw);
    assert!(names(&mut raw, "least").len() < after.len());
    machine.configure("[clients]\nmay_approve = [\"signals\"]\n");
    hang_up(&machine, &raw);
    std::thread::sleep(Duration::from_secs(2));
    // Some editors replace a file. A confined process can't open the new one.
    machine.write("new.toml", &policy);
    std::fs::rename(machine.path("new.toml"), machine.path("policy.toml")).unwrap();
    hang_up(&machine, &raw);
    std::thread::sleep(Duration::from_secs(2));
    let said = raw.said();
    let reached = !said.contains("(file-unreadable)");
    assert!(
        reached || said.contains("write into the file instead of replacing it"),
        "{said}"
    );
    assert!(said.contains("(reload-wider)"), "{said}");
    assert!(said.contains("(policy-syntax)"), "{said}");
    assert!(
        said.contains("the table `clients` of the configuration has changed"),
        "{said}"
    );
}

#[test]
fn at_sighup_over_http_it_goes_on_and_whom_it_trusts_stays() {
    let machine = plain();
    let served = Served::plain(&machine, "--no-token");
    let address = served.address().to_owned();
    for path in ["/readyz", "/healthz"] {
        assert!(get(&address, path).unwrap().starts_with("HTTP/1.1 200"));
        served.signal(&machine, "HUP");
    }
    std::thread::sleep(Duration::from_secs(2));
    assert!(
        get(&address, "/readyz")
            .unwrap()
            .starts_with("HTTP/1.1 200")
    );
    let said = served.said();
    assert!(said.contains("the configuration has not changed"), "{said}");
}

/// Returns the command as a service manager starts it: with a socket as descriptor 3.
fn handed_over(machine: &Machine, socket: OwnedFd, count: &str, flags: &str) -> Command {
    let mut shell = machine.program("sh");
    shell.arg("-c").arg(format!(
        "exec 3<&0 0</dev/null; export LISTEN_PID=$$ LISTEN_FDS={count}; exec {} serve \
         --bundle plain.toolbundle --trust-key tests.pub.pem {flags}",
        toolward().display()
    ));
    shell.stdin(Stdio::from(socket));
    shell
}

#[test]
fn a_socket_that_is_handed_over_is_used() {
    let machine = plain();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap().to_string();
    // A client that connects before the server starts waits for it.
    let early = std::thread::spawn({
        let address = address.clone();
        move || get(&address, "/readyz")
    });
    let flags = format!("--http {address} --no-token");
    let served = Served::by(handed_over(&machine, socket.into(), "1", &flags));
    assert_eq!(served.address(), address);
    assert!(early.join().unwrap().unwrap().ends_with("ready\n"));
    assert!(get(&address, "/readyz").unwrap().ends_with("ready\n"));
}

#[test]
fn what_is_no_single_tcp_listener_is_refused() {
    let machine = plain();
    let listener = || TcpListener::bind("127.0.0.1:0").unwrap();
    let connected = {
        let listener = listener();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        std::mem::forget(listener);
        stream
    };
    let file = std::fs::File::open("/dev/null").unwrap();
    let http = "--http 127.0.0.1:0 --no-token";
    for (socket, count, flags) in [
        (OwnedFd::from(listener()), "2", http),
        (listener().into(), "0", http),
        (listener().into(), "1x", http),
        (listener().into(), "1", ""),
        (listener().into(), "1", "--http 127.0.0.2:0 --no-token"),
        (listener().into(), "1", "--http 127.0.0.1:1 --no-token"),
        (connected.into(), "1", http),
        (UdpSocket::bind("127.0.0.1:0").unwrap().into(), "1", http),
        (file.into(), "1", http),
    ] {
        let mut command = handed_over(&machine, socket, count, flags);
        let ended = command.output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{count} {flags}: {said}");
        assert!(said.contains("error[listener-unusable]"), "{said}");
    }
}
