//! A registry that redirects to another host: the client follows only if the operator allowed it,
//! and never with credentials.

use std::net::IpAddr;

use crate::attacks::{held, lying};
use crate::realms::{self, has_secret, knowing, wants_password, wants_token};
use crate::sample::{Sample, builder, client};
use crate::scripted::{Scripted, ok, pull, pull_code, status, with};

#[tokio::test]
async fn a_redirect_to_somewhere_else_is_not_followed() {
    let held = held();
    let elsewhere = {
        let held = held.clone();
        Scripted::start(move |_| ok(held.content.clone()))
    };
    for to in [
        elsewhere.origin(),
        "file:///etc/passwd".to_owned(),
        "http://192.0.2.1/x".to_owned(),
    ] {
        let path = held.content_path();
        let server = lying(&held, move |asked| {
            asked
                .is("GET", &path)
                .then(|| with(307, &[("Location", &to)]))
        });
        let code = pull_code(&client(), &server).await.unwrap_err();
        assert_eq!(code, "registry-redirect-refused");
    }
    assert!(elsewhere.asked().is_empty());
}

#[tokio::test]
async fn a_setting_is_named_only_for_a_redirect_that_it_would_allow() {
    let held = held();
    for (to, named) in [
        ("https://192.0.2.1/x", true),
        ("http://192.0.2.1/x", false),
        ("file:///etc/passwd", false),
    ] {
        let path = held.content_path();
        let server = lying(&held, move |asked| {
            asked
                .is("GET", &path)
                .then(|| with(307, &[("Location", to)]))
        });
        let failure = pull(&client(), &server).await.unwrap_err();
        let hint = failure.hint().unwrap();
        assert_eq!(hint.contains("`redirects_to`"), named, "{to}: {hint}");
        assert_eq!(hint.contains("no setting"), !named, "{to}: {hint}");
    }
}

#[tokio::test]
async fn manifests_and_lists_are_not_redirected_even_within_the_registry() {
    let server = Scripted::start(|_| with(302, &[("Location", "/v2/b/manifests/1")]));
    let code = pull_code(&client(), &server).await.unwrap_err();
    assert_eq!(code, "registry-redirect-refused");
    let failure = client().tags(&server.reference("a")).await.unwrap_err();
    assert_eq!(failure.code(), "registry-redirect-refused");
    assert!(failure.hint().unwrap().starts_with("only downloads"));
    assert_eq!(server.asked().len(), 2);
}

#[tokio::test]
async fn redirects_in_a_circle_come_to_an_end() {
    let held = held();
    let path = held.content_path();
    let server = lying(&held, move |asked| {
        (asked.is("GET", &path) || asked.is("GET", "/round"))
            .then(|| with(307, &[("Location", "/round")]))
    });
    let failure = pull(&client(), &server).await.unwrap_err();
    assert_eq!(failure.code(), "registry-redirect-refused");
    assert!(failure.hint().unwrap().starts_with("no setting allows"));
    assert!(server.count("GET", "/round") <= 3);
}

#[tokio::test]
async fn a_redirect_to_where_it_is_allowed_is_followed() {
    let held = held();
    let elsewhere = {
        let held = held.clone();
        Scripted::start(move |_| ok(held.content.clone()))
    };
    let (path, to) = (
        held.content_path(),
        format!("{}/x?signature=s", elsewhere.origin()),
    );
    let server = lying(&held, move |asked| {
        asked
            .is("GET", &path)
            .then(|| with(307, &[("Location", &to)]))
    });
    let client = builder()
        .allow_local_redirects_to(elsewhere.origin())
        .build()
        .unwrap();
    pull_code(&client, &server).await.unwrap();
    assert_eq!(elsewhere.count("GET", "/x?signature=s"), 1);
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
        .allow_local_redirects_to(thief.origin())
        .build()
        .unwrap();
    let code = pull_code(&client, &server).await.unwrap_err();
    assert_eq!(code, "registry-redirect-refused");
    assert!(thief.asked().is_empty());
}

#[tokio::test]
async fn credentials_are_not_sent_unasked_nor_across_a_redirect() {
    let held = realms::held();
    let content = held.content.clone();
    let storage = Scripted::start(move |_| ok(content.clone()));
    let server = wants_password(storage.origin());
    let client = knowing(&server)
        .allow_local_redirects_to(storage.origin())
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
        .allow_local_redirects_to(storage.origin())
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
    assert!(failure.hint().unwrap().starts_with("uploads go to"));
    assert!(thief.asked().is_empty());
    assert_eq!(server.count("PUT", "/manifests/"), 0);
}

#[tokio::test]
async fn an_allowed_origin_is_not_connected_to_at_an_address_that_is_not_global() {
    let held = held();
    let inside = {
        let held = held.clone();
        Scripted::start(move |_| ok(held.content.clone()))
    };
    let by_name = format!("http://localhost:{}", inside.address.port());
    for origin in [inside.origin(), by_name] {
        let (path, to) = (held.content_path(), origin.clone());
        let server = lying(&held, move |asked| {
            asked
                .is("GET", &path)
                .then(|| with(307, &[("Location", &to)]))
        });
        let no_loopback = |address: IpAddr| match address.is_loopback() {
            true => Err("loopback"),
            false => Ok(()),
        };
        let allowing = || builder().allow_redirects_to(&origin);
        for client in [allowing(), allowing().redirect_addresses(no_loopback)] {
            let failure = pull(&client.build().unwrap(), &server).await.unwrap_err();
            assert_eq!(failure.code(), "registry-redirect-refused", "{origin}");
            let hint = failure.hint().unwrap();
            assert!(hint.starts_with("the registry has to serve"), "{hint}");
            assert_eq!(server.count("GET", &held.content_path()), 1, "no retry");
            server.forget();
        }
        assert!(inside.asked().is_empty(), "{origin}");
        let any = allowing().redirect_addresses(|_| Ok(())).build().unwrap();
        pull_code(&any, &server).await.unwrap();
        assert_eq!(inside.asked().len(), 1);
        inside.forget();
    }
}
