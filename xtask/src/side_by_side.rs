//! Two MCP servers on standard input and output, measured side by side: they take turns, so that what else the
//! machine does disturbs both alike. Anybody can repeat a comparison with a server that is installed here.

use std::ops::RangeInclusive;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::measure::{milliseconds, quantile, resident};
use crate::stdio::{Called, Server};

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

FIRST and SECOND are commands that start a server on standard input and output.
Both get calls of TOOL with the arguments JSON; the second those of --other-call, if given.";

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
        started.map(|time| format!("{:.1} ms", milliseconds(time))),
    );
    let processors = processors()?;
    let (one, others) = processors
        .split_first()
        .ok_or("this process may run on no processor")?;
    let (all, others) = (processors.join(","), others.join(","));
    // Where client and server have no processor in common, each message wakes the other's. Where they have all in
    // common, it does so or not, as the kernel places them.
    let placed = [
        ("one processor", one, one),
        ("apart", one, &others),
        ("all processors", &all, &all),
    ];
    for (what, client, servers) in placed {
        if servers.is_empty() {
            continue;
        }
        let figures = calls_of(sides, calls, [client, servers])?;
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

fn microseconds(time: Duration) -> String {
    format!("{:.1} µs", time.as_secs_f64() * 1e6)
}

/// The numbers of the processors that this process may run on.
fn processors() -> Outcome<Vec<String>> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let list = list.and_then(|list| numbers(list.trim()));
    list.ok_or_else(|| "/proc/self/status names no processors".to_owned())
}

/// The numbers in a list of numbers and ranges.
fn numbers(list: &str) -> Option<Vec<String>> {
    let mut numbers = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let range: RangeInclusive<u32> = first.parse().ok()?..=last.parse().ok()?;
        numbers.extend(range.map(|number| number.to_string()));
    }
    Some(numbers)
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

/// Calls of two servers on these processors, by a client on those.
fn calls_of(
    sides: [(&str, &Called); 2],
    calls: usize,
    [on_client, on_servers]: [&str; 2],
) -> Outcome<[Figures; 2]> {
    let [(first, _), (second, _)] = sides;
    pin(on_servers)?;
    let mut servers = [Server::start(first)?, Server::start(second)?];
    pin(on_client)?;
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
            rates.push(server.calls_at_once(called, AT_ONCE)?);
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
            resident: resident(server.id()),
        });
        server.end()?;
    }
    let figures: [Figures; 2] = figures.try_into().map_err(|_| "two servers".to_owned())?;
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::numbers;

    #[test]
    fn ranges_of_processors_are_counted_out() {
        let counted = |list| numbers(list).map(|numbers| numbers.join(","));
        assert_eq!(counted("0").as_deref(), Some("0"));
        assert_eq!(counted("2,5-7,9").as_deref(), Some("2,5,6,7,9"));
        assert_eq!(counted("a-b"), None);
    }
}
