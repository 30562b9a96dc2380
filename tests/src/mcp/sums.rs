//! Clients that do not read large results, and calls that take all the memory that they get: the
//! server stays within `memory_total`, a client that reads gets everything, and other clients are
//! answered.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::process::memory;
use super::raw::PATIENCE;
use super::served::Served;
use crate::support::{Machine, long};

const MIB: u64 = 1 << 20;
/// The memory of the server besides calls: the process itself, results on their way to clients, and
/// memory that the allocator keeps.
const MARGIN: u64 = 256 * MIB;
/// The size of each large result.
const RESULT_MIB: u64 = 15;
/// How long clients and calls put pressure on the server.
const PRESSURE: Duration = Duration::from_secs(12);

/// How many clients put pressure, and how much memory all calls may have.
struct Size {
    readers: usize,
    calls: usize,
    total: u64,
}

/// A client with its own token.
#[derive(Clone)]
struct Client {
    address: String,
    token: String,
}

impl Client {
    /// Posts a call, and reads nothing yet.
    fn call(&self, arguments: &Value) -> TcpStream {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "hostile_run", "arguments": arguments,
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "sums", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        }})
        .to_string();
        let Self { address, token } = self;
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: hostile_run\r\n\
             Content-Length: {}\r\n\r\n",
            message.len()
        );
        stream.write_all((head + &message).as_bytes()).unwrap();
        stream
    }

    /// Returns the answer to a call. Reads at most `part` bytes between two pauses. Returns `None`
    /// if the connection ended early.
    fn answer(&self, arguments: &Value, part: usize, pause: Duration) -> Option<Value> {
        let mut stream = self.call(arguments);
        let mut answer = Vec::new();
        let mut bytes = vec![0; part];
        loop {
            match stream.read(&mut bytes) {
                Ok(0) => break,
                Ok(count) => answer.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
                Err(error) => panic!("no answer in time: {error}"),
            }
            if !pause.is_zero() {
                std::thread::sleep(pause);
            }
        }
        let text = String::from_utf8(answer).unwrap();
        let (_, body) = text.split_once("\r\n\r\n")?;
        serde_json::from_str(body.get(body.find('{')?..=body.rfind('}')?)?).ok()
    }

    fn echo(&self) -> Value {
        let arguments = json!({"do": "echo", "value": 7});
        let answer = self.answer(&arguments, 4096, Duration::ZERO);
        answer.expect("a small result is sent")
    }
}

fn machine(total: u64) -> Machine {
    let machine = Machine::new();
    crate::hostile::add(&machine, "hostile");
    let driver = "hostile/drivers/hostile/DRIVER.md";
    let text = std::fs::read_to_string(machine.path(driver)).unwrap();
    let limits = "limits: { memory_mib: 256, output_bytes: 16777216 }\nimplements:";
    machine.write(driver, text.replacen("implements:", limits, 1));
    let tool = "hostile/tools/hostile.run/TOOL.md";
    let text = std::fs::read_to_string(machine.path(tool)).unwrap();
    machine.write(tool, text.replace("timeout_ms: 5000", "timeout_ms: 20000"));
    machine.write("policy.toml", format!("[limits]\nmemory_total = {total}\n"));
    machine
}

fn client(machine: &Machine, name: &str) -> String {
    let words = format!("mcp token {name} --tools hostile.* --add tokens.toml --json");
    let made = machine.toolward(&words).ends(0).json();
    made["token"].as_str().unwrap().to_owned()
}

#[test]
fn readers_and_calls_that_take_all_stay_within_the_total_and_others_are_served() {
    let Size {
        readers,
        calls,
        total,
    } = match long() {
        false => Size {
            readers: 8,
            calls: 8,
            total: 384 * MIB,
        },
        true => Size {
            readers: 40,
            calls: 20,
            total: 1024 * MIB,
        },
    };
    let machine = machine(total);
    // One principal may have at most 32 requests at once.
    let names = ["deaf", "deafer", "greedy", "steady", "modest"];
    let tokens = names.map(|name| client(&machine, name));
    let words =
        "serve --dev hostile --policy-file policy.toml --http 127.0.0.1:0 --tokens tokens.toml";
    let mut command = machine.toolward(words).into_command();
    command.stdin(Stdio::null());
    let served = Served::by(command);
    let [deaf, deafer, greedy, steady, modest] = tokens.map(|token| Client {
        address: served.address().to_owned(),
        token,
    });
    // Compiles the driver first.
    assert_eq!(modest.echo()["result"]["isError"], false);
    let before = memory(served.process(), "VmRSS:");

    let large = json!({"do": "huge-result", "n": RESULT_MIB});
    let (over, whole) = (AtomicBool::new(false), AtomicUsize::new(0));
    let began = Instant::now();
    // The threads stop even if an assertion fails.
    let goes_on = || !over.load(Ordering::Relaxed) && began.elapsed() < PATIENCE * 2;
    // On a busy machine, a call that must end takes long to free its memory.
    let presses = || goes_on() && began.elapsed() < PRESSURE * 3;
    let (mut peak, mut answered) = (0, 0);
    std::thread::scope(|scope| {
        for number in 0..readers {
            let reader = [&deaf, &deafer][number % 2];
            let (large, goes_on) = (&large, &goes_on);
            scope.spawn(move || {
                while goes_on() {
                    let stream = reader.call(large);
                    let until = Instant::now() + PRESSURE / 3;
                    while goes_on() && Instant::now() < until {
                        std::thread::sleep(Duration::from_millis(50));
                    }
                    drop(stream);
                }
            });
        }
        for _ in 0..calls {
            scope.spawn(|| {
                let endless = json!({"do": "allocate-forever"});
                while presses() {
                    let answer = greedy.answer(&endless, 4096, Duration::ZERO);
                    let error = &answer.expect("an answer")["result"]["_meta"]["toolward/error"];
                    let code = error["code"].as_str().unwrap_or_default().to_owned();
                    let known = ["toolward:memory_exceeded", "rate_limited", "timeout"];
                    assert!(known.contains(&code.as_str()), "{code}");
                }
            });
        }
        let reading = scope.spawn(|| {
            while goes_on() {
                let answer = steady.answer(&large, 256 << 10, Duration::from_millis(20));
                let answer = answer.expect("a client that reads stays connected");
                let value = answer["result"]["structuredContent"]["value"].as_str();
                let Some(value) = value else {
                    // There was no room for the call.
                    let code = &answer["result"]["_meta"]["toolward/error"]["code"];
                    let no_room = ["toolward:memory_exceeded", "rate_limited", "timeout"];
                    assert!(
                        no_room.contains(&code.as_str().unwrap_or_default()),
                        "{code}"
                    );
                    continue;
                };
                assert_eq!(value.len() as u64, RESULT_MIB * MIB);
                whole.fetch_add(1, Ordering::Relaxed);
            }
        });
        let is_read = || whole.load(Ordering::Relaxed) > 0 || began.elapsed() > PATIENCE;
        while began.elapsed() < PRESSURE || !is_read() {
            let answer = modest.echo();
            assert_eq!(answer["result"]["isError"], false, "{answer}");
            answered += 1;
            peak = peak.max(memory(served.process(), "VmRSS:"));
            std::thread::sleep(Duration::from_millis(20));
        }
        over.store(true, Ordering::Relaxed);
        reading.join().unwrap();
    });
    println!("{answered} answers; resident {before} KiB before, {peak} KiB at most");
    assert!(answered > 0);
    assert!(whole.into_inner() > 0, "no large result was read");
    let most = before * 1024 + total + MARGIN;
    assert!(
        peak * 1024 < most,
        "{peak} KiB, at most {} KiB",
        most / 1024
    );
    assert_eq!(greedy.echo()["result"]["isError"], false);
}
