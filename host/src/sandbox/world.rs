//! The versions of the driver world that this host serves: one module each, which
//! alone knows that version's types. A component is served by the adapter of the
//! version whose handler it exports.

use std::pin::Pin;

use wasmtime::component::{InstancePre, Linker};
use wasmtime::{Engine, Result, Store};

use super::{State, files, http, keyvalue, sockets, v0_1};
use crate::invocation::{DriverError, Invocation, Returned};

/// A component, bound to the world that it was made for.
pub(crate) enum World {
    V0_1(v0_1::DriverPre<State>),
}

/// Why a component can't be served: it exports no handler that this host knows.
#[derive(Debug)]
pub(crate) struct NoHandler {
    /// The newest handler that it could export.
    pub(crate) handler: &'static str,
    pub(crate) source: wasmtime::Error,
}

/// A linker with WASI 0.2 and the imports of all versions. Built once per engine.
pub(crate) fn linker(engine: &Engine) -> Result<Linker<State>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    files::add_to_linker(&mut linker, State::files)?;
    keyvalue::add_to_linker(&mut linker, State::buckets)?;
    sockets::add_to_linker(&mut linker)?;
    http::view::add_to_linker(&mut linker, State::http)?;
    v0_1::add_to_linker(&mut linker)?;
    Ok(linker)
}

impl World {
    /// The world of this component, by the handler that it exports.
    pub(crate) fn of(component: InstancePre<State>) -> Result<Self, NoHandler> {
        match v0_1::DriverPre::new(component) {
            Ok(driver) => Ok(Self::V0_1(driver)),
            Err(source) => Err(NoHandler {
                handler: v0_1::HANDLER,
                source,
            }),
        }
    }

    /// A call of the component. It is converted once, for all attempts.
    pub(crate) fn call(&self, invocation: Invocation) -> WorldCall<'_> {
        match self {
            Self::V0_1(driver) => WorldCall::V0_1(v0_1::HandlerCall::new(driver, invocation)),
        }
    }
}

/// A handler that runs. The outer error is what ended the guest.
pub(crate) type Execution<'a> =
    Pin<Box<dyn Future<Output = Result<Result<Returned, DriverError>>> + Send + 'a>>;

/// A call of a component in the types of its world.
pub(crate) enum WorldCall<'a> {
    V0_1(v0_1::HandlerCall<'a>),
}

impl WorldCall<'_> {
    /// Says which attempt comes next, and how many milliseconds are left for it.
    pub(crate) fn set_attempt(&mut self, number: u32, remaining_ms: u64) {
        match self {
            Self::V0_1(call) => call.set_attempt(number, remaining_ms),
        }
    }

    /// Instantiates the component and runs its handler. Start functions are guest
    /// code: the store has to be armed.
    ///
    /// Boxed, since each version has a future of its own, and to keep the futures of
    /// wasmtime out of the types of everything above.
    pub(crate) fn execute<'s>(&'s self, store: &'s mut Store<State>) -> Execution<'s> {
        match self {
            Self::V0_1(call) => Box::pin(call.execute(store)),
        }
    }

    pub(crate) fn engine(&self) -> &Engine {
        match self {
            Self::V0_1(call) => call.engine(),
        }
    }

    /// Input and context, as they were given.
    pub(crate) fn into_input(self) -> (String, String) {
        match self {
            Self::V0_1(call) => call.into_input(),
        }
    }
}
