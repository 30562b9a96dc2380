//! A server of one tool on pipes, and its client in the same process. The client allocates nothing
//! when it asks.

use std::io::{PipeReader, PipeWriter, Read as _, Write as _};
use std::path::Path;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;
use toolward_bundle::content::Content;
use toolward_host::{Host, LOCAL, Limits};
use toolward_mcp::principal::{Principal, Tools};
use toolward_mcp::stdio::{self, Streams};
use toolward_mcp::{ServerFeatures, Service};
use toolward_policy::Policy;

/// A server, and a client at two pipes with a buffer for one answer.
pub(crate) struct Server {
    requests: PipeWriter,
    answers: PipeReader,
    answer: [u8; 8192],
    shutdown: CancellationToken,
}

impl Server {
    /// Starts a server that has answered `initialize` but no call.
    pub(crate) fn start(limits: Limits) -> Self {
        let mut server = connect(limits);
        let opening = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;
        server.ask(&format!("{opening}\n"));
        let opened = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        server
            .requests
            .write_all(format!("{opened}\n").as_bytes())
            .expect("written");
        server
    }

    /// Sends a message and returns the answer, which ends with a line feed.
    pub(crate) fn ask(&mut self, message: &str) -> &str {
        self.requests
            .write_all(message.as_bytes())
            .expect("written");
        let mut length = 0;
        while length == 0 || self.answer[length - 1] != b'\n' {
            let read = self.answers.read(&mut self.answer[length..]);
            let read = read.expect("an answer");
            assert_ne!(read, 0, "the server ended");
            length += read;
        }
        str::from_utf8(&self.answer[..length]).expect("text")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

/// Serves an example's tool on standard input and output, as `toolward serve` does.
fn connect(limits: Limits) -> Server {
    let bundle = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/text-stats");
    let content = Content::from_dev(&bundle).expect("a bundle; run `cargo xtask guests` first");
    let host = Host::builder()
        .bundle(content.clone())
        .limits(limits)
        .build();
    let host = host.expect("a host");
    let features = ServerFeatures::new(host, &[content], &Policy::empty(), usize::MAX);
    let service = Service::new(features.expect("features"));
    let principal = Principal {
        name: LOCAL.into(),
        tools: Tools::All,
        may_approve: false,
    };
    let (input, requests) = std::io::pipe().expect("a pipe");
    let (answers, output) = std::io::pipe().expect("a pipe");
    let flags = fcntl_getfl(&input).expect("its flags");
    fcntl_setfl(&input, flags | OFlags::NONBLOCK).expect("one that doesn't block");
    let flags = fcntl_getfl(&output).expect("its flags");
    fcntl_setfl(&output, flags | OFlags::NONBLOCK).expect("one that doesn't block");
    let streams = Streams::of(input.into(), output.into());
    let shutdown = CancellationToken::new();
    let stop = shutdown.clone();
    std::thread::spawn(move || {
        let runtime = |threads| {
            let mut runtime = Builder::new_multi_thread();
            runtime
                .worker_threads(threads)
                .enable_all()
                .build()
                .expect("a runtime")
        };
        let (connection, others) = (runtime(1), runtime(2));
        let handler = service.connection(Some(principal));
        let handler = handler.long_calls_on(others.handle().clone());
        let serving = connection.spawn(stdio::serve(handler, streams, stop));
        let served = connection.block_on(serving);
        served.expect("its task").expect("a connection");
    });
    Server {
        requests,
        answers,
        answer: [0; 8192],
        shutdown,
    }
}

/// A message that calls the tool.
pub(crate) fn call(id: usize) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"text.stats","arguments":{{"text":"two words"}}}}}}"#
    ) + "\n"
}
