//! A `human` tool of AML, imported: a form asks for its output, on a terminal and through a client.

use serde_json::{Value, json};

use crate::mcp::raw::{PATIENCE, Raw};
use crate::support::{Machine, Session};

const REVIEW: &str = r#"---
spec_version: "1.2"
tool_id: "review_refund"
version: "1.0.0"
status: "active"
meta:
  name: "Review a refund"
  description: "Asks a reviewer whether a refund is paid."
  owner: "finance"
type: "human"
interface:
  input: { type: object, properties: { amount: { type: integer } }, required: [amount] }
  output:
    type: object
    properties:
      decision: { type: string, enum: [pay, refuse] }
      reason: { type: string }
    required: [decision]
transport:
  type: "message-queue"
  credentials: { scheme: "none" }
use_guidance:
  use_when: ["a customer wants their money back"]
  avoid_when: ["it was paid already"]
---
"#;

/// Returns a machine with the definition, imported as `desk`, and the printed policy for the person
/// who runs it.
fn imported() -> (Machine, String) {
    let machine = Machine::new();
    machine.write("review_refund.tool.md", REVIEW);
    let import = "import aml review_refund.tool.md --prefix desk -o desk --json";
    let said = machine.toolward(import).ends(0).json();
    assert_eq!(said["remarks"][0]["code"], "aml-human-asked-here", "{said}");
    machine.toolward("check desk --deny-warnings").ends(0);
    let publisher = machine.path("desk").canonicalize().unwrap();
    let publisher = format!("publisher = \"dev:{}\"", publisher.display());
    let policy = said["policy"].as_str().unwrap();
    (machine, policy.replace("publisher = \"local\"", &publisher))
}

#[test]
fn what_the_reviewer_types_is_the_output() {
    let (machine, policy) = imported();
    let call = "call desk.review-refund --dev desk --set amount=40 --json";
    // Before the policy is added, no person is asked.
    let denied = machine.toolward(call).ends(4).json();
    assert_eq!(denied["error"]["class"], "capability_gap", "{denied}");

    machine.configure(&policy);
    let call = machine.toolward(call);
    let mut session = Session::start(call.into_command(), 100, "");
    session.sees("  answer: ");
    let screen = session.screen();
    assert!(screen.contains("Asks a reviewer whether"), "{screen}");
    assert!(screen.contains("  | "), "{screen}");
    assert!(screen.contains("\"amount\": 40"), "{screen}");
    session.types("1\r");
    session.types("broken on arrival\r");
    let left = session.leaves();
    assert_eq!(left.code, Some(0), "{left:?}");
    let envelope: Value = serde_json::from_str(&left.stdout).unwrap();
    let answer = json!({ "decision": "pay", "reason": "broken on arrival" });
    assert_eq!(envelope["value"], answer);
    assert_eq!(envelope["meta"]["origin"], "person");
}

#[test]
fn a_client_that_asks_gives_the_output() {
    let (machine, policy) = imported();
    machine.configure(&policy);
    let serve = machine.toolward("serve --dev desk --trust-client");
    let mut raw = Raw::open(serve.into_command(), json!({ "elicitation": {} }));
    raw.call(1, "desk_review-refund", &json!({ "amount": 40 }));
    let question = raw.next(PATIENCE).expect("a question");
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let fields = &question["params"]["requestedSchema"]["properties"];
    assert_eq!(fields["decision"]["enum"], json!(["pay", "refuse"]));
    raw.send(&json!({
        "jsonrpc": "2.0", "id": question["id"],
        "result": { "action": "accept", "content": { "decision": "refuse" } },
    }));
    let answer = raw.answer(1);
    let refused = json!({ "decision": "refuse" });
    assert_eq!(answer["result"]["structuredContent"], refused, "{answer}");
}
