//! The stages of a call in their order, each a module that takes what only the stage
//! before it makes: `resolve`, `validate`, `authorise`, `approve`, `prepare`, then
//! `dispatch`, which admits and runs it. [`crate::host`] takes a call through them, and writes what they return to
//! `call_record`.

pub(crate) mod approve;
pub(crate) mod authorise;
pub(crate) mod call_record;
pub(crate) mod candidates;
pub(crate) mod dispatch;
pub(crate) mod resolve;
pub(crate) mod validate;
