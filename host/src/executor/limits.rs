//! The errors of a call that exceeded a limit.

use std::time::Duration;

use serde_json::json;
use toolward_policy::LimitName;
use toolward_sandbox::exceeded::Exceeded;

use crate::api::result::{CallError, ErrorClass, ErrorCode, Hit};

/// The retry-after of a call that ended for the memory of all.
const NO_MEMORY_RETRY_AFTER: Duration = Duration::from_secs(1);

pub(crate) fn over(exceeded: Exceeded) -> CallError {
    let hit = Hit::from(exceeded);
    let limit = exceeded.limit;
    let (code, raise) = match limit {
        LimitName::Output => return CallError::too_large(hit.used, hit.allowed),
        LimitName::MemoryTotal => return no_memory(hit),
        LimitName::Memory if exceeded.by_host => return held_too_much(hit),
        LimitName::Memory => (ErrorCode::MEMORY_EXCEEDED, RAISE_MEMORY.to_owned()),
        _ if limit.own().is_none() => (
            ErrorCode::LIMIT_EXCEEDED,
            format!("raise the host's limit `{limit}`"),
        ),
        _ => {
            let does = match limit {
                LimitName::Stack => "recurses too deeply",
                LimitName::HostCall => "hands the host too much at once",
                LimitName::SecretStores | LimitName::SecretStoreBytes => {
                    "stores too many secrets in one call"
                }
                _ => "does too much with its buckets in one call",
            };
            (
                ErrorCode::LIMIT_EXCEEDED,
                format!("the driver {does}; report this to its publisher"),
            )
        }
    };
    CallError::new(
        code,
        ErrorClass::ExecutionFailed,
        format!(
            "the driver asked for {} {}, {} are allowed (limit `{}`)",
            hit.used,
            hit.limit.unit(),
            hit.allowed,
            hit.limit
        ),
    )
    .with_limit(hit)
    .with_hint(raise)
}

/// What to do about too little memory.
const RAISE_MEMORY: &str = "ask for less, or raise `limits.memory_mib` in DRIVER.md and the \
                            host's limit `memory_bytes`";

/// All calls together need more memory than there is, and this one ends for the others.
fn no_memory(hit: Hit) -> CallError {
    CallError::new(
        ErrorCode::MEMORY_EXCEEDED,
        ErrorClass::ExecutionFailed,
        format!(
            "all calls together need {} bytes of memory, {} are allowed (limit `memory_total`); this call \
             grew last of those that hold most",
            hit.used, hit.allowed
        ),
    )
    .with_limit(hit)
    .with_cause(json!("memory_total"))
    .with_hint("try again later, make fewer calls at once, or raise the host's limit `memory_total`")
    .with_retry_after(NO_MEMORY_RETRY_AFTER)
}

/// The guest's memory and what the host holds for it are one limit.
fn held_too_much(hit: Hit) -> CallError {
    CallError::new(
        ErrorCode::MEMORY_EXCEEDED,
        ErrorClass::ExecutionFailed,
        format!(
            "the host would hold too much for the driver (handles, header fields, bodies, \
             records): {} bytes with the driver's own memory, {} are allowed (limit `memory_bytes`)",
            hit.used, hit.allowed
        ),
    )
    .with_limit(hit)
    .with_hint(RAISE_MEMORY)
}
