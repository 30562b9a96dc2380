//! Serves the tools of a bundle to one agent on standard input and output. If an address is given,
//! serves many agents over HTTP instead.
//!
//! `cargo run -p toolward-mcp --example serve -- [ADDRESS]`

use std::error::Error;
use std::net::TcpListener;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use toolward_bundle::content::Content;
use toolward_host::{Host, LOCAL, SharedState};
use toolward_mcp::http::tokens::{self, Tokens};
use toolward_mcp::http::{self, Authentication, Settings};
use toolward_mcp::principal::{self, Principal};
use toolward_mcp::stdio::{self, Streams};
use toolward_mcp::{ServerFeatures, Service};
use toolward_policy::Policy;
use toolward_signing::key::PublicKey;
use toolward_signing::trust::TrustStore;
use toolward_signing::verify::{self, VerifyOptions};

#[tokio::main]
#[expect(clippy::print_stderr, reason = "an example program")]
async fn main() -> Result<(), Box<dyn Error>> {
    // One for all hosts that take each other's place.
    let shared_state = SharedState::new();
    let (content, policy) = (content()?, Policy::empty());
    let host = Host::builder()
        .policy(policy.clone())
        .shared_state(&shared_state)
        .bundle(content.clone())
        .build()?;
    // What clients see: a host, its tools under a policy, and prompts and resources.
    let features = ServerFeatures::new(host, &[content], &policy, 100)?;
    let service = Service::new(features);
    // Cancel it, and calls have some time to end.
    let shutdown = CancellationToken::new();

    let Some(address) = std::env::args().nth(1) else {
        // Whoever started this process. Its client can't approve anything.
        let user = Principal {
            name: LOCAL.into(),
            tools: principal::Tools::All,
            may_approve: false,
        };
        let connection = service.connection(Some(user));
        stdio::serve(connection, Streams::take()?, shutdown).await?;
        return Ok(());
    };
    let (secret, hash) = tokens::generate()?;
    eprintln!("clients send: Authorization: Bearer {}", secret.expose());
    let alice = Principal {
        name: "alice".into(),
        tools: principal::Tools::Only(Arc::new(["text.*".to_owned()])),
        may_approve: false,
    };
    let access = Authentication::Required(Arc::new(Tokens::single(hash, alice)));
    let listener = TcpListener::bind(address)?;
    // Each request names its principal: the connection has none.
    let connection = move || service.connection(None);
    http::serve(listener, connection, Settings::new(access), shutdown).await?;
    Ok(())
}

fn content() -> Result<Content, Box<dyn Error>> {
    let key = include_str!("../../examples/keys/example.pub.pem");
    let trust = TrustStore::for_key(PublicKey::from_pem(key)?);
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../examples/bundles/text-stats.toolbundle"
    );
    let bundle = verify::open(path.as_ref(), &trust, &VerifyOptions::default())?;
    Ok(Content::from_verified(bundle)?)
}
