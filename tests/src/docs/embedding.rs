//! The snippets of the page for embedders: compiled, and run against an example.

use std::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use toolward_bundle::content::Content;
use toolward_host::{
    Cache, CallFacts, CallListener, Host, Limits, LogRecord, Observer, Origin, Progress, Request,
};
use toolward_policy::Decision;
use toolward_signing::key::PublicKey;
use toolward_signing::trust::TrustStore;
use toolward_signing::verify::{self, VerifyOptions};

use crate::support::{archive, example_key};

fn content() -> Content {
    let pem = std::fs::read_to_string(example_key()).unwrap();
    let trust = TrustStore::for_key(PublicKey::from_pem(&pem).unwrap());
    let bundle = verify::open(&archive("text-stats"), &trust, &VerifyOptions::default()).unwrap();
    Content::from_verified(bundle).unwrap()
}

fn limited(
    content: Content,
    directory: &Path,
    failures: &Arc<Failures>,
) -> Result<Host, Box<dyn Error>> {
    // ANCHOR: limits
    let mut limits = Limits::default();
    limits.timeout.maximum = Duration::from_secs(5);
    limits.memory_bytes.maximum = 32 << 20;
    let host = Host::builder()
        .bundle(content)
        .limits(limits)
        .cache(Cache::open(directory.join("drivers"))?)
        .listener(failures.clone())
        .build()?;
    // ANCHOR_END: limits
    Ok(host)
}

async fn words(host: &Host, text: &str) -> String {
    // ANCHOR: errors
    let request = Request::with_value("text.stats", json!({ "text": text }));
    let reply = host.call(request.timeout(Duration::from_secs(10))).await;
    match reply.result {
        Ok(output) => output.structured["words"].to_string(),
        Err(error) if error.code.as_str() == "timeout" => "too long".to_owned(),
        Err(error) if error.retryable => format!("later: {error}"),
        Err(error) if error.origin == Origin::Driver => format!("the tool says: {error}"),
        Err(error) => format!("{error} ({})", error.hint.as_deref().unwrap_or_default()),
    }
    // ANCHOR_END: errors
}

// ANCHOR: observer
#[derive(Default)]
struct Lines(Mutex<Vec<String>>);

impl Observer for Lines {
    fn progress(&self, progress: &Progress) {
        self.0
            .lock()
            .unwrap()
            .push(format!("{} done", progress.done));
    }

    fn log(&self, record: &LogRecord) {
        self.0.lock().unwrap().push(record.message.clone());
    }
}

async fn observed(host: &Host, input: &str) -> Vec<String> {
    let lines = Arc::new(Lines::default());
    host.call(Request::new("text.stats", input).observer(lines.clone()))
        .await;
    std::mem::take(&mut *lines.0.lock().unwrap())
}
// ANCHOR_END: observer

// ANCHOR: listener
/// Counts the calls that failed.
#[derive(Default)]
struct Failures(AtomicUsize);

impl CallListener for Failures {
    fn finished(&self, call: &CallFacts) {
        if call.error.is_some() {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}
// ANCHOR_END: listener

fn with_context() -> Request {
    // ANCHOR: context
    let request = Request::new("invoice.total", r#"{"month": "2026-10"}"#)
        .context(json!({ "tenant": "acme" }));
    // ANCHOR_END: context
    request
}

fn callable(host: &Host) -> Vec<String> {
    // ANCHOR: decision
    let callable = host.tools().filter(|tool| {
        tool.drivers
            .iter()
            .any(|driver| matches!(driver.decision, Decision::Allow(_)))
    });
    // ANCHOR_END: decision
    callable.map(|tool| tool.contract.id.to_string()).collect()
}

#[tokio::test]
async fn the_snippets_for_embedders_do_what_the_page_says() {
    let directory = tempfile::tempdir().unwrap();
    let failures = Arc::new(Failures::default());
    let host = limited(content(), directory.path(), &failures).unwrap();
    assert_eq!(words(&host, "one two").await, "2");
    assert!(
        words(&host, &"x".repeat(1_000_001))
            .await
            .starts_with("input_invalid")
    );
    assert!(observed(&host, r#"{"text": ""}"#).await.is_empty());
    assert_eq!(callable(&host), ["text.stats"]);
    assert!(directory.path().join("drivers").is_dir());
    // No bundle has this tool. The page shows only the request.
    let reply = host.call(with_context()).await;
    assert_eq!(reply.result.unwrap_err().code.as_str(), "not_found");
    assert_eq!(failures.0.load(Ordering::Relaxed), 2);
}
