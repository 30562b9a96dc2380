//! The records of a tool before it is called.

use serde_json::{Value, json};

use crate::calls::Says;
use crate::fixture::{Fixture, described};

fn of(tool: &str) -> Value {
    described(&Fixture::new().host(None::<Says>), tool)
}

#[test]
fn the_lifecycle_follows_from_what_the_policy_makes_of_the_tool() {
    for (tool, lifecycle, setup, kind) in [
        ("test.run", "draft", "ready", "wasm_component"),
        ("test.asks", "draft", "ready", "wasm_component"),
        ("test.web", "draft", "ready", "http_request"),
        (
            "test.missing",
            "requires_setup",
            "capability_gap",
            "wasm_component",
        ),
        (
            "test.denied",
            "disabled",
            "policy_blocked",
            "wasm_component",
        ),
        (
            "test.alone",
            "requires_setup",
            "dependency_unavailable",
            "unbound",
        ),
    ] {
        let records = of(tool);
        let declaration = &records["tool_declaration"];
        assert_eq!(declaration["lifecycle"], lifecycle, "{tool}");
        assert_eq!(declaration["tool_kind"], kind, "{tool}");
        let interface = &records["tool_interface"];
        assert_eq!(interface["setup_state"], setup, "{tool}");
        assert_eq!(interface["is_enabled"], json!(setup == "ready"), "{tool}");
    }
}

#[test]
fn a_tool_that_can_not_run_has_the_most_cautious_classification() {
    for (tool, read_only, destructive, open) in [
        ("test.run", true, false, false),
        ("test.web", false, false, true),
        ("test.missing", false, true, true),
        ("test.alone", false, true, true),
    ] {
        let interface = &of(tool)["tool_interface"];
        let found = ["is_read_only", "is_destructive", "is_open_world"];
        let found = found.map(|field| interface[field].as_bool().unwrap());
        assert_eq!(found, [read_only, destructive, open], "{tool}");
        assert_eq!(interface["is_concurrency_safe"], json!(read_only), "{tool}");
    }
}

#[test]
fn a_call_costs_what_entry_driver_and_contract_say_in_this_order() {
    let cost = |tool: &str| of(tool)["tool_declaration"]["annotations"]["cost"].clone();
    let stated = |units: Option<f64>, currency: Option<&str>, class: &str| json!({ "units_per_call": units, "currency": currency, "class": class });
    let web = stated(Some(4.0), Some("USD"), "expensive");
    assert_eq!(
        cost("test.web"),
        web,
        "the driver's price, the entry's class"
    );
    assert_eq!(
        cost("test.asks"),
        stated(None, None, "metered"),
        "the contract's class"
    );
    assert_eq!(cost("test.run"), stated(None, None, "trivial"));
    // No call can run it.
    assert_eq!(cost("test.alone"), Value::Null);
}

#[test]
fn a_model_sees_no_internal_field() {
    let declaration = &of("test.run")["tool_declaration"];
    let contract = &declaration["input_contract"];
    let properties = |schema: &str| contract[schema]["properties"].as_object().unwrap().clone();
    assert!(!properties("model_input_schema").contains_key("trace"));
    assert!(properties("runtime_input_schema").contains_key("trace"));
    assert_eq!(
        contract["internal_only_fields"],
        json!(["/properties/trace"])
    );
    assert_eq!(
        contract["sensitive_fields"],
        json!(["/properties/password"])
    );
    assert_eq!(contract["argument_mode"], "object");
    let output = &declaration["output_contract"];
    assert_eq!(output["internal_only_fields"], json!(["/properties/value"]));
    assert!(output["output_schema"]["properties"].get("value").is_none());
}

#[test]
fn the_profiles_say_what_was_granted_and_not_what_was_asked_for() {
    let web = of("test.web");
    let profile = &web["tool_permission_profiles"][0];
    assert_eq!(profile["access_kinds"], json!(["network:api.example.com"]));
    assert_eq!(profile["network_scope"], "api.example.com");
    assert_eq!(profile["write_effects"], json!([]));
    let rules = profile["policy_refs"].as_array().unwrap();
    assert!(
        rules[0].as_str().unwrap().starts_with("[[grant]]"),
        "{rules:?}"
    );
    let execution = &web["tool_execution_profiles"][0];
    assert_eq!(execution["sandboxed"], false);
    assert_eq!(execution["execution_kind"], "http_request");

    let missing = of("test.missing");
    let profile = &missing["tool_permission_profiles"][0];
    assert_eq!(
        profile["access_kinds"],
        json!([]),
        "nothing of a blocked tool"
    );
    let lacks = profile["missing"][0].as_str().unwrap();
    assert!(lacks.contains("workspace:/notes"), "{lacks}");

    let asks = of("test.asks");
    let profile = &asks["tool_permission_profiles"][0];
    assert_eq!(profile["approval_required"], true);
    assert_eq!(profile["risk_level"], "high");
    let run = of("test.run");
    let execution = &run["tool_execution_profiles"][0];
    assert_eq!(execution["timeout_ms"], 5000);
    assert_eq!(execution["supports_retries"], true);
    assert_eq!(execution["supports_resume"], false);
    assert_eq!(
        of("test.form")["tool_execution_profiles"][0]["supports_resume"],
        true
    );
}

#[test]
fn the_surface_separates_what_can_be_called_and_is_the_same_for_each_tool() {
    let (run, alone) = (of("test.run"), of("test.alone"));
    let surface = &run["tool_surface"];
    assert_eq!(
        surface["loaded_tools"],
        json!(["test.asks@1", "test.form@1", "test.run@1", "test.web@1"])
    );
    let blocked = surface["blocked_tools"].as_array().unwrap();
    let blocked: Vec<_> = blocked
        .iter()
        .map(|one| [&one["tool_id"], &one["reason"]])
        .collect();
    assert_eq!(
        json!(blocked),
        json!([
            ["test.alone", "dependency_unavailable"],
            ["test.denied", "policy_blocked"],
            ["test.missing", "capability_gap"],
        ])
    );
    assert_eq!(run["tool_namespace"]["namespace"], "test");
    let tools = run["tool_namespace"]["tool_refs"].as_array().unwrap();
    assert_eq!(tools.len(), 7);
    // The bundles are in different directories, and equal otherwise.
    assert_eq!(surface["tool_refs"], alone["tool_surface"]["tool_refs"]);
}

#[test]
fn two_looks_at_one_host_show_one_surface() {
    let fixture = Fixture::new();
    let host = fixture.host(None::<Says>);
    let id = |tool: &str| described(&host, tool)["tool_surface"]["surface_id"].clone();
    assert_eq!(id("test.run"), id("test.web"));
    assert!(id("test.run").as_str().unwrap().starts_with("surface:"));
}
