//! Asking: the questions of drivers, and approvals, put to whoever stands behind
//! a client.

mod client;

use rmcp::model::{CallToolRequestParams, ErrorData, InputRequiredResult, JsonObject};
use toolward_host::{Host, Reply, Request};

pub(crate) use client::Client;

/// How a call ended, as far as the client is concerned.
pub(crate) enum Finished {
    /// With a result.
    Reply(Box<Reply>),
    /// Not yet: the client has to be asked first.
    InputRequired(InputRequiredResult),
}

/// What is kept about questions that are open, and about what was approved.
pub(crate) struct Asking {}

impl Asking {
    pub(crate) fn new() -> Self {
        Self {}
    }

    /// Carries a call out: asks what has to be asked, and goes on with the
    /// answers. `tool` and `input` are the call's, as the client sent them.
    ///
    /// # Errors
    ///
    /// A fault of the protocol: answers that belong to no question of this call, or
    /// a client that lacks a capability that the call needs.
    pub(crate) async fn carry_out(
        &self,
        _client: &Client,
        host: &Host,
        request: Request,
        _tool: &str,
        _input: &JsonObject,
        _parameters: &CallToolRequestParams,
    ) -> Result<Finished, ErrorData> {
        Ok(Finished::Reply(Box::new(host.call(request).await)))
    }
}
