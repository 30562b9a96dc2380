//! The files of a tree, in the order of their paths. Links are not followed.

use std::fs;
use std::path::Path;

use toolward_guest::Error;

/// Folders inside each other that are entered.
const MAX_DEPTH: usize = 32;

#[derive(Default)]
pub(crate) struct Tree {
    /// Paths from the root on, with `/` between their parts.
    pub(crate) files: Vec<String>,
    /// Links, special files, folders that can't be read or lie too deep.
    pub(crate) skipped: usize,
    /// Whether there were more files than the limit.
    pub(crate) truncated: bool,
}

/// A pattern for file names: `*` stands for any characters, `?` for one.
pub(crate) struct Names(Vec<char>);

impl Names {
    pub(crate) fn new(pattern: &str) -> Self {
        Names(pattern.chars().collect())
    }

    /// Each step goes on in the name, or back to the last star: the product of
    /// both lengths at worst.
    fn matches(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        let (mut at, mut next) = (0, 0);
        let mut star: Option<(usize, usize)> = None;
        while let Some(found) = name.get(at) {
            match self.0.get(next) {
                Some('*') => {
                    star = Some((next, at));
                    next += 1;
                }
                Some(wanted) if wanted == found || *wanted == '?' => {
                    at += 1;
                    next += 1;
                }
                _ => match &mut star {
                    Some((of_star, from)) => {
                        *from += 1;
                        at = *from;
                        next = *of_star + 1;
                    }
                    None => return false,
                },
            }
        }
        self.0.iter().skip(next).all(|rest| *rest == '*')
    }
}

/// All files below `folder` of `root`, at most `most`.
pub(crate) fn files(
    root: &Path,
    folder: &str,
    names: Option<&Names>,
    most: usize,
) -> Result<Tree, Error> {
    let folder = folder.trim_matches('/');
    if folder.split('/').any(|part| part == "..") {
        return Err(Error::new(
            "input_invalid",
            format!("expected a folder below /files, found {folder:?}"),
        ));
    }
    if !root.join(folder).is_dir() {
        return Err(Error::new(
            "files:no_folder",
            format!("there is no folder {folder:?} below /files"),
        ));
    }
    let mut tree = Tree::default();
    enter(root, folder, names, most, MAX_DEPTH, &mut tree);
    Ok(tree)
}

fn enter(
    root: &Path,
    folder: &str,
    names: Option<&Names>,
    most: usize,
    depth: usize,
    tree: &mut Tree,
) {
    let entries = fs::read_dir(root.join(folder)).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let Ok(mut entries) = entries else {
        tree.skipped += 1;
        return;
    };
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        if tree.truncated {
            return;
        }
        let Ok(name) = entry.file_name().into_string() else {
            tree.skipped += 1;
            continue;
        };
        let path = match folder {
            "" => name.clone(),
            folder => format!("{folder}/{name}"),
        };
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 => {
                enter(root, &path, names, most, depth - 1, tree);
            }
            Ok(kind) if kind.is_file() => {
                if names.is_none_or(|names| names.matches(&name)) {
                    if tree.files.len() == most {
                        tree.truncated = true;
                        return;
                    }
                    tree.files.push(path);
                }
            }
            _ => tree.skipped += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_as_in_a_shell() {
        for (pattern, name, expected) in [
            ("*.rs", "a.rs", true),
            ("*.rs", "a.rs.txt", false),
            ("*", "", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyy", false),
            ("?.md", "é.md", true),
            ("?.md", "ab.md", false),
            ("", "", true),
            ("", "a", false),
            ("**", "a", true),
        ] {
            assert_eq!(
                Names::new(pattern).matches(name),
                expected,
                "{pattern} {name}"
            );
        }
        let slow = Names::new(&"*a".repeat(100));
        assert!(!slow.matches(&"a".repeat(99)));
    }

    #[test]
    fn links_and_what_lies_too_deep_are_skipped_and_counted() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("file"), "").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink("/etc", root.path().join("link")).unwrap();
        let deep = root.path().join("d/".repeat(MAX_DEPTH + 2));
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("lost"), "").unwrap();
        let tree = files(root.path(), "", None, 10).unwrap();
        assert_eq!(tree.files, ["file"]);
        assert_eq!(tree.skipped, 2);
    }

    #[test]
    fn the_limit_of_files_is_said_where_it_cut() {
        let root = tempfile::tempdir().unwrap();
        for n in 0..4 {
            fs::write(root.path().join(n.to_string()), "").unwrap();
        }
        let tree = files(root.path(), "", None, 3).unwrap();
        assert_eq!((tree.files.len(), tree.truncated), (3, true));
        assert!(!files(root.path(), "", None, 4).unwrap().truncated);
    }

    #[test]
    fn a_folder_outside_or_missing_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let code = |folder| files(root.path(), folder, None, 1).map(|_| ()).unwrap_err();
        assert_eq!(code("../x").code(), "input_invalid");
        assert_eq!(code("a/../..").code(), "input_invalid");
        assert_eq!(code("missing").code(), "files:no_folder");
        assert!(files(root.path(), "/", None, 1).is_ok());
    }
}
