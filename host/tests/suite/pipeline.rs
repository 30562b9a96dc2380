//! The stages: a call gets to its driver only through all of them.

use serde_json::json;
use toolward_host::{Host, Limit, Limits, Request};

use crate::fixture::{self, Extra, Fixture, error, run};

const STRICT: &str = "inputs:\n  type: object\n  properties:\n    do:\n      type: string\n    n:\n      \
                      type: integer\n    value: {}\n  required: [do]\n  additionalProperties: false\n";

#[tokio::test]
async fn a_tool_that_is_not_there_is_not_found_and_others_are_named() {
    let error = fixture::hostile()
        .call(Request::new("no.such", "{}"))
        .await
        .result
        .unwrap_err();
    assert_eq!(error.code.as_str(), "not_found");
    assert!(error.hint.unwrap().contains("hostile.run@1"));
}

#[tokio::test]
async fn a_tool_answers_to_its_id_with_and_without_major() {
    let host = fixture::hostile();
    for name in ["hostile.run", "hostile.run@1"] {
        let reply = host.call(Request::new(name, r#"{"do": "echo"}"#)).await;
        assert!(reply.result.is_ok(), "{:?}", reply.result);
        assert_eq!(&*reply.metadata.tool, "hostile.run@1.0.0");
    }
    let reply = host
        .call(Request::new("hostile.run@2", r#"{"do": "echo"}"#))
        .await;
    assert_eq!(reply.result.unwrap_err().code.as_str(), "not_found");
}

#[tokio::test]
async fn input_that_misses_its_schema_never_reaches_the_driver() {
    let host = Fixture::new(Extra {
        tool: STRICT,
        ..Extra::default()
    })
    .host();
    for (input, path) in [
        (r#"{"do": 7}"#, "/do"),
        (r"{}", ""),
        (r#"{"do": "echo", "n": 1.5}"#, "/n"),
        (r#"{"do": "echo", "more": 1}"#, ""),
    ] {
        let reply = host.call(Request::new("hostile.run", input)).await;
        assert_eq!(reply.metadata.attempts, 0, "{input}");
        let error = reply.result.unwrap_err();
        assert_eq!(error.code.as_str(), "input_invalid", "{input}");
        assert_eq!(
            error.cause.unwrap()["violations"][0]["path"],
            json!(path),
            "{input}"
        );
    }
}

#[tokio::test]
async fn text_that_is_not_strict_json_never_reaches_the_driver() {
    let host = fixture::hostile();
    let deep = format!(r#"{{"do": {}1{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
    let large = format!(r#"{{"do": "{}"}}"#, "x".repeat(1 << 20));
    for input in [
        "",
        "{",
        r#"{"do": "echo"} 7"#,
        r#"{"do": "echo", "do": "loop"}"#,
        r#"{"do": "echo", "n": 1152921504606846976}"#,
        r#"{"do": "echo", "n": -9007199254740993}"#,
        &deep,
        &large,
    ] {
        let reply = host.call(Request::new("hostile.run", input)).await;
        assert_eq!(reply.metadata.attempts, 0);
        assert_eq!(reply.result.unwrap_err().code.as_str(), "input_invalid");
    }
}

#[tokio::test]
async fn a_value_built_by_the_embedder_is_held_to_the_same_rules() {
    let host = fixture::hostile();
    let error = error(&host, json!({"do": "echo", "n": 1_u64 << 60})).await;
    assert_eq!(error.code.as_str(), "input_invalid");
}

#[tokio::test]
async fn the_driver_gets_the_validated_context_and_nothing_where_none_is_declared() {
    let plain = fixture::hostile();
    let request = Request::new("hostile.run", r#"{"do": "call"}"#).context(json!({"tenant": "a"}));
    let call = plain.call(request).await.result.unwrap().structured;
    assert_eq!(call["value"]["context"], json!("{}"), "{call}");

    let fixture = Fixture::new(Extra {
        tool: "contextSchema:\n  type: object\n  properties:\n    tenant:\n      type: string\n  \
               required: [tenant]\n",
        ..Extra::default()
    });
    let host = fixture.host();
    let missing = host
        .call(Request::new("hostile.run", r#"{"do": "call"}"#))
        .await;
    assert_eq!(missing.result.unwrap_err().code.as_str(), "unauthorised");
    let request = Request::new("hostile.run", r#"{"do": "call"}"#).context(json!({"tenant": "a"}));
    let call = host.call(request).await.result.unwrap().structured;
    assert_eq!(
        call["value"]["context"],
        json!(r#"{"tenant":"a"}"#),
        "{call}"
    );
}

#[tokio::test]
async fn a_pin_in_the_context_chooses_the_driver_and_is_no_part_of_the_context() {
    let fixture = Fixture::new(Extra {
        tool: "contextSchema:\n  type: object\n  properties:\n    tenant:\n      type: string\n  \
               additionalProperties: false\n",
        ..Extra::default()
    });
    let host = fixture.host();
    let request = |context| Request::new("hostile.run", r#"{"do": "call"}"#).context(context);
    let pinned = request(json!({"pinnedProvider": "hostile", "tenant": "a"}));
    let call = host.call(pinned).await.result.unwrap().structured;
    assert_eq!(
        call["value"]["context"],
        json!(r#"{"tenant":"a"}"#),
        "{call}"
    );
    let error = async |request| {
        let reply = host.call(request).await;
        assert_eq!(reply.metadata.attempts, 0);
        reply.result.unwrap_err().code
    };
    let other = request(json!({"pinnedProvider": "other"}));
    assert_eq!(error(other).await.as_str(), "pinned_provider_unavailable");
    let both = request(json!({"pinnedProvider": "hostile"})).pinned_driver("other");
    assert_eq!(error(both).await.as_str(), "pinned_provider_unavailable");
    let number = request(json!({"pinnedProvider": 7}));
    assert_eq!(error(number).await.as_str(), "input_invalid");
}

#[tokio::test]
async fn whatever_declares_a_capability_is_denied_and_named() {
    for (declaration, name) in [
        (
            "requires:\n  network: [api.example.com]\n",
            "network:api.example.com",
        ),
        ("requires:\n  secrets: [api-key]\n", "secret:api-key"),
        ("requires:\n  tools: [other.tool]\n", "other.tool"),
        ("requires:\n  workspace: [/data]\n", "workspace:/data"),
        (
            "mutates: [\"workspace:/notes\"]\napproval: on-mutate\n",
            "workspace:/notes",
        ),
        (
            "mutates: [\"blockchain:ledger\"]\napproval: on-mutate\n",
            "blockchain:ledger",
        ),
    ] {
        let driver = match declaration.contains("network") {
            // No approval asks for a capability that the driver does not use.
            true => "network:\n  egress: [api.example.com]\n",
            false => "",
        };
        let host = Fixture::new(Extra {
            tool: declaration,
            driver,
            ..Extra::default()
        })
        .host();
        let reply = run(&host, json!({"do": "echo"})).await;
        assert_eq!(reply.metadata.attempts, 0, "{declaration}");
        let error = reply.result.unwrap_err();
        assert_eq!(error.code.as_str(), "unauthorised", "{declaration}");
        assert!(error.message.contains(name), "{declaration}: {error}");
    }
}

#[tokio::test]
async fn whatever_needs_a_person_is_denied_where_nobody_can_be_asked() {
    for declaration in [
        "approval: always\n",
        "approval: policy:strict\n",
        "risk_level: 2\n",
    ] {
        let driver = match declaration.contains("network") {
            // No approval asks for a capability that the driver does not use.
            true => "network:\n  egress: [api.example.com]\n",
            false => "",
        };
        let host = Fixture::new(Extra {
            tool: declaration,
            driver,
            ..Extra::default()
        })
        .host();
        let reply = run(&host, json!({"do": "echo"})).await;
        assert_eq!(reply.metadata.attempts, 0, "{declaration}");
        assert_eq!(
            reply.result.unwrap_err().code.as_str(),
            "toolward:approval_denied"
        );
    }
}

#[tokio::test]
async fn a_retryable_failure_of_an_idempotent_tool_is_tried_again() {
    const RETRY: &str =
        "retry:\n  max_attempts: 3\n  backoff: fixed\n  initial_ms: 1\nidempotent: true\n";
    let host = Fixture::new(Extra {
        tool: RETRY,
        ..Extra::default()
    })
    .host();
    let reply = run(&host, json!({"do": "flaky", "n": 3})).await;
    assert!(reply.result.is_ok(), "{:?}", reply.result);
    assert_eq!(reply.metadata.attempts, 3);

    let reply = run(&host, json!({"do": "flaky", "n": 9})).await;
    assert!(reply.result.is_err());
    assert_eq!(reply.metadata.attempts, 3, "no more than the policy allows");

    let not_idempotent = RETRY.replace("true", "false");
    let host = Fixture::new(Extra {
        tool: &not_idempotent,
        ..Extra::default()
    })
    .host();
    assert_eq!(
        run(&host, json!({"do": "flaky", "n": 3}))
            .await
            .metadata
            .attempts,
        1
    );
}

#[tokio::test]
async fn one_deadline_covers_all_attempts() {
    let host = Fixture::new(Extra {
        tool: "timeout_ms: 6000\nidempotent: true\nretry:\n  max_attempts: 100\n  backoff: fixed\n  \
               initial_ms: 1\n",
        ..Extra::default()
    })
    .host();
    let started = std::time::Instant::now();
    let reply = run(&host, json!({"do": "slow-flaky", "n": 1000})).await;
    assert!(reply.result.is_err());
    assert!(
        (2..=7).contains(&reply.metadata.attempts),
        "{}",
        reply.metadata.attempts
    );
    assert!(started.elapsed() < std::time::Duration::from_secs(60));
}

#[tokio::test]
async fn a_dropped_input_is_refused_unless_another_driver_takes_it() {
    let extra = Extra {
        tool: "default_implementation: hostile\n",
        implements: "    schema_narrowing:\n      drop_inputs: [value]\n",
        ..Extra::default()
    };
    let fixture = Fixture::new(Extra {
        tool: &format!("{STRICT}{}", extra.tool),
        ..extra
    });
    let refused = error(&fixture.host(), json!({"do": "echo", "value": 1})).await;
    assert_eq!(refused.code.as_str(), "input_unsupported");
    assert_eq!(
        run(&fixture.host(), json!({"do": "echo"}))
            .await
            .metadata
            .driver
            .as_deref(),
        Some("hostile")
    );

    fixture.driver("other", "hostile.run", Extra::default());
    let reply = run(&fixture.host(), json!({"do": "echo", "value": 1})).await;
    assert_eq!(reply.metadata.driver.as_deref(), Some("other"));
}

#[tokio::test]
async fn a_pinned_driver_serves_the_call_or_nothing_does() {
    let fixture = Fixture::new(Extra::default());
    fixture.driver("other", "hostile.run", Extra::default());
    let host = fixture.host();
    let request = |pin: &str| Request::new("hostile.run", r#"{"do": "echo"}"#).pinned_driver(pin);
    for pin in ["hostile", "other"] {
        let reply = host.call(request(pin)).await;
        assert_eq!(reply.metadata.driver.as_deref(), Some(pin));
    }
    let error = host.call(request("third")).await.result.unwrap_err();
    assert_eq!(error.code.as_str(), "pinned_provider_unavailable");
    let error = host.call(request("hostle")).await.result.unwrap_err();
    assert_eq!(error.hint.as_deref(), Some("did you mean `hostile`?"));
}

#[tokio::test]
async fn two_bundles_with_one_tool_don_t_load_together() {
    let (first, second) = (
        Fixture::new(Extra::default()),
        Fixture::new(Extra::default()),
    );
    let error = Host::builder()
        .bundle(first.content())
        .bundle(second.content())
        .build();
    let error = error.unwrap_err();
    assert_eq!(error.code(), "duplicate-id");
    // Both are named, although their manifests are equal.
    let text = error.to_string();
    for fixture in [&first, &second] {
        let publisher = fixture.content().origin.publisher();
        assert!(text.contains(&publisher), "{publisher}: {text}");
    }
}

#[tokio::test]
async fn the_guest_gets_one_reserialisation_of_the_validated_input() {
    let host = fixture::hostile();
    let request = Request::new("hostile.run", "{ \"do\" :\n \"call\" , \"value\":1.0e0 }");
    let call = host.call(request).await.result.unwrap().structured;
    assert_eq!(
        call["value"]["input"],
        json!(r#"{"do":"call","value":1.0}"#),
        "{call}"
    );
}

#[tokio::test]
async fn what_a_driver_adds_to_the_declaration_is_denied_too() {
    let host = Fixture::new(Extra {
        driver: "requires:\n  secrets: [api-key]\n",
        ..Extra::default()
    })
    .host();
    let reply = run(&host, json!({"do": "echo"})).await;
    assert_eq!(reply.metadata.attempts, 0);
    let error = reply.result.unwrap_err();
    assert_eq!(error.code.as_str(), "unauthorised");
    assert!(error.message.contains("secret:api-key"), "{error}");
}

#[tokio::test]
async fn a_driver_of_somebody_else_does_not_serve_a_contract() {
    let contract = Fixture::new(Extra::default());
    std::fs::remove_dir_all(contract.path().join("drivers")).unwrap();
    let other = Fixture::new(Extra::default());
    std::fs::remove_dir_all(other.path().join("tools")).unwrap();
    let host = Host::builder()
        .bundle(contract.content())
        .bundle(other.content())
        .build()
        .unwrap();
    let error = error(&host, json!({"do": "echo"})).await;
    assert_eq!(error.code.as_str(), "no_route");
}

#[tokio::test]
async fn all_attempts_of_a_call_share_its_idempotency_key_and_its_fuel() {
    const RETRY: &str =
        "retry:\n  max_attempts: 9\n  backoff: fixed\n  initial_ms: 1\nidempotent: true\n";
    let fixture = Fixture::new(Extra {
        tool: RETRY,
        ..Extra::default()
    });
    let host = fixture.host();
    let reply = run(&host, json!({"do": "flaky", "n": 3})).await;
    let key = reply.result.unwrap().structured["value"]["idempotency_key"].clone();
    assert_eq!(key, json!(reply.metadata.invocation));

    // The limit below allows one attempt, but not nine.
    let one = run(&host, json!({"do": "flaky", "n": 1}))
        .await
        .metadata
        .fuel;
    let limits = Limits {
        fuel: Limit::fixed(one * 4),
        ..Limits::default()
    };
    let host = fixture.builder().limits(limits).build().unwrap();
    let reply = run(&host, json!({"do": "flaky", "n": 9})).await;
    assert_eq!(
        reply.result.unwrap_err().code.as_str(),
        "toolward:fuel_exhausted"
    );
    assert!(reply.metadata.fuel <= one * 4);
}

#[tokio::test]
async fn a_driver_that_is_denied_gives_way_to_one_that_is_not() {
    let fixture = Fixture::new(Extra {
        tool: "default_implementation: hostile\n",
        driver: "requires:\n  secrets: [api-key]\n",
        ..Extra::default()
    });
    fixture.driver("other", "hostile.run", Extra::default());
    let reply = run(&fixture.host(), json!({"do": "echo"})).await;
    assert!(reply.result.is_ok(), "{:?}", reply.result);
    assert_eq!(reply.metadata.driver.as_deref(), Some("other"));
}

#[tokio::test]
async fn an_alias_reaches_its_tool_and_no_other_tools_id() {
    let aliases = |names: &str| format!("metadata:\n  toolward:\n    aliases: [{names}]\n");
    let first = Fixture::new(Extra {
        tool: &aliases("hostile.old, hostile.both, hostile.second"),
        ..Extra::default()
    });
    let second = Fixture::new(Extra::default());
    std::fs::remove_dir_all(second.path().join("tools")).unwrap();
    std::fs::remove_dir_all(second.path().join("drivers")).unwrap();
    second.tool("hostile.second", &aliases("hostile.both"));
    second.driver("second", "hostile.second", Extra::default());
    let host = Host::builder()
        .bundle(first.content())
        .bundle(second.content())
        .build()
        .unwrap();
    let reached = |name: &'static str| {
        let host = host.clone();
        async move {
            let reply = host.call(Request::new(name, r#"{"do": "echo"}"#)).await;
            let tool = reply.metadata.tool.to_string();
            reply.result.is_ok().then_some(tool)
        }
    };
    assert_eq!(reached("hostile.old").await.unwrap(), "hostile.run@1.0.0");
    assert_eq!(
        reached("hostile.second").await.unwrap(),
        "hostile.second@1.0.0"
    );
    assert_eq!(reached("hostile.both").await, None, "two tools claim it");
}
