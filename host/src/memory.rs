//! Memory that was freed, given back to the kernel.
//!
//! The C library's allocator keeps what is freed for later, so that after a spike
//! a process looks as large as it was at its largest. Nothing here happens by
//! itself: an embedder calls [`release`], or keeps a [`Watch`], if it wants to.
//!
//! ```no_run
//! use toolward_host::memory::Watch;
//!
//! // Before the process confines itself.
//! let mut watch = Watch::new()?;
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
use std::time::Duration;

/// Gives all free memory of the allocator back to the kernel. Takes the longer the
/// more memory the process uses; threads that allocate meanwhile may wait for it.
///
/// Does nothing where the C library is not the GNU one.
pub fn release() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    trim();
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(
    unsafe_code,
    reason = "malloc_trim(3) has no safe wrapper; it may be called at any time, from any thread"
)]
fn trim() {
    // SAFETY: takes a number and touches nothing but memory that is free, under the
    // allocator's own locks. What it returns says only whether it did anything.
    let _ = unsafe { libc::malloc_trim(0) };
}

/// Watches how much memory the process has resident, and gives free memory back
/// when that is far above the least that it was.
#[derive(Debug)]
pub struct Watch {
    /// Kept open: a confined process may not open it.
    status: File,
    /// The least that was resident.
    least: u64,
    /// What was resident when giving back did not help; no use to try again before
    /// that changes or [`Watch::PATIENCE`] looks are over.
    in_use: Option<(u64, u32)>,
}

impl Watch {
    /// The time between two [looks](Self::look).
    pub const PAUSE: Duration = Duration::from_secs(1);

    /// Bytes above the least that are left alone.
    const FAR: u64 = 16 << 20;

    /// Looks until memory that was in use is looked at again.
    const PATIENCE: u32 = 8;

    /// Bytes by which memory that is in use changes without a reason to look again.
    const SAME: u64 = 4 << 20;

    /// Begins to watch the process that calls this.
    ///
    /// # Errors
    ///
    /// Where `/proc/self/status` can't be read.
    pub fn new() -> io::Result<Self> {
        let mut watch = Self {
            status: File::open("/proc/self/status")?,
            least: u64::MAX,
            in_use: None,
        };
        watch.least = watch.resident().ok_or(io::ErrorKind::InvalidData)?;
        Ok(watch)
    }

    /// Looks, and gives memory back if there is much of it. Says whether it did.
    pub fn look(&mut self) -> bool {
        let Some(resident) = self.resident() else {
            return false;
        };
        self.least = self.least.min(resident);
        if resident <= self.least.saturating_add(Self::FAR) {
            self.in_use = None;
            return false;
        }
        if let Some((then, looks)) = self.in_use
            && looks < Self::PATIENCE
            && resident.abs_diff(then) < Self::SAME
        {
            self.in_use = Some((then, looks.saturating_add(1)));
            return false;
        }
        release();
        let left = self.resident().unwrap_or(resident);
        self.least = self.least.min(left);
        self.in_use = (resident.saturating_sub(left) < Self::SAME).then_some((left, 0));
        true
    }

    fn resident(&self) -> Option<u64> {
        let mut text = [0; 4096];
        let length = self.status.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(text.get(..length)?).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
        Some(kibibytes.saturating_mul(1024))
    }
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
    fn memory_in_use_is_not_tried_at_each_look() {
        let mut watch = Watch::new().expect("a process that may read its own status");
        watch.least = 0;
        let tried = (0..18).filter(|_| watch.look()).count();
        assert!((1..=6).contains(&tried), "{tried}");
    }
}
