//! What one call may spend: defaults, the operator's maxima, and what a
//! contract or driver asks for. Only numbers; they are enforced where the
//! resource is spent ([`crate::sandbox`], [`crate::dispatch`]).

use std::time::Duration;

use toolward_contract::driver::DriverLimits;
use toolward_contract::tool::DEFAULT_TIMEOUT;
use toolward_policy::{LimitSetting, LimitSettings};

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
    /// instruction. Ends loops even where the clock does not move. By default
    /// [`Limits::fuel_for`] the default timeout, which is more than an interpreter
    /// spends in that time: as a rule the clock ends an endless loop.
    pub fuel: Limit<u64>,
    /// The most wall clock that a contract gets, from dispatch to the terminal
    /// result, retries included. A contract always asks: for 30 s where it gives
    /// no `timeout_ms` (AIP-14).
    pub timeout: Duration,
    /// The wall clock that the default of [`Limits::fuel`] is made for, whatever a
    /// contract asks for. Contracts that give no `timeout_ms` get 30 s (AIP-14), and
    /// that is the default here, too.
    pub default_timeout: Duration,
    /// Bytes of all linear memories of a call together, and of what the host holds
    /// for it.
    pub memory_bytes: Limit<u64>,
    /// Bytes of structured output and content blocks together.
    pub output_bytes: Limit<u64>,
    /// Bytes of captured standard output, and as many of standard error.
    pub stdio_bytes: Limit<u64>,
    /// Records that a driver may log in one call.
    pub log_records: Limit<u64>,
    /// Bytes of messages and fields of all log records of a call together.
    pub log_bytes: u64,
    /// Host resources (streams, pollables, …) that a guest holds at once.
    pub resources: Limit<u64>,
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
    /// HTTP requests that a call may have under way at once.
    pub http_requests: Limit<u64>,
    /// HTTP requests of a call altogether, all attempts and nested calls.
    pub http_requests_total: Limit<u64>,
    /// Bytes of one HTTP body, sent or received.
    pub http_body_bytes: Limit<u64>,
    /// The most wall clock of one HTTP exchange; what is left of the deadline
    /// where that is less.
    pub http_timeout: Limit<Duration>,
    /// Bytes that a call may send and receive over HTTP altogether, all attempts
    /// and nested calls.
    pub egress_bytes: Limit<u64>,
    /// Bytes that a call may add to its workspaces.
    pub workspace_bytes: Limit<u64>,
    /// Files and directories that a call may create in its workspaces.
    pub workspace_files: Limit<u64>,
    /// Files, streams of files and directory listings that a call holds open at
    /// once.
    pub open_files: u64,
    /// Directory entries that a call may read.
    pub directory_entries: u64,
    /// Bytes of keys and values of one bucket.
    pub bucket_bytes: u64,
    /// Keys of one bucket.
    pub bucket_keys: u64,
    /// Calls of other tools within one call, at any depth.
    pub nested_calls: Limit<u64>,
    /// How deep calls of tools by tools may nest.
    pub nested_depth: u32,
    /// Calls that run at once; each holds one slot of the pool. As many more may
    /// wait for a tool that they call.
    pub concurrency: u32,
    /// Of these, calls of one tool.
    pub concurrency_per_tool: u32,
    /// Of these, calls of tools of one publisher.
    pub concurrency_per_publisher: u32,
    /// Of these, calls of one principal. As many more of its calls may wait for a
    /// tool that they call.
    pub concurrency_per_principal: u32,
    /// Calls that wait for a slot; one more is `rate_limited`. The same again for
    /// each share.
    pub queue: u32,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: u64 = 1 << 20;
        Self {
            fuel: Limit {
                default: Self::fuel_for(DEFAULT_TIMEOUT),
                maximum: 10_000_000_000_000,
            },
            timeout: Duration::from_secs(300),
            default_timeout: DEFAULT_TIMEOUT,
            memory_bytes: Limit {
                default: 64 * MIB,
                maximum: 256 * MIB,
            },
            output_bytes: Limit {
                default: 4 * MIB,
                maximum: 16 * MIB,
            },
            stdio_bytes: Limit {
                default: 64 << 10,
                maximum: 4 * MIB,
            },
            log_records: Limit {
                default: 1000,
                maximum: 10_000,
            },
            log_bytes: 256 << 10,
            resources: Limit {
                default: 1024,
                maximum: 16_384,
            },
            table_elements: 100_000,
            input_bytes: 1 << 20,
            json_depth: 64,
            json_values: 250_000,
            component_bytes: 64 << 20,
            http_requests: Limit {
                default: 16,
                maximum: 64,
            },
            http_requests_total: Limit {
                default: 256,
                maximum: 4096,
            },
            http_body_bytes: Limit {
                default: 16 * MIB,
                maximum: 64 * MIB,
            },
            http_timeout: Limit {
                default: Duration::from_secs(60),
                maximum: Duration::from_secs(300),
            },
            egress_bytes: Limit {
                default: 64 * MIB,
                maximum: 256 * MIB,
            },
            workspace_bytes: Limit {
                default: 16 * MIB,
                maximum: 1024 * MIB,
            },
            workspace_files: Limit {
                default: 256,
                maximum: 16_384,
            },
            open_files: 64,
            directory_entries: 100_000,
            bucket_bytes: 16 * MIB,
            bucket_keys: 10_000,
            nested_calls: Limit {
                default: 64,
                maximum: 64,
            },
            nested_depth: 8,
            concurrency: 128,
            concurrency_per_tool: 96,
            concurrency_per_publisher: 96,
            concurrency_per_principal: 96,
            queue: 1024,
        }
    }
}

/// Fuel for each second of the default timeout. An interpreter burns about 16 G in
/// a second on a fast machine.
const FUEL_PER_SECOND: u64 = 20_000_000_000;

impl Limits {
    /// More fuel than an interpreter spends in this time: 20 G for each second.
    #[must_use]
    pub fn fuel_for(timeout: Duration) -> u64 {
        let fuel = timeout.as_millis() * u128::from(FUEL_PER_SECOND / 1000);
        u64::try_from(fuel).unwrap_or(u64::MAX)
    }

    /// These limits, with what a policy says on top of them. Where it says something
    /// about the timeout and nothing about fuel, fuel's default follows.
    #[must_use]
    pub fn with(mut self, settings: &LimitSettings) -> Self {
        let follows = self.fuel.default == Self::fuel_for(self.default_timeout)
            && settings.get("fuel").default.is_none();
        for (name, setting) in settings.iter() {
            self.set(name, setting);
        }
        if follows {
            self.fuel.default = Self::fuel_for(self.default_timeout).max(1);
        }
        self
    }

    fn set(&mut self, name: &str, setting: LimitSetting) {
        let millis = Duration::from_millis;
        let small = |own: &mut u32| {
            let value = setting.maximum.or(setting.default);
            *own = value.map_or(*own, |value| u32::try_from(value).unwrap_or(u32::MAX));
        };
        let size = |own: &mut usize| {
            let value = setting.maximum.or(setting.default);
            *own = value.map_or(*own, |value| usize::try_from(value).unwrap_or(usize::MAX));
        };
        let fixed = |own: &mut u64| {
            *own = setting.maximum.or(setting.default).unwrap_or(*own);
        };
        let range = |own: &mut Limit<u64>| *own = own.with(setting);
        match name {
            "fuel" => range(&mut self.fuel),
            "timeout_ms" => {
                self.timeout = setting
                    .maximum
                    .or(setting.default)
                    .map_or(self.timeout, millis);
                let default = setting.default.map_or(self.default_timeout, millis);
                self.default_timeout = default.min(self.timeout);
            }
            "memory_bytes" => range(&mut self.memory_bytes),
            "output_bytes" => range(&mut self.output_bytes),
            "stdio_bytes" => range(&mut self.stdio_bytes),
            "log_records" => range(&mut self.log_records),
            "log_bytes" => fixed(&mut self.log_bytes),
            "resources" => range(&mut self.resources),
            "table_elements" => fixed(&mut self.table_elements),
            "input_bytes" => size(&mut self.input_bytes),
            "json_depth" => size(&mut self.json_depth),
            "json_values" => size(&mut self.json_values),
            "component_bytes" => size(&mut self.component_bytes),
            "http_requests" => range(&mut self.http_requests),
            "http_requests_total" => range(&mut self.http_requests_total),
            "http_body_bytes" => range(&mut self.http_body_bytes),
            "http_timeout_ms" => {
                self.http_timeout = Limit {
                    default: setting.default.map_or(self.http_timeout.default, millis),
                    maximum: setting.maximum.map_or(self.http_timeout.maximum, millis),
                };
            }
            "egress_bytes" => range(&mut self.egress_bytes),
            "workspace_bytes" => range(&mut self.workspace_bytes),
            "workspace_files" => range(&mut self.workspace_files),
            "open_files" => fixed(&mut self.open_files),
            "directory_entries" => fixed(&mut self.directory_entries),
            "bucket_bytes" => fixed(&mut self.bucket_bytes),
            "bucket_keys" => fixed(&mut self.bucket_keys),
            "nested_calls" => range(&mut self.nested_calls),
            "nested_depth" => small(&mut self.nested_depth),
            "concurrency" => small(&mut self.concurrency),
            "concurrency_per_tool" => small(&mut self.concurrency_per_tool),
            "concurrency_per_publisher" => small(&mut self.concurrency_per_publisher),
            "concurrency_per_principal" => small(&mut self.concurrency_per_principal),
            "queue" => small(&mut self.queue),
            // The policy takes no other names.
            other => tracing::error!(limit = other, "a limit of the policy is not known here"),
        }
    }
}

impl Limit<u64> {
    fn with(self, setting: LimitSetting) -> Self {
        Self {
            default: setting.default.unwrap_or(self.default),
            maximum: setting.maximum.unwrap_or(self.maximum),
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
    fn every_limit_that_a_policy_can_name_is_set_by_it() {
        for name in LimitSettings::names() {
            let mut settings = LimitSettings::default();
            let setting = LimitSetting {
                default: Some(7),
                maximum: Some(7),
            };
            settings.set(name, setting).expect("a known name");
            let limits = Limits::default().with(&settings);
            assert_ne!(limits, Limits::default(), "{name}");
        }
    }

    #[test]
    fn fuel_follows_the_operators_timeout_and_no_contracts() {
        let fuel = |settings: &[(&str, Option<u64>, Option<u64>)], asked: Option<u64>| {
            let mut all = LimitSettings::default();
            for (name, default, maximum) in settings {
                let (default, maximum) = (*default, *maximum);
                let setting = LimitSetting { default, maximum };
                all.set(name, setting).expect("a known name");
            }
            let limits = Limits::default().with(&all);
            let mut driver = DriverLimits::default();
            driver.fuel = asked;
            let [short, long] = [1, 300]
                .map(|seconds| CallLimits::new(&limits, Duration::from_secs(seconds), &driver));
            assert_eq!(short.fuel, long.fuel);
            short.fuel
        };
        const G: u64 = 1_000_000_000;
        assert_eq!(fuel(&[], None), 600 * G);
        assert_eq!(fuel(&[], Some(7)), 7);
        assert_eq!(fuel(&[], Some(u64::MAX)), 10_000 * G);
        let timeout = |default, maximum| ("timeout_ms", default, maximum);
        assert_eq!(fuel(&[timeout(Some(60_000), Some(90_000))], None), 1200 * G);
        assert_eq!(fuel(&[timeout(None, Some(90_000))], None), 600 * G);
        assert_eq!(fuel(&[timeout(None, Some(10_000))], None), 200 * G);
        // What the operator says about fuel itself stays as it is.
        let own = [("fuel", Some(5), None), timeout(Some(60_000), None)];
        assert_eq!(fuel(&own, None), 5);
        let capped = [("fuel", None, Some(9)), timeout(Some(60_000), None)];
        assert_eq!((fuel(&capped, None), fuel(&capped, Some(20))), (9, 9));
    }

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
