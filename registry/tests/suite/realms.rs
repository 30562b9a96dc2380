//! Credentials go to the registry, and to the realm that the operator allowed: whoever else asks for them
//! gets nothing.

use std::sync::atomic::{AtomicUsize, Ordering};

use toolward_registry::{Client, ClientBuilder, Credentials, Login};

use crate::sample::{Sample, builder};
use crate::scripted::{Asked, Held, Say, Scripted, ok, pull_code, status, with};
use crate::tokens::basic;

const PASSWORD: &str = "hunter2";

fn held() -> Held {
    Held::new(&Sample::new(1000, &[1]))
}

fn knowing(server: &Scripted) -> ClientBuilder {
    let login = Login::new("name", PASSWORD.to_owned().into()).unwrap();
    let registry = server.address.to_string();
    builder().credentials(Credentials::none().with(registry, login))
}

/// A registry that wants a token from `realm`, and takes the token `granted`.
fn wants_token(realm: impl Fn() -> String + Send + Sync + 'static) -> Scripted {
    let held = held();
    Scripted::start(move |asked| {
        if asked.header("authorization") == Some("Bearer granted") {
            return held.answer(asked);
        }
        let challenge = format!(
            "Bearer realm=\"{}\",service=\"s\",scope=\"repository:everything:*\"",
            realm()
        );
        with(401, &[("WWW-Authenticate", &challenge)])
    })
}

fn has_secret(asked: &Asked) -> bool {
    asked.header("authorization").is_some()
        || asked.target.contains(PASSWORD)
        || String::from_utf8_lossy(&asked.body).contains(PASSWORD)
}

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

#[tokio::test]
async fn the_password_goes_to_the_realm_and_the_token_to_the_registry() {
    let tokens = Scripted::start(|_| ok("{\"access_token\":\"granted\"}"));
    let realm = format!("{}/token?own=1", tokens.origin());
    let server = wants_token(move || realm.clone());
    let client = knowing(&server)
        .allow_realm(server.address.to_string(), tokens.origin())
        .build()
        .unwrap();
    pull_code(&client, &server).await.unwrap();
    let asked = tokens.asked();
    assert_eq!(asked.len(), 1, "the token is kept");
    assert_eq!(
        asked[0].header("authorization"),
        Some(basic(PASSWORD).as_str())
    );
    assert_eq!(
        asked[0].target, "/token?own=1&service=s&scope=repository%3Aa%3Apull",
        "the scope is what is needed, whatever was offered"
    );
    for asked in server.asked() {
        let sent = asked.header("authorization");
        assert!(sent.is_none() || sent == Some("Bearer granted"));
    }
}

#[tokio::test]
async fn a_token_server_that_redirects_takes_the_password_nowhere() {
    let thief = Scripted::start(|_| ok("{\"token\":\"granted\"}"));
    let to = thief.origin();
    let tokens = Scripted::start(move |_| with(307, &[("Location", &to)]));
    let realm = tokens.origin();
    let server = wants_token(move || realm.clone());
    let client = knowing(&server)
        .allow_realm(server.address.to_string(), tokens.origin())
        .allow_redirects_to(thief.origin())
        .build()
        .unwrap();
    let code = pull_code(&client, &server).await.unwrap_err();
    assert_eq!(code, "registry-redirect-refused");
    assert!(thief.asked().is_empty());
}

/// A registry that wants name and password, and redirects its blobs.
fn wants_password(to: String) -> Scripted {
    let held = held();
    Scripted::start(move |asked| {
        if asked.header("authorization") != Some(basic(PASSWORD).as_str()) {
            return with(401, &[("WWW-Authenticate", "Basic realm=\"x\"")]);
        }
        if asked.target.ends_with(&held.content_path()) {
            return with(307, &[("Location", &to)]);
        }
        held.answer(asked)
    })
}

#[tokio::test]
async fn credentials_are_not_sent_unasked_nor_across_a_redirect() {
    let held = held();
    let content = held.content.clone();
    let storage = Scripted::start(move |_| ok(content.clone()));
    let server = wants_password(storage.origin());
    let client = knowing(&server)
        .allow_redirects_to(storage.origin())
        .build()
        .unwrap();
    pull_code(&client, &server).await.unwrap();
    assert!(
        !has_secret(&server.asked()[0]),
        "the first request is without"
    );
    assert_eq!(storage.asked().len(), 1);
    assert!(!storage.asked().iter().any(has_secret));

    let careful = knowing(&server).build().unwrap();
    let code = pull_code(&careful, &server).await.unwrap_err();
    assert_eq!(code, "registry-redirect-refused");
    assert_eq!(storage.asked().len(), 1);
}

#[tokio::test]
async fn a_challenge_by_the_target_of_a_redirect_is_not_answered() {
    let storage = Scripted::start(|_| with(401, &[("WWW-Authenticate", "Basic realm=\"x\"")]));
    let server = wants_password(storage.origin());
    let client = knowing(&server)
        .allow_redirects_to(storage.origin())
        .build()
        .unwrap();
    let code = pull_code(&client, &server).await.unwrap_err();
    assert_eq!(code, "registry-credentials-refused");
    assert_eq!(storage.asked().len(), 1);
    assert!(!storage.asked().iter().any(has_secret));
}

#[tokio::test]
async fn an_upload_that_shall_go_on_elsewhere_does_not() {
    let thief = Scripted::start(|_| status(201));
    let to = format!("{}/upload", thief.origin());
    let server = Scripted::start(move |asked| match asked.method.as_str() {
        "HEAD" => status(404),
        "POST" => with(202, &[("Location", &to)]),
        _ => status(201),
    });
    let client = knowing(&server).build().unwrap();
    let outgoing = Sample::new(100, &[1]).outgoing();
    let failure = client
        .push(&outgoing, &server.reference("a:1"), None)
        .await
        .unwrap_err();
    assert_eq!(failure.code(), "registry-redirect-refused");
    assert!(thief.asked().is_empty());
    assert_eq!(server.count("PUT", "/manifests/"), 0);
}

#[tokio::test]
async fn a_password_that_is_refused_is_not_sent_for_ever() {
    let server = Scripted::start(|_| with(401, &[("WWW-Authenticate", "Basic realm=\"x\"")]));
    let client: Client = knowing(&server).build().unwrap();
    let code = pull_code(&client, &server).await.unwrap_err();
    assert_eq!(code, "registry-credentials-refused");
    assert_eq!(server.asked().len(), 2);
}

#[tokio::test]
async fn a_token_that_ran_out_is_renewed() {
    let count = AtomicUsize::new(0);
    let tokens = Scripted::start(move |_| {
        let number = count.fetch_add(1, Ordering::SeqCst);
        ok(format!("{{\"token\":\"t{number}\"}}"))
    });
    let realm = tokens.origin();
    let held = held();
    let uses = AtomicUsize::new(0);
    // The first token is good for one request.
    let server = Scripted::start(move |asked| match asked.header("authorization") {
        Some("Bearer t0") if uses.fetch_add(1, Ordering::SeqCst) == 0 => held.answer(asked),
        Some("Bearer t1") => held.answer(asked),
        _ => with(
            401,
            &[("WWW-Authenticate", &format!("Bearer realm=\"{realm}\""))],
        ),
    });
    let client = knowing(&server)
        .allow_realm(server.address.to_string(), tokens.origin())
        .build()
        .unwrap();
    pull_code(&client, &server).await.unwrap();
    assert_eq!(tokens.asked().len(), 2);
}

#[tokio::test]
async fn what_a_token_server_answers_is_bounded_and_never_shown() {
    let cases = [
        (Say::Endless, "registry-response-too-large"),
        (ok("hunter2"), "registry-response-invalid"),
        (ok("{\"token\":[\"hunter2\"]}"), "registry-response-invalid"),
        (
            ok("{\"token\":\"hunter2\\n\"}"),
            "registry-response-invalid",
        ),
        (ok("{\"token\":\"\"}"), "registry-response-invalid"),
        (status(403), "registry-credentials-refused"),
    ];
    for (say, code) in cases {
        let tokens = Scripted::start(move |_| say.clone());
        let realm = tokens.origin();
        let server = wants_token(move || realm.clone());
        let client = knowing(&server)
            .allow_realm(server.address.to_string(), tokens.origin())
            .build()
            .unwrap();
        let failure = client.resolve(&server.reference("a:1")).await.unwrap_err();
        assert_eq!(failure.code(), code);
        let told = format!(
            "{failure} {failure:?} {}",
            serde_json::to_string(&failure).unwrap()
        );
        assert!(!told.contains("hunter2"), "{told}");
        assert!(!format!("{client:?}").contains("hunter2"));
    }
}
