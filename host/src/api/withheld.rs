//! Tools that an operator's installation has and does not load.

use toolward_contract::tool::Tool;

use crate::api::result::{CallError, ErrorClass, ErrorCode};

/// A tool that a host knows and does not serve, since its bundle is not loaded. Calls of it end with an error that states
/// so, and not with [`ErrorCode::NOT_FOUND`].
///
/// ```
/// use toolward_host::{ErrorCode, Host, Request, WithheldReason, WithheldTool};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), toolward_host::HostError> {
/// let revoked = WithheldTool {
///     id: "text.stats".to_owned(),
///     major: 1,
///     publisher: "acme".to_owned(),
///     aliases: Vec::new(),
///     mcp_name: None,
///     reason: WithheldReason::Withdrawn,
/// };
/// let host = Host::builder().withheld([revoked]).build()?;
/// let reply = host.call(Request::new("text.stats", "{}")).await;
/// assert_eq!(reply.result.unwrap_err().code, ErrorCode::WITHDRAWN);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WithheldTool {
    /// Its id.
    pub id: String,
    /// Its major version.
    pub major: u64,
    /// Its publisher, when its bundle was last verified.
    pub publisher: String,
    /// Its former ids, by which callers may know it.
    pub aliases: Vec<String>,
    /// The name over MCP that its contract asks for.
    pub mcp_name: Option<String>,
    /// Why it is not served.
    pub reason: WithheldReason,
}

/// Why a tool is not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WithheldReason {
    /// Its bundle does not verify now: it was revoked, it expired, or its publisher is no longer trusted.
    Withdrawn,
    /// The operator has not accepted what changed in its bundle.
    Held,
}

impl WithheldTool {
    /// The tool of this contract.
    #[must_use]
    pub fn of(contract: &Tool, publisher: &str, reason: WithheldReason) -> Self {
        Self {
            id: contract.id.to_string(),
            major: contract.version.major,
            publisher: publisher.to_owned(),
            aliases: contract.aliases.clone(),
            mcp_name: contract.mcp_name.clone(),
            reason,
        }
    }

    /// `id@major`.
    #[must_use]
    pub fn major_id(&self) -> String {
        format!("{}@{}", self.id, self.major)
    }

    /// The error with which calls end. The text is for callers: it does not state who withdrew what, or what changed.
    #[must_use]
    pub fn refusal(&self) -> CallError {
        let tool = self.major_id();
        match self.reason {
            WithheldReason::Withdrawn => withdrawn(
                &tool,
                "its bundle was revoked, has expired or can't be verified now",
            ),
            WithheldReason::Held => CallError::new(
                ErrorCode::HELD,
                ErrorClass::PolicyBlocked,
                format!("`{tool}` is held: its bundle waits until the operator accepts an update"),
            )
            .with_hint(ErrorCode::HELD.ask_the_operator("look at the update")),
        }
    }

    /// Whether `name` is its id, `id@major` or one of its aliases.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.has_id(name) || self.aliases.iter().any(|alias| alias == name)
    }

    /// Whether `name` is its id or `id@major`.
    pub(crate) fn has_id(&self, name: &str) -> bool {
        self.id == name || self.major_id() == name
    }
}

pub(crate) fn withdrawn(tool: &str, reason: &str) -> CallError {
    CallError::new(
        ErrorCode::WITHDRAWN,
        ErrorClass::PolicyBlocked,
        format!("`{tool}` has been withdrawn: {reason}"),
    )
    .with_hint(ErrorCode::WITHDRAWN.ask_the_operator("install another release"))
}
