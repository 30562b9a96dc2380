//! Lists of messages, which revision 2025-03-26 has. Each message is handled like a request with
//! this message alone. The answers are sent as one list. Progress and log records of these calls
//! are dropped, and the calls can't ask anything.

use std::sync::Arc;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::{StreamExt as _, stream};
use http::StatusCode;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http_body_util::BodyExt as _;
use rmcp::ServerHandler;
use serde_json::Value;

use super::body::PermitBody;
use super::concurrency::PrincipalPermits;
use super::guard::Guard;
use super::host_header::single;
use super::responses::HttpRejection;
use super::sessions::HttpCaller;
use crate::client::{InBatch, UnreadResults};
use crate::messages::{self, MAX_BATCH_ANSWERS_BYTES, MAX_BATCH_MESSAGES};
use crate::revision::Revision;

/// Messages of one list that are handled at once.
const CONCURRENCY: usize = 8;

impl<H: ServerHandler> Guard<H> {
    /// Handles the messages of a list, for a session whose revision has lists.
    // Boxed, since this function and the handling of each message call each other.
    pub(super) fn batch<'a>(
        &'a self,
        caller: &'a Arc<HttpCaller>,
        (permits, unread): (&'a PrincipalPermits, Option<UnreadResults>),
        mut parts: Parts,
        list: &'a Bytes,
    ) -> BoxFuture<'a, Result<Response, HttpRejection>> {
        async move {
            let session = single(&parts.headers, &super::client_headers::SESSION_HEADER);
            let session = session.map_err(|()| HttpRejection::Session)?;
            let session = session.and_then(|session| self.sessions.of(caller, session));
            let revision = session.and_then(|session| session.revision.get().copied());
            if !revision.is_some_and(Revision::has_batches) {
                return Err(HttpRejection::NoMessage(
                    "a list, which only sessions of 2025-03-26 have",
                ));
            }
            let items = messages::items(list).ok_or(HttpRejection::NotJson)?;
            if items.is_empty() || items.len() > MAX_BATCH_MESSAGES {
                return Err(HttpRejection::NoMessage(
                    "a list without messages, or with too many",
                ));
            }
            parts.headers.remove(CONTENT_LENGTH);
            parts.extensions.insert(InBatch);
            let mut answers = Vec::with_capacity(items.len());
            for item in items {
                let counted = (permits, unread.clone());
                let answer = self.one(caller, counted, parts.clone(), list.slice_ref(item));
                answers.push(answer.boxed());
            }
            let mut answers = stream::iter(answers).buffered(CONCURRENCY);
            let mut all = Vec::new();
            while let Some(answer) = answers.next().await {
                let Some(answer) = answer else { continue };
                let mut text = answer.to_string();
                if all.len().saturating_add(text.len()) > MAX_BATCH_ANSWERS_BYTES {
                    text = with_id(HttpRejection::Busy.answer(), answer.get("id").cloned())
                        .to_string();
                }
                all.push(if all.is_empty() { b'[' } else { b',' });
                all.extend_from_slice(text.as_bytes());
            }
            if all.is_empty() {
                return Ok(StatusCode::ACCEPTED.into_response());
            }
            all.push(b']');
            let body = PermitBody::new(Body::from(all), Vec::new(), unread);
            Ok(([(CONTENT_TYPE, "application/json")], Body::new(body)).into_response())
        }
        .boxed()
    }

    /// The answer to one message.
    async fn one(
        &self,
        caller: &Arc<HttpCaller>,
        counted: (&PrincipalPermits, Option<UnreadResults>),
        parts: Parts,
        message: Bytes,
    ) -> Option<Value> {
        let answered = match messages::is_list(&message) {
            true => Err(HttpRejection::NoMessage("a list in a list")),
            false => {
                let body = Body::from(message.clone());
                self.post(caller, counted, parts, body).await
            }
        };
        let response = answered.unwrap_or_else(IntoResponse::into_response);
        answer(&message, response).await
    }
}

/// Returns the answer in the response to one message; `None` for a message that gets no answer.
async fn answer(message: &[u8], response: Response) -> Option<Value> {
    let id = messages::scan(message).id();
    let id = id.and_then(|id| serde_json::to_value(id).ok());
    let streamed = response
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    let body = response.into_body().collect().await.ok()?.to_bytes();
    let answer = match streamed {
        false => serde_json::from_slice(&body).ok(),
        true => {
            let lines = body.split(|byte| *byte == b'\n');
            let mut messages =
                lines.filter_map(|line| serde_json::from_slice(line.strip_prefix(b"data:")?).ok());
            messages.find(|message: &Value| {
                message.get("result").is_some() || message.get("error").is_some()
            })
        }
    };
    answer.map(|answer: Value| with_id(answer, id))
}

/// Adds the message's id to an error that was made without it.
fn with_id(mut answer: Value, id: Option<Value>) -> Value {
    if let (Some(place), Some(id)) = (answer.get_mut("id"), id)
        && place.is_null()
    {
        *place = id;
    }
    answer
}
