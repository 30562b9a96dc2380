//! Returns freed memory to the kernel.
//!
//! The C library's allocator keeps freed memory, so a process stays as large as its peak. An
//! embedder that wants the memory returned calls [`release`], or polls a [`Watch`].
//!
//! ```no_run
//! use toolward_host::memory::{self, Watch};
//!
//! // Before the process confines itself.
//! let mut watch = Watch::new()?;
//! memory::release();
//! std::thread::spawn(move || {
//!     loop {
//!         std::thread::sleep(Watch::PAUSE);
//!         watch.look();
//!     }
//! });
//! # Ok::<(), std::io::Error>(())
//! ```

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
pub use toolward_sandbox::engine::finds_written_pages;

/// Returns all free memory of the allocator to the kernel. The time grows with the memory in use.
/// Threads that allocate in the meantime may wait.
///
/// Does nothing if the C library is not the GNU one.
pub fn release() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[expect(unsafe_code, reason = "malloc_trim(3) has no safe wrapper")]
    // SAFETY: takes a number and touches only free memory, under the allocator's own locks. Its
    // result only shows whether memory was returned.
    let _ = unsafe { libc::malloc_trim(0) };
}

/// Turns the allocator's fast bins off. The allocator would merge their free chunks each time that
/// a large chunk is freed, and calls free large chunks. Call it before the first thread starts.
///
/// Does nothing if the C library is not the GNU one.
pub fn turn_fast_bins_off() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[expect(unsafe_code, reason = "mallopt(3) has no safe wrapper")]
    // SAFETY: takes numbers, and changes a setting under the allocator's own lock.
    let _ = unsafe { libc::mallopt(libc::M_MXFAST, 0) };
}

/// Bytes of memory that this process can have: the machine's, or the limit of its control
/// group if that is less. Read once, at the first call.
pub fn machine_bytes() -> u64 {
    static BYTES: OnceLock<u64> = OnceLock::new();
    *BYTES.get_or_init(|| physical_bytes().min(control_group_bytes().unwrap_or(u64::MAX)))
}

fn physical_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    kibibytes(&text, "MemTotal:").map_or(u64::MAX, |kibibytes| kibibytes.saturating_mul(1024))
}

/// A number of `/proc/meminfo` or `/proc/self/status`.
fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The lowest limit of the process's control group and of its parent groups.
fn control_group_bytes() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let limits = groups.lines().filter_map(|line| {
        // `0::/path` in version 2, `7:memory:/path` in version 1.
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            "memory" => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => return None,
        };
        let limits = Path::new(path).ancestors().filter_map(|group| {
            let group = group.strip_prefix("/").unwrap_or(group);
            let text = std::fs::read_to_string(Path::new(root).join(group).join(file)).ok()?;
            text.trim().parse::<u64>().ok()
        });
        limits.min()
    });
    limits.min()
}

/// Watches the process's resident memory. When it is far above its minimum, returns free memory to
/// the kernel.
///
/// Resident memory does not show how much of it is free. So while the process is large, each look
/// tries to return memory, unless the last attempt took more than a small share of the time since
/// then.
#[derive(Debug)]
pub struct Watch {
    /// Kept open: a confined process can't open this file.
    status: File,
    /// The minimum of resident memory.
    least: u64,
    /// The earliest time of the next attempt.
    again: Option<Instant>,
}

impl Watch {
    /// The time between two [looks](Self::look).
    pub const PAUSE: Duration = Duration::from_millis(500);

    /// Resident memory up to this many bytes above the minimum is not worth an attempt.
    const SLACK: u64 = 16 << 20;

    /// Attempts take at most a 40th of one core's time.
    const SHARE: u32 = 40;

    /// Starts to watch this process.
    ///
    /// # Errors
    ///
    /// If `/proc/self/status` can't be read.
    pub fn new() -> io::Result<Self> {
        // Before confinement: the first use of the clock calls `prctl(PR_GET_AUXV)`, which is
        // forbidden in a confined process.
        processor_time();
        let mut watch = Self {
            status: File::open("/proc/self/status")?,
            least: u64::MAX,
            again: None,
        };
        watch.least = watch.resident().ok_or(io::ErrorKind::InvalidData)?;
        Ok(watch)
    }

    /// Checks resident memory, and returns free memory if resident memory is large. Returns whether
    /// it tried.
    pub fn look(&mut self) -> bool {
        let Some(resident) = self.resident() else {
            return false;
        };
        self.least = self.least.min(resident);
        let now = Instant::now();
        if resident <= self.least.saturating_add(Self::SLACK)
            || self.again.is_some_and(|again| now < again)
        {
            return false;
        }
        let before = processor_time();
        release();
        let spent = processor_time().saturating_sub(before);
        self.again = now.checked_add(spent.saturating_mul(Self::SHARE));
        if let Some(left) = self.resident() {
            self.least = self.least.min(left);
        }
        true
    }

    fn resident(&self) -> Option<u64> {
        let mut text = [0; 4096];
        let length = self.status.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(text.get(..length)?).ok()?;
        Some(kibibytes(text, "VmRSS:")?.saturating_mul(1024))
    }
}

/// Processor time of this thread. Not wall-clock time, which also grows while the
/// machine is busy with something else.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_resident_is_read_from_the_kernel() {
        let watch = Watch::new().expect("a process that may read its own status");
        let resident = watch.resident().expect("a number");
        assert!(resident > 1 << 20, "{resident}");
    }

    #[test]
    fn memory_in_use_is_tried_again_once_the_last_attempt_is_a_small_part_of_the_time() {
        let mut watch = Watch::new().expect("a process that may read its own status");
        watch.least = 0;
        let begun = Instant::now();
        assert!(watch.look(), "tried");
        let again = watch.again.expect("a time");
        assert!(again > begun, "not at once");
        watch.again = Some(begun + Duration::from_secs(3600));
        assert!(!watch.look(), "too early");
        watch.again = Some(begun);
        assert!(watch.look(), "tried again, though nothing has changed");
    }

    #[test]
    fn a_process_near_its_least_is_left_alone() {
        let mut watch = Watch::new().expect("a process that may read its own status");
        watch.least = watch.resident().expect("a number");
        assert!(!watch.look());
    }
}
