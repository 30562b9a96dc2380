//! Every limit of calls, in one table: name, unit, default, maximum, meaning.
//!
//! Policy files, errors and the book take names, units and texts from here. A new limit needs a row
//! here, and a comparison in the code that spends its resource.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolward_contract::json;
use toolward_contract::tool::DEFAULT_TIMEOUT;

use super::{Field as _, Limit, LimitSettings, Number as _, Settable, fuel_for};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Makes [`LimitName`], [`Limits`], [`CallLimits`] and the constants of [`own`] from the table. A
/// row with `call` limits each call: [`CallLimits`] has a field for it, of the type after `call`.
macro_rules! limits {
    (
        operator: $(
            $(#[doc = $doc:literal])+
            $variant:ident = $name:literal, $unit:literal, $settable:ident,
            $field:ident: $type:ty = $value:expr $(, call: $call:ty)?;
        )+
        own: $(
            $(#[doc = $own_doc:literal])+
            $own:ident = $own_name:literal, $own_unit:literal, $constant:ident = $own_value:expr;
        )+
    ) => {
        /// The name of a limit: the same in policy files, errors and documentation.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum LimitName {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $variant,)+
            $($(#[doc = $own_doc])+ #[serde(rename = $own_name)] $own,)+
        }

        impl LimitName {
            /// All limits, in the order of the table.
            pub const ALL: &'static [LimitName] = &[
                $(LimitName::$variant,)+
                $(LimitName::$own,)+
            ];

            /// The name in policy files and errors.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(LimitName::$variant => $name,)+
                    $(LimitName::$own => $own_name,)+
                }
            }

            /// The unit, in the plural.
            pub const fn unit(self) -> &'static str {
                match self {
                    $(LimitName::$variant => $unit,)+
                    $(LimitName::$own => $own_unit,)+
                }
            }

            /// What it limits, and who may request another value, in Markdown for the book.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(LimitName::$variant => concat!($($doc),+),)+
                    $(LimitName::$own => concat!($($own_doc),+),)+
                }
            }

            /// The values that a policy can set.
            pub(super) const fn settable(self) -> Settable {
                match self {
                    $(LimitName::$variant => Settable::$settable,)+
                    $(LimitName::$own => Settable::Never,)+
                }
            }
        }

        /// The operator's limits on every call of a host.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct Limits {
            $($(#[doc = $doc])+ pub $field: $type,)+
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($field: $value,)+ }
            }
        }

        impl Limits {
            /// What a call gets by default, and the most that it can request, in the unit of the
            /// limit. `None` for a limit that the host fixes.
            pub fn get(&self, name: LimitName) -> Option<Limit<u64>> {
                match name {
                    $(LimitName::$variant => Some(self.$field.range()),)+
                    _ => None,
                }
            }

            /// Applies a policy's numbers.
            pub(super) fn adjust(&mut self, settings: &LimitSettings) {
                $(self.$field.adjust(settings.get(LimitName::$variant));)+
            }
        }

        /// The limits of one call: [`Limits`] with the requests of its contract and driver.
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the table of limits has the meanings")]
        pub struct CallLimits {
            $($(pub $field: $call,)?)+
            pub json: json::Limits,
        }

        impl CallLimits {
            /// The limits of calls that request these numbers.
            pub(super) fn of(limits: &Limits, asked: impl Fn(LimitName) -> Option<u64>) -> Self {
                let get = |name, limit: Limit<u64>| limit.apply(asked(name));
                Self {
                    $($($field: <$call>::of(get(LimitName::$variant, limits.$field.range())),)?)+
                    json: limits.json(get(LimitName::Output, limits.output_bytes)),
                }
            }
        }

        /// The values of the limits that the host fixes.
        pub mod own {
            $($(#[doc = $own_doc])+ pub const $constant: u64 = $own_value;)+
        }

        impl LimitName {
            /// The value of a limit that the host fixes.
            pub const fn own(self) -> Option<u64> {
                match self {
                    $(LimitName::$own => Some(own::$constant),)+
                    _ => None,
                }
            }
        }
    };
}

limits! {
    operator:
    /// `limits.fuel` in DRIVER.md. About one unit per instruction, for all attempts together. The
    /// default is 20 000 000 000 for each second of the default `timeout_ms`. An interpreter spends
    /// less in a second, so its endless loop usually ends at the timeout.
    Fuel = "fuel", "units of fuel", Positive, fuel: Limit<u64> =
        Limit::fixed(fuel_for(DEFAULT_TIMEOUT)).up_to(10_000_000_000_000), call: u64;
    /// `timeout_ms` of the contract, `timeout_override_ms` of the driver. The time from dispatch to
    /// the result, retries included. Waiting for a slot, waiting for a person and compiling come
    /// before dispatch. The default of `fuel` follows from this default. A contract without
    /// `timeout_ms` asks for 30 s (AIP-14).
    Timeout = "timeout_ms", "ms", Positive, timeout: Limit<Duration> =
        Limit::fixed(DEFAULT_TIMEOUT).up_to(Duration::from_secs(300)), call: Duration;
    /// `limits.memory_mib` in DRIVER.md. All linear memories of a call together, and [the memory
    /// that the host holds for the call](host-memory.md).
    Memory = "memory_bytes", "bytes", Positive, memory_bytes: Limit<u64> =
        Limit::fixed(64 * MIB).up_to(256 * MIB), call: u64;
    /// The memory of all calls of a process together, including results that clients have not
    /// read; [more about it](host-memory.md#all-calls-together). Default: half of the machine's
    /// or the control group's memory, whichever is less.
    MemoryTotal = "memory_total", "bytes", Positive, memory_total: Option<u64> = None;
    /// `limits.output_bytes` in DRIVER.md. Structured output and content blocks together.
    Output = "output_bytes", "bytes", Positive, output_bytes: Limit<u64> =
        Limit::fixed(4 * MIB).up_to(16 * MIB), call: u64;
    /// `limits.stdio_bytes` in DRIVER.md. Captured standard output. The limit applies separately to
    /// captured standard error.
    Stdio = "stdio_bytes", "bytes", Any, stdio_bytes: Limit<u64> = Limit::fixed(64 * KIB).up_to(4 * MIB), call: u64;
    /// `limits.log_records` in DRIVER.md. Log records of a call.
    LogRecords = "log_records", "log records", Any, log_records: Limit<u64> = Limit::fixed(1000).up_to(10_000), call: u64;
    /// `limits.resources` in DRIVER.md. Streams, pollables and other handles that are open at once.
    Resources = "resources", "handles", Positive, resources: Limit<u64> = Limit::fixed(1024).up_to(16_384), call: u64;
    /// `limits.http_requests` in DRIVER.md. HTTP requests under way at once.
    HttpRequests = "http_requests", "requests", Any, http_requests: Limit<u64> = Limit::fixed(16).up_to(64), call: u64;
    /// All HTTP requests of a call, including requests of tools that it calls.
    HttpRequestsTotal = "http_requests_total", "requests", Any, http_requests_total: Limit<u64> =
        Limit::fixed(256).up_to(4096), call: u64;
    /// `limits.http_body_bytes` in DRIVER.md. One body, sent or received.
    HttpBody = "http_body_bytes", "bytes", Any, http_body_bytes: Limit<u64> =
        Limit::fixed(16 * MIB).up_to(64 * MIB), call: u64;
    /// The head of one request or response. For responses, more than 64 KiB has no effect. Only an
    /// embedder sets it.
    HttpHead = "http_head_bytes", "bytes", Embedder, http_head_bytes: u64 = 64 * KIB, call: u64;
    /// `limits.http_timeout_ms` in DRIVER.md. The time of one exchange. If less time is left until
    /// the call's deadline, the exchange gets only this time.
    HttpTimeout = "http_timeout_ms", "ms", Positive, http_timeout: Limit<Duration> =
        Limit::fixed(Duration::from_secs(60)).up_to(Duration::from_secs(300)), call: Duration;
    /// All that a call sends and receives over HTTP, including traffic of tools that it calls.
    Egress = "egress_bytes", "bytes", Any, egress_bytes: Limit<u64> = Limit::fixed(64 * MIB).up_to(256 * MIB), call: u64;
    /// `limits.workspace_bytes` in DRIVER.md. What a call may add to its workspaces.
    WorkspaceBytes = "workspace_bytes", "bytes", Any, workspace_bytes: Limit<u64> =
        Limit::fixed(16 * MIB).up_to(1024 * MIB), call: u64;
    /// `limits.workspace_files` in DRIVER.md. Files and directories that a call may create.
    WorkspaceFiles = "workspace_files", "files and directories", Any, workspace_files: Limit<u64> =
        Limit::fixed(256).up_to(16_384), call: u64;
    /// `limits.nested_calls` in DRIVER.md may be less. Calls of other tools in a call, at any depth.
    NestedCalls = "nested_calls", "calls", Any, nested_calls: Limit<u64> = Limit::fixed(64), call: u64;
    /// How deep calls of tools by tools may nest.
    NestedDepth = "nested_depth", "levels", Any, nested_depth: u32 = 8;
    /// Messages and fields of all log records of a call.
    LogBytes = "log_bytes", "bytes", Any, log_bytes: u64 = 256 * KIB, call: u64;
    /// Elements of all tables of a call.
    TableElements = "table_elements", "table elements", Positive, table_elements: u64 = 100_000, call: u64;
    /// The input's text, counted before it is parsed.
    Input = "input_bytes", "bytes", Positive, input_bytes: usize = 1 << 20;
    /// Nesting of arrays and objects in input, context and output. A value above 127 has the
    /// effect of 127.
    JsonDepth = "json_depth", "levels", Positive, json_depth: usize = 64;
    /// Scalars, arrays and objects together, counted separately for input, context and output.
    /// Small values take about fifty times the memory of their text.
    JsonValues = "json_values", "JSON values", Positive, json_values: usize = 250_000;
    /// A driver's component, counted before it is compiled.
    Component = "component_bytes", "bytes", Positive, component_bytes: usize = 64 << 20;
    /// Files, streams of files and directory listings that a call holds open at once.
    OpenFiles = "open_files", "open files, streams and listings", Any, open_files: u64 = 64, call: u64;
    /// Outgoing requests and all that `open_files` counts, for all calls of a process together.
    /// Default: half of the files that the process may open (`ulimit -n`).
    OpenFilesTotal = "open_files_total", "open files, streams and listings", Positive, open_files_total: Option<u64> = None;
    /// Directory entries that a call may read. Only an embedder sets it.
    DirectoryEntries = "directory_entries", "directory entries", Embedder, directory_entries: u64 = 100_000, call: u64;
    /// Keys and values of one key-value bucket.
    BucketBytes = "bucket_bytes", "bytes", Any, bucket_bytes: u64 = 16 * MIB, call: u64;
    /// Keys of one key-value bucket.
    BucketKeys = "bucket_keys", "keys", Any, bucket_keys: u64 = 10_000, call: u64;
    /// Calls that run at once. In addition, the same number of calls may wait for tools that they
    /// call.
    Concurrency = "concurrency", "calls", Positive, concurrency: u32 = 128;
    /// Calls of one tool that run at once.
    ConcurrencyPerTool = "concurrency_per_tool", "calls", Positive, concurrency_per_tool: u32 = 96;
    /// Calls of one publisher's tools that run at once.
    ConcurrencyPerPublisher = "concurrency_per_publisher", "calls", Positive, concurrency_per_publisher: u32 = 96;
    /// Calls of one principal that run at once. In addition, the same number of its calls may wait
    /// for tools that they call.
    ConcurrencyPerPrincipal = "concurrency_per_principal", "calls", Positive, concurrency_per_principal: u32 = 96;
    /// Calls that wait for a slot. The number applies to all calls together, and separately to the
    /// calls of each tool, publisher and principal. A further call ends with `rate_limited`.
    Queue = "queue", "calls", Any, queue: u32 = 1024;

    own:
    /// The values that a guest hands over in one call to the host.
    HostCall = "host_call_bytes", "bytes", HOST_CALL_BYTES = 256 * super::KIB;
    /// The call stack of a guest.
    Stack = "stack", "bytes", STACK_BYTES = 512 * super::KIB;
    /// Rounds of questions that a driver may ask in one call.
    Rounds = "rounds", "rounds of questions", ROUNDS = 3;
    /// Secrets that are stored by a call and by the tools that it calls.
    SecretStores = "secret_stores", "stored secrets", SECRET_STORES = 16;
    /// The values of these secrets together; one value has at most 64 KiB.
    SecretStoreBytes = "secret_store_bytes", "bytes", SECRET_STORE_BYTES = 256 * super::KIB;
    /// A call's operations on buckets, for all attempts and nested calls together.
    BucketOperations = "bucket_operations", "operations on buckets", BUCKET_OPERATIONS = 10_000;
    /// Keys and values that a call reads and writes in buckets, for all attempts and nested calls
    /// together.
    BucketTraffic = "bucket_traffic", "bytes", BUCKET_TRAFFIC = 64 * super::MIB;
    /// Checks of large inputs and outputs that wait for a thread. A principal may run only some
    /// checks at once, and the same number of its checks may wait for that; [more about
    /// them](../serve-http.md#what-calls-may-fill).
    LongChecks = "long_checks", "checks", LONG_CHECKS = 1024;
}
