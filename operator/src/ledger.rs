//! `[ledger]` of the configuration: whether calls are recorded, where, and which payloads are kept.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toolward_host::HostBuilder;
use toolward_ledger::LedgerOptions;
use toolward_ledger::payload::{Keep, PayloadLimits};
use toolward_support::fields::{Field, Fields, Span};

use crate::settings::{self, SettingError, no_others, word};
use crate::{Code, Environment, Error, Kind, Result};

const MIB: u64 = 1 << 20;
/// At most ten years, so that each payload is erased at some time.
const DAYS: RangeInclusive<u64> = 1..=3650;
/// At most 64 KiB, since a reader of a record holds one payload in memory.
const PAYLOAD_BYTES: RangeInclusive<u64> = 1..=64 * 1024;
/// At least 1 MiB, since a few rows fill a smaller file; at most 1 TiB.
const FILE_BYTES: RangeInclusive<u64> = MIB..=1 << 40;

const KEEPS: &[(&str, Keep)] = &[
    ("none", Keep::None),
    ("asked", Keep::Asked),
    ("inputs", Keep::Inputs),
    ("all", Keep::All),
];
const WAITS: &[(&str, WaitFor)] = &[("started", WaitFor::Started), ("ended", WaitFor::Ended)];

/// If a call changes something: which of its rows must be on the disk before the reply is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WaitFor {
    /// The row that is written before the call is dispatched.
    Started,
    /// Also the row of the call's end.
    #[default]
    Ended,
}

/// Returns the configuration's word for a value of `keep`.
pub fn keep_word(keep: Keep) -> &'static str {
    let word = KEEPS.iter().find(|(_, known)| *known == keep);
    word.map_or("all", |(word, _)| word)
}

/// The settings of `[ledger]`. By default calls are recorded.
///
/// ```
/// use toolward_operator::config::ConfigFile;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("toolward.toml");
/// std::fs::write(&path, "[ledger]\ndays = 7\ndirectory = \"calls\"\n")?;
/// let settings = ConfigFile::read(&path)?.ledger()?;
/// let options = settings.options(&Default::default())?.ok_or("off")?;
/// assert_eq!(options.directory, folder.path().canonicalize()?.join("calls"));
/// assert_eq!(options.payloads.age.as_secs(), 7 * 24 * 3600);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerSettings {
    /// Whether recording is off.
    pub off: bool,
    /// Which payloads are kept.
    pub keep: Keep,
    /// How long payloads are kept, and how much of them.
    pub payloads: PayloadLimits,
    /// Which row a reply waits for.
    pub wait_for: WaitFor,
    /// The largest size of the file of records, in bytes.
    pub max_bytes: u64,
    /// A file to which each checkpoint (a signed digest of the ledger) is appended.
    pub checkpoints: Option<PathBuf>,
    /// The directory of the ledger; by default `ledger` in the user's state directory.
    pub directory: Option<PathBuf>,
}

impl Default for LedgerSettings {
    fn default() -> Self {
        let options = LedgerOptions::new("");
        Self {
            off: false,
            keep: options.keep,
            payloads: options.payloads,
            wait_for: WaitFor::default(),
            max_bytes: options.max_bytes,
            checkpoints: None,
            directory: None,
        }
    }
}

impl LedgerSettings {
    /// Returns the directory of the ledger, whether or not it exists.
    ///
    /// # Errors
    /// If the configuration names no directory and the user has no state directory.
    pub fn directory(&self, environment: &Environment) -> Result<PathBuf> {
        let default = environment.state_directory.as_ref();
        let default = default.map(|state| Self::within(state));
        self.directory.clone().or(default).ok_or_else(|| {
            let message = "there is no place for the record of calls: no home directory";
            Error::usage(Code::LedgerPlaceless, message).hint(
                "name one as `directory` in `[ledger]` of toolward.toml, or say `off = true` there",
            )
        })
    }

    /// Returns the ledger's directory in a state directory.
    pub(crate) fn within(state: &Path) -> PathBuf {
        state.join("ledger")
    }

    /// Returns the options for writing the ledger; `None` if recording is off.
    ///
    /// # Errors
    /// As [`LedgerSettings::directory`].
    pub fn options(&self, environment: &Environment) -> Result<Option<LedgerOptions>> {
        if self.off {
            return Ok(None);
        }
        let mut options = LedgerOptions::new(self.directory(environment)?);
        options.keep = self.keep;
        options.payloads = self.payloads;
        options.checkpoints.clone_from(&self.checkpoints);
        options.max_bytes = self.max_bytes;
        Ok(Some(options))
    }

    /// Keeps guests out of the ledger and the file of checkpoints, even while recording is off,
    /// since older records need the same protection.
    pub fn protect(&self, builder: HostBuilder, environment: &Environment) -> HostBuilder {
        let builder = match self.directory(environment) {
            Ok(directory) => builder.protect("the ledger", directory),
            Err(_) => builder,
        };
        match &self.checkpoints {
            Some(path) => builder.protect("the file of checkpoints", path),
            None => builder,
        }
    }
}

/// Reads the settings in `[ledger]` of a configuration in `folder`.
pub(crate) fn settings(text: &str, path: &Path, folder: &Path) -> Result<LedgerSettings> {
    settings::LEDGER.read(text, path, |table| read(table, folder))
}

fn read(table: &Field<'_, Span>, folder: &Path) -> Result<LedgerSettings, SettingError> {
    let mut fields = Fields::of(table)?.by_key();
    let mut read = LedgerSettings::default();
    if let Some(field) = fields.take("off") {
        read.off = field.boolean()?;
    }
    if let Some(field) = fields.take("keep") {
        read.keep = word(&field, KEEPS)?;
    }
    if let Some(field) = fields.take("days") {
        let hours = field.integer(DAYS)?.saturating_mul(24);
        read.payloads.age = Duration::from_hours(hours);
    }
    if let Some(field) = fields.take("payload_max") {
        let bytes = field.integer(PAYLOAD_BYTES)?;
        read.payloads.each = usize::try_from(bytes).unwrap_or(usize::MAX);
    }
    if let Some(field) = fields.take("payloads_max") {
        read.payloads.total = field.integer(FILE_BYTES)?;
    }
    if let Some(field) = fields.take("max") {
        read.max_bytes = field.integer(FILE_BYTES)?;
    }
    if let Some(field) = fields.take("sync") {
        read.wait_for = word(&field, WAITS)?;
    }
    if let Some(field) = fields.take("checkpoints") {
        read.checkpoints = Some(settings::path(&field, folder)?);
    }
    if let Some(field) = fields.take("directory") {
        read.directory = Some(settings::path(&field, folder)?);
    }
    no_others(fields)?;
    Ok(read)
}

impl From<toolward_ledger::Error> for Error {
    fn from(error: toolward_ledger::Error) -> Self {
        Self::of(Kind::Failed, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<LedgerSettings, Error> {
        settings(text, Path::new("toolward.toml"), Path::new("/etc/tools"))
    }

    #[test]
    fn every_key_is_read_and_paths_are_relative_to_the_file() {
        for empty in ["[defaults]\n", "[ledger]\n"] {
            assert_eq!(read(empty).unwrap(), LedgerSettings::default());
        }
        let text = "[ledger]\noff = false\nkeep = \"all\"\ndays = 7\npayload_max = 1024\n\
                    payloads_max = 2097152\nmax = 1048576\nsync = \"started\"\n\
                    checkpoints = \"/var/log/calls\"\ndirectory = \"calls\"\n";
        let settings = read(text).unwrap();
        let options = settings.options(&Environment::default()).unwrap().unwrap();
        assert_eq!(options.keep, Keep::All);
        assert_eq!(options.payloads.age, Duration::from_hours(7 * 24));
        assert_eq!(options.payloads.each, 1024);
        assert_eq!(options.payloads.total, 2 * MIB);
        assert_eq!(options.max_bytes, MIB);
        assert_eq!(settings.wait_for, WaitFor::Started);
        assert_eq!(
            options.checkpoints.as_deref(),
            Some(Path::new("/var/log/calls"))
        );
        assert_eq!(options.directory, Path::new("/etc/tools/calls"));
    }

    #[test]
    fn a_ledger_that_is_off_has_no_options_and_one_without_a_place_is_an_error() {
        let environment = Environment::default();
        let off = read("[ledger]\noff = true\n").unwrap();
        assert!(off.options(&environment).unwrap().is_none());
        let error = LedgerSettings::default().options(&environment).unwrap_err();
        assert_eq!(error.code, Code::LedgerPlaceless.code());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place_and_what_was_meant() {
        for (text, place, hint) in [
            (
                "[ledger]\nkep = \"all\"\n",
                "toolward.toml:2:1:",
                "did you mean `keep`?",
            ),
            (
                "[ledger]\nkeep = \"al\"\n",
                "toolward.toml:2:8:",
                "did you mean `all`?",
            ),
            (
                "[ledger]\nsync = \"x\"\n",
                "toolward.toml:2:8:",
                "the words are: started, ended",
            ),
            ("[ledger]\nsync = true\n", "toolward.toml:2:8:", ""),
            ("[ledger]\ndays = 0\n", "toolward.toml:2:8:", ""),
            ("[ledger]\ndays = -1\n", "toolward.toml:2:8:", ""),
            ("[ledger]\nmax = 5\n", "toolward.toml:2:7:", ""),
            ("[ledger]\npayload_max = 65537\n", "toolward.toml:2:15:", ""),
            ("[ledger]\ndirectory = \"\"\n", "toolward.toml:2:13:", ""),
            ("[ledger]\noff = \"yes\"\n", "toolward.toml:2:7:", ""),
            ("ledger = 1\n", "toolward.toml:1:10:", ""),
            ("[[ledger]]\n", "toolward.toml:1:", ""),
        ] {
            let failure = read(text).unwrap_err();
            assert_eq!(failure.code, Code::LedgerSettingInvalid.code(), "{text}");
            assert!(failure.message.starts_with(place), "{}", failure.message);
            assert_eq!(failure.hints.join(""), hint, "{text}");
        }
    }
}
