//! A process measured by the kernel: what it has resident now, and the most since
//! it was last asked.

use std::future::Future;
use std::time::Duration;

use toolward_host::memory::Watch;

use crate::child;

pub(super) const MIB: u64 = 1 << 20;

/// Runs `measured` in a process of its own, and shows what it printed. `test` is its
/// path within the binary.
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
    // Shown with `--nocapture`.
    print!("{}", printed.unwrap_or_default());
}

/// What `serve` does about memory that was freed, in this process.
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

/// Bytes that are resident once all that is free was given back.
pub(super) fn idle() -> u64 {
    toolward_host::memory::release();
    resident()
}

/// The most bytes that were resident while `work` ran: by the kernel's own mark,
/// which misses nothing.
pub(super) async fn peak<T>(work: impl Future<Output = T>) -> (u64, T) {
    // Resets the mark (proc(5)).
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let result = work.await;
    (status("VmHWM:"), result)
}

/// What is resident after a while; at once if that is no more than `enough`.
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
