//! `publisher keys`: make and look at signing keys.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::json;
use toolward_author::keys::{self, KeyFiles};
use toolward_signing::key::{PublicKey, SigningKey, is_encrypted, is_encrypted_pem};
use toolward_signing::secrecy::{ExposeSecret as _, SecretString};

use crate::failure::{Code, Failure, Result, invalid, invalid_file};
use crate::keyfile::{self, Passphrase, unwritten};
use crate::output::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a key pair: OUT, which only you can read, and OUT's public half
    /// next to it, ending in .pub.pem
    New {
        /// Where the private key goes; nothing is overwritten
        #[arg(short, long, value_name = "OUT")]
        out: PathBuf,
        /// Ask for a passphrase and encrypt the private key with it
        #[arg(long)]
        encrypt: bool,
        #[command(flatten)]
        passphrase: Passphrase,
    },
    /// Show what a key file holds: kind and key id, never the key
    Show {
        /// A private or public key (PEM file)
        key: PathBuf,
        #[command(flatten)]
        passphrase: Passphrase,
    },
    /// Write a private key of another program in the form that every host and
    /// OpenSSL read: PKCS#8 version 1, PEM
    Import {
        /// The private key: PKCS#8, PEM or DER, encrypted or not
        key: PathBuf,
        /// Where the private key goes; nothing is overwritten
        #[arg(short, long, value_name = "OUT")]
        out: PathBuf,
        /// Encrypt it
        ///
        /// With the passphrase of --new-passphrase-file, or else asked for.
        #[arg(long)]
        encrypt: bool,
        /// Encrypt it with the first line of this file
        #[arg(long, value_name = "FILE", requires = "encrypt")]
        new_passphrase_file: Option<PathBuf>,
        #[command(flatten)]
        passphrase: Passphrase,
    },
    /// Write the public half of a private key
    #[command(visible_alias = "public")]
    Export {
        /// The private key (PEM file)
        key: PathBuf,
        /// Where to [default: standard output]
        #[arg(short, long, value_name = "OUT", required_if_eq("der", "true"))]
        out: Option<PathBuf>,
        /// As DER instead of PEM
        #[arg(long)]
        der: bool,
        #[command(flatten)]
        passphrase: Passphrase,
    },
    /// Write an encrypted copy of a private key
    Encrypt {
        /// The private key, not encrypted yet (PEM file)
        key: PathBuf,
        /// Where the encrypted key goes; nothing is overwritten
        #[arg(short, long, value_name = "OUT")]
        out: PathBuf,
        #[command(flatten)]
        passphrase: Passphrase,
    },
}

impl Command {
    pub(super) fn run(&self, output: &mut Output) -> Result {
        match self {
            Self::New {
                out,
                encrypt,
                passphrase,
            } => new(out, *encrypt, passphrase, output),
            Self::Show { key, passphrase } => show(key, passphrase, output),
            Self::Import {
                key,
                out,
                encrypt,
                new_passphrase_file,
                passphrase,
            } => {
                let new = Passphrase::of_file(new_passphrase_file.clone());
                import(key, out, encrypt.then_some(&new), passphrase, output)
            }
            Self::Export {
                key,
                out,
                der,
                passphrase,
            } => public(key, out.as_deref(), *der, passphrase, output),
            Self::Encrypt {
                key,
                out,
                passphrase,
            } => encrypt(key, out, passphrase, output),
        }
    }
}

fn new(out: &Path, encrypt: bool, passphrase: &Passphrase, output: &mut Output) -> Result {
    // Before anybody types a passphrase, and before half of a pair is written.
    let files = KeyFiles::at(out).map_err(unwritten)?;
    let secret = match passphrase.given()? {
        Some(secret) => Some(secret),
        None if encrypt => Some(passphrase.obtain("Passphrase for the new key", true)?),
        None => None,
    };
    let key = SigningKey::generate().map_err(invalid)?;
    write_pair(&files, &key, secret.as_ref(), output)?;
    output.note("Give the public key to those who are to trust your bundles; keep the private one to yourself.");
    Ok(())
}

fn import(
    path: &Path,
    out: &Path,
    encrypt: Option<&Passphrase>,
    passphrase: &Passphrase,
    output: &mut Output,
) -> Result {
    let files = KeyFiles::at(out).map_err(unwritten)?;
    let bytes = keys::read(path).map_err(|error| Failure::unreadable(path, error))?;
    let secret = passphrase.of_key(path, is_encrypted(&bytes))?;
    let key = SigningKey::import(&bytes, secret.as_ref())
        .map_err(|refusal| invalid_file(path, refusal))?;
    let secret = encrypt.map(|new| new.obtain("Passphrase for the new file", true));
    write_pair(&files, &key, secret.transpose()?.as_ref(), output)
}

/// Writes a private key and its public half, and shows where.
fn write_pair(
    files: &KeyFiles,
    key: &SigningKey,
    secret: Option<&SecretString>,
    output: &mut Output,
) -> Result {
    let pem = match secret {
        Some(secret) => key.to_encrypted_pem(secret),
        None => key.to_pem(),
    };
    let pem = pem.map_err(invalid)?;
    let public_pem = key.public().to_pem();
    let public_pem = public_pem.map_err(invalid)?;
    let (private, public) = (&files.private, &files.public);
    keys::write_private(private, &pem).map_err(unwritten)?;
    keys::write_public(public, public_pem.as_bytes()).map_err(|error| {
        // The private key alone is of use, and deleting a key is not ours to do.
        unwritten(error).hint(format!(
            "the private key is in {}; `toolward publisher keys export` writes its public half",
            private.display()
        ))
    })?;
    let key_id = key.public().key_id();
    let value = json!({
        "ok": true, "private": private, "public": public,
        "key_id": key_id, "encrypted": secret.is_some(),
    });
    let (private, public) = (private.display(), public.display());
    output.result(
        &value,
        format_args!("private key  {private}\npublic key   {public}\nkey id       {key_id}"),
    )
}

fn show(path: &Path, passphrase: &Passphrase, output: &mut Output) -> Result {
    let pem = keyfile::read_secret(path)?;
    let text = pem.expose_secret();
    let (kind, public) = if text.contains("-----BEGIN PUBLIC KEY-----") {
        let public = PublicKey::from_pem(text);
        (
            "public",
            public.map_err(|refusal| invalid_file(path, refusal))?,
        )
    } else {
        let kind = match is_encrypted_pem(text) {
            true => "private, encrypted",
            false => "private",
        };
        let key = keyfile::parse(path, &pem, passphrase, output)?;
        (kind, key.public())
    };
    let key_id = public.key_id();
    let example = public.is_example();
    let mut lines = format!("kind       {kind}, Ed25519\nkey id     {key_id}");
    if example {
        lines += "\nexample    yes: its private half is public; trust nothing that it signed";
    }
    let value = json!({
        "ok": true, "path": path.display().to_string(), "kind": kind, "algorithm": "ed25519",
        "key_id": key_id, "example": example,
    });
    output.result(&value, lines)
}

fn public(
    path: &Path,
    out: Option<&Path>,
    der: bool,
    passphrase: &Passphrase,
    output: &mut Output,
) -> Result {
    let public = keyfile::read(path, passphrase, output)?.public();
    let pem = public.to_pem().map_err(invalid)?;
    if let Some(out) = out {
        let bytes = match der {
            true => public.to_der(),
            false => pem.clone().into_bytes(),
        };
        keys::write_public(out, &bytes).map_err(unwritten)?;
    }
    let value = json!({ "ok": true, "public": out, "key_id": public.key_id(), "pem": pem });
    match out {
        Some(out) => output.result(&value, out.display()),
        None => output.result(&value, pem.trim_end()),
    }
}

fn encrypt(path: &Path, out: &Path, passphrase: &Passphrase, output: &mut Output) -> Result {
    keys::free(out).map_err(unwritten)?;
    let pem = keyfile::read_secret(path)?;
    if is_encrypted_pem(pem.expose_secret()) {
        let message = format!("{}: this key is encrypted already", path.display());
        return Err(Failure::usage(Code::KeyEncrypted, message));
    }
    let key = keyfile::parse(path, &pem, passphrase, output)?;
    let secret = passphrase.obtain("Passphrase for the encrypted key", true)?;
    let pem = key.to_encrypted_pem(&secret);
    let pem = pem.map_err(invalid)?;
    keys::write_private(out, &pem).map_err(unwritten)?;
    let key_id = key.public().key_id();
    let value = json!({ "ok": true, "private": out, "key_id": key_id, "encrypted": true });
    output.result(&value, out.display())?;
    output.note(format!(
        "{} is still there, without encryption; remove it yourself",
        path.display()
    ));
    Ok(())
}
