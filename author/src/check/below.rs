//! Finds the bundles and workspaces below a directory that is not a bundle, and the bundle to which
//! a file belongs. A workspace, by the AIP specifications, has documents in `.tools`, `.drivers`
//! and `.actions`, and no bundle.toml.

use std::path::{Path, PathBuf};

use toolward_bundle::dev::bundle_toml;
use toolward_bundle::files::BUILD_FOLDERS;
use toolward_bundle::locate::about_file;
use toolward_bundle::{codes, files};
use toolward_contract::diagnostic::Diagnostic;
use toolward_signing::id::Id;
use toolward_signing::manifest;

use super::{CheckReport, examine_loose, unreadable_at};

/// How deep a directory that is not a bundle is searched for bundles.
const SEARCH_DEPTH: usize = 4;

/// The most directories that are searched for bundles.
const SEARCH_LIMIT: usize = 10_000;

/// The most bundles and workspaces that are checked at once.
const MAX_ROOTS: usize = 1000;

/// The bundles and workspaces below a directory.
#[derive(Debug, Default)]
pub(super) struct Below {
    /// The bundles, by path, without bundles inside other bundles.
    pub(super) bundles: Vec<PathBuf>,
    /// The directories with a folder such as `.tools` and without a bundle.toml, by path. Bundles
    /// may be below them.
    pub(super) workspaces: Vec<PathBuf>,
    /// How many directories were searched.
    seen: usize,
    is_cut: bool,
}

impl Below {
    /// Searches below a directory, but not in hidden folders.
    pub(super) fn look(folder: &Path) -> Self {
        let mut below = Self::default();
        below.look_into(folder, SEARCH_DEPTH);
        below
    }

    /// Searches the folders of a workspace whose names start with a dot.
    pub(super) fn look_into_workspace(workspace: &Path) -> Self {
        let mut below = Self::default();
        for folder in files::workspace_folders(workspace) {
            below.look_at(folder, SEARCH_DEPTH);
        }
        below
    }

    /// Returns the finding that not all directories were searched, if that is so.
    pub(super) fn cut(&self) -> Option<Diagnostic> {
        let message = format!(
            "only {MAX_ROOTS} bundles in {SEARCH_LIMIT} folders are checked at once, and there are more"
        );
        let hint = "check the folders below it one by one";
        self.is_cut
            .then(|| about_file("", &codes::BUNDLE_TOO_LARGE, message, hint))
    }

    fn look_into(&mut self, folder: &Path, depth: usize) {
        let Ok(entries) = std::fs::read_dir(folder) else {
            return;
        };
        let is_visible = |name: &str| !name.starts_with('.') && !BUILD_FOLDERS.contains(&name);
        let mut folders: Vec<PathBuf> = entries
            .map_while(Result::ok)
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .filter(|entry| entry.file_name().to_str().is_some_and(is_visible))
            .map(|entry| entry.path())
            .take(SEARCH_LIMIT.saturating_sub(self.seen).saturating_add(1))
            .collect();
        folders.sort();
        for folder in folders {
            self.look_at(folder, depth);
        }
    }

    fn look_at(&mut self, folder: PathBuf, depth: usize) {
        let found = self.bundles.len().saturating_add(self.workspaces.len());
        self.is_cut |= self.seen >= SEARCH_LIMIT || found >= MAX_ROOTS;
        if self.is_cut {
            return;
        }
        self.seen = self.seen.saturating_add(1);
        if folder.join(bundle_toml::FILE).is_file() || folder.join(manifest::FILE).is_file() {
            self.bundles.push(folder);
            return;
        }
        if depth > 1 {
            self.look_into(&folder, depth - 1);
        }
        if files::is_workspace(&folder) {
            self.workspaces.push(folder);
        }
    }
}

/// Returns the nearest bundle that contains a file, and the file's name within it.
pub(super) fn enclosing_bundle(path: &Path) -> Option<(PathBuf, String)> {
    let mut name = path.file_name()?.to_str()?.to_owned();
    let folder = path.parent().filter(|one| *one != Path::new(""));
    let mut folder = folder.unwrap_or(Path::new(".")).to_owned();
    for _ in 0..=8 {
        if folder.join(bundle_toml::FILE).is_file() || folder.join(manifest::FILE).is_file() {
            return Some((folder, name));
        }
        let segment = match folder.file_name() {
            Some(segment) => segment.to_str()?.to_owned(),
            // `.` and `a/..` have no name.
            None => {
                let whole = folder.canonicalize().ok()?;
                whole.file_name()?.to_str()?.to_owned()
            }
        };
        name = format!("{segment}/{name}");
        folder = match folder.parent() {
            Some(parent) if parent != Path::new("") => parent.to_owned(),
            Some(_) if folder != Path::new(".") => PathBuf::from("."),
            _ => folder.canonicalize().ok()?.parent()?.to_owned(),
        };
    }
    None
}

/// Checks the documents outside these bundles, and suggests the bundle.toml that would make a
/// bundle of them.
pub(super) fn check_workspace(root: &Path, bundles: &[PathBuf]) -> CheckReport {
    let mut collected = match files::survey(root) {
        Ok(collected) => collected,
        Err(error) => return CheckReport::of([unreadable_at(root, &error)]),
    };
    let is_in_bundle = |path: &Path| bundles.iter().any(|bundle| path.starts_with(bundle));
    let mut files = std::mem::take(&mut collected.files);
    files.retain(|name, _| !is_in_bundle(&root.join(collected.place(name))));
    let mut found = examine_loose(&files);
    for one in &mut found.diagnostics {
        one.file = collected.place(&one.file);
    }
    let problems = collected.problems.iter();
    let problems = problems.filter(|problem| !is_in_bundle(problem.path()));
    let problems = problems.map(|problem| unreadable_at(root, problem));
    found.add(problems);
    if found.documents == 0 && !bundles.is_empty() {
        return found;
    }
    let (file, code) = (bundle_toml::FILE, &codes::BUNDLE_TOML_WANTED);
    let message = "the workspace has no bundle.toml, so that nothing can pack or serve it";
    let hint = format!(
        "write bundle.toml: id = \"{}\", version = \"0.1.0\", sequence = 1, publisher = \"local\", a line each",
        id(root)
    );
    found.add([about_file(file, code, message, hint)]);
    found
}

/// Returns the directory's name as an id of a bundle, or `my-tools` if it is not a valid id.
fn id(root: &Path) -> String {
    let whole = root.canonicalize().ok();
    let name = whole.as_deref().and_then(Path::file_name);
    let name = name.unwrap_or_default().to_string_lossy();
    let name = name.to_ascii_lowercase().replace('_', "-");
    match Id::parse(&name) {
        Ok(_) => name,
        Err(_) => "my-tools".to_owned(),
    }
}
