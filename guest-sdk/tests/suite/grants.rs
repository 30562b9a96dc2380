//! Tests the simulated host for a driver's own tests.

use serde_json::{Value, json};
use toolward_guest::testing::{Grants, invoke};
use toolward_guest::{Call, Error, secrets, tools};

// ANCHOR: shout
fn shout(call: Call<String>) -> Result<String, Error> {
    tools::call("text.upper", &call.input)
}

#[test]
fn a_tool_answers_in_place_of_the_host() {
    let grants = Grants::new().tool("text.upper", |input: Value| match input.as_str() {
        Some("") => Err(Error::new("input_invalid", "nothing to shout")),
        text => Ok(json!(text.map(str::to_uppercase))),
    });
    let reply = grants.during(|| invoke(shout, json!("a"))).unwrap();
    assert_eq!(reply.structured(), "A");
    let error = grants.during(|| invoke(shout, json!(""))).unwrap_err();
    assert_eq!(error.code(), "input_invalid");
}

// ANCHOR_END: shout
#[test]
fn grants_end_with_what_they_were_given_for() {
    let outer = Grants::new().secret("a", "1");
    outer.during(|| {
        Grants::new().secret("b", "2").during(|| {
            assert_eq!(secrets::reveal("b").unwrap(), b"2");
            assert!(secrets::reveal("a").is_err());
        });
        assert_eq!(secrets::reveal("a").unwrap(), b"1");
        secrets::store("a", b"3").unwrap();
        assert!(secrets::store("b", b"3").is_err());
    });
    assert!(secrets::reveal("a").is_err());
    assert_eq!(outer.during(|| secrets::reveal("a")).unwrap(), b"3");
}
