//! `kv.counter`: named counters that stay from call to call.

use serde::{Deserialize, Serialize};
use toolward_guest::keyvalue::Bucket;
use toolward_guest::{Call, Error, driver};

/// The bucket that the contract names.
const BUCKET: &str = "counters";

/// Counters that a list gives.
const MAX_LISTED: usize = 1000;

/// The largest number that every reader of JSON holds exactly.
const MAX_EXACT: u64 = (1 << 53) - 1;

#[derive(Deserialize)]
#[serde(tag = "action", rename_all = "lowercase")]
enum Input {
    Add {
        counter: String,
        #[serde(default = "one")]
        by: u64,
    },
    Get {
        counter: String,
    },
    Reset {
        counter: String,
    },
    List,
}

fn one() -> u64 {
    1
}

#[derive(Serialize)]
struct Output {
    counters: Vec<Counter>,
    truncated: bool,
}

#[derive(Serialize)]
struct Counter {
    name: String,
    value: u64,
}

fn counter(call: Call<Input>) -> Result<Output, Error> {
    let bucket = Bucket::open(BUCKET)?;
    let only = |name: String, value| {
        if value > MAX_EXACT {
            return Err(Error::new(
                "counter:overflow",
                format!("{name} is past {MAX_EXACT}"),
            ));
        }
        Ok(Output {
            counters: vec![Counter { name, value }],
            truncated: false,
        })
    };
    match call.input {
        Input::Add { counter, by } => {
            let value = bucket.increment(&counter, by)?;
            only(counter, value)
        }
        Input::Get { counter } => {
            let value = value(&bucket, &counter)?;
            only(counter, value)
        }
        Input::Reset { counter } => {
            bucket.delete(&counter)?;
            only(counter, 0)
        }
        Input::List => list(&bucket),
    }
}

/// What a counter stands at; 0 for one that has never counted.
fn value(bucket: &Bucket, counter: &str) -> Result<u64, Error> {
    Ok(bucket.get_json(counter)?.unwrap_or(0))
}

fn list(bucket: &Bucket) -> Result<Output, Error> {
    let mut names = bucket.keys().collect::<Result<Vec<_>, _>>()?;
    names.sort();
    let truncated = names.len() > MAX_LISTED;
    names.truncate(MAX_LISTED);
    let counters = names.into_iter().map(|name| {
        let value = value(bucket, &name)?.min(MAX_EXACT);
        Ok(Counter { name, value })
    });
    Ok(Output {
        counters: counters.collect::<Result<_, Error>>()?,
        truncated,
    })
}

driver! { "kv.counter" => counter }

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use toolward_guest::testing::{Grants, invoke};

    use super::*;

    fn run(grants: &Grants, input: Value) -> Result<Value, Error> {
        grants
            .during(|| invoke(counter, input))
            .map(|reply| reply.into_structured())
    }

    fn values(grants: &Grants, input: Value) -> Vec<(String, u64)> {
        let output = run(grants, input).unwrap();
        let counters = output["counters"].as_array().unwrap();
        let pair = |counter: &Value| {
            let name = counter["name"].as_str().unwrap().to_owned();
            (name, counter["value"].as_u64().unwrap())
        };
        counters.iter().map(pair).collect()
    }

    fn named(name: &str, value: u64) -> Vec<(String, u64)> {
        vec![(name.to_owned(), value)]
    }

    #[test]
    fn counters_count_from_call_to_call() {
        let grants = Grants::new().bucket(BUCKET);
        let add = json!({"action": "add", "counter": "a"});
        assert_eq!(values(&grants, add.clone()), named("a", 1));
        assert_eq!(values(&grants, add), named("a", 2));
        let more = json!({"action": "add", "counter": "a", "by": 40});
        assert_eq!(values(&grants, more), named("a", 42));
        let get = json!({"action": "get", "counter": "a"});
        assert_eq!(values(&grants, get), named("a", 42));
        let other = json!({"action": "get", "counter": "b"});
        assert_eq!(values(&grants, other), named("b", 0));
    }

    #[test]
    fn a_reset_counter_is_gone() {
        let grants = Grants::new().bucket(BUCKET);
        for name in ["b", "a", "c"] {
            run(&grants, json!({"action": "add", "counter": name})).unwrap();
        }
        let reset = json!({"action": "reset", "counter": "b"});
        assert_eq!(values(&grants, reset), named("b", 0));
        let list = values(&grants, json!({"action": "list"}));
        assert_eq!(list, [named("a", 1), named("c", 1)].concat());
    }

    #[test]
    fn a_number_that_json_could_not_hold_is_no_answer() {
        let grants = Grants::new().bucket(BUCKET);
        let add = json!({"action": "add", "counter": "a", "by": MAX_EXACT});
        assert_eq!(values(&grants, add.clone()), named("a", MAX_EXACT));
        assert_eq!(run(&grants, add).unwrap_err().code(), "counter:overflow");
    }

    #[test]
    fn without_the_bucket_nothing_is_counted() {
        let error = run(&Grants::new(), json!({"action": "list"})).unwrap_err();
        assert_eq!(error.code(), "unauthorised");
    }
}
