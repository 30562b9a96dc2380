//! The hosts that a person allowed for downloads of a repository. They are stored next to the
//! record of trust, where no guest can write.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use toolward_registry::{HostRole, Reference, Source, UnknownHost};

use crate::file::StateFile;
use crate::lasting_changes::{LastingChange, LastingChanges};
use crate::{Code, Environment, Error, Result};

const FILE: &str = "downloads.json";

/// Largest file, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The most hosts of one repository, since a registry decides how often it names another host.
const MAX_HOSTS: usize = 16;

/// Origins by repository. A repository is written as `oci://HOST/REPOSITORY` without a default
/// port.
type Hosts = BTreeMap<String, BTreeSet<String>>;

/// The confirmed hosts, by repository.
#[derive(Debug, Clone)]
pub(crate) struct DownloadHosts(StateFile);

impl DownloadHosts {
    /// Uses the folder of the record of trust.
    pub(crate) fn in_folder(folder: &Path) -> Self {
        Self(StateFile::new(folder.join(FILE), MAX_FILE_BYTES))
    }

    /// The allowed origins for a repository.
    ///
    /// # Errors
    /// `file-unreadable` if the file belongs to another user, or is not in the form that this
    /// library writes.
    pub(crate) fn of(&self, repository: &Reference) -> Result<BTreeSet<String>> {
        let mut all = self.all()?;
        Ok(all.remove(&key(repository)).unwrap_or_default())
    }

    /// Stores an origin for a repository, and adds a line to the lasting changes.
    ///
    /// # Errors
    /// As [`DownloadHosts::of`]; `write-failed` if the file can't be written.
    pub(crate) fn keep(
        &self,
        repository: &Reference,
        host: &UnknownHost,
        environment: &Environment,
    ) -> Result<()> {
        let repository = key(repository);
        let _locked = self.0.lock()?;
        let mut all = self.all()?;
        let own = all.entry(repository.clone()).or_default();
        if own.contains(&host.origin) {
            return Ok(());
        }
        if own.len() >= MAX_HOSTS {
            let message = format!("{repository} has downloads from {MAX_HOSTS} hosts already");
            return Err(Error::unwritable(&self.0.path, message)
                .hint("remove the bundles of this repository, and install them again"));
        }
        own.insert(host.origin.clone());
        let what = format!("let downloads of {repository} come from {}", host.origin);
        let change = LastingChange::new("install", what, &self.0.path);
        LastingChanges::of(environment)?.add(change)?;
        self.write(&all)
    }

    /// Forgets the hosts for the repository of a source, unless a source in `used` is in the same
    /// repository.
    ///
    /// # Errors
    /// As [`DownloadHosts::keep`].
    pub(crate) fn forget(
        &self,
        source: &str,
        used: impl IntoIterator<Item = String>,
    ) -> Result<()> {
        let of = |source: &str| match Source::parse(source) {
            Ok(Source::Registry(reference)) => Some(key(&reference)),
            _ => None,
        };
        let Some(repository) = of(source) else {
            return Ok(());
        };
        let mut used = used.into_iter();
        if used.any(|other| of(&other).as_ref() == Some(&repository))
            || !self.all()?.contains_key(&repository)
        {
            return Ok(());
        }
        let _locked = self.0.lock()?;
        let mut all = self.all()?;
        all.remove(&repository);
        self.write(&all)
    }

    fn all(&self) -> Result<Hosts> {
        let Some(bytes) = self.0.read()? else {
            return Ok(Hosts::new());
        };
        let path = &self.0.path;
        let hosts: Hosts =
            serde_json::from_slice(&bytes).map_err(|error| Error::unreadable(path, error))?;
        let mut all = hosts.iter();
        match all.find(|(repository, origins)| !is_valid(repository, origins)) {
            None => Ok(hosts),
            // An edit by hand may have added a host about which no person would be asked.
            Some((repository, _)) => {
                let message = format!("{repository:?} is not as `install` keeps it");
                Err(Error::unreadable(path, message).hint(format!(
                    "delete the file: `install` asks again ({})",
                    Code::FileUnreadable.code()
                )))
            }
        }
    }

    fn write(&self, all: &Hosts) -> Result<()> {
        let text = serde_json::to_string_pretty(all);
        let text = text.map_err(|error| Error::unwritable(&self.0.path, error))?;
        self.0.write(format!("{text}\n").as_bytes())
    }
}

fn key(repository: &Reference) -> String {
    repository.bare_repository().to_string()
}

fn is_valid(repository: &str, origins: &BTreeSet<String>) -> bool {
    let of_repository = repository.parse::<Reference>();
    let is_origin = |origin: &String| match Source::parse(origin) {
        Ok(Source::Web(url)) => {
            UnknownHost::of(HostRole::Downloads, &url).is_some_and(|host| host.origin == *origin)
        }
        _ => false,
    };
    of_repository.is_ok_and(|found| key(&found) == repository) && origins.iter().all(is_origin)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(origin: &str) -> UnknownHost {
        let Ok(Source::Web(url)) = Source::parse(origin) else {
            panic!("{origin}");
        };
        UnknownHost::of(HostRole::Downloads, &url).unwrap()
    }

    fn reference(text: &str) -> Reference {
        text.parse().unwrap()
    }

    #[test]
    fn a_host_is_kept_for_one_repository_of_one_registry_until_nothing_comes_from_there() {
        let home = tempfile::tempdir().unwrap();
        let environment = Environment {
            state_directory: Some(home.path().join("state")),
            ..Environment::default()
        };
        let kept = DownloadHosts::in_folder(&home.path().join("trust"));
        let first = reference("oci://r.example:443/acme/a:1.0.0");
        kept.keep(&first, &host("https://blobs.example"), &environment)
            .unwrap();
        kept.keep(&first, &host("https://blobs.example"), &environment)
            .unwrap();
        for (text, found) in [
            ("oci://r.example/acme/a:2.0.0", 1),
            ("oci://r.example:443/acme/a", 1),
            ("oci://r.example/acme/b:1.0.0", 0),
            ("oci://r.example:444/acme/a:1.0.0", 0),
            ("oci://x.r.example/acme/a:1.0.0", 0),
        ] {
            assert_eq!(kept.of(&reference(text)).unwrap().len(), found, "{text}");
        }
        let changes = LastingChanges::of(&environment).unwrap().all().unwrap();
        assert_eq!(changes.len(), 1);
        let told = changes[0].to_string();
        assert!(told.contains("oci://r.example/acme/a come from https://blobs.example"));

        let used = |source: &str| [source.to_owned()];
        let gone = "oci://r.example/acme/a:1.0.0";
        kept.forget(gone, used("oci://r.example:443/acme/a:2.0.0"))
            .unwrap();
        kept.forget("/a.toolbundle", []).unwrap();
        assert_eq!(kept.of(&first).unwrap().len(), 1);
        kept.forget(gone, used("oci://r.example/acme/b:1.0.0"))
            .unwrap();
        assert!(kept.of(&first).unwrap().is_empty());
    }

    #[test]
    fn a_file_with_more_than_anybody_is_asked_about_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let kept = DownloadHosts::in_folder(home.path());
        let repository = "oci://r.example/a";
        for (key, origin) in [
            (repository, "https://127.0.0.1"),
            (repository, "http://blobs.example"),
            (repository, "https://localhost"),
            (repository, "https://blobs.example/path"),
            (repository, "*"),
            ("oci://r.example/a:1", "https://blobs.example"),
            ("oci://r.example:443/a", "https://blobs.example"),
            ("*", "https://blobs.example"),
        ] {
            let text = format!("{{\"{key}\":[\"{origin}\"]}}");
            let path = home.path().join(FILE);
            toolward_support::files::replace(&path, text.as_bytes(), 0o600).unwrap();
            let error = kept.of(&reference(repository)).unwrap_err();
            assert_eq!(error.code, "file-unreadable", "{text}");
        }
    }
}
