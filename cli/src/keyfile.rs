//! Private keys in files: reading them, with their passphrase, and writing them
//! so that only their owner can read them.

use std::cell::OnceCell;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use toolward_signing::key::{SigningKey, is_encrypted_pem};
use toolward_signing::secrecy::{ExposeSecret as _, SecretString};
use zeroize::Zeroizing;

use crate::failure::{Failure, Kind};
use crate::output::Output;

/// Longest passphrase or key file, in bytes.
const MAX_SECRET_BYTES: u64 = 64 * 1024;

#[derive(Debug, Default, Args)]
pub(crate) struct Passphrase {
    /// Read the key's passphrase from the first line of this file
    #[arg(long, value_name = "FILE")]
    pub(crate) passphrase_file: Option<PathBuf>,

    /// Read the key's passphrase from the first line of this open file
    /// descriptor
    #[arg(long, value_name = "NUMBER", conflicts_with = "passphrase_file")]
    pub(crate) passphrase_fd: Option<u32>,

    /// What was read: a pipe can't be read again for the next key.
    #[arg(skip)]
    known: OnceCell<SecretString>,
}

impl Passphrase {
    /// The one in this file, or one that is asked for.
    pub(crate) fn of_file(passphrase_file: Option<PathBuf>) -> Self {
        Self {
            passphrase_file,
            ..Self::default()
        }
    }

    /// The passphrase, if a file or descriptor was named.
    pub(crate) fn given(&self) -> Result<Option<SecretString>, Failure> {
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
            return Err(Failure::usage(
                "passphrase-empty",
                format!("{}: the first line is empty", path.display()),
            ));
        }
        let known = self
            .known
            .get_or_init(|| SecretString::from(line.to_owned()));
        Ok(Some(known.clone()))
    }

    /// The passphrase, asked for on the terminal unless it was given.
    pub(crate) fn obtain(&self, prompt: &str, confirm: bool) -> Result<SecretString, Failure> {
        if let Some(passphrase) = self.given()? {
            return Ok(passphrase);
        }
        let mut question = dialoguer::Password::new().with_prompt(prompt);
        if confirm {
            question =
                question.with_confirmation("The same again", "That was not the same; once more");
        }
        question.interact().map(SecretString::from).map_err(|_| {
            Failure::usage(
                "passphrase-missing",
                "a passphrase is needed, and there is no terminal to ask on",
            )
            .hint("give it with --passphrase-file or --passphrase-fd")
        })
    }
}

/// Reads a private key, and its passphrase where it has one.
pub(crate) fn read(
    path: &Path,
    passphrase: &Passphrase,
    output: &Output,
) -> Result<SigningKey, Failure> {
    parse(path, &read_secret(path)?, passphrase, output)
}

/// A private key whose file was read already.
pub(crate) fn parse(
    path: &Path,
    pem: &SecretString,
    passphrase: &Passphrase,
    output: &Output,
) -> Result<SigningKey, Failure> {
    let secret = if is_encrypted_pem(pem.expose_secret()) {
        Some(passphrase.obtain(&format!("Passphrase of {}", path.display()), false)?)
    } else {
        None
    };
    let key = SigningKey::from_pem(pem.expose_secret(), secret.as_ref()).map_err(|refusal| {
        let failure = Failure::new(
            Kind::Failed,
            refusal.code(),
            format!("{}: {refusal}", path.display()),
        );
        match refusal.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })?;
    if key.public().is_example() {
        output.warning("this is the example key; its private half is public, so signing with it proves nothing");
    }
    warn_if_readable(path, output);
    Ok(key)
}

/// Reads a small file that may hold a secret.
pub(crate) fn read_secret(path: &Path) -> Result<SecretString, Failure> {
    let mut text = String::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(MAX_SECRET_BYTES).read_to_string(&mut text))
        .map_err(|error| Failure::unreadable(path, error))?;
    Ok(SecretString::from(text))
}

/// Reads a small file that may hold a secret, in any form.
pub(crate) fn read_bytes(path: &Path) -> Result<Zeroizing<Vec<u8>>, Failure> {
    // At once as large as it may get: growing would leave copies behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_SECRET_BYTES as usize));
    std::fs::File::open(path)
        .and_then(|file| file.take(MAX_SECRET_BYTES).read_to_end(&mut bytes))
        .map_err(|error| Failure::unreadable(path, error))?;
    Ok(bytes)
}

/// Writes a new file that only its owner reads. Overwrites nothing.
pub(crate) fn write_private(path: &Path, pem: &SecretString) -> Result<(), Failure> {
    write(path, pem.expose_secret().as_bytes(), 0o600)
}

/// Writes a new file that everybody may read. Overwrites nothing.
pub(crate) fn write_public(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    write(path, bytes, 0o666)
}

fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<(), Failure> {
    toolward_files::write_new(path, bytes, mode).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => exists(path),
        _ => Failure::unwritable(path, error),
    })
}

/// The failure of a place that is taken.
pub(crate) fn exists(path: &Path) -> Failure {
    Failure::new(
        Kind::Failed,
        "output-exists",
        format!(
            "{}: this exists already, and keys are not overwritten",
            path.display()
        ),
    )
    .hint("name another place, or move the old key away yourself")
}

#[cfg(unix)]
fn warn_if_readable(path: &Path, output: &Output) {
    use std::os::unix::fs::PermissionsExt as _;
    let readable = std::fs::metadata(path)
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o077 != 0);
    let example = path
        .file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with("INSECURE"));
    if readable && !example {
        output.warning(format!(
            "{}: others can read this private key; chmod 600 it",
            path.display()
        ));
    }
}

#[cfg(not(unix))]
fn warn_if_readable(_path: &Path, _output: &Output) {}
