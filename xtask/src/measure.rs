//! What is measured of other processes: times, and memory.

use std::time::Duration;

/// The time that so many of a hundred do not exceed.
pub(crate) fn quantile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    let at = times.len().saturating_sub(1) * percent / 100;
    times.get(at).copied().unwrap_or_default()
}

pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Megabytes of a process and of those that it started, resident now.
pub(crate) fn resident(process: u32) -> f64 {
    megabytes(process, "VmRSS:")
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
