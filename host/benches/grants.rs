//! Measures the cost of each kind of grant. The same driver does the same work under each kind of
//! grant; bare wasmtime is measured for comparison, with and without a directory.

#![expect(unreachable_pub, reason = "a benchmark has no users")]
#![expect(clippy::expect_used, reason = "a benchmark may stop")]

use std::hint::black_box;
use std::path::Path;

use criterion::{Criterion, criterion_group, criterion_main};
use toolward_bundle::content::Content;
use toolward_host::secrets::{SecretError, SecretStore, SecretValue};
use toolward_host::{Host, Request};
use toolward_policy::Policy;
use toolward_state::Store;
use wasmtime::component::Component;

#[expect(dead_code, reason = "each benchmark uses a part of it")]
mod support;
use support::{Bare, ECHO};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

/// One kind of grant.
struct Kind {
    name: &'static str,
    contract: &'static str,
    driver: &'static str,
    policy: &'static str,
}

const WORKSPACE: &str = "[[workspace]]\npath = \"/bench\"\ndirectory = \"DIRECTORY\"\n";
const SECRET: &str = "[[secret]]\nslug = \"token\"\npublisher = \"PUBLISHER\"\n\
                      origin = \"https://api.test\"\nheader = \"authorization\"\n";

const KINDS: &[Kind] = &[
    Kind {
        name: "nothing",
        contract: "",
        driver: "",
        policy: "",
    },
    Kind {
        name: "workspace",
        contract: "requires:\n  workspace: [/bench]\n",
        driver: "",
        policy: "requires = [\"workspace:/bench\"]\n",
    },
    Kind {
        name: "network",
        contract: "requires:\n  network: [api.test]\n",
        driver: "network:\n  egress: [api.test]\n",
        policy: "requires = [\"network:api.test\"]\n",
    },
    Kind {
        name: "network_and_secret",
        contract: "requires:\n  network: [api.test]\n  secrets: [token]\n",
        driver: "network:\n  egress: [api.test]\n",
        policy: "requires = [\"network:api.test\", \"secret:token\"]\n",
    },
    Kind {
        name: "bucket",
        contract: "requires:\n  database: [counters]\n",
        driver: "",
        policy: "requires = [\"database:counters\"]\n",
    },
    Kind {
        name: "tool",
        contract: "requires:\n  tools: [bench.other]\n",
        driver: "",
        policy: "requires = [\"tool:bench.other\"]\n",
    },
    Kind {
        name: "everything",
        contract: "requires:\n  workspace: [/bench]\n  network: [api.test]\n  secrets: [token]\n  \
                   database: [counters]\n  tools: [bench.other]\n  user: [form]\n",
        driver: "network:\n  egress: [api.test]\n",
        policy: "requires = [\"workspace:/bench\", \"network:api.test\", \"secret:token\", \
                 \"database:counters\", \"tool:bench.other\", \"user:form\"]\n",
    },
];

struct Token;

impl SecretStore for Token {
    fn get(&self, _: &str, _: &str, _: &str) -> Result<Option<SecretValue>, SecretError> {
        Ok(Some(SecretValue::new(b"a-secret-value".to_vec())))
    }

    fn put(&self, _: &str, _: &str, _: &str, _: SecretValue) -> Result<(), SecretError> {
        Ok(())
    }
}

fn host(directory: &Path, kind: &Kind) -> Host {
    let write = |path: &str, bytes: &[u8]| {
        let path = directory.join("bundle").join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(path, bytes).expect("writes");
    };
    write(
        "bundle.toml",
        b"id = \"bench.bundle\"\nversion = \"1.0.0\"\nsequence = 1\npublisher = \"bench\"\n\
          created = \"2026-01-01T00:00:00Z\"\n",
    );
    write(
        "tools/tool/TOOL.md",
        format!(
            "---\nname: Bench\nid: hostile.run\ndescription: Benchmarks.\nversion: 1.0.0\n\
             inputs:\n  type: object\noutputs:\n  type: object\n{}---\n",
            kind.contract
        )
        .as_bytes(),
    );
    write(
        "drivers/driver/DRIVER.md",
        format!(
            "---\nname: Bench\nid: bench-driver\ndescription: Benchmarks.\nversion: 1.0.0\n\
             kind: component\ncomponent: driver.wasm\nimplements:\n  - tool: hostile.run\n    \
             version: ^1.0.0\n{}---\n",
            kind.driver
        )
        .as_bytes(),
    );
    write("drivers/driver/driver.wasm", &ECHO.wasm());
    let content = Content::from_dev(&directory.join("bundle")).expect("a bundle");
    let workspace = directory.join("workspace");
    std::fs::create_dir_all(&workspace).expect("a folder");
    let text = format!(
        "{WORKSPACE}{SECRET}[[grant]]\npublisher = \"PUBLISHER\"\n{}",
        kind.policy
    )
    .replace("DIRECTORY", &workspace.display().to_string())
    .replace("PUBLISHER", &content.origin.publisher());
    Host::builder()
        .policy(Policy::from_toml(&text).expect("a policy"))
        .secrets(Token)
        .buckets(Store::in_memory().expect("a store"))
        .bundle(content)
        .build()
        .expect("a host")
}

fn grants(criterion: &mut Criterion) {
    let runtime = runtime();
    let engine = support::engine();
    let component = Component::new(&engine, ECHO.wasm()).expect("compiles");
    let directory = tempfile::tempdir().expect("a directory");
    let bare = Bare::new(engine.clone(), &component, ECHO);
    let preopened = Bare::new(engine, &component, ECHO).preopening(directory.path());

    let mut group = criterion.benchmark_group("grants");
    group.bench_function("bare", |bencher| {
        bencher
            .to_async(&runtime)
            .iter(|| async { black_box(bare.call().await) });
    });
    group.bench_function("bare_with_preopen", |bencher| {
        bencher
            .to_async(&runtime)
            .iter(|| async { black_box(preopened.call().await) });
    });
    for kind in KINDS {
        let directory = tempfile::tempdir().expect("a directory");
        let host = host(directory.path(), kind);
        let call = || host.call(Request::new(ECHO.tool, ECHO.input));
        let first = runtime.block_on(call());
        assert!(first.result.is_ok(), "{}: {}", kind.name, first.envelope());
        group.bench_function(kind.name, |bencher| {
            bencher
                .to_async(&runtime)
                .iter(|| async { black_box(call().await) });
        });
    }
    group.finish();
}

criterion_group!(benches, grants);
criterion_main!(benches);
