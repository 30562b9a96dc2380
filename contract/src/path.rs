//! Paths by which the documents of a bundle name each other. This module handles only text and
//! looks for no files.

/// Folders whose names start with a dot in a workspace (AIP-39, "File location"). No name in a
/// bundle starts with a dot, so in a bundle's paths the dot is left out.
const DOTTED: &[&str] = &[".actions", ".drivers", ".tools"];

/// Resolves `reference` from `folder` to a path relative to the bundle's root. The dot of
/// `.actions`, `.drivers` and `.tools` is ignored.
///
/// Returns `None` if the reference is absolute, leaves the bundle, or has a segment that is not
/// allowed in a bundle's path.
pub fn resolve_beneath(folder: &str, reference: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in reference.strip_suffix('/').unwrap_or(reference).split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(segment(part)?),
        }
    }
    Some(parts.join("/"))
}

/// Whether a text must be a path: it starts with `./`, `../` or one of the [`DOTTED`] folders.
pub(crate) fn is_relative(text: &str) -> bool {
    text.split_once('/')
        .is_some_and(|(first, _)| matches!(first, "." | "..") || DOTTED.contains(&first))
}

/// Whether a text can be a path to a document from some folder of a bundle: `.` and `..` are only
/// at the start.
pub(crate) fn is_path(text: &str) -> bool {
    let parts = text.strip_suffix('/').unwrap_or(text).split('/');
    let mut parts = parts.skip_while(|part| matches!(*part, "." | ".."));
    parts.all(|part| segment(part).is_some())
}

/// The path of the document `name`: `path` itself if it ends with that name, otherwise the document
/// in the folder `path`.
pub fn document(path: String, name: &str) -> String {
    let is_document = path
        .strip_suffix(name)
        .is_some_and(|folder| folder.is_empty() || folder.ends_with('/'));
    match path.as_str() {
        _ if is_document => path,
        "" => name.to_owned(),
        path => format!("{path}/{name}"),
    }
}

/// The folder of a path, without the final slash; empty at the root.
pub(crate) fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn segment(part: &str) -> Option<&str> {
    if DOTTED.contains(&part) {
        return part.strip_prefix('.');
    }
    let odd = |c: char| c == '\\' || c.is_control();
    (!part.is_empty() && !part.starts_with('.') && !part.contains(odd)).then_some(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_followed_from_the_folder_of_its_document() {
        let from = |reference| resolve_beneath("tools/demo.greet", reference);
        assert_eq!(
            from("../../actions/a/ACTION.md").as_deref(),
            Some("actions/a/ACTION.md")
        );
        assert_eq!(from("./b").as_deref(), Some("tools/demo.greet/b"));
        assert_eq!(from("b/").as_deref(), Some("tools/demo.greet/b"));
        assert_eq!(from("../..").as_deref(), Some(""));
    }

    #[test]
    fn the_dot_of_a_workspace_folder_is_ignored() {
        let root = |reference| resolve_beneath("", reference);
        assert_eq!(
            root("./.actions/a/ACTION.md").as_deref(),
            Some("actions/a/ACTION.md")
        );
        assert_eq!(root(".tools/x").as_deref(), Some("tools/x"));
        assert_eq!(root(".drivers/x").as_deref(), Some("drivers/x"));
        assert_eq!(root(".git/x"), None);
        assert_eq!(root("..actions/x"), None);
    }

    #[test]
    fn nothing_outside_the_bundle_can_be_named() {
        for reference in [
            "..",
            "../x",
            "./../x",
            "a/../../x",
            "/etc/passwd",
            "a//b",
            "",
            "/",
            "a\\b",
            "a/\0",
            "...",
            "~/x/../../..",
        ] {
            assert_eq!(resolve_beneath("", reference), None, "{reference:?}");
        }
        assert_eq!(resolve_beneath("tools/x", "../../../x"), None);
    }
}
