//! Tests how handlers' results become the world's values, on which authors rely. Exports a driver
//! like an author's crate.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests fail by panicking"
)]

mod buckets;
mod calls;
mod errors;
mod grants;
mod questions;
mod requests;

use toolward_guest::{Call, Error, driver};

fn upper(call: Call<String>) -> Result<String, Error> {
    Ok(call.input.to_uppercase())
}

fn whoami(call: Call<()>) -> Result<String, Error> {
    Ok(call.tool().to_owned())
}

driver! {
    "suite.upper" => upper,
    "suite.whoami" => whoami,
}
