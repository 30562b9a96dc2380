//! Measures how long a client waits for the answer to `initialize` from a server that it has just
//! started, with ten installed bundles whose drivers are in the cache; and how long the same
//! command takes to print its version. Then measures, in pairs, how much longer `toolward call`
//! takes if it records the call.

#![expect(clippy::expect_used, reason = "a benchmark may stop")]
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};

const TOOLWARD: &str = env!("CARGO_BIN_EXE_toolward");

/// The prefixes of the examples, and of the smallest test bundle, for trust in their publisher.
const OF_EXAMPLES: &str = "csv csv-summary files files-search http http-fetch json json-query kv kv-counter markdown markdown-html notes notes-append text text-digest text-stats";
const EXAMPLES: [&str; 9] = [
    "csv-summary",
    "files-search",
    "http-fetch",
    "json-query",
    "kv-counter",
    "markdown-html",
    "notes-append",
    "text-digest",
    "text-stats",
];
const OF_TESTS: &str = "plain echo endings";

const INITIALIZE: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"benchmark","version":"1"}}}
"#;

/// Longer than the drivers of ten bundles take to compile.
const COMPILING: Duration = Duration::from_secs(15);

/// Calls of each kind, made in turns.
const CALLS: usize = 100;

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

    /// Makes a publisher, and trusts it for these prefixes.
    fn trust(&self, name: &str, prefixes: &str) {
        let (key, public) = (self.path(name) + ".pem", self.path(name) + ".pub.pem");
        let document = self.path(name) + ".publisher.json";
        self.run(&format!("publisher keys new --out {key}"));
        self.run(&format!(
            "publisher new {name} --public-key {public} --key {key} -o {document}"
        ));
        let shown = self.run(&format!("publisher show {document} --json"));
        let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
        let fingerprint = shown.get("fingerprint").and_then(|value| value.as_str());
        let fingerprint = fingerprint.expect("a fingerprint");
        let mut command = self.command(&format!("trust add {document}"));
        for prefix in prefixes.split(' ') {
            command.args(["--prefix", prefix]);
        }
        command.arg(format!("--fingerprint={fingerprint}"));
        let output = command.output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
    }

    /// Packs a bundle and installs it.
    fn install(&self, folder: &str, publisher: &str) {
        let archive = self.path(&folder.replace('/', "-")) + ".toolbundle";
        let key = self.path(publisher) + ".pem";
        self.run(&format!("pack {folder} -o {archive} --key {key}"));
        self.run(&format!("install {archive}"));
    }

    /// A machine with ten bundles, and their drivers compiled.
    fn with_ten_bundles() -> Self {
        let machine = Self(tempfile::tempdir().expect("a directory"));
        machine.trust("toolward-examples", OF_EXAMPLES);
        machine.trust("toolward-tests", OF_TESTS);
        machine.install("tests/guests/plain", "toolward-tests");
        for example in EXAMPLES {
            machine.install(&format!("examples/{example}"), "toolward-examples");
        }
        let listed = machine.run("list --json");
        assert_eq!(listed.lines().count(), 10, "{listed}");
        // The first server compiles the drivers, and later servers find them in the cache.
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
        // The end of the server is neither measured nor waited for.
        server.kill().expect("it runs");
        server.wait().expect("it ends");
        took
    }

    /// Calls a tool with the command. Returns the times until its result starts and until the
    /// command ends.
    fn called(&self, more: &str) -> (Duration, Duration) {
        let start = Instant::now();
        let mut command = self
            .command(&format!("call text.stats --set text=a{more}"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let mut stdout = BufReader::new(command.stdout.take().expect("its output"));
        let began = !stdout.fill_buf().expect("an answer").is_empty();
        let answered = start.elapsed();
        let status = command.wait().expect("it ends");
        assert!(began && status.success(), "{status}");
        (answered, start.elapsed())
    }
}

/// Prints the cost of recording one call for a command that makes one: until its result starts on
/// standard output, and until the command ends, after the ledger is closed.
fn recorded(machine: &Machine) {
    // In the folder of the configuration, since the trust folder belongs to that folder.
    let off = machine.path(".config/toolward/off.toml");
    std::fs::write(&off, "[ledger]\noff = true\n").expect("written");
    let without = format!(" --config {off}");
    let (mut answers, mut ends) = (Pairs::default(), Pairs::default());
    for _ in 0..CALLS {
        let (with, without) = (machine.called(""), machine.called(&without));
        answers.push(with.0, without.0);
        ends.push(with.1, without.1);
    }
    println!("call, until its result: {}", answers.medians());
    println!("call, until its end: {}", ends.medians());
}

/// Times of the same work with and without recording, measured one after the other.
#[derive(Default)]
struct Pairs([Vec<f64>; 3]);

impl Pairs {
    fn push(&mut self, with: Duration, without: Duration) {
        let [with, without] = [with, without].map(|time| time.as_secs_f64() * 1e3);
        let Self(times) = self;
        for (times, time) in times.iter_mut().zip([with, without, with - without]) {
            times.push(time);
        }
    }

    fn medians(self) -> String {
        let [with, without, more] = self.0.map(|mut times| {
            times.sort_by(f64::total_cmp);
            times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
        });
        format!(
            "recorded {with:.1} ms, not recorded {without:.1} ms; median of the differences {more:.2} ms"
        )
    }
}

fn start(criterion: &mut Criterion) {
    let machine = Machine::with_ten_bundles();
    recorded(&machine);
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
