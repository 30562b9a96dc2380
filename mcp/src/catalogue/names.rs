//! Names over MCP. A tool is called what its signed contract says in
//! `metadata.mcp.name`, else by its id. Of several majors of one id the newest
//! has the plain name, as it has with the host, and the others end in `_vN`. Where
//! they are of several publishers all end in `_vN`: the name that an agent knows one
//! publisher's tool by does not become another's when that brings a newer major.
//!
//! MCP carries letters, digits, `_`, `-` and `.`, 1 to 128 of them
//! (2025-11-25, "Tool Names"). Ids and given names are such names; a version,
//! which the host writes as `@N`, is not, and `_vN` stands for it.

use std::collections::HashMap;

use toolward_bundle::text::visible_line;
use toolward_host::ToolInfo;

use super::CatalogueError;

/// The server's own tools.
const RESERVED: [&str; 3] = ["search_tools", "load_tool", "call_tool"];

/// Names that begin so are the server's, also those that it does not use yet.
const PREFIX: &str = "toolward";

/// Characters of a publisher's name in an error.
const PUBLISHER: usize = 200;

/// What a tool's name is made of.
pub(super) struct Claim<'a> {
    /// `metadata.mcp.name`.
    given: Option<&'a str>,
    id: &'a str,
    major: u64,
    /// As people are shown it.
    version: String,
    publisher: &'a str,
}

impl<'a> Claim<'a> {
    pub(super) fn of(info: &'a ToolInfo) -> Self {
        let contract = &info.contract;
        Self {
            given: contract.mcp_name.as_deref(),
            id: contract.id.as_str(),
            major: contract.version.major,
            version: contract.version.to_string(),
            publisher: &info.publisher,
        }
    }

    fn plain(&self) -> &'a str {
        self.given.unwrap_or(self.id)
    }

    fn label(&self) -> String {
        let publisher = visible_line(self.publisher, PUBLISHER);
        format!("{}@{} by {publisher}", self.id, self.version)
    }
}

/// Which of the majors of one id has the plain name.
enum Newest<'a> {
    /// This one of the publisher whose they all are.
    Of(&'a str, u64),
    /// None: they are of several publishers.
    Nobody,
}

impl<'a> Newest<'a> {
    fn meet(&mut self, claim: &Claim<'a>) {
        *self = match *self {
            Self::Of(publisher, major) if publisher == claim.publisher => {
                Self::Of(publisher, major.max(claim.major))
            }
            _ => Self::Nobody,
        };
    }

    fn is(&self, claim: &Claim<'_>) -> bool {
        matches!(self, Self::Of(_, major) if *major == claim.major)
    }
}

/// The name of each tool, in the order of `claims`.
pub(super) fn assign(claims: &[Claim<'_>]) -> Result<Vec<String>, CatalogueError> {
    let mut newest: HashMap<(&str, &str), Newest<'_>> = HashMap::new();
    for claim in claims {
        let newest = newest
            .entry((claim.plain(), claim.id))
            .or_insert(Newest::Of(claim.publisher, claim.major));
        newest.meet(claim);
    }
    let named = claims.iter().map(|claim| {
        let (name, major) = (claim.plain(), claim.major);
        match newest.get(&(name, claim.id)) {
            Some(newest) if !newest.is(claim) => format!("{name}_v{major}"),
            _ => name.to_owned(),
        }
    });
    let names: Vec<String> = named.collect();

    let mut taken: HashMap<String, &Claim<'_>> = HashMap::new();
    for (name, claim) in names.iter().zip(claims) {
        let folded = name.to_ascii_lowercase();
        if is_reserved(&folded) {
            return Err(CatalogueError::NameReserved {
                name: name.clone(),
                tool: claim.label(),
            });
        }
        if let Some(first) = taken.insert(folded, claim) {
            return Err(CatalogueError::NameTaken {
                name: name.clone(),
                first: first.label(),
                second: claim.label(),
            });
        }
    }
    Ok(names)
}

/// Whether a name in lower case is the server's own.
fn is_reserved(name: &str) -> bool {
    let own = name
        .strip_prefix(PREFIX)
        .is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_alphanumeric()));
    own || RESERVED.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(tools: &[(Option<&str>, &str, u64, &str)]) -> Result<Vec<String>, CatalogueError> {
        let claims = tools.iter().map(|(given, id, major, publisher)| Claim {
            given: *given,
            id,
            major: *major,
            version: format!("{major}.0.0"),
            publisher,
        });
        let claims: Vec<Claim<'_>> = claims.collect();
        assign(&claims)
    }

    #[test]
    fn a_tool_is_called_what_its_contract_says_else_by_its_id() {
        let tools = [
            (Some("Count-Words"), "text.stats", 1, "acme"),
            (None, "text.other", 1, "acme"),
        ];
        assert_eq!(names(&tools).unwrap(), ["Count-Words", "text.other"]);
    }

    #[test]
    fn the_newest_major_has_the_plain_name_whatever_the_order() {
        let (old, new) = (
            (None, "text.stats", 1, "acme"),
            (None, "text.stats", 12, "acme"),
        );
        assert_eq!(names(&[old, new]).unwrap(), ["text.stats_v1", "text.stats"]);
        assert_eq!(names(&[new, old]).unwrap(), ["text.stats", "text.stats_v1"]);
        let renamed = (Some("stats"), "text.stats", 12, "acme");
        assert_eq!(names(&[old, renamed]).unwrap(), ["text.stats", "stats"]);
    }

    #[test]
    fn no_major_of_another_publisher_takes_the_name_of_a_tool() {
        let (known, own, other) = (
            (None, "text.stats", 1, "acme"),
            (None, "text.stats", 2, "acme"),
            (None, "text.stats", 3, "evil"),
        );
        assert_eq!(
            names(&[known, other]).unwrap(),
            ["text.stats_v1", "text.stats_v3"]
        );
        assert_eq!(
            names(&[other, known, own]).unwrap(),
            ["text.stats_v3", "text.stats_v1", "text.stats_v2"]
        );
        let renamed = (Some("stats"), "text.stats", 3, "evil");
        assert_eq!(names(&[known, renamed]).unwrap(), ["text.stats", "stats"]);
    }

    #[test]
    fn two_tools_that_would_carry_one_name_are_refused_with_both_named() {
        let refused = names(&[
            (Some("send"), "mail.send", 1, "acme"),
            (Some("Send"), "post.send", 2, "evil\u{202e}corp"),
        ]);
        let error = refused.unwrap_err();
        assert_eq!(error.code(), "mcp-name-taken");
        let text = error.to_string();
        assert!(text.contains("mail.send@1.0.0 by acme"), "{text}");
        assert!(
            text.contains("post.send@2.0.0 by evil\\u{202e}corp"),
            "{text}"
        );
    }

    #[test]
    fn the_name_of_an_older_major_is_not_to_be_had_either() {
        let refused = names(&[
            (None, "text.stats", 1, "acme"),
            (None, "text.stats", 2, "acme"),
            (Some("text.stats_v1"), "evil.tool", 1, "evil"),
        ]);
        assert_eq!(refused.unwrap_err().code(), "mcp-name-taken");
    }

    #[test]
    fn no_tool_passes_for_the_servers_own() {
        for name in [
            "search_tools",
            "Load_Tool",
            "call_tool",
            "toolward",
            "toolward.trust",
            "Toolward_x",
        ] {
            let refused = names(&[(Some(name), "evil.tool", 1, "evil")]);
            assert_eq!(refused.unwrap_err().code(), "mcp-name-reserved", "{name}");
        }
        for name in ["search_tools2", "toolwards", "my.toolward"] {
            assert_eq!(names(&[(Some(name), "a.tool", 1, "a")]).unwrap(), [name]);
        }
    }

    #[test]
    fn the_longest_name_that_there_can_be_is_one_that_mcp_carries() {
        let id = "a".repeat(80);
        let tools = [
            (None, id.as_str(), u64::MAX - 1, "a"),
            (None, id.as_str(), u64::MAX, "a"),
        ];
        let longest = names(&tools).unwrap();
        assert!(longest.iter().all(|name| name.len() <= 128), "{longest:?}");
    }
}
