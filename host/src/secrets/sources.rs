//! Secrets from the sources that a policy's `[[secret]]` tables name: a variable of the environment
//! that the embedder passes, a file that only its user can read, or the store of drivers' secrets.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use toolward_policy::{Policy, SecretSource};
use toolward_support::files::{Folder, Links, Problem, Protection};
use zeroize::Zeroizing;

use super::{SecretError, SecretStore, SecretValue};
use crate::digest;

/// The most bytes of a secret in a file.
const MAX_VALUE_BYTES: u64 = 64 << 10;

enum Source {
    /// A variable, which is read once; `None` if it is not set.
    Value(Option<SecretValue>),
    File(PathBuf),
}

/// The secrets of a policy.
///
/// ```
/// use toolward_host::Host;
/// use toolward_host::secrets::{Sources, read_file};
/// use toolward_policy::Policy;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let policy = Policy::from_toml(
///     r#"
///     [[secret]]
///     publisher = "acme"
///     slug = "api-key"
///     env = "ACME_API_KEY"
///     "#,
/// )?;
/// let variables = |name: &str| std::env::var(name).ok();
/// let sources = Sources::new(&policy, "/etc/example".as_ref(), variables);
/// let host = Host::builder().secrets(sources).policy(policy).build()?;
///
/// // A secret that the application itself needs, under the same checks.
/// assert_eq!(read_file("/nowhere/token".as_ref())?.is_some(), false);
/// # Ok(())
/// # }
/// ```
pub struct Sources {
    /// By publisher, then by slug. Drivers store the secrets that have no source here.
    sources: HashMap<String, HashMap<String, Source>>,
    /// The directory of the secrets that drivers store.
    directory: Option<PathBuf>,
}

impl Sources {
    /// Creates the sources of the secrets that `policy` names. File paths are relative to `base`.
    /// Variables are read now, through `environment`.
    pub fn new(policy: &Policy, base: &Path, environment: impl Fn(&str) -> Option<String>) -> Self {
        let mut sources: HashMap<String, HashMap<String, Source>> = HashMap::new();
        for secret in &policy.tables().secrets {
            let source = match &secret.source {
                SecretSource::Env(name) => Source::Value(
                    environment(name).map(|value| SecretValue::new(value.into_bytes())),
                ),
                SecretSource::File(path) => Source::File(base.join(path)),
                _ => continue,
            };
            let of_publisher = sources.entry(secret.publisher.as_str().to_owned());
            let of_publisher = of_publisher.or_default();
            of_publisher.insert(secret.slug.clone(), source);
        }
        Self {
            sources,
            directory: None,
        }
    }

    /// Sets the directory of the secrets that drivers store, with a file for each publisher,
    /// principal and secret. Storing a secret creates the directory with mode 0700.
    #[must_use]
    pub fn stored_in(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// The files of the sources, for a process that confines itself.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let sources = self.sources.values().flat_map(HashMap::values);
        sources.filter_map(|source| match source {
            Source::File(path) => Some(path.as_path()),
            _ => None,
        })
    }

    fn source(&self, publisher: &str, slug: &str) -> Option<&Source> {
        self.sources.get(publisher)?.get(slug)
    }

    fn stored(&self, publisher: &str, principal: &str, slug: &str) -> Option<PathBuf> {
        let name = digest::texts([publisher, principal, slug]).to_hex();
        Some(self.directory.as_ref()?.join(name.as_str()))
    }
}

impl SecretStore for Sources {
    fn get(
        &self,
        publisher: &str,
        principal: &str,
        slug: &str,
    ) -> Result<Option<SecretValue>, SecretError> {
        match self.source(publisher, slug) {
            Some(Source::Value(value)) => Ok(value.clone()),
            Some(Source::File(path)) => read(path, true),
            None => match self.stored(publisher, principal, slug) {
                Some(path) => read(&path, false),
                None => Ok(None),
            },
        }
    }

    /// Checks only that the file exists, and does not read it.
    fn has(&self, publisher: &str, principal: &str, slug: &str) -> bool {
        let is_there = |path: &Path| path.symlink_metadata().is_ok();
        match self.source(publisher, slug) {
            Some(Source::Value(value)) => value.is_some(),
            Some(Source::File(path)) => is_there(path),
            None => {
                let path = self.stored(publisher, principal, slug);
                path.is_some_and(|path| is_there(&path))
            }
        }
    }

    fn put(
        &self,
        publisher: &str,
        principal: &str,
        slug: &str,
        value: SecretValue,
    ) -> Result<(), SecretError> {
        if self.source(publisher, slug).is_some() {
            return Err(SecretError(
                "the operator keeps this secret; it can't be stored here".to_owned(),
            ));
        }
        let (Some(path), Some(directory)) =
            (self.stored(publisher, principal, slug), &self.directory)
        else {
            return Err(SecretError("there is no place to store secrets".to_owned()));
        };
        write(directory, &path, value.bytes()).map_err(|error| SecretError(error.to_string()))
    }
}

/// Reads a file by the rules for secret files of [`Sources`]: only its user may have access, links
/// are not followed, and line ends at the end are dropped. `None` if the file does not exist.
///
/// # Errors
///
/// If the file can't be read, or others have access to it.
pub fn read_file(path: &Path) -> Result<Option<SecretValue>, SecretError> {
    read(path, true)
}

/// Reads a private file. Drops line ends at the end if the file is written `by_people`.
fn read(path: &Path, by_people: bool) -> Result<Option<SecretValue>, SecretError> {
    let file = match toolward_support::files::open(path, Protection::Private, Links::Refuse) {
        Ok(file) => file,
        Err(error) if error.is_missing() => return Ok(None),
        Err(error) => return Err(unreadable(path, error.problem)),
    };
    let bytes = toolward_support::files::read(file, path, MAX_VALUE_BYTES)
        .map_err(|error| unreadable(path, error.problem))?;
    let mut bytes = Zeroizing::new(bytes);
    if by_people {
        while let Some(b'\n' | b'\r') = bytes.last() {
            bytes.pop();
        }
    }
    Ok(Some(SecretValue::new(std::mem::take(&mut *bytes))))
}

fn unreadable(path: &Path, problem: Problem) -> SecretError {
    let problem = match problem {
        Problem::Io { source, .. } => source.to_string(),
        Problem::Mode { mode } => {
            let mode = mode & 0o777;
            format!("has mode {mode:03o}: others have access; use chmod 600")
        }
        other => other.to_string(),
    };
    SecretError(format!("{}: {problem}", path.display()))
}

/// Writes a file atomically.
fn write(directory: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    Folder::make(directory, Protection::Private).map_err(|error| error.problem)?;
    toolward_support::files::replace(path, bytes, 0o600)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use super::*;

    fn sources(toml: &str, base: &Path) -> Sources {
        let policy = Policy::from_toml(toml).unwrap_or_else(|error| panic!("{error}"));
        Sources::new(&policy, base, |name| {
            (name == "TOKEN").then(|| "from-the-environment".to_owned())
        })
        .stored_in(base.join("stored"))
    }

    fn value(found: Result<Option<SecretValue>, SecretError>) -> Option<Vec<u8>> {
        found.expect("readable").map(|value| value.bytes().to_vec())
    }

    const POLICY: &str = r#"
        [[secret]]
        slug = "a"
        publisher = "acme"
        env = "TOKEN"
        origin = "https://api.example"
        header = "authorization"

        [[secret]]
        slug = "b"
        publisher = "acme"
        file = "b.txt"
        origin = "https://api.example"
        header = "authorization"

        [[secret]]
        slug = "c"
        publisher = "acme"
        origin = "https://api.example"
        header = "authorization"
    "#;

    #[test]
    fn a_secret_comes_from_where_the_policy_says_and_for_its_publisher_only() {
        let base = tempfile::tempdir().expect("a directory");
        let file = base.path().join("b.txt");
        std::fs::write(&file, "from-a-file\n").expect("written");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("set");
        let sources = sources(POLICY, base.path());
        assert_eq!(
            value(sources.get("acme", "local", "a")),
            Some(b"from-the-environment".to_vec())
        );
        assert_eq!(
            value(sources.get("acme", "local", "b")),
            Some(b"from-a-file".to_vec())
        );
        assert_eq!(value(sources.get("other", "local", "a")), None);
        assert_eq!(value(sources.get("acme", "local", "c")), None);
    }

    #[test]
    fn a_file_that_others_may_read_is_refused_and_its_content_not_told() {
        let base = tempfile::tempdir().expect("a directory");
        let file = base.path().join("b.txt");
        std::fs::write(&file, "from-a-file").expect("written");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).expect("set");
        let error = sources(POLICY, base.path())
            .get("acme", "local", "b")
            .expect_err("refused");
        assert!(error.0.contains("640") && !error.0.contains("from-a-file"));
    }

    #[test]
    fn a_link_to_a_secret_is_not_followed() {
        let base = tempfile::tempdir().expect("a directory");
        let real = base.path().join("real");
        std::fs::write(&real, "from-a-file").expect("written");
        std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o600)).expect("set");
        std::os::unix::fs::symlink(&real, base.path().join("b.txt")).expect("linked");
        assert!(
            sources(POLICY, base.path())
                .get("acme", "local", "b")
                .is_err()
        );
    }

    #[test]
    fn stored_secrets_are_apart_by_publisher_and_principal() {
        let base = tempfile::tempdir().expect("a directory");
        let sources = sources(POLICY, base.path());
        let put = |publisher, principal, text: &str| {
            sources
                .put(
                    publisher,
                    principal,
                    "c",
                    SecretValue::new(text.as_bytes().to_vec()),
                )
                .expect("stored");
        };
        put("acme", "ann", "one");
        put("acme", "bob", "two");
        assert_eq!(
            value(sources.get("acme", "ann", "c")),
            Some(b"one".to_vec())
        );
        assert_eq!(
            value(sources.get("acme", "bob", "c")),
            Some(b"two".to_vec())
        );
        assert_eq!(value(sources.get("acmea", "nn", "c")), None);
        assert_eq!(value(sources.get("other", "ann", "c")), None);
        for entry in std::fs::read_dir(base.path().join("stored")).expect("there") {
            let mode = entry.expect("readable").metadata().expect("there").mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn what_the_operator_keeps_is_not_overwritten() {
        let base = tempfile::tempdir().expect("a directory");
        let sources = sources(POLICY, base.path());
        let value = SecretValue::new(b"new".to_vec());
        assert!(sources.put("acme", "local", "a", value).is_err());
    }
}
