//! The tables that an operator would add to a policy so that clients see documents.

use toolward_bundle::text::visible_line;
use toolward_policy::{DocumentRule, FilePattern, Publisher, ToolPattern};

use super::decide::{DocumentVerdict, Hidden, Kind};

/// Longest name that a document asks for, in characters.
const MAX_SHOWN_CHARS: usize = 1000;

/// The `[[document]]` tables that let clients see what no table is about yet, one for each
/// bundle. The names that documents ask for are comments: they may pass for another's.
#[must_use]
pub fn suggest<'v, 'c: 'v>(verdicts: impl IntoIterator<Item = &'v DocumentVerdict<'c>>) -> String {
    let mut tables: Vec<(DocumentRule, String)> = Vec::new();
    for verdict in verdicts {
        if !verdict.hidden.as_ref().is_some_and(Hidden::can_be_given) {
            continue;
        }
        let (Ok(publisher), Ok(bundle)) = (
            Publisher::parse(&verdict.content.origin.publisher()),
            ToolPattern::parse(verdict.content.manifest.id.as_str()),
        ) else {
            continue;
        };
        let same = |rule: &DocumentRule| rule.publisher == publisher && rule.bundle == bundle;
        if !tables.last().is_some_and(|(rule, _)| same(rule)) {
            let mut rule = DocumentRule::new(publisher);
            rule.bundle = bundle;
            tables.push((rule, String::new()));
        }
        let Some((rule, asked)) = tables.last_mut() else {
            continue;
        };
        let key = match verdict.kind {
            Kind::Prompt => {
                rule.prompts.extend(ToolPattern::parse(verdict.id).ok());
                "names"
            }
            Kind::Resource | Kind::Template => {
                rule.resources.extend(FilePattern::parse(verdict.id).ok());
                "uris"
            }
        };
        if let Some(asks) = &verdict.asks {
            let asks = visible_line(asks, MAX_SHOWN_CHARS);
            asked.push_str(&format!("# {key}: {} asks to go by {asks}\n", verdict.id));
        }
    }
    let tables = tables.iter().map(|(rule, asked)| {
        let head = "# For MCP clients to see; no tool needs it.\n";
        format!("{head}{}{asked}", rule.to_toml())
    });
    tables.collect::<Vec<_>>().join("\n")
}
