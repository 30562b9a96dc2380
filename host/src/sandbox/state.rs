//! What a store holds for one attempt: WASI with what was granted, the limiter,
//! and where log and progress go.

use std::sync::Arc;
use std::time::Instant;

use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

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
    pub(crate) progress: Rising,
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
        let stdout = Capture::new("stdout", call.stdio_bytes);
        let stderr = Capture::new("stderr", call.stdio_bytes);
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
            files: context.files(),
            buckets: context.buckets(deadline),
            limiter: Limiter::new(limits.memory_bytes, call.table_elements),
            stdout,
            stderr,
            log: Log::new(call),
            progress: Rising::default(),
            observer: context.observer.clone(),
            violations: context.violations.clone(),
            secrets: context.secrets.clone(),
            network: context.network.clone(),
            tools: context.tools.clone(),
            meter: Meter::default(),
            http: http::context(),
            hooks: Hooks::new(context.network.clone(), context.violations.clone()),
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

impl WasiHttpView for State {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView {
            hooks: &mut self.hooks,
            table: &mut self.table,
            ctx: &mut self.http,
        }
    }
}

/// Progress reports that are passed on in one attempt; the rest is dropped.
const PROGRESS_REPORTS: u32 = 1000;

/// The progress of one attempt: only ever rises, and only so often.
#[derive(Debug, Default)]
pub(crate) struct Rising {
    last: Option<f64>,
    count: u32,
}

impl Rising {
    /// Whether a report with this value is passed on.
    pub(crate) fn admit(&mut self, done: f64) -> bool {
        let rises = done.is_finite() && self.last.is_none_or(|last| done > last);
        if !rises || self.count >= PROGRESS_REPORTS {
            return false;
        }
        self.last = Some(done);
        self.count = self.count.saturating_add(1);
        true
    }
}

/// The log records of one attempt, counted while they come in.
#[derive(Debug)]
pub(crate) struct Log {
    records: Vec<LogRecord>,
    max_records: u64,
    bytes: u64,
    max_bytes: u64,
}

impl Log {
    fn new(limits: &CallLimits) -> Self {
        Self {
            records: Vec::new(),
            max_records: limits.log_records,
            bytes: 0,
            max_bytes: limits.log_bytes,
        }
    }

    /// Counts a record of `size` bytes before anything is made of it.
    pub(crate) fn admit(&mut self, size: u64) -> Result<(), Exceeded> {
        let count = (self.records.len() as u64).saturating_add(1);
        if count > self.max_records {
            return Err(Exceeded {
                limit: "log_records",
                used: count,
                allowed: self.max_records,
            });
        }
        let bytes = self.bytes.saturating_add(size);
        if bytes > self.max_bytes {
            return Err(Exceeded {
                limit: "log_bytes",
                used: bytes,
                allowed: self.max_bytes,
            });
        }
        self.bytes = bytes;
        Ok(())
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
    fn progress_is_passed_on_so_often_and_no_more() {
        let mut rising = Rising::default();
        let passed = (0..5000).filter(|n| rising.admit(f64::from(*n))).count();
        assert_eq!(passed, 1000);
    }
}
