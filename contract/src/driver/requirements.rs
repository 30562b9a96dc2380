//! The needs of a driver and the cost of its calls: platform, `limits`, secrets (`auth`),
//! `cost_override`. This module performs no login and counts no costs. It accepts two vocabularies
//! for operating systems and processors: AIP-30's (`darwin`, `x64`) and Rust's (`macos`, `x86_64`).

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::capability::{CapabilitySet, Class};
use crate::codes;
use crate::json::MAX_SAFE_INTEGER;
use crate::shared::{self, scopes};
use crate::source::{FieldReader, MappingReader};
use crate::terms::CostClass;

/// What a driver of a kind does on a host, from least to most.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Work {
    Nothing,
    Requests,
    Code,
}

/// Declares the limits that a driver may request. A row has the limit's meaning, its key below
/// `limits`, and the least `Work` of a driver for which the limit has an effect.
macro_rules! driver_limits {
    ($($(#[$doc:meta])+ $name:ident: $work:ident;)+) => {
        /// The limits that a driver requests, each for one call and at least 1. `None` means the
        /// host's default.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct DriverLimits {
            $($(#[$doc])+ pub $name: Option<u64>,)+
        }

        impl DriverLimits {
            /// All limits, with their names.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, Option<u64>)> {
                [$((stringify!($name), self.$name)),+].into_iter()
            }

            /// The field of each limit, and the least work of a driver for which the limit has an
            /// effect.
            pub(super) const FIELDS: &[(&str, Work)] =
                &[$((concat!("limits.", stringify!($name)), Work::$work)),+];

            pub(super) fn read(fields: &mut MappingReader<'_>) -> Self {
                fields.within("limits", |inner| Self {
                    $($name: inner.integer(stringify!($name), 1..=MAX_SAFE_INTEGER),)+
                })
            }
        }
    };
}

driver_limits! {
    /// Fuel.
    fuel: Code;
    /// Memory of all linear memories together, in MiB.
    memory_mib: Nothing;
    /// Size of the result, in bytes.
    output_bytes: Nothing;
    /// Captured standard output, and as much standard error, in bytes.
    stdio_bytes: Code;
    /// Log records.
    log_records: Code;
    /// Streams, pollables and other handles at once.
    resources: Code;
    /// HTTP requests at once.
    http_requests: Requests;
    /// Size of one HTTP body, of a request or a response, in bytes.
    http_body_bytes: Requests;
    /// Time of one HTTP request, in milliseconds.
    http_timeout_ms: Requests;
    /// Bytes written below its workspaces.
    workspace_bytes: Code;
    /// Files made below its workspaces.
    workspace_files: Code;
    /// Calls of other tools.
    nested_calls: Code;
}

/// The machines on which a driver can run. Empty lists and `None` mean any.
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
    pub fn runs_on_os(&self, os: &str) -> bool {
        includes(&self.os, os, rust_os)
    }

    /// Whether it runs on this processor, named as in [`std::env::consts::ARCH`].
    pub fn runs_on_arch(&self, arch: &str) -> bool {
        includes(&self.arch, arch, rust_arch)
    }
}

fn includes(list: &[String], own: &str, to_rust: fn(&str) -> &str) -> bool {
    list.is_empty() || list.iter().any(|name| to_rust(name) == to_rust(own))
}

/// Rust's name for an operating system, from the name of AIP-30 or Node.js.
fn rust_os(name: &str) -> &str {
    match name {
        "darwin" => "macos",
        "win32" => "windows",
        other => other,
    }
}

/// Rust's name for a processor, from the name of AIP-30, Node.js or Docker.
fn rust_arch(name: &str) -> &str {
    match name {
        "x64" | "amd64" => "x86_64",
        "arm64" => "aarch64",
        "ia32" | "i386" | "i686" => "x86",
        other => other,
    }
}

/// `cost_override` of an entry or of a driver. `None` in an entry means the driver's value. `None`
/// in a driver means the contract's class, and that no cost or currency is stated.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CostOverride {
    /// Cost of a call, finite and not negative. AIP-30 counts in thousandths of a cent.
    pub cost_units_per_call: Option<f64>,
    /// Replaces the contract's class.
    pub cost_class: Option<CostClass>,
    /// Three capital letters, as in ISO 4217.
    pub currency: Option<String>,
}

/// The cost of calling a contract through a driver, as stated by their publishers.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Cost {
    /// Cost of a call, finite and not negative; `None` if it is not stated.
    pub units_per_call: Option<f64>,
    /// The currency, if one is stated. Amounts are not converted.
    pub currency: Option<String>,
    /// The class.
    pub class: CostClass,
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.units_per_call {
            Some(units) => write!(f, "{units}")?,
            None => f.write_str("unpriced")?,
        }
        if let (Some(_), Some(currency)) = (self.units_per_call, &self.currency) {
            write!(f, " {currency}")?;
        }
        match self.class {
            CostClass::Trivial => Ok(()),
            class => write!(f, ", {class}"),
        }
    }
}

/// Reads `cost_override` of a driver or of an entry.
pub(super) fn read_cost(fields: &mut MappingReader<'_>) -> CostOverride {
    let currency = |field: &FieldReader<'_>| {
        field.text_as(&codes::WRONG_VALUE, "three capital letters", |found| {
            let fits = found.len() == 3 && found.chars().all(|c| c.is_ascii_uppercase());
            fits.then(|| found.to_owned())
        })
    };
    fields.within("cost_override", |inner| CostOverride {
        cost_units_per_call: inner.read("cost_units_per_call", |field| field.amount()),
        cost_class: shared::cost_class(inner),
        currency: inner.read("currency", currency),
    })
}

/// Reads `auth`: the field as written, and the secrets that `auth.state.env` names. `sent` has the
/// secrets in the requests of a declarative driver; it is `None` for other kinds.
pub(super) fn read_auth(
    fields: &mut MappingReader<'_>,
    sent: Option<&CapabilitySet>,
) -> (Option<Map<String, Value>>, CapabilitySet) {
    let auth = fields.read("auth", |field| {
        let secrets = field.whole(|inner| {
            // `ref`, the path of a SECRETS.md for people, has no effect here.
            inner.take("ref").map(|reference| reference.text());
            // These fields describe a login flow that this host does not have.
            for key in ["login", "refresh", "expiry"] {
                inner.take(key);
            }
            Some(inner.within("state", |state| stored_secrets(state, sent)))
        });
        Some((Some(field.mapping()), secrets?))
    });
    auth.unwrap_or_default()
}

/// Reads `auth.state`. Its variables become secrets of the same names; its files are ignored.
fn stored_secrets(state: &mut MappingReader<'_>, sent: Option<&CapabilitySet>) -> CapabilitySet {
    let env = state.take("env");
    let secrets = env.as_ref().map(|field| scopes(field, &Class::Secret));
    state.strings("paths");
    let secrets = secrets.into_iter().flatten();
    let secrets: CapabilitySet = secrets.filter(|secret| !secret.is_wildcard()).collect();
    if let (Some(sent), Some(field)) = (sent, &env) {
        for unused in secrets.iter().filter(|secret| !sent.covers_one(secret)) {
            let name = unused.scope();
            let message = format!(
                "expected requests that send every secret of `{}`, found none that sends {name}",
                field.name
            );
            let hint = format!("write `${{secrets.{name}}}` where the service expects it");
            field.note_with_hint(&codes::HTTP_SECRET_UNUSED, message, hint);
        }
    }
    secrets
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
