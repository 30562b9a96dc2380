//! `conformance.http` in Rust: it imports `wasi:http`, and so stands apart.

use serde_json::{Value, json};
use toolward_guest::http::Request;
use toolward_guest::{Call, Error, driver};

fn fetch(call: Call<Value>) -> Result<Value, Error> {
    let url = call.input["url"].as_str().unwrap_or_default();
    let response = Request::get(url).send()?;
    Ok(json!({ "result": { "status": response.status(), "body": response.text()? } }))
}

driver! {
    "conformance.http" => fetch,
}
