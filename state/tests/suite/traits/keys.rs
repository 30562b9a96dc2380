//! Tests every implementation of [`Keys`].

use std::time::{Duration, Instant};

use toolward_state::{Binding, Keys, Local, StateError, Unsealed, settled};

use super::{Remote, over_both};

over_both! {
    Local::new(None, None), Remote::new();
    a_token_opens_once_for_its_binding,
    of_many_who_open_a_token_at_once_one_gets_the_text,
    a_token_expires,
    a_token_does_not_show_its_text,
    a_message_has_one_hash,
}

const ALICE: Binding<'static> = Binding {
    principal: "alice",
    subject: ["call", "notes.append"],
    input: &[1; 32],
};

fn in_time() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

async fn sealed(keys: &dyn Keys, until: Instant) -> String {
    let deadline = in_time();
    let seal = || keys.seal(ALICE, b"secret".to_vec(), until, deadline);
    settled(deadline, seal).await.expect("a token")
}

/// Enough tokens that each kind of answer both arrives and gets lost.
async fn tokens(keys: &dyn Keys) -> Vec<String> {
    let mut tokens = Vec::new();
    for _ in 0..10 {
        tokens.push(sealed(keys, in_time()).await);
    }
    tokens
}

async fn open(keys: &dyn Keys, binding: Binding<'_>, token: &str) -> Result<Unsealed, StateError> {
    keys.unseal(binding, token, in_time()).await
}

async fn a_token_opens_once_for_its_binding(keys: &dyn Keys) {
    let mut opened = 0;
    for token in tokens(keys).await {
        for other in [
            Binding {
                principal: "bob",
                ..ALICE
            },
            Binding {
                subject: ["prompt", "notes.append"],
                ..ALICE
            },
            Binding {
                input: &[2; 32],
                ..ALICE
            },
        ] {
            let refused = open(keys, other, &token).await;
            assert!(
                matches!(refused, Ok(Unsealed::Foreign) | Err(StateError::Unknown)),
                "{refused:?}"
            );
        }
        let mut texts = 0;
        for _ in 0..5 {
            match open(keys, ALICE, &token).await {
                Ok(Unsealed::Text(text, _)) => {
                    assert_eq!(text, b"secret");
                    texts += 1;
                }
                Ok(Unsealed::Spent) | Err(StateError::Unknown) => {}
                other => panic!("{other:?}"),
            }
        }
        assert!(texts <= 1, "{texts}");
        opened += texts;
    }
    assert!(opened > 0);
}

async fn of_many_who_open_a_token_at_once_one_gets_the_text(keys: &dyn Keys) {
    for token in tokens(keys).await {
        let each = (0..5).map(|_| open(keys, ALICE, &token));
        let all = futures_util::future::join_all(each).await;
        let texts = all
            .iter()
            .filter(|one| matches!(one, Ok(Unsealed::Text(..))));
        assert!(texts.count() <= 1, "{all:?}");
    }
}

async fn a_token_expires(keys: &dyn Keys) {
    let token = sealed(keys, Instant::now()).await;
    let opened = settled(in_time(), || keys.unseal(ALICE, &token, in_time())).await;
    assert_eq!(opened.unwrap(), Unsealed::Spent);
}

async fn a_token_does_not_show_its_text(keys: &dyn Keys) {
    for token in tokens(keys).await {
        assert!(!token.contains("secret") && !token.contains("alice"));
    }
}

async fn a_message_has_one_hash(keys: &dyn Keys) {
    let hash = async |message: &[u8]| {
        let hash = settled(in_time(), || keys.id_hash(message.to_vec(), in_time())).await;
        hash.expect("a hash")
    };
    assert_eq!(hash(b"one").await, hash(b"one").await);
    assert_ne!(hash(b"one").await, hash(b"two").await);
}

#[tokio::test]
async fn a_process_that_has_the_secret_makes_the_same_hashes() {
    let [one, other] = [7, 7].map(|secret| Local::new(Some([secret; 32]), None));
    let third = Local::new(Some([8; 32]), None);
    let mut hashes = Vec::new();
    for keys in [&one, &other, &third] {
        hashes.push(keys.id_hash(b"id".to_vec(), in_time()).await.unwrap());
    }
    assert_eq!(hashes[0], hashes[1]);
    assert_ne!(hashes[0], hashes[2]);
}
