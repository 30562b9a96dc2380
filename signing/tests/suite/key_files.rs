//! Keys in files of other programs: PEM and DER, version 1 and 2, plain and encrypted.

use std::path::Path;

use pkcs8::EncodePrivateKey as _;
use pkcs8::der::SecretDocument;
use secrecy::{ExposeSecret as _, SecretString};
use toolward_signing::key::{PublicKey, SigningKey, is_encrypted};
use toolward_signing::secrecy;

use crate::support::key;
use crate::tools::openssl;

fn passphrase(text: &str) -> SecretString {
    SecretString::from(text)
}

fn der(pem: &SecretString) -> Vec<u8> {
    let (_, document) = SecretDocument::from_pem(pem.expose_secret()).unwrap();
    document.as_bytes().to_vec()
}

fn version_2(number: u8) -> ed25519_dalek::pkcs8::KeypairBytes {
    let public = *key(number).public().as_bytes();
    ed25519_dalek::pkcs8::KeypairBytes {
        secret_key: [number; 32],
        public_key: Some(ed25519_dalek::pkcs8::PublicKeyBytes(public)),
    }
}

#[test]
fn signing_keys_of_all_forms_are_imported() {
    let secret = passphrase("correct horse");
    let plain = key(1).to_pem().unwrap();
    let encrypted = key(1).to_encrypted_pem(&secret).unwrap();
    let newer = version_2(1);
    let forms = [
        plain.expose_secret().as_bytes().to_vec(),
        der(&plain),
        newer
            .to_pkcs8_pem(pkcs8::LineEnding::LF)
            .unwrap()
            .as_bytes()
            .to_vec(),
        newer.to_pkcs8_der().unwrap().as_bytes().to_vec(),
    ];
    for form in &forms {
        assert!(!is_encrypted(form));
        let imported = SigningKey::import(form, None).unwrap();
        assert_eq!(imported.public(), key(1).public());
        // A key from any form is written as version 1.
        assert_eq!(
            imported.to_pem().unwrap().expose_secret(),
            plain.expose_secret()
        );
    }
    for form in [
        encrypted.expose_secret().as_bytes().to_vec(),
        der(&encrypted),
    ] {
        assert!(is_encrypted(&form));
        let code = |passphrase: Option<&SecretString>| {
            SigningKey::import(&form, passphrase).unwrap_err().code()
        };
        assert_eq!(code(None), "passphrase-needed");
        assert_eq!(code(Some(&passphrase("wrong"))), "passphrase-wrong");
        let imported = SigningKey::import(&form, Some(&secret)).unwrap();
        assert_eq!(imported.public(), key(1).public());
    }
}

#[test]
fn what_holds_no_signing_key_is_not_imported() {
    let good = der(&key(1).to_pem().unwrap());
    let public = key(1).public();
    let mut two = good.clone();
    two.extend(&good);
    let mut other = good.clone();
    other[11] ^= 1;
    for bytes in [
        Vec::new(),
        b"text".to_vec(),
        public.to_der(),
        public.to_pem().unwrap().into_bytes(),
        good[..good.len() - 1].to_vec(),
        two,
        other,
        vec![0x30; 20_000],
        vec![7; 32],
    ] {
        assert!(!is_encrypted(&bytes));
        let refusal = SigningKey::import(&bytes, None).unwrap_err();
        assert_eq!(refusal.code(), "key-invalid", "{bytes:?}");
    }
}

#[test]
fn public_keys_are_exported_and_imported_in_both_forms() {
    let public = key(1).public();
    assert_eq!(PublicKey::import(&public.to_der()).unwrap(), public);
    let pem = public.to_pem().unwrap();
    assert_eq!(PublicKey::import(pem.as_bytes()).unwrap(), public);
    let mut long = public.to_der();
    long.push(0);
    let private = key(1).to_pem().unwrap();
    for bytes in [
        &long[..],
        &[],
        &[0xff; 44],
        private.expose_secret().as_bytes(),
    ] {
        let refusal = PublicKey::import(bytes).unwrap_err();
        assert_eq!(refusal.code(), "key-invalid", "{bytes:?}");
    }
    let mut weak = public.to_der();
    weak.truncate(12);
    weak.extend([1]);
    weak.resize(44, 0);
    assert_eq!(PublicKey::import(&weak).unwrap_err().code(), "key-weak");
}

#[test]
fn der_files_of_openssl_are_imported() {
    let folder = tempfile::tempdir().unwrap();
    let at: &Path = folder.path();
    let pem = key(1).to_pem().unwrap();
    std::fs::write(at.join("plain.pem"), pem.expose_secret()).unwrap();
    for (arguments, encrypted) in [
        (&["pkey", "-outform", "DER"][..], false),
        (
            &[
                "pkcs8",
                "-topk8",
                "-outform",
                "DER",
                "-v2",
                "aes-256-cbc",
                "-passout",
                "pass:x",
            ],
            true,
        ),
    ] {
        let arguments = [arguments, &["-in", "plain.pem", "-out", "key.der"]].concat();
        let Some(output) = openssl(at, &arguments) else {
            return;
        };
        assert!(output.status.success(), "{output:?}");
        let bytes = std::fs::read(at.join("key.der")).unwrap();
        assert_eq!(is_encrypted(&bytes), encrypted);
        let imported = SigningKey::import(&bytes, Some(&passphrase("x"))).unwrap();
        assert_eq!(imported.public(), key(1).public());
    }
    let exported = ["pkey", "-in", "plain.pem", "-pubout", "-outform", "DER"];
    let output = openssl(at, &exported).unwrap();
    assert_eq!(output.stdout, key(1).public().to_der());
}
