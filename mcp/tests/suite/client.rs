//! A client of one request. It is written byte by byte, so that it can send what a library would
//! refuse to send.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Longer than any answer takes.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// A server's answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|text| text.parse().ok());
        Self {
            status: status.unwrap_or_else(|| panic!("no answer: {text:?}")),
            head: head.to_ascii_lowercase(),
            body: body.to_owned(),
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let prefix = format!("{name}: ");
        self.head
            .lines()
            .find_map(|line| line.strip_prefix(prefix.as_str()))
    }

    /// Asserts the status, and the code that the body carries.
    pub(crate) fn is(self, status: u16, code: &str) -> Self {
        assert_eq!(self.status, status, "{self:?}");
        assert!(self.body.contains(&format!("\"{code}\"")), "{self:?}");
        self
    }

    /// Asserts that the request was handled.
    pub(crate) fn handled(self) -> Self {
        assert_eq!(self.status, 200, "{self:?}");
        self
    }
}

/// A request to be written.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    method: &'static str,
    path: String,
    headers: Vec<(String, String)>,
    body: String,
}

impl Request {
    pub(crate) fn new(method: &'static str, path: &str) -> Self {
        Self {
            method,
            path: path.to_owned(),
            headers: Vec::new(),
            body: String::new(),
        }
        .header("Host", "localhost")
        .header("Connection", "close")
    }

    /// A message of the older era.
    pub(crate) fn message(message: &Value) -> Self {
        Self::new("POST", "/mcp")
            .header("Accept", "application/json, text/event-stream")
            .header("Content-Type", "application/json")
            .body(message.to_string())
    }

    /// A tool call of the newer era.
    pub(crate) fn call(tool: &str) -> Self {
        let mut parameters = meta();
        parameters["name"] = json!(tool);
        Self::stateless("tools/call", &parameters).header("Mcp-Name", tool)
    }

    /// A request of the newer era.
    pub(crate) fn stateless(method: &str, parameters: &Value) -> Self {
        Self::message(&json!({"jsonrpc":"2.0","id":1,"method":method,"params":parameters}))
            .header("MCP-Protocol-Version", "2026-07-28")
            .header("Mcp-Method", method)
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(header, _)| header != name);
        self
    }

    pub(crate) fn at(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    pub(crate) fn token(self, token: &str) -> Self {
        self.header("Authorization", &format!("Bearer {token}"))
    }

    pub(crate) fn body(mut self, body: impl Into<String>) -> Self {
        self.body = body.into();
        self
    }

    pub(crate) fn head(&self) -> String {
        let mut text = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            text += &format!("{name}: {value}\r\n");
        }
        if self.method == "POST" {
            text += &format!("Content-Length: {}\r\n", self.body.len());
        }
        text + "\r\n"
    }

    /// The head and the body.
    pub(crate) fn whole(&self) -> String {
        self.head() + &self.body
    }

    /// Opens a connection and writes the request.
    pub(crate) async fn begin(&self, to: SocketAddr) -> TcpStream {
        let mut stream = TcpStream::connect(to).await.unwrap();
        stream.write_all(self.head().as_bytes()).await.unwrap();
        // The server may refuse a body before it has read all of it.
        let _ = stream.write_all(self.body.as_bytes()).await;
        stream
    }

    /// Writes the request and reads the answer to its end.
    pub(crate) async fn send(&self, to: SocketAddr) -> Answer {
        finish(self.begin(to).await).await
    }
}

/// The `_meta` of requests in the newer era.
pub(crate) fn meta() -> Value {
    json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }})
}

/// Reads what the server sends until it closes the connection.
pub(crate) async fn rest(mut stream: TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(TEST_TIMEOUT, stream.read_to_end(&mut bytes)).await;
    // A reset may follow the answer to a request that was not read to its end.
    let _ = read.unwrap_or_else(|_| panic!("the server does not end: {bytes:?}"));
    bytes
}

/// Reads the answer to its end.
pub(crate) async fn finish(stream: TcpStream) -> Answer {
    Answer::parse(&rest(stream).await)
}

/// Reads until a text arrives.
pub(crate) async fn until(stream: &mut TcpStream, text: &str) -> String {
    let mut seen = Vec::new();
    let read = async {
        while !String::from_utf8_lossy(&seen).contains(text) {
            let mut bytes = [0; 4096];
            let count = stream.read(&mut bytes).await.unwrap();
            assert_ne!(count, 0, "ended without {text:?}: {seen:?}");
            seen.extend_from_slice(&bytes[..count]);
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, read).await.unwrap();
    String::from_utf8_lossy(&seen).into_owned()
}

/// A session of the older era.
#[derive(Debug)]
pub(crate) struct Session {
    to: SocketAddr,
    token: String,
    pub(crate) id: String,
}

impl Session {
    /// Opens a session. Returns the answer if the session is refused.
    pub(crate) async fn begin(to: SocketAddr, token: &str) -> Result<Self, Answer> {
        let initialize = json!({"jsonrpc":"2.0","id":0,"method":"initialize","params":{
            "protocolVersion":"2025-11-25","capabilities":{},
            "clientInfo":{"name":"test","version":"1"}}});
        let answer = Request::message(&initialize).token(token).send(to).await;
        if answer.status != 200 {
            return Err(answer);
        }
        let id = answer.header("mcp-session-id").unwrap().to_owned();
        let session = Self {
            to,
            token: token.to_owned(),
            id,
        };
        let initialized = json!({"jsonrpc":"2.0","method":"notifications/initialized"});
        let answer = session.message(&initialized).send(to).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        Ok(session)
    }

    pub(crate) fn request(&self, request: Request) -> Request {
        request
            .header("Mcp-Session-Id", &self.id)
            .header("MCP-Protocol-Version", "2025-11-25")
            .token(&self.token)
    }

    pub(crate) fn message(&self, message: &Value) -> Request {
        self.request(Request::message(message))
    }

    pub(crate) fn call(&self, id: u32, tool: &str) -> Request {
        self.message(&json!({"jsonrpc":"2.0","id":id,"method":"tools/call",
            "params":{"name":tool,"_meta":{"progressToken":id}}}))
    }

    /// Opens the stream on which the session listens.
    pub(crate) fn listen(&self) -> Request {
        self.request(Request::new("GET", "/mcp").header("Accept", "text/event-stream"))
    }

    pub(crate) async fn send(&self, request: Request) -> Answer {
        request.send(self.to).await
    }
}
