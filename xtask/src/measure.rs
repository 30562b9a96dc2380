//! What is measured of other processes: times, and memory.

use std::time::{Duration, Instant};

use crate::Outcome;

/// The time that so many of a hundred do not exceed.
pub(crate) fn quantile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    let at = times.len().saturating_sub(1) * percent / 100;
    times.get(at).copied().unwrap_or_default()
}

/// The median of as many runs as fit into `budget`, at least one and at most `runs`. One more goes before them,
/// where it took no more than half of that.
pub(crate) fn median(
    runs: usize,
    budget: Duration,
    mut run: impl FnMut() -> Outcome<Duration>,
) -> Outcome<Duration> {
    let begun = Instant::now();
    let mut times = vec![run()?];
    if begun.elapsed() < budget / 2 {
        times.clear();
    }
    while times.is_empty() || times.len() < runs && begun.elapsed() < budget {
        times.push(run()?);
    }
    Ok(quantile(&mut times, 50))
}

pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Megabytes of a process and of those that it started, resident now.
pub(crate) fn resident(process: u32) -> f64 {
    megabytes(process, "VmRSS:")
}

/// The most that they had resident, each by itself.
pub(crate) fn peak(process: u32) -> f64 {
    megabytes(process, "VmHWM:")
}

/// What the line of `/proc/PROCESS/status` says that begins so.
fn megabytes(process: u32, line: &str) -> f64 {
    let folder = format!("/proc/{process}");
    let status = std::fs::read_to_string(format!("{folder}/status")).unwrap_or_default();
    let own = status.lines().find_map(|found| {
        let kilobytes = found.strip_prefix(line)?.strip_suffix("kB")?;
        kilobytes.trim().parse::<u32>().ok()
    });
    let children = std::fs::read_to_string(format!("{folder}/task/{process}/children"));
    let children = children.unwrap_or_default();
    let children = children
        .split_whitespace()
        .filter_map(|child| child.parse().ok());
    let own = f64::from(own.unwrap_or(0)) * 1024.0 / 1e6;
    own + children.map(|child| megabytes(child, line)).sum::<f64>()
}
