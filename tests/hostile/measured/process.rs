//! A process measured by the kernel: its resident memory now, and the peak since the last reset.

use std::future::Future;
use std::time::Duration;

use toolward_host::memory::Watch;

use crate::child;

pub(super) const MIB: u64 = 1 << 20;

/// Runs `measured` in a separate process, and prints the output of that process. `test` is the
/// test's path within the binary.
pub(super) fn alone<F: Future<Output = ()>>(test: &str, measured: impl FnOnce() -> F) {
    let printed = child::run(test, || {
        give_back_as_a_server_does();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(measured());
    });
    // Visible with `--nocapture`.
    print!("{}", printed.unwrap_or_default());
}

/// Frees memory in this process in the same way as `serve`.
fn give_back_as_a_server_does() {
    let mut watch = Watch::new().unwrap();
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Watch::PAUSE);
            watch.look();
        }
    });
}

fn status(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes << 10
}

/// Bytes that are resident now.
pub(super) fn resident() -> u64 {
    status("VmRSS:")
}

/// Returns the resident bytes after all free memory was returned.
pub(super) fn idle() -> u64 {
    toolward_host::memory::release();
    resident()
}

/// Returns the result of `work`, and the kernel's mark of the most resident bytes during it.
pub(super) async fn peak<T>(work: impl Future<Output = T>) -> (u64, T) {
    // Resets the mark (proc(5)).
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let result = work.await;
    (status("VmHWM:"), result)
}

/// Returns the resident bytes after a while, or at once if they are at most `enough`.
pub(super) async fn settled(enough: u64, longest: Duration) -> u64 {
    let until = tokio::time::Instant::now() + longest;
    loop {
        let now = resident();
        if now <= enough || tokio::time::Instant::now() >= until {
            return now;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
