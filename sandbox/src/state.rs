//! The data of a store for one attempt: WASI, the grant, the limiter, and the collected logs and
//! output.

use std::pin::Pin;
use std::sync::Arc;

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
use crate::limiter::{Limiter, MemoryLayout, ResultSize};
use crate::limits::{AttemptLimits, CallLimits, MemoryBudget};
use crate::result::LogRecord;
use crate::violations::Violations;

/// The most bytes that one `wasi:random` call returns.
const MAX_RANDOM: u64 = 64 << 10;

/// The data of one store. It is created for one attempt, and dropped with the store.
pub(crate) struct State {
    /// Created when the guest first uses an interface that wasmtime-wasi answers, such as clocks or
    /// standard streams; many guests never do. The monotonic clock counts from then.
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
    /// Whether the guest is calling an imported function. Each function that lends this state to an
    /// import sets it.
    pub(crate) in_import: bool,
    http: WasiHttpCtx,
    hooks: Hooks,
}

/// The grant for the attempts of one call.
pub struct CallGrant<'a> {
    /// The limits of the call.
    pub limits: &'a CallLimits,
    /// Records the violations of the call.
    pub violations: &'a Violations,
    /// Answers the driver's requests.
    pub imports: &'a Arc<dyn Imports>,
    /// The files that the call may use, if any.
    pub files: Option<files::FileGrant>,
}

impl State {
    /// State with the call's grant.
    pub(crate) fn new(
        grant: &CallGrant<'_>,
        limits: &AttemptLimits,
        memory: Option<&Arc<dyn MemoryBudget>>,
        layout: MemoryLayout,
    ) -> Self {
        let call = grant.limits;
        let limiter = Limiter::new(limits.memory_bytes, call.table_elements);
        let limiter = limiter.within(memory, layout);
        let held = limiter.held.shared();
        let stdout = Capture::new(call.stdio_bytes, held.clone());
        let stderr = Capture::new(call.stdio_bytes, held.clone());
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
            files: files::Ctx::new(grant.files.clone(), grant.violations, held),
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

    /// Lends the state to an import that [`Imports`] answers.
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

    /// Lends the whole state to an imported function.
    pub(crate) fn import(&mut self) -> &mut Self {
        self.in_import = true;
        self
    }

    /// Lends the state to `wasi:http`, whose memory is counted.
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

    /// Compares the memory of the call with its limit, after the memory that the host holds has
    /// changed. The guest's own memory was compared when it grew.
    pub(crate) fn settle_memory(&mut self) -> Result<(), Exceeded> {
        // The table does not report its length. The number of a new entry is the peak number of
        // entries if the table has no free entry. Otherwise it is below the peak, which was counted
        // before.
        let open = match self.table.push(()) {
            Ok(next) => {
                let number = next.rep();
                // This can't fail: the entry was just pushed.
                let _ = self.table.delete(next);
                u64::from(number)
            }
            Err(_full) => self.table.max_capacity() as u64,
        };
        self.limiter.held.open(open);
        self.limiter.held.network(self.imports.http_bytes());
        self.limiter.settle()
    }

    /// Lends the state to `wasi:filesystem`.
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
    /// Instantiates the component and runs its handler. Instantiation runs guest code, so the
    /// limits of the store must be set before.
    fn execute<'s>(&'s self, store: &'s mut Store<State>, call: WorldCall<'s>) -> Execution<'s>;

    /// How large the result may be.
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

/// A running handler. The outer error is the reason why the guest was ended.
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

/// WASI without files, network, environment, arguments or input. Clocks and randomness work. Output
/// is captured.
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

/// The insecure seed of one instance, which stays the same. Many guests in Rust request only this
/// from WASI, once for their hash maps. wasmtime-wasi would create two random generators for each
/// call to answer this one request.
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
