//! How large the documents of a bundle may be, by name. Compared before a file is read.

use toolward_contract::front_matter;
use toolward_signing::manifest::TOOLS_FILE;

use crate::documents::{file_name, is_prompt};

/// Largest `bundle.toml`, in bytes: the limit of the manifest made from it.
pub(crate) const BUNDLE_TOML: usize = 256 * 1024;

/// The largest `tools.json` that an author writes, in bytes.
pub(crate) const TOOLS_JSON: usize = 4 * 1024 * 1024;

/// What the reader of a file takes, in bytes; `None` for files that are no documents.
pub(crate) fn of(path: &str) -> Option<usize> {
    match file_name(path) {
        "bundle.toml" => Some(BUNDLE_TOML),
        TOOLS_FILE => Some(TOOLS_JSON),
        "TOOL.md" | "DRIVER.md" | "ACTION.md" => Some(front_matter::MAX_BYTES),
        name if name.ends_with(".tool.md") || is_prompt(path) => Some(front_matter::MAX_BYTES),
        _ => None,
    }
}
