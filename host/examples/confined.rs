//! A program that compiles drivers in separate processes, and confines itself before it runs any
//! driver.
//!
//! `cargo run -p toolward-host --example confined`

use std::error::Error;

use toolward_bundle::content::Content;
use toolward_host::compile::broker::{run_broker, run_worker};
use toolward_host::confine::Confinement;
use toolward_host::{Broker, BrokerCommand, Host, Request};
use toolward_signing::key::PublicKey;
use toolward_signing::trust::TrustStore;
use toolward_signing::verify::{self, VerifyOptions};

#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example program"
)]
fn main() -> Result<(), Box<dyn Error>> {
    // This comes first, since the program also runs as its own broker and the broker's workers.
    match std::env::args().nth(1).as_deref() {
        Some("compile-broker") => return Ok(run_broker()?),
        Some("compile-worker") => return Ok(run_worker()?),
        _ => {}
    }
    let broker = Broker::builder(BrokerCommand {
        program: std::env::current_exe()?,
        broker: vec!["compile-broker".into()],
        worker: vec!["compile-worker".into()],
    })
    .cache(std::env::temp_dir().join("compiled-drivers"))
    .start()?;

    let trust = TrustStore::for_key(PublicKey::from_pem(include_str!(
        "../../examples/keys/example.pub.pem"
    ))?);
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../examples/bundles/text-stats.toolbundle"
    );
    let bundle = verify::open(path.as_ref(), &trust, &VerifyOptions::default())?;
    let host = Host::builder()
        .bundle(Content::from_verified(bundle)?)
        .broker(broker.clone())
        .build()?;

    // Only one thread runs at this point, and everything that is needed later is open.
    let mut confinement = Confinement::builder();
    if let Some(artifacts) = broker.artifacts() {
        confinement = confinement.read(artifacts);
    }
    let confined = confinement.apply()?;
    eprintln!("confined: {confined:?}");

    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    let call = host.call(Request::new("text.stats", r#"{"text": "Hello"}"#));
    println!("{}", runtime.block_on(call).envelope());
    Ok(())
}
