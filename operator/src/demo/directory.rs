//! The directory of the demo, which is private to its user, and the list of the entries that the
//! demo made in it.

use std::fs::{DirBuilder, Permissions};
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use cap_fs_ext::{DirExt as _, FollowSymlinks, OpenOptionsFollowExt as _};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};

use crate::{Code, Environment, Error, Result};

/// The name of the publisher. Only the configuration in the demo's directory trusts it, so that the
/// demo does not change whom the user trusts.
pub const PUBLISHER: &str = "toolward-demo";

/// The name of the demo's directory. It is next to the state directory, not inside, since no tool
/// may be given a folder in the state directory.
const NAME: &str = "toolward-demo";
/// The file that lists the created entries, one on each line. Only these are removed.
const LIST: &str = "made.txt";
const MAX_LIST_BYTES: u64 = 4096;

const CONFIG: &str = "config";
const BUNDLES: &str = "bundles";
pub(super) const STORE: &str = "installed";
pub(super) const STATE: &str = "state";
pub(super) const CACHE: &str = "cache";
const LEDGER: &str = "ledger";
const INBOX: &str = "inbox";
const NOTES: &str = "notes";
/// The file that the hostile tool tries to read.
pub(super) const CANARY: &str = "canary.txt";
/// A link to the canary, in [`INBOX`].
const LINK: &str = "link.txt";

const FOLDERS: [&str; 8] = [CONFIG, BUNDLES, STORE, STATE, CACHE, LEDGER, INBOX, NOTES];

/// The folders that the demo's tools are given.
const TOOLS: [&str; 2] = [INBOX, NOTES];

/// The demo's directory.
#[derive(Debug)]
pub(super) struct DemoDirectory {
    pub(super) path: PathBuf,
    /// The random text in the canary.
    pub(super) canary: String,
}

impl DemoDirectory {
    /// Makes the directory, which must not exist.
    pub(super) fn make(environment: &Environment) -> Result<Self> {
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
        // The umask may have removed bits of the mode.
        std::fs::set_permissions(&directory, Permissions::from_mode(0o700))
            .map_err(|error| Error::unwritable(&directory, error))?;
        let mut random = [0_u8; 16];
        getrandom::fill(&mut random)
            .map_err(|error| Error::unwritable(&directory, error.to_string()))?;
        Ok(Self {
            path: directory,
            canary: format!("canary-{:032x}", u128::from_ne_bytes(random)),
        })
    }

    /// Writes the list of the entries, and then creates the folders and the canary.
    pub(super) fn fill(&self) -> Result<()> {
        let list = format!("{}\n{CANARY}\n", FOLDERS.join("\n"));
        self.write(LIST, list.as_bytes())?;
        for folder in FOLDERS {
            let path = self.join(folder);
            let made = DirBuilder::new().mode(0o700).create(&path);
            made.map_err(|error| Error::unwritable(&path, error))?;
        }
        self.write(CANARY, format!("{}\n", self.canary).as_bytes())?;
        let link = self.join(INBOX).join(LINK);
        symlink(self.join(CANARY), &link).map_err(|error| Error::unwritable(&link, error))
    }

    /// Writes the configuration: the trusted publisher, the folders for tools, and the ledger.
    pub(super) fn configure(&self, public_key: &str) -> Result<()> {
        let folder = |name: &str| toml_string(&self.join(name));
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
        self.write("config/toolward.toml", text.as_bytes())
    }

    /// Adds lines to the policy.
    pub(super) fn grant(&self, lines: &str) -> Result<()> {
        let path = self.config_file();
        let text =
            std::fs::read_to_string(&path).map_err(|error| Error::unreadable(&path, error))?;
        toolward_support::files::replace(&path, format!("{text}\n{lines}").as_bytes(), 0o600)
            .map_err(|error| Error::unwritable(&path, error))
    }

    /// Writes an archive. Returns its path as a source to install from.
    pub(super) fn write_bundle(&self, name: &str, archive: &[u8]) -> Result<String> {
        let path = format!("{BUNDLES}/{name}.toolbundle");
        self.write(&path, archive)?;
        Ok(self.join(&path).display().to_string())
    }

    /// The path of an entry.
    pub(super) fn join(&self, entry: &str) -> PathBuf {
        self.path.join(entry)
    }

    pub(super) fn config_file(&self) -> PathBuf {
        self.join(CONFIG).join("toolward.toml")
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.join(name);
        toolward_support::files::write_new(&path, &[bytes], 0o600)
            .map_err(|error| Error::unwritable(&path, error))
    }
}

/// Writes a path as a TOML string.
fn toml_string(path: &Path) -> Result<String> {
    let text = path.to_str().ok_or_else(|| {
        let message = format!("{}: the path is not UTF-8", path.display());
        Error::failed(Code::UnwritableValue, message)
    })?;
    Ok(toml::Value::from(text).to_string())
}

fn directory(environment: &Environment) -> Result<PathBuf> {
    let state = environment.state_directory.as_ref();
    state
        .map(|state| state.with_file_name(NAME))
        .ok_or_else(|| {
            let message = "there is no place for the demo: no home directory";
            Error::usage(Code::StoreUnusable, message)
                .hint("set HOME or XDG_STATE_HOME to an absolute path")
        })
}

/// Returns the demo's folders, except the folders that its tools are given. None of the returned
/// folders may be a workspace.
pub(crate) fn private_folders(environment: &Environment) -> impl Iterator<Item = PathBuf> {
    let directory = directory(environment).ok();
    let folders = FOLDERS.iter().filter(|folder| !TOOLS.contains(folder));
    folders.filter_map(move |folder| Some(directory.as_ref()?.join(folder)))
}

/// Removes the listed entries beneath the demo's directory without following links, and then the
/// directory if it is empty. Returns the directory, and any other entries in it. If there are other
/// entries, they and the directory stay. Returns `None` if no demo exists.
///
/// # Errors
/// `demo-unknown` if the directory has no list, or not a list of this library; `write-failed` if an
/// entry can't be removed.
pub fn remove(environment: &Environment) -> Result<Option<(PathBuf, Vec<String>)>> {
    let directory = directory(environment)?;
    let failed = |error| Error::unwritable(&directory, error);
    let Some(parent) = directory.parent() else {
        return Ok(None);
    };
    let Some(above) =
        existing(Dir::open_ambient_dir(parent, ambient_authority())).map_err(failed)?
    else {
        return Ok(None);
    };
    let Some(dir) = existing(above.open_dir_nofollow(NAME)).map_err(failed)? else {
        return Ok(None);
    };
    for name in listed(&dir, &directory)? {
        let removed = dir
            .symlink_metadata(&name)
            .and_then(|found| match found.is_dir() {
                true => dir.remove_dir_all(&name),
                false => dir.remove_file(&name),
            });
        existing(removed).map_err(|error| Error::unwritable(&directory.join(&name), error))?;
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
        existing(dir.remove_file(LIST)).map_err(failed)?;
        above.remove_dir(NAME).map_err(failed)?;
    }
    Ok(Some((directory, kept)))
}

/// Converts "not found" to `None`.
fn existing<T>(found: std::io::Result<T>) -> std::io::Result<Option<T>> {
    match found {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

/// Returns the names in the list. Each must be a plain file name, not a path.
fn listed(dir: &Dir, directory: &Path) -> Result<Vec<String>> {
    let unknown = |what: &str| {
        let message = format!("{}: {what}", directory.join(LIST).display());
        Error::failed(Code::DemoUnknown, message)
            .hint("look at the directory, and remove it yourself if it is of no use")
    };
    let unreadable = |error| Error::unreadable(directory, error);
    let mut options = OpenOptions::new();
    options.read(true).follow(FollowSymlinks::No);
    let file = match dir.open_with(LIST, &options) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // An empty directory: the demo stopped before it wrote the list.
            let entries = dir.entries();
            return match entries.map_err(unreadable)?.next() {
                None => Ok(Vec::new()),
                Some(_) => Err(unknown("there is no list of what the demo made")),
            };
        }
        opened => opened.map_err(unreadable)?,
    };
    let mut text = String::new();
    let read = file.take(MAX_LIST_BYTES).read_to_string(&mut text);
    read.map_err(unreadable)?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    let is_entry =
        |name: &str| !name.is_empty() && !name.starts_with('.') && name.bytes().all(is_plain);
    match text.lines().all(is_entry) {
        true => Ok(text.lines().map(str::to_owned).collect()),
        false => Err(unknown(
            "a line is not the name of an entry of the directory",
        )),
    }
}
