//! A thief uses up the version numbers, so that the publisher has none left. The publisher recovers
//! by revoking the stolen key.

use toolward_signing::publisher::rotate;
use toolward_signing::revocation::{RevocationList, SignedList, VerifiedList, accept};

use crate::support::{CREATED, accepted, by, document, revoking, store_of, terms};

const LAST: u64 = i64::MAX as u64;

fn list(version: u64) -> RevocationList {
    RevocationList {
        publisher: "acme".to_owned(),
        version,
        created: CREATED.parse().unwrap(),
        expires: None,
        keys: Vec::new(),
        bundles: Vec::new(),
    }
}

#[test]
fn a_publisher_documents_version_can_not_be_used_up() {
    let current = accepted(&document(1, 1, &[1]), &[1]);
    let thiefs = by(document(LAST, 1, &[1]).to_envelope(), &[1]);
    let refusal = rotate(&current, &thiefs, &terms()).unwrap_err();
    assert_eq!(refusal.code(), "version-skipped");
    rotate(
        &current,
        &by(document(2, 1, &[1]).to_envelope(), &[1]),
        &terms(),
    )
    .unwrap();
}

#[test]
fn the_last_version_has_no_next_one() {
    let current = accepted(&document(LAST, 1, &[1]), &[1]);
    for version in [1, LAST - 1] {
        let next = by(document(version, 1, &[1]).to_envelope(), &[1]);
        assert_eq!(
            rotate(&current, &next, &terms()).unwrap_err().code(),
            "rollback"
        );
    }
    assert!(document(LAST + 1, 1, &[1]).to_bytes().is_err());
}

#[test]
fn a_lists_version_that_a_thief_used_up_is_forgotten_once_the_key_is_revoked() {
    let first = accepted(&document(1, 1, &[1, 2]), &[1]);
    let trust = store_of(&first);
    let follow = |trust: &toolward_signing::trust::TrustStore,
                  version: u64,
                  signer: u8,
                  previous: Option<&SignedList>|
     -> Result<VerifiedList, &'static str> {
        let acme = trust.publisher("acme").unwrap();
        let bytes = by(list(version).to_envelope(), &[signer]);
        accept(&bytes, acme, trust, previous, &terms()).map_err(|refusal| refusal.code())
    };
    let thiefs = follow(&trust, LAST, 1, None).unwrap();
    assert_eq!(follow(&trust, 7, 2, Some(&thiefs)), Err("rollback"));
    let second = revoking(document(2, 1, &[1, 2]), &[1]);
    let second = rotate(&first, &by(second.to_envelope(), &[2]), &terms()).unwrap();
    let trust = store_of(&second);
    assert_eq!(follow(&trust, 7, 2, Some(&thiefs)).unwrap().version, 7);
    assert_eq!(
        follow(&trust, LAST, 1, Some(&thiefs)),
        Err("threshold-not-met")
    );
}
