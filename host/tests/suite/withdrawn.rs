//! A bundle that is taken back while the host runs.

use serde_json::json;
use toolward_host::Limits;

use crate::fixture::{Begun, limited, run, still_serves};

#[tokio::test]
async fn a_bundle_that_was_taken_back_is_served_no_more() {
    let host = limited(Limits::default());
    still_serves(&host).await;
    let bundle = host.tool("hostile.run").unwrap().bundle;
    assert_eq!(host.bundles().collect::<Vec<_>>(), [bundle.as_str()]);

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
    let bundle = host.tool("hostile.run").unwrap().bundle;
    let running = Begun::steps(&host, json!([{"do": "sleep", "n": 500}])).await;
    assert!(host.withdraw(&bundle, "revoked"));
    let reply = running.reply().await;
    assert!(reply.result.is_ok(), "{:?}", reply.result);
}
