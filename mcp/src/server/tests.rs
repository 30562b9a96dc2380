//! Which tools' headers are compared with their arguments, and for whom; which runtime a connection
//! uses.

use rmcp::ServerHandler as _;
use toolward_policy::Policy;

use super::*;
use crate::catalogue::testing::{NETWORK, contract, host, host_in, plain};
use crate::principal::Tools;

fn service(defer_above: usize) -> Service {
    let inputs =
        "inputs: {type: object, properties: {region: {type: string, x-mcp-header: Region}}}";
    let text = |id: &str| {
        contract(
            id,
            &format!("{NETWORK}\n{inputs}\noutputs: {{type: object}}"),
        )
    };
    let contracts = [
        ("open.one", text("open.one")),
        ("open.two", text("open.two")),
    ];
    let host = host(&contracts, &[]);
    let policy = Policy::from_toml("").unwrap();
    Service::new(ServerFeatures::new(host, &[], &policy, defer_above).unwrap())
}

fn only(tool: &str) -> Principal {
    Principal {
        name: "somebody".into(),
        tools: Tools::Only([tool.to_owned()].into()),
        may_approve: false,
    }
}

#[test]
fn headers_are_compared_for_the_tools_that_a_principal_may_call_and_for_no_other() {
    let service = service(10);
    let own = service.connection(Some(only("open.one")));
    let found = own.get_tool("open.one").unwrap();
    assert_eq!(
        found.input_schema["properties"]["region"]["x-mcp-header"],
        "Region"
    );
    assert_eq!(own.get_tool("open.two"), None);
    assert_eq!(own.get_tool("open.three"), None);
    // The request is not authenticated.
    assert_eq!(service.connection(None).get_tool("open.one"), None);
}

#[test]
fn where_tools_are_found_none_is_called_by_its_own_name() {
    let service = service(1);
    let own = service.connection(Some(only("open.one")));
    assert_eq!(own.get_tool("open.one"), None);
    assert_eq!(own.get_tool("call_tool"), None);
}

#[test]
fn a_principal_hears_of_no_change_to_what_it_may_not_use() {
    let directory = tempfile::tempdir().unwrap();
    let mut contracts = vec![("open.one", plain("open.one"))];
    let policy = Policy::from_toml("").unwrap();
    let features = |contracts: &[_]| {
        let host = host_in(directory.path(), contracts);
        ServerFeatures::new(host, &[], &policy, 10).unwrap()
    };
    // Looked at in reverse, an added feature is a removed one.
    let after = features(&contracts);
    contracts.push(("open.two", plain("open.two")));
    let before = features(&contracts);
    let changes = |tool: &str| {
        after
            .changes_since(&before, &BTreeSet::new(), &only(tool))
            .tools
    };
    assert!(changes("open.two"));
    assert!(!changes("open.one") && !changes("open.three"));
}

#[tokio::test]
async fn a_connection_names_the_runtime_of_its_long_calls() {
    let connection = service(10).connection(None);
    assert!(connection.long_calls_runtime().is_none());
    let connection = connection.long_calls_on(Handle::current());
    let looked_at = connection.long_calls_runtime().map(Handle::id);
    assert_eq!(looked_at, Some(Handle::current().id()));
}
