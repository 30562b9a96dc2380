//! Secrets that tools store: which tools may store them, where, and how many.

use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use toolward_host::secrets::{SecretError, SecretStore, SecretValue, Sources};
use toolward_host::{Host, Request};

use super::TOOL;
use crate::world::{Bundle, Guest, error, policy_of};

/// A tool that stores and uses `own`, for which no table has a value.
fn storing(directory: &TempDir, mutates: &str, granted: &str) -> (Bundle, Host) {
    let bundle = Bundle::of(
        TOOL,
        Guest::Plain,
        &format!("requires:\n  secrets: [own]\nmutates: {mutates}\napproval: on-mutate\n"),
        "",
    );
    let policy = format!(
        "[[secret]]\nslug = \"own\"\npublisher = \"PUBLISHER\"\n\
         [[grant]]\npublisher = \"PUBLISHER\"\npreapproved = true\nrequires = [\"secret:own\"]\n\
         mutates = {granted}\nreveal = [\"own\"]\n"
    );
    let sources = Sources::new(
        &policy_of(&policy, &bundle.publisher()),
        "/".as_ref(),
        |_| None,
    )
    .stored_in(directory.path().join("secrets"));
    let host = bundle.builder(&policy).secrets(sources).build().unwrap();
    (bundle, host)
}

async fn as_principal(host: &Host, principal: &str, input: Value) -> Value {
    let request = Request::with_value(TOOL, input).principal(principal);
    host.call(request).await.result.unwrap().structured["value"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_value_is_its_principals_own() {
    let directory = tempfile::tempdir().unwrap();
    let (_bundle, host) = storing(&directory, "[\"secret:own\"]", "[\"secret:own\"]");
    let store = |text: &str| json!({"do": "secrets", "op": "store", "slug": "own", "text": text});
    let reveal = json!({"do": "secrets", "op": "reveal", "slug": "own"});
    assert_eq!(
        as_principal(&host, "ann", reveal.clone()).await["err"],
        json!("missing")
    );
    assert_eq!(
        as_principal(&host, "ann", store("value-of-ann")).await["ok"],
        json!(true)
    );
    assert_eq!(
        as_principal(&host, "ann", reveal.clone()).await["ok"],
        json!("[secret]")
    );
    for other in ["bob", "ann ", "Ann", "", "local", "../ann"] {
        let got = as_principal(&host, other, reveal.clone()).await;
        assert_eq!(got["err"], json!("missing"), "{other}: {got}");
    }
    // One file, whose name no caller can choose.
    let files: Vec<_> = std::fs::read_dir(directory.path().join("secrets"))
        .unwrap()
        .collect();
    assert_eq!(files.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_is_stored_only_where_that_was_declared_and_granted() {
    let directory = tempfile::tempdir().unwrap();
    let store = json!({"do": "secrets", "op": "store", "slug": "own", "text": "mine-mine"});
    // A driver whose secret has no value is not run, unless it may store the value.
    let (_bundle, reads) = storing(&directory, "[]", "[\"secret:own\"]");
    assert_eq!(
        error(&reads, TOOL, store.clone()).await.code.as_str(),
        "auth_required"
    );

    let (_bundle, host) = storing(&directory, "[\"secret:own\"]", "[]");
    assert_eq!(
        error(&host, TOOL, store).await.code.as_str(),
        "unauthorised"
    );
    assert!(!directory.path().join("secrets").exists());

    let (_bundle, host) = storing(&directory, "[\"secret:own\"]", "[\"secret:own\"]");
    let huge = json!({"do": "secrets", "op": "store", "slug": "own", "text": "${fill:100000}"});
    let got = as_principal(&host, "ann", huge).await;
    assert_eq!(got["err"], json!("failed"), "{got}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operators_secret_is_not_overwritten_by_a_tool() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("own.txt");
    std::fs::write(&file, "the-operators").unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let bundle = Bundle::of(
        TOOL,
        Guest::Plain,
        "mutates: [\"secret:own\"]\napproval: on-mutate\n",
        "",
    );
    let policy = format!(
        "[[secret]]\nslug = \"own\"\npublisher = \"PUBLISHER\"\nfile = {:?}\n\
         [[grant]]\npublisher = \"PUBLISHER\"\npreapproved = true\nmutates = [\"secret:own\"]\n",
        file.display().to_string()
    );
    let sources = Sources::new(
        &policy_of(&policy, &bundle.publisher()),
        directory.path(),
        |_| None,
    )
    .stored_in(directory.path().join("secrets"));
    let host = bundle.builder(&policy).secrets(sources).build().unwrap();
    let store = json!({"do": "secrets", "op": "store", "slug": "own", "text": "mine-mine"});
    let got = as_principal(&host, "ann", store).await;
    assert_eq!(got["err"], json!("failed"), "{got}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "the-operators");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_stores_so_many_values_of_so_many_bytes_and_no_more() {
    for (times, text, limit, allowed) in [
        (100, "mine-mine", "secret_stores", 16),
        (5, "${fill:60000}", "secret_store_bytes", 256 << 10),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let (_bundle, host) = storing(&directory, "[\"secret:own\"]", "[\"secret:own\"]");
        let store = json!({"do": "secrets", "op": "store", "slug": "own", "text": text});
        let flood = json!({"do": "repeat", "times": times, "step": store});
        let error = error(&host, TOOL, flood).await;
        assert_eq!(error.code.as_str(), "toolward:limit_exceeded", "{error:?}");
        let hit = error.limit.unwrap();
        assert_eq!((hit.limit.as_str(), hit.allowed), (limit, allowed));
        assert!(hit.used > allowed && error.hint.is_some(), "{hit:?}");
    }
}

/// Stores nothing, and answers when the test lets it.
struct Slow(Mutex<std::sync::mpsc::Receiver<()>>);

impl SecretStore for Slow {
    fn get(&self, _: &str, _: &str, _: &str) -> Result<Option<SecretValue>, SecretError> {
        Ok(None)
    }

    fn put(&self, _: &str, _: &str, _: &str, _: SecretValue) -> Result<(), SecretError> {
        let told = self.0.lock().unwrap();
        told.recv_timeout(Duration::from_secs(10))
            .map_err(|error| SecretError(error.to_string()))
    }
}

/// Runs on a single thread, which storing would block.
#[tokio::test]
async fn others_run_while_a_value_is_stored() {
    let bundle = Bundle::of(
        TOOL,
        Guest::Plain,
        "mutates: [\"secret:own\"]\napproval: on-mutate\n",
        "",
    );
    let policy = "[[secret]]\nslug = \"own\"\npublisher = \"PUBLISHER\"\n\
         [[grant]]\npublisher = \"PUBLISHER\"\npreapproved = true\nmutates = [\"secret:own\"]\n";
    let (tell, told) = std::sync::mpsc::channel();
    let store = Slow(Mutex::new(told));
    let host = bundle.builder(policy).secrets(store).build().unwrap();
    let input = json!({"do": "secrets", "op": "store", "slug": "own", "text": "mine-mine"});
    let storing = {
        let host = host.clone();
        tokio::spawn(async move { as_principal(&host, "ann", input).await })
    };
    let neighbour = as_principal(&host, "bob", json!({"do": "echo", "value": 1})).await;
    assert_eq!(neighbour, json!(1));
    tell.send(()).unwrap();
    assert_eq!(storing.await.unwrap()["ok"], json!(true));
}
