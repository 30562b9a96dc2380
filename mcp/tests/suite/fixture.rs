//! A server whose handler records what it saw, and waits until a test releases it.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    ProgressNotificationParam, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use toolward_mcp::http::tokens::{self, TokenHash, Tokens};
use toolward_mcp::http::{Authentication, Ended, HttpError, Settings, serve};
use toolward_mcp::principal::{Principal, Tools};

use crate::client::TEST_TIMEOUT;

/// Counts what happened to calls.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) started: AtomicUsize,
    pub(crate) cancelled: AtomicUsize,
    pub(crate) finished: AtomicUsize,
    /// Lets a call of `wait` end.
    pub(crate) release: Semaphore,
}

#[derive(Clone)]
struct Handler(Arc<Seen>);

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let parts = context.extensions.get::<http::request::Parts>().unwrap();
        let principal = parts.extensions.get::<Principal>().unwrap();
        let text = match &*request.name {
            "who" => format!("principal={} headers={:?}", principal.name, parts.headers),
            "large" => "x".repeat(64 * 1024 * 1024),
            _ => {
                self.0.started.fetch_add(1, Ordering::SeqCst);
                if let Some(token) = context.meta.get_progress_token() {
                    let begun = ProgressNotificationParam::new(token, 1.0);
                    let _ = context.peer.notify_progress(begun).await;
                }
                tokio::select! {
                    permit = self.0.release.acquire() => permit.unwrap().forget(),
                    () = context.ct.cancelled() => {
                        self.0.cancelled.fetch_add(1, Ordering::SeqCst);
                        return Err(ErrorData::internal_error("cancelled", None));
                    }
                }
                self.0.finished.fetch_add(1, Ordering::SeqCst);
                "waited".to_owned()
            }
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

/// A server that runs until it is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) seen: Arc<Seen>,
    pub(crate) shutdown: CancellationToken,
    pub(crate) running: JoinHandle<Result<Ended, HttpError>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.running.abort();
    }
}

/// Tokens of two principals, in the form of the file.
pub(crate) struct Two {
    pub(crate) alice: String,
    pub(crate) bob: String,
    pub(crate) tokens: Tokens,
}

pub(crate) fn two() -> Two {
    let (alice, alice_hash) = tokens::generate().unwrap();
    let (bob, bob_hash) = tokens::generate().unwrap();
    let entry = |name: &str, hash: TokenHash, more: &str| {
        format!("[[token]]\nname = \"{name}\"\nhash = \"{hash}\"\ntools = [\"*\"]\n{more}\n")
    };
    let text = entry("alice", alice_hash, "requests = 2") + &entry("bob", bob_hash, "");
    Two {
        alice: alice.expose().to_owned(),
        bob: bob.expose().to_owned(),
        tokens: file(&text),
    }
}

/// Reads tokens from a file of this text.
pub(crate) fn file(text: &str) -> Tokens {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tokens.toml");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    tokens::read(&path).unwrap()
}

pub(crate) fn anybody() -> Principal {
    Principal {
        name: "anybody".into(),
        tools: Tools::All,
        may_approve: false,
    }
}

/// Settings that require no token.
pub(crate) fn open() -> Settings {
    Settings::new(Authentication::Loopback(anybody()))
}

impl Server {
    /// Starts a server on a free port of 127.0.0.1.
    pub(crate) fn start(settings: Settings) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen {
            started: AtomicUsize::new(0),
            cancelled: AtomicUsize::new(0),
            finished: AtomicUsize::new(0),
            release: Semaphore::new(0),
        });
        let shutdown = CancellationToken::new();
        let handler = Handler(Arc::clone(&seen));
        let running = tokio::spawn(serve(
            listener,
            move || handler.clone(),
            settings,
            shutdown.clone(),
        ));
        Self {
            address,
            seen,
            shutdown,
            running,
        }
    }

    /// A server that knows the tokens of [`two`].
    pub(crate) fn with(tokens: &Tokens) -> Self {
        Self::start(Settings::new(Authentication::Required(Arc::new(
            tokens.clone(),
        ))))
    }

    /// Waits until this many calls have reached a counted state.
    pub(crate) async fn saw(&self, what: impl Fn(&Seen) -> &AtomicUsize, count: usize) {
        let reached = async {
            while what(&self.seen).load(Ordering::SeqCst) < count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(TEST_TIMEOUT, reached)
            .await
            .unwrap_or_else(|_| panic!("not seen: {:?}", self.seen));
    }

    /// How many calls have reached a counted state so far.
    pub(crate) fn count(&self, what: impl Fn(&Seen) -> &AtomicUsize) -> usize {
        what(&self.seen).load(Ordering::SeqCst)
    }
}
