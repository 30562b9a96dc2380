//! The shared parts of the benchmarks: the driver under test, and bare wasmtime around it, with the
//! same engine settings and the same WASI context as the host.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use toolward_bundle::content::Content;
use toolward_host::{EngineProfile, Limits};
use wasmtime::component::{Component, HasSelf, Linker, ResourceTable};
use wasmtime::{CallHook, Engine, Store, StoreContextMut, StoreLimits, StoreLimitsBuilder};
use wasmtime_wasi::filesystem::FsPerms;
use wasmtime_wasi::p2::pipe::MemoryOutputPipe;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{
    Error, ForbiddenHeaderFilter, RequestOptions, WasiBody, WasiHttpCtx, WasiHttpCtxView,
    WasiHttpHooks, WasiHttpView,
};

mod bindings {
    wasmtime::component::bindgen!({
        world: "driver",
        path: "../wit",
        imports: { default: trappable },
        exports: { default: async },
    });
}
use bindings::toolward::driver::{log, progress, secrets, tools, types};
pub use bindings::{Driver, DriverPre};

/// A driver to measure, with a tool and an input for its calls.
#[derive(Clone, Copy)]
pub struct Subject {
    /// The bundle's directory below the repository's root.
    directory: &'static str,
    /// The component below it.
    component: &'static str,
    /// The tool's id.
    pub tool: &'static str,
    /// The input of each call.
    pub input: &'static str,
}

/// Echoes its input, with almost no work.
pub const ECHO: Subject = Subject {
    directory: "tests/guests/hostile",
    component: "drivers/hostile/driver.wasm",
    tool: "hostile.run",
    input: r#"{"do":"echo","value":{"customer":"c-1029","items":[{"sku":"a-1","count":3,"price":12.5},{"sku":"b-2","count":1,"price":99.0}],"note":"leave it with the neighbours, please","urgent":false,"tags":["x","y"]}}"#,
};

/// Counts the words of a text, which is some work.
pub const TEXT_STATS: Subject = Subject {
    directory: "examples/text-stats",
    component: "drivers/text-stats/driver.wasm",
    tool: "text.stats",
    input: r#"{"text":"The quick brown fox jumps over the lazy dog. Pack my box with five dozen liquor jugs. How vexingly quick daft zebras jump! Sphinx of black quartz, judge my vow. Bright vixens jump; dozy fowl quack."}"#,
};

/// [`TEXT_STATS`] with the input that `bench/side_by_side.py` sends over stdio.
pub const TWO_WORDS: Subject = Subject {
    input: r#"{"text":"two words"}"#,
    ..TEXT_STATS
};

/// The driver that `toolward new` writes, as `bench/drivers.py` builds it below `directory`.
pub fn greeter(directory: &'static str) -> Subject {
    Subject {
        directory,
        component: "drivers/text.greet.driver/driver.wasm",
        tool: "text.greet",
        input: r#"{"name":"Ada","times":2}"#,
    }
}

impl Subject {
    fn path(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("..")
            .join(self.directory)
    }

    /// The bundle, unsigned; its driver must have been built
    /// (`cargo xtask guests`).
    pub fn content(&self) -> Content {
        Content::from_dev(&self.path()).expect("a bundle; run `cargo xtask guests` first")
    }

    /// The bytes of its driver.
    pub fn wasm(&self) -> Vec<u8> {
        let path = self.path().join(self.component);
        std::fs::read(path).expect("a driver; run `cargo xtask guests` first")
    }
}

/// Reads pages. Its requests wait as long as the server does not answer.
pub const WAITING: Subject = Subject {
    directory: "tests/guests/hostile-net",
    component: "drivers/hostile-net/driver.wasm",
    tool: "hostile.net",
    input: "{}",
};

/// An engine with the host's own settings.
pub fn engine() -> Engine {
    engine_for(&Limits::default())
}

/// An engine with the settings of a host that has these limits.
pub fn engine_for(limits: &Limits) -> Engine {
    EngineProfile::for_limits(limits)
        .engine()
        .expect("an engine")
}

pub struct State {
    wasi: WasiCtx,
    table: ResourceTable,
    http: WasiHttpCtx,
    hooks: Silence,
    limits: StoreLimits,
}

/// Connects, and waits for an answer that never comes, with almost no memory of its own.
struct Silence;

type Worker = Box<dyn Future<Output = Result<(), Error>> + Send>;

impl WasiHttpHooks for Silence {
    fn is_forbidden_header(&mut self, _: &http::HeaderName) -> bool {
        false
    }

    fn forbidden_header_filter(&mut self) -> ForbiddenHeaderFilter {
        Arc::new(|_| false)
    }

    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        _: Option<RequestOptions>,
        _: Worker,
    ) -> Box<dyn Future<Output = Result<(http::Response<WasiBody>, Worker), Error>> + Send> {
        let port = request.uri().port_u16().expect("a port");
        let connection = TcpStream::connect(("127.0.0.1", port)).expect("connects");
        Box::new(async move {
            std::future::pending::<()>().await;
            drop(connection);
            Err(Error::ConnectionTerminated)
        })
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

/// The limits of the host that [`Bare`] applies, too.
#[derive(Debug, Clone, Copy, Default)]
pub struct Guards {
    /// Instructions are counted, and the guest yields now and then. Must match the engine's setting
    /// for counting instructions.
    pub fuel: bool,
    /// A limiter is asked before memories and tables grow.
    pub growth: bool,
    /// Each crossing between guest and host looks at the clock and bounds the copied bytes.
    pub crossings: bool,
    /// A timer ends the call.
    pub deadline: bool,
    /// Handles and the table of resources are bounded.
    pub handles: bool,
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

impl types::Host for State {}
impl progress::Host for State {
    fn report(&mut self, _: progress::Update) -> wasmtime::Result<()> {
        Ok(())
    }
}
impl log::Host for State {
    fn write(&mut self, _: log::Level, _: String, _: Option<String>) -> wasmtime::Result<()> {
        Ok(())
    }
}
impl secrets::Host for State {
    fn placeholder(&mut self, _: String) -> wasmtime::Result<Result<String, secrets::SecretError>> {
        Ok(Err(secrets::SecretError::Denied))
    }
    fn reveal(&mut self, _: String) -> wasmtime::Result<Result<Vec<u8>, secrets::SecretError>> {
        Ok(Err(secrets::SecretError::Denied))
    }
    fn store(
        &mut self,
        _: String,
        _: Vec<u8>,
    ) -> wasmtime::Result<Result<(), secrets::SecretError>> {
        Ok(Err(secrets::SecretError::Denied))
    }
}
impl tools::Host for State {
    fn call(
        &mut self,
        _: tools::Request,
    ) -> wasmtime::Result<Result<types::ToolOutput, types::ToolError>> {
        unreachable!("the driver under test calls no tools")
    }
}

/// Bare wasmtime, ready for calls.
pub struct Bare {
    engine: Engine,
    pre: DriverPre<State>,
    subject: Subject,
    preopen: Option<PathBuf>,
    guards: Guards,
}

/// The times of two kinds of calls that took turns, so that other load on the machine slows both
/// alike.
pub struct Pairs {
    /// The fastest call of the first and of the second kind, in microseconds.
    pub first: f64,
    pub second: f64,
    /// The ratios of second to first of all pairs, sorted.
    pub ratios: Vec<f64>,
}

impl Pairs {
    /// Measures `count` pairs. Both functions return the microseconds of a call.
    pub fn of(count: usize, run_first: impl Fn() -> f64, run_second: impl Fn() -> f64) -> Self {
        run_first();
        run_second();
        let (mut first, mut second) = (f64::MAX, f64::MAX);
        let mut ratios = Vec::with_capacity(count);
        for pair in 0..count {
            // The order within a pair alternates.
            let (one, other) = if pair % 2 == 0 {
                let one = run_first();
                (one, run_second())
            } else {
                let other = run_second();
                (run_first(), other)
            };
            first = first.min(one);
            second = second.min(other);
            ratios.push(other / one);
        }
        ratios.sort_by(f64::total_cmp);
        Self {
            first,
            second,
            ratios,
        }
    }

    /// A quartile of the ratios: 1 is the lower one, 2 the median, 3 the upper one.
    pub fn quartile(&self, quarters: usize) -> f64 {
        let at = self.ratios.len() * quarters / 4;
        self.ratios.get(at).copied().unwrap_or(f64::NAN)
    }
}

/// The time of `run` in microseconds. Its result is dropped afterwards.
pub fn timed<T>(run: impl Fn() -> T) -> f64 {
    let started = Instant::now();
    let made = run();
    let time = started.elapsed();
    drop(made);
    time.as_secs_f64() * 1e6
}

/// A linker with everything that a driver may import.
pub fn linker(engine: &Engine) -> Linker<State> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker).expect("WASI");
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(&mut linker).expect("HTTP");
    Driver::add_to_linker::<_, HasSelf<State>>(&mut linker, |state| state).expect("imports");
    linker
}

impl Bare {
    pub fn new(engine: Engine, component: &Component, subject: Subject) -> Self {
        let linker = linker(&engine);
        Self::linked(engine, &linker, component, subject)
    }

    /// Like [`Bare::new`], with an existing linker.
    pub fn linked(
        engine: Engine,
        linker: &Linker<State>,
        component: &Component,
        subject: Subject,
    ) -> Self {
        let pre = linker
            .instantiate_pre(component)
            .expect("all imports are there");
        let pre = DriverPre::new(pre).expect("the handler is there");
        Self {
            engine,
            pre,
            subject,
            preopen: None,
            guards: Guards {
                fuel: true,
                ..Guards::default()
            },
        }
    }

    /// Replaces the guards; without this, only fuel is counted.
    #[must_use]
    pub fn guarding(mut self, guards: Guards) -> Self {
        self.guards = guards;
        self
    }

    /// Adds a directory that the guest may read.
    #[must_use]
    pub fn preopening(mut self, directory: &Path) -> Self {
        self.preopen = Some(directory.to_owned());
        self
    }

    /// Creates a store with WASI, instantiates the driver, calls it, and drops all: no checks of
    /// input or output, no envelope, and only the chosen guards.
    pub async fn call(&self) -> types::ToolOutput {
        self.calling(self.subject.input.to_owned()).await
    }

    /// Like [`Bare::call`], with another input.
    pub async fn calling(&self, input: String) -> types::ToolOutput {
        let mut wasi = WasiCtx::builder();
        wasi.stdout(MemoryOutputPipe::new(64 << 10))
            .stderr(MemoryOutputPipe::new(64 << 10));
        if let Some(directory) = &self.preopen {
            wasi.preopened_dir(directory, "/bench", FsPerms::ReadOnly)
                .expect("a directory");
        }
        let mut state = State {
            wasi: wasi.build(),
            table: ResourceTable::new(),
            http: WasiHttpCtx::new(),
            hooks: Silence,
            limits: StoreLimits::default(),
        };
        let guards = self.guards;
        if guards.growth {
            state.limits = StoreLimitsBuilder::new()
                .memory_size(64 << 20)
                .table_elements(100_000)
                .build();
        }
        if guards.handles {
            state.table.set_max_capacity(1024);
        }
        let deadline = Instant::now() + Duration::from_secs(30);
        let mut store = Store::new(&self.engine, state);
        if guards.growth {
            store.limiter(|state| &mut state.limits);
        }
        if guards.handles {
            store.set_max_component_handles(1024);
        }
        if guards.crossings {
            store.call_hook(move |store, crossing| cross(store, crossing, deadline));
        }
        if guards.fuel {
            store.set_fuel(10_000_000_000).expect("fuel is on");
            store
                .fuel_async_yield_interval(Some(1_000_000))
                .expect("fuel is on");
        }
        let call = types::Invocation {
            id: "0190f5fe-7c00-7a00-8000-000000000000".to_owned(),
            tool: self.subject.tool.to_owned(),
            tool_version: "1.0.0".to_owned(),
            input,
            context: "{}".to_owned(),
            attempt: 1,
            remaining_ms: 30_000,
            idempotency_key: "0190f5fe-7c00-7a00-8000-000000000000".to_owned(),
            resume: None,
        };
        let guest = async {
            let driver = self
                .pre
                .instantiate_async(&mut store)
                .await
                .expect("instantiates");
            driver
                .toolward_driver_handler()
                .call_execute(&mut store, &call)
                .await
                .expect("runs")
        };
        let result = if guards.deadline {
            let timed = tokio::time::timeout_at(deadline.into(), guest);
            timed.await.expect("in time")
        } else {
            guest.await
        };
        match result.expect("succeeds") {
            bindings::exports::toolward::driver::handler::Outcome::Done(output) => output,
            bindings::exports::toolward::driver::handler::Outcome::NeedsInput(_) => {
                unreachable!("the driver under test asks nothing")
            }
        }
    }
}

/// A small version of the host's work at each crossing.
fn cross(
    mut store: StoreContextMut<'_, State>,
    crossing: CallHook,
    deadline: Instant,
) -> wasmtime::Result<()> {
    match crossing {
        CallHook::CallingHost if Instant::now() >= deadline => {
            return Err(wasmtime::Error::msg("late"));
        }
        CallHook::CallingWasm => store.set_hostcall_fuel(256 << 10),
        CallHook::ReturningFromWasm => store.set_hostcall_fuel(4 << 20),
        CallHook::CallingHost | CallHook::ReturningFromHost => {}
    }
    Ok(())
}
