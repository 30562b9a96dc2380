//! Names over MCP. A tool is called what its signed contract says in
//! `metadata.mcp.name`, else by its id. Of several majors of one id the newest
//! has the plain name, as it has with the host, and the others end in `_vN`.
//!
//! MCP carries letters, digits, `_`, `-` and `.`, 1 to 128 of them
//! (2025-11-25, "Tool Names"). Ids and given names are such names; a version,
//! which the host writes as `@N`, is not, and `_vN` stands for it.

use std::collections::{BTreeMap, HashMap};

use toolward_bundle::text::visible_line;
use toolward_host::ToolInfo;

use super::CatalogueError;

/// The server's own tools.
const RESERVED: [&str; 3] = ["search_tools", "load_tool", "call_tool"];

/// Names that begin so are the server's, also those that it does not use yet.
const PREFIX: &str = "toolward";

/// Characters of a publisher's name in an error.
const PUBLISHER: usize = 200;

/// The name of each tool, in the order of `infos`.
pub(super) fn assign(infos: &[ToolInfo]) -> Result<Vec<String>, CatalogueError> {
    let mut newest: HashMap<(&str, &str), u64> = HashMap::new();
    for info in infos {
        let major = newest.entry((plain(info), info.contract.id.as_str()));
        let major = major.or_insert(info.contract.version.major);
        *major = info.contract.version.major.max(*major);
    }
    let named = infos.iter().map(|info| {
        let (name, major) = (plain(info), info.contract.version.major);
        match newest.get(&(name, info.contract.id.as_str())) {
            Some(newest) if *newest != major => format!("{name}_v{major}"),
            _ => name.to_owned(),
        }
    });
    let names: Vec<String> = named.collect();

    let mut taken: BTreeMap<String, &ToolInfo> = BTreeMap::new();
    for (name, info) in names.iter().zip(infos) {
        let folded = name.to_ascii_lowercase();
        if is_reserved(&folded) {
            return Err(CatalogueError::NameReserved {
                name: name.clone(),
                tool: label(info),
            });
        }
        if let Some(first) = taken.insert(folded, info) {
            return Err(CatalogueError::NameTaken {
                name: name.clone(),
                first: label(first),
                second: label(info),
            });
        }
    }
    Ok(names)
}

fn plain(info: &ToolInfo) -> &str {
    let given = info.contract.mcp_name.as_deref();
    given.unwrap_or(info.contract.id.as_str())
}

/// Whether a name in lower case is the server's own.
fn is_reserved(name: &str) -> bool {
    let own = name
        .strip_prefix(PREFIX)
        .is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_alphanumeric()));
    own || RESERVED.contains(&name)
}

fn label(info: &ToolInfo) -> String {
    format!(
        "{}@{} by {}",
        info.contract.id,
        info.contract.version,
        visible_line(&info.publisher, PUBLISHER)
    )
}
