//! A compile broker that hangs, and a system that lacks threads, open files or room in files.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::process::standing;
use super::raw::{PATIENCE, Raw};
use super::served::Served;
use crate::recorder::{WITH, helper_of, machine, signal};
use crate::support::machine::toolward;
use crate::support::outside::skipped;
use crate::support::{Machine, Run};

/// A user who runs nothing else, since the kernel counts all processes of a user.
const OTHER: u32 = 54_321;

fn serving() -> String {
    format!("serve --bundle text-stats.toolbundle {WITH}")
}

/// Calls until a call succeeds. Returns `false` if the server ends first.
#[track_caller]
fn recovers(mut call: impl FnMut(usize) -> Option<Value>) -> bool {
    let until = Instant::now() + PATIENCE;
    for number in 1.. {
        let Some(answer) = call(number) else {
            return false;
        };
        if answer["result"]["isError"] == false {
            return true;
        }
        assert!(Instant::now() < until, "{answer}");
        std::thread::sleep(Duration::from_millis(100));
    }
    false
}

/// Starts a server, and stops its compile broker before the broker compiles anything.
fn with_stopped_broker() -> (Machine, Raw, u32) {
    let until = Instant::now() + PATIENCE;
    loop {
        let machine = machine().with_own_cache();
        let raw = Raw::start(machine.toolward(&serving()).into_command());
        let broker = loop {
            assert!(Instant::now() < until, "there is a broker");
            if let Some(broker) = helper_of(raw.process(), "internal-compile-broker") {
                break broker;
            }
        };
        signal(&machine, "STOP", broker);
        // On a slow machine, the server may have asked for its driver already.
        if helper_of(broker, "internal-compile-worker").is_none() {
            return (machine, raw, broker);
        }
        signal(&machine, "CONT", broker);
    }
}

#[test]
fn a_call_is_answered_while_the_compile_broker_hangs_and_its_driver_compiles_after_that() {
    let (machine, raw, broker) = with_stopped_broker();
    let mut raw = raw.opened(json!({}));
    raw.call("late", "text.stats", &json!({"text": "One two."}));
    let answer = raw.answer("late");
    assert!(answer.to_string().contains("does not answer"), "{answer}");
    signal(&machine, "CONT", broker);
    assert!(recovers(|number| {
        raw.call(number, "text.stats", &json!({"text": "One two."}));
        Some(raw.answer(number))
    }));
}

/// A server that runs as another user with a limit on threads and processes.
struct Short {
    child: Child,
    stdin: ChildStdin,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Short {
    fn serve(machine: &Machine, program: &str, most: u32) -> Self {
        let mut command = machine.program("bash");
        command.args(["-c", "ulimit -Su \"$0\" && exec \"$@\""]);
        command.args([&most.to_string(), program]);
        command.args(serving().split_whitespace());
        command.env("XDG_CACHE_HOME", machine.home().join(".cache"));
        command.uid(OTHER).gid(OTHER);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut short = Self {
            child,
            stdin,
            lines: BufReader::new(stdout).lines(),
        };
        short.send(&json!({
            "jsonrpc": "2.0", "id": "open", "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": {"name": "short", "version": "1"},
            },
        }));
        short.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        short
    }

    /// Sends a message, if the server still runs.
    fn send(&mut self, message: &Value) {
        let _ = self.stdin.write_all(format!("{message}\n").as_bytes());
    }

    /// Returns the answer to a call; `None` if the server has ended.
    fn call(&mut self, id: usize) -> Option<Value> {
        let params = json!({"name": "text.stats", "arguments": {"text": "One two."}});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
        let lines = self.lines.by_ref().map_while(Result::ok);
        let mut messages = lines.map(|line| serde_json::from_str::<Value>(&line).unwrap());
        messages.find(|message| message["id"] == id)
    }
}

/// Lifts the soft limit of all processes of the user, up to the hard limit. A process may end in
/// the meantime.
fn lift() {
    let script =
        "for p in $(pgrep -U \"$0\"); do prlimit --pid $p --nproc=$(ulimit -Hu):; done; true";
    let mut bash = Command::new("bash");
    bash.args(["-c", script, &OTHER.to_string()]);
    bash.uid(OTHER).gid(OTHER).stderr(Stdio::null());
    assert!(bash.status().unwrap().success());
}

#[test]
fn a_server_that_is_short_of_threads_works_or_says_so_and_works_again_with_more() {
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        return skipped("another user's threads are limited by root");
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("toolward");
    std::fs::copy(toolward(), &program).unwrap();
    let mut recovered = 0;
    for most in [1, 6, 10, 12, 14, 16, 18, 20, 22, 24, 32] {
        let machine = machine().with_own_cache();
        let mut chown = Command::new("chown");
        chown.args(["-R", &format!("{OTHER}:{OTHER}")]);
        chown.arg(machine.work().parent().unwrap());
        assert!(chown.status().unwrap().success());
        let mut server = Short::serve(&machine, program.to_str().unwrap(), most);
        let began = Instant::now();
        let answer = server.call(0);
        // A process that hangs would hang forever.
        assert!(began.elapsed() < PATIENCE, "{most}: {answer:?}");
        if let Some(answer) = &answer {
            let text = answer.to_string();
            let failed = answer["result"]["isError"] == true;
            let code = &answer["result"]["_meta"]["toolward/error"]["code"];
            assert!(!failed || code.is_string(), "{most}: {text}");
            lift();
            recovered += usize::from(recovers(|number| server.call(number)) && failed);
        }
        drop(server.stdin);
        let ended = server.child.wait().unwrap();
        let mut said = String::new();
        let mut stderr = server.child.stderr.take().unwrap();
        stderr.read_to_string(&mut said).unwrap();
        assert!(!said.contains("panicked"), "{most}: {said}");
        // A recorder that can't start its threads ends the server.
        let in_order = ended.success() && answer.is_some();
        assert!(
            in_order || said.contains("error["),
            "{most}: {ended}: {said}"
        );
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // With more cores, the server needs more threads than the largest of these limits.
    assert!(
        recovered > 0 || cores > 4,
        "no server lacked threads and recovered"
    );
}

#[test]
fn a_server_that_can_start_no_thread_at_all_says_why_it_ends() {
    let machine = machine();
    let server = machine.toolward(&serving());
    // No address space has room for such a stack. Helpers get a separate environment.
    let ended = server
        .env("RUST_MIN_STACK", (1_u64 << 47).to_string())
        .ends(1);
    assert!(
        ended.stderr.contains("error[runtime-unavailable]"),
        "{ended}"
    );
}

/// Calls over HTTP in the era without sessions; `None` if there is no answer.
fn post(address: &str) -> Option<Value> {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "text.stats", "arguments": {"text": "One two."},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "short", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    }})
    .to_string();
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: tools/call\r\nMcp-Name: text.stats\r\nContent-Length: {}\r\n\r\n",
        message.len()
    );
    stream.write_all((head + &message).as_bytes()).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let text = String::from_utf8(answer).unwrap();
    let json = text.get(text.find("\r\n\r\n")? + 4..)?;
    serde_json::from_str(json.get(json.find('{')?..=json.rfind('}')?)?).ok()
}

/// A server over HTTP with a limit on open files.
fn with_files(machine: &Machine, most: u32) -> Served {
    let mut command = machine.program("bash");
    command.args(["-c", "ulimit -n \"$0\" && exec \"$@\"", &most.to_string()]);
    command.arg(toolward()).args(serving().split_whitespace());
    command.args(["--http", "127.0.0.1:0", "--no-token"]);
    command.stdin(Stdio::null());
    Served::by(command)
}

#[test]
fn four_hundred_connections_at_once_leave_a_server_that_answers() {
    for most in [96, 4096] {
        let machine = machine();
        let server = with_files(&machine, most);
        let address = server.address();
        assert!(
            recovers(|_| Some(post(address).unwrap_or_default())),
            "{most}"
        );
        let before = standing(server.process()).files;
        // Half of the connections send nothing, and half start a request.
        let open: Vec<_> = (0..400)
            .filter_map(|number| {
                let mut stream = TcpStream::connect(address).ok()?;
                if number % 2 == 0 {
                    let _ = stream.write_all(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n");
                }
                Some(stream)
            })
            .collect();
        std::thread::sleep(Duration::from_secs(1));
        drop(open);
        assert!(
            recovers(|_| Some(post(address).unwrap_or_default())),
            "{most}"
        );
        let until = Instant::now() + PATIENCE;
        while standing(server.process()).files > before + 8 {
            assert!(Instant::now() < until, "descriptors come back");
            std::thread::sleep(Duration::from_millis(50));
        }
        let said = server.said();
        assert!(!said.contains("panicked"), "{said}");
    }
}

#[test]
fn a_server_that_is_short_of_files_at_its_start_says_so_and_loses_nothing_that_it_keeps() {
    let machine = machine();
    let serve = |most: u32| {
        let mut command = machine.program("bash");
        command.args(["-c", "ulimit -n \"$0\" && exec \"$@\"", &most.to_string()]);
        command.arg(toolward()).args(serving().split_whitespace());
        Run::new(command).end()
    };
    assert_eq!(serve(1024).code, Some(0));
    let kept = ["denials/key", "ids/secret", "ledger/key.pem"];
    let state = machine.home().join(".local/state/toolward");
    let read = || kept.map(|name| std::fs::read(state.join(name)).unwrap());
    let before = read();
    for most in 7..40 {
        let ended = serve(most);
        assert!(!ended.stderr.contains("panicked"), "{most}: {ended}");
        let says_so = ended.stderr.contains("error[");
        assert!(ended.code == Some(0) || says_so, "{most}: {ended}");
        assert!(read() == before, "{most}: {ended}");
    }
    assert_eq!(serve(1024).code, Some(0));
    machine.toolward("ledger verify").ends(0);
}

#[test]
fn a_client_that_can_not_be_written_to_is_why_a_server_ends() {
    let machine = machine();
    let mut command = machine.program("bash");
    command.args(["-c", "exec \"$0\" \"$@\" > /dev/full"]);
    command.arg(toolward()).args(serving().split_whitespace());
    let opening = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "full", "version": "1"},
        },
    });
    let ended = Run::new(command).stdin(format!("{opening}\n")).ends(1);
    assert!(ended.stderr.contains("error[stdio-unusable]"), "{ended}");
    assert!(!ended.stderr.contains("Transport"), "{ended}");
}

/// Limits how far a process may grow files.
fn bound_files(machine: &Machine, process: u32, bytes: &str) {
    let mut prlimit = machine.program("prlimit");
    prlimit.args(["--pid", &process.to_string(), &format!("--fsize={bytes}:")]);
    Run::new(prlimit).ends(0);
}

#[test]
fn a_recorder_whose_files_may_not_grow_recovers_and_its_ledger_holds() {
    let machine = machine();
    let words =
        format!("serve --bundle text-stats.toolbundle --bundle kv-counter.toolbundle {WITH}");
    let mut raw = Raw::open(machine.toolward(&words).into_command(), json!({}));
    let add = json!({"action": "add", "counter": "visits"});
    let server = raw.process();
    let mut count = |id: usize| {
        raw.call(id, "kv.counter", &add);
        raw.answer(id)
    };
    assert_eq!(count(0)["result"]["isError"], false);
    let recorder = helper_of(server, "internal-recorder").unwrap();
    bound_files(&machine, recorder, "4096");
    let answer = count(1);
    assert!(
        answer.to_string().contains("toolward:unrecorded"),
        "{answer}"
    );
    bound_files(&machine, recorder, "unlimited");
    assert!(recovers(|number| Some(count(number + 2))));
    let last = count(1000);
    assert!(last.to_string().contains(r#""value":3"#), "{last}");
    let said = raw.said();
    assert!(!said.contains("panicked"), "{said}");
    machine.toolward("ledger verify").ends(0);
}
