//! Very many calls over one connection. Some of them fail, trap, hang or are cancelled. No answer
//! is lost or doubled, and nothing is left behind.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use serde_json::{Value, json};

use super::process::{Standing, standing};
use super::raw::{PATIENCE, Raw};
use super::served;
use crate::support::long;

/// The number of calls in each test run.
const CALLS: u64 = 30_000;
/// The number of calls in `cargo xtask long`.
const CALLS_LONG: u64 = 1_000_000;
/// Calls at once.
const AT_ONCE: usize = 64;
/// After how many further calls an endless one is cancelled.
const LATER: u64 = 8;
/// How often the server's resources are measured. The first measurement counts as warm.
const PARTS: u64 = 10;
/// The most that the server's memory may grow between the first and the last measurement, in KiB:
/// fragments that the allocator keeps.
const SLACK: u64 = 8 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Echo,
    Fail,
    Trap,
    Hang,
    Spin,
}

impl Kind {
    fn of(number: u64) -> Self {
        match number % 1000 {
            500 => Self::Hang,
            place if place % 100 == 50 => Self::Spin,
            place if place % 100 == 25 => Self::Trap,
            place if place % 20 == 5 => Self::Fail,
            _ => Self::Echo,
        }
    }

    fn tool(self) -> &'static str {
        match self {
            Self::Echo => "plain.echo",
            Self::Fail => "plain.fail",
            Self::Trap => "plain.trap",
            Self::Hang => "plain.hang",
            Self::Spin => "plain.spin",
        }
    }

    /// Asserts that this is the answer to this call.
    #[track_caller]
    fn check(self, number: u64, answer: &Value) {
        let result = &answer["result"];
        let code = &result["_meta"]["toolward/error"]["code"];
        match self {
            Self::Echo => assert_eq!(result["structuredContent"]["number"], number, "{answer}"),
            Self::Fail => assert_eq!(code, "plain:intended", "{answer}"),
            Self::Trap => assert_eq!(code, "upstream_error", "{answer}"),
            Self::Hang => assert_eq!(code, "timeout", "{answer}"),
            Self::Spin => panic!("it was cancelled: {answer}"),
        }
    }
}

/// The calls that were made, and the known facts about their answers.
struct Soak {
    raw: Raw,
    waiting: HashMap<u64, Kind>,
    answered: HashMap<Kind, u64>,
}

impl Soak {
    /// Reads one answer.
    fn take(&mut self) {
        let answer = self.raw.next(PATIENCE).expect("an answer that was owed");
        let number = answer["id"].as_u64().unwrap();
        let kind = self.waiting.remove(&number);
        let kind = kind.unwrap_or_else(|| panic!("nobody waits for this: {answer}"));
        kind.check(number, &answer);
        *self.answered.entry(kind).or_default() += 1;
    }

    fn call(&mut self, number: u64) {
        let kind = Kind::of(number);
        self.raw
            .call(number, kind.tool(), &json!({"number": number}));
        if kind != Kind::Spin {
            self.waiting.insert(number, kind);
        }
    }

    fn cancel(&mut self, number: u64) {
        self.raw.send(&json!({
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": number},
        }));
    }

    /// Measures the idle server.
    fn rest(&mut self) -> Standing {
        while !self.waiting.is_empty() {
            self.take();
        }
        standing(self.raw.process())
    }
}

#[test]
fn calls_without_number_lose_no_answer_and_leave_nothing_behind() {
    let calls = if long() { CALLS_LONG } else { CALLS };
    let machine = served::plain();
    let mut soak = Soak {
        raw: Raw::open(served::plain_stdio(&machine), json!({})),
        waiting: HashMap::new(),
        answered: HashMap::new(),
    };
    let mut to_cancel = VecDeque::new();
    let mut cancelled = 0;
    let mut warm: Option<Standing> = None;
    let start = Instant::now();
    for number in 0..calls {
        while soak.waiting.len() >= AT_ONCE {
            soak.take();
        }
        soak.call(number);
        if Kind::of(number) == Kind::Spin {
            to_cancel.push_back(number);
        }
        let due = |first: &mut u64| *first + LATER <= number || number + 1 == calls;
        while let Some(first) = to_cancel.pop_front_if(due) {
            soak.cancel(first);
            cancelled += 1;
        }
        if (number + 1) % (calls / PARTS) == 0 && to_cancel.is_empty() {
            let now = soak.rest();
            println!("{} calls, {:.1?}: {now:?}", number + 1, start.elapsed());
            warm.get_or_insert(now);
        }
    }
    let (warm, end) = (warm.expect("a time when it was warm"), soak.rest());
    // Cancelled calls get no late answer either.
    let late = soak.raw.rest();
    assert!(late.is_empty(), "nobody waits for these: {late:?}");
    let answered: u64 = soak.answered.values().sum();
    assert_eq!(answered + cancelled, calls, "{:?}", soak.answered);
    for kind in [Kind::Echo, Kind::Fail, Kind::Trap, Kind::Hang] {
        assert!(soak.answered.contains_key(&kind), "{kind:?} was not tried");
    }
    assert!(
        end.memory <= warm.memory + SLACK,
        "{warm:?} when warm, {end:?} at the end"
    );
    assert!(
        end.files <= warm.files && end.threads <= warm.threads + 2,
        "{warm:?} when warm, {end:?} at the end"
    );
}
