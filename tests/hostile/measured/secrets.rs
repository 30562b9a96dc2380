//! Secrets that a guest stores itself, and a server that may echo them. The guest chooses the
//! values, and with them the cost of searching for them.

use std::time::Duration;

use toolward_host::secrets::Sources;
use toolward_host::{Limit, Limits};

use super::process::{MIB, alone};
use super::{MOST, TOOL, Yard, hoards_in};
use crate::vault::Vault;
use crate::world::{Bundle, Guest, policy_of};

#[test]
fn secrets_that_are_looked_for() {
    alone(
        concat!(module_path!(), "::secrets_that_are_looked_for"),
        || async {
            for (limits, memory) in [("", 64 * MIB), (MOST, 256 * MIB)] {
                let yard = vaulted(limits).await;
                hoards_in(yard, "hoard-http", "secrets", memory).await;
            }
        },
    );
}

/// A host whose guest may store three secrets, and send them to a vault.
async fn vaulted(limits: &str) -> Yard {
    let vault = Vault::saying("fine").await;
    let name = format!("api.test:{}", vault.port);
    let slugs = ["one", "two", "three"];
    let classes = slugs.map(|slug| format!("\"secret:{slug}\"")).join(", ");
    let bundle = Bundle::of(
        TOOL,
        Guest::Net,
        &format!(
            "timeout_ms: 120000\nrequires:\n  network: [\"{name}\"]\n  secrets: [one, two, three]\n\
             mutates: [{classes}]\napproval: on-mutate\n"
        ),
        &format!("network:\n  egress: [\"{name}\"]\n{limits}"),
    );
    let tables: String = slugs
        .iter()
        .map(|slug| {
            format!(
                "[[secret]]\nslug = \"{slug}\"\npublisher = \"PUBLISHER\"\n\
                 origin = \"https://{name}\"\nheader = \"authorization\"\n"
            )
        })
        .collect();
    let policy = format!(
        "{tables}[[grant]]\npublisher = \"PUBLISHER\"\npreapproved = true\n\
         addresses = [\"127.0.0.0/8\"]\nrequires = [\"network:{name}\", {classes}]\n\
         mutates = [{classes}]\nreveal = [\"one\", \"two\", \"three\"]\n"
    );
    let directory = tempfile::tempdir().unwrap();
    let sources = Sources::new(
        &policy_of(&policy, &bundle.publisher()),
        "/".as_ref(),
        |_| None,
    )
    .stored_in(directory.path().join("secrets"));
    let host = bundle
        .builder(&policy)
        .transport(vault.transport())
        .secrets(sources)
        .limits(Limits {
            timeout: Limit::fixed(Duration::from_secs(120)),
            ..Limits::default()
        })
        .build()
        .unwrap();
    Yard {
        host,
        url: vault.url("/"),
        _keep: Box::new((vault, bundle, directory)),
    }
}
