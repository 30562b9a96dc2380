//! Plays a newcomer with an unpacked release: the demo, its block in the official Python client, a call,
//! and the demo taken away. The home is empty, and loopback is the only network.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use crate::{Outcome, process, repository};

const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// Runs its arguments where loopback is all the network there is.
const ISOLATED: [&str; 6] = [
    "unshare",
    "--map-root-user",
    "--net",
    "sh",
    "-ec",
    "ip link set lo up; exec \"$0\" \"$@\"",
];

/// Where a newcomer's commands run.
pub(super) struct Newcomer {
    command: PathBuf,
    home: PathBuf,
    isolated: bool,
}

impl Newcomer {
    /// One with this command and an empty home.
    pub(super) fn new(command: &Path, home: &Path) -> Self {
        let mut newcomer = Self {
            command: command.to_owned(),
            home: home.to_owned(),
            isolated: true,
        };
        newcomer.isolated = process::run(&mut newcomer.run(Path::new("true"))).is_ok();
        if !newcomer.isolated {
            println!(
                "newcomer: no network namespace can be made here, so this machine's network is used"
            );
        }
        newcomer
    }

    fn run(&self, program: &Path) -> Command {
        let mut command = match (self.isolated, ISOLATED) {
            (true, [first, rest @ ..]) => {
                let mut command = Command::new(first);
                command.args(rest).arg(program);
                command
            }
            (false, _) => Command::new(program),
        };
        command
            .current_dir(&self.home)
            .env_clear()
            .env("PATH", PATH)
            .env("HOME", &self.home);
        command
    }

    fn step(&self, name: &str, command: &mut Command) -> Outcome<Vec<u8>> {
        let started = Instant::now();
        let said = process::output(command)?;
        println!("  {name:<22} {:.1} s", started.elapsed().as_secs_f64());
        Ok(said)
    }

    /// All steps, each with the time that it takes.
    pub(super) fn play(&self) -> Outcome {
        let toolward = |words: &[&str]| {
            let mut command = self.run(&self.command);
            command.args(words);
            command
        };
        self.step("--version", &mut toolward(&["--version"]))?;
        let demo = self.step("demo", &mut toolward(&["demo", "--json"]))?;
        let demo = parsed(&demo)?;
        let attempts = demo.pointer("/attempts").and_then(Value::as_array);
        let attempts = attempts.ok_or("the demo tells of no attempt")?;
        let stopped = |attempt: &Value| attempt.get("stopped") == Some(&Value::Bool(true));
        if attempts.is_empty() || !attempts.iter().all(stopped) {
            return Err(format!("the demo did not stop each attempt: {demo}"));
        }
        let block = demo.get("block").and_then(Value::as_str);
        let block = parsed(block.ok_or("the demo has no block")?.as_bytes())?;
        let entry = block.pointer("/mcpServers/toolward-demo");
        let entry = entry.ok_or("the block has no entry toolward-demo")?;
        let mut client = self.run(&client()?);
        client
            .args(["-I", "-B"])
            .arg(repository::root()?.join("xtask/dist/newcomer.py"))
            .arg(entry.to_string());
        let called = parsed(&self.step("call from the client", &mut client)?)?;
        if called.get("words") != Some(&Value::from(2)) {
            return Err(format!("the client did not get 2 words: {called}"));
        }
        self.step("demo --remove", &mut toolward(&["demo", "--remove"]))?;
        Ok(())
    }
}

fn parsed(bytes: &[u8]) -> Outcome<Value> {
    serde_json::from_slice(bytes).map_err(|error| error.to_string())
}

/// The Python that has the official client.
fn client() -> Outcome<PathBuf> {
    let folder = repository::target()?.join("mcp-clients");
    let script = repository::root()?.join("xtask/mcp-clients.sh");
    process::output(Command::new(script).env("MCP_CLIENTS_DIR", &folder))?;
    Ok(folder.join("python/bin/python"))
}
