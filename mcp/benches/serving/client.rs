//! Clients that cost almost nothing: they write text, and read an answer only far enough to
//! recognise it.

use std::io::{BufRead as _, BufReader, PipeReader, PipeWriter, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};

use rmcp::ServerHandler;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use toolward_mcp::http::{self, Authentication, Settings};
use toolward_mcp::principal::Principal;
use toolward_mcp::stdio::{self, Streams};

/// A client that makes one request and waits for its answer.
pub(super) trait Client {
    fn ask(&mut self, method: &str, params: &str);

    /// Opens a session of the older era.
    fn open(&mut self) {
        let params = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"benchmark","version":"1"}}"#;
        self.ask("initialize", params);
        self.tell(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    }

    fn tell(&mut self, message: &str);

    fn call(&mut self, tool: &str, input: &str) {
        self.ask("tools/call", &parameters(tool, input));
    }
}

fn parameters(tool: &str, input: &str) -> String {
    format!(r#"{{"name":"{tool}","arguments":{input}}}"#)
}

fn message(id: usize, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

fn check(answer: &str) {
    let good = answer.contains(r#""result":"#) && !answer.contains(r#""isError":true"#);
    assert!(good, "{answer}");
}

/// A client at two pipes.
pub(super) struct Wire {
    requests: PipeWriter,
    answers: BufReader<PipeReader>,
    line: String,
    asked: usize,
}

/// A server at two pipes, and its client.
pub(super) fn wire(
    runtime: &Runtime,
    handler: impl stdio::Handler,
    shutdown: &CancellationToken,
) -> Wire {
    let (input, requests) = std::io::pipe().expect("a pipe");
    let (answers, output) = std::io::pipe().expect("a pipe");
    // Non-blocking, as standard input and output are when they are pipes.
    let flags = fcntl_getfl(&input).expect("its flags");
    fcntl_setfl(&input, flags | OFlags::NONBLOCK).expect("one that doesn't block");
    let flags = fcntl_getfl(&output).expect("its flags");
    fcntl_setfl(&output, flags | OFlags::NONBLOCK).expect("one that doesn't block");
    let streams = Streams::of(input.into(), output.into());
    runtime.spawn(stdio::serve(handler, streams, shutdown.clone()));
    Wire {
        requests,
        answers: BufReader::new(answers),
        line: String::new(),
        asked: 0,
    }
}

impl Wire {
    fn send(&mut self, method: &str, params: &str) {
        self.asked += 1;
        let line = message(self.asked, method, params);
        self.tell(&line);
    }

    fn answer(&mut self) {
        self.line.clear();
        self.answers.read_line(&mut self.line).expect("an answer");
        check(&self.line);
    }

    /// Makes `count` calls, with `at_once` calls at once.
    pub(super) fn many(&mut self, tool: &str, input: &str, at_once: usize, count: usize) {
        let params = parameters(tool, input);
        for sent in 0..count {
            if sent >= at_once {
                self.answer();
            }
            self.send("tools/call", &params);
        }
        for _ in 0..at_once {
            self.answer();
        }
    }
}

impl Client for Wire {
    fn ask(&mut self, method: &str, params: &str) {
        self.send(method, params);
        self.answer();
    }

    fn tell(&mut self, message: &str) {
        let line = format!("{message}\n");
        self.requests.write_all(line.as_bytes()).expect("written");
    }
}

/// A client over HTTP that keeps its connection.
pub(super) struct Web {
    address: SocketAddr,
    connection: BufReader<TcpStream>,
    session: String,
    asked: usize,
}

/// A server over HTTP, and its client.
pub(super) fn web<H: ServerHandler>(
    runtime: &Runtime,
    handler: impl Fn() -> H + Send + Sync + 'static,
    principal: Principal,
    shutdown: &CancellationToken,
) -> Web {
    let listener = TcpListener::bind("127.0.0.1:0").expect("an address");
    let address = listener.local_addr().expect("an address");
    let settings = Settings::new(Authentication::Loopback(principal));
    runtime.spawn(http::serve(listener, handler, settings, shutdown.clone()));
    Web::connect(address)
}

impl Web {
    fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_nodelay(true).expect("no delay");
        Self {
            address,
            connection: BufReader::new(stream),
            session: String::new(),
            asked: 0,
        }
    }

    /// Another client of the same server.
    pub(super) fn another(&self) -> Self {
        Self::connect(self.address)
    }

    /// Sends a message and takes the answer's head and body.
    fn post(&mut self, message: &str) -> String {
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nAccept: application/json, text/event-stream\r\n\
             Content-Type: application/json\r\nMCP-Protocol-Version: 2025-11-25\r\n{}\
             Content-Length: {}\r\n\r\n{message}",
            self.address,
            self.session,
            message.len()
        );
        let stream = self.connection.get_mut();
        stream.write_all(request.as_bytes()).expect("written");
        let mut line = String::new();
        let (mut length, mut chunked) = (0_u64, false);
        loop {
            line.clear();
            self.connection.read_line(&mut line).expect("a header");
            let text = line.trim_end();
            if text.is_empty() {
                break;
            }
            let Some((name, value)) = text.split_once(": ") else {
                assert!(text.starts_with("HTTP/1.1 20"), "{text}");
                continue;
            };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse().expect("a length"),
                "transfer-encoding" => chunked = true,
                "mcp-session-id" if self.session.is_empty() => {
                    self.session = format!("Mcp-Session-Id: {value}\r\n");
                }
                _ => {}
            }
        }
        let mut body = Vec::new();
        if chunked {
            // A stream with one event, which ends after it.
            while let Some(length) = self.chunk_length() {
                self.take(length, &mut body);
                self.take(2, &mut Vec::new());
            }
            self.take(2, &mut Vec::new());
        } else {
            self.take(length, &mut body);
        }
        String::from_utf8(body).expect("text")
    }

    /// The length of the next chunk; `None` after the last one.
    fn chunk_length(&mut self) -> Option<u64> {
        let mut line = String::new();
        self.connection.read_line(&mut line).expect("a length");
        let length = u64::from_str_radix(line.trim_end(), 16).expect("a length");
        (length > 0).then_some(length)
    }

    fn take(&mut self, length: u64, into: &mut Vec<u8>) {
        let mut part = std::io::Read::by_ref(&mut self.connection).take(length);
        part.read_to_end(into).expect("its bytes");
    }
}

impl Client for Web {
    fn ask(&mut self, method: &str, params: &str) {
        self.asked += 1;
        let answer = self.post(&message(self.asked, method, params));
        check(&answer);
    }

    fn tell(&mut self, message: &str) {
        self.post(message);
    }
}
