//! The limits of one call: the host's limits, adjusted by its contract and driver. The table of all
//! limits is [`toolward_policy::Limits`]. Each limit is enforced by the code that uses the
//! resource, in the sandbox or in the host.

use std::task::{Context, Poll};
use std::time::Duration;

use toolward_contract::driver::DriverLimits;
use toolward_policy::Limits;

use crate::exceeded::Exceeded;

/// The limits of one call: the host's [`Limits`], with the values that contract and driver request
/// within them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the table of limits has the meanings")]
pub struct CallLimits {
    pub fuel: u64,
    pub timeout: Duration,
    pub memory_bytes: u64,
    pub output_bytes: u64,
    pub stdio_bytes: u64,
    pub log_records: u64,
    pub log_bytes: u64,
    pub resources: u64,
    pub table_elements: u64,
    pub json: toolward_contract::json::Limits,
    pub http_requests: u64,
    pub http_requests_total: u64,
    pub http_body_bytes: u64,
    pub http_timeout: Duration,
    pub egress_bytes: u64,
    pub workspace_bytes: u64,
    pub workspace_files: u64,
    pub open_files: u64,
    pub directory_entries: u64,
    pub bucket_bytes: u64,
    pub bucket_keys: u64,
    pub nested_calls: u64,
}

impl CallLimits {
    /// These limits, with at most the memory that the calling driver has left (`memory_left`). With
    /// `whole_bodies`, a body has at most half of the memory: the host reads bodies whole, and then
    /// holds them twice.
    pub fn within(&self, memory_left: Option<u64>, whole_bodies: bool) -> Self {
        let mut limits = self.clone();
        if let Some(left) = memory_left {
            limits.memory_bytes = limits.memory_bytes.min(left);
        }
        if whole_bodies {
            limits.http_body_bytes = limits.http_body_bytes.min(limits.memory_bytes / 2);
        }
        limits
    }

    /// The limits for calls of one driver, under a contract that allows `timeout`.
    pub fn new(limits: &Limits, timeout: Duration, driver: &DriverLimits) -> Self {
        let output_bytes = limits.output_bytes.apply(driver.output_bytes);
        Self {
            fuel: limits.fuel.apply(driver.fuel),
            timeout: timeout.min(limits.timeout.maximum),
            memory_bytes: limits
                .memory_bytes
                .apply(driver.memory_mib.map(|mib| mib.saturating_mul(1 << 20))),
            output_bytes,
            stdio_bytes: limits.stdio_bytes.apply(driver.stdio_bytes),
            log_records: limits.log_records.apply(driver.log_records),
            log_bytes: limits.log_bytes,
            resources: limits.resources.apply(driver.resources),
            table_elements: limits.table_elements,
            json: toolward_contract::json::Limits {
                bytes: usize::try_from(output_bytes).unwrap_or(usize::MAX),
                depth: limits.json_depth,
                values: limits.json_values,
            },
            http_requests: limits.http_requests.apply(driver.http_requests),
            http_requests_total: limits.http_requests_total.apply(None),
            http_body_bytes: limits.http_body_bytes.apply(driver.http_body_bytes),
            http_timeout: limits
                .http_timeout
                .apply(driver.http_timeout_ms.map(Duration::from_millis)),
            egress_bytes: limits.egress_bytes.apply(None),
            workspace_bytes: limits.workspace_bytes.apply(driver.workspace_bytes),
            workspace_files: limits.workspace_files.apply(driver.workspace_files),
            open_files: limits.open_files,
            directory_entries: limits.directory_entries,
            bucket_bytes: limits.bucket_bytes,
            bucket_keys: limits.bucket_keys,
            nested_calls: limits.nested_calls.apply(driver.nested_calls),
        }
    }
}

/// The limits of one attempt: the rest of the call's limits.
#[derive(Debug, Clone, Copy)]
pub struct AttemptLimits {
    /// Units of fuel.
    pub fuel: u64,
    /// Units of fuel for all attempts together; used in messages.
    pub fuel_total: u64,
    /// Bytes of memory.
    pub memory_bytes: u64,
}

/// The lease of one call from the memory of all calls.
pub trait MemoryBudget: Send + Sync {
    /// Leases at least `used` bytes for a call whose own limit is `limit` bytes. Returns the leased
    /// bytes.
    ///
    /// # Errors
    /// If no memory is left, and this call must end.
    fn cover(&self, used: u64, limit: u64) -> Result<u64, Exceeded>;

    /// Returns leased memory beyond `used` bytes to all calls. Returns the bytes that are still
    /// leased.
    fn shrink(&self, used: u64) -> u64;

    /// Ready once the call must end to make room for others. Otherwise registers the task to be
    /// woken then.
    fn poll_ended(&self, context: &mut Context<'_>) -> Poll<Exceeded>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_gets_the_fuel_that_it_asks_for_and_no_contract_gets_more_by_its_timeout() {
        const G: u64 = 1_000_000_000;
        let fuel = |asked: Option<u64>| {
            let mut driver = DriverLimits::default();
            driver.fuel = asked;
            let [short, long] = [1, 300].map(|seconds| {
                CallLimits::new(&Limits::default(), Duration::from_secs(seconds), &driver)
            });
            assert_eq!(short.fuel, long.fuel);
            short.fuel
        };
        assert_eq!(fuel(None), 600 * G);
        assert_eq!(fuel(Some(7)), 7);
        assert_eq!(fuel(Some(u64::MAX)), 10_000 * G);
    }
}
