//! Tests of the crate through its public interface.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests fail the test"
)]

mod action_documents;
mod capabilities;
mod contracts;
mod corpus;
mod drivers;
mod form_drivers;
mod http_documents;
mod http_paths;
mod http_requests;
mod http_templates;
mod indexes;
mod noted;
mod prompts;
mod published;
mod runloop_documents;
mod schemas;
mod second_opinion;
mod spec_examples;
mod yaml_mistakes;
