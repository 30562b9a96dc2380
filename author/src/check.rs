//! `check`: all findings about a bundle under work, a packed directory, or a single file, as
//! diagnostics. It verifies no signatures.

use std::path::Path;
use std::sync::Arc;

use toolward_bundle::codes;
use toolward_bundle::component::Surface;
use toolward_bundle::dev::{BundleToml, bundle_toml};
use toolward_bundle::documents::{Documents, file_name, is_prompt};
use toolward_bundle::files::{self, Files, FilesError};
use toolward_bundle::index::{self, TOOLS_JSON};
use toolward_bundle::libraries::Surroundings;
use toolward_bundle::locate::{about_error, about_file};
use toolward_bundle::rules;
use toolward_contract::action;
use toolward_contract::diagnostic::{self, Diagnostic, Severity};
use toolward_signing::manifest::{self, Manifest};

use crate::against::Earlier;
use crate::{lints, stale};

mod below;

use below::{Below, check_workspace, enclosing_bundle};

/// The result of a check.
#[derive(Debug, Default)]
pub struct CheckReport {
    /// The findings, by file and line.
    pub diagnostics: Vec<Diagnostic>,
    /// How many documents were checked: contracts, drivers, actions and prompts, and other files
    /// such as `tools.json`.
    pub documents: usize,
    /// How many bundles were compared with an earlier release.
    pub compared: usize,
}

impl CheckReport {
    /// How many findings are errors.
    pub fn errors(&self) -> usize {
        self.count(Severity::Error)
    }

    /// How many findings are warnings.
    pub fn warnings(&self) -> usize {
        self.count(Severity::Warning)
    }

    fn count(&self, severity: Severity) -> usize {
        let all = self.diagnostics.iter();
        all.filter(|one| one.severity == severity).count()
    }

    /// Adds findings in which files are named relative to the directory `base`.
    fn take(&mut self, base: &Path, mut found: Self) {
        self.documents += found.documents;
        self.compared += found.compared;
        for diagnostic in &mut found.diagnostics {
            let file = base.join(&diagnostic.file);
            let file = file.strip_prefix(".").unwrap_or(&file);
            diagnostic.file = file.display().to_string();
        }
        self.add(found.diagnostics);
    }

    fn of(diagnostics: impl IntoIterator<Item = Diagnostic>) -> Self {
        Self {
            diagnostics: diagnostics.into_iter().collect(),
            ..Self::default()
        }
    }

    fn add(&mut self, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        self.diagnostics.extend(diagnostics);
    }

    fn is_empty(&self) -> bool {
        self.documents == 0 && self.diagnostics.is_empty()
    }

    /// Compares the bundle with `earlier`, if that is an earlier release of this id.
    fn compare(
        &mut self,
        earlier: Option<&Earlier>,
        id: Option<&str>,
        documents: &Documents,
        files: &Files,
    ) {
        if let Some(earlier) = earlier.filter(|earlier| Some(&*earlier.id) == id) {
            self.add(earlier.compare(documents, files));
            self.compared += 1;
        }
    }

    /// Adds to each finding the lines that it points to, from the checked bytes.
    fn show_lines(&mut self, files: &Files) {
        diagnostic::attach(&mut self.diagnostics, |name| {
            files.get(name).map(|bytes| bytes.as_ref())
        });
    }
}

/// Checks `path`: a bundle under work, a packed directory, a directory that contains such bundles,
/// or one file of a bundle.
pub fn check_path(path: &Path) -> CheckReport {
    check_with(path, &CheckOptions::default())
}

/// A format of another host's documents, from which bundles can be made.
pub trait ImportFormat: Sync {
    /// Returns the suffix of its files' names.
    fn extension(&self) -> &'static str;

    /// Returns the errors of a file, and the reasons why no tool would be made from it.
    fn check(&self, file: &str, bytes: &[u8]) -> Vec<Diagnostic>;
}

/// Options of a check.
#[derive(Clone, Copy, Default)]
pub struct CheckOptions<'a> {
    /// An earlier release. It is compared with the contracts of the bundle that has the same id.
    pub earlier: Option<&'a Earlier>,
    /// The formats of other hosts whose documents are checked.
    pub formats: &'a [&'a dyn ImportFormat],
}

impl<'a> CheckOptions<'a> {
    /// The format of a file with this name.
    fn format(&self, name: &str) -> Option<&'a dyn ImportFormat> {
        let mut formats = self.formats.iter();
        let format = formats.find(|format| name.ends_with(format.extension()));
        format.copied()
    }
}

/// [`check_path`] with options.
pub fn check_with(path: &Path, options: &CheckOptions<'_>) -> CheckReport {
    let mut report = CheckReport::default();
    if path.is_dir() {
        check_directory(path, options, &mut report);
    } else {
        check_file(path, options, &mut report);
    }
    report
        .diagnostics
        .sort_by(|a, b| (&a.file, a.line, a.column).cmp(&(&b.file, b.line, b.column)));
    report
}

fn check_directory(path: &Path, options: &CheckOptions<'_>, report: &mut CheckReport) {
    if let Some(found) = check_bundle(path, options.earlier) {
        report.take(path, found);
        return;
    }
    let mut below = Below::look(path);
    if files::is_workspace(path) {
        below.workspaces.push(path.to_owned());
    } else if below.bundles.is_empty() && below.workspaces.is_empty() {
        report.take(path, check_loose(path, options));
    }
    report.take(path, CheckReport::of(below.cut()));
    let mut bundles = below.bundles;
    for workspace in below.workspaces {
        let inside = Below::look_into_workspace(&workspace);
        let mut found = check_workspace(&workspace, &inside.bundles);
        found.add(inside.cut());
        report.take(&workspace, found);
        bundles.extend(inside.bundles);
    }
    for root in bundles {
        if let Some(found) = check_bundle(&root, options.earlier) {
            report.take(&root, found);
        }
    }
}

/// Checks a file as a part of its bundle, since contracts may refer to other files of the bundle. A
/// document of another host is never part of a bundle.
fn check_file(path: &Path, options: &CheckOptions<'_>, report: &mut CheckReport) {
    let format = options.format(&path.to_string_lossy());
    if format.is_none()
        && path.symlink_metadata().is_ok()
        && let Some((root, name)) = enclosing_bundle(path)
        && let Some(mut found) = check_bundle(&root, options.earlier)
    {
        found.diagnostics.retain(|one| one.file == name);
        report.take(&root, found);
        report.documents = 1;
        return;
    }
    let folder = path.parent().filter(|one| *one != Path::new(""));
    let folder = folder.unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default();
    let name = name.to_string_lossy().into_owned();
    let found = match files::read(folder, &name, files::limit_of(&name)) {
        Err(error) => CheckReport::of([unreadable(&name, &error)]),
        Ok(bytes) => check_bytes(name, &bytes, format),
    };
    report.take(folder, found);
}

/// Checks a file outside of bundles.
fn check_bytes(name: String, bytes: &[u8], format: Option<&dyn ImportFormat>) -> CheckReport {
    let loose = Files::from([(name.clone(), bytes.into())]);
    let diagnostics = match format {
        _ if name == bundle_toml::FILE => bundle_toml::parse_bytes(&name, bytes).diagnostics,
        Some(format) => format.check(&name, bytes),
        None => {
            let mut found = examine_loose(&loose);
            if found.is_empty() {
                found.diagnostics.push(unknown_kind(&name));
            }
            return found;
        }
    };
    let mut found = CheckReport::of(diagnostics);
    found.documents = 1;
    found.show_lines(&loose);
    found
}

fn check_bundle(root: &Path, earlier: Option<&Earlier>) -> Option<CheckReport> {
    if root.join(bundle_toml::FILE).is_file() {
        Some(check_authoring(root, earlier))
    } else if root.join(manifest::FILE).is_file() {
        Some(check_packed(root, earlier))
    } else {
        None
    }
}

/// Checks a bundle under work.
fn check_authoring(root: &Path, earlier: Option<&Earlier>) -> CheckReport {
    let mut found = CheckReport::default();
    let mut sources = Files::new();
    let limit = u64::try_from(bundle_toml::MAX_SIZE).unwrap_or(u64::MAX);
    let bundle: Option<BundleToml> = match files::read(root, bundle_toml::FILE, limit) {
        Err(error) => {
            found.add([unreadable(bundle_toml::FILE, &error)]);
            None
        }
        Ok(bytes) => {
            let parsed = bundle_toml::parse_bytes(bundle_toml::FILE, &bytes);
            found.add(parsed.diagnostics);
            sources.insert(bundle_toml::FILE.to_owned(), bytes);
            parsed.value
        }
    };
    let mut collected = match files::survey(root) {
        Ok(collected) => collected,
        Err(error) => {
            found.show_lines(&sources);
            found.diagnostics.push(unreadable_at(root, &error));
            return found;
        }
    };
    let problems = std::mem::take(&mut collected.problems);
    let surroundings = bundle.as_ref().map_or(Surroundings::NONE, |bundle| {
        Surroundings::of_author(&bundle.publisher, &bundle.id)
    });
    let documents = examine(&collected.files, surroundings, &mut found);
    let id = bundle.as_ref().map(|bundle| bundle.id.as_str());
    found.compare(earlier, id, &documents, &collected.files);
    if bundle.is_none() {
        // These may be false without the bundle.toml: a [[build]] may make the missing component,
        // and the bundle itself may be the library that is referred to.
        let follow = [codes::COMPONENT_MISSING.code, action::UNRESOLVED];
        found.diagnostics.retain(|one| !follow.contains(&one.code));
    }
    let builds = bundle.map(|bundle| bundle.builds).unwrap_or_default();
    found.add(lints::names(&collected));
    found.add(lints::folders(&documents, &collected.files));
    found.add(lints::drivers(&documents, &collected.files));
    lints::judge_built(&mut found.diagnostics, &documents, &builds);
    found.add(lints::components(&documents, &collected.files, &builds));
    found.add(stale::components(root, &builds));
    match index::authored(root, &collected.files) {
        Err(error) => found.diagnostics.push(unreadable_at(root, &error)),
        Ok(Some(written)) => {
            sources.insert(TOOLS_JSON.to_owned(), Arc::clone(&written));
            let mut whole = collected.files.clone();
            whole.insert(TOOLS_JSON.to_owned(), written);
            check_index(&whole, &documents, &mut found);
        }
        Ok(None) if root.join(TOOLS_JSON).exists() => {
            let message = "`pack` makes tools.json; this one is not used";
            let (code, hint) = (&codes::TOOLS_JSON_STALE, "remove it");
            found.add([about_file(TOOLS_JSON, code, message, hint)]);
        }
        Ok(None) => {}
    }
    if found.documents == 0 && problems.is_empty() {
        let empty = rules::not_empty(&documents, &collected.files);
        found.add(empty);
    }
    sources.extend(std::mem::take(&mut collected.files));
    found.show_lines(&sources);
    for one in &mut found.diagnostics {
        one.file = collected.place(&one.file);
    }
    let problems = problems.iter();
    found.add(problems.map(|problem| unreadable_at(root, problem)));
    found
}

/// Checks a packed directory: its documents, and whether `tools.json` agrees with them.
fn check_packed(root: &Path, earlier: Option<&Earlier>) -> CheckReport {
    let mut found = CheckReport::default();
    match files::tree(root) {
        Err(error) => found.diagnostics.push(unreadable_at(root, &error)),
        Ok(files) => {
            let claims = files.get(manifest::FILE);
            let claims = claims.and_then(|bytes| Manifest::parse(bytes).ok());
            let surroundings = claims.as_ref().map_or(Surroundings::NONE, |claims| {
                Surroundings::of_author(&claims.publisher, &claims.id)
            });
            let documents = examine(&files, surroundings, &mut found);
            let id = claims.as_ref().map(|claims| claims.id.as_str());
            found.compare(earlier, id, &documents, &files);
            check_index(&files, &documents, &mut found);
            found.show_lines(&files);
        }
    }
    found
}

/// Checks a directory that is not a bundle, such as a folder of contracts.
fn check_loose(root: &Path, options: &CheckOptions<'_>) -> CheckReport {
    let mut found = match files::documents(root) {
        Ok(files) => examine_loose(&files),
        Err(error) => CheckReport::of([unreadable_at(root, &error)]),
    };
    if found.is_empty() && root.join(TOOLS_JSON).exists() {
        found = match files::read(root, TOOLS_JSON, files::limit_of(TOOLS_JSON)) {
            Ok(bytes) => examine_loose(&Files::from([(TOOLS_JSON.to_owned(), bytes)])),
            Err(error) => CheckReport::of([unreadable(TOOLS_JSON, &error)]),
        };
    }
    if found.is_empty() {
        found = check_formats(root, options);
    }
    if found.is_empty() {
        let message =
            "found no bundle.toml, no manifest.toml and no TOOL.md, DRIVER.md or ACTION.md";
        let hint = "name a bundle's directory, or make one: `toolward new`";
        found.add([about_file("", &codes::BUNDLE_TOML_MISSING, message, hint)]);
    }
    found
}

/// Checks a directory of another host's documents.
fn check_formats(root: &Path, options: &CheckOptions<'_>) -> CheckReport {
    let mut found = CheckReport::default();
    let entries = std::fs::read_dir(root).into_iter().flatten();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut documents: Vec<(String, &dyn ImportFormat)> = names
        .filter_map(|name| options.format(&name).map(|format| (name, format)))
        .take(files::MAX_FILES)
        .collect();
    documents.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut left = files::MAX_TOTAL_BYTES;
    for (name, format) in documents {
        match files::read(root, &name, left.min(files::limit_of(&name))) {
            Err(error) => found.diagnostics.push(unreadable(&name, &error)),
            Ok(bytes) => {
                left = left.saturating_sub(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
                found.documents += 1;
                let mut own = CheckReport::of(format.check(&name, &bytes));
                own.show_lines(&Files::from([(name, bytes)]));
                found.add(own.diagnostics);
            }
        }
    }
    found
}

/// Codes of references to parts of the bundle that are not in this directory.
const ELSEWHERE: [&str; 2] = [
    codes::TOOL_REFERENCE_MISSING.code,
    codes::TOOL_REFERENCE_UNBOUND.code,
];

fn examine_loose(files: &Files) -> CheckReport {
    let mut found = CheckReport::default();
    let documents = examine_documents(files, Surroundings::NONE, &mut found);
    // The rest of the bundle is not in this directory.
    found
        .diagnostics
        .retain(|diagnostic| !ELSEWHERE.contains(&diagnostic.code));
    for (path, bytes) in files {
        if file_name(path).ends_with(".wasm") {
            found.documents += 1;
            if let Err(error) = Surface::read(bytes) {
                found.add([about_error(path, &codes::COMPONENT_INVALID, &error)]);
            }
        }
    }
    check_index(files, &documents, &mut found);
    found.show_lines(files);
    found
}

/// Checks the documents, and how they refer to each other.
fn examine(files: &Files, surroundings: Surroundings<'_>, found: &mut CheckReport) -> Documents {
    let documents = examine_documents(files, surroundings, found);
    let components = rules::components(&documents, files);
    found.add(components);
    documents
}

fn examine_documents(
    files: &Files,
    surroundings: Surroundings<'_>,
    found: &mut CheckReport,
) -> Documents {
    let (documents, diagnostics) = rules::read_in(files, surroundings);
    let is_document = |path: &&String| {
        matches!(file_name(path), "TOOL.md" | "DRIVER.md" | "ACTION.md") || is_prompt(path)
    };
    found.documents += files.keys().filter(is_document).count();
    found.add(diagnostics);
    found.add(lints::platforms(&documents, files));
    found.add(lints::contents(&documents, files));
    found.add(lints::entry_files(&documents, files));
    documents
}

fn check_index(files: &Files, documents: &Documents, found: &mut CheckReport) {
    if files.contains_key(TOOLS_JSON) {
        found.documents += 1;
        let index = index::check(files, documents, &mut found.diagnostics);
        if let Some(index) = &index
            && index.version == 1
            && index.tools.is_empty()
            && documents.is_empty(files)
        {
            let message = "`tools` has no entry, and nothing else is here";
            let hint = "describe a tool in `tools`: `toolward new --format runloop` writes one";
            found.add([about_file(TOOLS_JSON, &codes::BUNDLE_EMPTY, message, hint)]);
        }
        let warnings = index.iter().flat_map(lints::index);
        found.add(warnings);
    }
}

fn unknown_kind(name: &str) -> Diagnostic {
    let message = "a file of this kind can't be checked by itself";
    let hint = "name a TOOL.md, DRIVER.md, ACTION.md, NAME.tool.md, tools.json, bundle.toml, a .wasm file, or a directory";
    about_file(name, &codes::FILE_KIND, message, hint)
}

fn unreadable(name: &str, error: &FilesError) -> Diagnostic {
    let code = match error {
        FilesError::NotRegular { .. } => &codes::FILE_NOT_REGULAR,
        FilesError::Twice { .. } => &codes::FOLDER_TWICE,
        FilesError::TooDeep { .. } | FilesError::Name { .. } => &codes::FILE_NAME,
        FilesError::TooLarge { .. } => &codes::DOCUMENT_TOO_LARGE,
        FilesError::TooMuch { .. } => &codes::BUNDLE_TOO_LARGE,
        _ => &codes::FILE_UNREADABLE,
    };
    about_error(name, code, error)
}

/// Returns [`unreadable`] for the file that the error names.
fn unreadable_at(root: &Path, error: &FilesError) -> Diagnostic {
    let path = error.path();
    let name = path.strip_prefix(root).unwrap_or(path);
    unreadable(&name.display().to_string(), error)
}
