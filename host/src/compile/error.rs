//! Why a component was not compiled: a verdict on the component, which the
//! same bytes would meet again, or a failure of this host, which may pass.

/// The kind of a [`CompileError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CompileReason {
    /// It is no component, or none that this engine takes.
    Invalid,
    /// It is larger than a component may be.
    TooLarge,
    /// Compiling it took more memory than a compiler may have.
    Memory,
    /// Compiling it took more processor time than a compiler may have.
    Processor,
    /// Compiling it took longer than it may.
    Time,
    /// The compiled code is larger than it may be.
    Output,
    /// The compiler crashed over it.
    Crashed,
    /// Nobody needs it any longer.
    Cancelled,
    /// The compiler could not be run, or was ended by somebody else.
    Unavailable,
}

impl CompileReason {
    /// The stable code, as the book lists it.
    pub fn code(self) -> &'static str {
        match self {
            Self::Invalid => "compile-invalid",
            Self::TooLarge => "component-too-large",
            Self::Memory => "compile-memory",
            Self::Processor => "compile-processor",
            Self::Time => "compile-time",
            Self::Output => "compile-output",
            Self::Crashed => "compile-crashed",
            Self::Cancelled => "compile-cancelled",
            Self::Unavailable => "compiler-unavailable",
        }
    }

    pub(crate) fn from_code(code: &str) -> Option<Self> {
        [
            Self::Invalid,
            Self::TooLarge,
            Self::Memory,
            Self::Processor,
            Self::Time,
            Self::Output,
            Self::Crashed,
            Self::Cancelled,
            Self::Unavailable,
        ]
        .into_iter()
        .find(|reason| reason.code() == code)
    }

    /// Whether it says something of the component, so that trying again is of
    /// no use. The rest says something of this machine, at this time.
    pub fn is_verdict(self) -> bool {
        !matches!(self, Self::Cancelled | Self::Unavailable)
    }
}

/// Why a component was not compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CompileError {
    reason: CompileReason,
    message: String,
}

/// The longest message, in bytes: a compiler quotes what it was given.
pub(super) const MAX_MESSAGE_BYTES: usize = 4096;

impl CompileError {
    /// An error with this reason; `message` says what happened, for people.
    pub fn new(reason: CompileReason, message: impl Into<String>) -> Self {
        let mut message = message.into();
        message.truncate(message.floor_char_boundary(MAX_MESSAGE_BYTES));
        Self { reason, message }
    }

    /// Nobody waits for it any longer.
    pub(super) fn cancelled() -> Self {
        Self::new(CompileReason::Cancelled, "compiling it was cancelled")
    }

    pub(super) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(CompileReason::Unavailable, message)
    }

    /// What kind of failure it is.
    pub fn reason(&self) -> CompileReason {
        self.reason
    }
}
