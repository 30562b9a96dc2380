//! Parses the contracts, drivers, actions, prompts and sidecars (descriptions of resources) among a
//! bundle's files. A working directory and a verified bundle are read in the same way.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolward_contract::Outline;
use toolward_contract::action::Action;
use toolward_contract::diagnostic::{Diagnostic, Parsed};
use toolward_contract::driver::Driver;
use toolward_contract::path::{self, resolve_beneath};
use toolward_contract::prompt::Prompt;
use toolward_contract::resource::{Resource, SIDECAR};
use toolward_contract::schema::Schema;
use toolward_contract::tool::Tool;
use toolward_signing::manifest::FileRole;
use toolward_support::fields::NearNames;

use crate::codes;
use crate::libraries::Surroundings;
use crate::locate::{about_file, text_of};

mod scope;

pub(crate) use scope::BundleScope;

/// A document with the name of its file.
#[derive(Debug, Clone)]
pub struct Located<T> {
    /// The file's name within the bundle.
    pub path: String,
    /// The parsed document.
    pub value: Arc<T>,
}

/// A document that was not read. A finding reports the reason, and documents that refer to this one
/// are not checked against it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// The file's name within the bundle.
    pub path: String,
    /// Its role.
    pub role: FileRole,
    /// The id that it claims, if that can be read.
    pub id: Option<String>,
}

impl Unread {
    /// Whether this may be the document with the id `id`.
    pub fn may_be(&self, id: &str) -> bool {
        self.id.as_deref().is_none_or(|own| own == id)
    }
}

/// The parsed documents of a bundle.
#[derive(Debug, Default)]
pub struct Documents {
    /// The contracts that parse, by path.
    pub tools: Vec<Located<Tool>>,
    /// The drivers that parse, by path.
    pub drivers: Vec<Located<Driver>>,
    /// The actions that parse, by path.
    pub actions: Vec<Located<Action>>,
    /// The prompts that parse, by path.
    pub prompts: Vec<Located<Prompt>>,
    /// The sidecars of resources that parse, by path.
    pub sidecars: Vec<Located<Resource>>,
    /// The documents that could not be read, or that were skipped after a limit was reached, in no
    /// particular order.
    pub unread: Vec<Unread>,
    /// The findings about the documents.
    pub diagnostics: Vec<Diagnostic>,
}

/// The role that a file has by its path.
pub fn role_of(path: &str) -> FileRole {
    let (folder, _) = path.split_once('/').unwrap_or(("", path));
    match file_name(path) {
        "TOOL.md" => FileRole::Contract,
        "DRIVER.md" => FileRole::Driver,
        "ACTION.md" => FileRole::Action,
        name if name.ends_with(".wasm") => FileRole::Component,
        _ => match folder {
            "prompts" => FileRole::Prompt,
            "resources" => FileRole::Resource,
            "schemas" => FileRole::Schema,
            "icons" => FileRole::Icon,
            _ => FileRole::Other,
        },
    }
}

/// Whether a file is a prompt.
pub fn is_prompt(path: &str) -> bool {
    role_of(path) == FileRole::Prompt && path.ends_with(".md")
}

/// The last segment of a path.
pub fn file_name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// The folder of a path, without the final slash; empty at the root.
pub fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Resolves a file name in the folder of `document`.
pub fn beside(document: &str, name: &str) -> String {
    match folder(document) {
        "" => name.to_owned(),
        folder => format!("{folder}/{name}"),
    }
}

/// The paths that a driver's reference may mean: from the folder of DRIVER.md, or from the bundle's
/// root.
fn meant<'a>(driver: &'a str, reference: &'a str) -> impl Iterator<Item = String> + 'a {
    let bases = [folder(driver), ""].into_iter();
    let paths = bases.filter_map(move |base| resolve_beneath(base, reference));
    paths.map(|path| path::document(path, "TOOL.md"))
}

/// The contract with a path similar to a path that a reference may mean.
fn near_contract<'f>(
    driver: &str,
    reference: &str,
    files: &'f BTreeMap<String, Arc<[u8]>>,
    near: &mut NearNames,
) -> Option<&'f str> {
    let mut meant = meant(driver, reference);
    meant.find_map(|path| {
        let contracts = files.keys().map(String::as_str);
        let contracts = contracts.filter(|path| role_of(path) == FileRole::Contract);
        near.find(&path, contracts)
    })
}

/// The largest total weight ([`Schema::weight`]) of all schemas of a bundle. A host compiles each
/// schema of a loaded bundle and keeps it in memory.
const MAX_SCHEMA_WEIGHT: usize = 200_000;

/// How many findings may be reported before reading stops: a few megabytes of documents can have
/// millions.
pub const MAX_FINDINGS: usize = 4096;

/// The total weight of a contract's schemas.
fn schemas(tool: &Tool) -> usize {
    let schemas = [&tool.inputs, &tool.outputs].into_iter();
    let weights = schemas.chain(&tool.context_schema).map(Schema::weight);
    weights.fold(0, usize::saturating_add)
}

impl Documents {
    /// Reads all documents among `files`, without any other bundle.
    pub fn read(files: &BTreeMap<String, Arc<[u8]>>) -> Self {
        Self::read_in(files, Surroundings::NONE)
    }

    /// Reads all documents among `files`. `surroundings` resolves registry references, and
    /// references to actions of other bundles.
    pub fn read_in(files: &BTreeMap<String, Arc<[u8]>>, surroundings: Surroundings<'_>) -> Self {
        let mut documents = Self::default();
        let mut actions = Vec::new();
        for (path, bytes) in files {
            if role_of(path) == FileRole::Action {
                actions.extend(documents.parsed(path, bytes, Action::parse));
            }
        }
        let unread = documents.unread.clone();
        let scope = BundleScope::new(files, &actions, &[], &unread, surroundings);
        let mut weight = 0_usize;
        for (path, bytes) in files {
            match role_of(path) {
                FileRole::Contract if weight > MAX_SCHEMA_WEIGHT => documents.leave(path, None),
                FileRole::Contract => {
                    let parse = |path: &str, text: &str| Tool::parse(path, text, &scope);
                    let tool = documents.parsed(path, bytes, parse);
                    let weighs = tool.as_ref().map_or(0, |tool| schemas(&tool.value));
                    weight = weight.saturating_add(weighs);
                    documents.tools.extend(tool);
                    if weight > MAX_SCHEMA_WEIGHT {
                        documents.diagnostics.push(about_file(
                            path,
                            &codes::SCHEMAS_TOO_LARGE,
                            format!(
                                "the schemas of all contracts up to this one weigh {weight}, \
                                 more than the {MAX_SCHEMA_WEIGHT} that a bundle may have"
                            ),
                            "split the bundle, or use fewer patterns",
                        ));
                    }
                }
                FileRole::Driver => {
                    let driver = documents.parsed(path, bytes, Driver::parse);
                    documents.drivers.extend(driver);
                }
                FileRole::Prompt if is_prompt(path) => {
                    let prompt = documents.parsed(path, bytes, Prompt::parse);
                    documents.prompts.extend(prompt);
                }
                FileRole::Resource if path.ends_with(SIDECAR) => {
                    let sidecar = documents.parsed(path, bytes, Resource::parse);
                    documents.sidecars.extend(sidecar);
                }
                _ => {}
            }
        }
        documents.diagnostics.extend(scope.unread_schemas());
        documents.actions = actions;
        documents.follow_references(files);
        if documents.is_full() {
            documents.diagnostics.push(about_file(
                "",
                &codes::FINDINGS_TOO_MANY,
                format!("the bundle has more than {MAX_FINDINGS} findings; the rest was not read"),
                "correct these first",
            ));
        }
        documents
    }

    /// Whether there are too many findings to read on.
    fn is_full(&self) -> bool {
        self.diagnostics.len() > MAX_FINDINGS
    }

    /// Parses a document. If it can't be read, returns `None` and adds it to the unread documents.
    fn parsed<T>(
        &mut self,
        path: &str,
        bytes: &[u8],
        parse: impl FnOnce(&str, &str) -> Parsed<T>,
    ) -> Option<Located<T>> {
        if self.is_full() {
            self.leave(path, None);
            return None;
        }
        let text = match text_of(path, &codes::FILE_NOT_UTF8, bytes) {
            Ok(text) => text,
            Err(found) => {
                self.diagnostics.push(found);
                self.leave(path, None);
                return None;
            }
        };
        let parsed = parse(path, text);
        self.diagnostics.extend(parsed.diagnostics);
        if parsed.value.is_none() {
            let outline = Outline::read(text);
            self.leave(path, outline.as_ref().and_then(Outline::id));
        }
        Some(Located {
            path: path.to_owned(),
            value: Arc::new(parsed.value?),
        })
    }

    fn leave(&mut self, path: &str, id: Option<&str>) {
        self.unread.push(Unread {
            path: path.to_owned(),
            role: role_of(path),
            id: id.map(str::to_owned),
        });
    }

    /// The documents of a role that could not be read.
    pub fn unread_of(&self, role: FileRole) -> impl Iterator<Item = &Unread> {
        self.unread.iter().filter(move |unread| unread.role == role)
    }

    /// Whether a contract with the id `id` exists or may exist: a contract that could not be read
    /// may have this id.
    pub fn may_have_tool(&self, id: &str) -> bool {
        let mut tools = self.tools.iter();
        let mut unread = self.unread_of(FileRole::Contract);
        tools.any(|tool| tool.value.id.as_str() == id) || unread.any(|unread| unread.may_be(id))
    }

    /// Follows the paths by which drivers name contracts. A path starts at the folder of DRIVER.md
    /// or at the bundle's root.
    fn follow_references(&mut self, files: &BTreeMap<String, Arc<[u8]>>) {
        let mut near = NearNames::default();
        let has_contracts = files.keys().any(|path| role_of(path) == FileRole::Contract);
        for driver in &mut self.drivers {
            if self.diagnostics.len() > MAX_FINDINGS {
                break;
            }
            let paths = |reference: &str| -> Vec<String> {
                let paths = meant(&driver.path, reference);
                paths.filter(|path| files.contains_key(path)).collect()
            };
            let id_at = |reference: &str| {
                let path = paths(reference).into_iter().next()?;
                let found = self.tools.iter().find(|tool| tool.path == path)?;
                Some(found.value.id.clone())
            };
            let mut followed = Driver::clone(&driver.value);
            let mut missing = followed.resolve_paths(id_at);
            // A contract that could not be read is not missing; its own errors are reported.
            missing.retain(|(reference, _)| paths(reference).is_empty());
            driver.value = Arc::new(followed);
            for (path, at) in missing {
                let elsewhere = "for a contract of another bundle write its id";
                let (code, message, hint) = if has_contracts {
                    let near = near_contract(&driver.path, &path, files, &mut near);
                    let near = near.map(|near| format!("did you mean `{near}`?"));
                    (
                        &codes::TOOL_REFERENCE_MISSING,
                        format!("expected a contract at {path}, found none"),
                        near.unwrap_or_else(|| format!("correct the path; {elsewhere}")),
                    )
                } else {
                    (
                        &codes::TOOL_REFERENCE_UNBOUND,
                        format!("{path} binds to nothing here: the bundle has no contract"),
                        elsewhere.to_owned(),
                    )
                };
                let found = Diagnostic::new(code, &driver.path, at, message);
                self.diagnostics.push(found.with_hint(hint));
            }
        }
    }

    /// Whether the bundle has no contract, driver, action, prompt or resource.
    pub fn is_empty(&self, files: &BTreeMap<String, Arc<[u8]>>) -> bool {
        self.tools.is_empty()
            && self.drivers.is_empty()
            && self.actions.is_empty()
            && self.prompts.is_empty()
            && files.keys().all(|path| role_of(path) != FileRole::Resource)
    }

    /// The possible targets of references in a contract or in `tools.json`.
    pub(crate) fn scope<'a>(&'a self, files: &'a BTreeMap<String, Arc<[u8]>>) -> BundleScope<'a> {
        let (actions, tools) = (&self.actions, &self.tools);
        BundleScope::new(files, actions, tools, &self.unread, Surroundings::NONE)
    }

    /// Each contract with the drivers that declare that they implement it.
    pub(crate) fn implementing(&self) -> Vec<(&Tool, Vec<&Driver>)> {
        let tools = self.tools.iter().map(|tool| &*tool.value);
        let serving = |tool: &Tool| {
            let drivers = self.drivers.iter().map(|driver| &*driver.value);
            drivers.filter(|driver| serves(driver, tool)).collect()
        };
        tools.map(|tool| (tool, serving(tool))).collect()
    }
}

/// Whether a driver implements this version of a contract.
pub(crate) fn serves(driver: &Driver, tool: &Tool) -> bool {
    let entry = driver.implements_tool(tool.id.as_str(), &tool.version);
    entry.is_some()
}

/// The ids of documents, each with the document's path.
pub(crate) fn ids<'d, T, I>(
    documents: &'d [Located<T>],
    id: impl Fn(&'d T) -> Option<I>,
) -> impl Iterator<Item = (I, &'d str)> {
    let all = documents.iter();
    all.filter_map(move |one| Some((id(&one.value)?, one.path.as_str())))
}

/// Converts the result of [`Documents::implementing`] to the form that the index takes.
pub(crate) fn borrowed<'a>(
    implementing: &'a [(&'a Tool, Vec<&'a Driver>)],
) -> Vec<(&'a Tool, &'a [&'a Driver])> {
    implementing
        .iter()
        .map(|(tool, drivers)| (*tool, drivers.as_slice()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_files_name_decides_its_role_and_else_its_folder() {
        assert_eq!(role_of("tools/a/TOOL.md"), FileRole::Contract);
        assert_eq!(role_of("tools/a/DRIVER.md"), FileRole::Driver);
        assert_eq!(role_of("drivers/a/driver.wasm"), FileRole::Component);
        assert_eq!(role_of("schemas/a.json"), FileRole::Schema);
        assert_eq!(role_of("LICENSE"), FileRole::Other);
        assert_eq!(role_of("tools/a/notes.txt"), FileRole::Other);
    }
}
