//! Names that two documents of a bundle share.

use std::collections::BTreeMap;

use toolward_contract::diagnostic::Diagnostic;

use crate::codes;
use crate::locate::about_file;

/// Reports each id of this kind that more than one file has.
pub(crate) fn repeated<'a>(
    kind: &str,
    ids: impl Iterator<Item = (String, &'a str)>,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for (id, path) in ids {
        if let Some(first) = seen.get(&id) {
            diagnostics.push(about_file(
                path,
                &codes::DUPLICATE_ID,
                format!("the {kind} {id:?} is taken by {first}"),
                "give one of them another, or put it into another bundle",
            ));
        } else {
            seen.insert(id, path);
        }
    }
}
