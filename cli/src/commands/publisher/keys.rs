//! `publisher keys`: makes and shows signing keys. Also reads private keys from files, with a
//! passphrase that is given or asked for.

use std::cell::OnceCell;

use toolward_author::AuthorError;
use toolward_author::keys;
use toolward_signing::key::{PublicKey, SigningKey, is_encrypted, is_encrypted_pem};
use toolward_signing::secrecy::{ExposeSecret as _, SecretString};

use crate::prelude::*;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a key pair: OUT, which only you can read, and OUT's public half
    /// next to it, ending in .pub.pem
    New(NewKey),
    /// Show what a key file holds: kind and key id, never the key
    Show(ShowKey),
    /// Write a private key of another program in the form that every host and
    /// OpenSSL read: PKCS#8 version 1, PEM
    Import(ImportKey),
    /// Write the public half of a private key
    #[command(visible_alias = "public")]
    Export(ExportKey),
    /// Write an encrypted copy of a private key
    Encrypt(EncryptKey),
}

impl Command {
    pub(super) fn run(&self, context: &Context) -> Result {
        match self {
            Self::New(new) => new.run(context),
            Self::Show(show) => show.run(context),
            Self::Import(import) => import.run(context),
            Self::Export(export) => export.run(context),
            Self::Encrypt(encrypt) => encrypt.run(context),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct NewKey {
    /// Where the private key goes; nothing is overwritten
    #[arg(short, long, value_name = "OUT")]
    out: PathBuf,
    /// Ask for a passphrase and encrypt the private key with it
    #[arg(long)]
    encrypt: bool,
    #[command(flatten)]
    passphrase: Passphrase,
}

impl NewKey {
    fn run(&self, context: &Context) -> Result {
        // Checked first: before a person types a passphrase, and before half of the pair is
        // written.
        let public = keys::public_half(&self.out).map_err(unwritten)?;
        let secret = match self.passphrase.given()? {
            None if self.encrypt => {
                Some(self.passphrase.obtain("Passphrase for the new key", true)?)
            }
            given => given,
        };
        let key = SigningKey::generate().map_err(invalid)?;
        write_pair((&self.out, &public), &key, secret.as_ref(), context)?;
        context.note("Give the public key to those who are to trust your bundles; keep the private one to yourself.");
        Ok(())
    }
}

#[derive(Debug, Args)]
pub(crate) struct ImportKey {
    /// The private key: PKCS#8, PEM or DER, encrypted or not
    key: PathBuf,
    /// Where the private key goes; nothing is overwritten
    #[arg(short, long, value_name = "OUT")]
    out: PathBuf,
    /// Encrypt the private key
    ///
    /// With the passphrase in --new-passphrase-file, or else with one that a person is asked for.
    #[arg(long)]
    encrypt: bool,
    /// Read the passphrase for the encryption from the first line of this file
    #[arg(long, value_name = "FILE", requires = "encrypt")]
    new_passphrase_file: Option<PathBuf>,
    #[command(flatten)]
    passphrase: Passphrase,
}

impl ImportKey {
    fn run(&self, context: &Context) -> Result {
        let path = &self.key;
        let public = keys::public_half(&self.out).map_err(unwritten)?;
        let bytes = keys::read(path).map_err(|error| Failure::unreadable(path, error))?;
        let secret = self.passphrase.of_key(path, is_encrypted(&bytes))?;
        let key = SigningKey::import(&bytes, secret.as_ref());
        let key = key.map_err(|refusal| invalid_file(path, refusal))?;
        let new = Passphrase::of_file(self.new_passphrase_file.clone());
        let obtain = || new.obtain("Passphrase for the new file", true);
        let secret = self.encrypt.then(obtain).transpose()?;
        write_pair((&self.out, &public), &key, secret.as_ref(), context)
    }
}

/// Writes a private key and its public half, and shows their paths.
fn write_pair(
    (private, public): (&Path, &Path),
    key: &SigningKey,
    secret: Option<&SecretString>,
    context: &Context,
) -> Result {
    let pem = match secret {
        Some(secret) => key.to_encrypted_pem(secret),
        None => key.to_pem(),
    };
    let pem = pem.map_err(invalid)?;
    let public_pem = key.public().to_pem().map_err(invalid)?;
    keys::write_private(private, &pem).map_err(unwritten)?;
    keys::write_public(public, public_pem.as_bytes()).map_err(|error| {
        // The private key is useful alone, and this command never deletes a key.
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
    let lines = format!("private key  {private}\npublic key   {public}\nkey id       {key_id}");
    context.result(&value, lines)
}

#[derive(Debug, Args)]
pub(crate) struct ShowKey {
    /// A private or public key (PEM file)
    key: PathBuf,
    #[command(flatten)]
    passphrase: Passphrase,
}

impl ShowKey {
    fn run(&self, context: &Context) -> Result {
        let path = &self.key;
        let pem = read_secret(path)?;
        let text = pem.expose_secret();
        let (kind, public) = if text.contains("-----BEGIN PUBLIC KEY-----") {
            let public = PublicKey::from_pem(text);
            let public = public.map_err(|refusal| invalid_file(path, refusal))?;
            ("public", public)
        } else {
            let kind = match is_encrypted_pem(text) {
                true => "private, encrypted",
                false => "private",
            };
            let key = parse(path, &pem, &self.passphrase, context)?;
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
        context.result(&value, lines)
    }
}

#[derive(Debug, Args)]
pub(crate) struct ExportKey {
    /// The private key (PEM file)
    key: PathBuf,
    /// Where the public key goes [default: standard output]
    #[arg(short, long, value_name = "OUT", required_if_eq("der", "true"))]
    out: Option<PathBuf>,
    /// Write DER instead of PEM
    #[arg(long)]
    der: bool,
    #[command(flatten)]
    passphrase: Passphrase,
}

impl ExportKey {
    fn run(&self, context: &Context) -> Result {
        let public = read(&self.key, &self.passphrase, context)?.public();
        let pem = public.to_pem().map_err(invalid)?;
        let (out, key_id) = (self.out.as_deref(), public.key_id());
        let value = json!({ "ok": true, "public": out, "key_id": key_id, "pem": pem });
        let Some(out) = out else {
            return context.result(&value, pem.trim_end());
        };
        let bytes = match self.der {
            true => public.to_der(),
            false => pem.into_bytes(),
        };
        keys::write_public(out, &bytes).map_err(unwritten)?;
        context.result(&value, out.display())
    }
}

#[derive(Debug, Args)]
pub(crate) struct EncryptKey {
    /// The private key, not encrypted yet (PEM file)
    key: PathBuf,
    /// Where the encrypted key goes; nothing is overwritten
    #[arg(short, long, value_name = "OUT")]
    out: PathBuf,
    #[command(flatten)]
    passphrase: Passphrase,
}

impl EncryptKey {
    fn run(&self, context: &Context) -> Result {
        let (path, out) = (&self.key, &self.out);
        keys::free(out).map_err(unwritten)?;
        let pem = read_secret(path)?;
        if is_encrypted_pem(pem.expose_secret()) {
            let message = format!("{}: this key is encrypted already", path.display());
            return Err(Failure::usage(Code::KeyEncrypted, message));
        }
        let key = parse(path, &pem, &self.passphrase, context)?;
        let prompt = "Passphrase for the encrypted key";
        let secret = self.passphrase.obtain(prompt, true)?;
        let pem = key.to_encrypted_pem(&secret).map_err(invalid)?;
        keys::write_private(out, &pem).map_err(unwritten)?;
        let key_id = key.public().key_id();
        let value = json!({ "ok": true, "private": out, "key_id": key_id, "encrypted": true });
        context.result(&value, out.display())?;
        let path = path.display();
        context.note(format!(
            "{path} is still there, without encryption; remove it yourself"
        ));
        Ok(())
    }
}

#[derive(Debug, Default, Args)]
pub(crate) struct Passphrase {
    /// Read the key's passphrase from the first line of this file
    #[arg(long, value_name = "FILE")]
    pub(crate) passphrase_file: Option<PathBuf>,

    /// Read the key's passphrase from the first line of this open descriptor
    #[arg(long, value_name = "NUMBER", conflicts_with = "passphrase_file")]
    pub(crate) passphrase_fd: Option<u32>,

    /// The passphrase that was read, since a pipe can't be read again for the next key.
    #[arg(skip)]
    known: OnceCell<SecretString>,
}

impl Passphrase {
    /// A passphrase that is read from this file. Without a file, a person is asked for it.
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
            // Opening the descriptor's path copies the descriptor without `unsafe`.
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

    /// The passphrase of this key, if the key is encrypted.
    pub(crate) fn of_key(&self, path: &Path, encrypted: bool) -> Result<Option<SecretString>> {
        let prompt = || format!("Passphrase of {}", path.display());
        let secret = encrypted.then(|| self.obtain(&prompt(), false));
        secret.transpose()
    }

    /// Returns the passphrase; asks for it on the terminal unless it was given.
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

/// Reads a private key. If the key is encrypted, also reads its passphrase.
pub(crate) fn read(path: &Path, passphrase: &Passphrase, context: &Context) -> Result<SigningKey> {
    parse(path, &read_secret(path)?, passphrase, context)
}

/// Parses a private key whose file was read already.
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

/// The failure for a key that was not written.
pub(crate) fn unwritten(error: AuthorError) -> Failure {
    let AuthorError::Exists(path) = &error else {
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
