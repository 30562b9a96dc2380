//! Names and the addresses behind them: each name is resolved once, every address is checked, and
//! only these addresses are connected to.

use std::sync::atomic::Ordering;

use crate::server::{Server, answering, ok};
use crate::world::{
    Names, call_with, code, deadline, limits, local, on_terms, send_get, settle, text,
};

#[tokio::test]
async fn a_name_that_resolves_to_a_private_address_is_not_connected_to() {
    let server = Server::replying(ok("")).await;
    for answer in [
        &["127.0.0.1"][..],
        &["::ffff:127.0.0.1"],
        &["0.0.0.0"],
        &["::1"],
        &["64:ff9b::7f00:1"],
        // One allowed address does not compensate for a refused one.
        &["93.184.216.34", "127.0.0.1"],
        &["127.0.0.1", "93.184.216.34"],
        &["2606:4700::1111", "fd00::1"],
        &["169.254.169.254"],
    ] {
        let names = Names::of(&[("a.example", &[answer])]);
        let rule = on_terms(local("a.example", server.port), |terms| {
            terms.addresses.clear()
        });
        let call = call_with(&names, vec![rule], limits());
        let url = format!("http://a.example:{}/", server.port);
        let sent = send_get(&call, &url).await;
        assert_eq!(code(sent), "address-not-granted", "{answer:?}");
        assert_eq!(names.asked.load(Ordering::SeqCst), 1);
    }
    settle().await;
    assert_eq!(server.heard.connections(), 0);
}

#[tokio::test]
async fn a_granted_address_is_granted_for_its_host_only() {
    let server = Server::replying(ok("")).await;
    let open = on_terms(local("b.example", server.port), |terms| {
        terms.addresses.clear()
    });
    let rules = vec![local("a.example", server.port), open];
    let call = call_with(&Names::local(), rules, limits());
    let to = |host: &str| format!("http://{host}:{}/", server.port);
    let refused = send_get(&call, &to("b.example")).await;
    assert_eq!(code(refused), "address-not-granted");
    settle().await;
    assert_eq!(server.heard.connections(), 0);
    assert_eq!(code(send_get(&call, &to("a.example")).await), "sent");
}

#[tokio::test]
async fn an_address_outside_the_granted_network_is_refused() {
    let server = Server::replying(ok("")).await;
    let names = Names::of(&[("a.example", &[&["127.0.0.1", "127.0.0.2"]])]);
    let call = call_with(&names, vec![local("a.example", server.port)], limits());
    let url = format!("http://a.example:{}/", server.port);
    assert_eq!(code(send_get(&call, &url).await), "address-not-granted");
    settle().await;
    assert_eq!(server.heard.connections(), 0);
}

#[tokio::test]
async fn a_name_that_changes_its_answer_is_connected_to_where_it_was_checked() {
    // The checked address refuses connections, and the next answer would lead to the server.
    let server = Server::replying(ok("")).await;
    let names = Names::of(&[("a.example", &[&["127.0.0.2"], &["127.0.0.1"]])]);
    let rule = on_terms(local("a.example", server.port), |terms| {
        terms.addresses = vec!["127.0.0.2/32".parse().unwrap()];
    });
    let call = call_with(&names, vec![rule], limits());
    let url = format!("http://a.example:{}/", server.port);
    assert_eq!(code(send_get(&call, &url).await), "connect");
    assert_eq!(names.asked.load(Ordering::SeqCst), 1);
    // The next connection resolves the name again, and checks the addresses again.
    assert_eq!(code(send_get(&call, &url).await), "address-not-granted");
    settle().await;
    assert_eq!(server.heard.connections(), 0);
}

#[tokio::test]
async fn a_pooled_connection_stays_with_its_address() {
    let server = Server::replying(ok("a")).await;
    let other = Server::start_at(
        &format!("127.0.0.2:{}", server.port),
        None,
        answering(ok("b").into_bytes()),
    )
    .await;
    let names = Names::of(&[("a.example", &[&["127.0.0.1"], &["127.0.0.2"]])]);
    let call = call_with(&names, vec![local("a.example", server.port)], limits());
    let url = format!("http://a.example:{}/", server.port);
    for _ in 0..3 {
        let response = send_get(&call, &url).await.unwrap();
        assert_eq!(text(response).await.unwrap(), "a");
    }
    assert_eq!(names.asked.load(Ordering::SeqCst), 1);
    assert_eq!(
        (server.heard.connections(), other.heard.connections()),
        (1, 0)
    );
}

#[tokio::test]
async fn the_next_address_is_tried_where_one_refuses() {
    let server = Server::replying(ok("")).await;
    let names = Names::of(&[("a.example", &[&["127.0.0.3", "127.0.0.2", "127.0.0.1"]])]);
    let rule = on_terms(local("a.example", server.port), |terms| {
        terms.addresses = vec!["127.0.0.0/8".parse().unwrap()];
    });
    let call = call_with(&names, vec![rule], limits());
    let url = format!("http://a.example:{}/", server.port);
    assert_eq!(code(send_get(&call, &url).await), "sent");
    assert_eq!(server.heard.connections(), 1);
}

#[tokio::test]
async fn address_literals_skip_the_resolver_and_no_check() {
    let server = Server::replying(ok("")).await;
    let names = Names::local();
    let url = format!("http://127.0.0.1:{}/", server.port);
    let bare = on_terms(local("127.0.0.1", server.port), |terms| {
        terms.addresses.clear()
    });
    let call = call_with(&names, vec![bare], limits());
    assert_eq!(code(send_get(&call, &url).await), "address-not-granted");
    settle().await;
    assert_eq!(server.heard.connections(), 0);
    let call = call_with(&names, vec![local("127.0.0.1", server.port)], limits());
    assert_eq!(code(send_get(&call, &url).await), "sent");
    assert_eq!(names.asked.load(Ordering::SeqCst), 0);
    assert!(
        server
            .heard
            .last()
            .contains(&format!("host: 127.0.0.1:{}\r\n", server.port))
    );
}

#[tokio::test]
async fn a_name_without_an_answer_is_an_error_of_the_network() {
    let names = Names::of(&[("empty.example", &[&[]])]);
    let rules = vec![local("empty.example", 1), local("none.example", 1)];
    let call = call_with(&names, rules, limits());
    assert_eq!(
        code(send_get(&call, "http://empty.example:1/").await),
        "dns"
    );
    assert_eq!(code(send_get(&call, "http://none.example:1/").await), "dns");
}

#[tokio::test]
async fn the_systems_resolver_answers_for_this_machine() {
    let server = Server::replying(ok("here")).await;
    let rule = on_terms(local("localhost", server.port), |terms| {
        terms.addresses = vec!["127.0.0.0/8".parse().unwrap(), "::1/128".parse().unwrap()];
    });
    let rules = toolward_egress::Rules::new(vec![rule], Vec::new()).unwrap();
    let transport = toolward_egress::TransportSettings {
        system_roots: false,
        ..Default::default()
    };
    let transport = transport.build();
    let egress = transport.egress("alpha", std::sync::Arc::new(rules));
    let call = egress.call(
        limits(),
        deadline(),
        None,
        std::sync::Arc::new(toolward_egress::NoSecrets),
    );
    let url = format!("http://localhost:{}/", server.port);
    assert_eq!(
        text(send_get(&call, &url).await.unwrap()).await.unwrap(),
        "here"
    );
}
