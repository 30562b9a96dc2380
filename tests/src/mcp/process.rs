//! The resources of a process, as the kernel counts them.

use std::fs;

/// The resources of a process at one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Standing {
    /// Memory that is not of a file, in KiB. Pages of the program come back when bundles are verified
    /// again.
    pub(super) memory: u64,
    pub(super) threads: usize,
    /// Open files.
    pub(super) files: usize,
}

/// Measures a process.
pub(super) fn standing(process: u32) -> Standing {
    let count = |folder: &str| {
        let entries = fs::read_dir(format!("/proc/{process}/{folder}")).unwrap();
        entries.count()
    };
    Standing {
        memory: memory(process, "RssAnon:"),
        threads: count("task"),
        files: count("fd"),
    }
}

/// Returns one of the kernel's figures about a process's memory, in KiB.
pub(super) fn memory(process: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let figure = line.unwrap().trim().trim_end_matches(" kB");
    figure.parse().unwrap()
}
