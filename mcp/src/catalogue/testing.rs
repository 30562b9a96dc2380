//! Bundles under work for tests: contracts that each test writes, each with a driver without code.

use std::path::Path;

use tempfile::TempDir;
use toolward_bundle::content::Content;
use toolward_host::Host;
use toolward_policy::Policy;

use super::{Order, ToolListing};

/// The front matter of a contract.
pub(crate) fn contract(id: &str, more: &str) -> String {
    format!(
        "---\nname: The {id}\nid: {id}\ndescription: Does what {id} does.\nversion: 1.0.0\n{more}\n---\n"
    )
}

/// A bundle under work, with a driver without code for each contract.
pub(crate) fn bundle(directory: &Path, id: &str, contracts: &[(&str, String)]) -> Content {
    let write = |name: String, text: &str| {
        let path = directory.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(
        "bundle.toml".to_owned(),
        &format!(
            "id = \"{id}\"\nversion = \"1.0.0\"\nsequence = 1\npublisher = \"acme\"\ncreated = \"2026-11-01T00:00:00Z\"\n"
        ),
    );
    for (tool, text) in contracts {
        write(format!("tools/{tool}/TOOL.md"), text);
        let driver = format!(
            "---\nname: Sample\nid: {tool}.http\ndescription: Carries it out.\nversion: 1.0.0\nkind: http\n\
             network: {{ egress: [a.example] }}\nimplements:\n  - tool: {tool}\n    version: 1.x\n    \
             metadata: {{ http: {{ endpoint: /v1 }} }}\n---\n"
        );
        write(format!("drivers/{tool}/DRIVER.md"), &driver);
    }
    Content::from_dev(directory).unwrap()
}

/// The network access that the drivers need.
pub(crate) const NETWORK: &str = "requires: {network: [a.example]}";
/// Schemas that allow any object.
pub(crate) const OBJECTS: &str = "inputs: {type: object}\noutputs: {type: object}";

/// A host of one bundle. Tools of the namespace `open` are granted what they ask for.
pub(crate) fn host(contracts: &[(&str, String)], icons: &[(&str, &[u8])]) -> Host {
    let directory = TempDir::new().unwrap();
    for (name, bytes) in icons {
        std::fs::create_dir_all(directory.path().join("icons")).unwrap();
        std::fs::write(directory.path().join("icons").join(name), bytes).unwrap();
    }
    host_in(directory.path(), contracts)
}

/// Returns the tools of such a host as clients see them.
pub(crate) fn catalogue(contracts: &[(&str, String)]) -> ToolListing {
    let directory = TempDir::new().unwrap();
    let content = bundle(directory.path(), "open.bundle", contracts);
    let order = Order::new(std::slice::from_ref(&content), &Policy::empty());
    super::of(&granted(content), &order)
}

/// The same host, with a bundle in a directory that names its publisher.
pub(crate) fn host_in(directory: &Path, contracts: &[(&str, String)]) -> Host {
    granted(bundle(directory, "open.bundle", contracts))
}

fn granted(content: Content) -> Host {
    let publisher = content.origin.publisher();
    let policy = format!(
        "[[grant]]\npublisher = {publisher:?}\ntool = \"open.*\"\nrequires = [\"network:a.example\"]\n"
    );
    let host = Host::builder()
        .bundle(content)
        .policy(Policy::from_toml(&policy).unwrap());
    host.build().unwrap()
}

/// A contract with nothing in particular.
pub(crate) fn plain(id: &str) -> String {
    contract(id, &format!("{NETWORK}\n{OBJECTS}"))
}
