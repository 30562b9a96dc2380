//! A host without network and SQLite: `pure BUNDLES PUBLIC-KEY` calls a tool that needs
//! neither, one that is granted the network, and one that is granted a bucket.

use std::path::PathBuf;

use toolward::{Host, Policy, PublicKey, Request, TrustStore};

/// Grants what the tools declare.
const POLICY: &str = r#"
[[grant]]
publisher = "key:cd841c22fb88b5562fa3e6a5fdd74be5dd34deb54cf96b6b16c43d6c4d4f74a5"
requires = [
    "network:*.wikipedia.org", "network:*.rust-lang.org", "network:docs.rs", "network:www.rfc-editor.org",
]
mutates = ["database:counters"]
preapproved = true
"#;

/// A bundle, its tool, and an input.
const CALLS: [[&str; 3]; 3] = [
    ["text-stats", "text.stats", r#"{"text": "one two two"}"#],
    ["http-fetch", "http.fetch", r#"{"url": "https://docs.rs/"}"#],
    ["kv-counter", "kv.counter", r#"{"action": "list"}"#],
];

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let bundles = PathBuf::from(arguments.next().ok_or("name a folder of bundles")?);
    let key = std::fs::read_to_string(arguments.next().ok_or("name a public key")?)?;
    let trust = TrustStore::for_key(PublicKey::from_pem(&key)?);
    let mut host = Host::builder().policy(Policy::from_toml(POLICY)?);
    for [bundle, ..] in CALLS {
        let path = bundles.join(bundle).with_extension("toolbundle");
        host = host.bundle(toolward::open(path, &trust)?);
    }
    let host = host.build()?;
    for [_, tool, input] in CALLS {
        println!("{}", host.call(Request::new(tool, input)).await.envelope());
    }
    Ok(())
}
