//! Several people sign one envelope, one after the other or independently.

use toolward_signing::envelope::{Envelope, MAX_SIGNATURES};

use crate::support::key;

fn unsigned() -> Envelope {
    Envelope::new("text/plain", b"a document".to_vec())
}

fn signed(numbers: &[u8]) -> Envelope {
    let mut envelope = unsigned();
    for number in numbers {
        envelope.sign(&key(*number));
    }
    envelope
}

#[test]
fn a_signature_more_leaves_the_others_as_they_are() {
    let before = signed(&[1, 2]);
    let mut after = before.clone();
    after.sign(&key(3));
    assert_eq!(after.payload(), before.payload());
    assert_eq!(after.signatures().len(), 3);
    for signature in before.signatures() {
        assert!(after.signatures().contains(signature));
    }
    assert_eq!(Envelope::parse(&after.to_bytes().unwrap()).unwrap(), after);
}

#[test]
fn signatures_of_other_kinds_and_without_a_key_id_stay() {
    let genuine = signed(&[1]);
    let mut json: serde_json::Value = serde_json::from_slice(&genuine.to_bytes().unwrap()).unwrap();
    let list = json["signatures"].as_array_mut().unwrap();
    list[0].as_object_mut().unwrap().remove("keyid");
    list.push(serde_json::json!({ "keyid": "rsa", "sig": "AAAA".repeat(100) }));
    let mut envelope = Envelope::parse(&serde_json::to_vec(&json).unwrap()).unwrap();
    let before = envelope.clone();
    envelope.sign(&key(2));
    assert_eq!(envelope.signatures().len(), 3);
    for signature in before.signatures() {
        assert!(envelope.signatures().contains(signature));
    }
}

#[test]
fn envelopes_that_were_signed_apart_are_put_together() {
    let mut together = signed(&[1, 2]);
    assert_eq!(together.merge(&signed(&[2, 3])).unwrap(), 1);
    assert_eq!(together, signed(&[1, 2, 3]));
    assert_eq!(together.merge(&signed(&[3])).unwrap(), 0);
}

#[test]
fn signatures_over_another_document_are_not_taken() {
    let mut envelope = signed(&[1]);
    let before = envelope.clone();
    for other in [
        Envelope::new("text/plain", b"another".to_vec()),
        Envelope::new("text/html", b"a document".to_vec()),
    ] {
        let refusal = envelope.merge(&other).unwrap_err();
        assert_eq!(refusal.code(), "envelope-mismatch");
        assert_eq!(envelope, before);
    }
}

#[test]
fn one_signature_more_than_readers_take_is_not_added() {
    let numbers: Vec<u8> = (1..).take(MAX_SIGNATURES).collect();
    let mut envelope = signed(&numbers);
    let before = envelope.clone();
    let refusal = envelope.merge(&signed(&[200])).unwrap_err();
    assert_eq!(refusal.code(), "envelope-invalid");
    assert_eq!(envelope, before);
}
