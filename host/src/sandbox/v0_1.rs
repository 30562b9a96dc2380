//! The world `toolward:driver/driver@0.1.0`: its bindings, and the host's side of its
//! imports. The only module that knows this version.

mod convert;
mod execute;

use wasmtime::Result;
use wasmtime::component::{HasSelf, Linker};

use super::State;
use super::secrets::Refused;
use crate::api::observer::Progress;
use crate::api::result::{LogLevel, LogRecord, weight};
use crate::api::violations::ViolationKind;
use crate::invocation::ToolCall;

/// What a component of this version exports.
pub(crate) use toolward_bundle::component::HANDLER;

mod bindings {
    wasmtime::component::bindgen!({
        world: "driver",
        path: "wit",
        imports: {
            default: trappable,
            "toolward:driver/secrets.store": async | trappable,
            "toolward:driver/tools.call": async | trappable,
        },
        exports: { default: async },
    });
}

pub(crate) use bindings::DriverPre;
pub(crate) use execute::HandlerCall;

use bindings::toolward::driver::{log, progress, secrets, tools, types};

/// Progress messages are shortened to this many bytes.
const MAX_PROGRESS_MESSAGE_BYTES: usize = 1024;

/// What a report of progress takes beside its message.
pub(crate) const PROGRESS_REPORT_BYTES: u64 = 128;

/// Adds this version's imports.
pub(crate) fn add_to_linker(linker: &mut Linker<State>) -> Result<()> {
    bindings::Driver::add_to_linker::<_, HasSelf<State>>(linker, State::import)
}

impl types::Host for State {}

impl progress::Host for State {
    fn report(&mut self, update: progress::Update) -> Result<()> {
        if !self.admits_progress(update.done) {
            return Ok(());
        }
        let total = update.total.filter(|total| total.is_finite());
        if let Some(events) = &self.events {
            events.tell(update.done, total);
        }
        // An observer may keep it queued until the call ends.
        let message = update.message.as_ref().map_or(0, String::len);
        let message = message.min(MAX_PROGRESS_MESSAGE_BYTES) as u64;
        self.limiter
            .held
            .keep(PROGRESS_REPORT_BYTES.saturating_add(message));
        if let Some(observer) = &self.observer {
            observer.progress(&Progress {
                done: update.done,
                total,
                message: update.message.map(|mut message| {
                    if let Some(redactor) = self.secrets.redactor() {
                        redactor.text(&mut message);
                    }
                    message.truncate(message.floor_char_boundary(MAX_PROGRESS_MESSAGE_BYTES));
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
            // Fields that are not a JSON object are kept as text.
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
        let mut record = LogRecord {
            level,
            message,
            fields,
        };
        if let Some(redactor) = self.secrets.redactor() {
            redactor.record(&mut record);
        }
        if let Some(observer) = &self.observer {
            observer.log(&record);
        }
        self.limiter.held.keep(weight::record(&record));
        self.log.push(record);
        Ok(())
    }
}

impl secrets::Host for State {
    fn placeholder(&mut self, slug: String) -> Result<Result<String, secrets::SecretError>> {
        if let Err(refused) = self.secrets.may_use(&slug) {
            return self.refuse_secret(refused, &slug).map(Err);
        }
        let placeholder = self
            .network
            .as_ref()
            .and_then(|network| network.placeholder(&slug));
        Ok(placeholder.ok_or(secrets::SecretError::Denied))
    }

    fn reveal(&mut self, slug: String) -> Result<Result<Vec<u8>, secrets::SecretError>> {
        match self.secrets.reveal(&slug) {
            Ok(value) => Ok(Ok(value)),
            Err(refused) => self.refuse_secret(refused, &slug).map(Err),
        }
    }

    async fn store(
        &mut self,
        slug: String,
        value: Vec<u8>,
    ) -> Result<Result<(), secrets::SecretError>> {
        // Kept until the call ends, to be looked for.
        self.limiter.held.keep(value.len() as u64);
        match self.secrets.store(&slug, value).await? {
            Ok(()) => Ok(Ok(())),
            Err(refused) => self.refuse_secret(refused, &slug).map(Err),
        }
    }
}

impl State {
    /// The secret that the input of a nested call would leak. A placeholder is only
    /// valid in this call, and the other tool would not redact a value.
    fn secret_in(&self, input: &str) -> Option<String> {
        let network = self.network.as_ref();
        let placeholder = network.and_then(|network| network.placeholder_in(input.as_bytes()));
        placeholder.or_else(|| {
            let redactor = self.secrets.redactor()?;
            redactor.slug_in_json(input).map(str::to_owned)
        })
    }

    fn refuse_secret(&self, refused: Refused, slug: &str) -> Result<secrets::SecretError> {
        Ok(match refused {
            Refused::Denied => {
                self.violations.record(ViolationKind::Secret, slug)?;
                secrets::SecretError::Denied
            }
            Refused::Missing => secrets::SecretError::Missing,
            Refused::Failed => secrets::SecretError::Failed,
        })
    }
}

impl tools::Host for State {
    async fn call(
        &mut self,
        request: tools::Request,
    ) -> Result<Result<types::ToolOutput, types::ToolError>> {
        if let Some(slug) = self.secret_in(&request.input) {
            self.violations.record(ViolationKind::Secret, &slug)?;
            return Ok(Err(types::ToolError {
                code: "unauthorised".to_owned(),
                message: format!("the secret `{slug}` can't be passed to a tool"),
                retryable: false,
                retry_after_ms: None,
                cause: None,
            }));
        }
        let left = super::tools::Left {
            fuel: self.meter.fuel,
            memory_bytes: self.limiter.memory_left(),
        };
        let Some(tools) = &self.tools else {
            let refused = super::tools::none_granted(&request.tool, &self.violations)?;
            return Ok(Err(convert::error_to_guest(refused)));
        };
        // Its input is in memory twice: the caller's copy and the called tool's.
        let input = (request.input.len() as u64).saturating_mul(2);
        let _input = self.limiter.held.shared().hold(input);
        let request = ToolCall {
            tool: request.tool,
            input: request.input,
            timeout_ms: request.timeout_ms,
        };
        let called = tools.call(request, left, &self.violations).await?;
        self.meter.owed = self.meter.owed.saturating_add(called.fuel);
        self.limiter.called(called.peak_memory);
        let result = called.result.map(convert::output_to_guest);
        Ok(result.map_err(convert::error_to_guest))
    }
}
