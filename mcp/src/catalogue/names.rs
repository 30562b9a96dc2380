//! Names over MCP, and the order in which tools get them. Names have the form that clients accept:
//! `text_stats` for the id `text.stats`, or `metadata.mcp.name` of the signed contract, if its
//! publisher may choose it.
//!
//! Names are assigned in the order in which the tools arrived: installed tools in the order of
//! their installation, then all others. Each name depends only on the names before it, so a later
//! tool never changes a name that an agent already knows.

use std::cmp::Reverse;
use std::collections::HashMap;

use toolward_bundle::content::Content;
use toolward_bundle::text::visible_line;
use toolward_contract::tool::{McpResult, mapped};
use toolward_host::{ToolFacts, WithheldTool};
use toolward_policy::Policy;
use toolward_support::report::codes;

/// The server's own tools.
const SERVER_TOOLS: [&str; 3] = ["search_tools", "load_tool", "call_tool"];
/// The prefix of names that are reserved for the server.
const SERVER_PREFIX: &str = "toolward";
/// The start of `mcp__SERVER__`, with which clients prefix names. Clients treat a name that starts
/// with `mcp` as already prefixed.
const CLIENT_PREFIX: &str = "mcp";
/// The prefix that makes a reserved name usable.
const ESCAPE_PREFIX: &str = "tool_";

/// The name of a tool whose chosen name has no valid character.
const FALLBACK_NAME: &str = "tool";

/// The most characters of a name. Clients allow 64, including their prefix of up to 16.
const MAX_NAME_CHARS: usize = 48;
/// The first characters of a longer name, before `_` and a digest.
const STEM_CHARS: usize = 34;
/// Characters of the digest, of five bits each.
const DIGEST_CHARS: usize = 13;
/// The digits of base32 (RFC 4648), in lower case.
const BASE32_DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Characters of a publisher's short name.
const MAX_SHORT_NAME_CHARS: usize = 16;
/// Characters of a publisher's name in an error.
const MAX_PUBLISHER_CHARS: usize = 200;

/// The facts that a tool's name is made from.
pub(super) struct Claim<'a> {
    /// `metadata.mcp.name`, if the tool may have it.
    pub(super) given: Option<&'a str>,
    pub(super) id: &'a str,
    pub(super) major: u64,
    /// The version as people see it.
    pub(super) version: String,
    pub(super) publisher: &'a str,
}

impl<'a> Claim<'a> {
    /// The claim of a tool that is not loaded. It may have any name, since a call by that name only
    /// ends with an error.
    pub(super) fn of(tool: &'a WithheldTool) -> Self {
        Self {
            given: tool.mcp_name.as_deref(),
            id: &tool.id,
            major: tool.major,
            version: tool.major.to_string(),
            publisher: &tool.publisher,
        }
    }

    pub(super) fn label(&self) -> String {
        let publisher = visible_line(self.publisher, MAX_PUBLISHER_CHARS);
        format!("{}@{} by {publisher}", self.id, self.version)
    }

    fn plain(&self) -> String {
        let plain = mapped(self.given.unwrap_or(self.id));
        match plain.as_str() {
            // No character of the requested name is valid.
            "" => FALLBACK_NAME.to_owned(),
            name if is_reserved(&name.to_ascii_lowercase()) => format!("{ESCAPE_PREFIX}{name}"),
            _ => plain,
        }
    }

    /// The names that the tool may get if its plain name is taken, in order of preference.
    fn longer(&self, plain: &str, holder: &Claim<'_>) -> Vec<String> {
        let major = self.major;
        let of_publisher = format!("{plain}_{}", short(self.publisher));
        let of_both = format!("{of_publisher}_v{major}");
        match (holder.publisher, holder.id) == (self.publisher, self.id) {
            true => vec![format!("{plain}_v{major}"), of_publisher, of_both],
            false => vec![of_publisher, of_both],
        }
    }

    /// Returns the name, truncated if it is too long. A truncated name ends in a digest of the
    /// publisher, id and major version, so that it is unique.
    fn fitted(&self, name: String) -> String {
        if name.len() <= MAX_NAME_CHARS {
            return name;
        }
        let kept = name
            .get(..STEM_CHARS)
            .unwrap_or_default()
            .trim_end_matches('_');
        let whose = format!("{}\0{}@{}", self.publisher, self.id, self.major);
        format!("{kept}_{}", digest(whose.as_bytes()))
    }
}

/// A short form of a publisher's name. For an unsigned bundle it is the last part of the directory.
fn short(publisher: &str) -> String {
    let last = match publisher.strip_prefix("dev:") {
        Some(directory) => directory.rsplit('/').find(|part| !part.is_empty()),
        None => Some(publisher),
    };
    let name = mapped(last.unwrap_or_default());
    let short = name
        .get(..MAX_SHORT_NAME_CHARS)
        .unwrap_or(&name)
        .trim_end_matches('_');
    match short {
        "" => "other".to_owned(),
        short => short.to_owned(),
    }
}

/// The first bits of BLAKE3 in base32.
fn digest(text: &[u8]) -> String {
    let hash = blake3::hash(text);
    let bits = hash.as_bytes().first_chunk();
    let mut bits = bits.map_or(0, |bytes| u128::from_be_bytes(*bytes));
    let digits = std::iter::repeat_with(|| {
        bits = bits.rotate_left(5);
        let digit = usize::try_from(bits & 31).unwrap_or_default();
        char::from(BASE32_DIGITS.get(digit).copied().unwrap_or_default())
    });
    digits.take(DIGEST_CHARS).collect()
}

/// Returns the name of each tool, in the order of `claims`, which is the order of arrival. Names
/// that differ only in case count as equal. A tool for which no name is free gets an error.
pub(super) fn assign(claims: &[Claim<'_>]) -> Vec<Result<String, NameProblem>> {
    let mut taken: HashMap<String, &Claim<'_>> = HashMap::new();
    let mut names = Vec::with_capacity(claims.len());
    for claim in claims {
        let plain = claim.plain();
        let first = claim.fitted(plain.clone());
        let name = match taken.get(&first.to_ascii_lowercase()) {
            None => Ok(first),
            Some(holder) => {
                let free = |name: &String| {
                    let folded = name.to_ascii_lowercase();
                    !taken.contains_key(&folded) && !is_reserved(&folded)
                };
                let longer = claim.longer(&plain, holder).into_iter();
                let mut fitting = longer.map(|name| claim.fitted(name));
                fitting.find(free).ok_or_else(|| NameProblem::Taken {
                    name: first,
                    first: holder.label(),
                    second: claim.label(),
                })
            }
        };
        if let Ok(name) = &name {
            taken.insert(name.to_ascii_lowercase(), claim);
        }
        names.push(name);
    }
    names
}

/// Whether a lower-case name is reserved.
pub(super) fn is_reserved(name: &str) -> bool {
    let own = name
        .strip_prefix(SERVER_PREFIX)
        .is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_alphanumeric()));
    own || name.starts_with(CLIENT_PREFIX) || SERVER_TOOLS.contains(&name)
}

codes! {
    /// Why a tool does not have its preferred name.
    ///
    /// ```
    /// use toolward_mcp::{NameProblem, ServerFeatures};
    ///
    /// fn report(features: &ServerFeatures) {
    ///     for problem in features.name_problems() {
    ///         let what = match problem {
    ///             NameProblem::Taken { .. } => "left out",
    ///             _ => "renamed",
    ///         };
    ///         let hint = problem.hint().unwrap_or_default();
    ///         eprintln!("{what}: {problem} ({}): {hint}", problem.code());
    ///     }
    /// }
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub enum NameProblem: Error {
        /// Other tools have the name and all its longer forms: the tool `second` is left out. Names
        /// that differ only in case count as equal, since a reader can't tell them apart. `first`
        /// and `second` have the form `id@version by publisher`.
        Taken { name: String, first: String, second: String } = "mcp-name-taken" Warning,
            "every name that a tool could have over MCP is taken, so the tool is left out",
            ("{second} is not served: it would be shown as `{name}`, which is {first}")
            => "remove one of the two bundles, or ask a publisher for another `metadata.mcp.name`";
        Outside { name: String, tool: String, shown: String } = "mcp-name-outside" Warning,
            "the name that a tool asks for over MCP is outside its publisher's prefixes, so the tool is shown by its id",
            ("{tool} asks to be shown as `{name}`, which is not its publisher's to choose: it is `{shown}`")
            => "to allow it, add the name to `names` of a `[[grant]]` for the tool";
    }
}

/// Facts about tools that the host does not have, by bundle and `id@major`.
#[derive(Debug, Default)]
pub(crate) struct Order {
    tools: HashMap<(String, String), Arrived>,
}

#[derive(Clone, Copy, Debug)]
struct Arrived {
    /// The number of its installation. Later installations have higher numbers.
    arrival: Option<u64>,
    /// The place of its bundle among the served bundles.
    bundle: usize,
    /// Whether it may have the name that its contract asks for.
    names_itself: bool,
    /// The parts of its results that clients get.
    result: McpResult,
}

/// Sorts by arrival. If several major versions of a tool arrived together, the newest comes first,
/// since an id without a version means the newest.
type Key = (u64, usize, String, Reverse<u64>);

impl Order {
    /// Orders the tools of these bundles: installed tools by installation, other tools by the order
    /// of the bundles.
    pub(crate) fn new(contents: &[Content], policy: &Policy) -> Self {
        let mut tools = HashMap::new();
        for (place, content) in contents.iter().enumerate() {
            let publisher = content.origin.publisher();
            let bundle = content.manifest_digest.to_string();
            for entry in &content.tools {
                let contract = &entry.tool;
                let (id, major) = (contract.id.as_str(), contract.version.major);
                let asked = contract.mcp_name.as_deref();
                let allowed = |name| policy.names_tool(&publisher, id, major, name);
                let arrived = Arrived {
                    arrival: entry.arrival,
                    bundle: place,
                    names_itself: entry.names_itself || asked.is_some_and(allowed),
                    result: policy
                        .mcp_result(&publisher, id, major)
                        .unwrap_or(contract.mcp_result),
                };
                tools.insert((bundle.clone(), contract.major_id()), arrived);
            }
        }
        Self { tools }
    }

    fn arrived(&self, info: &ToolFacts) -> Arrived {
        let tool = (info.bundle.to_string(), info.contract.major_id());
        self.tools.get(&tool).copied().unwrap_or(Arrived {
            arrival: None,
            bundle: usize::MAX,
            names_itself: false,
            result: info.contract.mcp_result,
        })
    }

    /// The parts of a tool's results that clients get.
    pub(super) fn result(&self, info: &ToolFacts) -> McpResult {
        self.arrived(info).result
    }

    pub(super) fn of(&self, info: &ToolFacts) -> Key {
        let Arrived {
            arrival, bundle, ..
        } = self.arrived(info);
        let contract = &info.contract;
        (
            arrival.unwrap_or(u64::MAX),
            // Bundles are installed one by one, so no two bundles have the same arrival.
            arrival.map_or(bundle, |_| 0),
            contract.id.to_string(),
            Reverse(contract.version.major),
        )
    }

    pub(super) fn claim<'i>(&self, info: &'i ToolFacts) -> Claim<'i> {
        let contract = &info.contract;
        let names_itself = self.arrived(info).names_itself;
        Claim {
            given: contract.mcp_name.as_deref().filter(|_| names_itself),
            id: contract.id.as_str(),
            major: contract.version.major,
            version: contract.version.to_string(),
            publisher: &info.publisher,
        }
    }
}

#[cfg(test)]
mod tests;
