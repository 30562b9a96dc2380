//! Resolves a guest's path to a virtual path, as text and before anything is opened. This module
//! does no I/O.
//!
//! A virtual path is resolved lexically: symbolic links do not exist for a guest, so `a/../b` is
//! `b`. Names are compared with case. A file system that ignores case, which is never Linux's
//! default, would need its own rules.

use toolward_bundle::text::is_hidden;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

/// The most bytes of a path that a guest writes (Linux's `PATH_MAX`).
const LENGTH: usize = 4096;

/// The most bytes of one part of a path (Linux's `NAME_MAX`).
const NAME: usize = 255;

/// A virtual path: absolute, normalised, without `.` and `..`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct VirtualPath(String);

impl VirtualPath {
    /// Reads a path of a grant, which is absolute and has no `..`.
    pub(super) fn of_grant(text: &str) -> Self {
        let parts = text.split('/').filter(|part| !matches!(*part, "" | "."));
        Self::of_parts(parts)
    }

    fn of_parts<'a>(parts: impl Iterator<Item = &'a str>) -> Self {
        let mut path = parts.fold(String::new(), |path, part| path + "/" + part);
        if path.is_empty() {
            path.push('/');
        }
        Self(path)
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    fn parts(&self) -> impl Iterator<Item = &str> {
        self.0.split('/').filter(|part| !part.is_empty())
    }

    /// The path of an entry of this directory.
    pub(super) fn child(&self, name: &str) -> Self {
        let head = self.0.trim_end_matches('/');
        Self(format!("{head}/{name}"))
    }

    /// Its last part; empty for `/`.
    pub(super) fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// The directory that contains it; `/` for `/`.
    pub(super) fn parent(&self) -> Self {
        match self.0.rsplit_once('/') {
            Some((head, _)) if !head.is_empty() => Self(head.to_owned()),
            _ => Self("/".to_owned()),
        }
    }

    /// The part after `root`: empty if both paths are the same, `None` if this path is not below
    /// `root`.
    pub(super) fn below(&self, root: &Self) -> Option<&str> {
        let rest = self.0.strip_prefix(root.0.trim_end_matches('/'))?;
        match rest.strip_prefix('/') {
            Some(relative) => Some(relative),
            None => rest.is_empty().then_some(rest),
        }
    }
}

/// A guest's path, resolved to a virtual path.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Resolved {
    pub(super) path: VirtualPath,
    /// Whether the guest wrote it as a directory, with `/`, `.` or `..` at its end.
    pub(super) directory: bool,
}

/// Why a guest's path can't be resolved.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Rejected {
    /// It is not a path that a file can have.
    Malformed(ErrorCode),
    /// It leaves the directory that it is resolved against. Holds the path for the record of
    /// violations.
    Outside(String),
}

/// Resolves `text` against a directory. An accepted path is the directory or below it.
pub(super) fn resolve(directory: &VirtualPath, text: &str) -> Result<Resolved, Rejected> {
    if text.is_empty() {
        return Err(Rejected::Malformed(ErrorCode::NoEntry));
    }
    if text.len() > LENGTH {
        return Err(Rejected::Malformed(ErrorCode::NameTooLong));
    }
    if text.starts_with('/') {
        return Err(Rejected::Outside(text.to_owned()));
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if parts.pop().is_none() {
                    let base = directory.as_str().trim_end_matches('/');
                    return Err(Rejected::Outside(format!("{base}/{text}")));
                }
            }
            part if part.len() > NAME => {
                return Err(Rejected::Malformed(ErrorCode::NameTooLong));
            }
            part if !nameable(part) => return Err(Rejected::Malformed(ErrorCode::Invalid)),
            part => parts.push(part),
        }
    }
    let last = text.rsplit('/').next().unwrap_or_default();
    Ok(Resolved {
        path: VirtualPath::of_parts(directory.parts().chain(parts)),
        directory: matches!(last, "" | "." | ".."),
    })
}

/// Whether a guest can use this name of a directory entry. Entries with other names do not exist
/// for a guest: names with control characters, which could forge the output of a terminal or a log,
/// and names with a backslash, which other systems treat as a separator.
pub(super) fn nameable(name: &str) -> bool {
    !matches!(name, "" | "." | "..")
        && name.len() <= NAME
        && !name
            .chars()
            .any(|c| c.is_control() || matches!(c, '/' | '\\'))
}

/// Whether a guest may give this name to a file. Names with invisible characters, or with
/// characters that change how others are displayed, look like other names if a person sees them
/// unescaped: in a file manager, a shell, a review. Existing files with such names can be read and
/// removed.
pub(super) fn makeable(name: &str) -> bool {
    nameable(name) && !name.chars().any(is_hidden)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes() -> VirtualPath {
        VirtualPath::of_grant("/notes//2026/")
    }

    fn resolved(text: &str) -> Result<(String, bool), Rejected> {
        resolve(&notes(), text).map(|found| (found.path.0, found.directory))
    }

    #[test]
    fn a_path_is_resolved_as_text_below_its_directory() {
        for (text, path, directory) in [
            ("a", "/notes/2026/a", false),
            ("a/b.txt", "/notes/2026/a/b.txt", false),
            ("./a//b/", "/notes/2026/a/b", true),
            ("a/../b", "/notes/2026/b", false),
            ("a/..", "/notes/2026", true),
            (".", "/notes/2026", true),
            ("...", "/notes/2026/...", false),
            ("ä/%2e%2e", "/notes/2026/ä/%2e%2e", false),
        ] {
            assert_eq!(resolved(text), Ok((path.to_owned(), directory)), "{text}");
        }
    }

    #[test]
    fn a_path_that_leaves_its_directory_is_outside() {
        for text in [
            "..",
            "../x",
            "a/../../x",
            "./../2026/a",
            "a/b/../../../../../etc/passwd",
            "/etc/passwd",
            "/",
            "//a",
            "/notes/2026/a",
        ] {
            assert!(
                matches!(resolved(text), Err(Rejected::Outside(_))),
                "{text}"
            );
        }
    }

    #[test]
    fn what_no_file_is_called_is_malformed() {
        for (text, code) in [
            ("", ErrorCode::NoEntry),
            ("a\0b", ErrorCode::Invalid),
            ("a/\n", ErrorCode::Invalid),
            ("..\\..\\etc", ErrorCode::Invalid),
            (&"a".repeat(256), ErrorCode::NameTooLong),
            (&"a/".repeat(2049), ErrorCode::NameTooLong),
        ] {
            assert_eq!(resolved(text), Err(Rejected::Malformed(code)), "{text:?}");
        }
    }

    #[test]
    fn what_lies_below_is_told_by_whole_parts() {
        let root = VirtualPath::of_grant("/data");
        let below = |text: &str| {
            let path = VirtualPath::of_grant(text);
            path.below(&root).map(str::to_owned)
        };
        assert_eq!(below("/data"), Some(String::new()));
        assert_eq!(below("/data/a/b"), Some("a/b".to_owned()));
        assert_eq!(below("/database"), None);
        assert_eq!(below("/"), None);
        let top = VirtualPath::of_grant("/");
        assert_eq!(top.below(&top), Some(""));
        assert_eq!(root.below(&top), Some("data"));
    }

    /// Joins the words that attacks are made of in random order.
    #[test]
    fn no_accepted_path_leaves_its_directory() {
        const WORDS: [&str; 12] = [
            "",
            ".",
            "..",
            "...",
            "a",
            "b",
            "etc",
            "..a",
            " ..",
            "..\u{200b}",
            "%2e%2e",
            "\u{2025}",
        ];
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = |bound: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % bound as u64) as usize
        };
        let base = notes();
        let mut accepted = 0;
        for _ in 0..200_000 {
            let count = next(9) + 1;
            let text = (0..count)
                .map(|_| WORDS[next(WORDS.len())])
                .collect::<Vec<_>>()
                .join("/");
            let Ok(found) = resolve(&base, &text) else {
                continue;
            };
            accepted += 1;
            assert!(found.path.below(&base).is_some(), "{text:?}");
            assert!(
                found.path.parts().all(|part| !matches!(part, "." | "..")),
                "{text:?}"
            );
            // Without links, the kernel's resolution does not leave the directory either.
            let mut depth = 0_i64;
            for part in text.split('/') {
                depth += match part {
                    "" | "." => 0,
                    ".." => -1,
                    _ => 1,
                };
                assert!(depth >= 0, "{text:?}");
            }
        }
        assert!(accepted > 1000);
    }
}
