//! Input, context and output.

use serde::{Deserialize, Serialize};
use serde_json::json;
use toolward_guest::testing::{TestCall, invoke};
use toolward_guest::{Block, Call, Error, Outcome, Reply};

#[derive(Deserialize)]
struct Input {
    n: u8,
}

#[derive(Serialize)]
struct Output {
    twice: u16,
}

fn twice(call: Call<Input>) -> Result<Output, Error> {
    Ok(Output {
        twice: u16::from(call.input.n) * 2,
    })
}

#[test]
fn a_handler_gets_its_own_types_and_returns_them() {
    let reply = invoke(twice, json!({"n": 200})).unwrap();
    assert_eq!(reply.structured(), &json!({"twice": 400}));
    assert!(reply.blocks().is_empty());
}

#[test]
fn an_input_that_the_type_does_not_fit_is_input_invalid() {
    let error = invoke(twice, json!({"n": 300})).unwrap_err();
    assert_eq!(error.code(), "input_invalid");
    assert!(error.message().contains("300"), "{}", error.message());
    assert!(!error.is_retryable());
}

#[test]
fn the_context_and_the_attempt_reach_the_handler() {
    let handler = |call: Call<()>| {
        let context: Input = call.context()?;
        Ok::<_, Error>(u32::from(context.n) + call.attempt())
    };
    let call = TestCall::new(json!(null))
        .context(json!({"n": 40}))
        .attempt(2);
    assert_eq!(call.run(handler).unwrap(), Outcome::done(json!(42)));

    let error = TestCall::new(json!(null)).run(handler).unwrap_err();
    assert_eq!(error.code(), "input_invalid");
}

#[test]
fn blocks_travel_beside_the_value() {
    let handler = |_: Call<()>| {
        let block = Block::image("image/png", [1, 2]).for_user().priority(0.5);
        Ok::<_, Error>(Reply::new(1).text("one").block(block))
    };
    let reply = invoke(handler, json!(null)).unwrap();
    assert_eq!(reply.structured(), &json!(1));
    assert_eq!(reply.blocks()[0].as_text(), Some("one"));
    assert_eq!(
        reply.blocks()[1],
        Block::image("image/png", [1, 2]).for_user().priority(0.5)
    );
}

#[test]
fn an_output_without_a_json_form_is_the_drivers_fault() {
    let handler = |_: Call<()>| {
        let keys_that_are_lists = std::collections::BTreeMap::from([(vec![1], 2)]);
        Ok::<_, Error>(keys_that_are_lists)
    };
    assert_eq!(invoke(handler, json!(null)).unwrap_err().code(), "internal");
}
