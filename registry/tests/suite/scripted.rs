//! A small http server that sends scripted answers and records the requests, for answers that a
//! real registry would not give.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use toolward_registry::{Artifact, BlobDigest, Failure, OutgoingBundle, Reference, RegistryClient};

use crate::sample::{Sample, reference};

/// How long one connection may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many bytes of an endless body are sent.
const ENDLESS: usize = 64 * 1024 * 1024;

/// A received request.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) target: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    pub(crate) fn is(&self, method: &str, part: &str) -> bool {
        self.method == method && self.target.contains(part)
    }

    /// The first requested byte of a blob, if the request has a range.
    pub(crate) fn from(&self) -> Option<usize> {
        let range = self.header("range")?;
        range
            .strip_prefix("bytes=")?
            .strip_suffix('-')?
            .parse()
            .ok()
    }
}

/// A scripted answer.
#[derive(Clone, Debug)]
pub(crate) enum Say {
    /// Status, headers and body, with the body's length.
    Answer(u16, Vec<(String, String)>, Vec<u8>),
    /// A chunked body, properly ended, without a length.
    Pieces(Vec<u8>),
    /// A stated length, then fewer bytes and a closed connection.
    Cut(u16, Vec<(String, String)>, usize, Vec<u8>),
    /// A chunked body without an end.
    Endless,
    /// A closed connection without any bytes.
    Nothing,
}

pub(crate) fn ok(body: impl Into<Vec<u8>>) -> Say {
    Say::Answer(200, Vec::new(), body.into())
}

pub(crate) fn status(status: u16) -> Say {
    Say::Answer(status, Vec::new(), Vec::new())
}

pub(crate) fn with(code: u16, headers: &[(&str, &str)]) -> Say {
    let headers = headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    Say::Answer(code, headers, Vec::new())
}

/// A server that runs until it is dropped.
pub(crate) struct Scripted {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    stopped: Arc<AtomicBool>,
}

impl Scripted {
    pub(crate) fn start(script: impl Fn(&Asked) -> Say + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let stopped = Arc::new(AtomicBool::new(false));
        let (log, stop, script) = (asked.clone(), stopped.clone(), Arc::new(script));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                let (log, script) = (log.clone(), script.clone());
                std::thread::spawn(move || {
                    // A client may close the connection; that does not fail the test.
                    let _ = serve(stream, &log, &*script);
                });
            }
        });
        Self {
            address,
            asked,
            stopped,
        }
    }

    pub(crate) fn reference(&self, repository: &str) -> Reference {
        reference(&format!("oci://{}/{repository}", self.address))
    }

    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Clears the recorded requests.
    pub(crate) fn forget(&self) {
        self.asked.lock().unwrap().clear();
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn count(&self, method: &str, part: &str) -> usize {
        let asked = self.asked();
        asked.iter().filter(|asked| asked.is(method, part)).count()
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(
    stream: TcpStream,
    log: &Mutex<Vec<Asked>>,
    script: &dyn Fn(&Asked) -> Say,
) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut out = stream;
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split(' ').map(str::to_owned);
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return Ok(());
    };
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim().split_once(':') else {
            break;
        };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let length = headers
        .get("content-length")
        .and_then(|value| value.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body)?;
    let asked = Asked {
        method,
        target,
        headers,
        body,
    };
    let head = asked.method == "HEAD";
    log.lock().unwrap().push(asked.clone());
    let say = script(&asked);
    let begin = |code: u16, headers: &[(String, String)]| {
        let headers: String = headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        format!("HTTP/1.1 {code} Said\r\nConnection: close\r\n{headers}")
    };
    match say {
        Say::Answer(code, headers, body) => {
            write!(
                out,
                "{}Content-Length: {}\r\n\r\n",
                begin(code, &headers),
                body.len()
            )?;
            if !head {
                out.write_all(&body)?;
            }
        }
        Say::Cut(code, headers, length, body) => {
            write!(
                out,
                "{}Content-Length: {length}\r\n\r\n",
                begin(code, &headers)
            )?;
            out.write_all(&body)?;
        }
        Say::Pieces(body) => {
            write!(out, "{}Transfer-Encoding: chunked\r\n\r\n", begin(200, &[]))?;
            write!(out, "{:x}\r\n", body.len())?;
            out.write_all(&body)?;
            out.write_all(b"\r\n0\r\n\r\n")?;
        }
        Say::Endless => {
            write!(out, "{}Transfer-Encoding: chunked\r\n\r\n", begin(200, &[]))?;
            let piece = [b' '; 0x4000];
            for _ in 0..ENDLESS / piece.len() {
                out.write_all(b"4000\r\n")?;
                out.write_all(&piece)?;
                out.write_all(b"\r\n")?;
            }
        }
        Say::Nothing => {}
    }
    out.flush()
}

/// The contents of a registry with one bundle.
#[derive(Clone)]
pub(crate) struct Held {
    pub(crate) manifest: Vec<u8>,
    pub(crate) digest: BlobDigest,
    pub(crate) envelope: Vec<u8>,
    pub(crate) content: Vec<u8>,
}

impl Held {
    pub(crate) fn new(sample: &Sample) -> Self {
        let outgoing: OutgoingBundle = sample.outgoing();
        let content = toolward_signing::archive::content_bytes(&sample.contents());
        Self {
            manifest: outgoing.manifest().to_vec(),
            digest: outgoing.digest(),
            envelope: sample.envelope.clone(),
            content: content.unwrap(),
        }
    }

    pub(crate) fn content_path(&self) -> String {
        format!("/blobs/{}", BlobDigest::of(&self.content))
    }

    /// The answer of an honest registry without attachments.
    pub(crate) fn answer(&self, asked: &Asked) -> Say {
        let envelope = format!("/blobs/{}", BlobDigest::of(&self.envelope));
        let target = asked.target.as_str();
        let blob = if target.contains("/manifests/sha256-") || target.contains("/referrers/") {
            return status(404);
        } else if target.contains("/manifests/") {
            &self.manifest
        } else if target.ends_with(&envelope) {
            &self.envelope
        } else if target.ends_with(&self.content_path()) {
            &self.content
        } else {
            return status(404);
        };
        match asked.from() {
            Some(from) => Say::Answer(206, vec![range(from, blob.len())], blob[from..].to_vec()),
            None => ok(blob.clone()),
        }
    }
}

/// A correct `Content-Range`.
pub(crate) fn range(from: usize, size: usize) -> (String, String) {
    (
        "Content-Range".to_owned(),
        format!("bytes {from}-{}/{size}", size - 1),
    )
}

/// Pulls `a:1` from `server` with key 1, and returns the code of a failure.
pub(crate) async fn pull_code(
    client: &RegistryClient,
    server: &Scripted,
) -> Result<Artifact, String> {
    pull(client, server).await.map_err(|failure| {
        assert!(failure.hint().is_some(), "{failure:?}");
        failure.code().to_owned()
    })
}

/// Pulls `a:1` from the server.
pub(crate) async fn pull(client: &RegistryClient, server: &Scripted) -> Result<Artifact, Failure> {
    let downloads = tempfile::tempdir().unwrap();
    let reference = server.reference("a:1");
    let pulled = client.pull(
        &reference,
        downloads.path(),
        None,
        crate::sample::by_key_one,
    );
    Ok(pulled.await?.artifact)
}
