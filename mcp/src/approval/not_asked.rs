//! Why no person was asked, and how the caller learns the reason.

use std::time::Duration;

use serde_json::{Value, json};
use toolward_bundle::text::visible_line;
use toolward_host::{CallError, ErrorCode};

use crate::client::Client;

/// What a person can do if no client may ask them.
const IN_A_TERMINAL: &str = "a person can make the call themselves in a terminal of the server's machine, where they are asked";

/// The operator's approval in advance.
const PREAPPROVED: &str = ", or approve it in advance by `preapproved = true` in the tool's grant";

/// The most characters of a client's name in `[clients]`.
const MAX_NAME_CHARS: usize = 200;

/// Why no one was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotAsked {
    /// The call can't be undone.
    Irreversible,
    /// The operator does not trust this client to ask.
    Untrusted {
        /// Whether the operator could approve the call in advance, in a grant.
        can_be_preapproved: bool,
    },
    /// This client can't put the question to a person.
    CanNotAsk,
    /// The prompt is too long for a person to read.
    TooLong,
    /// The call changed since it was approved.
    Changed,
    /// A person denied the tool a moment ago; the backoff lasts this long.
    Paused(Duration),
    /// The limit of open questions about the tool is reached.
    AskedAboutTool(Duration),
    /// The limit of open questions is reached.
    Asked(Duration),
    /// The question could not be opened.
    Failed,
}

impl NotAsked {
    /// Adds the reason to the error of the call, with what a person can do.
    pub(super) fn explain(self, client: &Client, error: &mut CallError, tool: &str) {
        let why = match self {
            NotAsked::Irreversible => {
                "what it does can't be undone, so no client may answer for a person"
            }
            NotAsked::Untrusted { .. } => "this client is not trusted to ask for it",
            NotAsked::CanNotAsk => "this client can't ask for it",
            NotAsked::TooLong => "it is too long to be shown whole",
            NotAsked::Changed => "what was approved is not what it would do now",
            NotAsked::Paused(_) => "they were asked about this tool a moment ago and did not agree",
            NotAsked::AskedAboutTool(_) => "they are being asked about this tool already",
            NotAsked::Asked(_) => "as many questions as may be at once are unanswered already",
            NotAsked::Failed => "the host can't keep the question now",
        };
        error.message = format!("`{tool}` needs a person's approval, and {why}");
        error.hint = Some(match self {
            NotAsked::Changed => "make the call again".to_owned(),
            NotAsked::Paused(wait) | NotAsked::AskedAboutTool(wait) | NotAsked::Asked(wait) => {
                error.code = ErrorCode::APPROVAL_PAUSED;
                let seconds = wait.as_secs().saturating_add(1);
                error.cause = Some(json!({ "asked_again_after_seconds": seconds }));
                match self {
                    NotAsked::Paused(_) => format!(
                        "go on without it; they can be asked again in {seconds} seconds, or make \
                         the call themselves in a terminal of the server's machine"
                    ),
                    _ => format!(
                        "wait for their answers, or go on without it; they can be asked again in \
                         {seconds} seconds at the latest"
                    ),
                }
            }
            NotAsked::Untrusted { can_be_preapproved } => trust_hint(client, can_be_preapproved),
            _ => IN_A_TERMINAL.to_owned(),
        });
    }
}

/// What the operator can configure for a client that may not ask. A remote client learns nothing
/// about the policy.
fn trust_hint(client: &Client, can_be_preapproved: bool) -> String {
    let Some(name) = &client.untrusted_name else {
        return IN_A_TERMINAL.to_owned();
    };
    let is_writable = !name.is_empty() && visible_line(name, MAX_NAME_CHARS) == *name;
    let by = match is_writable {
        true => {
            // JSON and TOML escape a visible line in the same way.
            let name = Value::from(name.as_str());
            format!(
                "by `may_approve = [{name}]` in `[clients]` of toolward.toml (add {name} to the list if there is one)"
            )
        }
        false => "by `--trust-client`, since `[clients]` can't have its name".to_owned(),
    };
    let preapproved = if can_be_preapproved { PREAPPROVED } else { "" };
    format!(
        "{IN_A_TERMINAL}; if this client shows questions to a person, its operator can let it ask {by}{preapproved}, \
         and start the server again"
    )
}
