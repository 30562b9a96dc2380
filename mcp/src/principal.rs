//! Principals: the callers of requests, and the tools that each may use.

use std::sync::Arc;

/// A caller of tools: the user of a local process, or the owner of a token. A principal can't reach
/// the approvals, sealed state, quotas, results or calls of another.
///
/// ```
/// use std::sync::Arc;
/// use toolward_mcp::principal::{Principal, Tools};
///
/// let alice = Principal {
///     name: "alice".into(),
///     tools: Tools::Only(Arc::new(["text.*".to_owned()])),
///     may_approve: false,
/// };
/// assert!(alice.tools.include("text.stats", 1));
/// assert!(!alice.tools.include("notes.append", 1));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// The name. Quotas and stored secrets belong to it.
    pub name: Arc<str>,
    /// The tools that it may use.
    pub tools: Tools,
    /// Whether the operator trusts its client to ask a person for approval.
    pub may_approve: bool,
}

/// The tools that a principal may use.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tools {
    /// All tools.
    All,
    /// Only these: ids, `id@major`, or id prefixes that end in `.*`. Empty means none.
    Only(Arc<[String]>),
}

impl Tools {
    /// Whether these include a tool, given by its id and major version.
    #[must_use]
    pub fn include(&self, id: &str, major: u64) -> bool {
        let Self::Only(patterns) = self else {
            return true;
        };
        patterns
            .iter()
            .any(|pattern| match pattern.strip_suffix(".*") {
                Some(prefix) => id
                    .strip_prefix(prefix)
                    .is_some_and(|rest| rest.starts_with('.')),
                None => match pattern.split_once('@') {
                    Some((name, version)) => name == id && version == major.to_string(),
                    None => pattern == id,
                },
            })
    }
}
