//! AML's own examples as tools: imported, checked, packed, and called over https.

use serde_json::{Value, json};

use super::service::Service;
use crate::mcp::raw::Raw;
use crate::support::Machine;

/// The retrieval tool of AML's specification. `BASE` is the address of its service.
const SEARCH: &str = r#"---
spec_version: "1.2"
tool_id: "search-product-kb"
version: "1.0.0"
status: "active"
meta:
  name: "Search Product Knowledge Base"
  description: >
    Search the internal product documentation for feature behavior, API details,
    release notes, known issues, and troubleshooting steps.
    Use for product or technical questions requiring authoritative internal documentation.
    Do not use for HR, finance, legal, or general web questions.
  owner: "platform-engineering"
  tags: ["search", "product", "retrieval"]
  last_updated: "2025-04-01"
type: "retrieval"
interface:
  input:
    type: object
    properties:
      query:
        type: string
        description: "Search query in natural language."
      top_k:
        type: integer
        description: "Maximum results to return. Default 5, max 20."
        default: 5
    required: ["query"]
  output:
    type: object
    properties:
      results:
        type: array
        description: "List of matching documents."
        items:
          type: object
          properties:
            id: { type: string, description: "Unique document identifier." }
            title: { type: string, description: "Document title." }
            snippet: { type: string, description: "Relevant excerpt from the document." }
            url: { type: string, format: "uri", description: "Link to the full document." }
            score: { type: number, description: "Relevance score, 0.0–1.0." }
          required: ["id", "title", "snippet"]
      total:
        type: integer
        description: "Total number of matching documents."
    required: ["results", "total"]
transport:
  type: "rest-api"
  base_url: "BASE/v2"
  endpoint: "POST /search"
  timeout_ms: 8000
  credentials:
    scheme: "service-account"
    source: "aws_secrets_manager"
    secret_id: "prod/agent/kb-token"
use_guidance:
  use_when:
    - "question asks for specific product feature behavior or configuration"
    - "troubleshooting requires authoritative internal documentation"
  avoid_when:
    - "question is purely conversational or general knowledge"
    - "question is outside product or technical support scope"
  side_effects: "None. Read-only."
---
# Purpose
Gives agents access to the internal product knowledge base.
"#;

/// The action tool of AML's specification, put together from its parts.
const EMAIL: &str = r#"---
spec_version: "1.2"
tool_id: "send_email"
version: "2.1.0"
status: "active"
meta:
  name: "Send Email"
  description: >
    Send a transactional email to one or more recipients using the internal email service.
    Use this to notify users of case resolutions, send confirmation messages,
    or deliver documents. Do not use for bulk or marketing email.
  owner: "comms-platform-team"
  tags: ["email", "write", "comms"]
  last_updated: "2025-04-01"
type: "action"
interface:
  input:
    type: object
    properties:
      to: { type: array, items: { type: string }, description: "Recipient email addresses." }
      subject: { type: string, description: "Email subject line." }
      body: { type: string, description: "Email body in plain text or Markdown." }
      cc: { type: array, items: { type: string }, description: "CC addresses (optional)." }
      template_id: { type: string, description: "Optional template ID to use instead of a free-form body." }
    required: ["to", "subject", "body"]
  output:
    type: object
    properties:
      message_id: { type: string, description: "Unique identifier of the sent message." }
      status: { type: string, enum: ["sent", "queued", "failed"] }
    required: ["status"]
error_codes:
  400: { meaning: "Malformed request", agent_action: "Fix request parameters, do not retry" }
  401: { meaning: "Bad or expired token", agent_action: "Refresh token, retry once" }
  429: { meaning: "Rate limited", agent_action: "Wait Retry-After seconds, then retry" }
  503: { meaning: "Service unavailable", agent_action: "Retry with exponential backoff" }
transport:
  type: "rest-api"
  base_url: "BASE/v1"
  endpoint: "POST /send"
  timeout_ms: 5000
  retry_policy:
    max_attempts: 1
    on_status: []
  credentials:
    scheme: "bearer-token"
    source: "env"
    name: "MAIL_API_TOKEN"
use_guidance:
  use_when:
    - "user has confirmed they want a confirmation email sent"
    - "a case is resolved and the customer should be notified"
    - "a document needs to be delivered to the user's registered email"
  avoid_when:
    - "user has not explicitly requested or confirmed an email"
    - "the recipient address has not been verified"
    - "the content would constitute bulk or marketing communication"
  side_effects:
    - "Sends an email to the specified recipients — this cannot be undone."
    - "Writes an audit log entry on every call."
---
"#;

const TOKEN: &str = "t0ken-of-the-service-account";

/// Returns a machine with both definitions, imported as `desk`, and the output of `import`.
pub(crate) fn imported(service: &Service) -> (Machine, Value) {
    let machine = Machine::new();
    let base = format!("https://localhost:{}", service.port);
    for (name, text) in [("search-product-kb", SEARCH), ("send_email", EMAIL)] {
        let text = text.replace("BASE", &base);
        machine.write(&format!("tools/{name}.tool.md"), text);
    }
    let import = "import aml tools --prefix desk -o desk --json";
    let said = machine.toolward(import).ends(0).json();
    machine.write("ca.pem", &service.authority);
    (machine, said)
}

/// Returns the printed policy after a person has made all choices.
fn chosen(said: &Value, service: &Service, publisher: &str) -> String {
    let draft = said["policy"].as_str().unwrap();
    assert!(
        draft.contains("env = \"TOOLWARD_CHOOSE\" # choose"),
        "{draft}"
    );
    assert!(
        draft.contains("origin = \"https://host.invalid\" # choose"),
        "{draft}"
    );
    let chosen = draft
        .replace("\"TOOLWARD_CHOOSE\"", "\"DESK_TOKEN\"")
        .replace("host.invalid", &format!("localhost:{}", service.port))
        .replace(
            "publisher = \"local\"",
            &format!("publisher = \"{publisher}\""),
        )
        .replace(
            "[[grant]]\n",
            "[[grant]]\naddresses = [\"127.0.0.0/8\"]\npreapproved = true\n",
        );
    format!("[network]\nca_file = \"ca.pem\"\n\n{chosen}")
}

#[test]
fn the_examples_of_the_text_are_tools_that_reach_their_service() {
    let found =
        r#"{"results": [{"id": "7", "title": "Reset", "snippet": "Hold it."}], "total": 1}"#;
    let service = Service::answering("200 OK", found);
    let (machine, said) = imported(&service);
    assert_eq!(
        said["tools"],
        json!(["desk.search-product-kb", "desk.send-email"])
    );
    assert_eq!(said["left_out"], json!([]));
    let codes: Vec<&str> = (said["remarks"].as_array().unwrap().iter())
        .map(|one| one["code"].as_str().unwrap())
        .collect();
    assert_eq!(codes, ["aml-header-assumed", "aml-reads-by-change"]);
    machine.toolward("check desk --deny-warnings").ends(0);
    machine
        .toolward("publisher keys new --out desk.pem")
        .ends(0);
    let pack = "pack desk -o desk.toolbundle --key desk.pem";
    machine.toolward(pack).ends(0);
    let show = machine
        .toolward("publisher keys show desk.pub.pem --json")
        .ends(0);
    let key = show.json()["key_id"].as_str().unwrap().to_owned();

    // Without a grant nothing is allowed, and no request is sent.
    let call = "call desk.search-product-kb --bundle desk.toolbundle --trust-key desk.pub.pem \
                --set query=reset --json";
    let denied = machine.toolward(call).ends(4).json();
    assert_eq!(denied["error"]["class"], "capability_gap", "{denied}");
    // A draft as printed grants nothing either.
    let draft = said["policy"].as_str().unwrap();
    let draft = draft.replace("\"local\"", &format!("\"key:{key}\""));
    machine.write("policy.toml", draft);
    let call = format!("{call} --policy-file policy.toml");
    let denied = machine
        .toolward(&call)
        .env("TOOLWARD_CHOOSE", TOKEN)
        .ends(4);
    assert_eq!(denied.json()["error"]["class"], "capability_gap");
    assert!(service.seen().is_empty());

    machine.write(
        "policy.toml",
        chosen(&said, &service, &format!("key:{key}")),
    );
    let called = machine.toolward(&call).env("DESK_TOKEN", TOKEN).ends(0);
    assert_eq!(called.json()["value"]["total"], 1);
    let [request] = &service.seen()[..] else {
        panic!("{:?}", service.seen());
    };
    assert!(
        request.starts_with("POST /v2/search HTTP/1.1\r\n"),
        "{request}"
    );
    let line = format!("authorization: bearer {TOKEN}\r\n");
    assert!(request.to_ascii_lowercase().contains(&line), "{request}");
    let body = request.split_once("\r\n\r\n").unwrap().1;
    assert_eq!(
        serde_json::from_str::<Value>(body).unwrap(),
        json!({ "query": "reset" })
    );
}

/// The publisher is trusted by document for this prefix only. The tools are installed, and called
/// by both of their names.
#[test]
fn the_examples_of_the_text_are_installed_for_a_publisher_trusted_for_their_prefix() {
    let service = Service::answering("200 OK", r#"{"status": "sent"}"#);
    let (machine, said) = imported(&service);
    let toml = machine.text("desk/bundle.toml");
    machine.write("desk/bundle.toml", toml.replace("\"local\"", "\"desk\""));
    assert_ne!(machine.text("desk/bundle.toml"), toml);
    machine
        .toolward("publisher keys new --out desk.pem")
        .ends(0);
    machine
        .toolward("pack desk -o desk.toolbundle --key desk.pem")
        .ends(0);
    machine
        .toolward("publisher new desk --public-key desk.pub.pem --key desk.pem -o desk.json")
        .ends(0);
    let shown = machine.toolward("publisher show desk.json --json").ends(0);
    let fingerprint = shown.json()["fingerprint"].as_str().unwrap().to_owned();
    machine
        .toolward("trust add desk.json --prefix desk")
        .arg(format!("--fingerprint={fingerprint}"))
        .ends(0);
    machine.toolward("install desk.toolbundle").ends(0);
    machine.write("policy.toml", chosen(&said, &service, "desk"));
    let call = |tool: &str, input: &str| {
        let call = format!("call {tool} --policy-file policy.toml --json --input");
        machine
            .toolward(&call)
            .arg(input)
            .env("DESK_TOKEN", TOKEN)
            .end()
    };
    let mail = r#"{"to": ["a@b.example"], "subject": "s", "body": "b"}"#;
    for name in ["desk.send-email", "desk.send_email"] {
        let sent = call(name, mail);
        assert_eq!(sent.code, Some(0), "{sent}");
        assert_eq!(sent.json()["value"]["status"], "sent", "{sent}");
    }
    // The definition's own id is not a name of the tool here.
    assert_ne!(call("send_email", mail).code, Some(0));
    // The service gives both tools the same answer, which does not match the outputs of the other
    // tool.
    let searched = call("desk.search-product-kb", r#"{"query": "reset"}"#);
    assert_eq!(searched.code, Some(1), "{searched}");
    let [first, second, third] = &service.seen()[..] else {
        panic!("{:?}", service.seen());
    };
    assert!(first.starts_with("POST /v1/send HTTP/1.1\r\n"), "{first}");
    assert!(second.starts_with("POST /v1/send HTTP/1.1\r\n"), "{second}");
    assert!(third.starts_with("POST /v2/search HTTP/1.1\r\n"), "{third}");
}

#[test]
fn a_status_has_the_meaning_that_the_definition_gives_it() {
    let service = Service::answering("400 Bad Request", "{}");
    let (machine, said) = imported(&service);
    let publisher = format!(
        "dev:{}",
        machine.path("desk").canonicalize().unwrap().display()
    );
    machine.write("policy.toml", chosen(&said, &service, &publisher));
    let mail = json!({ "to": ["a@b.example"], "subject": "s", "body": "b" });
    let call = "call desk.send-email --dev desk --policy-file policy.toml --json";
    let call = machine.toolward(call).arg("--input").arg(mail.to_string());
    let failed = call.env("DESK_TOKEN", TOKEN).ends(1).json();
    assert_eq!(failed["error"]["code"], "aml:400", "{failed}");
    assert_eq!(failed["error"]["origin"], "driver");
    assert_eq!(failed["error"]["retryable"], false);
    assert_eq!(failed["error"]["cause"]["message"], "Malformed request");
    assert_eq!(
        failed["error"]["cause"]["hint"],
        "Fix request parameters, do not retry"
    );
    // A request that changes something is sent once.
    assert_eq!(service.seen().len(), 1);
}

#[test]
fn what_an_action_does_is_asked_before_it_is_sent() {
    let service = Service::answering("200 OK", r#"{"status": "sent"}"#);
    let (machine, said) = imported(&service);
    let publisher = format!(
        "dev:{}",
        machine.path("desk").canonicalize().unwrap().display()
    );
    let policy = chosen(&said, &service, &publisher).replace("preapproved = true\n", "");
    machine.write("policy.toml", policy);
    let call = "call desk.send-email --dev desk --policy-file policy.toml --json";
    let input = r#"{"to": [], "subject": "s", "body": "b"}"#;
    let call = machine.toolward(call).arg("--input").arg(input);
    // No person can be asked.
    let denied = call.env("DESK_TOKEN", TOKEN).ends(4).json();
    assert_eq!(
        denied["error"]["code"], "toolward:approval_denied",
        "{denied}"
    );
    assert!(service.seen().is_empty());
}

#[test]
fn commands_that_are_printed_quote_the_directory() {
    let service = Service::answering("200 OK", "{}");
    let machine = imported(&service).0;
    let import = machine.toolward("import aml tools/send_email.tool.md --prefix desk -o");
    let ended = import.arg("it's; rm -rf $HOME").ends(0);
    assert!(
        ended
            .stderr
            .contains(r"toolward check 'it'\''s; rm -rf $HOME'"),
        "{ended}"
    );
}

#[test]
fn what_an_author_writes_about_a_status_reaches_the_model() {
    let service = Service::answering("400 Bad Request", "{}");
    let (machine, said) = imported(&service);
    let publisher = format!(
        "dev:{}",
        machine.path("desk").canonicalize().unwrap().display()
    );
    machine.write("policy.toml", chosen(&said, &service, &publisher));
    let with = "--dev desk --policy-file policy.toml";
    let mail = json!({ "to": ["a@b.example"], "subject": "s", "body": "b" });
    let call = |format: &str| {
        let call = format!("call desk.send-email {with} --format {format} --input");
        let call = machine.toolward(&call).arg(mail.to_string());
        call.env("DESK_TOKEN", TOKEN).ends(1).json()
    };
    const ADVICE: &str = "the tool's publisher advises: Fix request parameters, do not retry";
    let tells = |text: &Value| {
        let text = text.as_str().unwrap();
        assert!(text.contains("Malformed request"), "{text}");
        assert!(text.contains(ADVICE), "{text}");
    };
    let records = call("agent-tool");
    tells(&records["tool_result"]["model_facing_content"][0]["text"]);
    assert_eq!(records["tool_error"]["hint"], ADVICE);
    assert_eq!(records["tool_error"]["origin"], "driver");
    assert_eq!(call("amplifier")["error"]["hint"], ADVICE);
    let serve = machine
        .toolward(&format!("serve {with}"))
        .env("DESK_TOKEN", TOKEN);
    let mut raw = Raw::open(serve.into_command(), json!({}));
    raw.call(1, "desk_send-email", &mail);
    tells(&raw.answer(1)["result"]["content"][0]["text"]);
}
