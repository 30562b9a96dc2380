//! Names and passwords for registries, as Docker's `config.json` has them. The caller reads the file; only
//! the entry for exactly this registry is ever used.

use std::collections::HashMap;
use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use zeroize::Zeroizing;

use crate::address::spellings;
use crate::failure::Failure;
use crate::helper::{self, Helpers};
use crate::login::{Login, invalid};
use crate::text::quoted;

/// How large a credentials file may be, in bytes.
const MAX_FILE: usize = 1024 * 1024;

/// Logins by registry, and programs that know more of them, if they are switched on.
#[derive(Clone, Default)]
pub struct Credentials {
    logins: HashMap<String, Login>,
    /// By registry; `None` is for all others.
    helpers: HashMap<Option<String>, String>,
    run: Helpers,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("registries", &self.logins.len())
            .field("helpers", &self.helpers.len())
            .finish_non_exhaustive()
    }
}

/// The file. Other keys are other programs' business.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Config {
    #[serde(default)]
    auths: HashMap<String, Entry>,
    #[serde(default)]
    creds_store: Option<String>,
    #[serde(default)]
    cred_helpers: HashMap<String, String>,
}

#[derive(Deserialize)]
struct Entry {
    auth: Option<Zeroed>,
    username: Option<String>,
    password: Option<Zeroed>,
}

/// A text that is wiped when it is dropped.
struct Zeroed(Zeroizing<String>);

impl<'de> Deserialize<'de> for Zeroed {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self(Zeroizing::new(text)))
    }
}

impl Credentials {
    /// None.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds a login for a registry, `host[:port]`.
    #[must_use]
    pub fn with(mut self, registry: impl Into<String>, login: Login) -> Self {
        self.logins.insert(registry.into(), login);
        self
    }

    /// Whether there is a login for a registry, `host[:port]`, with its default port or without. `plain`: whether
    /// this machine is spoken to in plain http.
    #[must_use]
    pub fn has(&self, registry: &str, plain: bool) -> bool {
        self.known(registry, plain).is_some()
    }

    fn known(&self, registry: &str, plain: bool) -> Option<&Login> {
        let spellings = spellings(registry, plain);
        spellings.iter().find_map(|one| self.logins.get(one))
    }

    /// Reads Docker's `config.json`: `auths`, and, where `helpers` switches them on, `credHelpers` and
    /// `credsStore`.
    ///
    /// # Errors
    /// [`Reason::CredentialsInvalid`](crate::Reason::CredentialsInvalid), without anything of the file in it but a registry's name.
    pub fn from_docker_config(bytes: &[u8], helpers: Helpers) -> Result<Self, Failure> {
        if bytes.len() > MAX_FILE {
            return Err(invalid().expected("at most 1 MiB"));
        }
        // What serde says of it might quote a password.
        let config: Config = serde_json::from_slice(bytes).map_err(|error| {
            invalid()
                .expected("a JSON object with `auths`")
                .found(format!("a mistake at {}:{}", error.line(), error.column()))
        })?;
        let mut logins = HashMap::new();
        for (key, entry) in config.auths {
            if let Some(login) = entry.login().map_err(|failure| failure.at(quoted(&key)))? {
                logins.insert(registry_of(&key).to_owned(), login);
            }
        }
        let own = config
            .cred_helpers
            .into_iter()
            .map(|(key, name)| (Some(registry_of(&key).to_owned()), name));
        let store = config.creds_store.map(|name| (None, name));
        Ok(Self {
            logins,
            helpers: own.chain(store).collect(),
            run: helpers,
        })
    }

    /// The login for a registry. A helper for this registry goes before the file, as Docker has it; without
    /// leave to run helpers, only the file is looked at.
    pub(crate) async fn login(
        &self,
        registry: &str,
        plain: bool,
    ) -> Result<Option<Login>, Failure> {
        let spelled = spellings(registry, plain);
        let own = spelled
            .iter()
            .find_map(|one| Some((one, self.helpers.get(&Some(one.clone()))?)));
        // A helper is asked for what its login was made for.
        let asked: Vec<_> = match (own, self.helpers.get(&None)) {
            (Some(own), _) => vec![own],
            (None, Some(store)) => spelled.iter().map(|one| (one, store)).collect(),
            (None, None) => Vec::new(),
        };
        for (registry, name) in asked {
            if let Some(login) = helper::login(&self.run, name, registry).await? {
                return Ok(Some(login));
            }
        }
        Ok(self.known(registry, plain).cloned())
    }
}

impl Entry {
    fn login(self) -> Result<Option<Login>, Failure> {
        if let Some(Zeroed(auth)) = self.auth.filter(|auth| !auth.0.is_empty()) {
            let wrong = || invalid().expected("`auth` as name:password in base64");
            let pair = BASE64_STANDARD
                .decode(auth.as_bytes())
                .map(Zeroizing::new)
                .map_err(|_| wrong())?;
            // Docker pads with zeros.
            let pair = std::str::from_utf8(&pair)
                .map_err(|_| wrong())?
                .trim_end_matches('\0');
            let (username, password) = pair.split_once(':').ok_or_else(wrong)?;
            return Login::new(username, password.to_owned().into()).map(Some);
        }
        match (self.username, self.password) {
            (Some(username), Some(Zeroed(password))) => {
                Login::new(username, password.as_str().to_owned().into()).map(Some)
            }
            // An empty entry says that a helper knows.
            (None, None) => Ok(None),
            _ => Err(invalid().expected("both `username` and `password`")),
        }
    }
}

/// The registry that a key of `auths` is about: with `https://` and a slash at the end, or without.
fn registry_of(key: &str) -> &str {
    let bare = key.strip_prefix("https://").unwrap_or(key);
    bare.strip_suffix('/').unwrap_or(bare)
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::ExposeSecret as _;

    async fn found(config: &str, registry: &str) -> Option<(String, String)> {
        let credentials = Credentials::from_docker_config(config.as_bytes(), Helpers::off());
        let credentials = credentials.unwrap();
        let login = credentials.login(registry, false).await.unwrap()?;
        Some((
            login.username().to_owned(),
            login.password().expose_secret().to_owned(),
        ))
    }

    #[tokio::test]
    async fn a_login_is_for_exactly_the_registry_that_it_is_written_for() {
        let config = r#"{"auths":{
            "a.example":{"auth":"bmFtZTp3b3I6ZA=="},
            "https://b.example:5000/":{"username":"n","password":"w"},
            "c.example":{}},"currentContext":"x"}"#;
        let some = |name: &str, word: &str| Some((name.to_owned(), word.to_owned()));
        assert_eq!(found(config, "a.example").await, some("name", "wor:d"));
        assert_eq!(found(config, "a.example:443").await, some("name", "wor:d"));
        assert_eq!(found(config, "b.example:5000").await, some("n", "w"));
        let config = r#"{"auths":{"a.example:443":{"username":"n","password":"w"}}}"#;
        assert_eq!(found(config, "a.example").await, some("n", "w"));
        for other in [
            "b.example",
            "a.example:5000",
            "x.a.example",
            "c.example",
            "A.EXAMPLE",
            "",
        ] {
            assert_eq!(found(config, other).await, None, "{other}");
        }
    }

    #[test]
    fn a_wrong_file_is_refused_without_telling_its_secrets() {
        for config in [
            r#"{"auths":{"a":{"auth":"aHVudGVyMg=="}}}"#,
            r#"{"auths":{"a":{"auth":"hunter2!"}}}"#,
            r#"{"auths":{"a":{"password":"hunter2"}}}"#,
            r#"{"auths":{"a":{"username":"a:b","password":"hunter2"}}}"#,
            r#"{"auths":"hunter2"}"#,
            r#"{"auths":{"a":{"auth":["hunter2"]}}}"#,
            "hunter2",
        ] {
            let failure = Credentials::from_docker_config(config.as_bytes(), Helpers::off());
            let failure = failure.expect_err(config);
            assert_eq!(failure.code(), "registry-credentials-invalid", "{config}");
            let told = format!("{failure} {failure:?}");
            assert!(
                !told.contains("hunter2") && !told.contains("aHVud"),
                "{told}"
            );
        }
    }

    #[test]
    fn no_password_is_shown() {
        let login = Login::new("name", "hunter2".to_owned().into()).unwrap();
        let credentials = Credentials::none().with("a.example", login.clone());
        let told = format!("{login:?} {credentials:?}");
        assert!(!told.contains("hunter2"), "{told}");
    }
}
