//! Credential helpers: programs that know passwords, run only if the caller said so, for a bounded time, and
//! found only in folders that the caller named.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde::Deserialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use zeroize::Zeroizing;

use crate::failure::{Failure, Reason};
use crate::login::Login;
use crate::text::quoted;

/// How much of a helper's answer is read, in bytes.
const MAX_ANSWER: u64 = 256 * 1024;

/// Whether helpers are run, and where they are.
#[derive(Clone, Debug, Default)]
pub struct Helpers(Option<Running>);

#[derive(Clone, Debug)]
struct Running {
    folders: Vec<PathBuf>,
    time: Duration,
}

impl Helpers {
    /// None is run.
    #[must_use]
    pub fn off() -> Self {
        Self(None)
    }

    /// `docker-credential-NAME` is run, from the first of these folders that has it, and stopped after
    /// `time`.
    #[must_use]
    pub fn on(folders: Vec<PathBuf>, time: Duration) -> Self {
        Self(Some(Running { folders, time }))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    username: String,
    secret: String,
}

/// What the helper knows of a registry; `None` if helpers are off, or it knows nothing.
pub(crate) async fn login(
    helpers: &Helpers,
    name: &str,
    registry: &str,
) -> Result<Option<Login>, Failure> {
    let Some(running) = &helpers.0 else {
        return Ok(None);
    };
    let failed = || Failure::new(Reason::CredentialHelper).at(quoted(name));
    let named = !name.is_empty()
        && name.len() <= 64
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if !named {
        return Err(failed().expected("a name of letters, digits and dashes"));
    }
    let file = format!("docker-credential-{name}");
    let program = running
        .folders
        .iter()
        .map(|folder| folder.join(&file))
        // A relative folder would be one of the current directory.
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
            // A helper that doesn't read says so by what it answers.
            let _ = input.write_all(format!("{registry}\n").as_bytes()).await;
        }
        let mut answer = Zeroizing::new(Vec::new());
        if let Some(output) = child.stdout.take() {
            output.take(MAX_ANSWER).read_to_end(&mut answer).await?;
        }
        Ok::<_, std::io::Error>((child.wait().await?, answer))
    };
    let (status, answer) = tokio::time::timeout(running.time, run)
        .await
        .map_err(|_| failed().expected(format!("an answer within {:?}", running.time)))?
        .map_err(|error| failed().caused_by(error))?;
    if !status.success() {
        // What it prints may be anything; only this much of the protocol is looked for.
        if answer.starts_with(b"credentials not found") {
            return Ok(None);
        }
        return Err(failed().found(status.to_string()));
    }
    let answer: Answer = serde_json::from_slice(&answer)
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

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::ExposeSecret as _;
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::Instant;

    /// A program that is being written can't be run, and another test that starts its
    /// own just then holds it open for a moment: these tests take turns.
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
        let off = login(&Helpers::off(), "test", "a.example").await.unwrap();
        assert!(off.is_none() && !ran.exists());
        let found = login(&on(folder.path(), LONG), "test", "a.example")
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
        let failure = login(&on(folder.path(), Duration::from_millis(200)), "test", "a").await;
        assert_eq!(failure.unwrap_err().code(), "registry-credential-helper");
        assert!(started.elapsed() < Duration::from_secs(20));
    }

    #[tokio::test]
    async fn a_helper_that_fails_tells_no_secret() {
        let _turn = TURN.lock().await;
        let folder = tempfile::tempdir().unwrap();
        helper(folder.path(), "echo hunter2; exit 3");
        let failure = login(&on(folder.path(), LONG), "test", "a")
            .await
            .unwrap_err();
        assert!(!format!("{failure} {failure:?}").contains("hunter2"));
        helper(folder.path(), "echo '{\"Secret\":\"hunter2\"}'");
        let failure = login(&on(folder.path(), LONG), "test", "a")
            .await
            .unwrap_err();
        assert!(!format!("{failure} {failure:?}").contains("hunter2"));
        helper(
            folder.path(),
            "echo credentials not found in native keychain; exit 1",
        );
        let none = login(&on(folder.path(), LONG), "test", "a").await.unwrap();
        assert!(none.is_none());
    }

    #[tokio::test]
    async fn a_helpers_name_can_not_lead_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["", "../x", "a/b", "a b", "missing"] {
            let failure = login(&on(folder.path(), LONG), name, "a")
                .await
                .unwrap_err();
            assert_eq!(failure.code(), "registry-credential-helper", "{name}");
        }
        let relative = Helpers::on(vec!["relative".into()], LONG);
        assert!(login(&relative, "test", "a").await.is_err());
    }
}
