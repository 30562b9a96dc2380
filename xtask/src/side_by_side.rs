//! Two MCP servers on standard input and output, measured side by side: they take turns, so that what else the
//! machine does disturbs both alike. Anybody can repeat a comparison with a server that is installed here.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::AsFd as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Outcome;

/// Calls of one server before the other's turn.
const TURN: usize = 200;
/// Calls before the first that counts.
const WARM: usize = 500;
/// Starts of each server that are timed.
const STARTS: usize = 15;
/// Calls that are sent at once.
const AT_ONCE: usize = 1_000;
/// Rounds of them, for each server.
const ROUNDS: usize = 20;

const USAGE: &str = "\
usage: cargo xtask side-by-side [--calls N] [--other-call TOOL JSON] TOOL JSON FIRST SECOND

FIRST and SECOND are commands for a shell that start a server on standard input and output.
Both get calls of TOOL with the arguments JSON; the second those of --other-call, if given.";

/// A tool with its arguments.
struct Called {
    tool: String,
    arguments: Value,
}

impl Called {
    fn new(tool: &str, arguments: &str) -> Outcome<Self> {
        Ok(Self {
            tool: tool.to_owned(),
            arguments: serde_json::from_str(arguments)
                .map_err(|error| format!("{arguments} is not JSON: {error}"))?,
        })
    }
}

/// Measures both, and prints a table.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let mut calls = 5_000;
    let mut other = None;
    let mut rest = arguments.iter();
    let mut plain = Vec::new();
    while let Some(argument) = rest.next() {
        let mut next = || rest.next().ok_or_else(|| USAGE.to_owned());
        match argument.as_str() {
            "--calls" => {
                calls = next()?.parse().map_err(|_| USAGE.to_owned())?;
            }
            "--other-call" => other = Some(Called::new(next()?, next()?)?),
            _ => plain.push(argument.as_str()),
        }
    }
    let [tool, input, first, second] = plain[..] else {
        return Err(USAGE.to_owned());
    };
    let called = Called::new(tool, input)?;
    let other = other.as_ref().unwrap_or(&called);
    let sides = [(first, &called), (second, other)];

    let started = starts(sides)?;
    row(
        "start to the answer to `initialize`, median",
        started.map(milliseconds),
    );
    for (what, processors) in [("one processor", "0"), ("all processors", "0-1023")] {
        pin(processors)?;
        let figures = calls_of(sides, calls)?;
        row(
            &format!("{what}: a call, p50"),
            figures.map(|of| microseconds(of.p50)),
        );
        row(
            &format!("{what}: a call, mean"),
            figures.map(|of| microseconds(of.mean)),
        );
        row(
            &format!("{what}: a call, p99"),
            figures.map(|of| microseconds(of.p99)),
        );
        row(
            &format!("{what}: {AT_ONCE} at once, calls/s, median"),
            figures.map(|of| format!("{:.0}", of.per_second)),
        );
        row(
            &format!("{what}: resident"),
            figures.map(|of| format!("{:.1} MB", of.resident)),
        );
    }
    Ok(())
}

fn row(what: &str, [first, second]: [String; 2]) {
    println!("{what:<48} {first:>12} {second:>12}");
}

fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

fn microseconds(time: Duration) -> String {
    format!("{:.1} µs", time.as_secs_f64() * 1e6)
}

/// Has this process and those that it starts run on these processors only.
fn pin(processors: &str) -> Outcome {
    let own = std::process::id().to_string();
    crate::process::output(Command::new("taskset").args(["-pc", processors, &own])).map(drop)
}

/// The median time of each server's starts.
fn starts(sides: [(&str, &Called); 2]) -> Outcome<[Duration; 2]> {
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..STARTS {
        for ((command, _), times) in sides.iter().zip(&mut times) {
            let begun = Instant::now();
            let server = Server::start(command)?;
            times.push(begun.elapsed());
            server.end()?;
        }
    }
    Ok(times.map(|mut times| quantile(&mut times, 50)))
}

/// What was measured of one server.
#[derive(Clone, Copy)]
struct Figures {
    p50: Duration,
    p99: Duration,
    mean: Duration,
    per_second: f64,
    /// Of the process that was started and all below it, in megabytes.
    resident: f64,
}

fn calls_of(sides: [(&str, &Called); 2], calls: usize) -> Outcome<[Figures; 2]> {
    let [(first, _), (second, _)] = sides;
    let mut servers = [Server::start(first)?, Server::start(second)?];
    let mut times = [Vec::new(), Vec::new()];
    let mut rates = [Vec::new(), Vec::new()];
    for (server, (_, called)) in servers.iter_mut().zip(sides) {
        for _ in 0..WARM {
            server.call(called)?;
        }
    }
    for _ in 0..calls.div_ceil(TURN) {
        for ((server, times), (_, called)) in servers.iter_mut().zip(&mut times).zip(sides) {
            for _ in 0..TURN {
                times.push(server.call(called)?);
            }
        }
    }
    for _ in 0..ROUNDS {
        for ((server, rates), (_, called)) in servers.iter_mut().zip(&mut rates).zip(sides) {
            rates.push(server.calls_at_once(called)?);
        }
    }
    let mut figures = Vec::new();
    for ((server, mut times), mut rates) in servers.into_iter().zip(times).zip(rates) {
        let sum: Duration = times.iter().sum();
        let mean = sum / u32::try_from(times.len()).unwrap_or(u32::MAX).max(1);
        figures.push(Figures {
            p50: quantile(&mut times, 50),
            p99: quantile(&mut times, 99),
            mean,
            per_second: AT_ONCE as f64 / quantile(&mut rates, 50).as_secs_f64(),
            resident: resident(server.process.id()) as f64 / 1e3,
        });
        server.end()?;
    }
    let figures: [Figures; 2] = figures.try_into().map_err(|_| "two servers".to_owned())?;
    Ok(figures)
}

fn quantile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    let at = times.len().saturating_sub(1) * percent / 100;
    times.get(at).copied().unwrap_or_default()
}

/// Kilobytes of a process and of those that it started.
fn resident(process: u32) -> u64 {
    let folder = format!("/proc/{process}");
    let status = std::fs::read_to_string(format!("{folder}/status")).unwrap_or_default();
    let own = status.lines().find_map(|line| {
        let kilobytes = line.strip_prefix("VmRSS:")?.strip_suffix("kB")?;
        kilobytes.trim().parse::<u64>().ok()
    });
    let children = std::fs::read_to_string(format!("{folder}/task/{process}/children"));
    let children = children.unwrap_or_default();
    let children = children
        .split_whitespace()
        .filter_map(|child| child.parse().ok());
    own.unwrap_or(0) + children.map(resident).sum::<u64>()
}

/// A server that was started, and its client.
struct Server {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    line: String,
    next: u64,
}

impl Server {
    /// Starts it, and waits for the answer to `initialize`.
    fn start(command: &str) -> Outcome<Self> {
        let failed = |error| format!("`{command}` can't be started: {error}");
        let mut process = Command::new("sh")
            .args(["-c", &format!("exec {command}")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let (Some(to), Some(from)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(format!("`{command}` has no pipes"));
        };
        let mut server = Self {
            process,
            to,
            from: BufReader::new(from),
            line: String::new(),
            next: 1,
        };
        let client = json!({ "name": "side-by-side", "version": "1" });
        server.send(
            &json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client } }),
        )?;
        server
            .answer()
            .map_err(|error| format!("`{command}`: {error}"))?;
        server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(server)
    }

    fn send(&mut self, message: &Value) -> Outcome {
        self.write(format!("{message}\n").as_bytes())
    }

    fn write(&mut self, bytes: &[u8]) -> Outcome {
        let written = self.to.write_all(bytes).and_then(|()| self.to.flush());
        written.map_err(|error| format!("the server does not read: {error}"))
    }

    /// Reads to the next answer; notifications are skipped.
    fn answer(&mut self) -> Outcome {
        loop {
            self.line.clear();
            match self.from.read_line(&mut self.line) {
                Ok(0) => return Err("the server has ended".to_owned()),
                Ok(_) => {}
                Err(error) => return Err(format!("the server's answer can't be read: {error}")),
            }
            if self.line.contains("\"error\":") || self.line.contains("\"isError\":true") {
                return Err(format!("a call failed: {}", self.line.trim_end()));
            }
            if self.line.contains("\"result\":") {
                return Ok(());
            }
        }
    }

    fn message(&mut self, called: &Called) -> String {
        self.next += 1;
        let message = json!({ "jsonrpc": "2.0", "id": self.next, "method": "tools/call", "params": {
            "name": called.tool, "arguments": called.arguments } });
        format!("{message}\n")
    }

    /// The time from sending a call to its answer.
    fn call(&mut self, called: &Called) -> Outcome<Duration> {
        let message = self.message(called);
        let begun = Instant::now();
        self.write(message.as_bytes())?;
        self.answer()?;
        Ok(begun.elapsed())
    }

    /// The time of many calls, all sent before the first answer is waited for.
    fn calls_at_once(&mut self, called: &Called) -> Outcome<Duration> {
        let messages: String = (0..AT_ONCE).map(|_| self.message(called)).collect();
        let to = self.to.as_fd().try_clone_to_owned();
        let mut to = std::fs::File::from(to.map_err(|error| error.to_string())?);
        let begun = Instant::now();
        let sending = std::thread::spawn(move || to.write_all(messages.as_bytes()));
        for _ in 0..AT_ONCE {
            self.answer()?;
        }
        let took = begun.elapsed();
        match sending.join() {
            Ok(Ok(())) => Ok(took),
            _ => Err("the server does not read".to_owned()),
        }
    }

    /// Ends its input, and waits until it has ended.
    fn end(self) -> Outcome {
        let Self {
            mut process, to, ..
        } = self;
        drop(to);
        process.wait().map(drop).map_err(|error| error.to_string())
    }
}
