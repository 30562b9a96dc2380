//! Where a driver can run: `requires.os`, `requires.arch` and what it needs of the machine. Operating systems and
//! processors have two vocabularies: AIP-30's (`darwin`, `x64`) and Rust's (`macos`, `x86_64`).

/// Where a driver can run. Empty lists and `None`: anywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Platform {
    /// `requires.os`
    pub os: Vec<String>,
    /// `requires.arch`
    pub arch: Vec<String>,
    /// `requires.min_disk_mb`, in megabytes.
    pub min_disk_mb: Option<u64>,
    /// `requires.min_memory_mb`, in megabytes.
    pub min_memory_mb: Option<u64>,
}

impl Platform {
    /// Whether it runs on this operating system, named as in [`std::env::consts::OS`].
    #[must_use]
    pub fn runs_on_os(&self, os: &str) -> bool {
        includes(&self.os, os, rust_os)
    }

    /// Whether it runs on this processor, named as in [`std::env::consts::ARCH`].
    #[must_use]
    pub fn runs_on_arch(&self, arch: &str) -> bool {
        includes(&self.arch, arch, rust_arch)
    }
}

fn includes(list: &[String], own: &str, to_rust: fn(&str) -> &str) -> bool {
    list.is_empty() || list.iter().any(|name| to_rust(name) == to_rust(own))
}

/// Rust's name of an operating system that AIP-30 or Node.js names otherwise.
fn rust_os(name: &str) -> &str {
    match name {
        "darwin" => "macos",
        "win32" => "windows",
        other => other,
    }
}

/// Rust's name of a processor that AIP-30, Node.js or Docker names otherwise.
fn rust_arch(name: &str) -> &str {
    match name {
        "x64" | "amd64" => "x86_64",
        "arm64" => "aarch64",
        "ia32" | "i386" | "i686" => "x86",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn platform(os: &[&str], arch: &[&str]) -> Platform {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Platform {
            os: owned(os),
            arch: owned(arch),
            ..Platform::default()
        }
    }

    #[test]
    fn the_words_of_aip_30_and_of_rust_name_the_same_machine() {
        for (aip, rust) in [
            ("x64", "x86_64"),
            ("arm64", "aarch64"),
            ("x86", "x86"),
            ("arm", "arm"),
        ] {
            assert!(platform(&[], &[aip]).runs_on_arch(rust), "{aip}");
            assert!(platform(&[], &[rust]).runs_on_arch(rust), "{rust}");
            assert!(!platform(&[], &[aip]).runs_on_arch("riscv64"), "{aip}");
        }
        for (aip, rust) in [
            ("darwin", "macos"),
            ("linux", "linux"),
            ("windows", "windows"),
        ] {
            assert!(platform(&[aip], &[]).runs_on_os(rust), "{aip}");
            assert!(platform(&[rust], &[]).runs_on_os(rust), "{rust}");
            assert!(!platform(&[aip], &[]).runs_on_os("freebsd"), "{aip}");
        }
    }

    #[test]
    fn a_driver_that_names_no_platform_runs_everywhere() {
        assert!(Platform::default().runs_on_os("linux"));
        assert!(Platform::default().runs_on_arch("aarch64"));
    }
}
