//! `keys`: make and look at signing keys.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;
use toolward_signing::key::{PublicKey, SigningKey};
use toolward_signing::secrecy::ExposeSecret as _;

use crate::failure::{Exit, Failure, Kind};
use crate::keyfile::{self, Passphrase};
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a key pair: OUT, which only you can read, and OUT's public half
    /// beside it, ending in .pub.pem
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
    /// Write a private key of another program's as one that every host and
    /// OpenSSL read: PKCS#8 version 1, PEM
    Import {
        /// The private key: PKCS#8, PEM or DER, encrypted or not
        key: PathBuf,
        /// Where the private key goes; nothing is overwritten
        #[arg(short, long, value_name = "OUT")]
        out: PathBuf,
        /// Encrypt it with the passphrase of --new-passphrase-file, or with one
        /// that is asked for
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

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    match &arguments.command {
        Command::New {
            out,
            encrypt,
            passphrase,
        } => new(out, *encrypt, passphrase, output),
        Command::Show { key, passphrase } => show(key, passphrase, output),
        Command::Import {
            key,
            out,
            encrypt,
            new_passphrase_file,
            passphrase,
        } => {
            let new = Passphrase::of_file(new_passphrase_file.clone());
            import(key, out, encrypt.then_some(&new), passphrase, output)
        }
        Command::Export {
            key,
            out,
            der,
            passphrase,
        } => public(key, out.as_deref(), *der, passphrase, output),
        Command::Encrypt {
            key,
            out,
            passphrase,
        } => encrypt(key, out, passphrase, output),
    }?;
    Ok(Exit::Fine)
}

fn new(
    out: &Path,
    encrypt: bool,
    passphrase: &Passphrase,
    output: &mut Output,
) -> Result<(), Failure> {
    let public_path = public_path(out);
    // Before anybody types a passphrase, and before half of a pair is written.
    for path in [out, &public_path] {
        if path.symlink_metadata().is_ok() {
            return Err(keyfile::exists(path));
        }
    }
    let secret = match passphrase.given()? {
        Some(secret) => Some(secret),
        None if encrypt => Some(passphrase.obtain("Passphrase for the new key", true)?),
        None => None,
    };
    let key = SigningKey::generate().map_err(|refusal| failed(&refusal))?;
    let pem = match &secret {
        Some(secret) => key.to_encrypted_pem(secret),
        None => key.to_pem(),
    }
    .map_err(|refusal| failed(&refusal))?;
    let public = key.public();
    let public_pem = public.to_pem().map_err(|refusal| failed(&refusal))?;
    keyfile::write_private(out, &pem)?;
    if let Err(failure) = keyfile::write_public(&public_path, public_pem.as_bytes()) {
        // The private key alone is of use, and deleting a key is not ours to do.
        return Err(failure.hint(format!(
            "the private key is in {}; `toolward keys export` writes its public half",
            out.display()
        )));
    }
    let key_id = public.key_id();
    if output.json() {
        return output.value(&json!({
            "ok": true, "private": out, "public": public_path,
            "key_id": key_id, "encrypted": secret.is_some(),
        }));
    }
    output.line(format!("private key  {}", out.display()))?;
    output.line(format!("public key   {}", public_path.display()))?;
    output.line(format!("key id       {key_id}"))?;
    output.note("Give the public key to those who are to trust your bundles; keep the private one to yourself.");
    Ok(())
}

fn show(path: &Path, passphrase: &Passphrase, output: &mut Output) -> Result<(), Failure> {
    let pem = keyfile::read_secret(path)?;
    let text = pem.expose_secret();
    let (kind, public) = if text.contains("-----BEGIN PUBLIC KEY-----") {
        let public = PublicKey::from_pem(text).map_err(|refusal| {
            let failure = failed(&refusal);
            let message = format!("{}: {}", path.display(), failure.message);
            failure.saying(message)
        })?;
        ("public", public)
    } else {
        let encrypted = toolward_signing::key::is_encrypted_pem(text);
        let kind = if encrypted {
            "private, encrypted"
        } else {
            "private"
        };
        (
            kind,
            keyfile::parse(path, &pem, passphrase, output)?.public(),
        )
    };
    let key_id = public.key_id();
    let example = public.is_example();
    if output.json() {
        return output.value(&json!({
            "ok": true, "path": path, "kind": kind, "algorithm": "ed25519",
            "key_id": key_id, "example": example,
        }));
    }
    output.line(format!("kind       {kind}, Ed25519"))?;
    output.line(format!("key id     {key_id}"))?;
    if example {
        output.line("example    yes: its private half is public; trust nothing that it signed")?;
    }
    Ok(())
}

fn import(
    path: &Path,
    out: &Path,
    encrypt: Option<&Passphrase>,
    passphrase: &Passphrase,
    output: &mut Output,
) -> Result<(), Failure> {
    let public_path = public_path(out);
    for path in [out, &public_path] {
        if path.symlink_metadata().is_ok() {
            return Err(keyfile::exists(path));
        }
    }
    let bytes = keyfile::read_bytes(path)?;
    let secret = if toolward_signing::key::is_encrypted(&bytes) {
        Some(passphrase.obtain(&format!("Passphrase of {}", path.display()), false)?)
    } else {
        None
    };
    let key = SigningKey::import(&bytes, secret.as_ref()).map_err(|refusal| {
        let failure = failed(&refusal);
        let message = format!("{}: {}", path.display(), failure.message);
        failure.saying(message)
    })?;
    let pem = match encrypt {
        Some(new) => key.to_encrypted_pem(&new.obtain("Passphrase for the new file", true)?),
        None => key.to_pem(),
    }
    .map_err(|refusal| failed(&refusal))?;
    let public_pem = key.public().to_pem().map_err(|refusal| failed(&refusal))?;
    keyfile::write_private(out, &pem)?;
    keyfile::write_public(&public_path, public_pem.as_bytes())?;
    let key_id = key.public().key_id();
    if output.json() {
        return output.value(&json!({
            "ok": true, "private": out, "public": public_path,
            "key_id": key_id, "encrypted": encrypt.is_some(),
        }));
    }
    output.line(format!("private key  {}", out.display()))?;
    output.line(format!("public key   {}", public_path.display()))?;
    output.line(format!("key id       {key_id}"))
}

fn public(
    path: &Path,
    out: Option<&Path>,
    der: bool,
    passphrase: &Passphrase,
    output: &mut Output,
) -> Result<(), Failure> {
    let public = keyfile::read(path, passphrase, output)?.public();
    let pem = public.to_pem().map_err(|refusal| failed(&refusal))?;
    if let Some(out) = out {
        let bytes = if der {
            public.to_der()
        } else {
            pem.clone().into_bytes()
        };
        keyfile::write_public(out, &bytes)?;
    }
    if output.json() {
        return output.value(&json!({
            "ok": true, "public": out, "key_id": public.key_id(), "pem": pem,
        }));
    }
    match out {
        Some(out) => output.line(out.display()),
        None => output.line(pem.trim_end()),
    }
}

fn encrypt(
    path: &Path,
    out: &Path,
    passphrase: &Passphrase,
    output: &mut Output,
) -> Result<(), Failure> {
    if out.symlink_metadata().is_ok() {
        return Err(keyfile::exists(out));
    }
    let pem = keyfile::read_secret(path)?;
    if toolward_signing::key::is_encrypted_pem(pem.expose_secret()) {
        return Err(Failure::usage(
            "key-encrypted",
            format!("{}: this key is encrypted already", path.display()),
        ));
    }
    let key = keyfile::parse(path, &pem, passphrase, output)?;
    let secret = passphrase.obtain("Passphrase for the encrypted key", true)?;
    let pem = key
        .to_encrypted_pem(&secret)
        .map_err(|refusal| failed(&refusal))?;
    keyfile::write_private(out, &pem)?;
    if output.json() {
        return output.value(&json!({
            "ok": true, "private": out, "key_id": key.public().key_id(), "encrypted": true,
        }));
    }
    output.line(out.display())?;
    output.note(format!(
        "{} is still there, without encryption; remove it yourself",
        path.display()
    ));
    Ok(())
}

/// `a/me.pem` → `a/me.pub.pem`.
fn public_path(private: &Path) -> PathBuf {
    private.with_extension("pub.pem")
}

fn failed(refusal: &toolward_signing::Refusal) -> Failure {
    Failure::refused(refusal).of_kind(Kind::Failed)
}
