//! How long a client waits for the answer to `initialize` from a server that it has
//! just started, with ten installed bundles whose drivers are in the cache; and for
//! the same command when it only says its version.

#![expect(clippy::expect_used, reason = "a benchmark may stop")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};

const TOOLWARD: &str = env!("CARGO_BIN_EXE_toolward");
const KEY: &str = "examples/keys/INSECURE-example-signing-key.pem";
const PUBLIC_KEY: &str = "examples/keys/example.pub.pem";
const INITIALIZE: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"benchmark","version":"1"}}}
"#;

/// Longer than the drivers of ten bundles take to compile.
const COMPILING: Duration = Duration::from_secs(15);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A person's machine.
struct Machine(tempfile::TempDir);

impl Machine {
    fn command(&self, words: &str) -> Command {
        let mut command = Command::new(TOOLWARD);
        command
            .args(words.split_whitespace())
            .current_dir(root())
            .env_clear()
            .env("HOME", self.0.path());
        command
    }

    fn run(&self, words: &str) -> String {
        let output = self.command(words).output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "toolward {words}: {said}");
        String::from_utf8(output.stdout).expect("text")
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    /// Trusts a publisher for what its bundles need.
    fn trust(&self, name: &str, public_key: &str, key: &str, prefixes: &str) {
        let document = self.path(&format!("{name}.publisher.json"));
        self.run(&format!(
            "publisher new {name} --public-key {public_key} --key {key} -o {document}"
        ));
        let shown = self.run(&format!("publisher show {document} --json"));
        let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
        let fingerprint = shown["fingerprint"].as_str().expect("a fingerprint");
        let mut command = self.command(&format!("trust add {document} {prefixes}"));
        command.arg(format!("--fingerprint={fingerprint}"));
        let output = command.output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
    }

    /// A machine with ten bundles, and their drivers compiled.
    fn with_ten_bundles() -> Self {
        let machine = Self(tempfile::tempdir().expect("a directory"));
        let prefixes: String = [
            "csv", "files", "http", "json", "kv", "markdown", "notes", "text",
        ]
        .map(|prefix| format!("--prefix {prefix} "))
        .concat();
        machine.trust("toolward-examples", PUBLIC_KEY, KEY, &prefixes);
        let (key, public) = (machine.path("tests.pem"), machine.path("tests.pub.pem"));
        machine.run(&format!("keys new --out {key}"));
        let prefixes = "--prefix plain --prefix echo --prefix endings";
        machine.trust("toolward-tests", &public, &key, prefixes);
        let plain = machine.path("plain.toolbundle");
        machine.run(&format!("pack tests/guests/plain -o {plain} --key {key}"));
        machine.run(&format!("install {plain}"));
        let examples = std::fs::read_dir(root().join("examples/bundles")).expect("examples");
        for example in examples {
            let path = example.expect("a file").path();
            machine.run(&format!("install {}", path.display()));
        }
        let listed = machine.run("list --json");
        assert_eq!(listed.lines().count(), 10, "{listed}");
        // What the first server compiles, later ones find in the cache.
        let mut server = machine.command("serve").stdin(Stdio::piped()).spawn();
        std::thread::sleep(COMPILING);
        let server = server.as_mut().expect("it starts");
        drop(server.stdin.take());
        server.wait().expect("it ends");
        machine
    }

    /// Starts a server and waits for its first answer.
    fn initialized(&self) -> Duration {
        let start = Instant::now();
        let mut server = self
            .command("serve --stdio")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let mut stdin = server.stdin.take().expect("its input");
        stdin.write_all(INITIALIZE).expect("written");
        let mut answer = String::new();
        let mut stdout = BufReader::new(server.stdout.take().expect("its output"));
        stdout.read_line(&mut answer).expect("an answer");
        let took = start.elapsed();
        assert!(answer.contains("serverInfo"), "{answer}");
        drop(stdin);
        server.wait().expect("it ends");
        took
    }
}

fn start(criterion: &mut Criterion) {
    let machine = Machine::with_ten_bundles();
    let mut group = criterion.benchmark_group("start");
    group.bench_function("version", |bencher| {
        bencher.iter(|| machine.run("--version"));
    });
    group.bench_function("initialize_with_ten_bundles", |bencher| {
        bencher.iter_custom(|count| (0..count).map(|_| machine.initialized()).sum());
    });
    group.finish();
}

criterion_group!(benches, start);
criterion_main!(benches);
