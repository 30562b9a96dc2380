//! Calls that end badly, or not at all.

use std::hint::black_box;
use std::thread::sleep;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use toolward_guest::{Call, Error, Reply, driver};

/// The input does not matter.
#[derive(Deserialize)]
struct Nothing {}

type Answer = Result<Reply<Value>, Error>;

fn fail(_: Call<Nothing>) -> Answer {
    Err(Error::new("plain:intended", "it was asked to fail"))
}

fn trap(_: Call<Nothing>) -> Answer {
    panic!("it was asked to trap");
}

/// Waits inside the host for longer than its contract lets it.
fn hang(_: Call<Nothing>) -> Answer {
    sleep(Duration::from_secs(60));
    Err(Error::new("plain:awake", "nobody ended it"))
}

/// Computes without end.
fn spin(_: Call<Nothing>) -> Answer {
    loop {
        black_box(());
    }
}

driver! {
    "plain.fail" => fail,
    "plain.trap" => trap,
    "plain.hang" => hang,
    "plain.spin" => spin,
}
