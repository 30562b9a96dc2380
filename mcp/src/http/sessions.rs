//! Sessions of the protocol's session era. A session belongs to the principal that started it, and
//! does not exist for others. A call whose client disconnects is cancelled unless the client comes
//! back in time.

mod session;

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::Stream;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, GetExtensions as _, JsonRpcMessage,
    ServerJsonRpcMessage, ServerResult,
};
use rmcp::transport::WorkerTransport;
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionWorker, SessionConfig, SessionError, create_local_session,
};
use rmcp::transport::streamable_http_server::session::{
    ServerSseMessage, SessionId, SessionManager,
};
use tokio_util::sync::CancellationToken;
use toolward_host::{Cancellation, SharedCancellation};
use toolward_support::helper::lock;

use super::HttpLimits;
use crate::principal::Principal;
use crate::revision::Revision;
use session::{HttpSession, WatchedStream};

tokio::task_local! {
    /// The caller of the request that is being handled. A task-local, since rmcp does
    /// not pass it on to the sessions.
    static CALLER: Arc<HttpCaller>;
}

/// The principal for which a request is handled.
#[derive(Debug)]
pub(super) struct HttpCaller {
    principal: Principal,
    /// Set if the principal has too many sessions to start another.
    pub(super) crowded: AtomicBool,
}

impl HttpCaller {
    pub(super) fn new(principal: Principal) -> Arc<Self> {
        Arc::new(Self {
            principal,
            crowded: AtomicBool::new(false),
        })
    }

    /// Handles a request on behalf of this caller.
    pub(super) async fn handles<T>(self: &Arc<Self>, future: impl Future<Output = T>) -> T {
        CALLER.scope(Arc::clone(self), future).await
    }
}

fn caller() -> Result<Arc<HttpCaller>, io::Error> {
    CALLER
        .try_with(Arc::clone)
        .map_err(|_| io::ErrorKind::PermissionDenied.into())
}

/// Returns the principal of the request that is being handled, for callbacks that get none from
/// rmcp.
pub(crate) fn calling() -> Option<Principal> {
    caller().ok().map(|caller| caller.principal.clone())
}

/// The sessions of a server.
#[derive(Debug)]
pub(super) struct Sessions {
    by_id: Mutex<HashMap<SessionId, Arc<HttpSession>>>,
    limits: HttpLimits,
    /// Ends the streams on which clients listen; calls continue.
    closing: CancellationToken,
}

impl Sessions {
    pub(super) fn new(limits: &HttpLimits, closing: CancellationToken) -> Self {
        Self {
            by_id: Mutex::default(),
            limits: limits.clone(),
            closing,
        }
    }

    /// Returns a session, if it belongs to this caller.
    pub(super) fn of(&self, caller: &HttpCaller, id: &str) -> Option<Arc<HttpSession>> {
        let session = lock(&self.by_id).get(id).map(Arc::clone);
        session.filter(|session| session.owner == caller.principal.name)
    }

    /// Returns a session, if it belongs to the caller of the request that is being handled.
    fn own(&self, id: &str) -> io::Result<Arc<HttpSession>> {
        let own = caller().ok().and_then(|caller| self.of(&caller, id));
        own.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Stores a new session. If its owner, or all owners together, have too many sessions, one
    /// makes room: the owner's session that was idle longest, or, if the owner has no session, the
    /// session that was idle longest of all. Fails if none of these is idle.
    fn keep(&self, session: Arc<HttpSession>) -> io::Result<()> {
        let mut by_id = lock(&self.by_id);
        let is_own = |other: &&Arc<HttpSession>| other.owner == session.owner;
        let own = by_id.values().filter(is_own).count();
        if own >= self.limits.sessions || by_id.len() >= self.limits.sessions_in_all {
            let id = by_id
                .values()
                .filter(|other| own == 0 || is_own(other))
                .filter_map(|other| Some((other.idle_for()?, &other.id)))
                .max_by_key(|(idle, _)| *idle)
                .map(|(_, id)| Arc::clone(id))
                .ok_or(io::ErrorKind::QuotaExceeded)?;
            if let Some(gone) = by_id.remove(&id) {
                gone.end();
            }
        }
        by_id.insert(Arc::clone(&session.id), session);
        Ok(())
    }

    /// Ends idle sessions until the server ends.
    pub(super) async fn prune(self: Arc<Self>) {
        let often = (self.limits.session_idle / 4)
            .clamp(Duration::from_millis(50), Duration::from_secs(60));
        loop {
            tokio::time::sleep(often).await;
            let is_idle = |session: &HttpSession| {
                let idle = session.idle_for();
                idle.is_some_and(|idle| idle >= self.limits.session_idle)
            };
            for (_, session) in lock(&self.by_id).extract_if(|_, session| is_idle(session)) {
                session.end();
            }
        }
    }
}

impl SessionManager for Sessions {
    type Error = io::Error;
    type Transport = WorkerTransport<LocalSessionWorker>;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), io::Error> {
        let caller = caller()?;
        let mut config = SessionConfig::default();
        // Sessions are ended by `prune`, which knows whether a call still runs.
        config.keep_alive = None;
        config.sse_retry = Some(Duration::from_secs(1).min(self.limits.resume_within / 2));
        config.completed_cache_ttl = self.limits.resume_within;
        let id: SessionId = session::random_id()?.into();
        let (handle, worker) = create_local_session(Arc::clone(&id), config);
        let session = HttpSession::new(
            Arc::clone(&id),
            Arc::clone(&caller.principal.name),
            handle,
            self.limits.resume_within,
            self.closing.clone(),
        );
        self.keep(session).inspect_err(|_| {
            caller.crowded.store(true, Ordering::Relaxed);
        })?;
        Ok((id, WorkerTransport::spawn(worker)))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, io::Error> {
        let session = self.own(id)?;
        let answer = session.handle().initialize(message).await?;
        if let JsonRpcMessage::Response(response) = &answer
            && let ServerResult::InitializeResult(opening) = &response.result
        {
            // A session is opened once, so its revision is not yet set.
            let _ = session
                .revision
                .set(Revision::named(&opening.protocol_version));
        }
        Ok(answer)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, io::Error> {
        Ok(self.own(id).is_ok())
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), io::Error> {
        // When a session ends by itself, rmcp calls this function without a caller.
        if caller().is_ok() {
            self.own(id)?;
        }
        let gone = lock(&self.by_id).remove(id);
        if let Some(gone) = gone {
            gone.end();
        }
        Ok(())
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        mut message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, io::Error> {
        let session = self.own(id)?;
        let JsonRpcMessage::Request(request) = &mut message else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        // If the client cancels or stays away, this reason is set. If no reason is set, the call is
        // cancelled because the server ends.
        let cancellation = SharedCancellation::unless_set(Cancellation::Shutdown);
        let extensions = request.request.extensions_mut();
        extensions.insert(cancellation.clone());
        let request = request.id.clone();
        let opened = session.handle().establish_request_wise_channel().await?;
        let number = opened
            .http_request_id
            .ok_or(SessionError::SessionServiceTerminated)?;
        if let Err(error) = session.begin(number, request.clone(), cancellation) {
            let _ = session.handle().close_request_wise_channel(number).await;
            return Ok(WatchedStream::refused(&session, request, error));
        }
        let watched = WatchedStream::new(&session, Some(number), opened.inner);
        session.handle().push_message(message, Some(number)).await?;
        Ok(watched)
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), io::Error> {
        let session = self.own(id)?;
        if let JsonRpcMessage::Notification(notification) = &message
            && let ClientNotification::CancelledNotification(cancelled) = &notification.notification
            && let Some(request) = &cancelled.params.request_id
        {
            session.forget(request);
        }
        session.handle().push_message(message, None).await?;
        Ok(())
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, io::Error> {
        let session = self.own(id)?;
        let opened = session.handle().establish_common_channel().await?;
        Ok(WatchedStream::new(&session, None, opened.inner))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, io::Error> {
        let session = self.own(id)?;
        let event = last_event_id
            .parse()
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let opened = session.handle().resume(event).await?;
        let number = opened.http_request_id;
        Ok(WatchedStream::new(&session, number, opened.inner))
    }
}
