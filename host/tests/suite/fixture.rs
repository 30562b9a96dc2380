//! Bundles for tests: the hostile driver behind a contract that the test chooses.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use toolward_bundle::content::Content;
use toolward_host::{
    Cache, CallError, Host, HostBuilder, Limits, Observer, Progress, Reply, Request,
};

/// An unsigned bundle in a directory that is removed with it.
pub(crate) struct Fixture {
    directory: TempDir,
}

/// The path of the component of `tests/guests/hostile`.
pub(crate) fn hostile_wasm() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/guests/hostile/drivers/hostile/driver.wasm");
    assert!(
        path.exists(),
        "{} is missing: run `cargo xtask guests`",
        path.display()
    );
    path
}

/// Lines of front matter for a tool and its driver.
#[derive(Clone, Copy, Default)]
pub(crate) struct Extra<'a> {
    /// More lines of TOOL.md.
    pub(crate) tool: &'a str,
    /// More lines of DRIVER.md.
    pub(crate) driver: &'a str,
    /// More lines of the `implements` entry, indented by four.
    pub(crate) implements: &'a str,
}

impl Fixture {
    /// One tool `hostile.run` that takes any input and returns any output with `did`.
    pub(crate) fn new(extra: Extra<'_>) -> Self {
        let fixture = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        fixture.write(
            "bundle.toml",
            "id = \"hostile.bundle\"\nversion = \"1.0.0\"\nsequence = 1\npublisher = \"hostile\"\n\
             created = \"2026-01-01T00:00:00Z\"\n",
        );
        fixture.tool("hostile.run", extra.tool);
        fixture.driver("hostile", "hostile.run", extra);
        fixture
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Adds a contract.
    pub(crate) fn tool(&self, id: &str, extra: &str) {
        let inputs = if extra.contains("inputs:") {
            ""
        } else {
            "inputs:\n  type: object\n"
        };
        self.write(
            &format!("tools/{id}/TOOL.md"),
            format!(
                "---\nname: Hostile\nid: {id}\ndescription: Does what it is told.\n\
                 version: 1.0.0\n{inputs}outputs:\n  type: object\n  properties:\n    did:\n      \
                 type: string\n  required: [did]\n{extra}---\n"
            ),
        );
    }

    /// Adds the hostile driver under this id.
    pub(crate) fn driver(&self, id: &str, tool: &str, extra: Extra<'_>) {
        self.write(
            &format!("drivers/{id}/DRIVER.md"),
            format!(
                "---\nname: Hostile\nid: {id}\ndescription: Does what it is told.\n\
                 version: 1.0.0\nkind: component\ncomponent: driver.wasm\nimplements:\n  \
                 - tool: {tool}\n    version: ^1.0.0\n{}{}---\n",
                extra.implements, extra.driver
            ),
        );
        self.write(
            &format!("drivers/{id}/driver.wasm"),
            std::fs::read(hostile_wasm()).unwrap(),
        );
    }

    pub(crate) fn content(&self) -> Content {
        Content::from_dev(self.path()).unwrap_or_else(|error| panic!("{error:#?}"))
    }

    /// A builder of a host with this bundle. All tests share a cache of compiled drivers.
    pub(crate) fn builder(&self) -> HostBuilder {
        static CACHE: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());
        let cache = Cache::open(CACHE.path().join("cache")).unwrap();
        Host::builder().bundle(self.content()).cache(cache)
    }

    pub(crate) fn host(&self) -> Host {
        self.builder().build().unwrap()
    }
}

/// A host with the plain hostile tool and these limits.
pub(crate) fn limited(limits: Limits) -> Host {
    Fixture::new(Extra::default())
        .builder()
        .limits(limits)
        .build()
        .unwrap()
}

/// A host with the plain hostile tool.
pub(crate) fn hostile() -> Host {
    Fixture::new(Extra::default()).host()
}

/// Calls `hostile.run` with this input.
pub(crate) async fn run(host: &Host, input: Value) -> Reply {
    host.call(Request::with_value("hostile.run", input)).await
}

/// Calls `hostile.run` and returns what it did.
pub(crate) async fn value(host: &Host, input: Value) -> Value {
    let reply = run(host, input).await;
    match reply.result {
        Ok(output) => output.structured["value"].clone(),
        Err(error) => panic!("{error:#?}"),
    }
}

/// Calls `hostile.run` and returns the error.
pub(crate) async fn error(host: &Host, input: Value) -> CallError {
    let reply = run(host, input).await;
    match reply.result {
        Ok(output) => panic!("an output: {}", output.structured),
        Err(error) => error,
    }
}

/// A call of `hostile.run` whose guest has started.
pub(crate) struct Begun {
    call: JoinHandle<Reply>,
}

/// Notifies when the guest reports progress.
struct Hears(Arc<Notify>);

impl Observer for Hears {
    fn progress(&self, _: &Progress) {
        self.0.notify_one();
    }
}

impl Begun {
    /// Starts a call of these steps, and returns once the guest runs them.
    pub(crate) async fn steps(host: &Host, steps: Value) -> Self {
        let mut all = vec![json!({"do": "progress", "n": 1})];
        all.extend(steps.as_array().unwrap().iter().cloned());
        let input = json!({"do": "steps", "steps": all});
        let told = Arc::new(Notify::new());
        let request =
            Request::with_value("hostile.run", input).observer(Arc::new(Hears(told.clone())));
        let host = host.clone();
        let call = tokio::spawn(async move { host.call(request).await });
        told.notified().await;
        Self { call }
    }

    /// The reply of the call.
    pub(crate) async fn reply(self) -> Reply {
        self.call.await.unwrap()
    }
}

/// Makes sure that the host still serves calls.
pub(crate) async fn still_serves(host: &Host) {
    assert_eq!(
        value(host, json!({"do": "echo", "value": 7})).await,
        json!(7)
    );
}
