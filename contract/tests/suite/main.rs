//! Tests of the crate through its public interface.

mod capabilities;
mod corpus;
mod hostile_schemas;
mod spec_examples;
mod strict_json;
