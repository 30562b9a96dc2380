//! Tests of the crate through its public interface.

mod corpus;
mod hostile_schemas;
