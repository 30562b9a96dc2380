//! What one call may spend, once contract and driver have asked. The table of all limits
//! is [`toolward_policy::Limits`]; they are enforced where the resource is spent
//! ([`crate::sandbox`], [`crate::pipeline::dispatch`]).

use std::time::Duration;

use toolward_contract::driver::DriverLimits;
use toolward_policy::Limits;

/// The limits of one call: [`Limits`] after contract and driver have
/// asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallLimits {
    pub(crate) fuel: u64,
    pub(crate) timeout: Duration,
    pub(crate) memory_bytes: u64,
    pub(crate) output_bytes: u64,
    pub(crate) stdio_bytes: u64,
    pub(crate) log_records: u64,
    pub(crate) log_bytes: u64,
    pub(crate) resources: u64,
    pub(crate) table_elements: u64,
    pub(crate) json: toolward_contract::json::Limits,
    pub(crate) http_requests: u64,
    pub(crate) http_requests_total: u64,
    pub(crate) http_body_bytes: u64,
    pub(crate) http_timeout: Duration,
    pub(crate) egress_bytes: u64,
    pub(crate) workspace_bytes: u64,
    pub(crate) workspace_files: u64,
    pub(crate) open_files: u64,
    pub(crate) directory_entries: u64,
    pub(crate) bucket_bytes: u64,
    pub(crate) bucket_keys: u64,
    pub(crate) nested_calls: u64,
}

impl CallLimits {
    /// The same, with no more memory than the caller of the call has left. A body that the
    /// host reads whole is in memory twice.
    pub(crate) fn within(&self, memory_left: Option<u64>, whole_bodies: bool) -> Self {
        let mut limits = self.clone();
        if let Some(left) = memory_left {
            limits.memory_bytes = limits.memory_bytes.min(left);
        }
        if whole_bodies {
            limits.http_body_bytes = limits.http_body_bytes.min(limits.memory_bytes / 2);
        }
        limits
    }

    /// The limits of calls of one driver, whose contract allows `timeout`.
    pub(crate) fn new(limits: &Limits, timeout: Duration, driver: &DriverLimits) -> Self {
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
