//! What the benchmarks share: the driver under test, and bare wasmtime around
//! it, with the same engine settings and the same WASI context as the host.

use std::path::{Path, PathBuf};

use toolward_bundle::content::Content;
use toolward_host::{EngineProfile, Limits};
use wasmtime::component::{Component, HasSelf, Linker, ResourceTable};
use wasmtime::{Engine, Store};
use wasmtime_wasi::filesystem::FsPerms;
use wasmtime_wasi::p2::pipe::MemoryOutputPipe;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

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

/// A driver to measure: a guest that uses std through WASI.
#[derive(Clone, Copy)]
pub struct Subject {
    /// The bundle's directory below the repository's root.
    directory: &'static str,
    /// The component below it.
    component: &'static str,
    /// The tool's id.
    pub tool: &'static str,
    /// About 200 bytes of input.
    pub input: &'static str,
}

/// Gives back what it gets: next to no work of its own.
pub const ECHO: Subject = Subject {
    directory: "tests/guests/hostile",
    component: "drivers/hostile/driver.wasm",
    tool: "hostile.run",
    input: r#"{"do":"echo","value":{"customer":"c-1029","items":[{"sku":"a-1","count":3,"price":12.5},{"sku":"b-2","count":1,"price":99.0}],"note":"leave it with the neighbours, please","urgent":false,"tags":["x","y"]}}"#,
};

/// Counts the words of a text: some work of its own.
pub const TEXT_STATS: Subject = Subject {
    directory: "examples/text-stats",
    component: "drivers/text-stats/driver.wasm",
    tool: "text.stats",
    input: r#"{"text":"The quick brown fox jumps over the lazy dog. Pack my box with five dozen liquor jugs. How vexingly quick daft zebras jump! Sphinx of black quartz, judge my vow. Bright vixens jump; dozy fowl quack."}"#,
};

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

/// An engine with the host's own settings.
pub fn engine() -> Engine {
    EngineProfile::for_limits(&Limits::default())
        .engine()
        .expect("an engine")
}

pub struct State {
    wasi: WasiCtx,
    table: ResourceTable,
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
}

impl Bare {
    pub fn new(engine: Engine, component: &Component, subject: Subject) -> Self {
        let mut linker = Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker).expect("WASI");
        Driver::add_to_linker::<_, HasSelf<State>>(&mut linker, |state| state).expect("imports");
        let pre = linker
            .instantiate_pre(component)
            .expect("all imports are there");
        let pre = DriverPre::new(pre).expect("the handler is there");
        Self {
            engine,
            pre,
            subject,
            preopen: None,
        }
    }

    /// The same with a directory to read.
    #[must_use]
    pub fn preopening(mut self, directory: &Path) -> Self {
        self.preopen = Some(directory.to_owned());
        self
    }

    /// A fresh store with WASI, instantiate, call, drop: no checks, no
    /// envelope, no deadline.
    pub async fn call(&self) -> types::ToolOutput {
        let mut wasi = WasiCtx::builder();
        wasi.stdout(MemoryOutputPipe::new(64 << 10))
            .stderr(MemoryOutputPipe::new(64 << 10));
        if let Some(directory) = &self.preopen {
            wasi.preopened_dir(directory, "/bench", FsPerms::ReadOnly)
                .expect("a directory");
        }
        let state = State {
            wasi: wasi.build(),
            table: ResourceTable::new(),
        };
        let mut store = Store::new(&self.engine, state);
        store.set_fuel(10_000_000_000).expect("fuel is on");
        store
            .fuel_async_yield_interval(Some(1_000_000))
            .expect("fuel is on");
        let call = types::Invocation {
            id: "0190f5fe-7c00-7a00-8000-000000000000".to_owned(),
            tool: self.subject.tool.to_owned(),
            tool_version: "1.0.0".to_owned(),
            input: self.subject.input.to_owned(),
            context: "{}".to_owned(),
            attempt: 1,
            remaining_ms: 30_000,
            idempotency_key: "0190f5fe-7c00-7a00-8000-000000000000".to_owned(),
            resume: None,
        };
        let driver = self
            .pre
            .instantiate_async(&mut store)
            .await
            .expect("instantiates");
        let result = driver
            .toolward_driver_handler()
            .call_execute(&mut store, &call)
            .await
            .expect("runs");
        match result.expect("succeeds") {
            bindings::exports::toolward::driver::handler::Outcome::Done(output) => output,
            bindings::exports::toolward::driver::handler::Outcome::NeedsInput(_) => {
                unreachable!("the driver under test asks nothing")
            }
        }
    }
}
