//! The world `toolward:driver/driver@0.1.0`: calls its handler, and implements its imports.

mod convert;

use wasmtime::component::{HasSelf, Linker};
use wasmtime::{Result, Store};

use crate::imports::{CallerBudget, LogMessage, SecretError};
use crate::invocation::CallEnd;
use crate::result::{LogLevel, record_bytes};
use crate::state::{Execution, State, World, WorldCall};

use crate::bindings::exports::toolward::driver::handler::Outcome;
use crate::bindings::toolward::driver::{log, progress, secrets, tools, types};
use crate::bindings::{Driver, DriverPre};

/// Adds this version's imports.
pub(crate) fn add_to_linker(linker: &mut Linker<State>) -> Result<()> {
    Driver::add_to_linker::<_, HasSelf<State>>(linker, State::import)
}

impl types::Host for State {}

impl progress::Host for State {
    fn report(&mut self, update: progress::Update) -> Result<()> {
        let held = self.imports.progress(update);
        self.limiter.held.keep(held);
        Ok(())
    }
}

impl log::Host for State {
    fn write(&mut self, level: log::Level, message: String, fields: Option<String>) -> Result<()> {
        let record = self.imports.log(LogMessage {
            level: match level {
                log::Level::Trace => LogLevel::Trace,
                log::Level::Debug => LogLevel::Debug,
                log::Level::Info => LogLevel::Info,
                log::Level::Warn => LogLevel::Warn,
                log::Level::Error => LogLevel::Error,
            },
            message,
            fields,
        })?;
        self.limiter.held.keep(record_bytes(&record));
        self.logs.push(record);
        Ok(())
    }
}

impl secrets::Host for State {
    async fn placeholder(&mut self, slug: String) -> Result<Result<String, secrets::SecretError>> {
        secret(self.imports.placeholder(slug).await)
    }

    async fn reveal(&mut self, slug: String) -> Result<Result<Vec<u8>, secrets::SecretError>> {
        secret(self.imports.reveal(slug).await)
    }

    async fn store(
        &mut self,
        slug: String,
        value: Vec<u8>,
    ) -> Result<Result<(), secrets::SecretError>> {
        // The value is kept until the call ends, since it must be redacted from the result.
        self.limiter.held.keep(value.len() as u64);
        secret(self.imports.store(slug, value).await)
    }
}

/// A reply for the guest. The outer error ends the guest.
fn secret<T>(reply: Result<T, SecretError>) -> Result<Result<T, secrets::SecretError>> {
    Ok(Err(match reply {
        Ok(reply) => return Ok(Ok(reply)),
        Err(SecretError::Denied) => secrets::SecretError::Denied,
        Err(SecretError::Missing) => secrets::SecretError::Missing,
        Err(SecretError::Failed) => secrets::SecretError::Failed,
        Err(SecretError::Ends(end)) => return Err(end.into()),
    }))
}

impl tools::Host for State {
    async fn call(
        &mut self,
        request: tools::Request,
    ) -> Result<Result<types::ToolOutput, types::ToolError>> {
        let left = CallerBudget {
            fuel: self.meter.fuel,
            memory_bytes: self.limiter.memory_left(),
        };
        // The input is in memory twice: as the caller's copy and as the called tool's copy.
        let input = (request.input.len() as u64).saturating_mul(2);
        let _input = self.limiter.held.shared().hold(input);
        let reply = self.imports.call_tool(request, left).await?;
        self.meter.owed = self.meter.owed.saturating_add(reply.fuel);
        self.limiter.called(reply.peak_memory);
        let result = reply.result.map(convert::output_to_guest);
        Ok(result.map_err(convert::error_to_guest))
    }
}

impl World for DriverPre<State> {
    fn execute<'s>(&'s self, store: &'s mut Store<State>, call: WorldCall<'s>) -> Execution<'s> {
        Box::pin(async move {
            let driver = self.instantiate_async(&mut *store).await?;
            let handler = driver.toolward_driver_handler();
            Ok(match handler.call_execute(store, call.invocation).await? {
                Ok(Outcome::Done(output)) => CallEnd::Done(convert::output(output)),
                Ok(Outcome::NeedsInput(asked)) => CallEnd::Asks(asked),
                Err(error) => CallEnd::Failed(error),
            })
        })
    }
}
