//! The conformance tools in Rust. `tests/conformance/README.md` says what each of them answers.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::hint::black_box;

use serde_json::{Value, json};
use toolward_guest::keyvalue::Bucket;
use toolward_guest::{
    Answer, Call, Error, Outcome, Questions, Reply, driver, log, progress, secrets, tools,
};

type Answered = Result<Value, Error>;

fn result(value: impl Into<Value>) -> Answered {
    Ok(json!({ "result": value.into() }))
}

fn text<'c>(call: &'c Call<Value>, name: &str) -> &'c str {
    call.input[name].as_str().unwrap_or_default()
}

fn probe(call: Call<Value>) -> Answered {
    match text(&call, "op") {
        "greet" => result(format!("Hello, {}!", text(&call, "name"))),
        "log" => {
            log::write_with(log::Level::Info, "from the guest", &json!({ "n": 1 }));
            println!("to stdout");
            eprintln!("to stderr");
            result("logged")
        }
        "progress" => {
            for step in 1..=3 {
                progress::report_with(f64::from(step), Some(3.0), format!("step {step}"));
            }
            result("reported")
        }
        "error" => Err(Error::new("probe:own", "asked for")
            .retryable()
            .cause(&json!({ "why": "asked" }))),
        "throw" => panic!("uncaught boom"),
        "random" => {
            // Std takes its seeds from the system's generator.
            let number = || RandomState::new().build_hasher().finish();
            result(json!({ "number": number() >> 11, "bytes": format!("{:016x}", number()) }))
        }
        "memory" => {
            let all: Vec<Vec<u8>> = (0..100).map(|_| vec![1; 1 << 20]).collect();
            result(black_box(all).len())
        }
        "loop" => loop {
            black_box(());
        },
        "json" => {
            let depth = call.input["depth"].as_u64().unwrap_or(1);
            result((1..depth).fold(json!([]), |inner, _| json!([inner])))
        }
        "recurse" => result(recurse(&[1; 64])),
        other => Err(Error::new("input_invalid", format!("no op {other}"))),
    }
}

fn recurse(frame: &[u64; 64]) -> u64 {
    let next = black_box([frame[0] + 1; 64]);
    match black_box(true) {
        true => recurse(&next) + black_box(next)[1],
        false => 0,
    }
}

fn echo(call: Call<Value>) -> Answered {
    result(text(&call, "text"))
}

fn keyvalue(call: Call<Value>) -> Answered {
    result(Bucket::open("conformance")?.increment(text(&call, "key"), 1)?)
}

fn secret(_: Call<Value>) -> Answered {
    let placeholder = secrets::placeholder("conformance-token")?;
    let start: String = placeholder.chars().take(4).collect();
    result(json!({ "start": start, "length": placeholder.len() }))
}

fn call_tool(call: Call<Value>) -> Answered {
    let input = json!({ "text": text(&call, "text") });
    result(tools::call::<Value>("conformance.echo", &input)?)
}

fn ask(call: Call<Value>) -> Result<Outcome<Value>, Error> {
    let Some(resume) = call.resume() else {
        let schema = json!({
            "type": "object",
            "properties": { "name": { "type": "string" } },
            "required": ["name"],
        });
        let questions = Questions::new().form("who", "Whom shall I greet?", schema);
        return Ok(Outcome::Ask(
            questions.state(&json!({ "greeting": "Hello" }))?,
        ));
    };
    let nobody = |how: &'static str| Err(Error::new("probe:nobody", how));
    let name = match resume.answer::<Value>("who")? {
        Answer::Accepted(form) => form["name"].as_str().unwrap_or_default().to_owned(),
        Answer::Declined => return nobody("declined"),
        Answer::Cancelled => return nobody("cancelled"),
    };
    let state: Value = resume.state()?;
    let greeting = state["greeting"].as_str().unwrap_or_default();
    let reply = json!({ "result": format!("{greeting}, {name}!") });
    Ok(Outcome::Done(Reply::new(reply)))
}

fn files(_: Call<Value>) -> Answered {
    let text = std::fs::read_to_string("/data/in.txt")?.to_uppercase();
    std::fs::write("/data/out.txt", &text)?;
    result(text.len())
}

driver! {
    "conformance.probe" => probe,
    "conformance.echo" => echo,
    "conformance.keyvalue" => keyvalue,
    "conformance.secret" => secret,
    "conformance.tool" => call_tool,
    "conformance.ask" => ask,
    "conformance.files" => files,
}
