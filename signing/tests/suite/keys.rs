//! Keys that are read, and keys that are refused.

use secrecy::{ExposeSecret as _, SecretString};
use toolward_signing::key::{KeyId, PublicKey, SigningKey, is_encrypted_pem};
use toolward_signing::secrecy;
use toolward_signing::trust::{EXAMPLE_KEY_IDS, TrustStore};

use crate::support::key;

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/keys");

fn passphrase(text: &str) -> SecretString {
    SecretString::from(text)
}

#[test]
fn a_signing_key_survives_its_file_plain_and_encrypted() {
    let key = SigningKey::generate().unwrap();
    let plain = key.to_pem().unwrap();
    assert!(!is_encrypted_pem(plain.expose_secret()));
    let read = SigningKey::from_pem(plain.expose_secret(), None).unwrap();
    assert_eq!(read.public(), key.public());

    let secret = passphrase("correct horse");
    let encrypted = key.to_encrypted_pem(&secret).unwrap();
    assert!(is_encrypted_pem(encrypted.expose_secret()));
    let read = SigningKey::from_pem(encrypted.expose_secret(), Some(&secret)).unwrap();
    assert_eq!(read.public(), key.public());
    for (given, code) in [
        (None, "passphrase-needed"),
        (Some(passphrase("wrong horse")), "passphrase-wrong"),
        (Some(passphrase("")), "passphrase-wrong"),
    ] {
        let refusal = SigningKey::from_pem(encrypted.expose_secret(), given.as_ref()).unwrap_err();
        assert_eq!(refusal.code(), code);
    }
}

#[test]
fn two_generated_keys_differ_and_two_encryptions_of_one_do_too() {
    let (one, other) = (
        SigningKey::generate().unwrap(),
        SigningKey::generate().unwrap(),
    );
    assert_ne!(one.public(), other.public());
    let secret = passphrase("x");
    assert_ne!(
        one.to_encrypted_pem(&secret).unwrap().expose_secret(),
        one.to_encrypted_pem(&secret).unwrap().expose_secret()
    );
}

#[test]
fn a_public_key_survives_its_file() {
    let public = key(1).public();
    let pem = public.to_pem().unwrap();
    assert!(pem.starts_with("-----BEGIN PUBLIC KEY-----\n"));
    let read = PublicKey::from_pem(&pem).unwrap();
    assert_eq!(read, public);
    assert_eq!(read.key_id(), public.key_id());
    let id = public.key_id().to_string();
    assert_eq!(id.parse::<KeyId>().unwrap(), public.key_id());
    assert!(id.starts_with(&public.key_id().short()));
}

#[test]
fn files_that_hold_no_ed25519_key_are_refused() {
    let private = key(1).to_pem().unwrap();
    let public = key(1).public().to_pem().unwrap();
    let rsa = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VuAyEAYaLZuFiV8hyAzdnbpPO7Re8kkyOhWtcajRSOJMm7HbY=\n-----END PUBLIC KEY-----\n";
    let long = "x".repeat(20_000);
    let two = public.clone() + &key(2).public().to_pem().unwrap();
    for pem in [
        "",
        "text",
        private.expose_secret(),
        &two,
        rsa,
        public.get(..60).unwrap(),
        &long,
    ] {
        assert_eq!(
            PublicKey::from_pem(pem).unwrap_err().code(),
            "key-invalid",
            "{pem}"
        );
    }
    for pem in [
        "",
        "text",
        &public,
        private.expose_secret().get(..60).unwrap(),
        &long,
    ] {
        let refusal = SigningKey::from_pem(pem, None).unwrap_err();
        assert_eq!(refusal.code(), "key-invalid", "{pem}");
    }
}

#[test]
fn a_signing_key_file_with_another_keys_public_half_is_refused() {
    use pkcs8::EncodePrivateKey as _;

    let write = |public: &PublicKey| {
        ed25519_dalek::pkcs8::KeypairBytes {
            secret_key: [1; 32],
            public_key: Some(ed25519_dalek::pkcs8::PublicKeyBytes(*public.as_bytes())),
        }
        .to_pkcs8_pem(pkcs8::LineEnding::LF)
        .unwrap()
    };
    SigningKey::from_pem(&write(&key(1).public()), None).unwrap();
    let refusal = SigningKey::from_pem(&write(&key(2).public()), None).unwrap_err();
    assert_eq!(refusal.code(), "key-invalid");
}

#[test]
fn a_key_whose_encryption_costs_too_much_is_refused_at_once() {
    use pkcs8::der::asn1::OctetStringRef;
    use pkcs8::der::{Encode as _, pem};
    use pkcs8::pkcs5::EncryptionScheme;
    use pkcs8::pkcs5::pbes2::{Kdf, Parameters};

    let encrypt = |change: &dyn Fn(&mut Parameters)| {
        let mut parameters = Parameters::generate_scrypt_aes256cbc(
            pkcs8::pkcs5::scrypt::Params::new(14, 8, 5).unwrap(),
            &[1; 16],
            [2; 16],
        )
        .unwrap();
        change(&mut parameters);
        let der = pkcs8::EncryptedPrivateKeyInfoRef {
            encryption_algorithm: EncryptionScheme::Pbes2(parameters),
            encrypted_data: OctetStringRef::new(&[0; 64]).unwrap(),
        }
        .to_der()
        .unwrap();
        pem::encode_string("ENCRYPTED PRIVATE KEY", pkcs8::LineEnding::LF, &der).unwrap()
    };
    let code = |pem: &str| {
        let secret = passphrase("x");
        SigningKey::from_pem(pem, Some(&secret)).unwrap_err().code()
    };
    assert_eq!(code(&encrypt(&|_| {})), "passphrase-wrong");
    for (n, r, p) in [
        (1 << 40, 8, 1),
        (u64::MAX, 8, 1),
        (1 << 14, u16::MAX, 1),
        (1 << 14, 8, u16::MAX),
        (0, 8, 1),
        (1, 8, 1),
    ] {
        let pem = encrypt(&|parameters| {
            if let Kdf::Scrypt(cost) = &mut parameters.kdf {
                cost.cost_parameter = n;
                cost.block_size = r;
                cost.parallelization = p;
            }
        });
        assert_eq!(code(&pem), "key-invalid", "N = {n}, r = {r}, p = {p}");
    }
}

#[test]
fn secrets_do_not_show_in_debug_output() {
    let debug = format!("{:?}", SigningKey::from_bytes(&[0x41; 32]));
    assert!(!debug.contains("4141") && !debug.contains("65, 65"));
    assert!(debug.contains(&key(0x41).public().key_id().to_string()));
}

#[test]
fn the_example_key_is_known_and_refused_by_trust_stores() {
    let pem = std::fs::read_to_string(format!("{EXAMPLES}/example.pub.pem")).unwrap();
    let public = PublicKey::from_pem(&pem).unwrap();
    assert!(EXAMPLE_KEY_IDS.contains(&public.key_id().to_string().as_str()));
    assert!(public.is_example() && !key(1).public().is_example());
    let private =
        std::fs::read_to_string(format!("{EXAMPLES}/INSECURE-example-signing-key.pem")).unwrap();
    assert_eq!(
        SigningKey::from_pem(&private, None).unwrap().public(),
        public
    );

    let text = crate::support::publisher("acme", std::slice::from_ref(&public), 1, &["acme"]);
    assert_eq!(
        TrustStore::from_toml(&text).unwrap_err().code(),
        "trust-example-key"
    );
    let ad_hoc = TrustStore::for_key(public);
    assert_eq!(ad_hoc.warnings().len(), 1);
    assert!(TrustStore::for_key(key(1).public()).warnings().is_empty());
}

#[test]
fn signatures_of_another_length_are_refused() {
    let signature = key(1).sign(b"message");
    for wrong in [&signature[..63], &[&signature[..], &[0]].concat(), &[]] {
        assert!(key(1).public().verify(b"message", wrong).is_err());
    }
    key(1).public().verify(b"message", &signature).unwrap();
    assert!(key(1).public().verify(b"massage", &signature).is_err());
}
