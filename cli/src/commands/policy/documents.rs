//! Prompts and resources in what is said about a policy: which of them MCP clients
//! get to see, and why not the others. The server decides by the same verdicts.

use std::fmt::Write as _;

use serde_json::{Value, json};
use toolward_bundle::text::visible_line;
use toolward_mcp::documents::{Kind, Verdict, verdicts};
use toolward_policy::{DocumentRule, FilePattern, Policy, Publisher, ToolPattern};

use super::Bundles;

/// Longest name or reason, in characters.
const MAX_SHOWN_CHARS: usize = 1000;

/// One prompt or resource of a bundle.
pub(super) struct Document<'b> {
    publisher: &'b str,
    bundle: &'b str,
    verdict: Verdict<'b>,
}

/// All prompts and resources of some bundles.
pub(super) fn all<'b>(bundles: &'b Bundles, policy: &Policy) -> Vec<Document<'b>> {
    let of = bundles.iter().flat_map(|(content, publisher)| {
        let verdicts = verdicts(content, policy).into_iter();
        verdicts.map(|verdict| Document {
            publisher: publisher.as_str(),
            bundle: content.manifest.id.as_str(),
            verdict,
        })
    });
    of.collect()
}

impl Document<'_> {
    /// Whether somebody who says this means it: what the policy calls it, what
    /// clients call it, its file, or its bundle.
    pub(super) fn is_meant(&self, name: &str) -> bool {
        let verdict = &self.verdict;
        let file = name.strip_prefix("resources/");
        verdict.id == name
            || verdict.name == name
            || verdict.asks.as_deref() == Some(name)
            || self.bundle == name
            || (verdict.kind != Kind::Prompt && file == Some(verdict.id))
    }

    pub(super) fn id(&self) -> &str {
        self.verdict.id
    }

    pub(super) fn json(&self) -> Value {
        let verdict = &self.verdict;
        json!({
            "document": verdict.id,
            "kind": verdict.kind.to_string(),
            "bundle": self.bundle,
            "publisher": self.publisher,
            "state": if verdict.hidden.is_none() { "served" } else { "hidden" },
            "name": verdict.name,
            "asks_for": verdict.asks,
            "reasons": verdict.hidden.iter().map(ToString::to_string).collect::<Vec<_>>(),
        })
    }

    /// One line, after a word that says what becomes of it.
    pub(super) fn line(&self) -> String {
        let verdict = &self.verdict;
        let shown = |text: &str| visible_line(text, MAX_SHOWN_CHARS);
        let word = match verdict.hidden {
            None => "served ",
            Some(_) => "HIDDEN ",
        };
        let mut line = format!(
            "{word}  {} {} of {}",
            verdict.kind,
            shown(verdict.id),
            shown(self.bundle)
        );
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
}

/// The `[[document]]` tables that let clients see what no table is about yet. The
/// names that documents ask for are comments: they may pass for another's.
pub(super) fn suggest<'d, 'b: 'd>(documents: impl Iterator<Item = &'d Document<'b>>) -> String {
    let mut tables: Vec<(DocumentRule, Vec<String>)> = Vec::new();
    for document in documents {
        let verdict = &document.verdict;
        let missing = verdict.hidden.as_ref();
        if !missing.is_some_and(toolward_mcp::documents::Hidden::can_be_given) {
            continue;
        }
        let (Ok(publisher), Ok(bundle)) = (
            Publisher::parse(document.publisher),
            ToolPattern::parse(document.bundle),
        ) else {
            continue;
        };
        let same = |rule: &DocumentRule| rule.publisher == publisher && rule.bundle == bundle;
        if !tables.last().is_some_and(|(rule, _)| same(rule)) {
            let mut rule = DocumentRule::new(publisher);
            rule.bundle = bundle;
            tables.push((rule, Vec::new()));
        }
        let Some((rule, asked)) = tables.last_mut() else {
            continue;
        };
        let key = match verdict.kind {
            Kind::Prompt => {
                rule.prompts.extend(ToolPattern::parse(verdict.id).ok());
                "names"
            }
            _ => {
                rule.resources.extend(FilePattern::parse(verdict.id).ok());
                "uris"
            }
        };
        if let Some(asks) = &verdict.asks {
            let asks = visible_line(asks, MAX_SHOWN_CHARS);
            asked.push(format!("# {key}: {} asks to go by {asks}\n", verdict.id));
        }
    }
    let tables = tables.iter().map(|(rule, asked)| {
        let head = "# For MCP clients to see; no tool needs it.\n";
        format!("{head}{}{}", rule.to_toml(), asked.concat())
    });
    tables.collect::<Vec<_>>().join("\n")
}
