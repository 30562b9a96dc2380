//! The envelope names the algorithm for its verification.

use crate::support::{Sample, acme, key};

#[test]
fn an_envelope_can_not_choose_the_algorithm() {
    let signed = Sample::new().sign(&[&key(1)]);
    let original = signed.verify(&acme()).unwrap();
    let forged = Sample::new().sign(&[&key(9)]);
    for field in [
        r#""alg": "none","#,
        r#""algorithm": "HS256","#,
        r#""scheme": {"kty": "oct"},"#,
    ] {
        for (signed, genuine) in [(&signed, true), (&forged, false)] {
            let text = String::from_utf8(signed.envelope.clone()).unwrap();
            for text in [
                text.replace("\"keyid\"", &format!("{field}\"keyid\"")),
                text.replacen('{', &format!("{{{field}"), 1),
            ] {
                let mut spoiled = signed.clone();
                spoiled.envelope = text.into_bytes();
                match spoiled.verify(&acme()) {
                    Ok(bundle) => assert!(genuine && crate::support::same(&bundle, &original)),
                    Err(refusal) => {
                        assert!(!genuine, "{refusal:?}");
                        assert_eq!(refusal.code(), "unknown-publisher");
                    }
                }
            }
        }
    }
}
