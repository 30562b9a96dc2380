//! Detects changes of files without reading them, and reads the configuration of a running server
//! again.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use toolward_host::confine::Confinement;
use toolward_store::Store;

use crate::bundles::SourceKind;
use crate::config::ConfigFile;
use crate::granted::Granted;
use crate::trust::publishers::Publishers;
use crate::{Code, Environment, Error, Operator, Result};

/// The maximum depth of folders, and the maximum number of files, in one scan.
const MAX_DEPTH: usize = 8;
const MAX_FILES: usize = 10_000;

/// The paths to scan for changes.
pub(super) struct Scanner {
    operator: Arc<Operator>,
    /// Opened before the process was confined.
    pub(super) store: Option<Store>,
    trust: Option<Publishers>,
    /// Whether the warning about skipped files has been given.
    warned: Cell<bool>,
}

/// The result of a scan.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct FileScan {
    files: BTreeMap<PathBuf, FileVersion>,
    installed: Vec<String>,
    /// A folder that is larger than the limits.
    cut: Option<PathBuf>,
}

/// Identifies a version of a file by length, times and inode. Even a replacement with the same
/// length and modification time differs.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileVersion {
    length: u64,
    modified: Option<SystemTime>,
    changed: (i64, i64),
    number: u64,
}

impl Scanner {
    pub(super) fn new(operator: Arc<Operator>) -> Result<Self> {
        let (source, environment) = (&operator.source, &operator.environment);
        Ok(Self {
            store: match source.kind() {
                SourceKind::Installed => source.store.existing(environment)?,
                _ => None,
            },
            trust: match source.kind() {
                SourceKind::Dev(_) => None,
                _ => source.trust.publishers(environment).ok(),
            },
            warned: Cell::new(false),
            operator,
        })
    }

    /// Scans again. `before` is the previous result.
    pub(super) fn look(&self, before: &FileScan, environment: &Environment) -> FileScan {
        let mut seen = FileScan::default();
        if let Some(trust) = &self.trust {
            seen.look_into(trust.folder());
        }
        let source = self.operator.source.kind();
        if let SourceKind::Dev(directory) | SourceKind::Beside(directory) = source {
            seen.look_into(directory);
        }
        if let Some(store) = &self.store {
            // If the store can't be read, the next full verification reports that.
            seen.installed = match store.list() {
                Ok(installed) => installed.iter().map(|one| format!("{one:?}")).collect(),
                Err(_) => before.installed.clone(),
            };
        }
        if let Some(folder) = seen.cut.as_ref().filter(|_| !self.warned.replace(true)) {
            environment.report.warning(&format!(
                "{}: only {MAX_FILES} files, {MAX_DEPTH} folders deep, are looked at for changes; others \
                 are noticed within five minutes",
                folder.display()
            ));
        }
        seen
    }

    /// Adds the paths that this process scans and reads again once it is confined.
    pub(super) fn kept(&self, mut confinement: Confinement) -> Result<Confinement> {
        if let Some(trust) = &self.trust {
            // Creates the folder now, since a confined process can't open a path that did not exist
            // when it was confined.
            if trust.folder().is_dir() || trust.make().is_ok() {
                confinement = confinement.read(trust.folder());
            }
        }
        let (source, environment) = (&self.operator.source, &self.operator.environment);
        let key_files = source.trust.key_files(environment)?.into_iter();
        for file in key_files.filter(|file| file.is_file()) {
            confinement = confinement.read(file);
        }
        match source.kind() {
            SourceKind::Dev(directory) | SourceKind::Beside(directory) => {
                confinement = confinement.read(directory);
            }
            SourceKind::Named => {}
            SourceKind::Installed => {
                if let Some((store, lock)) = source.store.read_places(environment) {
                    confinement = confinement.read(store);
                    if lock.is_file() {
                        confinement = confinement.read_write(lock);
                    }
                }
            }
        }
        Ok(confinement)
    }
}

impl FileScan {
    fn look_into(&mut self, folder: &Path) {
        if !self.look_below(folder, MAX_DEPTH) {
            self.cut = Some(folder.to_owned());
        }
    }

    /// Scans a folder. Returns whether everything was scanned.
    fn look_below(&mut self, folder: &Path, depth: usize) -> bool {
        let Some(depth) = depth.checked_sub(1) else {
            return false;
        };
        let mut all = true;
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let Ok(metadata) = path.symlink_metadata() else {
                continue;
            };
            if metadata.is_dir() {
                // Build artifacts are not part of a bundle.
                if entry.file_name() != "target" {
                    all &= self.look_below(&path, depth);
                }
            } else if self.files.len() < MAX_FILES {
                let file = FileVersion {
                    length: metadata.len(),
                    modified: metadata.modified().ok(),
                    changed: (metadata.ctime(), metadata.ctime_nsec()),
                    number: metadata.ino(),
                };
                self.files.insert(path, file);
            } else {
                return false;
            }
        }
        all
    }
}

/// The configuration and its sources.
pub(super) struct Configuration {
    operator: Arc<Operator>,
    beside_policy: toml::Table,
    /// The operator's grants.
    pub(super) granted: Arc<Granted>,
}

impl Configuration {
    /// Stores the tables for which a running server accepts no change.
    pub(super) fn new(operator: Arc<Operator>, granted: Arc<Granted>) -> Result<Self> {
        let file = operator.source.trust.file(&operator.environment)?;
        let beside_policy = file.map(ConfigFile::beside_policy).unwrap_or_default();
        Ok(Self {
            operator,
            beside_policy,
            granted,
        })
    }

    /// Reads the configuration again. Returns `None` if nothing has changed.
    ///
    /// # Errors
    /// If it can't be read, is invalid, or may grant more than before. The current
    /// configuration then stays.
    pub(super) fn again(&self) -> Result<Option<Granted>> {
        let operator = &*self.operator;
        let trust = operator.source.trust.unread();
        let granted = Granted::read(&trust, &operator.setup.policies, &operator.environment)
            .map_err(may_be_replaced)?;
        let file = trust.file(&operator.environment);
        let file = file.map_err(may_be_replaced)?;
        let now = file.map(ConfigFile::beside_policy).unwrap_or_default();
        let old = &self.beside_policy;
        let mut tables = old.keys().chain(now.keys());
        if let Some(table) = tables.find(|table| old.get(*table) != now.get(*table)) {
            let message = format!("the table `{table}` of the configuration has changed");
            return Err(Error::usage(Code::ReloadTrust, message)
                .hint("start the server again, or change whom it trusts with `toolward trust`"));
        }
        if granted.policy == self.granted.policy {
            return Ok(None);
        }
        if let Err(wider) = granted.policy.narrows(&self.granted.policy) {
            let message = format!("the policy may give more than before: {wider}");
            return Err(Error::usage(Code::ReloadWider, message)
                .hint("start the server again for a policy that gives more"));
        }
        Ok(Some(granted))
    }
}

/// Adds a hint to the error: many editors replace a file, but a confined server reaches only the
/// file that existed when it started.
fn may_be_replaced(mut failure: Error) -> Error {
    if failure.code == Code::FileUnreadable.code() {
        failure.hints.clear();
        return failure
            .hint("write into the file instead of replacing it, or start the server again");
    }
    failure
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_which_not_all_is_looked_at_is_known_as_such() {
        let folder = tempfile::tempdir().unwrap();
        let deep: PathBuf = ["a"; MAX_DEPTH - 1].iter().collect();
        let deep = folder.path().join(deep);
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("file"), "").unwrap();
        let mut seen = FileScan::default();
        seen.look_into(folder.path());
        assert_eq!((seen.files.len(), &seen.cut), (1, &None));

        fs::create_dir(deep.join("target")).unwrap();
        seen.look_into(folder.path());
        assert_eq!(seen.cut, None);
        fs::create_dir(deep.join("deeper")).unwrap();
        seen.look_into(folder.path());
        assert_eq!(seen.cut.as_deref(), Some(folder.path()));
    }

    #[test]
    fn a_file_in_place_of_another_of_its_length_and_time_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("grant.toml");
        let look = || {
            let mut seen = FileScan::default();
            seen.look_into(folder.path());
            seen
        };
        fs::write(&file, "one").unwrap();
        let before = look();
        assert_eq!(look(), before);
        let time = file.metadata().unwrap().modified().unwrap();
        let other = folder.path().join("other");
        fs::write(&other, "two").unwrap();
        let opened = fs::File::options().write(true).open(&other).unwrap();
        opened.set_modified(time).unwrap();
        fs::rename(&other, &file).unwrap();
        assert_ne!(look(), before);
    }
}
