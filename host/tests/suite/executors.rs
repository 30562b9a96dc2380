//! An application's own executor, for a kind of driver that this host does not run. It answers from
//! a table, and calls another tool.

use std::sync::Arc;

use serde_json::{Value, json};
use toolward_host::{
    AttemptReport, BoxFuture, CallContext, CallEnd, DriverAsk, DriverOutput, DriverQuestion,
    ErrorCode, Executor, Host, InputRequest, Job, Request, ToolCall,
};
use toolward_policy::Policy;

use crate::fixture::{Extra, Fixture};

/// The number of an order for which the driver asks a question.
const ASKED: u64 = 3;

/// The days of orders 0 and 1. A call about any other order never ends, except for [`ASKED`]. Job
/// and report pass through JSON, as they would with a worker in another process.
struct Table;

impl Executor for Table {
    fn attempt<'a>(
        &'a self,
        job: &'a mut Job,
        call: &'a CallContext,
    ) -> BoxFuture<'a, AttemptReport> {
        Box::pin(async move {
            let job = serde_json::to_string(job).unwrap();
            let job: Job = serde_json::from_str(&job).unwrap();
            let input: Value = serde_json::from_str(&job.invocation.input).unwrap();
            if input["order"] == ASKED {
                let question = DriverQuestion {
                    key: "roots".to_owned(),
                    ask: DriverAsk::Roots,
                };
                return AttemptReport::new(CallEnd::Asks(InputRequest {
                    questions: vec![question],
                    state: Vec::new(),
                }));
            }
            let Some(day) = ["mon", "tue"].get(input["order"].as_u64().unwrap() as usize) else {
                return std::future::pending().await;
            };
            let echo = ToolCall {
                tool: "hostile.run".to_owned(),
                input: json!({ "do": "echo", "value": day }).to_string(),
                timeout_ms: None,
            };
            let result = match call.imports().call_tool(echo, job.left(call)).await {
                Ok(reply) => reply.result.map(|echo| {
                    DriverOutput::new(json!({ "day": echo.structured["value"] }).to_string())
                }),
                Err(ends) => Err(ends.into()),
            };
            let report = serde_json::to_string(&AttemptReport::new(result.into())).unwrap();
            serde_json::from_str(&report).unwrap()
        })
    }
}

/// A host with a tool whose driver has the kind `builtin` and is granted this tool.
fn host(granted: &str, executes: bool) -> (Fixture, Host) {
    let fixture = Fixture::new(Extra::default());
    fixture.tool(
        "orders.day",
        "inputs: { type: object, properties: { order: { type: integer, minimum: 0 } }, required: [order] }\n\
         requires: { tools: [hostile.run] }\ntimeout_ms: 300\n",
    );
    fixture.write(
        "tools/orders.day/TOOL.md",
        std::fs::read_to_string(fixture.path().join("tools/orders.day/TOOL.md"))
            .unwrap()
            .replace("did", "day"),
    );
    fixture.write(
        "drivers/days/DRIVER.md",
        "---\nname: Days\nid: days\ndescription: Days of orders.\nversion: 1.0.0\nkind: builtin\n\
         implements:\n  - tool: orders.day\n    version: 1.x\n---\n",
    );
    let publisher = format!("dev:{}", fixture.path().display());
    let policy = format!("[[grant]]\npublisher = {publisher:?}\nrequires = [\"tool:{granted}\"]\n");
    let builder = fixture
        .builder()
        .policy(Policy::from_toml(&policy).unwrap());
    let builder = match executes {
        true => builder.executor("builtin", |_| Arc::new(Table)),
        false => builder,
    };
    (fixture, builder.build().unwrap())
}

async fn day(host: &Host, order: u64) -> Result<Value, ErrorCode> {
    let request = Request::with_value("orders.day", json!({ "order": order }));
    let result = host.call(request).await.result;
    result
        .map(|output| output.structured)
        .map_err(|error| error.code)
}

#[tokio::test]
async fn an_executor_of_an_application_answers_and_calls_another_tool() {
    let (_fixture, host) = host("hostile.run", true);
    // Prepares the driver before the call.
    assert!(host.prepare().await.is_empty());
    assert_eq!(day(&host, 1).await, Ok(json!({ "day": "tue" })));
    assert_eq!(day(&host, 0).await, Ok(json!({ "day": "mon" })));
}

#[tokio::test]
async fn a_question_that_the_contract_does_not_declare_is_not_asked() {
    let (_fixture, host) = host("hostile.run", true);
    let unavailable = Err(ErrorCode::INPUT_UNAVAILABLE);
    assert_eq!(day(&host, ASKED).await, unavailable);
}

#[tokio::test]
async fn an_executor_that_never_ends_is_ended_at_the_deadline() {
    let (_fixture, host) = host("hostile.run", true);
    assert_eq!(day(&host, 7).await, Err(ErrorCode::TIMEOUT));
}

#[tokio::test]
async fn without_its_executor_or_its_grant_the_tool_has_no_answer() {
    let (_fixture, host) = host("hostile.run", false);
    assert_eq!(day(&host, 1).await, Err(ErrorCode::NO_ROUTE));
    let (_fixture, host) = self::host("hostile.other", true);
    assert_eq!(day(&host, 1).await, Err(ErrorCode::UNAUTHORISED));
}
