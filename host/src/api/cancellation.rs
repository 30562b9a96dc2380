//! Why a call was cancelled.

use std::sync::{Arc, OnceLock};

/// Who or what cancelled a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cancellation {
    /// Its caller: a client by a notification, an embedder by dropping the call's future.
    Caller,
    /// Its client disconnected, or ended its session.
    Disconnected,
    /// The server that made it ended.
    Shutdown,
    /// The call that made it ended first.
    Parent,
}

impl Cancellation {
    /// Its name, for records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Disconnected => "disconnected",
            Self::Shutdown => "shutdown",
            Self::Parent => "parent",
        }
    }
}

/// Why a call will be cancelled, for a program that makes calls on behalf of its clients: it keeps a clone while the
/// call runs, and sets the reason before it drops the call's future. Clones share everything.
///
/// ```
/// use toolward_host::{Cancellation, Request, SharedCancellation};
///
/// // Without a reason it was the end of this program.
/// let cancellation = SharedCancellation::unless_set(Cancellation::Shutdown);
/// let request = Request::new("text.stats", r#"{"text": "Hello"}"#).cancellation(cancellation.clone());
/// // When the connection of the client closes:
/// cancellation.set(Cancellation::Disconnected);
/// ```
#[derive(Debug, Clone)]
pub struct SharedCancellation {
    reason: Arc<OnceLock<Cancellation>>,
    otherwise: Cancellation,
}

impl SharedCancellation {
    /// `otherwise` is the reason if none is set until the call's future is dropped.
    #[must_use]
    pub fn unless_set(otherwise: Cancellation) -> Self {
        Self {
            reason: Arc::default(),
            otherwise,
        }
    }

    /// Sets the reason. The first one stays.
    pub fn set(&self, reason: Cancellation) {
        let _ = self.reason.set(reason);
    }

    pub(crate) fn get(&self) -> Cancellation {
        self.reason.get().copied().unwrap_or(self.otherwise)
    }
}
