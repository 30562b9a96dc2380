//! The directory of the demo, private to its user, and the list of what the demo made in it.

use std::fs::{DirBuilder, Permissions};
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use cap_fs_ext::{DirExt as _, FollowSymlinks, OpenOptionsFollowExt as _};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};

use super::PUBLISHER;
use crate::environment::Environment;
use crate::error::{Code, Error};

/// Beside the state directory, not in it: no tool may be given a folder of that.
const NAME: &str = "toolward-demo";
/// Names what was made, one entry a line; removing takes those, and no others.
const LIST: &str = "made.txt";
const MAX_LIST_BYTES: u64 = 4096;

const CONFIG: &str = "config";
const BUNDLES: &str = "bundles";
const STORE: &str = "installed";
const STATE: &str = "state";
const CACHE: &str = "cache";
const LEDGER: &str = "ledger";
const INBOX: &str = "inbox";
const NOTES: &str = "notes";
/// What the hostile tool is after.
const CANARY: &str = "canary.txt";
/// A link in [`INBOX`] that leads to it.
const LINK: &str = "link.txt";

const FOLDERS: [&str; 8] = [CONFIG, BUNDLES, STORE, STATE, CACHE, LEDGER, INBOX, NOTES];

/// The folders that its tools are given.
const TOOLS: [&str; 2] = [INBOX, NOTES];

/// The demo's directory.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) directory: PathBuf,
    /// The random text in the canary.
    pub(super) canary: String,
}

impl Place {
    /// Makes the directory, which must not be there.
    pub(super) fn make(environment: &Environment) -> Result<Self, Error> {
        let directory = directory(environment)?;
        if let Some(parent) = directory.parent() {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(parent);
            made.map_err(|error| Error::unwritable(parent, error))?;
        }
        match DirBuilder::new().mode(0o700).create(&directory) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let message = format!("there is a demo already, in {}", directory.display());
                return Err(Error::failed(Code::DemoExists, message)
                    .hint("remove it, with the notes in it: toolward demo --remove"));
            }
            Err(error) => return Err(Error::unwritable(&directory, error)),
        }
        // Whatever the umask says.
        std::fs::set_permissions(&directory, Permissions::from_mode(0o700))
            .map_err(|error| Error::unwritable(&directory, error))?;
        let mut random = [0_u8; 16];
        getrandom::fill(&mut random).map_err(|error| {
            Error::unwritable(&directory, std::io::Error::other(error.to_string()))
        })?;
        Ok(Self {
            directory,
            canary: format!("canary-{:032x}", u128::from_ne_bytes(random)),
        })
    }

    /// Makes the folders and the canary; first of all the list of them.
    pub(super) fn fill(&self) -> Result<(), Error> {
        let mut list = FOLDERS.join("\n");
        list.push('\n');
        list.push_str(CANARY);
        list.push('\n');
        self.write(LIST, &list)?;
        for folder in FOLDERS {
            let path = self.directory.join(folder);
            let made = DirBuilder::new().mode(0o700).create(&path);
            made.map_err(|error| Error::unwritable(&path, error))?;
        }
        self.write(CANARY, &format!("{}\n", self.canary))?;
        let link = self.directory.join(INBOX).join(LINK);
        symlink(self.canary_file(), &link).map_err(|error| Error::unwritable(&link, error))
    }

    /// Writes the configuration: whom to trust, which folders tools may be given, and where calls are recorded.
    pub(super) fn configure(&self, public_key: &str) -> Result<(), Error> {
        let folder = |name: &str| toml_string(&self.directory.join(name));
        let text = format!(
            "# Made by `toolward demo`; `toolward demo --remove` removes it.\n\n\
             [[publisher]]\nname = \"{PUBLISHER}\"\n\
             prefixes = [\"demo\", \"demo-tools\", \"demo-thief\"]\n\
             keys = [\"\"\"\n{public_key}\"\"\"]\n\n\
             [ledger]\ndirectory = {}\n\n\
             [[workspace]]\npath = \"/inbox\"\ndirectory = {}\n\n\
             [[workspace]]\npath = \"/notes\"\ndirectory = {}\n",
            folder(LEDGER)?,
            folder(INBOX)?,
            folder(NOTES)?,
        );
        self.write("config/toolward.toml", &text)
    }

    /// Adds lines to the policy.
    pub(super) fn grant(&self, lines: &str) -> Result<(), Error> {
        let path = self.config_file();
        let text =
            std::fs::read_to_string(&path).map_err(|error| Error::unreadable(&path, error))?;
        toolward_files::replace(&path, format!("{text}\n{lines}").as_bytes(), 0o600)
            .map_err(|error| Error::unwritable(&path, error))
    }

    /// Writes an archive; returns where, as a source to install from.
    pub(super) fn write_bundle(&self, name: &str, archive: &[u8]) -> Result<String, Error> {
        let path = self
            .directory
            .join(BUNDLES)
            .join(format!("{name}.toolbundle"));
        toolward_files::write_new(&path, &[archive], 0o600)
            .map_err(|error| Error::unwritable(&path, error))?;
        Ok(path.display().to_string())
    }

    pub(super) fn config_file(&self) -> PathBuf {
        self.directory.join(CONFIG).join("toolward.toml")
    }

    pub(super) fn store(&self) -> PathBuf {
        self.directory.join(STORE)
    }

    pub(super) fn state(&self) -> PathBuf {
        self.directory.join(STATE)
    }

    pub(super) fn cache(&self) -> PathBuf {
        self.directory.join(CACHE)
    }

    pub(super) fn notes(&self) -> PathBuf {
        self.directory.join(NOTES)
    }

    pub(super) fn canary_file(&self) -> PathBuf {
        self.directory.join(CANARY)
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Error> {
        let path = self.directory.join(name);
        toolward_files::write_new(&path, &[text.as_bytes()], 0o600)
            .map_err(|error| Error::unwritable(&path, error))
    }
}

/// A path as a string of TOML.
fn toml_string(path: &Path) -> Result<String, Error> {
    let text = path.to_str().ok_or_else(|| {
        let message = format!("{}: the path is not UTF-8", path.display());
        Error::failed(Code::UnwritableValue, message)
    })?;
    Ok(toml::Value::from(text).to_string())
}

fn directory(environment: &Environment) -> Result<PathBuf, Error> {
    let state = environment.state_directory.as_ref();
    let beside = state.map(|state| state.with_file_name(NAME));
    beside.ok_or_else(|| {
        Error::usage(
            Code::StoreUnusable,
            "there is no place for the demo: no home directory",
        )
        .hint("set HOME or XDG_STATE_HOME to an absolute path")
    })
}

/// What the demo keeps for itself: no tool that is not the demo's may be given any of it.
pub(crate) fn private(environment: &Environment) -> impl Iterator<Item = PathBuf> {
    let directory = directory(environment).ok();
    let folders = FOLDERS.iter().filter(|folder| !TOOLS.contains(folder));
    folders.filter_map(move |folder| Some(directory.as_ref()?.join(folder)))
}

/// What [`remove`] did.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Removed {
    /// The demo's directory.
    pub directory: PathBuf,
    /// Entries in it that the demo did not make. They stay, and so does the directory.
    pub kept: Vec<String>,
}

/// Removes what the demo's list names, beneath its directory and following no links; `None` if there is no demo. Then
/// removes the directory, if nothing else is in it.
///
/// # Errors
/// `demo-unknown` if the directory has no list, or one that this library did not write; `write-failed` if an entry can't
/// be removed.
pub fn remove(environment: &Environment) -> Result<Option<Removed>, Error> {
    let directory = directory(environment)?;
    let failed = |error| Error::unwritable(&directory, error);
    let Some(parent) = directory.parent() else {
        return Ok(None);
    };
    let above = match Dir::open_ambient_dir(parent, ambient_authority()) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(failed)?,
    };
    let dir = match above.open_dir_nofollow(NAME) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(failed)?,
    };
    let names = listed(&dir, &directory)?;
    for name in names {
        let removed = match dir.symlink_metadata(&name) {
            Ok(metadata) if metadata.is_dir() => dir.remove_dir_all(&name),
            Ok(_) => dir.remove_file(&name),
            Err(error) => Err(error),
        };
        match removed {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(Error::unwritable(&directory.join(&name), error));
            }
            _ => {}
        }
    }
    let mut kept = Vec::new();
    for entry in dir.entries().map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        if name != LIST {
            kept.push(name.to_string_lossy().into_owned());
        }
    }
    kept.sort();
    if kept.is_empty() {
        match dir.remove_file(LIST) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        above.remove_dir(NAME).map_err(failed)?;
    }
    Ok(Some(Removed { directory, kept }))
}

/// The names in the list: plain entries of the directory.
fn listed(dir: &Dir, directory: &Path) -> Result<Vec<String>, Error> {
    let unknown = |what: &str| {
        let message = format!("{}: {what}", directory.join(LIST).display());
        Error::failed(Code::DemoUnknown, message)
            .hint("look at the directory, and remove it yourself if it is of no use")
    };
    let mut options = OpenOptions::new();
    options.read(true).follow(FollowSymlinks::No);
    let file = match dir.open_with(LIST, &options) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // Stopped before anything else was made.
            let mut entries = dir
                .entries()
                .map_err(|error| Error::unreadable(directory, error))?;
            return match entries.next() {
                None => Ok(Vec::new()),
                Some(_) => Err(unknown("there is no list of what the demo made")),
            };
        }
        opened => opened.map_err(|error| Error::unreadable(directory, error))?,
    };
    let mut text = String::new();
    file.take(MAX_LIST_BYTES)
        .read_to_string(&mut text)
        .map_err(|error| Error::unreadable(directory, error))?;
    let names: Vec<String> = text.lines().map(str::to_owned).collect();
    let plain = |name: &String| {
        !name.is_empty()
            && !name.starts_with('.')
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
    };
    match names.iter().all(plain) {
        true => Ok(names),
        false => Err(unknown(
            "a line is not the name of an entry of the directory",
        )),
    }
}
