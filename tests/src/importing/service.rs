//! An https service on this machine for imported tools: `localhost`, with a certificate authority
//! of the test.

use std::sync::{Arc, Mutex, mpsc};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::installing::secure::Certificates;

/// A service that gives one answer and stores the requests that it gets.
pub(crate) struct Service {
    pub(super) port: u16,
    /// Its certificate authority, in PEM.
    pub(super) authority: String,
    seen: Arc<Mutex<Vec<String>>>,
    // Its tasks end with the runtime.
    _runtime: tokio::runtime::Runtime,
}

impl Service {
    /// A service that answers each request with this status and this JSON.
    pub(crate) fn answering(status: &'static str, body: &'static str) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let certificates = Certificates::new();
        let acceptor = certificates.acceptor();
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let keeping = Arc::clone(&seen);
        let (tell, told) = mpsc::channel();
        runtime.spawn(async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            tell.send(listener.local_addr().unwrap().port()).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                let (accepting, seen) = (acceptor.accept(stream), Arc::clone(&keeping));
                tokio::spawn(async move {
                    let Ok(mut stream) = accepting.await else {
                        return;
                    };
                    let mut request = Vec::new();
                    while let Ok(byte) = stream.read_u8().await {
                        request.push(byte);
                        if request.ends_with(b"\r\n\r\n") {
                            break;
                        }
                    }
                    let head = String::from_utf8_lossy(&request).to_ascii_lowercase();
                    let length = head
                        .lines()
                        .find_map(|line| line.strip_prefix("content-length:"))
                        .and_then(|length| length.trim().parse().ok());
                    let mut sent = vec![0; length.unwrap_or(0)];
                    if stream.read_exact(&mut sent).await.is_err() {
                        return;
                    }
                    request.extend(sent);
                    let text = String::from_utf8_lossy(&request).into_owned();
                    seen.lock().unwrap().push(text);
                    let answer = format!(
                        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\n\
                         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
                        body.len()
                    );
                    let _ = stream.write_all(answer.as_bytes()).await;
                    let _ = stream.shutdown().await;
                });
            }
        });
        Self {
            port: told.recv().unwrap(),
            authority: certificates.authority,
            seen,
            _runtime: runtime,
        }
    }

    /// Returns the requests, each as a whole.
    pub(super) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}
