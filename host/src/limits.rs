//! What one call may spend: defaults, the operator's maxima, and what a
//! contract or driver asks for. Only numbers; they are enforced where the
//! resource is spent ([`crate::sandbox`], [`crate::dispatch`]).

use std::time::Duration;

use toolward_contract::driver::DriverLimits;

/// One limit: what a call gets when nobody asks, and the most it can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit<T> {
    /// What a call gets when neither contract nor driver asks for a value.
    pub default: T,
    /// The most that a contract or driver gets, whatever it asks for.
    pub maximum: T,
}

impl<T: Ord + Copy> Limit<T> {
    /// A limit whose default is also its maximum.
    pub const fn fixed(value: T) -> Self {
        Self {
            default: value,
            maximum: value,
        }
    }

    /// `min(request or default, maximum)`.
    pub fn apply(&self, request: Option<T>) -> T {
        request.unwrap_or(self.default).min(self.maximum)
    }
}

/// The operator's limits on every call of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Fuel of all attempts of a call, in wasmtime's units: about one per
    /// instruction.
    /// Stops endless loops even where the clock does not move.
    pub fuel: Limit<u64>,
    /// The most wall clock that a contract gets, from dispatch to the terminal
    /// result, retries included. A contract always asks: for 30 s where it gives
    /// no `timeout_ms` (AIP-14).
    pub timeout: Duration,
    /// Bytes of all linear memories of a call together.
    pub memory_bytes: Limit<u64>,
    /// Bytes of structured output and content blocks together.
    pub output_bytes: Limit<u64>,
    /// Bytes of captured standard output, and as many of standard error.
    pub stdio_bytes: u64,
    /// Records that a driver may log in one call.
    pub log_records: u32,
    /// Bytes of messages and fields of all log records of a call together.
    pub log_bytes: u64,
    /// Host resources (streams, pollables, …) that a guest holds at once.
    pub resources: u32,
    /// Elements of all tables of a call together.
    pub table_elements: u64,
    /// Bytes of the input text, counted before it is parsed.
    pub input_bytes: usize,
    /// Nesting of arrays and objects in input, context and output.
    pub json_depth: usize,
    /// Values (scalars, arrays, objects) in input, context and output each.
    /// Small values take some fifty times the memory of their text.
    pub json_values: usize,
    /// Bytes of a driver component, counted before it is compiled.
    pub component_bytes: usize,
    /// Calls that run at once; each holds one slot of the pool.
    pub concurrency: u32,
    /// Calls that wait for a slot; one more is `rate_limited`.
    pub queue: u32,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: u64 = 1 << 20;
        Self {
            fuel: Limit {
                default: 10_000_000_000,
                maximum: 100_000_000_000,
            },
            timeout: Duration::from_secs(300),
            memory_bytes: Limit {
                default: 64 * MIB,
                maximum: 256 * MIB,
            },
            output_bytes: Limit {
                default: 4 * MIB,
                maximum: 16 * MIB,
            },
            stdio_bytes: 64 << 10,
            log_records: 1000,
            log_bytes: 256 << 10,
            resources: 1024,
            table_elements: 100_000,
            input_bytes: 1 << 20,
            json_depth: 64,
            json_values: 250_000,
            component_bytes: 64 << 20,
            concurrency: 128,
            queue: 1024,
        }
    }
}

/// The limits of one call: those of [`Limits`] after contract and driver have
/// asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallLimits {
    pub(crate) fuel: u64,
    pub(crate) timeout: Duration,
    pub(crate) memory_bytes: u64,
    pub(crate) output_bytes: u64,
    pub(crate) stdio_bytes: u64,
    pub(crate) log_records: u32,
    pub(crate) log_bytes: u64,
    pub(crate) resources: u32,
    pub(crate) table_elements: u64,
    pub(crate) json: toolward_contract::json::Limits,
}

impl CallLimits {
    /// The limits of calls of one driver, whose contract allows `timeout`.
    pub(crate) fn new(limits: &Limits, timeout: Duration, driver: &DriverLimits) -> Self {
        let output_bytes = limits.output_bytes.apply(driver.output_bytes);
        Self {
            fuel: limits.fuel.apply(driver.fuel),
            timeout: timeout.min(limits.timeout),
            memory_bytes: limits
                .memory_bytes
                .apply(driver.memory_mib.map(|mib| mib.saturating_mul(1 << 20))),
            output_bytes,
            stdio_bytes: limits.stdio_bytes,
            log_records: limits.log_records,
            log_bytes: limits.log_bytes,
            resources: limits.resources,
            table_elements: limits.table_elements,
            json: toolward_contract::json::Limits {
                bytes: usize::try_from(output_bytes).unwrap_or(usize::MAX),
                depth: limits.json_depth,
                values: limits.json_values,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_capped_by_the_maximum_and_may_be_lower() {
        let limit = Limit {
            default: 5,
            maximum: 10,
        };
        assert_eq!(limit.apply(None), 5);
        assert_eq!(limit.apply(Some(3)), 3);
        assert_eq!(limit.apply(Some(11)), 10);
    }

    #[test]
    fn a_default_above_the_maximum_is_capped_too() {
        assert_eq!(
            Limit {
                default: 20,
                maximum: 10
            }
            .apply(None),
            10
        );
    }
}
