//! `[[registry]]` of the configuration: how to reach a registry, or one repository in it. Flags of
//! a command add to these settings for one call.

pub(crate) mod kept_hosts;

use std::path::{Path, PathBuf};

use toolward_host::secrets;
use toolward_registry::secrecy::SecretString;
use toolward_registry::{ClientOptions, Login, Reference, Source, bare_registry, check_origin};
use toolward_support::fields::{Content, Field, Fields, Span};

use crate::file;
use crate::settings::{self, SettingError, expected, no_others};
use crate::{Code, Environment, Error, Result};

/// The most tables, and the most origins in one table.
const MAX_TABLES: usize = 100;

/// Largest file of certificates, in bytes.
const MAX_FILE_BYTES: usize = 1024 * 1024;

/// The tables of a configuration.
///
/// ```
/// use toolward_operator::config::ConfigFile;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("toolward.toml");
/// std::fs::write(&path, "[[registry]]\nhost = \"registry.example\"\nca_file = \"ca.pem\"\n")?;
/// let registries = ConfigFile::read(&path)?.registries()?;
/// let reference = "oci://registry.example:443/acme/notes".parse()?;
/// let found = registries.of(&reference, false).ok_or("no table")?;
/// assert_eq!(found.ca_file.as_deref(), Some(folder.path().canonicalize()?.join("ca.pem").as_path()));
/// let other = "oci://registry.example:5000/acme/notes".parse()?;
/// assert!(registries.of(&other, false).is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Registries(pub(crate) Vec<RegistrySettings>);

/// How to reach one registry. A missing key has the same default as a registry without a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RegistrySettings {
    /// `host[:port]`, as in references.
    pub host: String,
    /// The repository to which this applies; by default all repositories without a separate table.
    pub repository: Option<String>,
    /// A PEM file of certificate authorities for this registry only, in addition to the system's.
    pub ca_file: Option<PathBuf>,
    /// The user's name and the source of the password.
    pub login: Option<(String, PasswordSource)>,
    /// The origin of the token server to which the credentials may be sent.
    pub realm: Option<String>,
    /// Origins to which downloads may be redirected. For a registry on this machine they may have
    /// any address, for other registries only global unicast addresses.
    pub redirects_to: Vec<String>,
    /// Whether the registry uses plain http. Only allowed for a registry on this machine.
    pub plain_http: bool,
}

/// The source from which a password is read when it is needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PasswordSource {
    /// An environment variable.
    Env(String),
    /// A file that only its user can access.
    File(PathBuf),
}

impl Registries {
    /// Returns the table for a repository, otherwise the table for its registry. `plain`: whether
    /// registries on this machine use plain http even without `plain_http`.
    pub fn of(&self, reference: &Reference, plain: bool) -> Option<&RegistrySettings> {
        let registry = reference.registry();
        let plain = |one: &RegistrySettings| plain || one.plain_http;
        let own = self.find(&registry, Some(reference.repository()), plain);
        own.or_else(|| self.find(&registry, None, plain))
    }

    /// Returns the table for a source. A file has none; an `https` address has the table of its
    /// host.
    pub fn of_source(&self, source: &Source, plain: bool) -> Option<&RegistrySettings> {
        match source {
            Source::Registry(reference) => self.of(reference, plain),
            Source::Web(url) => {
                let host = url.host_str()?;
                let host = match url.port() {
                    Some(port) => format!("{host}:{port}"),
                    None => host.to_owned(),
                };
                self.find(&host, None, |_| url.scheme() == "http")
            }
            _ => None,
        }
    }

    /// Returns the table for a host. If two tables differ only in whether they write the default
    /// port, returns the table that is spelled like `host`.
    fn find(
        &self,
        host: &str,
        repository: Option<&str>,
        plain: impl Fn(&RegistrySettings) -> bool,
    ) -> Option<&RegistrySettings> {
        let own = self.0.iter().filter(|one| {
            let plain = plain(one);
            one.repository.as_deref() == repository
                && bare_registry(&one.host, plain) == bare_registry(host, plain)
        });
        own.min_by_key(|one| one.host != host)
    }
}

impl RegistrySettings {
    /// Adds these settings to a client's options. If the options have a login for the registry, the
    /// table's login is not used. `registry` is the name in the reference; `None` for a client of a
    /// web server, which never logs in.
    pub(crate) fn apply(
        &self,
        options: &mut ClientOptions,
        environment: &Environment,
        registry: Option<&str>,
    ) -> Result<()> {
        if let Some(path) = &self.ca_file {
            options.authorities.push(file::read(path, MAX_FILE_BYTES)?);
        }
        if let (Some((username, password)), Some(registry)) = (&self.login, registry)
            && !options.credentials.has(registry, options.plain_http)
        {
            let login = Login::new(username, self.password(password, environment)?)?;
            let credentials = std::mem::take(&mut options.credentials);
            options.credentials = credentials.with(registry, login);
        }
        if let (Some(origin), Some(registry)) = (&self.realm, registry) {
            let realm = (registry.to_owned(), origin.clone());
            options.realms.push(realm);
        }
        let redirects = match is_loopback(&self.host) {
            true => &mut options.local_redirects,
            false => &mut options.redirects,
        };
        redirects.extend(self.redirects_to.iter().cloned());
        Ok(())
    }

    fn password(&self, source: &PasswordSource, environment: &Environment) -> Result<SecretString> {
        let missing = |what: String| {
            let message = format!("the password of `[[registry]]` {}: {what}", self.host);
            Error::usage(Code::RegistryPasswordMissing, message)
                .hint("set what its `password` names, in `[[registry]]` of toolward.toml")
        };
        let text = match source {
            PasswordSource::Env(name) => (environment.variable)(name)
                .filter(|value| !value.is_empty())
                .ok_or_else(|| missing(format!("the environment variable {name} is not set")))?,
            PasswordSource::File(path) => {
                let value = secrets::read_file(path).map_err(|error| missing(error.to_string()))?;
                let value = value
                    .ok_or_else(|| missing(format!("{}: there is no such file", path.display())))?;
                let text = std::str::from_utf8(value.bytes());
                text.map_err(|_| missing(format!("{}: not UTF-8", path.display())))?
                    .to_owned()
            }
        };
        Ok(text.into())
    }
}

/// The tables of a configuration in `folder`.
pub(crate) fn settings(text: &str, path: &Path, folder: &Path) -> Result<Registries> {
    settings::REGISTRY.read(text, path, |tables| read_all(tables, folder))
}

fn read_all(tables: &Field<'_, Span>, folder: &Path) -> Result<Registries, SettingError> {
    let items = tables.items().map_err(|problem| {
        SettingError::from(problem).hint("write `[[registry]]`, with two brackets")
    })?;
    if items.len() > MAX_TABLES {
        let message = format!("expected at most {MAX_TABLES} of `[[registry]]`");
        return Err(SettingError::new(message, &tables.at));
    }
    let mut all: Vec<RegistrySettings> = Vec::new();
    for item in items {
        let at = item.at.clone();
        let one = read(&item.named("[[registry]]"), folder)?;
        let twice = |other: &RegistrySettings| {
            let plain = one.plain_http || other.plain_http;
            bare_registry(&other.host, plain) == bare_registry(&one.host, plain)
                && other.repository == one.repository
        };
        if all.iter().any(twice) {
            let name = one.repository.as_ref();
            let name = name.map_or(one.host.clone(), |name| format!("{}/{name}", one.host));
            let message = format!("expected one `[[registry]]` for {name}, found two");
            return Err(SettingError::new(message, &at).hint("put both into one table"));
        }
        all.push(one);
    }
    Ok(Registries(all))
}

fn read(table: &Field<'_, Span>, folder: &Path) -> Result<RegistrySettings, SettingError> {
    let mut fields = Fields::of(table)?.by_key();
    let field = fields.required("host")?;
    let host = field.text()?;
    let spelled = |repository: &str| format!("oci://{host}/{repository}").parse::<Reference>();
    let is_host = |found: &Reference| found.registry() == host;
    if host.contains('/') || !spelled("x").is_ok_and(|found| is_host(&found)) {
        return Err(expected(&field, "HOST or HOST:PORT, as references have it"));
    }
    let mut read = RegistrySettings {
        host: host.to_owned(),
        ..RegistrySettings::default()
    };
    if let Some(field) = fields.take("repository") {
        let name = field.text()?;
        let is_name = |found: Reference| is_host(&found) && found.repository() == name;
        if !spelled(name).is_ok_and(is_name) {
            return Err(expected(&field, "a repository, such as team/tools"));
        }
        read.repository = Some(name.to_owned());
    }
    if let Some(field) = fields.take("plain_http") {
        read.plain_http = field.boolean()?;
        if read.plain_http && !is_loopback(host) {
            let hint =
                "plain http is for a registry on this machine: 127.0.0.1, [::1] or localhost";
            return Err(expected(&field, "false for a registry elsewhere").hint(hint));
        }
    }
    if let Some(field) = fields.take("ca_file") {
        read.ca_file = Some(settings::path(&field, folder)?);
    }
    let plain = read.plain_http;
    let origin = |field: &Field<'_, Span>| match check_origin(field.text()?, plain) {
        Ok(()) => Ok(field.text()?.to_owned()),
        Err(_) => Err(expected(
            field,
            "an origin, https://HOST or https://HOST:PORT",
        )),
    };
    if let Some(field) = fields.take("realm") {
        read.realm = Some(origin(&field)?);
    }
    if let Some(field) = fields.take("redirects_to") {
        let items = field.items()?;
        if items.len() > MAX_TABLES {
            return Err(expected(&field, "a list of at most 100 origins"));
        }
        read.redirects_to = items.iter().map(origin).collect::<Result<_, _>>()?;
    }
    read.login = login(&mut fields, folder)?;
    no_others(fields)?;
    Ok(read)
}

/// Reads `username` and `password`, which must both be present or both be missing. The password
/// itself is never in the file.
fn login(
    fields: &mut Fields<'_, Span>,
    folder: &Path,
) -> Result<Option<(String, PasswordSource)>, SettingError> {
    let (username, password) = (fields.take("username"), fields.take("password"));
    let (username, password) = match (username, password) {
        (None, None) => return Ok(None),
        (Some(username), Some(password)) => (username, password),
        (Some(one), None) | (None, Some(one)) => {
            let message = "expected `username` and `password`, found one of them";
            return Err(SettingError::new(message, &one.at));
        }
    };
    let name = username.text()?;
    if Login::new(name, String::new().into()).is_err() {
        return Err(expected(&username, "a user's name without a colon"));
    }
    let forms = "write password = { env = \"VARIABLE\" } or password = { file = \"PATH\" }";
    if !matches!(password.content, Content::Mapping(_)) {
        // The value may be the password itself, so the message does not quote it.
        let message = "expected `password` to say where the password is";
        return Err(SettingError::new(message, &password.at).hint(forms));
    }
    let mut source = Fields::of(&password)?.by_key();
    let (env, file) = (source.take("env"), source.take("file"));
    no_others(source)?;
    let source = match (env, file) {
        (Some(env), None) => {
            let name = env.text()?;
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err(expected(&env, "the name of a variable"));
            }
            PasswordSource::Env(name.to_owned())
        }
        (None, Some(file)) => PasswordSource::File(settings::path(&file, folder)?),
        _ => {
            let message = "expected `password` to have `env` or `file`";
            return Err(SettingError::new(message, &password.at).hint(forms));
        }
    };
    Ok(Some((name.to_owned(), source)))
}

fn is_loopback(host: &str) -> bool {
    let reference = format!("oci://{host}/x").parse::<Reference>();
    reference.is_ok_and(|reference| reference.is_loopback())
}

#[cfg(test)]
mod tests;
