//! Lookups and connections that never end must not block those of others.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::task::JoinSet;
use toolward_egress::{
    Call, Egress, LookupPermit, NoSecrets, Resolve, Resolving, Rules, Timeouts, Transport,
    TransportSettings,
};
use toolward_policy::HostGrant;

use crate::server::{Server, ok, read_request};
use crate::world::{code, deadline, eventually, get, limits, local, send_get, settle, transport};

/// A resolver that answers only for `a.example`, with 127.0.0.1, and never answers for other names.
#[derive(Default)]
struct Silent {
    waiting: AtomicUsize,
}

impl Resolve for Silent {
    fn resolve<'a>(&'a self, host: &'a str, _: LookupPermit) -> Resolving<'a> {
        Box::pin(async move {
            if host == "a.example" {
                return "127.0.0.1"
                    .parse()
                    .map(|ip| vec![ip])
                    .map_err(io::Error::other);
            }
            self.waiting.fetch_add(1, Ordering::SeqCst);
            std::future::pending().await
        })
    }
}

fn silent() -> (Arc<Silent>, Transport) {
    let names = Arc::new(Silent::default());
    let resolver: Arc<Silent> = Arc::clone(&names);
    let settings = TransportSettings {
        resolver,
        system_roots: false,
        ..TransportSettings::default()
    };
    (names, settings.build())
}

fn rules(port: u16) -> Arc<Rules> {
    let named = |host: &str| -> HostGrant { local(host, port) };
    let hosts = vec![named("a.example"), named("*.tarpit.example")];
    Arc::new(Rules::new(hosts, Vec::new()).unwrap())
}

fn call(egress: &Egress) -> Call {
    egress.call(limits(), deadline(), None, Arc::new(NoSecrets))
}

/// Sends sixteen requests, each to a name that never resolves.
fn hang(held: &mut JoinSet<()>, egress: &Egress, port: u16) {
    let call = call(egress);
    for number in 0..16 {
        let url = format!("http://n{number}.tarpit.example:{port}/");
        let sent = call.send(get(&url), Timeouts::default());
        held.spawn(async move {
            let _ = sent.await;
        });
    }
}

#[tokio::test]
async fn routes_whose_names_never_resolve_leave_lookups_to_others() {
    let server = Server::replying(ok("")).await;
    let (names, transport) = silent();
    let mut held = JoinSet::new();
    for owner in 0..12 {
        let egress = transport.egress(&owner.to_string(), rules(server.port));
        hang(&mut held, &egress, server.port);
    }
    // A quarter of the lookups is left for routes without a lookup; each such route takes one of
    // them.
    eventually(|| names.waiting.load(Ordering::SeqCst) >= 48).await;
    settle().await;
    let waiting = names.waiting.load(Ordering::SeqCst);
    assert!((48..64).contains(&waiting), "{waiting}");
    let url = format!("http://a.example:{}/", server.port);
    let other = call(&transport.egress("other", rules(server.port)));
    assert_eq!(code(send_get(&other, &url).await), "sent");
}

#[tokio::test]
async fn routes_of_one_owner_share_what_they_hold() {
    let server = Server::replying(ok("")).await;
    let (names, transport) = silent();
    let mut held = JoinSet::new();
    for _ in 0..100 {
        let egress = transport.egress("alpha", rules(server.port));
        hang(&mut held, &egress, server.port);
    }
    eventually(|| names.waiting.load(Ordering::SeqCst) >= 48).await;
    settle().await;
    assert_eq!(names.waiting.load(Ordering::SeqCst), 48);
    let url = format!("http://a.example:{}/", server.port);
    let other = call(&transport.egress("beta", rules(server.port)));
    assert_eq!(code(send_get(&other, &url).await), "sent");
}

#[tokio::test]
async fn a_principal_whose_names_never_resolve_leaves_lookups_of_its_route_to_others() {
    let server = Server::replying(ok("")).await;
    let (names, transport) = silent();
    let route = transport.egress("alpha", rules(server.port));
    let mut held = JoinSet::new();
    hang(&mut held, &route.on_behalf_of("alice"), server.port);
    eventually(|| names.waiting.load(Ordering::SeqCst) >= 6).await;
    settle().await;
    assert_eq!(names.waiting.load(Ordering::SeqCst), 6);
    let url = format!("http://a.example:{}/", server.port);
    let other = call(&route.on_behalf_of("bob"));
    assert_eq!(code(send_get(&other, &url).await), "sent");
}

#[tokio::test]
async fn a_principal_whose_servers_never_answer_leaves_connections_to_others() {
    let tarpit = Server::start(None, |mut client, heard| async move {
        read_request(&mut client, &heard).await;
        heard.wait_for_end(&mut client).await;
    })
    .await;
    let server = Server::replying(ok("")).await;
    let names = crate::world::Names::local();
    let transport = TransportSettings {
        connections: 8,
        ..transport(&names)
    }
    .build();
    let mut held = JoinSet::new();
    for owner in 0..4 {
        let rules = Rules::new(vec![local("a.example", tarpit.port)], Vec::new()).unwrap();
        let route = transport.egress(&owner.to_string(), Arc::new(rules));
        let route = route.on_behalf_of("alice");
        let call = call(&route);
        for _ in 0..4 {
            let url = format!("http://a.example:{}/", tarpit.port);
            held.spawn(call.send(get(&url), Timeouts::default()));
        }
    }
    eventually(|| tarpit.heard.connections() == 6).await;
    settle().await;
    assert_eq!(tarpit.heard.connections(), 6);
    let rules = Rules::new(vec![local("a.example", server.port)], Vec::new()).unwrap();
    let other = transport
        .egress("other", Arc::new(rules))
        .on_behalf_of("bob");
    let url = format!("http://a.example:{}/", server.port);
    assert_eq!(code(send_get(&call(&other), &url).await), "sent");
}
