//! A host for one test: bundles that the test makes around the hostile drivers, a policy,
//! directories and listeners on loopback.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde_json::Value;
use tempfile::TempDir;
use toolward_bundle::content::Content;
use toolward_host::{Cache, CallError, Host, HostBuilder, Reply, Request};
use toolward_policy::Policy;

/// One of the hostile drivers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guest {
    /// Imports only the interfaces of its toolchain.
    Plain,
    /// Also imports `wasi:http`.
    Net,
    /// Also imports `wasi:keyvalue`.
    Buckets,
}

impl Guest {
    fn name(self) -> &'static str {
        match self {
            Self::Plain => "hostile",
            Self::Net => "hostile-net",
            Self::Buckets => "hostile-kv",
        }
    }

    pub(crate) fn wasm(self) -> PathBuf {
        let name = self.name();
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(format!("guests/{name}/drivers/{name}/driver.wasm"));
        assert!(
            path.exists(),
            "{} is missing: run `cargo xtask guests`",
            path.display()
        );
        path
    }
}

/// An unsigned bundle in its directory. Its publisher is `dev:<directory>`, which
/// [`Bundle::publisher`] returns for the policy.
pub(crate) struct Bundle {
    directory: TempDir,
}

impl Bundle {
    /// A bundle with only a `bundle.toml`.
    pub(crate) fn empty() -> Self {
        let bundle = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        bundle.write(
            "bundle.toml",
            "id = \"hostile.bundle\"\nversion = \"1.0.0\"\nsequence = 1\n\
             publisher = \"hostile\"\ncreated = \"2026-01-01T00:00:00Z\"\n",
        );
        bundle
    }

    /// A bundle with one tool, `id`, which is served by `guest`. `tool` and `driver` are additional
    /// lines of TOOL.md and DRIVER.md.
    pub(crate) fn of(id: &str, guest: Guest, tool: &str, driver: &str) -> Self {
        Self::empty().with(id, guest, tool, driver)
    }

    /// Adds another tool.
    pub(crate) fn with(self, id: &str, guest: Guest, tool: &str, driver: &str) -> Self {
        self.write(
            &format!("tools/{id}/TOOL.md"),
            format!(
                "---\nname: Hostile\nid: {id}\ndescription: Does what it is told.\n\
                 version: 1.0.0\ninputs:\n  type: object\noutputs:\n  type: object\n  \
                 properties:\n    did:\n      type: string\n  required: [did]\n{tool}---\n"
            ),
        );
        self.write(
            &format!("drivers/{id}/DRIVER.md"),
            format!(
                "---\nname: Hostile\nid: {id}-driver\ndescription: Does what it is told.\n\
                 version: 1.0.0\nkind: component\ncomponent: driver.wasm\nimplements:\n  \
                 - tool: {id}\n    version: ^1.0.0\n{driver}---\n"
            ),
        );
        self.write(
            &format!("drivers/{id}/driver.wasm"),
            std::fs::read(guest.wasm()).unwrap(),
        );
        self
    }

    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn content(&self) -> Content {
        self.read().unwrap_or_else(|error| panic!("{error}"))
    }

    /// Returns its content, or the problem with it.
    pub(crate) fn read(&self) -> Result<Content, String> {
        Content::from_dev(self.directory.path()).map_err(|error| format!("{error:#?}"))
    }

    /// Returns its publisher's name in a policy.
    pub(crate) fn publisher(&self) -> String {
        self.content().origin.publisher()
    }

    /// Builds a host of this bundle with a policy, in which `PUBLISHER` stands for the bundle's
    /// publisher.
    pub(crate) fn builder(&self, policy: &str) -> HostBuilder {
        Host::builder()
            .bundle(self.content())
            .policy(policy_of(policy, &self.publisher()))
            .cache(cache())
    }

    pub(crate) fn host(&self, policy: &str) -> Host {
        self.builder(policy).build().unwrap()
    }
}

/// Returns the policy in `text` with the publisher filled in.
pub(crate) fn policy_of(text: &str, publisher: &str) -> Policy {
    let text = text.replace("PUBLISHER", publisher);
    Policy::from_toml(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The variable that passes a test's cache to a process that the test starts.
pub(crate) const CACHE_VARIABLE: &str = "TOOLWARD_HOSTILE_CACHE";

/// One cache for all tests: each driver is compiled once.
pub(crate) fn cache() -> Cache {
    static CACHE: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());
    match std::env::var_os(CACHE_VARIABLE) {
        Some(given) => Cache::open(PathBuf::from(given)).unwrap(),
        None => Cache::open(CACHE.path().join("cache")).unwrap(),
    }
}

pub(crate) async fn call(host: &Host, tool: &str, input: Value) -> Reply {
    host.call(Request::with_value(tool, input)).await
}

/// Calls a tool that succeeds, and returns its value.
pub(crate) async fn value(host: &Host, tool: &str, input: Value) -> Value {
    match call(host, tool, input).await.result {
        Ok(output) => output.structured["value"].clone(),
        Err(error) => panic!("{error:#?}"),
    }
}

/// Calls a tool that fails, and returns the error.
pub(crate) async fn error(host: &Host, tool: &str, input: Value) -> CallError {
    match call(host, tool, input).await.result {
        Ok(output) => panic!("an output: {}", output.structured),
        Err(error) => error,
    }
}
