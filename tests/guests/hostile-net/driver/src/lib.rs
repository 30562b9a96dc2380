//! A driver that abuses the network: raw `wasi:http`, beside all that the common
//! hostile behaviours do.

mod body;
mod hoard;
mod http;

use hostile_common::did;
use serde_json::Value;

hostile_common::driver!(|_, input| {
    let value: Result<Value, _> = match input.what.as_str() {
        "http" => input.typed().map(|request| http::one(&request)),
        "http-parallel" => input.typed().map(|request| http::parallel(&request)),
        "hoard-http" => hoard::act(input),
        "fields-flood" => Ok(http::fields_flood(input.n)),
        _ => return None,
    };
    Some(value.and_then(|value| did(input, value)))
});
