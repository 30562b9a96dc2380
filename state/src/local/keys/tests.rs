use std::time::Duration;

use super::*;

const INPUT: [u8; 32] = [1; 32];
const OTHER_INPUT: [u8; 32] = [2; 32];
const TIMEOUT: Duration = Duration::from_secs(600);

fn binding([principal, kind, name]: [&'static str; 3]) -> Binding<'static> {
    Binding {
        principal,
        subject: [kind, name],
        input: &INPUT,
    }
}

fn later() -> Instant {
    Instant::now() + TIMEOUT
}

#[expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]
fn sealed(keys: &LocalKeys, principal: &'static str) -> String {
    let binding = binding([principal, "call", "notes.append"]);
    keys.sealed(binding, b"the text".to_vec(), later()).unwrap()
}

/// The text that a token opens to.
fn text(keys: &LocalKeys, of: [&'static str; 3], token: &str) -> Result<Vec<u8>, Unsealed> {
    match keys.open(binding(of), token) {
        Unsealed::Text(text, _) => Ok(text),
        refused => Err(refused),
    }
}

const ALICE: [&str; 3] = ["alice", "call", "notes.append"];

#[test]
fn a_token_opens_once() {
    let keys = LocalKeys::new(None);
    let token = sealed(&keys, "alice");
    assert_eq!(text(&keys, ALICE, &token), Ok(b"the text".to_vec()));
    assert_eq!(text(&keys, ALICE, &token), Err(Unsealed::Spent));
}

#[test]
fn a_token_opens_for_the_same_principal_subject_and_input_only() {
    let keys = LocalKeys::new(None);
    let token = sealed(&keys, "alice");
    for other in [
        ["bob", "call", "notes.append"],
        ["alice", "prompt", "notes.append"],
        ["alice", "call", "notes.remove"],
        ["alicecall", "", "notes.append"],
    ] {
        let refused = text(&keys, other, &token);
        assert_eq!(refused, Err(Unsealed::Foreign), "{other:?}");
    }
    let other = Binding {
        input: &OTHER_INPUT,
        ..binding(ALICE)
    };
    assert_eq!(keys.open(other, &token), Unsealed::Foreign);
    assert!(text(&keys, ALICE, &token).is_ok(), "still unused");
}

#[test]
fn a_token_that_was_edited_or_made_elsewhere_does_not_open() {
    let keys = LocalKeys::new(None);
    let token = sealed(&keys, "alice");
    let foreign = |token: &str| {
        assert_eq!(text(&keys, ALICE, token), Err(Unsealed::Foreign), "{token}");
    };
    let bytes = URL_SAFE_NO_PAD.decode(&token).unwrap();
    for place in 0..bytes.len() {
        let mut edited = bytes.clone();
        edited[place] ^= 1;
        foreign(&URL_SAFE_NO_PAD.encode(edited));
    }
    for edited in [
        "",
        "AAAA",
        "not base64!",
        &format!("{token}-TAMPERED"),
        token.split_at(1).1,
        &"A".repeat(MAX_TOKEN_BYTES + 1),
        &sealed(&LocalKeys::new(None), "alice"),
    ] {
        foreign(edited);
    }
    assert!(text(&keys, ALICE, &token).is_ok(), "still unused");
}

#[test]
fn a_token_gets_too_old() {
    let keys = LocalKeys::new(None);
    let past = Instant::now();
    let token = keys.sealed(binding(ALICE), Vec::new(), past).unwrap();
    assert_eq!(text(&keys, ALICE, &token), Err(Unsealed::Spent));
    assert!(keys.open.lock().unwrap().is_empty());
}

#[test]
fn a_token_tells_until_when_it_was_good_and_one_sealed_after_it_may_end_before_it() {
    let keys = LocalKeys::new(None);
    let until = later();
    let long = keys
        .sealed(binding(ALICE), b"long".to_vec(), until)
        .unwrap();
    let past = Instant::now();
    let short = keys
        .sealed(binding(ALICE), b"short".to_vec(), past)
        .unwrap();
    assert_eq!(keys.open(binding(ALICE), &short), Unsealed::Spent);
    let opened = Unsealed::Text(b"long".to_vec(), until);
    assert_eq!(keys.open(binding(ALICE), &long), opened);
}

#[test]
fn a_principal_that_leaves_many_open_loses_its_own_oldest_only() {
    let keys = LocalKeys::new(None);
    let bobs = sealed(&keys, "bob");
    let first = sealed(&keys, "alice");
    let rest: Vec<String> = (0..MAX_OPEN).map(|_| sealed(&keys, "alice")).collect();
    assert_eq!(text(&keys, ALICE, &first), Err(Unsealed::Spent));
    assert!(text(&keys, ALICE, &rest[0]).is_ok());
    let bob = ["bob", "call", "notes.append"];
    assert!(text(&keys, bob, &bobs).is_ok());
    assert!(keys.open.lock().unwrap()["alice"].len() < MAX_OPEN);
}

#[test]
fn what_is_sealed_can_not_be_read() {
    let token = sealed(&LocalKeys::new(None), "alice");
    let bytes = URL_SAFE_NO_PAD.decode(token).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    assert!(!text.contains("text") && !text.contains("alice"));
}
