//! `wasi:http` taken without end: each keeps what it takes.

use std::mem::forget;

use hostile_common::toolward_guest::bindings::toolward::driver::secrets;
use hostile_common::toolward_guest::bindings::toolward::driver::types::ToolError;
use hostile_common::{Course, Input, failed};
use serde_json::{Value, json};
use wasip2::http::outgoing_handler;
use wasip2::http::types::{
    Fields, FutureIncomingResponse, IncomingResponse, Method, OutgoingBody, OutgoingRequest,
    OutgoingResponse, RequestOptions, Scheme,
};

use crate::http;

/// Fields of one map: as many tiny ones as the limit on a map lets in.
const ENTRIES: usize = 800;

/// A map full of tiny entries.
fn full() -> Fields {
    let entries: Vec<_> = (0..ENTRIES)
        .map(|n| (format!("{n:x}"), Vec::new()))
        .collect();
    Fields::from_list(&entries).expect("a map of the size that is allowed")
}

fn request() -> OutgoingRequest {
    OutgoingRequest::new(Fields::new())
}

/// Takes `n` of what `name` says.
pub(crate) fn act(input: &Input) -> Result<Value, ToolError> {
    let map = full();
    let mut responses = Vec::new();
    let mut stored = false;
    let each: &mut dyn FnMut() = match input.name.as_str() {
        "fields" => &mut || forget(full()),
        "appended" => &mut || {
            let fields = Fields::new();
            for n in 0..ENTRIES {
                if fields.append(&format!("{n:x}"), b"").is_err() {
                    break;
                }
            }
            forget(fields);
        },
        // A name of its own and then values for it, as many as fit.
        "values" => &mut || {
            let fields = Fields::new();
            let values = vec![Vec::new(); 1500];
            let _ = fields.set("x", &values);
            forget(fields);
        },
        // The same, and all of it taken out again: a map keeps its room.
        "emptied" => &mut || {
            let fields = Fields::new();
            let values = vec![Vec::new(); 1500];
            let _ = fields.set("x", &values);
            let _ = fields.delete("x");
            forget(fields);
        },
        // They share one map until they are changed.
        "clones" => &mut || {
            let copy = map.clone();
            let _ = copy.append("x", b"y");
            forget(copy);
        },
        "request-headers" => &mut || {
            let request = OutgoingRequest::new(full());
            forget(request.headers().clone());
            forget(request);
        },
        "bodies" => &mut || {
            let request = request();
            fill(request.body().expect("a body"));
            forget(request);
        },
        "response-bodies" => &mut || {
            let response = OutgoingResponse::new(full());
            fill(response.body().expect("a body"));
            forget(response);
        },
        "empty-bodies" => &mut || {
            let request = request();
            forget(request.body());
            forget(request);
        },
        "texts" => &mut || {
            let request = request();
            let _ = request.set_method(&Method::Other("M".repeat(200 << 10)));
            let _ = request.set_authority(Some(&"a".repeat(60_000)));
            let _ = request.set_path_with_query(Some(&format!("/{}", "p".repeat(60_000))));
            forget(request);
        },
        "options" => &mut || forget(RequestOptions::new()),
        "futures" => &mut || {
            let request = request();
            let _ = request.set_scheme(Some(&Scheme::Http));
            let _ = request.set_authority(Some(authority(input)));
            let _ = request.set_path_with_query(Some("/"));
            forget(outgoing_handler::handle(request, None));
        },
        // As many as may be under way at once, and then copies of what they brought.
        "responses" => &mut || {
            responses.extend(received(input));
            for response in &responses {
                forget(response.headers().clone());
            }
        },
        // Values whose forms take most to be looked for, and an origin that may echo
        // them.
        "secrets" => &mut || {
            for slug in ["one", "two", "three"] {
                if !stored {
                    let _ = secrets::store(slug, &b"\"&".repeat(30_000));
                }
                forget(secrets::reveal(slug));
            }
            stored = true;
            if let Some(pending) = pending(input) {
                pending.subscribe().block();
                forget(pending);
            }
        },
        other => return Err(failed("input_invalid", format!("no hoard of {other}"))),
    };
    let mut course = Course::new(input.n);
    for at in 0..input.n {
        course.tell(at);
        each();
    }
    Ok(json!(input.n))
}

/// Where the server of the test is, that the driver may send to.
fn authority(input: &Input) -> &str {
    let url = input.value.as_str().unwrap_or_default();
    url.trim_start_matches("http://").trim_end_matches('/')
}

/// Writes to a body what it takes, which nobody reads.
fn fill(body: OutgoingBody) {
    let stream = body.write().expect("a stream");
    while let Ok(room @ 1..) = stream.check_write() {
        if stream.write(&vec![b'x'; room as usize]).is_err() {
            break;
        }
    }
    forget(stream);
    forget(body);
}

/// A request for `value` under way.
fn pending(input: &Input) -> Option<FutureIncomingResponse> {
    let request = json!({"url": input.value});
    let request = serde_json::from_value(request).ok()?;
    http::begin(&request).ok()
}

/// The response to a request for `value`, with its body begun and not read.
fn received(input: &Input) -> Option<IncomingResponse> {
    let pending = pending(input)?;
    pending.subscribe().block();
    let response = pending.get()?.ok()?.ok()?;
    forget(pending);
    let body = response.consume().ok()?;
    let stream = body.stream().ok()?;
    // A part of it waits in the host.
    stream.subscribe().block();
    forget(stream);
    forget(body);
    Some(response)
}
