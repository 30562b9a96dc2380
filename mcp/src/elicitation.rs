//! Elicitation: what a driver asks, as requests of the protocol, and the state that
//! a client carries between a question and its answer.

pub(crate) mod questions;
pub(crate) mod request_state;
