//! Memory that the host itself uses for a call counts together with the memory of components.

use std::time::Duration;

use serde_json::json;
use toolward_host::{Limits, Request};

use super::{TOOL, Terms};
use crate::limits::hit;
use crate::server::ok;
use crate::vault::Vault;

const MIB: u64 = 1 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn values_that_the_host_reads_count_in_the_memory_of_all_calls() {
    for (total, has_room) in [(256 * MIB, true), (24 * MIB, false)] {
        // The text is short, but its parsed values take much more memory.
        let body = json!({ "small": 7, "large": vec![0; 240_000] }).to_string();
        let vault = Vault::start(move |_| ok(&body)).await;
        let limits = Limits {
            memory_total: Some(total),
            ..Limits::default()
        };
        let request = json!({ "endpoint": "/", "response_extract": "$.small" });
        let service = Terms::of(request).limits(limits).on(vault);
        // Each call frees its memory, so the next call has the same outcome.
        for _ in 0..4 {
            if has_room {
                assert_eq!(service.output(json!({})).await, json!(7));
                continue;
            }
            let error = service.error(json!({})).await;
            assert_eq!(hit(&error), ("toolward:memory_exceeded", "memory_total"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_count_among_the_open_files_of_their_principal() {
    let vault = Vault::start(|_| {
        std::thread::sleep(Duration::from_millis(500));
        ok("{}")
    });
    let limits = Limits {
        open_files_total: Some(1),
        ..Limits::default()
    };
    let service = Terms::of(json!({ "endpoint": "/" }))
        .limits(limits)
        .on(vault.await);
    for _ in 0..3 {
        let call = || service.run(Request::with_value(TOOL, json!({})));
        let (first, second) = tokio::join!(call(), call());
        let refused: Vec<_> = [first.result, second.result]
            .into_iter()
            .filter_map(Result::err)
            .collect();
        assert_eq!(refused.len(), 1, "{refused:?}");
        assert_eq!(hit(&refused[0]).1, "open_files_total");
    }
}
