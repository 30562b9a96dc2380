//! A host's tools as clients see them.

use serde_json::json;
use tempfile::TempDir;
use toolward_policy::Policy;

use super::testing::{NETWORK, OBJECTS, bundle, catalogue, contract, host, plain};
use super::*;
use crate::principal::Tools;

#[test]
fn tools_come_in_the_order_of_their_names_and_blocked_ones_apart() {
    let named = contract(
        "open.zebra",
        &format!("{NETWORK}\n{OBJECTS}\nmetadata: {{mcp: {{name: Aardvark}}}}"),
    );
    let contracts = [
        ("open.beta", plain("open.beta")),
        ("open.zebra", named),
        ("shut.tool", plain("shut.tool")),
    ];
    let catalogue = catalogue(&contracts);
    let names: Vec<&str> = catalogue
        .listed
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    assert_eq!(names, ["Aardvark", "open_beta"]);
    assert_eq!(catalogue.listed[0].target, "open.zebra@1");
    let blocked: Vec<&str> = catalogue
        .blocked
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    assert_eq!(blocked, ["shut_tool"]);
    assert_eq!(catalogue.blocked[0].target, "shut.tool@1");
}

#[test]
fn a_tool_is_described_with_its_publisher_first_and_all_annotations() {
    let catalogue = catalogue(&[("open.beta", plain("open.beta"))]);
    let listed = &catalogue.listed[0];
    let tool = serde_json::to_value(&listed.tool).unwrap();
    assert_eq!(tool["name"], json!("open_beta"));
    assert_eq!(tool["title"], json!("The open.beta"));
    let description = tool["description"].as_str().unwrap();
    let label = format!("[{}] Does what", listed.publisher);
    assert!(description.starts_with(&label), "{description}");
    assert_eq!(tool["inputSchema"], json!({ "type": "object" }));
    assert_eq!(tool["outputSchema"], json!({ "type": "object" }));
    let hints = json!({
        "readOnlyHint": false,
        "destructiveHint": false,
        "idempotentHint": false,
        "openWorldHint": true,
    });
    assert_eq!(tool["annotations"], hints);
    assert_eq!(tool["_meta"]["toolward/tool"]["id"], json!("open.beta"));
    let drivers = json!([{ "id": "open.beta.http", "publisher": listed.publisher }]);
    assert_eq!(tool["_meta"]["toolward/tool"]["drivers"], drivers);
    assert_eq!(tool.get("icons"), None);
}

#[test]
fn a_tool_that_another_publishers_driver_carries_out_says_so() {
    let folders = [TempDir::new().unwrap(), TempDir::new().unwrap()];
    let mut tools = bundle(
        folders[0].path(),
        "open.bundle",
        &[("open.beta", plain("open.beta"))],
    );
    let mut drivers = bundle(
        folders[1].path(),
        "other.bundle",
        &[("open.beta", plain("open.beta"))],
    );
    drivers.tools.clear();
    tools.drivers.clear();
    let (own, other) = (tools.origin.publisher(), drivers.origin.publisher());
    let policy = format!(
        "[[grant]]\npublisher = {own:?}\ndriver_publisher = {other:?}\ndriver = \"open.beta.http\"\n\
         requires = [\"network:a.example\"]\n"
    );
    let host = Host::builder()
        .bundle(tools)
        .bundle(drivers)
        .policy(Policy::from_toml(&policy).unwrap())
        .build()
        .unwrap();
    let catalogue = of(&host, &Order::default());
    let tool = serde_json::to_value(&catalogue.listed[0].tool).unwrap();
    let description = tool["description"].as_str().unwrap();
    let label = format!("[{own}, carried out by {other}] Does what");
    assert!(description.starts_with(&label), "{description}");
    let drivers = json!([{ "id": "open.beta.http", "publisher": other }]);
    assert_eq!(tool["_meta"]["toolward/tool"]["drivers"], drivers);
    assert_eq!(tool["_meta"]["toolward/tool"]["publisher"], json!(own));
}

#[test]
fn the_same_bundles_give_the_same_list() {
    let contracts = [
        ("open.beta", plain("open.beta")),
        ("open.alpha", plain("open.alpha")),
    ];
    let tools = |host: &Host| -> Vec<rmcp::model::Tool> {
        let catalogue = of(host, &Order::default());
        catalogue.listed.into_iter().map(|tool| tool.tool).collect()
    };
    let host = host(&contracts, &[]);
    assert_eq!(tools(&host), tools(&host));
}

fn somebody() -> Principal {
    Principal {
        name: "somebody".into(),
        tools: Tools::All,
        may_approve: false,
    }
}

#[test]
fn two_tools_with_one_name_are_served_together_and_told_apart() {
    let name = format!("{NETWORK}\n{OBJECTS}\nmetadata: {{mcp: {{name: same}}}}");
    let catalogue = catalogue(&[
        ("open.two", contract("open.two", &name)),
        ("open.one", contract("open.one", &name)),
    ]);
    let [first, second] = &catalogue.listed[..] else {
        panic!("{:?}", catalogue.listed);
    };
    assert_eq!(
        (first.name.as_str(), first.target.as_str()),
        ("same", "open.one@1")
    );
    assert!(second.name.starts_with("same_"), "{}", second.name);
    assert!(catalogue.problems.is_empty());
}

#[test]
fn a_tool_is_found_by_its_name_and_by_an_id_that_is_nobodys_name() {
    // The second tool's name is the first tool's id.
    let named = |name: &str| format!("{NETWORK}\n{OBJECTS}\nmetadata: {{mcp: {{name: {name}}}}}");
    let catalogue = catalogue(&[
        ("open-one", contract("open-one", &named("first"))),
        ("open.two", contract("open.two", &named("open-one"))),
        ("shut.tool", plain("shut.tool")),
    ]);
    let found = |name: &str| match catalogue.find(name, &somebody())? {
        Found::Listed(tool) => Some(tool.target.as_str()),
        Found::Blocked(tool) => Some(tool.target.as_str()),
    };
    // `shut.tool` is found although no grant is about it.
    for (name, target) in [
        ("first", Some("open-one@1")),
        ("open-one", Some("open.two@1")),
        ("open-one@1", Some("open-one@1")),
        ("open.two", Some("open.two@1")),
        ("open_two", None),
        ("shut_tool", Some("shut.tool@1")),
        ("shut.tool", Some("shut.tool@1")),
        ("Shut.tool", None),
        ("shut.tool@2", None),
    ] {
        assert_eq!(found(name), target, "{name}");
    }
    let nobody = Principal {
        tools: Tools::Only(["open-one".to_owned()].into()),
        ..somebody()
    };
    // The name belongs to another tool, whether or not this principal may use that tool.
    assert!(catalogue.find("open-one", &nobody).is_none());
    assert!(catalogue.find("first", &nobody).is_some());
}

#[test]
fn a_tool_is_found_by_an_alias_that_no_other_tool_has() {
    let aliases = |aliases: &str| {
        format!("{NETWORK}\n{OBJECTS}\nmetadata: {{toolward: {{aliases: [{aliases}]}}}}")
    };
    let catalogue = catalogue(&[
        (
            "open.one",
            contract("open.one", &aliases("open.old, open.both, open.two")),
        ),
        ("open.two", contract("open.two", &aliases("open.both"))),
        ("shut.tool", contract("shut.tool", &aliases("shut.old"))),
    ]);
    let found = |name: &str| catalogue.find(name, &somebody()).map(Found::target);
    assert_eq!(found("open.old"), Some("open.one@1"));
    assert_eq!(found("shut.old"), Some("shut.tool@1"));
    // An id is never an alias of another tool, and an alias of two tools means neither.
    assert_eq!(found("open.two"), Some("open.two@1"));
    assert_eq!(found("open.both"), None);
    let other = Principal {
        tools: Tools::Only(["open.two".to_owned()].into()),
        ..somebody()
    };
    assert!(catalogue.find("open.old", &other).is_none());
}

#[test]
fn an_icon_of_the_bundle_is_within_the_list() {
    let png = b"\x89PNG\r\n\x1a\nrest";
    let icons: [(&str, &[u8]); 2] = [("open.beta.png", png), ("open.alpha.svg", b"<svg/>")];
    let contracts = [
        ("open.beta", plain("open.beta")),
        ("open.alpha", plain("open.alpha")),
    ];
    let catalogue = of(&host(&contracts, &icons), &Order::default());
    let tools: Vec<Value> = catalogue
        .listed
        .iter()
        .map(|tool| serde_json::to_value(&tool.tool).unwrap())
        .collect();
    assert_eq!(tools[0].get("icons"), None);
    let icon = &tools[1]["icons"][0];
    assert_eq!(icon["mimeType"], json!("image/png"));
    assert_eq!(icon["src"], json!("data:image/png;base64,iVBORw0KGgpyZXN0"));
}

#[test]
fn a_withdrawn_bundle_is_in_no_list() {
    let host = host(&[("open.beta", plain("open.beta"))], &[]);
    let bundle = of(&host, &Order::default()).listed[0].bundle.clone();
    assert!(host.withdraw(&bundle, "taken back"));
    let catalogue = of(&host, &Order::default());
    assert!(catalogue.listed.is_empty());
    let Some(Found::Blocked(tool)) = catalogue.find("open_beta", &somebody()) else {
        panic!("{:?}", catalogue.blocked);
    };
    assert_eq!(tool.refusal.code, ErrorCode::WITHDRAWN);
}
