//! Tests a first driver that can't run at all or reaches its own limits, and drivers that policy or
//! the call's input rule out.

use std::time::{Duration, Instant};

use serde_json::json;
use toolward_host::Limits;

use super::{FALLBACK, NEXT, failing, first, fixture, limits, outcome, request, under};
use crate::bombs;
use crate::fixture::{Extra, Fixture, hostile_wasm};

/// A rule that lets tools change `database:things` without approval.
const CHANGES: &str =
    "[[grant]]\npublisher = \"PUBLISHER\"\nmutates = [\"database:things\"]\npreapproved = true\n";

const BROKEN: &str = "drivers/hostile/driver.wasm";

/// `hostile.run` with a first driver whose component can't be compiled.
fn broken(tool: &str) -> Fixture {
    let fixture = fixture(&format!("default_implementation: hostile\n{tool}"));
    let driver = std::fs::read(hostile_wasm()).unwrap();
    // The code of a function that does not exist.
    let code = bombs::with_module(&driver, &[vec![10, 2, 1, 0]]);
    fixture.write(BROKEN, code);
    fixture
}

#[tokio::test]
async fn a_call_whose_first_driver_does_not_compile_is_served_by_the_next_one() {
    for (tool, grant) in [("", ""), ("mutates: [\"database:things\"]\n", CHANGES)] {
        let fixture = broken(tool);
        let host = under(&fixture, &format!("{FALLBACK}{grant}"));
        let host = host.build().unwrap();
        // The second time, the verdict is known already.
        for _ in 0..2 {
            let reply = host.call(request(first("echo"))).await;
            let (ended, tried) = outcome(&reply);
            assert_eq!(ended, "next", "{tool}: {:?}", reply.result);
            let failed = ("hostile".to_owned(), 0, "upstream_error".to_owned());
            assert_eq!(tried, [failed, ("next".to_owned(), 1, String::new())]);
            assert_eq!(reply.metadata.attempts, 1);
        }
        let pinned = request(first("echo")).pinned_driver("hostile");
        let error = host.call(pinned).await.result.unwrap_err();
        assert_eq!(error.cause.unwrap()["code"], "compile-invalid");
        let host = under(&fixture, grant).build().unwrap();
        assert_eq!(
            outcome(&host.call(request(first("echo"))).await).0,
            "upstream_error",
            "without `fallback`"
        );
    }
}

#[tokio::test]
async fn a_call_whose_drivers_all_do_not_compile_ends_with_the_last_ones_error() {
    let fixture = broken("");
    let copy = std::fs::read(fixture.path().join(BROKEN)).unwrap();
    fixture.write("drivers/next/driver.wasm", copy);
    let host = under(&fixture, FALLBACK).build().unwrap();
    let reply = host.call(request(first("echo"))).await;
    let codes: Vec<_> = outcome(&reply).1.into_iter().map(|one| one.2).collect();
    assert_eq!(codes, ["upstream_error", "upstream_error"]);
    let error = reply.result.unwrap_err();
    assert!(error.message.contains("`next`"), "{error}");
}

/// `hostile.run` with a first driver that has these limits.
fn limited(driver: &str, tool: &str) -> Fixture {
    let fixture = Fixture::new(Extra {
        driver,
        tool: &format!("default_implementation: hostile\n{tool}"),
        ..Extra::default()
    });
    fixture.driver("next", "hostile.run", NEXT);
    fixture
}

#[tokio::test(flavor = "multi_thread")]
async fn a_driver_that_reaches_a_limit_of_its_own_leaves_the_call_to_the_next_one() {
    for (lines, what, code) in [
        (
            "limits: { fuel: 20000000 }\n",
            "loop",
            "toolward:fuel_exhausted",
        ),
        ("timeout_override_ms: 300\n", "block-forever", "timeout"),
    ] {
        for (tool, grant, falls) in [
            ("", "", true),
            ("mutates: [\"database:things\"]\n", CHANGES, false),
        ] {
            let fixture = limited(lines, tool);
            let host = under(&fixture, &format!("{FALLBACK}{grant}"));
            let host = host.limits(limits()).build().unwrap();
            let started = Instant::now();
            let reply = host.call(request(failing(what))).await;
            assert!(started.elapsed() < limits().timeout.maximum, "{what}");
            let (ended, tried) = outcome(&reply);
            let own = ("hostile".to_owned(), 1, code.to_owned());
            match falls {
                true => {
                    assert_eq!(ended, "next", "{what}: {:?}", reply.result);
                    assert_eq!(tried, [own, ("next".to_owned(), 1, String::new())]);
                }
                false => assert_eq!((ended.as_str(), tried), (code, vec![own])),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_driver_with_little_fuel_or_time_leaves_the_next_one_what_it_may_have() {
    let fixture = limited("limits: { fuel: 20000000 }\ntimeout_override_ms: 500\n", "");
    let host = under(&fixture, FALLBACK).limits(limits()).build().unwrap();
    // More fuel, then more time, than the first driver has.
    let spends = json!({"do": "wrong-output", "then": "loop"});
    let reply = host.call(request(spends)).await;
    assert_eq!(outcome(&reply).0, "toolward:fuel_exhausted");
    assert!(reply.metadata.fuel > 200_000_000, "{}", reply.metadata.fuel);
    let sleeps = json!({"do": "wrong-output", "then": "sleep", "n": 1000});
    let reply = host.call(request(sleeps)).await;
    assert_eq!(outcome(&reply).0, "next", "{:?}", reply.result);

    // The error names the driver's own limit.
    let host = under(&fixture, "").limits(limits()).build().unwrap();
    let error = host.call(request(failing("block-forever"))).await.result;
    let hit = error.unwrap_err().limit.unwrap();
    assert_eq!(hit.allowed, 500);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_next_driver_has_its_own_fuel_beside_what_the_first_one_spent() {
    let fixture = Fixture::new(Extra {
        tool: "default_implementation: hostile\n",
        driver: "limits: { fuel: 50000000 }\n",
        ..Extra::default()
    });
    let little = Extra {
        driver: "limits: { fuel: 20000000 }\n",
        ..NEXT
    };
    fixture.driver("next", "hostile.run", little);
    fixture.driver("third", "hostile.run", NEXT);
    let host = under(&fixture, FALLBACK).limits(limits()).build().unwrap();
    let reply = host.call(request(first("loop"))).await;
    assert_eq!(outcome(&reply).0, "next", "{:?}", reply.result);
}

#[tokio::test]
async fn a_call_that_gets_no_slot_goes_to_no_other_driver() {
    let fixture = fixture("default_implementation: hostile\n");
    let one = Limits {
        concurrency: 1,
        queue: 0,
        ..Limits::default()
    };
    let host = under(&fixture, FALLBACK).limits(one).build().unwrap();
    host.call(request(first("echo"))).await.result.unwrap();
    let (slow, refused) = tokio::join!(
        host.call(request(json!({"do": "sleep", "then": "echo", "n": 300}))),
        host.call(request(first("echo"))),
    );
    assert!(slow.result.is_ok());
    let none = vec![("hostile".to_owned(), 0, "rate_limited".to_owned())];
    assert_eq!(outcome(&refused), ("rate_limited".to_owned(), none));
}

#[tokio::test]
async fn no_call_falls_to_a_driver_that_policy_or_its_input_rules_out() {
    let next = |driver, implements: &str| {
        let fixture = Fixture::new(Extra {
            tool: "default_implementation: hostile\nrequires: { network: [a.example] }\n",
            ..Extra::default()
        });
        let implements = format!("{}{implements}", NEXT.implements);
        let extra = Extra {
            driver,
            implements: &implements,
            ..NEXT
        };
        fixture.driver("next", "hostile.run", extra);
        fixture
    };
    let egress = "network: { egress: [a.example] }\n";
    let far = format!("{egress}region: us\n");
    let grant = "[[grant]]\npublisher = \"PUBLISHER\"\nrequires = [\"network:a.example\"]\n";
    let drops = "    schema_narrowing: { drop_inputs: [value] }\n";
    for (what, fixture, policy, falls) in [
        ("nothing", next(egress, ""), "", true),
        ("its region", next(&far, ""), "region = \"eu\"\n", false),
        (
            "a tag of its",
            next("policy_tags: [beta]\n", ""),
            "denied_tags = [\"beta\"]\n",
            false,
        ),
        ("an input", next("", drops), "", false),
        (
            "what it needs is not granted",
            next("requires: { secrets: [KEY] }\n", ""),
            "",
            false,
        ),
    ] {
        let policy = format!("{FALLBACK}{policy}{grant}");
        let host = under(&fixture, &policy).build().unwrap();
        let (ended, tried) = outcome(&host.call(request(first("trap"))).await);
        let expected = if falls { "next" } else { "upstream_error" };
        assert_eq!(ended, expected, "{what}: {tried:?}");
        assert_eq!(tried.len(), 1 + usize::from(falls), "{what}");
    }
    // The next driver takes over if the call lacks the input that the driver drops.
    let host = under(&next("", drops), &format!("{FALLBACK}{grant}"));
    let call = json!({"do": "trap", "then": "echo"});
    let reply = host.build().unwrap().call(request(call)).await;
    assert_eq!(outcome(&reply).0, "next", "{:?}", reply.result);
}

#[tokio::test]
async fn time_that_the_caller_gives_is_for_all_drivers_together() {
    let fixture = limited("timeout_override_ms: 300\n", "");
    let host = under(&fixture, FALLBACK).limits(limits()).build().unwrap();
    host.call(request(first("echo"))).await.result.unwrap();
    let sleeps = json!({"do": "block-forever", "then": "sleep", "n": 2000});
    let call = request(sleeps).timeout(Duration::from_millis(900));
    let reply = host.call(call).await;
    let codes: Vec<_> = outcome(&reply).1.into_iter().map(|one| one.2).collect();
    assert_eq!(codes, ["timeout", "timeout"]);
    let hit = reply.result.unwrap_err().limit.unwrap();
    assert_eq!(hit.allowed, 900);
}
