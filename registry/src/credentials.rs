//! Names and passwords for registries: from the caller, from Docker's `config.json`, or from
//! credential helpers. The caller reads the file. An entry is used only for exactly its registry,
//! with or without the default port. Helpers are programs that know passwords. They run only if the
//! caller allows it, for a limited time, and only from folders that the caller names.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use secrecy::SecretString;
use serde::Deserialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use zeroize::Zeroizing;

use crate::address::spellings;
use crate::failure::{Failure, FailureReason, quoted};

/// How large a credentials file may be, in bytes.
const MAX_FILE: usize = 1024 * 1024;

/// Logins by registry, and credential helpers that know further logins, if helpers are allowed.
#[derive(Clone, Default)]
pub struct RegistryCredentials {
    logins: HashMap<String, Login>,
    /// The helper's name by registry; the key `None` is for all other registries.
    helpers: HashMap<Option<String>, String>,
    run: Helpers,
}

impl fmt::Debug for RegistryCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegistryCredentials")
            .field("registries", &self.logins.len())
            .field("helpers", &self.helpers.len())
            .finish_non_exhaustive()
    }
}

/// Docker's `config.json`. Keys for other purposes are ignored.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct DockerConfig {
    auths: HashMap<String, DockerLogin>,
    creds_store: Option<String>,
    cred_helpers: HashMap<String, String>,
}

#[derive(Deserialize)]
struct DockerLogin {
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

impl RegistryCredentials {
    /// No credentials.
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds a login for a registry, `host[:port]`.
    #[must_use]
    pub fn with(mut self, registry: impl Into<String>, login: Login) -> Self {
        self.logins.insert(registry.into(), login);
        self
    }

    /// Whether a login exists for a registry, `host[:port]`, spelled with or without the default
    /// port. `plain` states whether plain http is used with this machine.
    pub fn has(&self, registry: &str, plain: bool) -> bool {
        self.known(registry, plain).is_some()
    }

    fn known(&self, registry: &str, plain: bool) -> Option<&Login> {
        let spellings = spellings(registry, plain);
        spellings.iter().find_map(|one| self.logins.get(one))
    }

    /// Reads Docker's `config.json`: `auths`, and, if `helpers` allows them, `credHelpers` and
    /// `credsStore`.
    ///
    /// # Errors
    /// [`FailureReason::CredentialsInvalid`], which contains nothing from the file except a registry's
    /// name.
    pub fn from_docker_config(bytes: &[u8], helpers: Helpers) -> Result<Self, Failure> {
        if bytes.len() > MAX_FILE {
            return Err(invalid().expected("at most 1 MiB"));
        }
        // serde's message is not shown, since it might quote a password.
        let config: DockerConfig = serde_json::from_slice(bytes).map_err(|error| {
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

    /// The login for a registry. As with Docker, helpers take precedence over the file: the helper
    /// for this registry, otherwise the general one. If helpers are not allowed, only the file is
    /// used.
    pub(crate) async fn login(
        &self,
        registry: &str,
        plain: bool,
    ) -> Result<Option<Login>, Failure> {
        let spelled = spellings(registry, plain);
        let own = spelled
            .iter()
            .find_map(|one| Some((one, self.helpers.get(&Some(one.clone()))?)));
        // A helper stores a login under one spelling of the registry, so the general helper is
        // asked for each spelling.
        let asked: Vec<_> = match (own, self.helpers.get(&None)) {
            (Some(own), _) => vec![own],
            (None, Some(store)) => spelled.iter().map(|one| (one, store)).collect(),
            (None, None) => Vec::new(),
        };
        for (registry, name) in asked {
            if let Some(login) = self.run.login(name, registry).await? {
                return Ok(Some(login));
            }
        }
        Ok(self.known(registry, plain).cloned())
    }
}

impl DockerLogin {
    fn login(self) -> Result<Option<Login>, Failure> {
        if let Some(Zeroed(auth)) = self.auth.filter(|auth| !auth.0.is_empty()) {
            let wrong = || invalid().expected("`auth` as name:password in base64");
            let pair = BASE64_STANDARD
                .decode(auth.as_bytes())
                .map(Zeroizing::new)
                .map_err(|_| wrong())?;
            // Docker pads the pair with zero bytes.
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
            // An empty entry means that a helper knows the login.
            (None, None) => Ok(None),
            _ => Err(invalid().expected("both `username` and `password`")),
        }
    }
}

/// The registry of a key of `auths`, which may start with `https://` and end with a slash.
fn registry_of(key: &str) -> &str {
    let bare = key.strip_prefix("https://").unwrap_or(key);
    bare.strip_suffix('/').unwrap_or(bare)
}

/// A name and a password.
#[derive(Clone)]
pub struct Login {
    username: String,
    password: SecretString,
}

impl Login {
    /// Makes a login, after checking the name.
    ///
    /// # Errors
    /// [`FailureReason::CredentialsInvalid`] for an empty name, or a name with a colon or a control
    /// character (RFC 7617, section 2).
    pub fn new(username: impl Into<String>, password: SecretString) -> Result<Self, Failure> {
        let username = username.into();
        if username.is_empty() || username.contains(':') || username.chars().any(char::is_control) {
            return Err(invalid().expected("a user name without a colon"));
        }
        Ok(Self { username, password })
    }

    /// The user name.
    pub fn username(&self) -> &str {
        &self.username
    }

    pub(crate) fn password(&self) -> &SecretString {
        &self.password
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("username", &self.username)
            .finish_non_exhaustive()
    }
}

pub(crate) fn invalid() -> Failure {
    Failure::new(FailureReason::CredentialsInvalid)
}

/// How many bytes of a helper's answer are read.
const MAX_ANSWER: u64 = 256 * 1024;

/// Whether credential helpers run, from which folders, and for how long.
#[derive(Clone, Debug, Default)]
pub struct Helpers(Option<(Vec<PathBuf>, Duration)>);

impl Helpers {
    /// No helper runs.
    pub fn off() -> Self {
        Self(None)
    }

    /// Runs `docker-credential-NAME` from the first of these folders that has it, and stops it
    /// after `time`. Relative folders are skipped.
    pub fn on(folders: Vec<PathBuf>, time: Duration) -> Self {
        Self(Some((folders, time)))
    }

    /// The login of a registry from a helper; `None` if helpers are off or the helper has no login.
    async fn login(&self, name: &str, registry: &str) -> Result<Option<Login>, Failure> {
        let Some((folders, time)) = &self.0 else {
            return Ok(None);
        };
        let failed = || Failure::new(FailureReason::CredentialHelper).at(quoted(name));
        let named = !name.is_empty()
            && name.len() <= 64
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        if !named {
            return Err(failed().expected("a name of letters, digits and dashes"));
        }
        let file = format!("docker-credential-{name}");
        let program = folders
            .iter()
            .map(|folder| folder.join(&file))
            // A relative folder would depend on the current directory, so it is skipped.
            .find(|program| program.is_absolute() && program.is_file())
            .ok_or_else(|| failed().expected(format!("`{file}` in a folder of programs")))?;
        let run = async {
            let mut child = tokio::process::Command::new(&program)
                .arg("get")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .kill_on_drop(true)
                .spawn()?;
            if let Some(mut input) = child.stdin.take() {
                // A write error is ignored: the answer of a helper that doesn't read its input
                // shows the mistake.
                let _ = input.write_all(format!("{registry}\n").as_bytes()).await;
            }
            let mut answer = Zeroizing::new(Vec::new());
            if let Some(output) = child.stdout.take() {
                output.take(MAX_ANSWER).read_to_end(&mut answer).await?;
            }
            Ok::<_, std::io::Error>((child.wait().await?, answer))
        };
        let (status, answer) = tokio::time::timeout(*time, run)
            .await
            .map_err(|_| failed().expected(format!("an answer within {time:?}")))?
            .map_err(|error| failed().caused_by(error))?;
        if !status.success() {
            // This message of the protocol means that the helper has no login.
            if answer.starts_with(b"credentials not found") {
                return Ok(None);
            }
            return Err(failed().found(status.to_string()));
        }
        let answer: HelperAnswer = serde_json::from_slice(&answer)
            .map_err(|_| failed().expected("a JSON object with `Username` and `Secret`"))?;
        if answer.username == "<token>" {
            return Err(failed()
                .expected("name and password")
                .found("an identity token"));
        }
        Login::new(answer.username, answer.secret.into())
            .map(Some)
            .map_err(|failure| failure.at(quoted(name)))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct HelperAnswer {
    username: String,
    secret: String,
}

#[cfg(test)]
mod credentials_tests {
    use super::*;
    use secrecy::ExposeSecret as _;

    async fn found(config: &str, registry: &str) -> Option<(String, String)> {
        let credentials =
            RegistryCredentials::from_docker_config(config.as_bytes(), Helpers::off());
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
            let failure =
                RegistryCredentials::from_docker_config(config.as_bytes(), Helpers::off());
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
        let credentials = RegistryCredentials::none().with("a.example", login.clone());
        let told = format!("{login:?} {credentials:?}");
        assert!(!told.contains("hunter2"), "{told}");
    }
}

#[cfg(test)]
mod helper_tests {
    use super::*;
    use secrecy::ExposeSecret as _;
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::Instant;

    /// These tests run one at a time. A program can't be run while it is open for writing, and a
    /// process that another test starts could inherit the open file for a moment.
    static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

    fn helper(folder: &std::path::Path, script: &str) {
        let path = folder.join("docker-credential-test");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
    }

    fn on(folder: &std::path::Path, time: Duration) -> Helpers {
        Helpers::on(vec![folder.to_owned()], time)
    }

    const LONG: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn a_helper_is_run_only_when_switched_on() {
        let _turn = TURN.lock().await;
        let folder = tempfile::tempdir().unwrap();
        let ran = folder.path().join("ran");
        helper(
            folder.path(),
            &format!(
                "read r; echo \"$1 $r\" > {}; echo '{{\"Username\":\"n\",\"Secret\":\"w\"}}'",
                ran.display()
            ),
        );
        let off = Helpers::off().login("test", "a.example").await.unwrap();
        assert!(off.is_none() && !ran.exists());
        let found = on(folder.path(), LONG)
            .login("test", "a.example")
            .await
            .unwrap();
        assert_eq!(found.unwrap().password().expose_secret(), "w");
        assert_eq!(std::fs::read_to_string(ran).unwrap(), "get a.example\n");
    }

    #[tokio::test]
    async fn a_helper_that_hangs_is_stopped() {
        let _turn = TURN.lock().await;
        let folder = tempfile::tempdir().unwrap();
        helper(folder.path(), "exec sleep 60");
        let started = Instant::now();
        let helpers = on(folder.path(), Duration::from_millis(200));
        let failure = helpers.login("test", "a").await;
        assert_eq!(failure.unwrap_err().code(), "registry-credential-helper");
        assert!(started.elapsed() < Duration::from_secs(20));
    }

    #[tokio::test]
    async fn a_helper_that_fails_tells_no_secret() {
        let _turn = TURN.lock().await;
        let folder = tempfile::tempdir().unwrap();
        helper(folder.path(), "echo hunter2; exit 3");
        let failure = on(folder.path(), LONG)
            .login("test", "a")
            .await
            .unwrap_err();
        assert!(!format!("{failure} {failure:?}").contains("hunter2"));
        helper(folder.path(), "echo '{\"Secret\":\"hunter2\"}'");
        let failure = on(folder.path(), LONG)
            .login("test", "a")
            .await
            .unwrap_err();
        assert!(!format!("{failure} {failure:?}").contains("hunter2"));
        helper(
            folder.path(),
            "echo credentials not found in native keychain; exit 1",
        );
        let none = on(folder.path(), LONG).login("test", "a").await.unwrap();
        assert!(none.is_none());
    }

    #[tokio::test]
    async fn a_helpers_name_can_not_lead_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["", "../x", "a/b", "a b", "missing"] {
            let failure = on(folder.path(), LONG).login(name, "a").await.unwrap_err();
            assert_eq!(failure.code(), "registry-credential-helper", "{name}");
        }
        let relative = Helpers::on(vec!["relative".into()], LONG);
        assert!(relative.login("test", "a").await.is_err());
    }
}
