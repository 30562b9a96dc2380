//! Private keys in files, with the passphrase that is given or asked for.

use std::cell::OnceCell;

use toolward_author::{AuthorError, keys};
use toolward_signing::key::{SigningKey, is_encrypted_pem};
use toolward_signing::secrecy::{ExposeSecret as _, SecretString};

use crate::prelude::*;

#[derive(Debug, Default, Args)]
pub(crate) struct Passphrase {
    /// Read the key's passphrase from the first line of this file
    #[arg(long, value_name = "FILE")]
    pub(crate) passphrase_file: Option<PathBuf>,

    /// Read the key's passphrase from the first line of this open descriptor
    #[arg(long, value_name = "NUMBER", conflicts_with = "passphrase_file")]
    pub(crate) passphrase_fd: Option<u32>,

    /// What was read: a pipe can't be read again for the next key.
    #[arg(skip)]
    known: OnceCell<SecretString>,
}

impl Passphrase {
    /// The passphrase in this file, or else asked for.
    pub(crate) fn of_file(passphrase_file: Option<PathBuf>) -> Self {
        Self {
            passphrase_file,
            ..Self::default()
        }
    }

    /// The passphrase, if a file or descriptor was named.
    pub(crate) fn given(&self) -> Result<Option<SecretString>> {
        let path = match (&self.passphrase_file, self.passphrase_fd) {
            (Some(path), _) => path.clone(),
            // Opening the descriptor's name copies it without `unsafe`.
            (None, Some(number)) => PathBuf::from(format!("/dev/fd/{number}")),
            (None, None) => return Ok(None),
        };
        if let Some(known) = self.known.get() {
            return Ok(Some(known.clone()));
        }
        let text = read_secret(&path)?;
        let line = text.expose_secret().lines().next().unwrap_or_default();
        if line.is_empty() {
            let message = format!("{}: the first line is empty", path.display());
            return Err(Failure::usage(Code::PassphraseEmpty, message));
        }
        let known = SecretString::from(line.to_owned());
        Ok(Some(self.known.get_or_init(|| known).clone()))
    }

    /// The passphrase of this key, if it is encrypted.
    pub(crate) fn of_key(&self, path: &Path, encrypted: bool) -> Result<Option<SecretString>> {
        let prompt = || format!("Passphrase of {}", path.display());
        let secret = encrypted.then(|| self.obtain(&prompt(), false));
        secret.transpose()
    }

    /// The passphrase, asked for on the terminal unless it was given.
    pub(crate) fn obtain(&self, prompt: &str, confirm: bool) -> Result<SecretString> {
        if let Some(passphrase) = self.given()? {
            return Ok(passphrase);
        }
        let mut question = dialoguer::Password::new().with_prompt(prompt);
        if confirm {
            question =
                question.with_confirmation("The same again", "That was not the same; once more");
        }
        question.interact().map(SecretString::from).map_err(|_| {
            let message = "a passphrase is needed, and there is no terminal to ask on";
            Failure::usage(Code::PassphraseMissing, message)
                .hint("give it with --passphrase-file or --passphrase-fd")
        })
    }
}

/// Reads a private key, and its passphrase where it has one.
pub(crate) fn read(path: &Path, passphrase: &Passphrase, context: &Context) -> Result<SigningKey> {
    parse(path, &read_secret(path)?, passphrase, context)
}

/// A private key whose file was read already.
pub(crate) fn parse(
    path: &Path,
    pem: &SecretString,
    passphrase: &Passphrase,
    context: &Context,
) -> Result<SigningKey> {
    let secret = passphrase.of_key(path, is_encrypted_pem(pem.expose_secret()))?;
    let key = SigningKey::from_pem(pem.expose_secret(), secret.as_ref());
    let key = key.map_err(|refusal| failed(refusal).in_file(path))?;
    if key.public().is_example() {
        context.warning("this is the example key; its private half is public, so signing with it proves nothing");
    }
    warn_if_readable(path, context);
    Ok(key)
}

/// Reads a small file that may hold a secret.
pub(crate) fn read_secret(path: &Path) -> Result<SecretString> {
    keys::read_text(path).map_err(|error| Failure::unreadable(path, error))
}

/// Why a key was not written.
pub(crate) fn unwritten(error: AuthorError) -> Failure {
    let AuthorError::Exists { path } = &error else {
        return authored(error);
    };
    let path = path.display();
    let message = format!("{path}: this exists already, and keys are not overwritten");
    Failure::with_code(Kind::Failed, error.code(), message)
        .hint("name another place, or move the old key away yourself")
}

fn warn_if_readable(path: &Path, context: &Context) {
    use std::os::unix::fs::PermissionsExt as _;
    let readable = std::fs::metadata(path)
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o077 != 0);
    let example = path
        .file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with("INSECURE"));
    if readable && !example {
        let path = path.display();
        context.warning(format!(
            "{path}: others can read this private key; chmod 600 it"
        ));
    }
}
