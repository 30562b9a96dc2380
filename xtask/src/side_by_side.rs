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
/// How long a server may take to end.
const END_TIMEOUT: Duration = Duration::from_secs(10);
/// Rounds of them, for each server.
const ROUNDS: usize = 20;

const USAGE: &str = "\
usage: cargo xtask side-by-side [--calls N] [--other-call TOOL JSON] TOOL JSON FIRST SECOND

FIRST and SECOND are commands that start a server on standard input and output.
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
    let all = processors()?;
    let one = all.split([',', '-']).next().unwrap_or_default();
    for (what, processors) in [("one processor", one), ("all processors", &all)] {
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

/// The processors that this process may run on, as `taskset` takes them.
fn processors() -> Outcome<String> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let list = list.ok_or_else(|| "/proc/self/status names no processors".to_owned())?;
    Ok(list.trim().to_owned())
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
            resident: resident(server.process.id()) as f64 * 1024.0 / 1e6,
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
    /// `None` once it is told to end.
    to: Option<ChildStdin>,
    from: Option<BufReader<ChildStdout>>,
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
            to: Some(to),
            from: Some(BufReader::new(from)),
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
        let to = self.to.as_mut().ok_or("the server was told to end")?;
        to.write_all(bytes)
            .map_err(|error| format!("the server does not read: {error}"))
    }

    /// Reads the next line that may be an answer.
    fn line(&mut self) -> Outcome {
        let from = self.from.as_mut().ok_or("the server was told to end")?;
        loop {
            self.line.clear();
            match from.read_line(&mut self.line) {
                Ok(0) => return Err("the server has ended".to_owned()),
                Ok(_) if self.line.contains("\"id\"") => return Ok(()),
                Ok(_) => {}
                Err(error) => return Err(format!("the server's answer can't be read: {error}")),
            }
        }
    }

    /// Whether the last line is an answer; an error if it says that a call failed.
    fn is_answer(&self) -> Outcome<bool> {
        let answer: Value = serde_json::from_str(&self.line)
            .map_err(|error| format!("the server's answer is not JSON: {error}"))?;
        let failed = answer.get("error").is_some()
            || answer.pointer("/result/isError") == Some(&Value::Bool(true));
        match failed {
            true => Err(format!("a call failed: {}", self.line.trim_end())),
            false => Ok(answer.get("id").is_some() && answer.get("result").is_some()),
        }
    }

    /// Reads to the next answer.
    fn answer(&mut self) -> Outcome {
        loop {
            self.line()?;
            if self.is_answer()? {
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
        loop {
            self.line()?;
            // Without the time that it takes to look at the answer.
            let took = begun.elapsed();
            if self.is_answer()? {
                return Ok(took);
            }
        }
    }

    /// The time of many calls, all sent before the first answer is waited for.
    fn calls_at_once(&mut self, called: &Called) -> Outcome<Duration> {
        let messages: String = (0..AT_ONCE).map(|_| self.message(called)).collect();
        let to = self.to.as_ref().ok_or("the server was told to end")?;
        let to = to.as_fd().try_clone_to_owned();
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

    /// Ends its streams, and waits some seconds until it has ended.
    fn end(mut self) -> Outcome {
        self.to = None;
        self.from = None;
        let until = Instant::now() + END_TIMEOUT;
        while Instant::now() < until {
            match self.process.try_wait() {
                Ok(Some(_)) => return Ok(()),
                Ok(None) => std::thread::sleep(Duration::from_millis(5)),
                Err(error) => return Err(error.to_string()),
            }
        }
        Err("the server does not end when its input does".to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has ended, or there is an error that says more.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
