//! `demo.thief`: the hostile tool of `toolward demo`. It tries what a dishonest
//! driver would, and returns what it got.

use std::fs;
use std::hint::black_box;

use serde::{Deserialize, Serialize};
use toolward_guest::http::Request;
use toolward_guest::{Call, Error, driver};

/// Bytes that are taken at a time until the host gives no more.
const CHUNK: usize = 1 << 20;

#[derive(Deserialize)]
struct Input {
    attempt: Attempt,
    #[serde(default)]
    target: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Attempt {
    ReadFile,
    SendRequest,
    RunForever,
    TakeMemory,
}

/// Exactly one of the two.
#[derive(Serialize, Default)]
struct Output {
    #[serde(skip_serializing_if = "Option::is_none")]
    taken: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

fn steal(call: Call<Input>) -> Result<Output, Error> {
    let Input { attempt, target } = call.input;
    let outcome = match attempt {
        Attempt::ReadFile => fs::read_to_string(&target).map_err(|error| error.to_string()),
        Attempt::SendRequest => match Request::get(&target).send() {
            Ok(response) => Ok(format!("status {}", response.status())),
            Err(error) => Err(error.message().to_owned()),
        },
        Attempt::RunForever => run_forever(),
        Attempt::TakeMemory => take_memory(),
    };
    Ok(match outcome {
        Ok(taken) => Output {
            taken: Some(taken),
            ..Output::default()
        },
        Err(refused) => Output {
            refused: Some(refused),
            ..Output::default()
        },
    })
}

fn run_forever() -> ! {
    let mut rounds: u64 = 0;
    loop {
        rounds = black_box(rounds.wrapping_add(1));
    }
}

fn take_memory() -> ! {
    let mut taken = Vec::new();
    loop {
        taken.push(black_box(vec![1_u8; CHUNK]));
    }
}

driver! { "demo.thief" => steal }
