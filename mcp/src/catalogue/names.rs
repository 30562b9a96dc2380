//! Names over MCP, as clients accept them: `text_stats` for the id `text.stats`, or what
//! the signed contract asks for in `metadata.mcp.name`, where its publisher may.
//!
//! Names are given in the order in which the tools arrived, and each depends on those
//! before it alone: whoever comes later never changes the name of a tool that an agent
//! knows already.

use std::collections::HashMap;

use toolward_bundle::text::visible_line;
use toolward_contract::tool::mapped;

use super::NameProblem;

/// The server's own tools.
const SERVER_TOOLS: [&str; 3] = ["search_tools", "load_tool", "call_tool"];
/// Names that begin so are the server's, also those that it does not use yet.
const SERVER_PREFIX: &str = "toolward";
/// Clients put `mcp__SERVER__` before names, and take what begins so for one of theirs.
const CLIENT_PREFIX: &str = "mcp";
/// What stands before a name that would be another's for its beginning or as a whole.
const ESCAPE_PREFIX: &str = "tool_";

/// The name of a tool that asks for one of which no character can be in a name.
const FALLBACK_NAME: &str = "tool";

/// Characters of a name. Clients take 64 and put up to 16 before it.
const MAX_NAME_CHARS: usize = 48;
/// Characters that stay of a longer one, before `_` and a digest.
const STEM_CHARS: usize = 34;
/// Characters of the digest, of five bits each.
const DIGEST_CHARS: usize = 13;
/// The digits of base32 (RFC 4648), in lower case.
const BASE32_DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Characters of a publisher's short name.
const MAX_SHORT_NAME_CHARS: usize = 16;
/// Characters of a publisher's name in an error.
const MAX_PUBLISHER_CHARS: usize = 200;

/// What a tool's name is made of.
pub(super) struct Claim<'a> {
    /// `metadata.mcp.name`, where the tool may be called so.
    pub(super) given: Option<&'a str>,
    pub(super) id: &'a str,
    pub(super) major: u64,
    /// As people are shown it.
    pub(super) version: String,
    pub(super) publisher: &'a str,
}

impl Claim<'_> {
    pub(super) fn label(&self) -> String {
        let publisher = visible_line(self.publisher, MAX_PUBLISHER_CHARS);
        format!("{}@{} by {publisher}", self.id, self.version)
    }

    fn plain(&self) -> String {
        let plain = mapped(self.given.unwrap_or(self.id));
        match plain.as_str() {
            // Nothing of what it asks for can be in a name.
            "" => FALLBACK_NAME.to_owned(),
            name if is_reserved(&name.to_ascii_lowercase()) => format!("{ESCAPE_PREFIX}{name}"),
            _ => plain,
        }
    }

    /// The names that it may get beside a tool that has its plain one, the first first.
    fn longer(&self, plain: &str, holder: &Claim<'_>) -> Vec<String> {
        let major = self.major;
        let of_publisher = format!("{plain}_{}", short(self.publisher));
        let of_both = format!("{of_publisher}_v{major}");
        match (holder.publisher, holder.id) == (self.publisher, self.id) {
            true => vec![format!("{plain}_v{major}"), of_publisher, of_both],
            false => vec![of_publisher, of_both],
        }
    }

    /// A name that is short enough. One that is cut has a digest of whose it is: no other
    /// tool gets the same.
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

/// A publisher's name, as far as it helps to tell tools apart: of a directory under work
/// its last part.
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
    let mut bits = [0; 16];
    bits.copy_from_slice(hash.as_bytes().first_chunk::<16>().unwrap_or(&[0; 16]));
    let mut bits = u128::from_be_bytes(bits);
    let mut text = String::with_capacity(DIGEST_CHARS);
    for _ in 0..DIGEST_CHARS {
        bits = bits.rotate_left(5);
        let digit = usize::try_from(bits & 31).unwrap_or_default();
        text.push(BASE32_DIGITS.get(digit).copied().unwrap_or_default().into());
    }
    text
}

/// The name of each tool, in the order of `claims`: that in which the tools arrived. Names
/// that differ in case only count as one. A tool for which there is none is left out.
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

/// Whether a name in lower case is not for tools of publishers.
pub(super) fn is_reserved(name: &str) -> bool {
    let own = name
        .strip_prefix(SERVER_PREFIX)
        .is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_alphanumeric()));
    own || name.starts_with(CLIENT_PREFIX) || SERVER_TOOLS.contains(&name)
}

#[cfg(test)]
mod tests;
