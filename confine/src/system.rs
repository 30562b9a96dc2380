//! The files that programs, name resolution and TLS read on known systems: files rather than
//! directories, if possible.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The resolver's configuration, and time zones.
const CONFIGURATION: [&str; 9] = [
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/host.conf",
    "/etc/gai.conf",
    "/etc/services",
    "/etc/protocols",
    "/etc/localtime",
    "/etc/ld.so.cache",
];

/// The system's certificates. Private keys are in other directories.
const CERTIFICATES: [&str; 7] = [
    "/etc/ssl/certs",
    "/etc/ssl/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/pki/ca-trust/extracted/pem",
    "/etc/ca-certificates/extracted",
    "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates",
];

/// The loaders of dynamically linked programs.
pub(super) const LOADERS: [&str; 6] = [
    "/lib64/ld-linux-x86-64.so.2",
    "/lib/ld-linux-aarch64.so.1",
    "/lib/ld-linux-riscv64-lp64d.so.1",
    "/lib/ld-musl-x86_64.so.1",
    "/lib/ld-musl-aarch64.so.1",
    "/lib/ld-musl-riscv64.so.1",
];

/// Libraries, and the system files that the C library reads.
pub(super) const LIBRARIES: [&str; 9] = [
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/usr/share/zoneinfo",
    "/usr/lib/locale",
];

/// All files of name resolution and TLS, and the directory of the C library's name service
/// plug-ins.
pub(super) fn files() -> Vec<PathBuf> {
    let named = CONFIGURATION.iter().chain(&CERTIFICATES);
    named.map(PathBuf::from).chain(library_folder()).collect()
}

/// The directory of this process's C library, which also has its plug-ins.
fn library_folder() -> Option<PathBuf> {
    let library = mapped_code().into_iter().find(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("libc.") || name.starts_with("libc-"))
    })?;
    library.parent().map(Path::to_owned)
}

/// The files of the running program and its libraries.
pub(super) fn mapped_code() -> BTreeSet<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    maps.lines()
        .filter_map(|line| {
            // The fields are: address, rights, offset, device, inode, path.
            let mut words = line.splitn(6, ' ');
            let rights = words.nth(1)?;
            let path = words.last()?.trim_start();
            (rights.contains('x') && path.starts_with('/')).then(|| PathBuf::from(path))
        })
        .collect()
}

/// The open descriptors of this process's `/proc/self/pagemap`, through which an engine finds and
/// resets written pages.
pub(super) fn open_page_maps() -> Vec<i32> {
    let open = std::fs::read_dir("/proc/self/fd").into_iter().flatten();
    open.flatten()
        .filter(|entry| {
            let file = std::fs::read_link(entry.path());
            file.is_ok_and(|file| file.starts_with("/proc") && file.ends_with("pagemap"))
        })
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}
