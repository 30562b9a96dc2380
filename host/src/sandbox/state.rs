//! What a store holds for one attempt: WASI with nothing granted, the limiter,
//! and where log and progress go.

use std::sync::Arc;

use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use super::Exceeded;
use super::capture::Capture;
use super::files;
use super::limiter::Limiter;
use crate::limits::CallLimits;
use crate::observer::{LogRecord, Observer};

/// Bytes that one `wasi:random` call gives at most.
const MAX_RANDOM: u64 = 64 << 10;

/// The data of one store. Made for one attempt, dropped with it.
pub(crate) struct State {
    wasi: WasiCtx,
    table: ResourceTable,
    pub(crate) files: files::Ctx,
    pub(crate) limiter: Limiter,
    pub(crate) stdout: Capture,
    pub(crate) stderr: Capture,
    pub(crate) log: Log,
    pub(crate) progress: Rising,
    pub(crate) observer: Option<Arc<dyn Observer>>,
}

impl State {
    /// State with nothing granted: no files, network, environment, arguments
    /// or input; clocks and randomness; output captured.
    pub(crate) fn new(limits: &CallLimits, observer: Option<Arc<dyn Observer>>) -> Self {
        let stdout = Capture::new("stdout", limits.stdio_bytes);
        let stderr = Capture::new("stderr", limits.stdio_bytes);
        let mut wasi = WasiCtx::builder();
        wasi.stdout(stdout.clone())
            .stderr(stderr.clone())
            .max_random_size(MAX_RANDOM)
            .allow_tcp(false)
            .allow_udp(false)
            .allow_ip_name_lookup(false);
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits.resources as usize);
        Self {
            wasi: wasi.build(),
            table,
            files: files::Ctx::default(),
            limiter: Limiter::new(limits.memory_bytes, limits.table_elements),
            stdout,
            stderr,
            log: Log::new(limits),
            progress: Rising::default(),
            observer,
        }
    }
}

impl State {
    /// The files that the guest sees.
    pub(crate) fn files(&mut self) -> files::View<'_> {
        files::View {
            ctx: &mut self.files,
            table: &mut self.table,
        }
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
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
    max_records: u32,
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
        if count > u64::from(self.max_records) {
            return Err(Exceeded {
                limit: "log_records",
                used: count,
                allowed: u64::from(self.max_records),
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
