//! The data of a store for one attempt: WASI with the grant, the limiter, and the sinks
//! of log and progress.

use std::pin::Pin;
use std::sync::Arc;

use toolward_policy::LimitName;
use wasmtime::Store;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::p2::bindings::random::insecure_seed;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView};

use crate::capture::Capture;
use crate::exceeded::Exceeded;
use crate::files;
use crate::http::{self, Hooks};
use crate::imports::{self, Imports, Meter};
use crate::invocation::{DriverEnd, Invocation};
use crate::limiter::{Limiter, ResultSize};
use crate::limits::{AttemptLimits, CallLimits, MemoryBudget};
use crate::result::LogRecord;
use crate::violations::Violations;

/// Bytes that one `wasi:random` call gives at most.
const MAX_RANDOM: u64 = 64 << 10;

/// The data of one store. Made for one attempt, dropped with it.
pub(crate) struct State {
    /// Made when the guest first asks WASI for anything but a seed: many never do. The monotonic clock counts
    /// from then.
    wasi: Option<WasiCtx>,
    pub(super) insecure_seed: InsecureSeed,
    table: ResourceTable,
    pub(crate) files: files::Ctx,
    pub(crate) limiter: Limiter,
    pub(crate) stdout: Capture,
    pub(crate) stderr: Capture,
    pub(crate) logs: Vec<LogRecord>,
    pub(crate) violations: Violations,
    pub(crate) imports: Arc<dyn Imports>,
    /// [`Imports::has_tools`].
    pub(crate) has_tools: bool,
    pub(crate) meter: Meter,
    /// Whether the guest is in a call of an imported function. Set by what each of them takes its state from.
    pub(crate) in_import: bool,
    http: WasiHttpCtx,
    hooks: Hooks,
}

/// What policy grants the attempts of one call.
pub struct CallGrant<'a> {
    /// The limits of the call.
    pub limits: &'a CallLimits,
    /// Counts what it tries beyond its grant.
    pub violations: &'a Violations,
    /// What answers the driver's requests.
    pub imports: &'a Arc<dyn Imports>,
    /// The files that it may use, if any.
    pub files: Option<files::FileGrant>,
}

impl State {
    /// State with the call's grant.
    pub(crate) fn new(
        grant: &CallGrant<'_>,
        limits: &AttemptLimits,
        memory: Option<Arc<dyn MemoryBudget>>,
    ) -> Self {
        let call = grant.limits;
        let limiter = Limiter::new(limits.memory_bytes, call.table_elements).within(memory);
        let held = limiter.held.shared();
        let stdout = Capture::new(LimitName::Stdio, call.stdio_bytes, held.clone());
        let stderr = Capture::new(LimitName::Stdio, call.stdio_bytes, held.clone());
        let hooks = Hooks {
            imports: grant.imports.clone(),
            violations: grant.violations.clone(),
            held: held.clone(),
        };
        let mut table = ResourceTable::new();
        table.set_max_capacity(usize::try_from(call.resources).unwrap_or(usize::MAX));
        Self {
            wasi: None,
            insecure_seed: InsecureSeed::default(),
            table,
            files: grant
                .files
                .as_ref()
                .map_or_else(files::Ctx::default, |files| {
                    files::Ctx::new(files.clone(), grant.violations.clone(), held.clone())
                }),
            limiter,
            stdout,
            stderr,
            logs: Vec::new(),
            violations: grant.violations.clone(),
            imports: grant.imports.clone(),
            has_tools: grant.imports.has_tools(),
            meter: Meter::default(),
            in_import: false,
            http: http::context(),
            hooks,
        }
    }
}

impl State {
    /// What an import has of it that [`Imports`] answers.
    pub(crate) fn answered(&mut self) -> imports::View<'_> {
        self.in_import = true;
        imports::View {
            imports: &*self.imports,
            table: &mut self.table,
            limiter: &mut self.limiter,
            meter: &mut self.meter,
            logs: &mut self.logs,
        }
    }

    /// All of it, for an imported function.
    pub(crate) fn import(&mut self) -> &mut Self {
        self.in_import = true;
        self
    }

    /// `wasi:http`, counted.
    pub(crate) fn http(&mut self) -> http::view::View<'_> {
        self.in_import = true;
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
        // The table has no length, but the number of its next entry bounds it: while
        // there are free entries it is below the peak, which was counted before.
        let open = match self.table.push(()) {
            Ok(next) => {
                let number = next.rep();
                // It was just pushed.
                let _ = self.table.delete(next);
                u64::from(number)
            }
            Err(_full) => self.table.max_capacity() as u64,
        };
        self.limiter.held.open(open);
        self.limiter.held.network(self.imports.http_bytes());
        self.limiter.settle()
    }

    /// The files that the guest sees.
    pub(crate) fn files(&mut self) -> files::View<'_> {
        self.in_import = true;
        files::View {
            ctx: &mut self.files,
            table: &mut self.table,
        }
    }
}

/// A component, bound to the world in which it is called.
pub(crate) trait World: Send + Sync {
    /// Instantiates the component and runs its handler. Start functions are guest
    /// code: the store must be armed.
    fn execute<'s>(&'s self, store: &'s mut Store<State>, call: WorldCall<'s>) -> Execution<'s>;

    /// How large its result may be.
    fn result_size(&self, limits: &CallLimits) -> ResultSize {
        ResultSize::of_text(limits.output_bytes)
    }
}

/// A call of a component.
#[derive(Clone, Copy)]
pub(crate) struct WorldCall<'a> {
    pub(crate) invocation: &'a Invocation,
    pub(crate) limits: &'a CallLimits,
}

/// A handler that runs. The outer error is what ended the guest.
pub(crate) type Execution<'a> =
    Pin<Box<dyn Future<Output = wasmtime::Result<DriverEnd>> + Send + 'a>>;

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        self.in_import = true;
        let (stdout, stderr) = (&self.stdout, &self.stderr);
        WasiCtxView {
            ctx: self.wasi.get_or_insert_with(|| wasi(stdout, stderr)),
            table: &mut self.table,
        }
    }
}

/// WASI without files, network, environment, arguments or input. Clocks and randomness work; output is captured.
fn wasi(stdout: &Capture, stderr: &Capture) -> WasiCtx {
    let mut wasi = WasiCtx::builder();
    wasi.stdout(stdout.clone())
        .stderr(stderr.clone())
        .max_random_size(MAX_RANDOM)
        .allow_tcp(false)
        .allow_udp(false)
        .allow_ip_name_lookup(false);
    wasi.build()
}

/// The seed of one instance: the same each time that it asks. Many guests in Rust ask WASI for nothing else, once for
/// their hash maps, and wasmtime-wasi would make two generators for each call to answer it.
#[derive(Debug, Default)]
pub(super) struct InsecureSeed(Option<(u64, u64)>);

impl wasmtime::component::HasData for InsecureSeed {
    type Data<'a> = &'a mut Self;
}

impl insecure_seed::Host for InsecureSeed {
    fn insecure_seed(&mut self) -> wasmtime::Result<(u64, u64)> {
        if let Some(seed) = self.0 {
            return Ok(seed);
        }
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| wasmtime::Error::msg(error.to_string()))?;
        let both = u128::from_ne_bytes(bytes);
        let seed = (both as u64, (both >> 64) as u64);
        Ok(*self.0.insert(seed))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn an_instance_keeps_its_seed_and_no_other_has_it() {
        use insecure_seed::Host as _;

        let mut seeds = HashSet::new();
        for _ in 0..1000 {
            let mut instance = InsecureSeed::default();
            let seed = instance.insecure_seed().unwrap();
            assert_eq!(instance.insecure_seed().unwrap(), seed);
            assert!(seeds.insert(seed.0) && seeds.insert(seed.1));
        }
    }
}
