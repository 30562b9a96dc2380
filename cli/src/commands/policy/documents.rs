//! Prompts and resources in reports about a policy: which of them MCP clients
//! get to see, and why not the others. The server decides by the same verdicts.

use std::fmt::Write as _;

use serde_json::{Value, json};
use toolward_bundle::text::visible_line;
use toolward_mcp::documents::{DocumentVerdict, verdicts};
use toolward_operator::policy_review::PolicyReview;

/// Longest name or reason, in characters.
const MAX_SHOWN_CHARS: usize = 1000;

/// What becomes of all prompts and resources.
pub(in crate::commands) fn all(review: &PolicyReview) -> Vec<DocumentVerdict<'_>> {
    let bundles = review.bundles.iter();
    let verdicts = bundles.flat_map(|(content, _)| verdicts(content, &review.granted.policy));
    verdicts.collect()
}

pub(in crate::commands) fn json(verdict: &DocumentVerdict<'_>) -> Value {
    json!({
        "document": verdict.id,
        "kind": verdict.kind.to_string(),
        "bundle": verdict.content.manifest.id,
        "publisher": verdict.content.origin.publisher(),
        "state": if verdict.hidden.is_none() { "served" } else { "hidden" },
        "name": verdict.name,
        "asks_for": verdict.asks,
        "reasons": verdict.hidden.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

/// One line, after a word for what becomes of it.
pub(in crate::commands) fn line(verdict: &DocumentVerdict<'_>) -> String {
    let shown = |text: &str| visible_line(text, MAX_SHOWN_CHARS);
    let word = match verdict.hidden {
        None => "served ",
        Some(_) => "HIDDEN ",
    };
    let (kind, id) = (verdict.kind, shown(verdict.id));
    let bundle = shown(verdict.content.manifest.id.as_str());
    let mut line = format!("{word}  {kind} {id} of {bundle}");
    match &verdict.hidden {
        Some(why) => {
            let _ = write!(line, ": {}", shown(&why.to_string()));
        }
        None if verdict.name != verdict.id => {
            let _ = write!(line, " as {}", shown(&verdict.name));
        }
        None => {}
    }
    if let Some(asks) = &verdict.asks {
        let _ = write!(line, "; it asks to go by {}", shown(asks));
    }
    line
}
