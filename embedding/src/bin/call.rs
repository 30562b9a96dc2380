//! Calls a tool of a signed bundle: `call BUNDLE PUBLIC-KEY`.

use toolward::{Host, PublicKey, Request, TrustStore};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let bundle = arguments.next().ok_or("name a bundle")?;
    let key = std::fs::read_to_string(arguments.next().ok_or("name a public key")?)?;
    // ANCHOR: call
    let trust = TrustStore::for_key(PublicKey::from_pem(&key)?);
    let bundle = toolward::open(bundle, &trust)?;
    let host = Host::builder().bundle(bundle).build()?;
    let call = Request::new("text.stats", r#"{"text": "one two two"}"#);
    let reply = host.call(call).await;
    // ANCHOR_END: call
    println!("{}", reply.envelope());
    Ok(())
}
