//! A registry that requests credentials for a foreign server.

use crate::realms::{has_secret, knowing, wants_token};
use crate::sample::builder;
use crate::scripted::{Scripted, ok, pull_code};

#[tokio::test]
async fn a_realm_elsewhere_gets_neither_credentials_nor_a_request() {
    let thief = Scripted::start(|_| ok("{\"token\":\"granted\"}"));
    let origin = thief.origin();
    let port = thief.address.port();
    for realm in [
        format!("{origin}/token"),
        format!("http://localhost:{port}/token"),
        format!("http://name:word@127.0.0.1:{port}/token"),
        "http://192.0.2.1/token".to_owned(),
        "https://192.0.2.1/token".to_owned(),
        "file:///etc/passwd".to_owned(),
        "/token".to_owned(),
        String::new(),
    ] {
        let said = realm.clone();
        let server = wants_token(move || said.clone());
        for client in [
            knowing(&server).build().unwrap(),
            builder().build().unwrap(),
        ] {
            let code = pull_code(&client, &server).await.unwrap_err();
            assert_eq!(code, "registry-realm-refused", "{realm}");
        }
        assert!(!server.asked().iter().any(has_secret));
    }
    assert!(thief.asked().is_empty());
}

#[tokio::test]
async fn a_realm_allowed_for_one_registry_is_not_allowed_for_another() {
    let tokens = Scripted::start(|_| ok("{\"token\":\"granted\"}"));
    let realm = tokens.origin();
    let server = wants_token(move || realm.clone());
    let client = knowing(&server)
        .allow_realm("other.example", tokens.origin())
        .build()
        .unwrap();
    let code = pull_code(&client, &server).await.unwrap_err();
    assert_eq!(code, "registry-realm-refused");
    assert!(tokens.asked().is_empty());
}
