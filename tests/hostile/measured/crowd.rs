//! Many calls at once, each with little memory.

use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use toolward_host::Request;

use super::process::{MIB, alone, idle, peak, settled};
use super::{ENDLESS, TOOL, yard};
use crate::limits::hit;
use crate::world::{Guest, value};

const CALLS: u64 = 96;

#[test]
fn ninety_six_calls_at_once_take_their_limits_and_give_them_back() {
    alone(
        concat!(
            module_path!(),
            "::ninety_six_calls_at_once_take_their_limits_and_give_them_back"
        ),
        crowd,
    );
}

async fn crowd() {
    let limits = "limits:\n  memory_mib: 8\n  resources: 16384\n  http_requests: 64\n";
    let yard = yard(Guest::Net, limits);
    value(&yard.host, TOOL, json!({"do": "echo", "value": 7})).await;
    let before = idle();
    let (peak, ended) = peak(async {
        let mut calls = JoinSet::new();
        let kinds = [
            "fields",
            "bodies",
            "clones",
            "texts",
            "response-bodies",
            "values",
        ];
        for (name, _) in kinds.iter().cycle().zip(0..CALLS) {
            let input = json!({"do": "hoard-http", "name": name, "n": ENDLESS});
            let host = yard.host.clone();
            calls.spawn(async move { host.call(Request::with_value(TOOL, input)).await });
        }
        calls.join_all().await
    })
    .await;
    for reply in &ended {
        let error = reply.result.as_ref().unwrap_err();
        assert_eq!(hit(error), ("toolward:memory_exceeded", "memory_bytes"));
    }
    drop(ended);
    let after = settled(before + 64 * MIB, Duration::from_secs(15)).await;
    println!(
        "{CALLS} calls: resident {} MiB, at most {}, then {}",
        before / MIB,
        peak / MIB,
        after / MIB
    );
    assert!(
        peak <= before + CALLS * 8 * MIB + 256 * MIB,
        "at most: {peak}"
    );
    assert!(after <= before + 64 * MIB, "afterwards: {after}");
}
