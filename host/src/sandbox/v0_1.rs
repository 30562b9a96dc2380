//! Adapter for the world `toolward:driver/driver@0.1.0`: its bindings, and the
//! host's side of its imports. The only module that knows this version.

use wasmtime::component::{HasSelf, Linker};
use wasmtime::{Engine, Result};

use super::{State, files};
use crate::observer::{LogLevel, LogRecord, Progress};

/// What a component of this version exports.
pub(crate) const EXPORT: &str = "toolward:driver/handler@0.1.0";

mod bindings {
    wasmtime::component::bindgen!({
        world: "driver",
        path: "../wit",
        imports: { default: trappable },
        exports: { default: async },
    });
}

pub(crate) use bindings::exports::toolward::driver::handler;
pub(crate) use bindings::toolward::driver::types;
pub(crate) use bindings::{Driver, DriverPre};

use bindings::toolward::driver::{log, progress, secrets, tools};

/// Progress messages are shortened to this many bytes.
const PROGRESS_MESSAGE: usize = 1024;

/// A linker with WASI 0.2 and the world's imports. Built once per engine.
pub(crate) fn linker(engine: &Engine) -> Result<Linker<State>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    files::add_to_linker(&mut linker, State::files)?;
    Driver::add_to_linker::<_, HasSelf<State>>(&mut linker, |state| state)?;
    Ok(linker)
}

impl types::Host for State {}

impl progress::Host for State {
    fn report(&mut self, update: progress::Update) -> Result<()> {
        if !self.progress.admit(update.done) {
            return Ok(());
        }
        if let Some(observer) = &self.observer {
            observer.progress(&Progress {
                done: update.done,
                total: update.total.filter(|total| total.is_finite()),
                message: update.message.map(|mut message| {
                    message.truncate(message.floor_char_boundary(PROGRESS_MESSAGE));
                    message
                }),
            });
        }
        Ok(())
    }
}

impl log::Host for State {
    fn write(&mut self, level: log::Level, message: String, fields: Option<String>) -> Result<()> {
        let fields_bytes = fields.as_ref().map_or(0, String::len);
        self.log
            .admit((message.len() as u64).saturating_add(fields_bytes as u64))?;
        let limits = toolward_contract::json::Limits {
            bytes: 64 << 10,
            depth: 16,
            values: 1000,
        };
        let fields = match fields {
            None => serde_json::Value::Null,
            // Fields that are no JSON object are kept as the text they are.
            Some(text) => match toolward_contract::json::parse(text.as_bytes(), &limits) {
                Ok(object @ serde_json::Value::Object(_)) => object,
                _ => serde_json::Value::String(text),
            },
        };
        let level = match level {
            log::Level::Trace => LogLevel::Trace,
            log::Level::Debug => LogLevel::Debug,
            log::Level::Info => LogLevel::Info,
            log::Level::Warn => LogLevel::Warn,
            log::Level::Error => LogLevel::Error,
        };
        let record = LogRecord {
            level,
            message,
            fields,
        };
        if let Some(observer) = &self.observer {
            observer.log(&record);
        }
        self.log.push(record);
        Ok(())
    }
}

impl secrets::Host for State {
    fn placeholder(&mut self, _slug: String) -> Result<Result<String, secrets::SecretError>> {
        Ok(Err(secrets::SecretError::Denied))
    }

    fn reveal(&mut self, _slug: String) -> Result<Result<Vec<u8>, secrets::SecretError>> {
        Ok(Err(secrets::SecretError::Denied))
    }

    fn store(
        &mut self,
        _slug: String,
        _value: Vec<u8>,
    ) -> Result<Result<(), secrets::SecretError>> {
        Ok(Err(secrets::SecretError::Denied))
    }
}

impl tools::Host for State {
    fn call(
        &mut self,
        request: tools::Request,
    ) -> Result<Result<types::ToolOutput, types::ToolError>> {
        Ok(Err(types::ToolError {
            code: "unauthorised".to_owned(),
            message: format!("no grant to call the tool `{}`", request.tool),
            retryable: false,
            retry_after_ms: None,
            cause: None,
        }))
    }
}
