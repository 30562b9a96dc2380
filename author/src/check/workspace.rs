//! A workspace of the AIPs: documents in `.tools`, `.drivers` and `.actions`, and no bundle.toml.

use std::path::{Path, PathBuf};

use toolward_bundle::dev::bundle_toml;
use toolward_bundle::locate::about_file;
use toolward_bundle::{codes, files};
use toolward_signing::id::Id;

use super::{Findings, examine_loose, unreadable_at};

/// Checks the documents that are in none of these bundles, and names the bundle.toml that would make a bundle of them.
pub(super) fn check_workspace(root: &Path, bundles: &[PathBuf]) -> Findings {
    let mut collected = match files::survey(root) {
        Ok(collected) => collected,
        Err(error) => {
            return Findings {
                diagnostics: vec![unreadable_at(root, &error)],
                ..Findings::default()
            };
        }
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
    found.diagnostics.extend(problems);
    if found.documents == 0 && !bundles.is_empty() {
        return found;
    }
    found.diagnostics.push(about_file(
        bundle_toml::FILE,
        &codes::BUNDLE_TOML_WANTED,
        "the workspace has no bundle.toml, so that nothing can pack or serve it",
        format!(
            "write bundle.toml: id = \"{}\", version = \"0.1.0\", sequence = 1, publisher = \"local\", a line each",
            id(root)
        ),
    ));
    found
}

/// The directory's name, if it is the id of a bundle.
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
