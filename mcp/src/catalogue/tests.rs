//! A host's tools as clients see them.

use serde_json::json;

use super::testing::{NETWORK, OBJECTS, contract, host, plain};
use super::*;

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
    let catalogue = of(&host(&contracts, &[])).unwrap();
    let names: Vec<&str> = catalogue
        .listed
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    assert_eq!(names, ["Aardvark", "open.beta"]);
    assert_eq!(catalogue.listed[0].target, "open.zebra@1");
    let blocked: Vec<&str> = catalogue
        .blocked
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    assert_eq!(blocked, ["shut.tool"]);
    assert_eq!(catalogue.blocked[0].target, "shut.tool@1");
}

#[test]
fn a_tool_is_described_with_its_publisher_first_and_all_annotations() {
    let catalogue = of(&host(&[("open.beta", plain("open.beta"))], &[])).unwrap();
    let listed = &catalogue.listed[0];
    let tool = serde_json::to_value(&listed.tool).unwrap();
    assert_eq!(tool["name"], json!("open.beta"));
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
    assert_eq!(tool.get("icons"), None);
}

#[test]
fn the_same_bundles_give_the_same_list() {
    let contracts = [
        ("open.beta", plain("open.beta")),
        ("open.alpha", plain("open.alpha")),
    ];
    let tools = |host: &Host| -> Vec<rmcp::model::Tool> {
        let catalogue = of(host).unwrap();
        catalogue.listed.into_iter().map(|tool| tool.tool).collect()
    };
    let host = host(&contracts, &[]);
    assert_eq!(tools(&host), tools(&host));
}

#[test]
fn two_tools_with_one_name_are_not_served_together() {
    let name = format!("{NETWORK}\n{OBJECTS}\nmetadata: {{mcp: {{name: same}}}}");
    let contracts = [
        ("open.one", contract("open.one", &name)),
        ("shut.two", contract("shut.two", &name)),
    ];
    let error = of(&host(&contracts, &[])).unwrap_err();
    assert_eq!(error.code(), "mcp-name-taken");
}

#[test]
fn an_icon_of_the_bundle_is_within_the_list() {
    let png = b"\x89PNG\r\n\x1a\nrest";
    let icons: [(&str, &[u8]); 2] = [("open.beta.png", png), ("open.alpha.svg", b"<svg/>")];
    let contracts = [
        ("open.beta", plain("open.beta")),
        ("open.alpha", plain("open.alpha")),
    ];
    let catalogue = of(&host(&contracts, &icons)).unwrap();
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
    let bundle = of(&host).unwrap().listed[0].bundle.clone();
    assert!(host.withdraw(&bundle, "taken back"));
    let catalogue = of(&host).unwrap();
    assert!(catalogue.listed.is_empty() && catalogue.blocked.is_empty());
}
