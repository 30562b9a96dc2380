//! An application that embeds a host for the installed bundles: the facade, used on files that the
//! command wrote.

use std::sync::Arc;
use std::time::Duration;

use toolward::{Environment, ErrorCode, LiveHost, Operator, Request};

use super::{ID, release, ship, trusting};
use crate::support::Machine;

const INPUT: &str = r#"{"text": "one two two"}"#;

/// The files of this machine's user.
fn operator(machine: &Machine) -> Operator {
    let home = machine.home();
    let environment = Environment {
        config_directory: Some(home.join(".config/toolward")),
        data_directory: Some(home.join(".local/share/toolward")),
        state_directory: Some(home.join(".local/state/toolward")),
        cache_directory: Some(machine.cache()),
        ..Environment::default()
    };
    Operator {
        environment,
        ..Operator::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_live_host_has_what_is_installed_and_loses_what_is_removed() {
    let (machine, key) = trusting();
    ship(&machine, &release(1), &key, "b.toolbundle");
    machine.toolward("install b.toolbundle").ends(0);
    let host = LiveHost::start(operator(&machine), |builder| builder).unwrap();
    let call = || host.call(Request::new("text.stats", INPUT));
    let reply = call().await;
    let output = reply.result.expect("the tool runs").structured;
    assert_eq!(output["words"], 3, "{output}");

    // The application still holds the earlier host, which no longer runs the removed tool.
    let earlier = host.host();
    machine.toolward(&format!("remove {ID}")).ends(0);
    let gone = async {
        while call().await.result.is_ok() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(120), gone).await;
    waited.expect("the tool is gone");
    let refused = earlier.call(Request::new("text.stats", INPUT)).await;
    assert_eq!(
        refused.result.unwrap_err().code,
        ErrorCode::WITHDRAWN,
        "an earlier host"
    );

    machine.toolward("install b.toolbundle").ends(0);
    let back = async {
        while call().await.result.is_err() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(120), back).await;
    waited.expect("the tool is back");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_live_host_that_is_dropped_frees_what_it_was_given() {
    let (machine, key) = trusting();
    ship(&machine, &release(1), &key, "b.toolbundle");
    machine.toolward("install b.toolbundle").ends(0);
    let given = Arc::new(());
    let weak = Arc::downgrade(&given);
    let host = LiveHost::start(operator(&machine), move |builder| {
        let _held = &given;
        builder
    })
    .unwrap();
    assert!(weak.upgrade().is_some());
    drop(host);
    let freed = async {
        while weak.upgrade().is_some() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(120), freed).await;
    waited.expect("its thread and its tasks have ended");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nothing_is_installed_a_live_host_says_what_to_do() {
    let machine = Machine::new();
    let error = LiveHost::start(operator(&machine), |builder| builder).unwrap_err();
    assert_eq!(error.code, "bundle-missing", "{error}");
    assert!(
        error
            .hints
            .iter()
            .any(|hint| hint.contains("toolward install")),
        "{:?}",
        error.hints
    );
}
