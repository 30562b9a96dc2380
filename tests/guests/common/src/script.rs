//! Several behaviours in one call, in one instance.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};
use toolward_guest::bindings::toolward::driver::types::{Invocation, Outcome, ToolError};

use crate::{Input, More, act};

/// Different results that a tally tells apart.
const KINDS: usize = 50;

/// Counts of results, by their JSON.
#[derive(Default)]
pub struct Tally {
    times: u64,
    kinds: BTreeMap<String, u64>,
}

impl Tally {
    pub fn add(&mut self, result: Value) {
        self.times += 1;
        let mut kind = result.to_string();
        if self.kinds.len() >= KINDS && !self.kinds.contains_key(&kind) {
            kind = "others".to_owned();
        }
        *self.kinds.entry(kind).or_default() += 1;
    }

    pub fn value(&self) -> Value {
        json!({"times": self.times, "results": self.kinds})
    }
}

#[derive(Deserialize)]
struct Steps {
    steps: Vec<Value>,
}

/// Each step is an input of its own; gives the list of their values.
pub(crate) fn steps(call: &Invocation, input: &Input, more: More) -> Result<Value, ToolError> {
    let Steps { steps } = input.typed()?;
    let values: Vec<Value> = steps
        .into_iter()
        .map(|step| value(call, step, more))
        .collect();
    Ok(json!(values))
}

#[derive(Deserialize)]
struct Repeat {
    step: Value,
    #[serde(default)]
    times: u64,
    /// Goes on for so long instead of a number of times.
    for_ms: Option<u64>,
}

/// The same step again and again; gives how often it had which value.
pub(crate) fn repeat(call: &Invocation, input: &Input, more: More) -> Result<Value, ToolError> {
    let repeat: Repeat = input.typed()?;
    let mut tally = Tally::default();
    let until = repeat
        .for_ms
        .map(|wait| Instant::now() + Duration::from_millis(wait));
    while match until {
        Some(until) => Instant::now() < until,
        None => tally.times < repeat.times,
    } {
        tally.add(value(call, repeat.step.clone(), more));
    }
    Ok(tally.value())
}

/// What a behaviour says of itself, or how it failed.
fn value(call: &Invocation, step: Value, more: More) -> Value {
    match Input::read(step, call).and_then(|input| act(call, &input, more)) {
        Ok(Outcome::Done(output)) => serde_json::from_str::<Value>(&output.structured)
            .map(|output| output["value"].clone())
            .unwrap_or(json!({"raw": output.structured})),
        Ok(Outcome::NeedsInput(_)) => json!({"asks": true}),
        Err(error) => json!({"error": error.code, "message": error.message}),
    }
}
