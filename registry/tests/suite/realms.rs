//! Credentials go only to the registry and to the realm that the operator allowed, and only if they
//! are needed.

use std::sync::atomic::{AtomicUsize, Ordering};

use toolward_registry::{Login, RegistryClient, RegistryCredentials};

use crate::sample::{ClientBuilder, Sample, builder};
use crate::scripted::{Asked, Held, Say, Scripted, ok, pull_code, status, with};
use crate::tokens::basic;

const PASSWORD: &str = "hunter2";

pub(crate) fn held() -> Held {
    Held::new(&Sample::new(1000, &[1]))
}

pub(crate) fn knowing(server: &Scripted) -> ClientBuilder {
    let login = Login::new("name", PASSWORD.to_owned().into()).unwrap();
    let registry = server.address.to_string();
    builder().credentials(RegistryCredentials::none().with(registry, login))
}

/// A registry that requires a token from `realm`, and accepts the token `granted`.
pub(crate) fn wants_token(realm: impl Fn() -> String + Send + Sync + 'static) -> Scripted {
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

pub(crate) fn has_secret(asked: &Asked) -> bool {
    asked.header("authorization").is_some()
        || asked.target.contains(PASSWORD)
        || String::from_utf8_lossy(&asked.body).contains(PASSWORD)
}

/// A registry that requires a name and password, and redirects its blobs.
pub(crate) fn wants_password(to: String) -> Scripted {
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
async fn a_password_that_is_refused_is_not_sent_for_ever() {
    let server = Scripted::start(|_| with(401, &[("WWW-Authenticate", "Basic realm=\"x\"")]));
    let client: RegistryClient = knowing(&server).build().unwrap();
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
    // The first token is valid for one request only.
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
