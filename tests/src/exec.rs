//! Programs outside the sandbox: a hostile program, compiled here, is a tool in a version 1
//! `tools.json`. Its attempts are stopped, it leaves nothing behind, and it runs only if the
//! operator's policy has a line for it.

mod forged;
mod lines;
mod served;
mod tries;
mod unprivileged;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolward_signing::digest::Digest;
use toolward_signing::key::SigningKey;

use crate::support::{Draft, Ended, Machine, root};

/// A machine with the hostile program and a tool that runs it.
struct Scene {
    machine: Machine,
    publisher: String,
    /// The arguments in tools.json.
    args: Vec<String>,
    capabilities: Vec<String>,
    secrets: Vec<String>,
    /// More lines of the `[[exec]]`, and other tables.
    line: String,
    tables: String,
}

impl Scene {
    /// A scene in which the program gets these arguments.
    fn new(args: &[&str]) -> Self {
        let machine = Machine::new();
        let scene = Self {
            machine,
            publisher: String::new(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            capabilities: Vec::new(),
            secrets: Vec::new(),
            line: String::new(),
            tables: String::new(),
        };
        let source = root().join("tests/src/exec/hostile.c");
        let built = Command::new("cc")
            .args(["-O1", "-pthread", "-o"])
            .arg(scene.program())
            .arg(source)
            .status()
            .unwrap();
        assert!(built.success());
        scene
    }

    fn line(mut self, lines: &str) -> Self {
        self.line.push_str(lines);
        self
    }

    /// Declares a workspace `notes`, grants it, and passes it to the program.
    fn with_notes(mut self) -> Self {
        fs::create_dir(self.notes()).unwrap();
        self.capabilities.push("fs:/notes".to_owned());
        self.tables.push_str(&format!(
            "[[workspace]]\npath = \"/notes\"\ndirectory = {:?}\n",
            self.notes()
        ));
        self.line("workspaces = { \"/notes\" = \"read-write\" }\n")
    }

    fn notes(&self) -> PathBuf {
        self.machine.path("notes")
    }

    fn program(&self) -> PathBuf {
        self.machine.path("hostile-program")
    }

    fn digest(&self) -> String {
        Digest::of(&fs::read(self.program()).unwrap()).to_string()
    }

    /// Writes the bundle, and the policy that allows its program.
    fn write(&mut self) {
        let text = self.policy_with(&self.program().display().to_string());
        self.write_with(&text);
    }

    /// Writes the bundle and this policy, in which `PUBLISHER` stands for the bundle's publisher.
    fn write_with(&mut self, policy: &str) {
        let entry = json!({
            "id": "hostile.program", "description": "Does what it is told.",
            "transport": { "kind": "exec", "command": self.program(), "args": self.args },
            "input_schema": {}, "result_schema": {},
            "capabilities": self.capabilities, "secrets": self.secrets,
        });
        let mut draft = Draft::of("text-stats");
        draft.files.clear();
        draft.manifest.artifacts.tools.version = 1;
        let document = json!({ "version": 1, "tools": [entry] });
        let key = SigningKey::generate().unwrap();
        let signed = draft.put("tools.json", document.to_string()).sign(&key);
        signed.write_archive(&self.machine.path("hostile.toolbundle"));
        let public = key.public().to_pem().unwrap();
        self.machine.write("key.pub.pem", public);
        self.publisher = format!("key:{}", key.public().key_id());
        let policy = policy.replace("PUBLISHER", &self.publisher);
        self.machine.write("policy.toml", policy);
    }

    /// The policy with this command.
    fn policy_with(&self, command: &str) -> String {
        let grant = "[[grant]]\npublisher = \"PUBLISHER\"\ntool = \"hostile.program\"\npreapproved = true\n\
            mutates = [\"workspace:/notes\"]\nrequires = [\"secret:key\"]\nreveal = [\"key\"]\n";
        format!(
            "{grant}[[exec]]\npublisher = \"PUBLISHER\"\ntool = \"hostile.program\"\ncommand = {command:?}\n\
             digest = \"{}\"\nargs = {:?}\n{}\n{}",
            self.digest(),
            self.args,
            self.line,
            self.tables
        )
    }

    fn call(&self) -> Ended {
        self.call_with("--json")
    }

    /// Calls with these additional arguments.
    fn call_with(&self, more: &str) -> Ended {
        let call = format!(
            "call hostile.program --bundle hostile.toolbundle --trust-key key.pub.pem --policy-file policy.toml \
             --input {{\"a\":1}} {more}"
        );
        self.machine
            .toolward(&call)
            .env("SECRET_KEY", "correct-horse-battery")
            .env("OTHER", "not for it")
            .end()
    }

    /// Returns the program's report of its actions.
    fn did(&mut self) -> Value {
        self.write();
        let ended = self.call();
        assert_eq!(ended.code, Some(0), "{ended}");
        self.is_alone();
        ended.json()["value"].clone()
    }

    /// Returns the error of a call.
    fn fails(&mut self) -> Value {
        self.write();
        self.error()
    }

    fn error(&self) -> Value {
        let ended = self.call();
        assert_ne!(ended.code, Some(0), "{ended}");
        self.is_alone();
        ended.json()["error"].clone()
    }

    /// Asserts that no process of the program, or of its parents, still runs.
    fn is_alone(&self) {
        let mark = self.machine.work();
        let mark = mark.to_str().unwrap();
        let until = Instant::now() + Duration::from_secs(10);
        loop {
            let left = processes(mark);
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < until, "{left:?} are left");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Returns the processes that have this in their command line.
fn processes(mark: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| {
        let id = entry.file_name().into_string().ok()?;
        let _: u32 = id.parse().ok()?;
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.contains(mark).then(|| format!("{id} {line}"))
    });
    lines.collect()
}

fn set_mode(path: &PathBuf, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}
