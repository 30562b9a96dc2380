use std::sync::Arc;

use super::*;
use crate::catalogue::testing::{NETWORK, OBJECTS, contract, host, plain};
use crate::catalogue::{self, ToolListing};
use crate::principal::Tools;

struct Fixture {
    catalogue: ToolListing,
    finder: Finder,
}

fn fixture() -> Fixture {
    let translate = contract(
        "open.translate",
        &format!(
            "{NETWORK}\n{OBJECTS}\nmetadata: {{toolward: {{search_hint: foreign languages, aliases: [open.speak]}}}}"
        ),
    );
    let host = host(
        &[
            ("open.translate", translate),
            ("open.weather", plain("open.weather")),
            ("shut.tool", plain("shut.tool")),
        ],
        &[],
    );
    let catalogue = catalogue::of(&host, &catalogue::Order::default());
    let finder = Finder::new(host, &catalogue);
    Fixture { catalogue, finder }
}

fn principal(name: &str, tools: Tools) -> Principal {
    Principal {
        name: name.into(),
        tools,
        may_approve: false,
    }
}

fn somebody() -> Principal {
    principal("somebody", Tools::All)
}

fn only(tools: &[&str]) -> Principal {
    let tools: Arc<[String]> = tools.iter().map(|tool| (*tool).to_owned()).collect();
    principal("somebody", Tools::Only(tools))
}

impl Fixture {
    fn asked(&self, name: &str, arguments: Value, principal: &Principal) -> Asked<'_> {
        let Value::Object(arguments) = arguments else {
            panic!("arguments are an object");
        };
        self.finder
            .asked(&self.catalogue, name, arguments, principal)
    }

    /// The structured answer.
    fn answer(&self, name: &str, arguments: Value, principal: &Principal) -> Value {
        match self.asked(name, arguments, principal) {
            Asked::Answer(result) => result.structured_content.unwrap(),
            other => panic!("{other:?}"),
        }
    }

    fn refused(&self, name: &str, arguments: Value, principal: &Principal) -> CallError {
        match self.asked(name, arguments, principal) {
            Asked::Failed(error) => *error,
            Asked::Refused { error, .. } => *error,
            other => panic!("{other:?}"),
        }
    }

    fn reference(&self, name: &str, principal: &Principal) -> String {
        let loaded = self.answer("load_tool", json!({ "name": name }), principal);
        loaded["reference"].as_str().unwrap().to_owned()
    }
}

fn names(found: &Value) -> Vec<&str> {
    let matches = found["matches"].as_array().unwrap();
    matches
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

#[test]
fn a_search_gives_what_to_choose_by_and_no_schema() {
    let fixture = fixture();
    let query = json!({ "query": "foreign language" });
    let found = fixture.answer("search_tools", query, &somebody());
    assert_eq!(found["status"], json!("matched"));
    assert_eq!(names(&found), ["open_translate"]);
    let tool = &found["matches"][0];
    assert_eq!(tool["namespace"], json!("open"));
    assert_eq!(tool["search_hint"], json!("foreign languages"));
    assert_eq!(tool["schema_visibility"], json!("deferred"));
    assert_eq!(tool["loading_state"], json!("deferred"));
    assert_eq!(tool["reason"], json!("keywords"));
    assert!(!found.to_string().contains("inputSchema"));
    assert!(!found.to_string().contains("input_schema"));
}

#[test]
fn exact_names_are_selected_and_the_others_named() {
    let fixture = fixture();
    let wanted = json!({ "names": ["open.weather", "open.weather", "shut.tool", "no\u{202e}ne"] });
    let found = fixture.answer("search_tools", wanted, &somebody());
    assert_eq!(names(&found), ["open_weather"]);
    assert_eq!(found["matches"][0]["reason"], json!("exact_name"));
    assert_eq!(found["total_matches"], json!(1));
    assert_eq!(found["unknown_names"], json!(["no\\u{202e}ne"]));
    assert_eq!(found["blocked_tools"][0]["name"], json!("shut_tool"));
}

#[test]
fn a_search_without_a_match_says_so_to_machines() {
    let fixture = fixture();
    let found = fixture.answer("search_tools", json!({ "query": "zzqx" }), &somebody());
    assert_eq!(found["status"], json!("no_match"));
    assert_eq!(found["matches"], json!([]));
    assert_eq!(found["total_matches"], json!(0));
    assert_eq!(found["total_tools"], json!(2));
}

#[test]
fn answers_fit_the_schemas_that_were_listed() {
    let fixture = fixture();
    for (name, arguments) in [
        ("search_tools", json!({ "query": "weather" })),
        (
            "search_tools",
            json!({ "query": "zzqx", "names": ["shut.tool", "none"] }),
        ),
        ("load_tool", json!({ "name": "open.weather" })),
    ] {
        let tool = tools().into_iter().find(|tool| tool.name == name).unwrap();
        let compiled = |schema: Arc<JsonObject>| {
            let schema = Value::Object((*schema).clone());
            toolward_contract::schema::Schema::compile(&schema, &toolward_contract::NoScope)
                .unwrap()
        };
        compiled(tool.input_schema).validate(&arguments).unwrap();
        let answer = fixture.answer(name, arguments, &somebody());
        compiled(tool.output_schema.unwrap())
            .validate(&answer)
            .unwrap();
    }
}

#[test]
fn each_reference_is_a_valid_record_of_agent_tool() {
    let mut schemas = toolward_adapters::records::SCHEMAS.iter();
    let found = schemas.find(|(object, _)| *object == "deferred_tool_ref");
    let schema: Value = serde_json::from_str(found.unwrap().1).unwrap();
    let schema =
        toolward_contract::schema::Schema::compile(&schema, &toolward_contract::NoScope).unwrap();
    let fixture = fixture();
    // With a hint, without one, and blocked.
    let wanted = json!({ "names": ["open.translate", "open.weather", "shut.tool"] });
    let found = fixture.answer("search_tools", wanted, &somebody());
    let lists = ["matches", "blocked_tools"].map(|list| found[list].as_array().unwrap());
    let records: Vec<&Value> = lists.into_iter().flatten().collect();
    assert_eq!(records.len(), 3);
    for record in &records {
        schema.validate(record).unwrap();
    }
    assert_eq!(records[0]["search_hint"], json!("foreign languages"));
    assert_eq!(records[1].get("search_hint"), None);
    assert_eq!(records[2]["loading_state"], json!("unavailable"));
}

#[test]
fn a_loaded_tool_is_called_by_its_reference() {
    let fixture = fixture();
    let loaded = fixture.answer("load_tool", json!({ "name": "open.weather" }), &somebody());
    assert_eq!(loaded["loading_state"], json!("loaded"));
    assert_eq!(loaded["input_schema"], json!({ "type": "object" }));
    assert_eq!(loaded["annotations"]["openWorldHint"], json!(true));
    let call = json!({ "reference": loaded["reference"], "input": { "place": "Oslo" } });
    match fixture.asked("call_tool", call, &somebody()) {
        Asked::Call { tool, input } => {
            assert_eq!(tool.target, "open.weather@1");
            assert_eq!(Value::Object(input), json!({ "place": "Oslo" }));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_call_before_loading_is_told_to_load() {
    let fixture = fixture();
    let early = [
        fixture.refused("open.weather", json!({}), &somebody()),
        fixture.refused(
            "call_tool",
            json!({ "reference": "open.weather" }),
            &somebody(),
        ),
        fixture.refused(
            "call_tool",
            json!({ "reference": "open_weather#AAAAAAAAAAAAAAAA" }),
            &somebody(),
        ),
    ];
    for error in early {
        assert_eq!(error.code, ErrorCode::SCHEMA_NOT_LOADED);
        assert_eq!(error.class, ErrorClass::SchemaNotLoaded);
        assert!(error.hint.unwrap().contains("load_tool"));
    }
}

#[test]
fn a_reference_is_about_one_tool_as_it_is_and_one_principal() {
    let mut fixture = fixture();
    let reference = fixture.reference("open.weather", &somebody());
    let call = json!({ "reference": reference });
    let other = principal("else", Tools::All);
    let error = fixture.refused("call_tool", call.clone(), &other);
    assert_eq!(error.code, ErrorCode::SCHEMA_NOT_LOADED);

    let swapped = reference.replace("weather", "translate");
    let error = fixture.refused("call_tool", json!({ "reference": swapped }), &somebody());
    assert_eq!(error.code, ErrorCode::SCHEMA_NOT_LOADED);

    for tool in &mut fixture.catalogue.listed {
        tool.bundle = "0".repeat(64);
    }
    let error = fixture.refused("call_tool", call, &somebody());
    assert_eq!(error.code, ErrorCode::SCHEMA_NOT_LOADED);
}

#[test]
fn what_a_principal_may_not_use_is_not_there_for_it() {
    let fixture = fixture();
    let reference = fixture.reference("open.weather", &somebody());
    let narrow = only(&["open.translate"]);
    let wanted = json!({ "query": "weather", "names": ["open.weather", "shut.tool"] });
    let found = fixture.answer("search_tools", wanted, &narrow);
    assert_eq!(found["matches"], json!([]));
    assert_eq!(found["blocked_tools"], json!([]));
    assert_eq!(found["total_tools"], json!(1));
    let error = fixture.refused("load_tool", json!({ "name": "open.weather" }), &narrow);
    assert_eq!(error.code, ErrorCode::NOT_FOUND);
    assert_eq!(error.cause.unwrap()["near"], json!(["open_translate"]));
    let error = fixture.refused("call_tool", json!({ "reference": reference }), &narrow);
    assert_eq!(error.code, ErrorCode::NOT_FOUND);
    assert!(matches!(
        fixture.asked("open.weather", json!({}), &narrow),
        Asked::Unknown
    ));
}

#[test]
fn a_blocked_tool_says_what_a_call_of_it_says_and_gives_no_policy_to_paste() {
    let fixture = fixture();
    // The error that a client gets if tools are listed and each call reaches the host.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let called = toolward_host::Request::new("shut.tool@1", "{}");
    let called = runtime.block_on(fixture.finder.host.call(called));
    let called = called.result.unwrap_err();
    assert!(called.message.contains("network:a.example"), "{called}");
    for (name, arguments) in [
        ("load_tool", json!({ "name": "shut.tool" })),
        ("call_tool", json!({ "reference": "shut.tool" })),
        ("shut.tool", json!({})),
    ] {
        let error = fixture.refused(name, arguments, &somebody());
        assert_eq!(error.code, ErrorCode::UNAUTHORISED);
        assert_eq!(error, called);
        let text = format!("{error} {:?}", error.hint);
        assert!(
            !text.contains("[[grant]]") && !text.contains("publisher ="),
            "{text}"
        );
    }
}

#[test]
fn an_alias_is_searched_loaded_and_called_like_a_name() {
    let fixture = fixture();
    let found = fixture.answer(
        "search_tools",
        json!({ "names": ["open.speak"] }),
        &somebody(),
    );
    assert_eq!(names(&found), ["open_translate"]);
    assert_eq!(found["unknown_names"], json!([]));
    let reference = fixture.reference("open.speak", &somebody());
    assert!(reference.starts_with("open_translate#"), "{reference}");
    let tag = reference.split('#').nth(1).unwrap();
    for reference in [format!("open.speak#{tag}"), reference.clone()] {
        let call = json!({ "reference": reference });
        let asked = fixture.asked("call_tool", call, &somebody());
        let Asked::Call { tool, .. } = asked else {
            panic!("{asked:?}");
        };
        assert_eq!(tool.target, "open.translate@1");
    }
    // A principal that may not use the tool does not find it by an alias, either.
    let load = json!({ "name": "open.speak" });
    let error = fixture.refused("load_tool", load, &only(&["open.weather"]));
    assert_eq!(error.code, ErrorCode::NOT_FOUND);
}

#[test]
fn an_unknown_name_is_answered_with_names_near_it() {
    let fixture = fixture();
    for name in ["Open.Speak", "translate"] {
        let error = fixture.refused("load_tool", json!({ "name": name }), &somebody());
        assert_eq!(error.code, ErrorCode::NOT_FOUND);
        let near = error.cause.unwrap()["near"].clone();
        assert_eq!(near[0], json!("open_translate"), "{near}");
    }
    assert!(matches!(
        fixture.asked("none", json!({}), &somebody()),
        Asked::Unknown
    ));
}

#[test]
fn arguments_that_miss_the_schema_are_refused() {
    let fixture = fixture();
    let many: Vec<String> = (0..=MAX_NAMES).map(|number| number.to_string()).collect();
    for (name, arguments) in [
        ("search_tools", json!({})),
        ("search_tools", json!({ "query": " " })),
        ("search_tools", json!({ "query": "x", "limit": 0 })),
        ("search_tools", json!({ "query": "x", "limit": 26 })),
        ("search_tools", json!({ "query": "x", "limit": -1 })),
        ("search_tools", json!({ "query": 7 })),
        ("search_tools", json!({ "names": many })),
        ("search_tools", json!({ "query": "x", "more": true })),
        ("load_tool", json!({})),
        ("call_tool", json!({ "input": {} })),
        (
            "call_tool",
            json!({ "reference": "open.weather", "input": [] }),
        ),
    ] {
        let error = fixture.refused(name, arguments.clone(), &somebody());
        assert_eq!(error.code, ErrorCode::INPUT_INVALID, "{name} {arguments}");
    }
}

#[test]
fn a_search_gives_no_more_than_asked_for() {
    let fixture = fixture();
    let query = json!({ "query": "open", "limit": 1 });
    let found = fixture.answer("search_tools", query, &somebody());
    assert_eq!(names(&found).len(), 1);
    assert_eq!(found["total_matches"], json!(2));
}

#[test]
fn the_schemas_state_the_limits() {
    let properties = |name: &str| {
        let schema = schema(name);
        schema["properties"].clone()
    };
    assert_eq!(properties("search")["names"]["maxItems"], MAX_NAMES);
    assert_eq!(properties("search")["limit"]["maximum"], MAX_MATCHES);
    for name in ["load", "call", "found", "loaded"] {
        assert!(properties(name).is_object(), "{name}");
    }
}
