//! One call of a tool, from the request to the result.
#![expect(
    deprecated,
    reason = "logging is on its way out of MCP, and in both eras still"
)]

mod named;
mod round_trips;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData, JsonObject, LoggingLevel,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;
use toolward_host::Request;

use crate::catalogue::{Found, Listed};
use crate::client::Client;
use crate::features::ServerFeatures;
use crate::observe::Wanted;
use crate::principal::Principal;
use crate::result;
use crate::search::Asked;
use crate::strict;
pub(crate) use named::new_session;
use round_trips::Finished;
pub(crate) use round_trips::RoundTrips;

/// An incoming call with its context.
pub(crate) struct Incoming<'a> {
    pub(crate) features: &'a ServerFeatures,
    pub(crate) round_trips: &'a RoundTrips,
    pub(crate) principal: &'a Principal,
    pub(crate) context: &'a RequestContext<RoleServer>,
    /// The least urgent log records that the client wants.
    pub(crate) level: Option<LoggingLevel>,
    /// The session that ids of calls are bound to, if they are.
    pub(crate) session: Option<&'a str>,
}

impl Incoming<'_> {
    /// The error for a name that is no tool's. It suggests only what this principal may use.
    fn unknown(&self, name: &str) -> ErrorData {
        let near = self.features.near(name, self.principal);
        let hint = near.map(|near| format!("; did you mean {near:?}?"));
        let name = toolward_bundle::text::visible_line(name, 200);
        let hint = hint.unwrap_or_default();
        ErrorData::invalid_params(format!("there is no tool {name:?}{hint}"), None)
    }

    pub(crate) async fn call(
        self,
        mut request: CallToolRequestParams,
    ) -> Result<CallToolResponse, ErrorData> {
        let features = self.features;
        if let Some(malformed) = strict::found(&self.context.extensions) {
            return Ok(result::failed(&malformed.of_call()).into());
        }
        let arguments = request.arguments.take().unwrap_or_default();
        if let Some(finder) = features.finder() {
            let asked = finder.asked(
                features.catalogue(),
                &request.name,
                arguments,
                self.principal,
            );
            return match asked {
                Asked::Answer(result) => Ok(result.into()),
                Asked::Refused(error) => Ok(result::failed(&error).into()),
                Asked::Call { tool, input } => self.run(tool, input, request).await,
                Asked::Unknown => Err(self.unknown(&request.name)),
            };
        }
        match features.catalogue().find(&request.name, self.principal) {
            Some(Found::Listed(tool)) => self.run(tool, arguments, request).await,
            // A call of a blocked tool gets the reason why it is blocked.
            Some(Found::Blocked(blocked)) => {
                let reply = Request::with_value(blocked.target.as_str(), Value::Object(arguments))
                    .principal(self.principal.name.as_ref());
                let reply = features.host.call(reply).await;
                Ok(result::of(reply, false).into())
            }
            None => Err(self.unknown(&request.name)),
        }
    }

    async fn run(
        self,
        tool: &Listed,
        input: JsonObject,
        parameters: CallToolRequestParams,
    ) -> Result<CallToolResponse, ErrorData> {
        let context = self.context;
        let client = Client::new(context, self.principal);
        let value = match tool.input(input.clone()) {
            Ok(value) => value,
            Err(error) => return Ok(result::failed(&error).into()),
        };
        let request = Request::with_value(tool.target.as_str(), value)
            .principal(self.principal.name.as_ref());
        let mut request = match named::named(request, &context.meta, self.session) {
            Ok(request) => request,
            Err(error) => return Ok(result::failed(&error).into()),
        };
        let wanted = Wanted {
            token: context.meta.get_progress_token(),
            level: self.level,
        };
        let observed = wanted.observer(&context.peer, &tool.name);
        let host = &self.features.host;
        let finished = match observed {
            Some((observer, forwarder)) => {
                request = request.observer(observer);
                let call = self.round_trips.carry_out(
                    &client,
                    host,
                    request,
                    &tool.name,
                    &input,
                    &parameters,
                );
                forwarder.during(call).await?
            }
            None => {
                self.round_trips
                    .carry_out(&client, host, request, &tool.name, &input, &parameters)
                    .await?
            }
        };
        Ok(match finished {
            Finished::Reply(mut reply) => {
                if let Err(error) = &mut reply.result {
                    tool.place_violations(error);
                }
                if let Ok(output) = &mut reply.result {
                    output.structured = tool.outward(std::mem::take(&mut output.structured));
                }
                let result: CallToolResult = result::of(*reply, tool.wrapped);
                result.into()
            }
            Finished::InputRequired(required) => required.into(),
        })
    }
}
