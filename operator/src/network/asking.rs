//! Asks a person about hosts that a registry names and that are not allowed yet: hosts to which
//! downloads are redirected, and token servers. Confirmed hosts are stored: a download host for its
//! repository, a token server as a line of `[[registry]]`. A token server that the operator wrote
//! is never changed.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use toolward_registry::{HostRole, Reference, RegistryClient, Source, UnknownHost};
use toolward_support::fields::{Field, Fields, parse_toml};
use toolward_support::helper::lock;

use super::Fetcher;
use crate::lasting_changes::{LastingChange, TextEdit, inserted};
use crate::registries::kept_hosts::DownloadHosts;
use crate::registries::{Registries, RegistrySettings, settings};
use crate::{Error, Result};

/// Most questions about one source, since a registry could name another host each time.
pub(crate) const MAX_QUESTIONS: usize = 3;

/// Asks the person at the terminal.
pub trait AskHost: Debug + Send + Sync {
    /// Asks whether downloads of a repository may come from a host. Returns `false` if no person
    /// can be asked.
    ///
    /// # Errors
    /// If the answer is no.
    fn downloads(&self, asked: &DownloadHost) -> Result<bool>;

    /// Shows a change of the configuration that lets a token server have the credentials for a
    /// registry, and makes it. Returns `false` if no person can be asked.
    ///
    /// # Errors
    /// If the answer is no, or the change can't be made.
    fn realm(&self, change: RealmChange) -> Result<bool>;
}

/// A host to which a registry redirects downloads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DownloadHost {
    /// The repository, without a version.
    pub repository: Reference,
    /// The host.
    pub host: UnknownHost,
}

/// A line of `[[registry]]` that names the token server of a registry.
#[derive(Debug)]
pub struct RealmChange {
    /// The registry, `host[:port]`.
    pub registry: String,
    /// The token server.
    pub host: UnknownHost,
    /// The configuration.
    pub edit: TextEdit,
    /// The configuration's text with the line.
    pub after: String,
    /// The recorded change.
    pub change: LastingChange,
}

/// The person that a fetcher asks, and the hosts that were confirmed.
#[derive(Debug)]
pub(super) struct HostQuestions {
    person: Box<dyn AskHost>,
    kept: DownloadHosts,
    /// Confirmed download hosts that are not stored yet.
    confirmed: Mutex<Vec<DownloadHost>>,
}

impl HostQuestions {
    /// The origins that a person confirmed for downloads of a repository.
    pub(super) fn hosts(&self, repository: &Reference) -> Result<Vec<String>> {
        let mut hosts: Vec<String> = self.kept.of(repository)?.into_iter().collect();
        let repository = repository.bare_repository();
        let confirmed = lock(&self.confirmed);
        let own = confirmed.iter().filter(|one| one.repository == repository);
        hosts.extend(own.map(|one| one.host.origin.clone()));
        Ok(hosts)
    }
}

impl Fetcher {
    /// Returns the same fetcher, which asks about hosts that are not allowed yet. Answers about
    /// downloads are stored in `folder`, the folder of the record of trust, once a bundle is
    /// installed.
    #[must_use]
    pub fn asking(self, person: Box<dyn AskHost>, folder: PathBuf) -> Self {
        let asking = Some(HostQuestions {
            person,
            kept: DownloadHosts::in_folder(&folder),
            confirmed: Mutex::default(),
        });
        Self { asking, ..self }
    }

    /// Runs `work` with a client for a source. If a person then allows a host that the registry
    /// names, runs `work` again with another client.
    pub(crate) fn with_client<T>(
        &self,
        source: &Source,
        mut work: impl FnMut(&RegistryClient) -> Result<T>,
    ) -> Result<T> {
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

    /// Asks a person to allow the host. Returns `false` if no person can be asked.
    pub(crate) fn ask(&self, reference: &Reference, host: &UnknownHost) -> Result<bool> {
        let Some(asking) = &self.asking else {
            return Ok(false);
        };
        match host.role {
            HostRole::Downloads => {
                let asked = DownloadHost {
                    repository: reference.bare_repository(),
                    host: host.clone(),
                };
                let allowed = asking.person.downloads(&asked)?;
                if allowed {
                    lock(&asking.confirmed).push(asked);
                }
                Ok(allowed)
            }
            HostRole::TokenServer => {
                let Some((change, registries)) = self.realm_change(reference, host) else {
                    return Ok(false);
                };
                let allowed = asking.person.realm(change)?;
                if allowed {
                    let current = self.registries.write();
                    *current.unwrap_or_else(PoisonError::into_inner) = registries;
                }
                Ok(allowed)
            }
        }
    }

    /// Stores the confirmed download hosts.
    ///
    /// # Errors
    /// If they can't be recorded.
    pub(crate) fn keep_confirmed(&self) -> Result<()> {
        let Some(asking) = &self.asking else {
            return Ok(());
        };
        let mut confirmed = lock(&asking.confirmed);
        for DownloadHost { repository, host } in confirmed.iter() {
            asking.kept.keep(repository, host, &self.environment)?;
        }
        confirmed.clear();
        Ok(())
    }

    /// Forgets the download hosts of a source, unless a source in `used` is in the same repository.
    pub(crate) fn forget(&self, source: &str, used: Vec<String>) -> Result<()> {
        match &self.asking {
            Some(asking) => asking.kept.forget(source, used),
            None => Ok(()),
        }
    }

    /// Returns the change of the configuration that names a token server; `None` if no line helps.
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
        let (after, registries) = with_realm(&edit, &place, &folder, of, host)?;
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

    /// Returns the error with the lines that would allow the host, or unchanged if no lines can be
    /// added.
    pub(crate) fn with_lines(
        &self,
        error: Error,
        reference: &Reference,
        host: &UnknownHost,
    ) -> Error {
        let Some(place) = &self.configuration else {
            return error;
        };
        let registries = self.registries();
        let table = registries.of(reference, self.flags.plain_http);
        let key = match (host.role, table) {
            // The operator's own line would have to change.
            (HostRole::TokenServer, Some(table)) if table.realm.is_some() => return error,
            (HostRole::TokenServer, _) => realm_line(host),
            (_, Some(table)) if !table.redirects_to.is_empty() => return error,
            _ => format!("redirects_to = [\"{}\"]", host.origin),
        };
        let lines = registry_lines(table, &reference.registry(), &key);
        let Some(table) = table else {
            return error.lines_for(place, lines, None);
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

/// Returns the lines to write for a registry: a table, or a line for the existing table.
fn registry_lines(table: Option<&RegistrySettings>, registry: &str, key: &str) -> String {
    match table {
        Some(_) => format!("{key}\n"),
        None => format!("[[registry]]\nhost = \"{registry}\"\n{key}\n"),
    }
}

/// `realm = "…"`.
fn realm_line(host: &UnknownHost) -> String {
    format!("realm = \"{}\"", host.origin)
}

/// Returns the text of a configuration with the line for a token server, and the registries in this
/// text. Returns `None` if the table for the registry names a token server already, or if the line
/// can't be added.
fn with_realm(
    edit: &TextEdit,
    path: &Path,
    folder: &Path,
    (reference, plain): (&Reference, bool),
    host: &UnknownHost,
) -> Option<(String, Registries)> {
    let mut wanted = settings(&edit.text, path, folder).ok()?;
    let line = realm_line(host);
    let after = match wanted.of(reference, plain).cloned() {
        Some(table) => {
            let number = wanted.0.iter().position(|one| *one == table)?;
            let own = wanted.0.get_mut(number)?;
            if own.realm.replace(host.origin.clone()).is_some() {
                return None;
            }
            inserted(&edit.text, end_of_host(&edit.text, number)?, &line)?
        }
        None => {
            let host_name = reference.registry();
            let text = edit.appended(&registry_lines(None, &host_name, &line));
            wanted.0.push(RegistrySettings {
                host: host_name,
                realm: Some(host.origin.clone()),
                ..RegistrySettings::default()
            });
            text
        }
    };
    // The line must be in this table, and change nothing else.
    let found = settings(&after, path, folder).ok()?;
    (found == wanted).then_some((after, found))
}

/// Returns the offset of the last byte of the value of `host` in the `[[registry]]` with this
/// number.
fn end_of_host(text: &str, number: usize) -> Option<usize> {
    let document = parse_toml(text).ok()?;
    let tables = Field::new("[[registry]]", document.get("registry")?);
    let table = tables.items().ok()?.into_iter().nth(number)?;
    let mut fields = Fields::of(&table).ok()?.by_key();
    let host = fields.required("host").ok()?;
    host.at.end.checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> UnknownHost {
        let Ok(Source::Web(url)) = Source::parse("https://auth.example/token") else {
            panic!("not an address");
        };
        UnknownHost::of(HostRole::TokenServer, &url).unwrap()
    }

    /// Returns the changed text of a configuration for `oci://r.example/team/a`.
    fn changed(text: &str) -> Option<String> {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("toolward.toml");
        std::fs::write(&path, text).unwrap();
        let edit = TextEdit::of(&path).unwrap();
        let reference = "oci://r.example/team/a:1".parse().unwrap();
        let (after, found) = with_realm(&edit, &path, home.path(), (&reference, false), &host())?;
        let table = found.of(&reference, false).unwrap();
        assert_eq!(table.realm.as_deref(), Some("https://auth.example"));
        Some(after)
    }

    #[test]
    fn the_line_stands_in_the_table_that_counts_for_the_repository() {
        let line = "realm = \"https://auth.example\"\n";
        let table = "[[registry]]\nhost = \"r.example\"\n";
        assert_eq!(changed("").unwrap(), format!("{table}{line}"));
        let other = "[[registry]]\nhost = \"r.example:444\"";
        assert_eq!(
            changed(other).unwrap(),
            format!("{other}\n\n{table}{line}"),
            "a last line without an end"
        );
        let own = "[[registry]]\nhost = \"r.example:443\" # mine\nrepository = \"team/a\"\n";
        let text = format!("{table}{own}[trust]\nmax_age_days = 9\n");
        let after = own.replace("# mine\n", &format!("# mine\n{line}"));
        assert_eq!(changed(&text).unwrap(), text.replace(own, &after));
        let windows = format!("{table}[defaults]\n").replace('\n', "\r\n");
        let both = format!("{table}{line}[defaults]\n").replace('\n', "\r\n");
        assert_eq!(changed(&windows).unwrap(), both);
    }

    #[test]
    fn what_the_operator_wrote_of_a_token_server_is_not_changed() {
        for text in [
            "[[registry]]\nhost = \"r.example\"\nrealm = \"https://login.example\"\n",
            "[[registry]]\nhost = \"r.example\"\n[[registry]]\nhost = \"r.example\"\n\
             repository = \"team/a\"\nrealm = \"https://r.example\"\n",
            // A line does not help in this form.
            "registry = [{ host = \"r.example\" }]\n",
            "registry = [{ host = \"x.example\" }]\n",
            "[[registry]]\nhost = \"r.example\"\nunknown = 1\n",
        ] {
            assert_eq!(changed(text), None, "{text}");
        }
    }
}
