//! Calls of tools without a driver: the code and the message. Either no driver serves the tool, or
//! its bundle was withdrawn.

use serde_json::json;
use toolward_host::Limits;
use toolward_policy::Policy;

use crate::fixture::{Begun, Extra, Fixture, error, limited, run, still_serves};

#[tokio::test]
async fn no_route_names_each_driver_of_the_contracts_publisher_with_its_reasons() {
    let fixture = Fixture::new(Extra {
        driver: "requires: { os: [plan9], arch: [vax] }\n",
        ..Extra::default()
    });
    let one = error(&fixture.host(), json!({"do": "echo"})).await;
    assert_eq!(one.code.as_str(), "no_route");
    assert!(one.message.contains("it needs plan9"), "{one}");
    for number in 10..50 {
        let id = format!("other-{number}");
        fixture.driver(
            &id,
            "hostile.run",
            Extra {
                driver: "policy_tags: [beta]\nnetwork: { egress: [a.example] }\nregion: us\n",
                ..Extra::default()
            },
        );
    }
    // Another publisher's driver is not mentioned.
    let foreign = Fixture::new(Extra::default());
    std::fs::remove_dir_all(foreign.path().join("tools")).unwrap();
    std::fs::remove_dir_all(foreign.path().join("drivers")).unwrap();
    foreign.driver("foreign", "hostile.run", Extra::default());
    let policy = "[resolve]\nregion = \"eu\"\ndenied_tags = [\"beta\"]\n";
    let host = fixture
        .builder()
        .bundle(foreign.content())
        .policy(Policy::from_toml(policy).unwrap())
        .build()
        .unwrap();
    let many = error(&host, json!({"do": "echo"})).await;
    assert_eq!(many.code.as_str(), "no_route");
    assert!(many.message.len() < 200, "{many}");
    let cause = many.cause.unwrap();
    let rejected = cause["rejected"].as_array().unwrap();
    assert_eq!((rejected.len(), &cause["more"]), (32, &json!(9)));
    let codes = |at: usize| -> Vec<&str> {
        let reasons = rejected[at]["reasons"].as_array().unwrap().iter();
        reasons.map(|one| one["code"].as_str().unwrap()).collect()
    };
    assert_eq!(rejected[0]["driver"], "hostile");
    assert_eq!(codes(0), ["os", "arch"]);
    assert_eq!(rejected[1]["driver"], "other-10");
    assert_eq!(codes(1), ["tag-denied", "region"]);
    let publisher = fixture.content().origin.publisher();
    for one in rejected {
        assert_eq!(one["publisher"], publisher.as_str());
        for reason in one["reasons"].as_array().unwrap() {
            assert!((1..=200).contains(&reason["text"].as_str().unwrap().len()));
        }
    }
    assert!(!cause.to_string().contains("foreign"), "{cause}");
}

#[tokio::test]
async fn a_tool_whose_drivers_are_all_in_other_regions_has_no_route_in_this_one() {
    let fixture = Fixture::new(Extra {
        driver: "network: { egress: [a.example] }\nregion: us\n",
        ..Extra::default()
    });
    let under = |policy: &str| {
        let policy = Policy::from_toml(policy).unwrap();
        fixture.builder().policy(policy).build().unwrap()
    };
    let europe = under("[resolve]\nregion = \"eu\"\n");
    let error = error(&europe, json!({"do": "echo"})).await;
    assert_eq!(error.code.as_str(), "no_route_in_region");
    assert_eq!(
        error.cause.unwrap()["rejected"][0]["reasons"][0]["code"],
        "region"
    );
    let publisher = fixture.content().origin.publisher();
    let america = under(&format!(
        "[resolve]\nregion = \"us\"\npublishers = [{publisher:?}]\n"
    ));
    let reply = run(&america, json!({"do": "echo"})).await;
    assert!(reply.result.is_ok(), "{:?}", reply.result);
}

#[tokio::test]
async fn a_bundle_that_was_taken_back_is_served_no_more() {
    let host = limited(Limits::default());
    still_serves(&host).await;
    let bundle = host.tool("hostile.run").unwrap().bundle.clone();
    assert_eq!(host.bundles().collect::<Vec<_>>(), [&*bundle]);

    assert!(!host.withdraw(&"0".repeat(64), "revoked"), "of another");
    still_serves(&host).await;
    assert!(host.withdraw(&bundle, "its publisher revoked it"));
    assert!(!host.withdraw(&bundle, "again"));

    let reply = run(&host, json!({"do": "echo", "value": 1})).await;
    assert_eq!(reply.metadata.attempts, 0);
    let error = reply.result.unwrap_err();
    assert_eq!(error.code.as_str(), "toolward:withdrawn");
    assert!(
        error.message.contains("its publisher revoked it"),
        "{error}"
    );
    assert_eq!(host.tools().count(), 0);
    assert!(host.tool("hostile.run").is_none());
    assert_eq!(host.bundles().count(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_runs_goes_on() {
    let host = limited(Limits::default());
    still_serves(&host).await;
    let bundle = host.tool("hostile.run").unwrap().bundle.clone();
    let running = Begun::steps(&host, json!([{"do": "sleep", "n": 500}])).await;
    assert!(host.withdraw(&bundle, "revoked"));
    let reply = running.reply().await;
    assert!(reply.result.is_ok(), "{:?}", reply.result);
}
