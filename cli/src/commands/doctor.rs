//! `doctor`: whether this machine and installation are fit for the work.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use toolward_author::build;
use toolward_bundle::text::visible_line;

use super::build::guest_cargo;
use crate::environment::Environment;
use crate::failure::{Exit, Failure};
use crate::flags::Flagged;
use crate::output::Output;
use toolward_operator::config::PolicyFiles;
use toolward_operator::doctor::{self, Check, State};
use toolward_operator::installed::StoreLocation;
use toolward_operator::trust::Trust;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The Cargo of the guest toolchain [default: TOOLWARD_GUEST_CARGO, else
    /// cargo]
    #[arg(long, value_name = "PROGRAM")]
    guest_cargo: Option<std::ffi::OsString>,

    /// Check this configuration [default: toolward.toml in the user's
    /// configuration directory]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(flatten)]
    policies: Flagged<PolicyFiles>,

    #[command(flatten)]
    store: Flagged<StoreLocation>,
}

pub(crate) fn run(
    arguments: &Arguments,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let trust = Trust::of_config(arguments.config.clone());
    let mut checks = vec![
        Check::new("version", State::Ok, version()),
        doctor::engine(),
        memory_reset(),
        doctor::confinement(),
        doctor::system_calls(&trust, environment),
        doctor::cache(environment),
        doctor::configuration(arguments.config.as_deref(), environment),
        doctor::publishers(&trust, environment),
        guest_toolchain(arguments, environment),
    ];
    checks.extend(doctor::installed(
        &arguments.store,
        &trust,
        environment,
        output,
    ));
    checks.extend(doctor::policy(&trust, &arguments.policies, environment));
    let failed = checks.iter().any(|check| check.state == State::Error);
    if output.json() {
        output.value(&json!({ "ok": !failed, "checks": checks }))?;
    } else {
        for check in &checks {
            let state = match check.state {
                State::Ok => "ok     ",
                State::Note => "note   ",
                State::Warning => "warning",
                State::Error => "ERROR  ",
            };
            output.line(format!(
                "{state}  {:<15}  {}",
                check.name,
                visible_line(&check.message, 1000)
            ))?;
            if let Some(hint) = &check.hint {
                output.line(format!("         hint: {}", visible_line(hint, 1000)))?;
            }
        }
    }
    Ok(if failed { Exit::Failed } else { Exit::Fine })
}

fn version() -> String {
    format!(
        "toolward {} on {} {}",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH
    )
}

/// Whether the kernel can say which pages of a memory were written.
fn memory_reset() -> Check {
    if wasmtime::PoolingAllocationConfig::is_pagemap_scan_available() {
        return Check::new(
            "memory-reset",
            State::Ok,
            "the kernel has PAGEMAP_SCAN: only the pages that a call wrote are reset",
        );
    }
    Check::new(
        "memory-reset",
        State::Note,
        "no PAGEMAP_SCAN: resetting memory between calls is slower",
    )
    .hint("Linux 6.7 or newer has it")
}

/// Only authors need it, so its absence is not an error.
fn guest_toolchain(arguments: &Arguments, environment: &Environment) -> Check {
    const NAME: &str = "guest-toolchain";
    let cargo = guest_cargo(arguments.guest_cargo.as_ref(), environment);
    let shown = cargo.to_string_lossy();
    match build::probe(&cargo) {
        Ok(()) => Check::new(
            NAME,
            State::Ok,
            format!("{shown} makes components for {}", build::TARGET),
        ),
        Err(error) => {
            let check = Check::new(
                NAME,
                State::Note,
                format!("{shown} makes no components, so that `build` won't work: {error}"),
            );
            match error.hint() {
                Some(hint) => check.hint(hint),
                None => check,
            }
        }
    }
}
