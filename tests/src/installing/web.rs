//! A web server on this machine with one file. It can wait before it answers, or in the middle of
//! the file, so that a test can act in the meantime.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long each side waits for the other.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where in an answer the server waits for [`Web::answer`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waits {
    Nowhere,
    Before,
    Halfway,
}

pub(crate) struct Web {
    address: String,
    bytes: Arc<Mutex<Vec<u8>>>,
    asked: Receiver<()>,
    go: Option<Sender<()>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Web {
    /// Answers every request with these bytes, at once.
    pub(crate) fn serve(bytes: Vec<u8>) -> Self {
        Self::start(bytes, Waits::Nowhere)
    }

    /// Answers with these bytes from now on.
    pub(super) fn replace(&self, bytes: Vec<u8>) {
        *self.bytes.lock().unwrap() = bytes;
    }

    /// Answers when [`Web::answer`] is called, once for each request.
    pub(super) fn waiting(bytes: Vec<u8>) -> Self {
        Self::start(bytes, Waits::Before)
    }

    /// Answers with the first half of the bytes, and sends the rest when [`Web::answer`] is called.
    pub(crate) fn halfway(bytes: Vec<u8>) -> Self {
        Self::start(bytes, Waits::Halfway)
    }

    fn start(bytes: Vec<u8>, waits: Waits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let stop = Arc::new(AtomicBool::new(false));
        let (tell, asked) = channel();
        let (go, told) = channel();
        let stopped = Arc::clone(&stop);
        let bytes = Arc::new(Mutex::new(bytes));
        let served = Arc::clone(&bytes);
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let Ok((stream, _)) = listener.accept() else {
                    std::thread::sleep(Duration::from_millis(5));
                    continue;
                };
                let _ = tell.send(());
                let goes_on = || told.recv_timeout(PATIENCE).is_ok();
                if waits != Waits::Before || goes_on() {
                    let bytes = served.lock().unwrap().clone();
                    let halfway = || waits != Waits::Halfway || goes_on();
                    // The client may have gone.
                    let _ = answer(stream, &bytes, halfway);
                }
            }
        });
        Self {
            address,
            bytes,
            asked,
            go: Some(go),
            stop,
            thread: Some(thread),
        }
    }

    pub(crate) fn url(&self, file: &str) -> String {
        format!("http://{}/{file}", self.address)
    }

    /// Waits until a request arrives.
    pub(super) fn is_asked(&self) {
        self.asked.recv_timeout(PATIENCE).unwrap();
    }

    pub(crate) fn answer(&self) {
        self.go.as_ref().unwrap().send(()).unwrap();
    }
}

fn answer(
    mut stream: TcpStream,
    bytes: &[u8],
    halfway: impl FnOnce() -> bool,
) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte)? == 1 {
        request.push(byte[0]);
    }
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        bytes.len()
    );
    stream.write_all(head.as_bytes())?;
    let (first, rest) = bytes.split_at(bytes.len() / 2);
    stream.write_all(first)?;
    match halfway() {
        true => stream.write_all(rest),
        false => Ok(()),
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // A connection that waits for a signal stops waiting.
        drop(self.go.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
