//! Asks a person about hosts that a registry names and that nobody has allowed: where downloads are redirected to, and
//! token servers. What was confirmed lasts: a host of downloads for its repository, a token server as a line of
//! `[[registry]]`.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use toolward_registry::{HostRole, Reference, RegistryClient, Source, UnknownHost};

use super::Fetcher;
use crate::error::Error;
use crate::lasting_changes::LastingChange;
use crate::registries::Registries;
use crate::registries::kept_hosts::KeptHosts;
use crate::registries::realm_line;
use crate::text_edit::TextEdit;

/// Most questions about one source in a row. A registry could name another host each time.
pub(crate) const MAX_QUESTIONS: usize = 3;

/// Asks the person at the terminal.
pub trait AskHost: Debug + Send + Sync {
    /// Whether downloads of a repository may come from a host; `false` if nobody can be asked.
    ///
    /// # Errors
    /// If the answer is no.
    fn downloads(&self, asked: &DownloadHost) -> Result<bool, Error>;

    /// Shows a change of the configuration that lets a token server have the credentials for a registry, and makes
    /// it; `false` if nobody can be asked.
    ///
    /// # Errors
    /// If the answer is no, or the change can't be made.
    fn realm(&self, change: RealmChange) -> Result<bool, Error>;
}

/// A host that a registry redirects downloads to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DownloadHost {
    /// The repository, without a version.
    pub repository: Reference,
    /// The host.
    pub host: UnknownHost,
}

/// A line of `[[registry]]` that names the token server of a registry.
#[derive(Debug)]
#[non_exhaustive]
pub struct RealmChange {
    /// The registry, `host[:port]`.
    pub registry: String,
    /// The token server.
    pub host: UnknownHost,
    /// The configuration.
    pub edit: TextEdit,
    /// Its text with the line.
    pub after: String,
    /// What is recorded of the change.
    pub change: LastingChange,
}

/// Whom a fetcher asks, and what has been confirmed.
#[derive(Debug)]
pub(super) struct Asking {
    whom: Box<dyn AskHost>,
    kept: KeptHosts,
    /// Hosts of downloads that were confirmed and are not kept yet.
    confirmed: std::sync::Mutex<Vec<DownloadHost>>,
}

impl Asking {
    pub(super) fn new(whom: Box<dyn AskHost>, kept: KeptHosts) -> Self {
        Self {
            whom,
            kept,
            confirmed: std::sync::Mutex::default(),
        }
    }

    /// Where downloads of a repository may come from.
    pub(super) fn hosts(&self, repository: &Reference) -> Result<Vec<String>, Error> {
        let mut hosts: Vec<String> = self.kept.of(repository)?.into_iter().collect();
        let confirmed = self.confirmed.lock();
        let confirmed = confirmed.unwrap_or_else(PoisonError::into_inner);
        let own = confirmed.iter();
        let own = own.filter(|one| one.repository == repository.bare_repository());
        hosts.extend(own.map(|one| one.host.origin.clone()));
        Ok(hosts)
    }

    fn confirm(&self, asked: DownloadHost) {
        let confirmed = self.confirmed.lock();
        confirmed
            .unwrap_or_else(PoisonError::into_inner)
            .push(asked);
    }
}

impl Fetcher {
    /// The same, asking about hosts that nobody has allowed. `folder`: that of the record of trust, where answers about
    /// downloads are kept once a bundle is installed.
    #[must_use]
    pub fn asking(self, whom: Box<dyn AskHost>, folder: PathBuf) -> Self {
        let asking = Some(Asking::new(whom, KeptHosts::in_folder(&folder)));
        Self { asking, ..self }
    }

    /// Runs `work` with a client for a source; again with another client, once a person has allowed a host that the
    /// registry names.
    pub(crate) fn with_client<T>(
        &self,
        source: &Source,
        mut work: impl FnMut(&RegistryClient) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut questions = 0;
        loop {
            let error = match work(&self.client(source)?) {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            let (Source::Registry(reference), Some(host)) = (source, UnknownHost::behind(&error))
            else {
                return Err(error);
            };
            let host = host.clone();
            let allowed = questions < MAX_QUESTIONS && self.ask(reference, &host)?;
            if !allowed {
                return Err(self.with_lines(error, reference, &host));
            }
            questions = questions.saturating_add(1);
        }
    }

    /// Whether a person has allowed the host just now; `false` if nobody can be asked.
    pub(crate) fn ask(&self, reference: &Reference, host: &UnknownHost) -> Result<bool, Error> {
        let Some(asking) = &self.asking else {
            return Ok(false);
        };
        match host.role {
            HostRole::Downloads => {
                let asked = DownloadHost {
                    repository: reference.bare_repository(),
                    host: host.clone(),
                };
                let allowed = asking.whom.downloads(&asked)?;
                if allowed {
                    asking.confirm(asked);
                }
                Ok(allowed)
            }
            HostRole::TokenServer => {
                let Some((change, registries)) = self.realm_change(reference, host) else {
                    return Ok(false);
                };
                let allowed = asking.whom.realm(change)?;
                if allowed {
                    let current = self.registries.write();
                    *current.unwrap_or_else(PoisonError::into_inner) = registries;
                }
                Ok(allowed)
            }
        }
    }

    /// Keeps what was confirmed about downloads.
    ///
    /// # Errors
    /// If it can't be recorded.
    pub(crate) fn keep_confirmed(&self) -> Result<(), Error> {
        let Some(asking) = &self.asking else {
            return Ok(());
        };
        let confirmed = asking.confirmed.lock();
        let mut confirmed = confirmed.unwrap_or_else(PoisonError::into_inner);
        for one in confirmed.iter() {
            asking
                .kept
                .keep(&one.repository, &one.host, &self.environment)?;
        }
        confirmed.clear();
        Ok(())
    }

    /// Forgets what was confirmed about the downloads of a source, unless one of `used` is of the same repository.
    pub(crate) fn forget(&self, source: &str, used: Vec<String>) -> Result<(), Error> {
        match &self.asking {
            Some(asking) => asking.kept.forget(source, used),
            None => Ok(()),
        }
    }
}

impl Fetcher {
    /// The change of the configuration that names a token server; `None` where no line of it helps.
    fn realm_change(
        &self,
        reference: &Reference,
        host: &UnknownHost,
    ) -> Option<(RealmChange, Registries)> {
        let place = std::path::absolute(self.configuration.as_ref()?).ok()?;
        let edit = TextEdit::of(&place).ok()?;
        let folder = place.parent().unwrap_or(Path::new("/"));
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let of = (reference, self.flags.plain_http);
        let (after, registries) = realm_line::added(&edit, &place, &folder, of, host)?;
        let registry = reference.registry();
        let what = format!("let {} have the credentials for {registry}", host.origin);
        let change = RealmChange {
            registry,
            host: host.clone(),
            change: LastingChange::new("install", what, &place),
            edit,
            after,
        };
        Some((change, registries))
    }

    /// The error with the lines that would allow the host.
    pub(crate) fn with_lines(
        &self,
        error: Error,
        reference: &Reference,
        host: &UnknownHost,
    ) -> Error {
        let Some(place) = &self.configuration else {
            return error;
        };
        let registries = self.registries.read();
        let registries = registries.unwrap_or_else(PoisonError::into_inner);
        let table = registries.of(reference, self.flags.plain_http);
        let key = match (host.role, table) {
            // What is there would have to be changed, or has other hosts in it.
            (HostRole::TokenServer, Some(table)) if table.realm.is_some() => return error,
            (HostRole::TokenServer, _) => realm_line::realm(host),
            (_, Some(table)) if !table.redirects_to.is_empty() => return error,
            _ => format!("redirects_to = [\"{}\"]", host.origin),
        };
        let lines = realm_line::lines(table, &reference.registry(), &key);
        let Some(table) = table else {
            return error.lines_for(place, lines);
        };
        let mut error = error.hint(format!(
            "as far as you agree, add this line to the `[[registry]]` of {} in {}",
            table.host,
            place.display()
        ));
        error.lines = Some(lines);
        error
    }
}
