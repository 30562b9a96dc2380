//! The world `toolward:driver/driver@0.1.0`: its bindings, the call of its handler, and the
//! host's side of its imports. The only module that knows this version.

mod convert;

use wasmtime::component::{HasSelf, Linker};
use wasmtime::{Engine, Result, Store};

use crate::imports::Progress;
use crate::imports::{CallerBudget, LogMessage, SecretError, SecretReply, SecretRequest};
use crate::invocation::{CallEnd, DriverEnd, Invocation, ToolCall};
use crate::result::{LogLevel, record_bytes};
use crate::state::State;

/// What a component of this version exports.
pub(crate) use toolward_bundle::component::HANDLER;

mod bindings {
    wasmtime::component::bindgen!({
        world: "driver",
        path: "wit",
        imports: {
            default: trappable,
            "toolward:driver/secrets.placeholder": async | trappable,
            "toolward:driver/secrets.reveal": async | trappable,
            "toolward:driver/secrets.store": async | trappable,
            "toolward:driver/tools.call": async | trappable,
        },
        exports: { default: async },
    });
}

pub(crate) use bindings::DriverPre;

use bindings::exports::toolward::driver::handler::Outcome;
use bindings::toolward::driver::{log, progress, secrets, tools, types};
use std::mem::take;

/// Adds this version's imports.
pub(crate) fn add_to_linker(linker: &mut Linker<State>) -> Result<()> {
    bindings::Driver::add_to_linker::<_, HasSelf<State>>(linker, State::import)
}

impl types::Host for State {}

impl progress::Host for State {
    fn report(&mut self, update: progress::Update) -> Result<()> {
        let held = self.imports.progress(Progress {
            done: update.done,
            total: update.total,
            message: update.message,
        });
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
        match self.secret(SecretRequest::Placeholder(slug)).await? {
            Ok(SecretReply::Placeholder(placeholder)) => Ok(Ok(placeholder)),
            Ok(_) => Ok(Err(secrets::SecretError::Failed)),
            Err(error) => Ok(Err(error)),
        }
    }

    async fn reveal(&mut self, slug: String) -> Result<Result<Vec<u8>, secrets::SecretError>> {
        match self.secret(SecretRequest::Reveal(slug)).await? {
            Ok(SecretReply::Value(value)) => Ok(Ok(value)),
            Ok(_) => Ok(Err(secrets::SecretError::Failed)),
            Err(error) => Ok(Err(error)),
        }
    }

    async fn store(
        &mut self,
        slug: String,
        value: Vec<u8>,
    ) -> Result<Result<(), secrets::SecretError>> {
        // Kept until the call ends, to be looked for.
        self.limiter.held.keep(value.len() as u64);
        let stored = self.secret(SecretRequest::Store(slug, value)).await?;
        Ok(stored.map(drop))
    }
}

impl State {
    /// Asks for a secret. The outer error ends the guest.
    async fn secret(
        &mut self,
        request: SecretRequest,
    ) -> Result<Result<SecretReply, secrets::SecretError>> {
        Ok(match self.imports.secret(request).await {
            Ok(reply) => Ok(reply),
            Err(SecretError::Denied) => Err(secrets::SecretError::Denied),
            Err(SecretError::Missing) => Err(secrets::SecretError::Missing),
            Err(SecretError::Failed) => Err(secrets::SecretError::Failed),
            Err(SecretError::Ends(end)) => return Err(end.into()),
        })
    }
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
        // Its input is in memory twice: the caller's copy and the called tool's.
        let input = (request.input.len() as u64).saturating_mul(2);
        let _input = self.limiter.held.shared().hold(input);
        let call = ToolCall {
            tool: request.tool,
            input: request.input,
            timeout_ms: request.timeout_ms,
        };
        let reply = self.imports.call_tool(call, left).await?;
        self.meter.owed = self.meter.owed.saturating_add(reply.fuel);
        self.limiter.called(reply.peak_memory);
        let result = reply.result.map(convert::output_to_guest);
        Ok(result.map_err(convert::error_to_guest))
    }
}

/// A call in this version's types.
pub(crate) struct HandlerCall<'a> {
    driver: &'a DriverPre<State>,
    invocation: types::Invocation,
}

impl<'a> HandlerCall<'a> {
    /// Takes the texts of `call` until [`HandlerCall::give_back`].
    pub(crate) fn new(driver: &'a DriverPre<State>, call: &mut Invocation) -> Self {
        Self {
            driver,
            invocation: types::Invocation {
                idempotency_key: take(&mut call.idempotency_key),
                id: take(&mut call.id),
                tool: take(&mut call.tool),
                tool_version: take(&mut call.tool_version),
                input: take(&mut call.input),
                context: take(&mut call.context),
                attempt: call.attempt,
                remaining_ms: call.remaining_ms,
                resume: call.resume.as_ref().map(convert::resumption),
            },
        }
    }

    pub(crate) async fn execute(&self, store: &mut Store<State>) -> Result<DriverEnd> {
        let driver = self.driver.instantiate_async(&mut *store).await?;
        let handler = driver.toolward_driver_handler();
        let returned = handler.call_execute(store, &self.invocation).await?;
        Ok(match returned {
            Ok(Outcome::Done(output)) => CallEnd::Done(convert::output(output)),
            Ok(Outcome::NeedsInput(asked)) => CallEnd::Asks(convert::input_request(asked)),
            Err(error) => CallEnd::Failed(convert::error(error)),
        })
    }

    pub(crate) fn engine(&self) -> &Engine {
        self.driver.engine()
    }

    pub(crate) fn give_back(self, call: &mut Invocation) {
        let own = self.invocation;
        call.idempotency_key = own.idempotency_key;
        call.id = own.id;
        call.tool = own.tool;
        call.tool_version = own.tool_version;
        call.input = own.input;
        call.context = own.context;
    }
}
