//! The fate of a call whose driver failed, and the order of drivers after the host saw one fail.

mod limits;

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolward_host::{
    ApprovalRequest, Approver, CallFacts, CallListener, Host, HostBuilder, Limits, Reply, Request,
    Tried, Verdict,
};
use toolward_policy::Policy;

use crate::bombs;
use crate::fixture::{Extra, Fixture, hostile_wasm};

const FALLBACK: &str = "[resolve]\nfallback = true\n";

/// Runs the steps of `then` in the second driver; the first driver runs `do`.
const NEXT: Extra<'_> = Extra {
    tool: "",
    driver: "",
    implements: "    mapping: { do: then }\n",
};

/// `hostile.run` with the drivers `hostile` and `next`, in this order.
fn fixture(tool: &str) -> Fixture {
    let fixture = Fixture::new(Extra {
        tool,
        ..Extra::default()
    });
    fixture.driver("next", "hostile.run", NEXT);
    fixture
}

fn under(fixture: &Fixture, policy: &str) -> HostBuilder {
    let publisher = format!("dev:{}", fixture.path().display());
    let policy = policy.replace("PUBLISHER", &publisher);
    fixture
        .builder()
        .policy(Policy::from_toml(&policy).unwrap())
}

fn request(input: Value) -> Request {
    Request::with_value("hostile.run", input)
}

/// An input that makes the first driver do this, and the second driver echo.
fn first(what: &str) -> Value {
    json!({"do": what, "then": "echo", "value": 7, "name": "not_found"})
}

/// The driver that served the call, or the code of its error; and the drivers that were tried, each
/// with its attempts and its code.
fn outcome(reply: &Reply) -> (String, Vec<(String, u32, String)>) {
    let meta = &reply.metadata;
    let ended = match &reply.result {
        Ok(_) => meta.driver.as_deref().unwrap().to_owned(),
        Err(error) => error.code.to_string(),
    };
    let code = |one: &Tried| {
        one.error
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default()
    };
    let tried = meta.tried.iter();
    let tried = tried.map(|one| (one.driver.to_string(), one.attempts, code(one)));
    (ended, tried.collect())
}

/// The first driver's action, the code of its attempt, and whether the next driver serves the call.
const FAILURES: [(&str, &str, bool); 12] = [
    ("trap", "upstream_error", true),
    ("panic", "upstream_error", true),
    ("exit", "upstream_error", true),
    ("wrong-output", "upstream_error", true),
    ("not-json", "upstream_error", true),
    ("slow-flaky", "upstream_error", true),
    ("allocate-forever", "toolward:memory_exceeded", true),
    ("huge-result", "toolward:result_too_large", true),
    // A driver's own error is an answer.
    ("error", "not_found", false),
    // These limits are for the whole call, so nothing is left for another driver.
    ("loop", "toolward:fuel_exhausted", false),
    ("block-forever", "timeout", false),
    // A question that was not granted.
    ("ask", "input_unavailable", false),
];

fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.fuel.maximum = 300_000_000;
    limits.memory_bytes.maximum = 64 << 20;
    limits.timeout.maximum = Duration::from_secs(3);
    limits
}

fn failing(what: &str) -> Value {
    let mut input = first(what);
    input["n"] = match what {
        "huge-result" => json!(8),
        "exit" => json!(1),
        _ => json!(0),
    };
    input
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_tool_that_only_reads_the_next_driver_serves_what_the_first_one_failed() {
    // With a default driver, failures do not change the order.
    let fixture = fixture("default_implementation: hostile\n");
    let host = under(&fixture, FALLBACK).limits(limits()).build().unwrap();
    for (what, code, falls) in FAILURES {
        // Each call has another principal, since a failure counts only for its principal.
        let reply = host.call(request(failing(what)).principal(what)).await;
        let (ended, tried) = outcome(&reply);
        let one = ("hostile".to_owned(), 1, code.to_owned());
        match falls {
            true => {
                assert_eq!(ended, "next", "{what}: {:?}", reply.result);
                assert_eq!(
                    tried,
                    [one, ("next".to_owned(), 1, String::new())],
                    "{what}"
                );
                assert_eq!(reply.result.unwrap().structured["value"], 7);
                let meta = serde_json::to_value(&reply.metadata).unwrap();
                assert_eq!(meta["tried"][0]["error"], code, "{meta}");
                assert_eq!(meta["tried"][1]["driver_publisher"], meta["publisher"]);
                assert_eq!(meta["attempts"], 2);
            }
            false => {
                assert_eq!((ended.as_str(), tried), (code, vec![one]), "{what}");
                let meta = serde_json::to_value(&reply.metadata).unwrap();
                assert!(meta.get("tried").is_none(), "{meta}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changes_something_stays_with_the_driver_that_was_started() {
    let grant = "[[grant]]\npublisher = \"PUBLISHER\"\nmutates = [\"database:things\"]\npreapproved = true\n";
    // This also holds for an idempotent tool, since the services of two drivers know nothing of
    // each other.
    for more in ["", "idempotent: true\n"] {
        let fixture = fixture(&format!(
            "default_implementation: hostile\nmutates: [\"database:things\"]\n{more}"
        ));
        let policy = format!("{FALLBACK}{grant}");
        let host = under(&fixture, &policy).limits(limits()).build().unwrap();
        for (what, code, _) in FAILURES {
            let reply = host.call(request(failing(what)).principal(what)).await;
            let tried = vec![("hostile".to_owned(), 1, code.to_owned())];
            assert_eq!(outcome(&reply), (code.to_owned(), tried), "{what} {more}");
        }
    }
}

#[tokio::test]
async fn a_call_falls_only_where_the_policy_says_so_and_nobody_pinned_a_driver() {
    let fixture = fixture("");
    let failed = "upstream_error";
    for (policy, pin, expected) in [
        (FALLBACK, None, "next"),
        ("", None, failed),
        ("[resolve]\nfallback = false\n", None, failed),
        (FALLBACK, Some("hostile"), failed),
        (FALLBACK, Some("next"), "next"),
    ] {
        let host = under(&fixture, policy).build().unwrap();
        let mut call = request(first("trap"));
        if let Some(pin) = pin {
            call = call.pinned_driver(pin);
        }
        let (ended, tried) = outcome(&host.call(call).await);
        assert_eq!(ended, expected, "{policy} {pin:?}");
        assert_eq!(
            tried.len(),
            1 + usize::from(pin.is_none() && expected == "next")
        );
    }
    // A pin in the context counts, too.
    let host = under(&fixture, FALLBACK).build().unwrap();
    let pinned = request(first("trap")).context(json!({"pinnedProvider": "hostile"}));
    assert_eq!(outcome(&host.call(pinned).await).0, failed);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_drivers_of_a_call_share_its_deadline() {
    let fixture = fixture("");
    let host = under(&fixture, FALLBACK).build().unwrap();
    let input = json!({"do": "slow-flaky", "then": "sleep", "n": 700});
    let alone = json!({"do": "sleep", "n": 700});
    let timeout = Duration::from_millis(1000);
    assert!(
        host.call(request(alone).timeout(timeout))
            .await
            .result
            .is_ok()
    );
    let started = Instant::now();
    let reply = host.call(request(input).timeout(timeout)).await;
    assert!(started.elapsed() < Duration::from_millis(1600));
    let (ended, tried) = outcome(&reply);
    assert_eq!(ended, "timeout");
    assert_eq!(
        tried[0],
        ("hostile".to_owned(), 1, "upstream_error".to_owned())
    );
    assert_eq!(tried[1], ("next".to_owned(), 1, "timeout".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn all_drivers_of_a_call_share_its_fuel() {
    let fixture = fixture("");
    let with = |fuel| {
        let mut limits = limits();
        limits.fuel.maximum = fuel;
        under(&fixture, FALLBACK).limits(limits).build().unwrap()
    };
    let host = with(300_000_000);
    let fuel = async |input: Value| host.call(request(input).principal("x")).await.metadata.fuel;
    let failing = fuel(json!({"do": "wrong-output"})).await;
    let echo = fuel(first("echo")).await;
    let both = fuel(first("wrong-output")).await;
    assert!(failing > 0 && echo > 0);
    assert!(both > failing.max(echo), "{both} {failing} {echo}");
    // Enough for either driver, but not for both.
    let tight = with(failing.max(echo) + 100);
    assert!(tight.call(request(first("echo"))).await.result.is_ok());
    let reply = tight.call(request(first("wrong-output"))).await;
    let (ended, tried) = outcome(&reply);
    assert_eq!(ended, "toolward:fuel_exhausted");
    assert_eq!(tried.len(), 2);
    assert!(reply.metadata.fuel <= failing.max(echo) + 100);
}

#[tokio::test]
async fn each_driver_has_its_retries() {
    const RETRY: &str =
        "idempotent: true\nretry: { max_attempts: 2, backoff: fixed, initial_ms: 1 }\n";
    let fixture = fixture(RETRY);
    let host = under(&fixture, FALLBACK).build().unwrap();
    let reply = host.call(request(first("slow-flaky"))).await;
    let (ended, tried) = outcome(&reply);
    assert_eq!(ended, "next");
    let attempts: Vec<u32> = tried.iter().map(|one| one.1).collect();
    assert_eq!((attempts, reply.metadata.attempts), (vec![2, 1], 3));
    // The attempts of the next driver are numbered separately.
    let call = json!({"do": "slow-flaky", "then": "call"});
    let reply = host.call(request(call)).await.result.unwrap();
    assert_eq!(reply.structured["value"]["attempt"], 1, "{reply:?}");
}

#[derive(Default)]
struct Heard(Mutex<Vec<CallFacts>>);

impl CallListener for Heard {
    fn finished(&self, call: &CallFacts) {
        self.0.lock().unwrap().push(call.clone());
    }
}

#[tokio::test]
async fn a_listener_is_told_of_each_driver_with_its_publisher() {
    let fixture = fixture("");
    let heard = Arc::new(Heard::default());
    let host = under(&fixture, FALLBACK)
        .listener(heard.clone())
        .build()
        .unwrap();
    host.call(request(first("trap"))).await.result.unwrap();
    let told = heard.0.lock().unwrap().remove(0);
    let publisher = fixture.content().origin.publisher();
    let tried: Vec<_> = told.tried.iter().map(|one| &*one.driver).collect();
    assert_eq!(tried, ["hostile", "next"]);
    assert!(
        told.tried
            .iter()
            .all(|one| *one.driver_publisher == *publisher && one.attempts == 1)
    );
    assert_eq!((told.error, told.driver.as_deref()), (None, Some("next")));
}

/// Approves, and remembers the requests.
#[derive(Default)]
struct Yes(Mutex<Vec<ApprovalRequest>>);

impl Approver for Yes {
    fn ask<'a>(
        &'a self,
        request: &'a ApprovalRequest,
    ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        self.0.lock().unwrap().push(request.clone());
        Box::pin(async { Verdict::Approved })
    }
}

/// A bundle of another publisher with the driver `foreign`, which runs the steps of `then`.
fn foreign() -> Fixture {
    let fixture = Fixture::new(Extra::default());
    for directory in ["tools", "drivers"] {
        std::fs::remove_dir_all(fixture.path().join(directory)).unwrap();
    }
    fixture.driver("foreign", "hostile.run", NEXT);
    fixture
}

fn binding(foreign: &Fixture, more: &str) -> String {
    let publisher = foreign.content().origin.publisher();
    format!(
        "[[grant]]\npublisher = \"PUBLISHER\"\ndriver_publisher = {publisher:?}\ndriver = \"foreign\"\n{more}"
    )
}

async fn asked(host: &Host, input: Value) -> (Reply, ApprovalRequest) {
    let yes = Arc::new(Yes::default());
    let reply = host.call(request(input).approver(yes.clone())).await;
    let mut asked = yes.0.lock().unwrap();
    assert_eq!(asked.len(), 1, "one question for all drivers");
    (reply, asked.remove(0))
}

#[tokio::test]
async fn a_question_names_each_driver_that_takes_over_with_publisher_hosts_and_regions() {
    let fixture = Fixture::new(Extra {
        tool: "approval: always\nrequires: { network: [a.example, b.example] }\n",
        driver: "network: { egress: [a.example] }\nregion: [eu, us]\n",
        ..Extra::default()
    });
    fixture.driver(
        "next",
        "hostile.run",
        Extra {
            driver: "network: { egress: [b.example] }\n",
            ..NEXT
        },
    );
    let other = foreign();
    let grant = "[[grant]]\npublisher = \"PUBLISHER\"\nrequires = [\"network:a.example\", \"network:b.example\"]\n";
    let host = |more: &str| {
        let binds = binding(&other, more);
        let policy = format!("{FALLBACK}{grant}{binds}");
        under(&fixture, &policy)
            .bundle(other.content())
            .build()
            .unwrap()
    };
    let bound = host("");
    let (reply, question) = asked(&bound, first("trap")).await;
    assert_eq!(outcome(&reply).0, "next");
    assert_eq!(question.driver, "hostile");
    assert_eq!(question.driver_hosts, ["a.example"]);
    assert_eq!(question.driver_regions, ["eu", "us"]);
    let [next] = question.fallbacks.as_slice() else {
        panic!("{:?}", question.fallbacks);
    };
    assert_eq!(
        (next.id.as_str(), &next.publisher),
        ("next", &question.publisher)
    );
    assert_eq!(
        (&next.hosts[..], &next.regions[..]),
        (&["b.example".to_owned()][..], &["global".to_owned()][..])
    );
    // The driver is bound, but no rule lets calls fall to it.
    let all = json!({"do": "trap", "then": "trap"});
    assert_eq!(outcome(&asked(&bound, all.clone()).await.0).1.len(), 2);

    let falls = host("fallback = true\n");
    let (reply, question) = asked(&falls, all).await;
    let named: Vec<&str> = question
        .fallbacks
        .iter()
        .map(|one| one.id.as_str())
        .collect();
    assert_eq!(named, ["next", "foreign"]);
    assert_eq!(
        question.fallbacks[1].publisher,
        other.content().origin.publisher()
    );
    let (ended, tried) = outcome(&reply);
    assert_eq!((ended.as_str(), tried.len()), ("upstream_error", 3));
    assert_eq!(reply.metadata.driver.as_deref(), Some("foreign"));
    assert_eq!(
        reply.metadata.driver_publisher.as_deref(),
        Some(&*other.content().origin.publisher())
    );
}

#[tokio::test]
async fn a_question_states_that_the_next_driver_may_repeat_a_change() {
    const REPEAT: &str = "tool = \"hostile.run\"\nfallback = \"repeat\"\n";
    for (risk, lines, repeats) in [(1, REPEAT, true), (1, "", false), (0, REPEAT, false)] {
        let fixture = fixture(&format!(
            "approval: always\nidempotent: true\nrisk_level: {risk}\n"
        ));
        let policy = format!("{FALLBACK}[[grant]]\npublisher = \"PUBLISHER\"\n{lines}");
        let host = under(&fixture, &policy).build().unwrap();
        let (reply, question) = asked(&host, first("trap")).await;
        let reasons = question.reasons.iter();
        let named = reasons
            .filter(|reason| reason.contains("make the change again"))
            .count();
        assert_eq!(named, usize::from(repeats), "{:?}", question.reasons);
        assert_eq!(reply.result.is_ok(), repeats || risk == 0, "{reply:?}");
    }
}

/// `hostile.run` with three drivers. The last driver echoes. If it `reaches` another tool, it has a
/// risk that is never taken twice.
fn three(reaches: bool) -> Fixture {
    let fixture = fixture("default_implementation: hostile\nidempotent: true\nrisk_level: 1\n");
    fixture.tool("hostile.other", "risk_level: 2\n");
    fixture.driver("other", "hostile.other", Extra::default());
    let last = Extra {
        driver: if reaches {
            "requires: { tools: [hostile.other] }\n"
        } else {
            ""
        },
        implements: "    mapping: { do: last }\n",
        ..Extra::default()
    };
    fixture.driver("p-last", "hostile.run", last);
    fixture
}

const REPEATS: &str = "[resolve]\nfallback = true\n\
    [[grant]]\npublisher = \"PUBLISHER\"\ntool = \"hostile.run\"\nfallback = \"repeat\"\npreapproved = true\n\
    [[grant]]\npublisher = \"PUBLISHER\"\ndriver = \"p-last\"\nrequires = [\"tool:hostile.other\"]\n\
    preapproved = true\n";

#[tokio::test]
async fn a_change_is_repeated_by_every_driver_that_follows() {
    let fixture = three(false);
    let host = under(&fixture, REPEATS).build().unwrap();
    let all = json!({"do": "trap", "then": "trap", "last": "echo", "value": 7});
    let (ended, tried) = outcome(&host.call(request(all)).await);
    assert_eq!(ended, "p-last", "{tried:?}");
    let names: Vec<_> = tried.iter().map(|one| one.0.as_str()).collect();
    assert_eq!(names, ["hostile", "next", "p-last"]);
}

#[tokio::test]
async fn what_an_earlier_driver_may_have_done_stays_uncertain_after_one_that_did_not_start() {
    let fixture = three(true);
    let broken = bombs::with_module(
        &std::fs::read(hostile_wasm()).unwrap(),
        &[vec![10, 2, 1, 0]],
    );
    fixture.write("drivers/next/driver.wasm", broken);
    let host = under(&fixture, REPEATS).build().unwrap();
    // The last driver serves a call if no earlier driver was tried.
    let pinned = request(json!({"last": "echo", "value": 7})).pinned_driver("p-last");
    assert_eq!(outcome(&host.call(pinned).await).0, "p-last");
    let all = json!({"do": "trap", "then": "echo", "last": "echo", "value": 7});
    let (ended, tried) = outcome(&host.call(request(all)).await);
    assert_eq!(ended, "upstream_error", "{tried:?}");
    let names: Vec<_> = tried.iter().map(|one| (one.0.as_str(), one.1)).collect();
    assert_eq!(names, [("hostile", 1), ("next", 0)]);
}

#[tokio::test]
async fn a_request_that_nobody_was_shown_takes_over_no_call_that_was_asked_about() {
    const WEB: &str = "---\nname: Web\nid: web\ndescription: Asks a service.\nversion: 1.0.0\nkind: http\n\
        base_url: https://b.example\nnetwork: { egress: [b.example] }\nimplements:\n  - tool: hostile.run\n\
        \x20   version: 1.x\n    metadata: { http: { endpoint: /, method: GET } }\n---\n";
    let named = async |approval: &str| {
        let fixture = Fixture::new(Extra {
            tool: &format!("approval: {approval}\nrequires: {{ network: [b.example] }}\n"),
            ..Extra::default()
        });
        let directory = fixture.path().join("drivers/web");
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(directory.join("DRIVER.md"), WEB).unwrap();
        let grant = "[[grant]]\npublisher = \"PUBLISHER\"\nrequires = [\"network:b.example\"]\n";
        let host = under(&fixture, &format!("{FALLBACK}{grant}"));
        let host = host.build().unwrap();
        let reply = host.call(request(first("trap")).approver(Arc::new(Yes::default())));
        outcome(&reply.await).1
    };
    // If no one is asked, the next driver is tried; its request fails.
    assert_eq!(named("auto").await.len(), 2);
    assert_eq!(named("always").await.len(), 1);
}

#[tokio::test]
async fn a_call_falls_to_another_publishers_driver_only_where_its_rule_says_so() {
    let fixture = Fixture::new(Extra::default());
    let other = foreign();
    for (more, expected) in [("", "upstream_error"), ("fallback = true\n", "foreign")] {
        let policy = format!("{FALLBACK}{}", binding(&other, more));
        let host = under(&fixture, &policy)
            .bundle(other.content())
            .build()
            .unwrap();
        assert_eq!(
            outcome(&host.call(request(first("trap"))).await).0,
            expected
        );
    }
    // The rule alone does not suffice.
    let policy = binding(&other, "fallback = true\n");
    let host = under(&fixture, &policy)
        .bundle(other.content())
        .build()
        .unwrap();
    assert_eq!(
        outcome(&host.call(request(first("trap"))).await).0,
        "upstream_error"
    );
}

#[tokio::test]
async fn a_driver_that_would_ask_does_not_take_over_where_nobody_was_asked() {
    let fixture = fixture("");
    let rule = "[[grant]]\npublisher = \"PUBLISHER\"\ndriver = \"next\"\napproval = \"always\"\n";
    let host = under(&fixture, &format!("{FALLBACK}{rule}"))
        .build()
        .unwrap();
    let yes = Arc::new(Yes::default());
    let reply = host
        .call(request(first("trap")).approver(yes.clone()))
        .await;
    assert_eq!(outcome(&reply).0, "upstream_error");
    assert!(yes.0.lock().unwrap().is_empty());
}

#[tokio::test]
async fn of_equal_drivers_the_one_that_was_seen_failing_comes_last_for_whom_it_failed() {
    let fixture = fixture("");
    let host = under(&fixture, FALLBACK).build().unwrap();
    let drivers = async |who: &str, input: Value| -> Vec<String> {
        let reply = host.call(request(input).principal(who)).await;
        assert!(reply.result.is_ok(), "{:?}", reply.result);
        outcome(&reply).1.into_iter().map(|one| one.0).collect()
    };
    let both = ["hostile", "next"];
    assert_eq!(drivers("ada", first("trap")).await, both);
    assert_eq!(drivers("ada", first("trap")).await, ["next"]);
    assert_eq!(drivers("bob", first("echo")).await, ["hostile"]);
    // An invalid output does not count as a failure that the host saw.
    assert_eq!(drivers("bob", first("wrong-output")).await, both);
    assert_eq!(drivers("bob", first("trap")).await, both);
    assert_eq!(drivers("eve", first("echo")).await, ["hostile"]);
    assert_eq!(drivers("cyd", first("trap")).await, both);
    // With three principals, the failure counts for all.
    assert_eq!(drivers("eve", first("echo")).await, ["next"]);
}

#[tokio::test]
async fn what_was_seen_failing_moves_no_call_from_the_contracts_choice_and_none_to_another_publisher()
 {
    let default = fixture("default_implementation: hostile\n");
    let host = under(&default, FALLBACK).build().unwrap();
    for _ in 0..3 {
        let (_, tried) = outcome(&host.call(request(first("trap"))).await);
        assert_eq!(tried.len(), 2, "the default goes first each time");
    }
    let own = Fixture::new(Extra::default());
    let other = foreign();
    let binds = binding(&other, "fallback = true\n");
    let policy = format!("{FALLBACK}{binds}");
    let host = under(&own, &policy)
        .bundle(other.content())
        .build()
        .unwrap();
    for _ in 0..3 {
        let (_, tried) = outcome(&host.call(request(first("trap"))).await);
        assert_eq!(tried.len(), 2, "its own publisher's goes first each time");
    }
}

#[tokio::test]
async fn a_call_that_gives_an_input_with_an_unknown_transform_goes_to_another_driver() {
    let fixture = Fixture::new(Extra {
        implements: "    mapping: { size: { from: aspect, transform: aspect_to_size } }\n",
        ..Extra::default()
    });
    let host = fixture.host();
    let plain = host.call(request(json!({"do": "echo"}))).await;
    assert_eq!(outcome(&plain).0, "hostile");
    let given = json!({"do": "echo", "then": "echo", "aspect": "16:9"});
    let error = host.call(request(given.clone())).await.result.unwrap_err();
    assert_eq!(error.code.as_str(), "input_unsupported");
    assert!(
        error.message.contains("`aspect`") && error.message.contains("`aspect_to_size`"),
        "{error}"
    );
    fixture.driver("next", "hostile.run", NEXT);
    let served = fixture.host().call(request(given)).await;
    assert_eq!(outcome(&served).0, "next");
}
