//! What a store holds for one attempt: WASI with what was granted, the limiter,
//! and where log and progress go.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView};

use super::capture::Capture;
use super::context::Context;
use super::http::{self, Hooks};
use super::limiter::Limiter;
use super::secrets::CallSecrets;
use super::{Exceeded, files, keyvalue, tools};
use crate::limits::CallLimits;
use crate::observer::{LogRecord, Observer};
use crate::violations::Violations;

/// Bytes that one `wasi:random` call gives at most.
const MAX_RANDOM: u64 = 64 << 10;

/// The data of one store. Made for one attempt, dropped with it.
pub(crate) struct State {
    wasi: WasiCtx,
    table: ResourceTable,
    pub(crate) files: files::Ctx,
    buckets: keyvalue::Ctx,
    pub(crate) limiter: Limiter,
    pub(crate) stdout: Capture,
    pub(crate) stderr: Capture,
    pub(crate) log: Log,
    told: Told,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    pub(crate) violations: Violations,
    pub(crate) secrets: Arc<CallSecrets>,
    pub(crate) network: Option<toolward_egress::Call>,
    pub(crate) tools: Option<tools::Ctx>,
    pub(crate) meter: Meter,
    http: WasiHttpCtx,
    hooks: Hooks,
}

/// Fuel across calls of other tools, which spend what their caller has.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    /// What the guest had left when it last called the host. Kept up to date
    /// only where tools are granted.
    pub(crate) fuel: u64,
    /// What called tools have spent since.
    pub(crate) owed: u64,
}

impl State {
    /// State with what the call was granted, and else nothing: no environment,
    /// arguments or input; clocks and randomness; output captured.
    pub(crate) fn new(context: &Context, limits: &AttemptLimits, deadline: Instant) -> Self {
        let call = &context.limits;
        let limiter = Limiter::new(limits.memory_bytes, call.table_elements);
        let held = limiter.held.shared();
        let stdout = Capture::new("stdout", call.stdio_bytes, held.clone());
        let stderr = Capture::new("stderr", call.stdio_bytes, held.clone());
        let hooks = Hooks::new(
            context.network.clone(),
            context.violations.clone(),
            held.clone(),
        );
        let mut wasi = WasiCtx::builder();
        wasi.stdout(stdout.clone())
            .stderr(stderr.clone())
            .max_random_size(MAX_RANDOM)
            .allow_tcp(false)
            .allow_udp(false)
            .allow_ip_name_lookup(false);
        let mut table = ResourceTable::new();
        table.set_max_capacity(usize::try_from(call.resources).unwrap_or(usize::MAX));
        Self {
            wasi: wasi.build(),
            table,
            files: context.files(limiter.held.shared()),
            buckets: context.buckets(deadline),
            limiter,
            stdout,
            stderr,
            log: Log::new(call, context.told.clone()),
            told: context.told.clone(),
            observer: context.observer.clone(),
            violations: context.violations.clone(),
            secrets: context.secrets.clone(),
            network: context.network.clone(),
            tools: context.tools.clone(),
            meter: Meter::default(),
            http: http::context(),
            hooks,
        }
    }
}

impl State {
    /// The buckets that the guest opens.
    pub(crate) fn buckets(&mut self) -> keyvalue::View<'_> {
        keyvalue::View {
            ctx: &self.buckets,
            table: &mut self.table,
        }
    }

    /// `wasi:http`, counted.
    pub(crate) fn http(&mut self) -> http::view::View<'_> {
        http::view::View {
            http: WasiHttpCtxView {
                hooks: &mut self.hooks,
                table: &mut self.table,
                ctx: &mut self.http,
            },
            held: &mut self.limiter.held,
        }
    }

    /// Compares what the host holds for the call with the limit on memory. The
    /// guest's own memory was compared as it grew.
    pub(crate) fn settle_memory(&mut self) -> Result<(), Exceeded> {
        // The table does not say how full it is. The number of the next entry does:
        // while there are free places it is below the number that were taken at once
        // before, which has been counted.
        let open = match self.table.push(()) {
            Ok(next) => {
                let number = next.rep();
                // What was pushed is there.
                let _ = self.table.delete(next);
                u64::from(number)
            }
            Err(_full) => self.table.max_capacity() as u64,
        };
        self.limiter.held.open(open);
        if let Some(network) = &self.network {
            self.limiter.held.network(network.memory());
        }
        self.limiter.settle()
    }

    /// Whether a report of progress with this value is passed on.
    pub(crate) fn admits_progress(&self, done: f64) -> bool {
        self.told.with(|told| told.progress.admit(done))
    }

    /// The files that the guest sees.
    pub(crate) fn files(&mut self) -> files::View<'_> {
        files::View {
            ctx: &mut self.files,
            table: &mut self.table,
        }
    }
}

/// What one attempt may spend of what the call has left.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttemptLimits {
    pub(crate) fuel: u64,
    /// What all attempts may spend together; for messages.
    pub(crate) fuel_total: u64,
    pub(crate) memory_bytes: u64,
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

/// What a call has told so far, all its attempts together. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Told(Arc<Mutex<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    progress: Rising,
    records: u64,
    bytes: u64,
}

impl Told {
    fn with<T>(&self, act: impl FnOnce(&mut Counts) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Progress reports that are passed on in one call; the rest is dropped.
const PROGRESS_REPORTS: u32 = 1000;

/// The progress of one call: only ever rises, and only so often.
#[derive(Debug, Default)]
struct Rising {
    last: Option<f64>,
    count: u32,
}

impl Rising {
    /// Whether a report with this value is passed on.
    fn admit(&mut self, done: f64) -> bool {
        let rises = done.is_finite() && self.last.is_none_or(|last| done > last);
        if !rises || self.count >= PROGRESS_REPORTS {
            return false;
        }
        self.last = Some(done);
        self.count = self.count.saturating_add(1);
        true
    }
}

/// The log records of one attempt, counted while they come in, with those of the
/// attempts before it.
#[derive(Debug)]
pub(crate) struct Log {
    records: Vec<LogRecord>,
    told: Told,
    max_records: u64,
    max_bytes: u64,
}

impl Log {
    fn new(limits: &CallLimits, told: Told) -> Self {
        Self {
            records: Vec::new(),
            told,
            max_records: limits.log_records,
            max_bytes: limits.log_bytes,
        }
    }

    /// Counts a record of `size` bytes before anything is made of it.
    pub(crate) fn admit(&mut self, size: u64) -> Result<(), Exceeded> {
        self.told.with(|told| {
            let count = told.records.saturating_add(1);
            if count > self.max_records {
                return Err(Exceeded {
                    limit: "log_records",
                    used: count,
                    allowed: self.max_records,
                });
            }
            let bytes = told.bytes.saturating_add(size);
            if bytes > self.max_bytes {
                return Err(Exceeded {
                    limit: "log_bytes",
                    used: bytes,
                    allowed: self.max_bytes,
                });
            }
            (told.records, told.bytes) = (count, bytes);
            Ok(())
        })
    }

    pub(crate) fn push(&mut self, record: LogRecord) {
        self.records.push(record);
    }

    pub(crate) fn take(&mut self) -> Vec<LogRecord> {
        std::mem::take(&mut self.records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_that_falls_repeats_or_is_no_number_is_dropped() {
        let mut rising = Rising::default();
        let admitted = [1.0, 1.0, 0.5, f64::NAN, f64::INFINITY, 2.0].map(|done| rising.admit(done));
        assert_eq!(admitted, [true, false, false, false, false, true]);
    }

    #[test]
    fn another_attempt_has_what_the_first_left_of_log_and_progress() {
        let limits = CallLimits {
            log_records: 3,
            log_bytes: 100,
            ..CallLimits::new(
                &crate::Limits::default(),
                std::time::Duration::from_secs(1),
                &toolward_contract::driver::DriverLimits::default(),
            )
        };
        let told = Told::default();
        for size in [10, 50] {
            let mut attempt = Log::new(&limits, told.clone());
            attempt.admit(size).expect("room for it");
        }
        let mut third = Log::new(&limits, told.clone());
        assert_eq!(third.admit(41).map_err(|over| over.limit), Err("log_bytes"));
        third.admit(40).expect("room for it");
        assert_eq!(
            third.admit(0).map_err(|over| over.limit),
            Err("log_records")
        );
    }

    #[test]
    fn progress_is_passed_on_so_often_and_no_more() {
        let mut rising = Rising::default();
        let passed = (0..5000).filter(|n| rising.admit(f64::from(*n))).count();
        assert_eq!(passed, 1000);
    }
}
