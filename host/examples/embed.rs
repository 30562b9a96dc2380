//! A sandboxed tool host inside another program.
//!
//! `cargo run -p toolward-host --example embed`

use toolward_bundle::content::Content;
use toolward_host::{Host, Request};
use toolward_signing::key::PublicKey;
use toolward_signing::trust::TrustStore;
use toolward_signing::verify::{self, VerifyOptions};

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example program")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
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
        .build()?;
    let reply = host
        .call(Request::new("text.stats", r#"{"text": "Hello, sandbox."}"#))
        .await;
    println!("{}", reply.result?.structured);
    Ok(())
}
