//! `[[context]]`: the state that an operator gives to tools whose contract requires a context.

use serde_json::json;
use toolward_host::{Host, Reply, Request};
use toolward_policy::{ContextSource, Policy};

use crate::fixture::{Extra, Fixture};

const SCHEMA: &str = "contextSchema:\n  type: object\n  additionalProperties: false\n  properties:\n    \
                      tenant:\n      type: string\n    level:\n      type: integer\n    people:\n      type: object\n  \
                      required: [tenant]\n";
const PEOPLE: &str =
    r#"{"first": {"id": "person-of-the-first-kind"}, "others": ["the-second", 40414243]}"#;
const VALUE: &str = "a-tenant-that-nobody-may-see";

fn fixture() -> Fixture {
    Fixture::new(Extra {
        tool: SCHEMA,
        ..Extra::default()
    })
}

/// A host under these tables, for the publisher of the fixture. Each variable holds [`VALUE`],
/// except that `LEVEL` is a number, `PEOPLE` is an object, and `MISSING` is not set.
fn host(fixture: &Fixture, tables: &str) -> Host {
    let publisher = fixture.content().origin.publisher();
    let policy = tables.replace("PUBLISHER", &format!("{publisher:?}"));
    let policy = Policy::from_toml(&policy).unwrap_or_else(|error| panic!("{error}"));
    let mut looked = 0;
    let policy = policy.with_contexts(&mut |source| {
        looked += 1;
        match source {
            ContextSource::Env(name) if name == "LEVEL" => Ok("7".to_owned()),
            ContextSource::Env(name) if name == "PEOPLE" => Ok(PEOPLE.to_owned()),
            ContextSource::Env(name) if name == "CROWD" => Ok(crowd()),
            ContextSource::Env(name) if name == "MISSING" => Err("it is not set".to_owned()),
            _ => Ok(VALUE.to_owned()),
        }
    });
    fixture.builder().policy(policy).build().unwrap()
}

async fn call(host: &Host, principal: &str) -> Reply {
    let request = Request::new("hostile.run", r#"{"do": "call"}"#);
    host.call(request.principal(principal)).await
}

/// The context that the driver got.
#[track_caller]
fn context(reply: Reply) -> serde_json::Value {
    let output = reply.result.unwrap_or_else(|error| panic!("{error:#?}"));
    let text = output.structured["value"]["context"].clone();
    serde_json::from_str(text.as_str().unwrap()).unwrap()
}

/// Asserts the code of the refusal, and that the error shows nothing of the policy.
#[track_caller]
fn refused(reply: Reply) {
    let error = reply.result.unwrap_err();
    assert_eq!(error.code.as_str(), "unauthorised", "{error:?}");
    assert_eq!(error.cause, Some(json!({ "missing": ["context"] })));
    let told = format!("{} {:?}", error.message, error.hint);
    assert!(
        !told.contains("[[context]]") && !told.contains("env"),
        "{told}"
    );
}

const WRITTEN: &str = "[[context]]\npublisher = PUBLISHER\ntool = \"hostile.run@1\"\n\
                       principal = \"alice\"\nvalues = { tenant = \"acme\", level = 3 }\n";

#[tokio::test]
async fn a_tool_without_the_context_that_it_requires_is_blocked_for_each_call() {
    let fixture = fixture();
    let host = host(&fixture, "");
    refused(call(&host, "alice").await);
    let tool = host.tools().next().unwrap();
    let lack = tool.context().expect("it lacks a context");
    assert!(tool.refusal().is_some());
    let lines = lack.lines_to_add();
    assert!(
        lines.contains("env.\"tenant\" = \"TOOLWARD_CHOOSE\""),
        "{lines}"
    );
    // The lines are a valid policy, and grant nothing until the operator has chosen.
    Policy::from_toml(&lines).unwrap_or_else(|error| panic!("{error}: {lines}"));
    let host = self::host(&fixture, &lines);
    refused(call(&host, "alice").await);
}

#[tokio::test]
async fn a_context_is_given_to_the_principal_that_it_names_and_to_no_other() {
    let fixture = fixture();
    let host = host(&fixture, WRITTEN);
    assert!(host.tools().next().unwrap().context().is_none());
    let alice = context(call(&host, "alice").await);
    assert_eq!(alice, json!({ "tenant": "acme", "level": 3 }));
    refused(call(&host, "bob").await);

    let both = format!(
        "{WRITTEN}[[context]]\npublisher = PUBLISHER\ntool = \"hostile.run\"\nprincipal = \"*\"\n\
         values.tenant = \"everybody\"\n"
    );
    let host = self::host(&fixture, &both);
    let alice = context(call(&host, "alice").await);
    assert_eq!(alice["tenant"], "acme");
    let bob = context(call(&host, "bob").await);
    assert_eq!(bob, json!({ "tenant": "everybody" }));
}

#[tokio::test]
async fn a_context_of_another_tool_publisher_or_driver_is_not_given() {
    let fixture = fixture();
    for table in [
        WRITTEN.replace("hostile.run@1", "hostile.run@2"),
        WRITTEN.replace("hostile.run@1", "hostile.other"),
        WRITTEN.replace("PUBLISHER", "\"somebody-else\""),
        format!("{WRITTEN}driver = \"another\"\n"),
        format!("{WRITTEN}driver = \"hostile\"\ndriver_publisher = \"somebody-else\"\n"),
    ] {
        let host = host(&fixture, &table);
        refused(call(&host, "alice").await);
    }
    let host = host(&fixture, &format!("{WRITTEN}driver = \"hostile\"\n"));
    context(call(&host, "alice").await);
}

#[tokio::test]
async fn what_a_request_brings_is_taken_instead_and_still_checked() {
    let fixture = fixture();
    let host = host(&fixture, "");
    let request = Request::new("hostile.run", r#"{"do": "call"}"#);
    let brought = request.clone().context(json!({ "tenant": "mine" }));
    assert_eq!(context(host.call(brought).await)["tenant"], "mine");
    let wrong = host.call(request.context(json!({ "tenant": 7 }))).await;
    assert_eq!(wrong.result.unwrap_err().code.as_str(), "input_invalid");
}

#[tokio::test]
async fn values_that_the_schema_does_not_take_or_that_are_missing_block_the_tool() {
    let fixture = fixture();
    let table = |values: &str| {
        format!(
            "[[context]]\npublisher = PUBLISHER\ntool = \"hostile.run\"\nprincipal = \"*\"\n{values}"
        )
    };
    for values in [
        "values.level = 3\n",
        "values = { tenant = 7 }\n",
        "values = { tenant = \"a\", more = 1 }\n",
        "env.tenant = \"MISSING\"\n",
        "values.tenant = \"a\"\nenv.level = \"TENANT\"\n",
    ] {
        let host = host(&fixture, &table(values));
        refused(call(&host, "alice").await);
        let lack = host.tools().next().unwrap().context().unwrap();
        assert!(!lack.to_string().contains(VALUE), "{lack}");
        assert!(lack.lines_to_add().starts_with("# "), "{lack}");
    }
    // A text is read as the type that the schema requires.
    let host = host(
        &fixture,
        &table("values.tenant = \"a\"\nenv.level = \"LEVEL\"\n"),
    );
    let given = context(call(&host, "alice").await);
    assert_eq!(given, json!({ "tenant": "a", "level": 7 }));
}

#[tokio::test]
async fn a_value_from_elsewhere_is_kept_out_of_all_that_a_call_shows_unless_it_is_public() {
    let fixture = fixture();
    let table = "[[context]]\npublisher = PUBLISHER\ntool = \"hostile.run\"\nprincipal = \"*\"\n\
                 env.tenant = \"TENANT\"\n";
    let host = host(&fixture, table);
    let reply = call(&host, "alice").await;
    let shown = format!("{}", reply.envelope());
    assert!(reply.result.is_ok(), "{shown}");
    assert!(!shown.contains(VALUE), "{shown}");
    let host = self::host(&fixture, &format!("{table}public = true\n"));
    let shown = format!("{}", call(&host, "alice").await.envelope());
    assert!(shown.contains(VALUE), "{shown}");
}

#[tokio::test]
async fn each_text_within_such_a_value_is_kept_out_by_itself() {
    let fixture = fixture();
    let table = "[[context]]\npublisher = PUBLISHER\ntool = \"hostile.run\"\nprincipal = \"*\"\n\
                 values.tenant = \"a\"\nenv.people = \"PEOPLE\"\n";
    let parts = ["person-of-the-first-kind", "the-second", "40414243"];
    let shown = |table: String| {
        let host = host(&fixture, &table);
        async move {
            let reply = call(&host, "alice").await;
            assert!(reply.result.is_ok(), "{}", reply.envelope());
            reply.envelope().to_string()
        }
    };
    let public = shown(format!("{table}public = true\n")).await;
    let kept = shown(table.to_owned()).await;
    for part in parts {
        assert!(public.contains(part), "{public}");
        assert!(!kept.contains(part), "{kept}");
    }
    // More values than can be redacted from a call.
    let crowded = table.replace("PEOPLE", "CROWD");
    refused(call(&host(&fixture, &crowded), "alice").await);
    let public = format!("{crowded}public = true\n");
    assert!(call(&host(&fixture, &public), "alice").await.result.is_ok());
}

fn crowd() -> String {
    json!({ "all": (0..257).map(|number| format!("person-{number}")).collect::<Vec<_>>() })
        .to_string()
}
